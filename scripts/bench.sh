#!/usr/bin/env bash
# What vsrun costs, measured against the same programs run natively: ./scripts/bench.sh [--short]
#
#   (a) executions a second, against a loop of fork, four threads created and joined, exit, wait
#   (b) a visible operation that stays on its thread, one on an object that no other thread uses, and one that passes
#       the turn within a process
#   (c) the turn passed from one process to another
#   (d) a whole search with two workers against one
#   (e) system calls that are trapped, and those that are not; a byte through pipes to another process and back
#   (f) executions with memory watched, against those without
#   (g) whole searches, of which executions go back to where they begin, against the loop of (a)
#
# (a) alternates native and vsrun, both on one CPU, by wall-clock time. (b) and (c) take CPU time (user and system, of
# vsrun and all its children) from outside, since the clock inside is virtual: two sizes, difference quotient. Medians
# are printed, with the smallest and the largest value. Figures are compared with targets but never fail the script.
#
# VSRUN=PATH measures that binary instead of building one.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."

rounds=9 executions=4000 size=2000000
case "${1:-}" in
    --short) rounds=3 executions=400 size=200000 ;;
    '') ;;
    *) echo "usage: scripts/bench.sh [--short]" >&2; exit 2 ;;
esac

. scripts/vsrun.sh
for name in philosophers lockcount operation; do
    "${CC:-gcc}" -O2 -o "$dir/$name" "scripts/bench/$name.c" -lpthread
done
for name in philosophers8 lockcount7; do
    "${CC:-gcc}" -O2 "-DTHREADS=${name: -1}" -o "$dir/$name" "scripts/bench/${name%?}.c" -lpthread
done
"${CC:-gcc}" -O2 -o "$dir/whole" c-tests/lockcount.c -lpthread
# The CPU of the native programs: vsrun takes one of those that are allowed, by its process id.
cpu=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')
cd "$dir"

median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)], v[1], v[NR] }'; }

# The first number of that name: of the whole run, not of a part of it.
field() { grep -o "\"$1\":[0-9.]*" | sed -n '1s/.*://p'; }

