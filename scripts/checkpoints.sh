#!/usr/bin/env bash
# What it costs to get back to where executions begin: ./scripts/checkpoints.sh [--short]
#
# The same random executions by `--checkpoint replay` (each starts the program), `fork` (each is a copy of the program before its main) and `rollback` (one
# process goes back), by how long the program computes before its first choice, how many pages it writes, how many threads it has, and how long
# executions are. Printed are executions a second on one CPU, of two runs of different size (so without the start), medians, and the ratios.
#
# Fails if rollback is slower than fork where there are no pages and four threads, or if fewer than half of the executions went back.
#
# VSRUN=PATH measures that binary instead of building one.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."

runs=5 executions=1200 starts=12
case "${1:-}" in
    --short) runs=1 executions=300 starts=3 ;;
    '') ;;
    *) echo "usage: scripts/checkpoints.sh [--short]" >&2; exit 2 ;;
esac

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
if [ -z "${VSRUN:-}" ]; then
    cargo build --release --quiet
    VSRUN=${CARGO_TARGET_DIR:-target}/release/vsrun
fi
vsrun=$(realpath "$VSRUN")
"${CC:-gcc}" -O2 -o "$dir/work" scripts/checkpoints/work.c -lpthread
cd "$dir"

field() { sed -n "s/.*\"$1\":\\([0-9.]*\\).*/\\1/p"; }
median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# MODE EXECUTIONS ARGUMENTS..: seconds and how many went back.
run() {
    local mode=$1 n=$2 json
    shift 2
    json=$("$vsrun" --race off -j 1 --search random --seed 1 --max-executions "$n" --checkpoint "$mode" --format json --output /dev/null ./work "$@" \
        </dev/null) || [ $? -le 3 ]
    echo "$(field seconds <<<"$json") $(field rolled_back <<<"$json")"
}

# MODE ARGUMENTS..: executions a second.
rate() {
    local mode=$1 many few seconds_many seconds_few back
    # Fewer of those that compute for long.
    many=$((executions * 2 / (2 + $2) + 45))
    [ "$mode" = replay ] && many=$starts
    few=$((many / 3))
    shift
    for _ in $(seq "$runs"); do
        read -r seconds_few _ < <(run "$mode" "$few" "$@")
        read -r seconds_many back < <(run "$mode" "$many" "$@")
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
if [ "$runs" -gt 1 ]; then
    row 0 100 4 1
    row 1 0 4 1
    row 200 0 4 1
    row 0 0 2 1
    row 0 0 16 1
    row 0 0 4 10
    row 0 0 4 100
    row 0 0 4 1000
fi
[ ! -e "$dir/failed" ]
