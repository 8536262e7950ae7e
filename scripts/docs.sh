#!/bin/sh
# Builds the book from docs/ into target/book: scripts/docs.sh [--install | --if-possible]
#
# mdbook is compiled once into ~/.cache/gt-mdbook (GT_MDBOOK_DIR names another folder), without its
# server, its file watcher and its search index, and without optimisation: that takes about 70 CPU
# seconds, and the book is built within a second. --install does only that. With --if-possible an
# installation that fails, as without a network, is reported as skipped, unless CI is set.
#
# The pages in the root of the repository are part of the book too. mdbook takes pages from one
# folder only, so all pages are copied into target/book-source, and links between the root and docs/
# are rewritten on the way.
set -eu
cd "$(dirname "$0")/.."

version=0.5.4
root=${GT_MDBOOK_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/gt-mdbook}
mdbook=$root/$version/bin/mdbook

if [ ! -x "$mdbook" ]; then
  echo "installing mdbook $version into $root" >&2
  if ! cargo install mdbook --version "$version" --locked --no-default-features --debug --quiet \
    --root "$root/$version" --target-dir "$root/target"; then
    if [ "${1:-}" = --if-possible ] && [ -z "${CI:-}" ]; then
      echo "skipped: the book (mdbook could not be installed)" >&2
      exit 0
    fi
    exit 1
  fi
  rm -rf "$root/target"
fi
if [ "${1:-}" = --install ]; then
  exit 0
fi

target=$(cd "${CARGO_TARGET_DIR:-target}" 2>/dev/null && pwd) || target=$PWD/target
source=$target/book-source
rm -rf "$source" "$target/book"
mkdir -p "$source"
cp -R docs/. "$source"
cp LICENSE-* "$source"

# Rewrites the links of a page on standard input; $1 leads from its folder to that of docs/.
rewrite() {
  sed -e "s|](${1}\.\./README\.md|](${1}README.md|g" \
    -e "s|](${1}\.\./ARCHITECTURE\.md|](${1}architecture.md|g" \
    -e "s|](${1}\.\./CONTRIBUTING\.md|](${1}contributing.md|g" \
    -e "s|](${1}\.\./CHANGELOG\.md|](${1}changelog.md|g"
}

for page in docs/*.md; do
  rewrite '' <"$page" >"$source/${page#docs/}"
done
for page in docs/*/*.md; do
  if [ -e "$page" ]; then
    rewrite '../' <"$page" >"$source/${page#docs/}"
  fi
done
for page in ARCHITECTURE CONTRIBUTING CHANGELOG; do
  name=$(echo "$page" | tr '[:upper:]' '[:lower:]')
  # Seen from docs/, then as any page there.
  sed -e 's|](docs/|](|g' -e 's|](\([A-Z][A-Z]*\.md\)|](../\1|g' "$page.md" | rewrite '' >"$source/$name.md"
done

"$mdbook" build "$source" --dest-dir "$target/book"
echo "built $target/book/index.html"