# Pairs of measurements in turn: TITLE TARGET RATE-OF-ONE RATE-OF-THE-OTHER, each of these a function with its arguments in one word. Prints medians, the
# ratio of the other to the one, and whether that is the target.
pairs() {
    local title=$1 target=$2 one other ratio low high
    : >one; : >other; : >ratios
    for _ in $(seq "$rounds"); do
        one=$($3)
        other=$($4)
        echo "$one" >>one
        echo "$other" >>other
        awk "BEGIN { print $other / $one }" >>ratios
    done
    read -r ratio low high < <(median <ratios)
    read -r one _ < <(median <one)
    read -r other _ < <(median <other)
    printf '    %-38s %9.0f %10.0f  %6.2f   (%.2f-%.2f)  >= %s  %s\n' "$title" "$one" "$other" "$ratio" "$low" "$high" "$target" \
        "$(awk "BEGIN { print ($ratio >= $target ? \"reached\" : \"missed\") }")"
}

# --------------------------------------------------------------------------------------------------------------- (a)

# Executions a second of vsrun: PROGRAM SEARCH. A search that is over soon is begun again.
rate_vsrun() {
    local done=0 seconds=0 json
    while [ "$done" -lt "$executions" ]; do
        json=$("$vsrun" --race off -j 1 --search "$2" --keep-going --max-executions "$((executions - done))" --format json \
            --output /dev/null "./$1" </dev/null) || [ $? -le 3 ]
        done=$((done + $(field executions <<<"$json")))
        seconds=$(awk "BEGIN { print $seconds + $(field seconds <<<"$json") }")
    done
    awk "BEGIN { print $done / $seconds }"
}

rate_native() { awk "BEGIN { print $executions / $(taskset -c "$cpu" "./$1" "$executions") }"; }

echo "load $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) CPUs, $rounds rounds of $executions executions"
echo
echo "(a) executions a second                    native      vsrun   ratio  (least-most)  target"
for program in philosophers lockcount; do
    for search in naive random; do
        pairs "4 threads, $program, $search" 0.8 "rate_native $program" "rate_vsrun $program $search"
    done
done

# ----------------------------------------------------------------------------------------------------------- (b), (c)

# CPU seconds of a command.
cpu_seconds() {
    local TIMEFORMAT='%U %S'
    { time "$@" >/dev/null 2>&1 </dev/null || [ $? -eq 3 ]; } 2>&1 | awk '{ print $1 + $2 }'
}

# ns per unit: COMMAND... KIND, with OPERATIONS in a unit and the two sizes.
quotient() {
    local per=$1 small=$2 large=$3 a b
    shift 3
    a=$(cpu_seconds "$@" "$small")
    b=$(cpu_seconds "$@" "$large")
    awk "BEGIN { print ($b - $a) * 1e9 / (($large - $small) * $per) }"
}

# One line: TITLE KIND OPERATIONS-PER-UNIT TARGET.
line() {
    local title=$1 kind=$2 per=$3 target=$4 native ours low high limit result
    : >native; : >ours
    for _ in $(seq "$rounds"); do
        quotient "$per" "$((size / 10))" "$size" taskset -c "$cpu" ./operation "$kind" >>native
        quotient "$per" "$((size / 10))" "$size" "$vsrun" --race off --once --output /dev/null ./operation "$kind" >>ours
    done
    read -r native _ < <(median <native)
    read -r ours low high < <(median <ours)
    if [ -n "$target" ]; then
        # "+2000": that much more than natively.
        limit=$target
        [ "${target#+}" = "$target" ] || limit=$(awk "BEGIN { print $native + ${target#+} }")
        result="< $target  $(awk "BEGIN { print ($ours < $limit ? \"reached\" : \"missed\") }")"
    else
        result=
    fi
    printf '    %-46s %8.0f %8.0f  (%.0f-%.0f)  %s\n' "$title" "$native" "$ours" "$low" "$high" "$result"
}

echo
echo "(b) ns of CPU time                               native    vsrun  (least-most)  target"
line 'operation that stays on its thread' stay 2 100
line 'operation on an object of its own' own 2 60
line 'operation that passes the turn to a thread' yield 1 150
line 'hand-off by semaphores (a post and a wait)' switch 1 ''
echo
echo "(c) ns of CPU time                               native    vsrun  (least-most)"
line 'hand-off between processes (a post and a wait)' process 1 ''

# --------------------------------------------------------------------------------------------------------------- (d)

# Executions a second of a whole search: SEARCH WORKERS.
rate_workers() {
    local json
    json=$("$vsrun" --race off -j "$2" --search "$1" --keep-going --format json --output /dev/null ./whole "$threads" </dev/null)
    awk "BEGIN { print $(field executions <<<"$json") / $(field seconds <<<"$json") }"
}

cpus=$(nproc)
echo
echo "(d) executions a second, workers                  -j 1       -j 2   ratio  (least-most)  target"
if [ "$cpus" -ge 2 ]; then
    for of in 'naive 5' "optimal $((rounds > 3 ? 7 : 5))"; do
        read -r search threads <<<"$of"
        pairs "$threads threads, lockcount, $search" 1.8 "rate_workers $search 1" "rate_workers $search 2"
    done
else
    echo '    needs two CPUs'
fi

# --------------------------------------------------------------------------------------------------------------- (e)

echo
echo "(e) ns of CPU time                               native    vsrun  (least-most)  target"
line 'clock_gettime' clock 1 100
size=$((size / 10))
line 'a system call by an instruction of its own' trap 1 3000
line '4096 bytes read from a file' read 1 +2000
line '4096 bytes written to a file' write 1 +2000
size=$((size / 2))
line 'a byte through pipes, there and back, one CPU' pipe 1 ''

# The same by wall-clock time, natively with each process on a CPU of its own.
seconds() {
    local TIMEFORMAT='%R'
    { time "$@" >/dev/null 2>&1 </dev/null || [ $? -eq 3 ]; } 2>&1
}
: >native; : >ours
for _ in $(seq "$rounds"); do
    seconds ./operation apart "$size" >>native
    seconds "$vsrun" --race off --once --output /dev/null ./operation pipe "$size" >>ours
done
read -r native _ < <(median <native)
read -r ours low high < <(median <ours)
printf '    %-46s %8.3f %8.3f  (%.3f-%.3f)  <= native  %s\n' "the same, $size times, two CPUs, seconds" "$native" "$ours" \
    "$low" "$high" "$(awk "BEGIN { print ($ours <= $native ? \"reached\" : \"missed\") }")"

# --------------------------------------------------------------------------------------------------------------- (f)

# Executions a second of a whole search on one CPU: RACE PROGRAM..
rate_watched() {
    local race=$1 json
    shift
    json=$("$vsrun" --race "$race" -j 1 --search optimal --keep-going --max-executions "$executions" --format json --output /dev/null \
        "$@" </dev/null) || [ $? -le 3 ]
    awk "BEGIN { print $(field executions <<<"$json") / $(field seconds <<<"$json") }"
}

echo
echo "(f) executions a second, memory                  off    watched   ratio  (least-most)  target"
many=$((rounds > 3 ? 7 : 5))
pairs "$many threads lock, count, unlock" 0.8 "rate_watched off ./whole $many" "rate_watched explore ./whole $many"
pairs '4 philosophers (threads)' 0.8 'rate_watched off ./philosophers' 'rate_watched explore ./philosophers'

# --------------------------------------------------------------------------------------------------------------- (g)

# Executions a second of a whole search, so far as they go back: PROGRAM.
rate_back() { (executions=$((2 * executions)) && rate_watched off "./$1"); }

echo
echo "(g) executions a second, going back           native      vsrun   ratio  (least-most)  target"
pairs '7 threads lock, count, unlock' 5 'rate_native lockcount7' 'rate_back lockcount7'
pairs '8 philosophers (threads)' 5 'rate_native philosophers8' 'rate_back philosophers8'
