#!/bin/sh
# The parts of `make test`: scripts/test.sh build | cases | checks
#
# build   checks the formatting and compiles the tests
# cases   runs the tests, with cargo-nextest where it is installed
# checks  runs the tests with the real agent programs, clippy, the doc tests and the build of the book
#
# `make test` runs the last two at the same time, because both wait more than they compute. The
# checks print only when they are through, so that the output of the two is not mixed.
set -eu
cd "$(dirname "$0")/.."
# cargo would otherwise take its number of jobs from make.
unset MAKEFLAGS MFLAGS MAKELEVEL

has() {
  cargo "$1" --version >/dev/null 2>&1
}

# The tests write and sync thousands of small files. In memory that takes two thirds of the time, if
# there is a file system in memory that has room and runs programs. Paths of sockets must stay short.
use_memory() {
  if [ -n "${TMPDIR:-}" ] || [ "$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }')" -lt 2000000 ] 2>/dev/null; then
    return
  fi
  folder=$(mktemp -d /dev/shm/gtXXXXXX 2>/dev/null) || return 0
  trap 'rm -rf "$folder"' EXIT
  trap 'exit 130' INT TERM HUP
  printf '#!/bin/sh\n' >"$folder/program"
  chmod +x "$folder/program"
  if "$folder/program" 2>/dev/null; then
    export TMPDIR="$folder"
  fi
}

build() {
  if has fmt; then
    echo "cargo fmt --all --check"
    cargo fmt --all --check
  else
    echo "skipped: cargo fmt (rustup component add rustfmt)"
  fi
  if has nextest; then
    cargo nextest run --workspace --no-run
  else
    cargo test --workspace --lib --bins --tests --no-run
  fi
}

cases() {
  use_memory
  GT_TEST_SKIPPED=$(mktemp)
  export GT_TEST_SKIPPED
  code=0
  if has nextest; then
    # Most tests wait for tmux.
    threads=${NEXTEST_TEST_THREADS:-$(($(getconf _NPROCESSORS_ONLN || echo 1) * 3))}
    profile=default
    [ -z "${CI:-}" ] || profile=ci
    echo "cargo nextest run --workspace --profile $profile --no-fail-fast --test-threads $threads"
    cargo nextest run --workspace --profile "$profile" --no-fail-fast --test-threads "$threads" || code=$?
  else
    echo "cargo test --workspace --lib --bins --tests --no-fail-fast"
    cargo test --workspace --lib --bins --tests --no-fail-fast || code=$?
  fi
  sort -u "$GT_TEST_SKIPPED"
  echo "$(sort -u "$GT_TEST_SKIPPED" | wc -l) tests were skipped"
  rm -f "$GT_TEST_SKIPPED"
  return $code
}

checks() {
  use_memory
  sh scripts/agents.sh
  if has clippy; then
    echo "cargo clippy -D warnings"
    cargo clippy --workspace --all-targets --all-features -- -D warnings
  else
    echo "skipped: cargo clippy (rustup component add clippy)"
  fi
  cargo test --workspace --doc
  sh scripts/docs.sh --if-possible
  python3 -B -m doctest scripts/screen_svg.py
}

case ${1:-} in
build) build ;;
cases) cases ;;
checks)
  log=$(mktemp)
  code=0
  sh "$0" checks-now >"$log" 2>&1 || code=$?
  cat "$log"
  rm -f "$log"
  exit $code
  ;;
checks-now) checks ;;
*)
  echo "usage: scripts/test.sh build | cases | checks" >&2
  exit 2
  ;;
esac
