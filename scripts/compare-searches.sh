#!/usr/bin/env bash
# What each search algorithm costs on the c-tests, beside the number of Mazurkiewicz traces that brute force counts:
#   ./scripts/compare-searches.sh [--short] [--markdown]
#
# Executions and transitions of each; "-" where it took more than LIMIT seconds. Executions that a search cut off as
# redundant are counted and shown after a plus sign. --short: a few small programs. VSRUN=PATH uses that binary instead of
# building one.
set -eu
cd "$(dirname "$0")/.."

LIMIT=${LIMIT:-20}
short= markdown=
for argument; do
    case $argument in
    --short) short=1 ;;
    --markdown) markdown=1 ;;
    *) sed -n '2,7s/^# \?//p' "$0" >&2 && exit 2 ;;
    esac
done

if [ -z "${VSRUN:-}" ]; then
    cargo build --quiet --release
    VSRUN=${CARGO_TARGET_DIR:-target}/release/vsrun
fi
vsrun=$(realpath "$VSRUN")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

searches='naive sss if-sss composed transactions dpor optimal'

# program and arguments
programs='philosophers_sysv 2
philosophers_sysv 3
philosophers_threads 3
philosophers_ordered 3
lockcount 3
lockcount 4
producers_consumers 1 1
producers_consumers 2 1
producers_consumers 1 2
mutex_order buggy
cond_two_waiters buggy
barrier buggy'
if [ -z "$short" ]; then
    programs="$programs
philosophers_sysv 4
philosophers_sysv 5
lockcount 5
lockcount 6
producers_consumers 2 2
cond_lost buggy
cond_timedwait buggy
mutex_trylock buggy
mutex_robust buggy
peers_cond_handover buggy
peers_crash_order buggy
peers_rwlock_writers buggy
peers_pc_one_cond buggy
once buggy
semaphore_order buggy"
fi

# FILE: executions (+ cut off) / transitions, or the traces
field() {
    python3 - "$1" "$2" <<'PY'
import json, sys
try:
    run = json.load(open(sys.argv[1]))
except (OSError, ValueError):
    print('-')
    sys.exit()
if not run['complete']:
    print('-')
elif sys.argv[2] == 'traces':
    print(run['traces'])
else:
    cut = run['sleep_blocked']
    done = run['executions'] - cut
    print(f"{done}{f'+{cut}' if cut else ''} / {run['transitions']}")
PY
}

row() { if [ -n "$markdown" ]; then printf '| %s ' "$@" && echo '|'; else
    printf '%-28s %8s' "$1" "$2" && shift 2 && printf ' %16s' "$@" && echo; fi; }

# shellcheck disable=SC2086
row program traces $searches
if [ -n "$markdown" ]; then
    printf '|---'
    for _ in traces $searches; do printf '|---'; done
    echo '|'
fi
wrong=0
while read -r name arguments; do
    [ -f "c-tests/$name.c" ] || continue
    gcc -O1 -o "$work/$name" "c-tests/$name.c" -lpthread
    cells=
    for search in traces $searches; do
        # shellcheck disable=SC2086
        "$vsrun" --race off -j 1 --search $search --keep-going --format json --time "$LIMIT" --scenario-dir "$work" \
            --output /dev/null "$work/$name" $arguments </dev/null >"$work/out" 2>/dev/null || true
        what=executions
        [ $search = traces ] && what=traces
        cell=$(field "$work/out" $what)
        cells="$cells$cell;"
        [ $search = traces ] && traces=$cell
        if [ $search = optimal ] && [ "$traces" != - ] && [ "${cell%% /*}" != "$traces" ]; then
            echo "optimal: ${cell%% /*} executions for $traces traces of $name $arguments" >&2
            wrong=1
        fi
    done
    IFS=';' read -r -a columns <<<"$cells"
    row "$name $arguments" "${columns[@]}"
done <<<"$programs"
exit $wrong
