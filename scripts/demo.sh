#!/usr/bin/env bash
# Finds the divergence of c-tests/robot_controller.c and replays it: ./scripts/demo.sh [--keep]
#
# Needs Rust and gcc. Exit status 0 if the bug was found and seen again. What is made lies in a temporary directory,
# which --keep leaves there.
set -eu
cd "$(dirname "$0")/.."

keep=no
case "${1:-}" in
    --keep) keep=yes ;;
    '') ;;
    *) echo "usage: scripts/demo.sh [--keep]" >&2; exit 2 ;;
esac

dir=$(mktemp -d)
trap '[ $keep = yes ] || rm -rf "$dir"' EXIT

for tool in cargo gcc; do
    command -v $tool >/dev/null || { echo "demo: $tool is needed and not installed" >&2; exit 2; }
done
echo "demo: building vsrun and robot_controller"
cargo build --release --quiet
vsrun=$(realpath "${CARGO_TARGET_DIR:-target}/release/vsrun")
gcc -g -O1 -o "$dir/robot_controller" c-tests/robot_controller.c

echo "demo: vsrun --divergence-timeout 1 ./robot_controller"
echo
begin=$(date +%s%N)
"$vsrun" --divergence-timeout 1 --scenario-dir "$dir" "$dir/robot_controller" </dev/null | tee "$dir/report"
found=$(awk "BEGIN { printf \"%.1f\", ($(date +%s%N) - $begin) / 1e9 }")
if ! grep -q '^DIVERGENCE: ' "$dir/report"; then
    echo "demo: FAILED: no divergence was found" >&2
    exit 1
fi
scenario=$(echo "$dir"/robot_controller-divergence-*.vsrun.json)

echo
echo "demo: found in $found s; the scenario is $scenario"
echo "demo: vsrun replay $scenario"
echo
code=0
"$vsrun" replay "$scenario" </dev/null >"$dir/replay" || code=$?
sed -n '1,2p' "$dir/replay"
# How often the loop has gone round by then differs; the transitions that lead to it must not.
steps() { sed -n '/^How it came about/,/^$/p' "$1"; }
if [ $code -ne 1 ] || ! grep -q '^DIVERGENCE: ' "$dir/replay" || [ "$(steps "$dir/report")" != "$(steps "$dir/replay")" ]
then
    echo "demo: FAILED: the replay ended with status $code and did not show the same" >&2
    exit 1
fi
echo
echo "demo: the replay went through the same $(steps "$dir/replay" | grep -c '[0-9]  [A-Za-z]') transitions into the same loop"
if [ $keep = yes ]; then
    echo "demo: kept: $dir"
else
    echo "demo: the scenario is removed now; scripts/demo.sh --keep leaves it for the gdb line above"
fi
