#!/bin/sh
# Installs the pinned agent programs for `make test-agents` and runs the suite against them, in a
# network name space with only loopback where the machine allows it.
set -eu
cd "$(dirname "$0")/.."
dir=${GT_AGENTS_DIR:-target/agents}
if ! command -v npm >/dev/null 2>&1; then
  echo "npm is not installed: the real agent programs are skipped" >&2
  [ -z "${CI:-}" ] || exit 1
  exit 0
fi
# The platform packages carry the binaries; nothing is downloaded by install scripts.
npm install --prefix "$dir" --no-audit --no-fund --ignore-scripts --loglevel=error \
  @anthropic-ai/claude-code-linux-x64@2.1.325 \
  codex-bin@npm:@openai/codex@0.166.0-linux-x64
GT_AGENTS_DIR=$(cd "$dir" && pwd)
export GT_AGENTS_DIR
cargo test --package gt --test agents --no-run
run='cargo test --package gt --test agents --offline -- --ignored --nocapture --test-threads=1'
if command -v ip >/dev/null 2>&1 && unshare --map-root-user --net true 2>/dev/null; then
  exec unshare --map-root-user --net sh -c "ip link set lo up && exec $run"
fi
echo "no network name space is to be had here: the programs run with the machine's own network" >&2
exec $run
