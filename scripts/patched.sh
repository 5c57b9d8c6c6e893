#!/usr/bin/env bash
# Real programs with their memory watched, so with patches in their code, must print the same bytes and end with the same status as natively:
# ./scripts/patched.sh [--short]
#
# Each runs natively and under `vsrun --once --race explore`. Where a program has one thread its patches are executed all the same, and what they
# record is thrown away. Exit status 1 if anything differs. The time that is taken for a divergence is longer than the default, with which the C
# compiler is called one (docs/WATCHING.md).
#
# What is not there is skipped, and said so. --short: a few, on less. VSRUN=PATH uses that binary instead of building one.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."

short=
case "${1:-}" in
    --short) short=yes ;;
    '') ;;
    *) echo "usage: scripts/patched.sh [--short]" >&2; exit 2 ;;
esac

. scripts/vsrun.sh
here=$(pwd)/scripts/patched
"${CXX:-g++}" -std=c++17 -O2 -g -o "$dir/throws" "$here/throws.cc" -lpthread
"${CC:-gcc}" -O2 -g -o "$dir/zlib" "$here/zlib.c" -lz -lpthread 2>/dev/null || :
cp "$here"/queries.sql "$here"/script.* scripts/cost/work.c "$dir"
cd "$dir"
awk 'BEGIN { srand(7); for (i = 0; i < 60000; i++) printf "%d %d\n", 1e6 * rand(), i }' >lines
head -c 300000 lines >text
# A launcher that is a script would hand over to the interpreter only later.
python=$(command -v python3 >/dev/null && python3 -c 'import sys; print(sys.executable)') || python=python3

differences=0 compared=0

# NAME INPUT COMMAND...
compare() {
    local name=$1 input=$2 native=0 status said
    shift 2
    if ! command -v "$1" >/dev/null; then
        printf '%-22s skipped: no %s\n' "$name" "${1##*/}"
        return
    fi
    "$@" <"$input" >expected 2>&1 || native=$?
    timeout 300 "$vsrun" --once --divergence-timeout 60 --race explore --format json --output seen "$@" <"$input" >json 2>errors || [ $? -eq 3 ] || native="$native, vsrun fails"
    status=$(sed -n 's/.*"program_status":{"\([a-z]*\)":\([0-9]*\)}.*/\1 \2/p' json)
    compared=$((compared + 1))
    said=same
    cmp -s expected seen || said="OTHER OUTPUT: $(cmp expected seen 2>&1 | head -n 1) $(tail -n 1 errors)"
    [ "$status" = "exit $native" ] || said="$said, OTHER STATUS: ${status:-none} $(tail -n 1 errors)"
    printf '%-22s %s (exit %s, %d bytes of output)\n' "$name" "$said" "$native" "$(wc -c <expected)"
    [ "$said" = same ] || differences=$((differences + 1))
}

compare 'C++ that throws' /dev/null ./throws
compare 'zlib, two threads' text ./zlib
compare gzip text gzip -9 -c -n
gzip -9 -c -n text >text.gz
compare gunzip text.gz gzip -d -c
compare 'sqlite3 on a script' queries.sql sqlite3 -batch :memory:
compare python3 script.py "$python" -
compare perl script.pl perl -
compare lua script.lua lua5.4 -
compare 'bc' script.bc bc -q
if [ -z "$short" ]; then
    compare 'xz -T2' text xz -T2 --block-size=64KiB -1 -c
    compare 'pigz -p2' text pigz -p2 -b 32 -n -c
    compare 'zstd -T2' text zstd -q -T2 -B524288 -3 -c
    compare 'lbzip2 -n2' text lbzip2 -n2 -c
    compare 'sort --parallel=2' lines sort --parallel=2 -S 64M
    compare 'bzip2' text bzip2 -c
    compare 'awk' lines mawk '{ n[$1 % 97] += $2 } END { for (k = 0; k < 97; k++) print k, n[k] }'
    compare 'openssl' text openssl dgst -sha256
    compiler=$(gcc -print-prog-name=cc1)
    [ ! -x "$compiler" ] || gcc -E work.c >work.i
    compare 'the C compiler' work.i "$compiler" -quiet -O2 -o /dev/stdout -
    # A server and what asks it: the client ends it.
    if command -v redis-server >/dev/null && command -v redis-cli >/dev/null; then
        port=21293
        asks="redis-cli -p $port"
        client="for i in \$(seq 100); do $asks ping >/dev/null 2>&1 && break; sleep 0.05; done
            for i in \$(seq 30); do $asks rpush l \$((i * 7919 % 101)) >/dev/null; $asks incrby n \$i >/dev/null; done
            $asks sort l; $asks get n; $asks eval 'local t = 0; for i = 1, 1000 do t = t + i % 7 end; return t' 0; $asks shutdown nosave"
        printf '%s\n' "$client" >client
        server="redis-server --port $port --bind 127.0.0.1 --save '' --appendonly no"
        sh -c "exec $server >/dev/null 2>&1" & sh client >expected 2>&1; wait || :
        timeout 300 "$vsrun" --once --divergence-timeout 60 --race explore --format json --output seen --with 'sh client' redis-server --port $port --bind 127.0.0.1 \
            --save '' --appendonly no --logfile /dev/null >json 2>errors </dev/null || :
        compared=$((compared + 1))
        if grep -qF "$(cat expected)" seen && [ -s expected ] && [ "$(grep -c . expected)" -le "$(grep -c . seen)" ]; then
            printf '%-22s same (%d lines)\n' redis "$(grep -c . expected)"
        else
            printf '%-22s OTHER OUTPUT: %s\n' redis "$(cmp expected seen 2>&1 | head -n 1) $(tail -n 1 errors)"
            differences=$((differences + 1))
        fi
    fi
fi

echo "$compared compared, $differences differ"
[ "$differences" -eq 0 ]
