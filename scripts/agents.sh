#!/bin/sh
# Installs the pinned agent programs and runs the suite against them (with `bench` the measurements),
# in a network name space with only loopback where the machine allows it. GT_AGENTS_FULL=1 sends as many messages as the project
# promises; GT_AGENTS_THREADS is the number of tests at a time. Without npm there is nothing to install: that is an error where CI is set.
set -eu
cd "$(dirname "$0")/.."
dir=${GT_AGENTS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/gt-agents}

if ! command -v npm >/dev/null 2>&1; then
  if [ -z "${CI:-}" ]; then
    echo "skipped: the real agent programs (npm is not installed)" >&2
    exit 0
  fi
  sh scripts/need.sh npm
fi

case $(uname -s) in
Linux) platform=linux ;;
Darwin) platform=darwin ;;
*) echo "skipped: the real agent programs (there are none for this system)" >&2 && exit 0 ;;
esac
case $(uname -m) in
x86_64 | amd64) platform=$platform-x64 ;;
arm64 | aarch64) platform=$platform-arm64 ;;
esac

# The platform's packages carry the binaries; nothing is downloaded by install scripts.
packages="claude-bin@npm:@anthropic-ai/claude-code-$platform@2.1.325
codex-bin@npm:@openai/codex@0.166.0-$platform
opencode-bin@npm:opencode-$platform@1.18.33
@google/gemini-cli@0.61.0"
# Gemini CLI wants Node 20.
node=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/')
if [ "${node:-0}" -lt 20 ]; then
  packages="$packages
node-bin@npm:node-$platform@22.20.0"
fi
# What was installed for exactly this list is not looked for again.
if [ "$(cat "$dir/installed" 2>/dev/null || true)" != "$packages" ]; then
  echo "installing the agent programs into $dir" >&2
  mkdir -p "$dir"
  # The words below are split on purpose.
  # shellcheck disable=SC2086
  npm install --prefix "$dir" --no-audit --no-fund --ignore-scripts --loglevel=error $packages
  printf '%s\n' "$packages" >"$dir/installed"
fi
GT_AGENTS_DIR=$(cd "$dir" && pwd)
export GT_AGENTS_DIR

if [ "${1:-}" = bench ]; then
  cargo bench --package gt --bench talking --no-run
  run='cargo bench --package gt --bench talking --offline'
else
  cargo test --package gt --test agents --no-run
  # Every test has a home, a tmux server and a model server of its own, and mostly waits for its
  # program. opencode takes 1 GB, so that there are no more of them on a large machine.
  threads=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
  if [ "$threads" -lt 2 ]; then threads=2; fi
  if [ "$threads" -gt 4 ]; then threads=4; fi
  threads=${GT_AGENTS_THREADS:-$threads}
  run="cargo test --package gt --test agents --offline -- --ignored --nocapture --test-threads=$threads"
fi
# Runs the suite, with more arguments for it.
attempt() {
  if command -v ip >/dev/null 2>&1 && unshare --map-root-user --net true 2>/dev/null; then
    unshare --map-root-user --net sh -c "ip link set lo up && exec $run $*"
  else
    echo "no network name space is to be had here: the programs run with the machine's own network" >&2
    $run "$@"
  fi
}

if [ -z "${CI:-}" ] || [ "${1:-}" = bench ]; then
  attempt
  exit
fi
# As in the profile `ci` of nextest, a test that fails in CI runs once more.
log=$(mktemp)
{ attempt && echo 0 >"$log.code" || echo $? >"$log.code"; } 2>&1 | tee "$log"
code=$(cat "$log.code")
failed=$(awk '/^failures:$/ { listed = 1 } listed && /^    [a-z0-9_:]+$/ { print $1 }' "$log" | sort -u)
rm -f "$log" "$log.code"
if [ "$code" -ne 0 ] && [ -n "$failed" ]; then
  echo "flaky, running again:" $failed
  # The names below are split on purpose.
  # shellcheck disable=SC2086
  attempt --exact $failed
  exit
fi
exit "$code"
