#!/usr/bin/env bash
# What watched memory costs single-thread code while a second thread is alive: ./scripts/cost.sh [--short]
#
# The kernels of scripts/cost/work.c, with a visible operation (a lock taken and released) every 1,000 and every 1,000,000 accesses to memory:
# CPU time (user and system, of the command and all its children) of a round, as the difference between a run of some rounds and one of a
# single round, so that what is only done once is left out. Ratios are to the same program run natively, beside
#   vsrun      --once --race explore: recording, and the analysis of what was recorded
#   tsan       compiled with -fsanitize=thread
#   helgrind   valgrind --tool=helgrind, if there is one
# `whole`: all of the CPU time of vsrun's longer run, its start included, to that of helgrind's, which is one round of the same program where vsrun
# has several. Medians of several measurements. Figures are compared with targets but fail nothing; a sum that differs from the native one
# does, and so do accesses that are not recorded.
#
# VSRUN=PATH measures that binary instead of building one.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."

times=5 kernels='sort hash bytes matrix squeeze calls local' periods='1000 1000000' helgrind=yes
case "${1:-}" in
    --short) times=1 kernels='sort bytes calls' periods='1000 1000000' helgrind= ;;
    '') ;;
    *) echo "usage: scripts/cost.sh [--short]" >&2; exit 2 ;;
esac
command -v valgrind >/dev/null || helgrind=

. scripts/vsrun.sh
"${CC:-gcc}" -O2 -g -o "$dir/work" scripts/cost/work.c -lpthread
tsan=yes
"${CC:-gcc}" -O2 -g -fsanitize=thread -o "$dir/tsan" scripts/cost/work.c -lpthread 2>/dev/null || tsan=
cd "$dir"

median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# CPU seconds of a command, whose output goes to `out` and messages to `said`.
cpu_seconds() {
    local TIMEFORMAT='%U %S'
    { time "$@" >out 2>said </dev/null || [ $? -eq 3 ]; } 2>&1 | awk '{ print $1 + $2 }'
}

# Compares what was printed for ROUNDS of the kernel with the native run.
same() {
    local text=$1 rounds=$2
    ./work "$kernel" "$rounds" "$every" >expected
    cmp -s "$text" expected && return
    echo "scripts/cost.sh: $kernel $rounds $every prints: $(head -c 200 "$text"), natively: $(cat expected)" >&2
    exit 1
}

# Seconds of one round: ROUNDS COMMAND...
round() {
    local rounds=$1 one more
    shift
    one=$(cpu_seconds "$@" "$kernel" 1 "$every")
    more=$(cpu_seconds "$@" "$kernel" "$((rounds + 1))" "$every")
    awk "BEGIN { d = ($more - $one) / $rounds; print (d > 0 ? d : 0) }"
}

watched() {
    local rounds=$1
    round "$rounds" "$vsrun" --once --race explore --output seen ./work
    same seen "$((rounds + 1))"
    if grep -q 'more was done to memory than' out said; then
        echo "scripts/cost.sh: $kernel $rounds $every: accesses that are not recorded" >&2
        exit 1
    fi
}

# Rounds natively, and watched with an operation every 1,000 accesses.
rounds_of() {
    case $1 in
        sort) echo 20 2 ;; hash) echo 30 3 ;; bytes) echo 100 2 ;; matrix) echo 100 4 ;;
        squeeze) echo 20 2 ;; calls) echo 100 400 ;; local) echo 200 30 ;;
    esac
}

echo "load $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) CPUs, medians of $times"
printf '%-9s %8s  %10s  %8s %8s %8s  %8s\n' kernel every 'native ms' vsrun tsan helgrind whole
: >all
for every in $periods; do
    for kernel in $kernels; do
        read -r long short < <(rounds_of "$kernel")
        # Accesses that are recorded already in a transition cost no room.
        [ "$every" = 1000 ] || short=$((short * 2))
        : >n; : >v; : >t; : >h; : >w
        for _ in $(seq "$times"); do
            round "$long" ./work >>n
            watched "$short" >>v
            [ -z "$tsan" ] || round "$short" ./tsan >>t
        done
        if [ -n "$helgrind" ]; then
            round 1 valgrind --tool=helgrind -q ./work >>h
            ours=$(cpu_seconds "$vsrun" --once --race explore --output seen ./work "$kernel" 1 "$every")
            theirs=$(cpu_seconds valgrind --tool=helgrind -q ./work "$kernel" 1 "$every")
            awk "BEGIN { print $ours / $theirs }" >>w
        fi
        # A column that was not measured is a dash.
        paste -d, <(median <n) <(median <v) <(median <t) <(median <h) <(median <w) | awk -v k="$kernel" -v e="$every" '
            function ratio(a) { return a == "" ? "-" : sprintf("%.2f", a / n) }
            { split($0, f, ","); n = f[1] > 0 ? f[1] : 1e-6 }
            { printf "%-9s %8d  %10.2f  %8s %8s %8s  %8s\n", k, e, n * 1e3, ratio(f[2]), ratio(f[3]), ratio(f[4]), f[5] == "" ? "-" : sprintf("%.2f", f[5]) }' |
            tee -a all
    done
done

# The targets: nowhere above tsan, half of it in the median, a fifth of helgrind with its start; 1.5 times native where no memory is shared.
awk '
    function middle(list, n,   i, j, x) {
        for (i = 2; i <= n; i++) { x = list[i]; for (j = i; j > 1 && list[j - 1] > x; j--) list[j] = list[j - 1]; list[j] = x }
        return list[int((n + 1) / 2)]
    }
    function say(text, value, most) { printf "%-58s %6.2f  <= %-5s %s\n", text, value, most, value <= most ? "reached" : "missed" }
    $1 == "calls" { if ($4 > alone) alone = $4; next }
    $1 == "local" { next }
    $5 != "-" { part[++n] = $4 / $5; if (part[n] > worst) worst = part[n] }
    $7 != "-" { whole[++m] = $7 }
    END {
        print ""
        if (n) { say("vsrun to tsan, worst", worst, 1); say("vsrun to tsan, median", middle(part, n), 0.5) }
        if (m) say("vsrun to helgrind, both with their start, median", middle(whole, m), 0.2)
        say("code that touches no shared memory, to native", alone, 1.5)
    }' all
