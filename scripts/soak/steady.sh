#!/usr/bin/env bash
# Does a long search stay as it was? ./scripts/soak/steady.sh [EXECUTIONS]
#
# EXECUTIONS (default 1,000,000) of a program whose threads lock, count and unlock, by `--search optimal` (ten threads, so that there are as many;
# states within executions are kept) and by `--search random` (four). Looked at all the time are vsrun and the processes below it: memory (VmRSS), descriptors,
# mappings, how many processes. Nothing of that may grow after the first 10,000 executions: memory by no more than 5 % or 1 MiB, and of the others the least of
# the last third is not more than the most of the first. When vsrun is over, no process and no directory of its own is left. With 100,000 executions or
# more, the last tenth may take at most a twentieth more CPU time than the first one. Exit status 1 if one of these fails.
#
# VSRUN=PATH uses that binary instead of building one.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/../.."

executions=${1:-1000000}
case $executions in
    *[!0-9]*) echo "usage: scripts/soak/steady.sh [EXECUTIONS]" >&2; exit 2 ;;
esac
if [ -z "${VSRUN:-}" ]; then
    cargo build --release --quiet
    VSRUN=${CARGO_TARGET_DIR:-target}/release/vsrun
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# What is left is told by the file that it executes.
cp "$VSRUN" "$dir/vsrun"
"${CC:-gcc}" -O1 -o "$dir/lockcount" c-tests/lockcount.c -lpthread
watch=$PWD/scripts/soak/steady.py
cd "$dir"
status=0
python3 -B "$watch" "$dir" "$executions" optimal 10 || status=1
python3 -B "$watch" "$dir" "$executions" random 4 || status=1
exit $status
