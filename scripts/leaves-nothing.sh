#!/usr/bin/env bash
# Nothing of the real system is left or used up by many executions: ./scripts/leaves-nothing.sh [--short]
#
# 100,000 executions (2,000 with --short) of real/leaves_all.c, which makes files, a FIFO, sockets with ports and names,
# semaphores, shared memory and message queues of both kinds, and a process that stays behind, and takes none of it away.
# Compared before and after: what has its name, port, key or file (exactly), and what the system has in all of sockets,
# processes and so on (others use it meanwhile: SLACK of each may be gained). Then vsrun is killed (SIGKILL) at work, and
# at various points of its start. Without vsrun the program is run once, to see that what it leaves is noticed.
#
# Exit status 1 if anything is left. VSRUN=PATH uses that binary instead of building one.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."
. scripts/own.sh

SLACK=500
executions=100000 kills=300
case "${1:-}" in
    --short) executions=2000 kills=30 ;;
    '') ;;
    *) echo "usage: scripts/leaves-nothing.sh [--short]" >&2; exit 2 ;;
esac

if [ -z "${VSRUN:-}" ]; then
    cargo build --release --quiet
    VSRUN=${CARGO_TARGET_DIR:-target}/release/vsrun
fi
vsrun=$(realpath "$VSRUN")

dir=$(mktemp -d)
tag=left$$ port=$((20000 + $$ % 10000)) key=$(printf '0x5c%06x' $$)
program=$dir/leaves_all
cleanup() {
    (cd "$dir/work" && "$program" $tag $port $key remove) || true
    rm -rf "$dir"
}
trap cleanup EXIT

"${CC:-gcc}" -O1 -o "$program" scripts/real/leaves_all.c -lpthread
mkdir "$dir/work"
cd "$dir/work"
echo given >given
failed=0

# Directories of vsrun that no guard watches over, so that nobody would remove them.
unguarded() {
    local path pid guards=''
    for pid in /proc/[0-9]*; do
        guards="$guards $(tr '\0' ' ' 2>/dev/null <"$pid/cmdline" | grep -a '^vsrun-guard' || true)"
    done
    for path in /dev/shm/vsrun-* "${TMPDIR:-/tmp}"/vsrun-????????????????; do
        # Looked at last: one that was being removed is gone by now.
        case "$guards " in
            *" $path "*) ;;
            *) [ ! -d "$path" ] || echo "directory $path" ;;
        esac
    done
}

# What there is of the program, a line each.
ours() {
    local hex pid
    find . /tmp /dev/shm /dev/mqueue -maxdepth 2 \( -path './*' -o -name "*$tag*" \) -printf 'file %p %i %s %T@ %M\n' \
        2>/dev/null || true
    hex=$(printf ':%04X ' "$port")
    sed -n "s/^ *[0-9]*: \([0-9A-F]*$hex[0-9A-F:]* ..\).*/port \1/p" /proc/net/tcp /proc/net/udp
    awk -v tag="$tag" 'index($0, tag) { print "socket", $NF }' /proc/net/unix
    awk -v key="$((key))" '$1 == key { print FILENAME, $1, $2 }' /proc/sysvipc/*
    for pid in /proc/[0-9]*; do
        if [ "$(readlink "$pid/exe" || true)" = "$program" ]; then echo "process $pid"; fi
    done
    unguarded
}

# What there is in all: names and numbers.
totals() {
    awk '{ split($4, n, "/"); print "threads", n[2] }' /proc/loadavg
    # Zombies wait for init only.
    grep -sL '^State:.Z' /proc/[0-9]*/status | awk 'END { print "processes", NR }'
    awk '{ print "files_open", $1 }' /proc/sys/fs/file-nr
    awk '/^TCP:/ { print "sockets_tcp", $3 + $7 } /^UDP:/ { print "sockets_udp", $3 }' /proc/net/sockstat
    awk 'END { print "sockets_local", NR }' /proc/net/unix
    awk 'END { print "system_v", NR }' /proc/sysvipc/*
    find /tmp /dev/shm -mindepth 1 -maxdepth 1 | awk 'END { print "files_in_memory_and_tmp", NR }'
    df -k --output=used /dev/shm | awk 'NR == 2 { print "dev_shm_MB", int($1 / 1024) }'
    awk '/^Shmem:/ { print "shared_memory_MB", int($2 / 1024) }' /proc/meminfo
}

# What is otherwise than before, a line each. Directories that are gone were those of another vsrun that runs here.
changes() {
    ours >"$dir/ours"
    diff "$dir/ours.before" "$dir/ours" | grep '^[<>]' | grep -v '^< directory' | sort >"$dir/changes" || true
}

# WHEN: what there is must be what there was. What is about to end has some seconds for that: what is otherwise at every
# look counts.
compare() {
    changes
    cp "$dir/changes" "$dir/lasting"
    for _ in $(seq 50); do
        [ -s "$dir/lasting" ] || break
        sleep 0.1
        changes
        comm -12 "$dir/lasting" "$dir/changes" >"$dir/both"
        mv "$dir/both" "$dir/lasting"
    done
    totals >"$dir/totals"
    echo "$1:"
    paste -d ' ' "$dir/totals.before" "$dir/totals" | awk -v slack=$SLACK '
        { printf "    %-24s %6d %6d\n", $1, $2, $4 } $4 > $2 + slack { print "    LEFT: more " $1; bad = 1 } END { exit bad }' ||
        failed=1
    if [ -s "$dir/lasting" ]; then
        sed 's/^/    CHANGED: /' "$dir/lasting"
        failed=1
    else
        echo "    nothing of the program is left"
    fi
}

ours >"$dir/ours.before"
totals >"$dir/totals.before"

"$vsrun" --search random --max-executions $executions --format json --output "$dir/printed" \
    "$program" $tag $port $key </dev/null >"$dir/json" || [ $? -eq 3 ] || failed=1
grep -q '"verdict":"ok"' "$dir/json" && grep -q "\"executions\":$executions," "$dir/json" &&
    grep -q '"program_status":{"exit":0}' "$dir/json" || { cat "$dir/json" "$dir/printed"; failed=1; }
compare "after $executions executions ($(sed -n 's/.*"seconds":\([0-9]*\).*/\1/p' "$dir/json") s)"

# Killed at work, and with everything else in its process group.
set -m
"$vsrun" --search random "$program" $tag $port $key </dev/null >/dev/null 2>&1 &
pid=$!
sleep 1
ls "/proc/$pid/exe" >/dev/null
end_own -KILL $pid || true
wait $pid 2>/dev/null || true
compare 'killed at work'

for i in $(seq $kills); do
    "$vsrun" --search random "$program" $tag $port $key </dev/null >/dev/null 2>&1 &
    pid=$!
    sleep "0.00$((i % 10))"
    end_own -KILL $pid || true
    wait $pid 2>/dev/null || true
done
set +m
compare "killed $kills times at its start"

"$program" $tag $port $key
changes
seen=$(grep -c '^>' "$dir/changes" || true)
if [ "$seen" -lt 10 ]; then
    echo "without vsrun the program leaves only $seen things: this script does not notice them"
    failed=1
else
    echo "without vsrun it leaves $seen things"
fi
[ "$failed" -eq 0 ] && echo "nothing is left"
exit "$failed"
