#!/usr/bin/env bash
# Whether states that are met once show what all schedules show: ./scripts/states.sh [--short] [WORD]
#
# Each program of c-tests (those with WORD in their names; `--short`: ten of them) is explored by `--search naive` and by `--search stateful`, without memory being watched.
# Of those that naive comes to the end of in 3,000 executions (MOST=N: in N) the bugs have to be the same, but for livelocks, which only a search of states knows,
# and stateful may claim no more to be complete.
#
# VSRUN=PATH runs that binary instead of building one.
set -eu -o pipefail
shopt -s inherit_errexit
export LC_ALL=C
cd "$(dirname "$0")/.."

short=0 word=
while [ $# -gt 0 ]; do
    case $1 in
        --short) short=1 ;;
        -*) echo "usage: scripts/states.sh [--short] [WORD]" >&2; exit 2 ;;
        *) word=$1 ;;
    esac
    shift
done

. scripts/vsrun.sh
python3 -B scripts/states/same.py "$vsrun" "$PWD/c-tests" "$dir" "$word" "$short"
