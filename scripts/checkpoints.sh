#!/usr/bin/env bash
# What it costs to get back to where executions begin: ./scripts/checkpoints.sh [--short]
# Whether all programs of c-tests show the same however they do: ./scripts/checkpoints.sh --same [--short] [WORD]
#
# The same random executions by `--checkpoint replay` (each starts the program), `fork` (each is a copy of the program before its main) and `rollback` (one
# process goes back), by how long the program computes before its first choice, how many pages it writes, how many threads it has, and how long
# executions are. Printed are executions a second of CPU time (which others that run beside do not take from), of two runs of different size (so without the
# start), medians, and the ratios.
#
# Then executions of `--search optimal`, which go on from marks within the one before, beside those that go back to the first choice only, by how long threads
# compute between their operations, and how many operations come before the first that depend on each other.
#
# Fails if rollback is slower than fork where there are no pages and four threads, if fewer than half of the executions went back, if marks do not pay where
# threads compute for a millisecond, or if a run of vsrun fails: that is no figure.
#
# VSRUN=PATH measures that binary instead of building one.
set -eu -o pipefail
shopt -s inherit_errexit
export LC_ALL=C
cd "$(dirname "$0")/.."

runs=5 executions=1200 starts=12 same=0 short=0 word=
while [ $# -gt 0 ]; do
    case $1 in
        --short) runs=3 executions=300 starts=3 short=1 ;;
        --same) same=1 ;;
        -*) echo "usage: scripts/checkpoints.sh [--same] [--short] [WORD]" >&2; exit 2 ;;
        *) word=$1 ;;
    esac
    shift
done

. scripts/vsrun.sh
if [ $same = 1 ]; then
    mkdir "$dir/same"
    python3 -B scripts/checkpoints/same.py "$vsrun" "$PWD/c-tests" "$dir/same" "$word" "$short"
    exit
fi
"${CC:-gcc}" -O2 -o "$dir/work" scripts/checkpoints/work.c -lpthread
"${CC:-gcc}" -O2 -o "$dir/between" scripts/checkpoints/between.c -lpthread
cd "$dir"

field() { sed -n "s/.*\"$1\":\\([0-9.]*\\).*/\\1/p"; }
median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# EXECUTIONS COMMAND..: its seconds of CPU time, and those of what it started. What it printed stands in `$dir/json`. Fails if it does: these programs have no
# bugs, so a run ends with 0 (explored completely) or 3 (so many executions), and says how many there were, without those before a search started over.
cpu() {
    local TIMEFORMAT='%3U %3S' n=$1 status=0 ran
    shift
    { time "$@" </dev/null >"$dir/json" 2>"$dir/errors" || status=$?; } 2>"$dir/time"
    ran=$(field executions <"$dir/json")
    if ! [[ -n $ran && ($status = 0 || $status = 3 && $((2 * ran)) -gt $n && $ran -le $n) ]]; then
        echo "exit status $status after ${ran:-no} executions of $n: $*" >&2
        tail -5 "$dir/errors" >&2
        return 1
    fi
    awk '{ print $1 + $2 }' "$dir/time"
}

# MODE EXECUTIONS ARGUMENTS..: seconds and how many went back.
run() {
    local mode=$1 n=$2 seconds
    shift 2
    seconds=$(cpu "$n" "$vsrun" --race off -j 1 --search random --seed 1 --max-executions "$n" --checkpoint "$mode" --format json --output /dev/null ./work "$@")
    echo "$seconds $(field rolled_back <"$dir/json")"
}

