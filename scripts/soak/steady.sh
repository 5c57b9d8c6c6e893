#!/usr/bin/env bash
# Does a long search stay as it was? ./scripts/soak/steady.sh [EXECUTIONS]
#
# One search of EXECUTIONS (default 1,000,000) of a program of four threads. Printed are memory, descriptors and executions for each
# second of CPU time, of the first tenth and of the last one. CPU time, since others use the machine too. Exit status 1 if one of them
# differs by more than 5 %. VSRUN=PATH uses that binary instead of building one.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/../.."

executions=${1:-1000000}
if [ -z "${VSRUN:-}" ]; then
    cargo build --release --quiet
    VSRUN=${CARGO_TARGET_DIR:-target}/release/vsrun
fi
vsrun=$(realpath "$VSRUN")
dir=$(mktemp -d)
pid=
. scripts/own.sh
trap '[ -z "$pid" ] || end_own "$pid" || true; rm -rf "$dir"' EXIT
"${CC:-gcc}" -O1 -o "$dir/lockcount" c-tests/lockcount.c -lpthread
cd "$dir"

# What is printed goes to a file, so that there is a line of progress each half minute; a sample is taken at each of them.
"$vsrun" -j 1 --search random --seed 1 --keep-going --max-executions "$executions" --progress always --output /dev/null \
    ./lockcount 4 >out 2>err </dev/null &
pid=$!
last=
while kill -0 $pid 2>/dev/null; do
    sleep 1
    done=$(grep -ao '[0-9]* executions, [0-9]*/s' err | tail -n 1 | cut -d' ' -f1)
    [ -n "$done" ] && [ "$done" != "$last" ] || continue
    last=$done
    cpu=$(awk '{ print ($14 + $15 + $16 + $17) / 100 }' "/proc/$pid/stat" 2>/dev/null) || break
    memory=$(awk '/^VmRSS/ { print $2 }' "/proc/$pid/status")
    open=$(find "/proc/$pid/fd" -mindepth 1 | wc -l)
    echo "$done $cpu $memory $open" | tee -a samples >&2
done
status=0
wait $pid || status=$?
pid=
tail -n 3 out
[ $status = 3 ] || { echo "steady: vsrun ended with status $status"; exit 1; }

# The tenths begin and end at samples.
awk -v n="$executions" '
    { done[NR] = $1; cpu[NR] = $2; memory[NR] = $3; open[NR] = $4 }
    END {
        for (i = 1; i <= NR; i++) if (done[i] - done[1] >= n / 10) { first = i; break }
        for (i = NR; i >= 1; i--) if (done[NR] - done[i] >= n / 10) { last = i; break }
        if (!first || !last || last < first) { print "steady: too few samples, " NR; exit 1 }
        a = (done[first] - done[1]) / (cpu[first] - cpu[1])
        b = (done[NR] - done[last]) / (cpu[NR] - cpu[last])
        printf "executions for a second of CPU time: %.0f in the first tenth, %.0f in the last one: %.2f\n", a, b, b / a
        printf "memory: %d KiB, %d KiB: %.2f; descriptors: %d, %d\n", memory[first], memory[NR], memory[NR] / memory[first], open[first], open[NR]
        exit b / a < 0.95 || memory[NR] / memory[first] > 1.05 || open[NR] > open[first]
    }' samples
