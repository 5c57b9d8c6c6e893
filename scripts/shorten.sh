#!/usr/bin/env bash
# How far the schedules of the c-tests' bugs are shortened:
#   ./scripts/shorten.sh [--short] [--quick] [--random] [WORD]
#
# Each bug with and without (--shrink 0): switches, steps and tosses that are not 0, and executions for that; then each shortened scenario
# is replayed 20 times, and explained: another choice leads away each time (decided), now and then (some), none does and every random
# execution has the bug (always), or none was found. Fails if one has grown or does not replay or cannot be explained, if counts or bugs
# differ, or if the median of the switches is more than half of what it was. --short: a few programs, 3 replays, one bug of each case
# explained. --quick: all programs, 3 replays, each bug explained with few samples. --random: as random executions find them, not as the
# cases' options say. SIGTERM ends it, with what is known by then.
set -eu
cd "$(dirname "$0")/.."

short= quick= random= word=
for argument; do
    case $argument in
    --short) short=1 ;;
    --quick) quick=1 ;;
    --random) random=1 ;;
    -*) sed -n '2,11s/^# \?//p' "$0" >&2 && exit 2 ;;
    *) word=$argument ;;
    esac
done

vsrun=${VSRUN:-}
if [ -z "$vsrun" ]; then
    cargo build --quiet --release
    vsrun=${CARGO_TARGET_DIR:-$PWD/target}/release/vsrun
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
SHORT=$short QUICK=$quick RANDOM_SEARCH=$random WORD=$word VSRUN=$vsrun WORK=$work python3 scripts/shorten/measure.py