# MODE ARGUMENTS..: executions a second.
rate() {
    local mode=$1 many few seconds_many seconds_few back line
    # Fewer of those that compute for long, each time.
    many=$((executions * 2 / (2 + $2) + 45))
    [ "$mode" = rollback ] && many=$((executions * 3))
    [ "$mode" = replay ] && many=$starts
    few=$((many / 3))
    shift
    for _ in $(seq "$runs"); do
        line=$(run "$mode" "$few" "$@")
        read -r seconds_few _ <<<"$line"
        line=$(run "$mode" "$many" "$@")
        read -r seconds_many back <<<"$line"
        if [ "$mode" = rollback ] && [ "$back" -lt $((many / 2)) ]; then
            echo "only $back of $many executions went back: work $*" >&2
            touch "$dir/failed"
        fi
        awk "BEGIN { d = $seconds_many - $seconds_few; print ($many - $few) / (d > 0.001 ? d : 0.001) }"
    done | median
}

printf '%-44s %10s %10s %10s %16s %16s\n' 'ms before, pages, threads, rounds' replay fork rollback 'rollback / fork' 'rollback / replay'
row() {
    local replay fork rollback
    replay=$(rate replay "$@")
    fork=$(rate fork "$@")
    rollback=$(rate rollback "$@")
    awk -v what="$*" -v r="$replay" -v f="$fork" -v b="$rollback" \
        'BEGIN { printf "%-44s %10.0f %10.0f %10.0f %16.2f %16.1f\n", what, r, f, b, b / f, b / r }'
    if [ "$*" = "0 0 4 1" ] && awk "BEGIN { exit !($rollback < $fork) }"; then
        echo "rollback is slower than fork" >&2
        touch "$dir/failed"
    fi
}
row 0 0 4 1
row 0 16 4 1
row 10 0 4 1
if [ $short = 0 ]; then
    row 0 100 4 1
    row 1 0 4 1
    row 200 0 4 1
    row 0 0 2 1
    row 0 0 16 1
    row 0 0 4 10
    row 0 0 4 100
    row 0 0 4 1000
fi

# MODE EXECUTIONS MARKS ARGUMENTS..: seconds.
search() {
    local mode=$1 n=$2 marks=$3
    shift 3
    cpu "$n" "$vsrun" --race off -j 1 --search optimal --keep-going --max-executions "$n" --checkpoint "$mode" --marks "$marks" --format json \
        --output /dev/null ./between "$@"
}

# MODE MARKS ARGUMENTS..: milliseconds for an execution.
each() {
    local mode=$1 marks=$2 many few seconds_many seconds_few
    shift 2
    many=240
    [ "$mode" = replay ] && many=$((starts + 6))
    few=$((many / 3))
    for _ in $(seq "$runs"); do
        seconds_many=$(search "$mode" "$many" "$marks" "$@")
        seconds_few=$(search "$mode" "$few" "$marks" "$@")
        awk "BEGIN { d = $seconds_many - $seconds_few; print 1000 * (d > 0.0001 ? d : 0.0001) / ($many - $few) }"
    done | median
}

printf '\n%-44s %10s %10s %12s %10s %16s\n' 'ms before, us between, threads, rounds, reads' replay fork 'first choice' marks 'replay / marks'
between() {
    local replay fork first marks
    replay=$(each replay 0 "$@")
    fork=$(each fork 0 "$@")
    # No mark is made so late.
    first=$(each rollback 1000000000000 "$@")
    marks=$(each rollback 0 "$@")
    awk -v what="$*" -v r="$replay" -v f="$fork" -v b="$first" -v m="$marks" \
        'BEGIN { printf "%-44s %8.2fms %8.2fms %10.2fms %8.2fms %16.1f\n", what, r, f, b, m, r / m }'
    if [ "$2" = 1000 ] && awk "BEGIN { exit !($marks > $first) }"; then
        echo "marks are slower than the first choice" >&2
        touch "$dir/failed"
    fi
}
between 0 1000 2 5 0
if [ $short = 0 ]; then
    between 0 0 6 1 1
    between 0 100 2 5 0
    between 200 1000 2 5 0
    between 0 0 6 1 30
    between 0 0 6 1 330
fi
[ ! -e "$dir/failed" ]
