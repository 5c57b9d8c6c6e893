#!/usr/bin/env bash
# The programs of c-tests, whole and in pieces: each is explored by `--search optimal`, then split, its pieces explored in an order drawn by lot, some of them
# cut off at once and gone on with, one twice, and summed up. Verdict, bugs, outcomes, whether it is complete and the traces have to be the same, each by its
# number; in the short form the executions, too. Said are the executions of traces that were run already, and, in the long form, which programs have traces
# in pieces only. Of a search that has not seen all that threads do to memory only the traces are compared.
#
#   scripts/pieces.sh [--short] [WORD]      programs whose name has WORD in it; --short: a dozen        (VSRUN=PATH: that binary; SEED=N; FROM=NAME: from that program on)
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
short=0 word=
while [ $# -gt 0 ]; do
    case $1 in
    --short) short=1 ;;
    -*) sed -n '2,7s/^# \?//p' "$0" >&2 && exit 2 ;;
    *) word=$1 ;;
    esac
    shift
done
if [ -z "${VSRUN:-}" ]; then
    (cd "$here" && cargo build --quiet --release)
    VSRUN=${CARGO_TARGET_DIR:-$here/target}/release/vsrun
fi
vsrun=$(realpath "$VSRUN")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
exec python3 -B "$here/scripts/pieces/compare.py" "$vsrun" "$here/c-tests" "$work" "${SEED:-1}" "$short" "$word"
