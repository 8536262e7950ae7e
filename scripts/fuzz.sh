#!/bin/sh
# Runs the fuzz targets: scripts/fuzz.sh MINUTES
#
# Each target runs for MINUTES on one core. FUZZ_TARGETS selects targets by name. The script prints
# a table and fails if there is a finding or if a target does not run. Findings are stored in
# fuzz/findings/TARGET. Inputs with new coverage are kept in fuzz/corpus, outside of git.
set -eu
cd "$(dirname "$0")/.."
unset MAKEFLAGS MFLAGS MAKELEVEL
minutes=${1:-1}
case $minutes in
'' | *[!0-9]*)
  echo "usage: scripts/fuzz.sh MINUTES" >&2
  exit 2
  ;;
esac

if ! cargo fuzz --version >/dev/null 2>&1; then
  echo "cargo install cargo-fuzz --locked"
  cargo install cargo-fuzz --locked
fi
# The sanitizers need options that a stable compiler has, but does not promise.
export RUSTC_BOOTSTRAP=1

all=$(ls fuzz/fuzz_targets | sed -n 's/\.rs$//p')
targets=${FUZZ_TARGETS:-$all}
log=$(mktemp)
table=$(mktemp)
trap 'rm -f "$log" "$table"' EXIT
code=0
cargo fuzz build
for target in $targets; do
  corpus=fuzz/corpus/$target
  findings=fuzz/findings/$target
  mkdir -p "$corpus" "$findings"
  before=$(ls "$findings" | wc -l)
  echo "cargo fuzz run $target ($minutes min)"
  status=0
  cargo fuzz run "$target" "$corpus" "fuzz/seeds/$target" "$findings" -- \
    -max_total_time=$((minutes * 60)) -artifact_prefix="$findings/" -timeout=10 -rss_limit_mb=1024 \
    -print_final_stats=1 >"$log" 2>&1 || status=$?
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  new=$(sed -n 's/^stat::new_units_added: *//p' "$log")
  found=$(($(ls "$findings" | wc -l) - before))
  if [ "$status" -ne 0 ]; then
    tail -n 40 "$log"
    code=1
  fi
  printf '%-22s %12s %12s %9s\n' "$target" "${executions:--}" "${new:--}" "$found" >>"$table"
  rmdir "$findings" 2>/dev/null || true
done
printf '%-22s %12s %12s %9s\n' TARGET EXECUTIONS "NEW INPUTS" FINDINGS
cat "$table"
exit $code
