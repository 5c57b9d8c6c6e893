#!/usr/bin/env bash
# Real programs, unmodified, run natively and under vsrun, must print the same bytes and end with the same status:
# ./scripts/real-programs.sh [--short]
#
# Each is run under `vsrun --once` and under `--search random` with 50 executions (5 with --short), of which the last
# one's output is compared; vsrun itself notes whether the others printed something else. Exit status 1 if anything
# differs, or if a program turned out to use no threads. What is not installed is skipped, and said so.
#
# VSRUN=PATH uses that binary instead of building one.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."

executions=50
case "${1:-}" in
    --short) executions=5 ;;
    '') ;;
    *) echo "usage: scripts/real-programs.sh [--short]" >&2; exit 2 ;;
esac

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

if [ -z "${VSRUN:-}" ]; then
    cargo build --release --quiet
    VSRUN=${CARGO_TARGET_DIR:-target}/release/vsrun
fi
vsrun=$(realpath "$VSRUN")
here=$(pwd)/scripts/real
cd "$dir"

# Text that compresses, but not to nothing; enough lines for sort to use threads.
awk 'BEGIN { srand(7); for (i = 0; i < 300000; i++) printf "%d %d\n", 1e6 * rand(), i }' >lines
head -c 1500000 lines >text

compared=0 differences=0
row() { printf '%-18s %-12s %-14s %-9s %11s %9s\n' "$@"; }

# What went wrong, below the row.
wrong() {
    printf '    %s\n' "$@"
    differences=$((differences + 1))
}

# The field of the JSON object, a number or what stands between braces.
field() { sed -n "s/.*\"$1\":{\\{0,1\\}\\([^,}]*\\).*/\\1/p" json; }

now() { date +%s%N; }

seconds() { awk "BEGIN { printf \"%.2f\", ($(now) - $1) / 1e9 }"; }

# Runs vsrun with the options given (one word for the table first) on the command in `command`.
under_vsrun() {
    local mode=$1 begin code=0 status
    shift
    begin=$(now)
    timeout 300 "$vsrun" "$@" --format json --output ours "${command[@]}" </dev/null >json 2>errors || code=$?
    status=$(field program_status | tr -d '"' | tr : ' ')
    local same=differs
    cmp -s native ours && same=same
    row "" "$mode" "${status:-none}" "$same" "$(field transitions)" "$(seconds "$begin") s"
    [ "$code" -eq 3 ] || [ "$code" -eq 0 ] ||
        wrong "vsrun ended with $code: $(sed -n 's/.*"summary":"\([^"]*\)".*/\1/p' json) $(tail -n 2 errors)"
    [ "$same" = same ] || wrong "the output differs: $(cmp native ours 2>&1 || true)"
    [ "$status" = "exit $native_status" ] || wrong "the status is ${status:-unknown}, natively $native_status"
    [ "$(field transitions)" != 0 ] || wrong "it has no visible operation: no threads were used"
    if grep -q 'differ in what they printed' json; then
        wrong "$(sed -n 's/.*"notes":\[\([^]]*\)\].*/\1/p' json)"
    fi
}

# NAME COMMAND...: all runs of one program.
compare() {
    local name=$1 begin
    shift
    command=("$@")
    if ! command -v "$1" >/dev/null; then
        row "$name" skipped "not installed" "" "" ""
        return
    fi
    compared=$((compared + 1))
    native_status=0
    begin=$(now)
    "$@" >native 2>&1 </dev/null || native_status=$?
    row "$name" native "exit $native_status" "" "" "$(seconds "$begin") s"
    under_vsrun once --once
    under_vsrun "random $executions" --search random --max-executions "$executions"
}

row program run status output transitions time
compare 'pigz -p2' pigz -p2 -c text
compare 'xz -T2' xz -T2 --block-size=256KiB -1 -c text
compare 'zstd -T2' zstd -q -T2 -B524288 -3 -c text
compare 'sort --parallel=2' sort --parallel=2 -S 64M lines

# A launcher that is a script would hand over to the interpreter only later.
if command -v python3 >/dev/null; then
    compare 'Python threads' "$(python3 -c 'import sys; print(sys.executable)')" "$here/queue_work.py"
else
    compare 'Python threads' python3
fi

if command -v "${CXX:-g++}" >/dev/null; then
    "${CXX:-g++}" -std=c++20 -O2 -o threads "$here/threads.cc" -lpthread
    compare 'C++20 threads' ./threads
else
    row 'C++20 threads' skipped "no ${CXX:-g++}" "" "" ""
fi

compare 'pbzip2 -p2' pbzip2 -p2 -b1 -c -k text
compare 'lbzip2 -n2' lbzip2 -n2 -c -k text

mkdir project
printf 'all: a b c\n\t@cat a b c\n\na b c:\n\t@echo $@ >$@\n' >project/Makefile
# The clock under vsrun shows the beginning of 2026.
touch -d 2025-01-01 project/Makefile
compare 'make -j2' sh -c 'rm -f project/[abc]; make -s -j2 -C project'
compare 'shell pipeline' sh -c '(echo background >&2) & seq 1000 | sort -rn | head -3 | (cat; echo sub) | tr 0-9 a-j; wait'

# NAME CLIENT PORT SERVER...: a server and a client, natively and under vsrun with --once; what the client prints is compared.
serve() {
    local name=$1 client=$2 pid port=$3 code=0
    shift 3
    if ! command -v "$1" >/dev/null; then
        row "$name" skipped "not installed" "" "" ""
        return
    fi
    compared=$((compared + 1))
    "$@" >/dev/null 2>&1 </dev/null &
    pid=$!
    # shellcheck disable=SC2086
    timeout 30 $client "$port" >native 2>&1 </dev/null || true
    kill "$pid" && wait "$pid" || true
    timeout 100 "$vsrun" --once --format json --output printed --with "sh -c '$client $port >$dir/ours 2>&1'" "$@" </dev/null >json 2>errors || code=$?
    local same=differs
    cmp -s native ours && same=same
    row "$name" once "exit $code" "$same" "$(field transitions)" ""
    [ "$code" -eq 3 ] || [ "$code" -eq 0 ] || wrong "vsrun ended with $code: $(sed -n 's/.*"summary":"\([^"]*\)".*/\1/p' json)"
    [ "$same" = same ] || wrong "the client prints something else: $(cmp native ours 2>&1 || true)"
}

python=$(command -v python3 >/dev/null && python3 -c 'import sys; print(sys.executable)') || python=
if [ -n "$python" ]; then
    serve memcached "$python $here/memcached_client.py" 21211 memcached -u "$(id -un)" -p 21211 -l 127.0.0.1 -t 2
fi

if [ "$differences" -gt 0 ]; then
    echo "$differences differences in $compared programs"
    exit 1
fi
echo "no differences in $compared programs"
