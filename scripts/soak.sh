#!/usr/bin/env bash
# What must not break vsrun, again and again: ./scripts/soak.sh [SECONDS [KIND...]]    or --short    or --executions [N]
#
# For SECONDS (default 600) in all, trials of each KIND in turn; for each is printed how many were tried and how many survived.
#   kill       vsrun is killed (SIGKILL) at a random moment: alone, with its process group, or with its guard. Nothing is left
#              of it: no process, and, after the next run, no directory in /dev/shm.
#   interrupt  a search is interrupted (SIGINT, SIGTERM) again and again and resumed: it ends with the counts of one that was not.
#   damage     a scenario or saved search with random bytes changed, cut or added is refused: no panic, no hang, nothing is run.
#   limits     a random limit (processes, descriptors, size of files, address space, CPU time): the verdict without it, or exit 2 or 3.
#   disk       scenario, saved search and output go to a full file system: no panic, and it is said.
#   hostile    the programs of soak/hostile.c: vsrun ends in time, nothing is left, and a process outside lives on.
# --short: one round of a few trials of each kind, with a fixed seed. --executions: nothing of that, but searches of N (1,000,000) executions, during which
# memory, descriptors, mappings and processes must not grow (soak/steady.sh).
#
# All of it runs in namespaces of its own (processes, mounts), which takes root or user namespaces. SEED=N repeats the random choices of
# a run. VSRUN=PATH uses that binary instead of building one. Exit status 1 if anything did not survive; its line says what.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."
. scripts/own.sh

seconds=600 short=0
if [ "${1:-}" = --executions ]; then
    shift
    exec scripts/soak/steady.sh "$@"
fi
if [ "${1:-}" = --short ]; then
    seconds=60 short=1 SEED=${SEED:-1}
    shift
elif [ $# -gt 0 ]; then
    seconds=$1
    shift
fi
[ $# -gt 0 ] || set -- kill interrupt damage limits disk hostile
for kind; do
    case $kind in
        kill | interrupt | damage | limits | disk | hostile) ;;
        *) sed -n '2,/^set -eu/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
    esac
done

if [ -z "${SOAK_INSIDE:-}" ]; then
    if [ -z "${VSRUN:-}" ]; then
        cargo build --release --quiet
        VSRUN=${CARGO_TARGET_DIR:-target}/release/vsrun
    fi
    dir=$(mktemp -d)
    trap 'rm -rf "$dir"' EXIT
    chmod 755 "$dir"
    cp "$VSRUN" "$dir/vsrun"
    "${CC:-gcc}" -O0 -w -o "$dir/hostile" scripts/soak/hostile.c -lpthread
    for program in philosophers_threads lockcount; do
        "${CC:-gcc}" -O1 -o "$dir/$program" c-tests/$program.c -lpthread
    done
    spaces=(unshare --mount --pid --fork --mount-proc --kill-child)
    if ! "${spaces[@]}" true 2>/dev/null; then
        spaces=(unshare --map-root-user --mount --pid --fork --mount-proc --kill-child)
        "${spaces[@]}" true 2>/dev/null || { echo "soak: neither root nor user namespaces: nothing is tried" >&2; exit 2; }
    fi
    export SOAK_INSIDE=$dir SEED=${SEED:-$RANDOM}
    status=0
    "${spaces[@]}" "$0" $([ $short = 1 ] && echo --short || echo "$seconds") "$@" || status=$?
    exit $status
fi

# From here on: in the namespaces.
dir=$SOAK_INSIDE
mount -t tmpfs soak /dev/shm
RANDOM=$SEED
export HOME=$dir XDG_STATE_HOME=$dir/state
cd "$dir"
mkdir -p work full
mount -t tmpfs -o size=64k soak full
head -c 1M /dev/zero >full/filler 2>/dev/null || true
cd work
vsrun=$dir/vsrun
declare -A tried survived
sleep 100000 &
decoy=$!

# What of vsrun and its programs is there still, a line each.
left() { ps -eo pid=,args= | awk -v own="$$" '$1 != own && ($2 ~ /\/(vsrun|hostile|lockcount|philosophers_threads)$/ || $2 ~ /^vsrun/)'; }

# The same, once they have had some time to go.
left_for_good() {
    local _
    for _ in $(seq 40); do
        [ -n "$(left)" ] || return 0
        sleep 0.1
    done
    left
}

survives() { tried[$1]=$((${tried[$1]:-0} + 1)) survived[$1]=$((${survived[$1]:-0} + 1)); }
fails() {
    tried[$1]=$((${tried[$1]:-0} + 1)) survived[$1]=${survived[$1]:-0}
    echo "FAILED $1: $2"
}

# Runs vsrun with a limit of time; the status is in $status, what it said in the files out and err.
status=0
run() {
    local limit=$1
    shift
    status=0
    timeout -s KILL "$limit" "$@" >out 2>err </dev/null || status=$?
}
broke() { [ "$status" -gt 4 ] || grep -qa 'panicked\|vsrun bug\|did not follow its schedule' out err; }
said() { echo "status $status: $(head -qn 2 err out | tr '\n' ' ' | cut -c1-300)"; }

try_kill() {
    local how=$((RANDOM % 3)) at
    at=$(printf '0.%03d' $((RANDOM % 700)))
    rm -f ./*.json
    setsid "$vsrun" -j 2 --keep-going --progress never --search naive "$dir/lockcount" 7 >/dev/null 2>&1 </dev/null &
    local pid=$!
    sleep "$at"
    local guards=''
    # What stands still does not end, so its number, its group's, and that of the guard, its child, stay theirs.
    [ $how = 0 ] || end_own -STOP $pid || how=0
    [ $how = 2 ] && guards=$(ps -eo pid=,ppid=,args= | awk -v p=$pid '$2 == p && $3 == "vsrun-guard" { print $1 }')
    case $how in
        0) end_own -KILL $pid || true ;;
        1) kill -KILL -- -$pid 2>/dev/null || true ;;
        2) kill -KILL $pid $guards 2>/dev/null || true ;;
    esac
    wait $pid 2>/dev/null || true
    local rest
    rest=$(left_for_good)
    # What the guard could not remove, the next run sweeps, once it is a minute old.
    [ -z "$(ls /dev/shm)" ] || touch -d '2 minutes ago' /dev/shm/*
    run 20 "$vsrun" "$dir/lockcount" 2
    [ -z "$(ls -A /dev/shm)" ] || rest="$rest $(ls /dev/shm)"
    if [ -n "$rest" ] || [ $status != 0 ]; then fails kill "way $how at $at s: left $rest; $(said)"; else survives kill; fi
}

whole=
counts() { grep -ao '"\(verdict\|executions\|transitions\|complete\)":[^,]*' out | tr '\n' ' '; }
try_interrupt() {
    local options=(--keep-going --format json --progress never -j $((1 + RANDOM % 2)) --search optimal) rounds=0 first=--save
    if [ -z "$whole" ]; then
        run 60 "$vsrun" "${options[@]}" "$dir/lockcount" 6
        whole=$(counts)
        case $whole in *'"complete":true'*) ;; *) fails interrupt "the search was not complete by itself: $(said)" ;; esac
    fi
    rm -f saved ./*.json
    while :; do
        status=0
        # Where the machine has no time for it, it gets further with more.
        timeout -s $([ $((RANDOM % 2)) = 0 ] && echo INT || echo TERM) "$((rounds / 50)).$((1 + RANDOM % 6))" \
            env --default-signal=INT "$vsrun" "${options[@]}" $first saved "$dir/lockcount" 6 >out 2>err </dev/null || status=$?
        [ $status = 124 ] || break
        [ -e saved ] && first=--resume
        rounds=$((rounds + 1))
        [ $rounds -lt 200 ] || break
    done
    if [ "$(counts)" = "$whole" ]; then survives interrupt; else fails interrupt "after $rounds rounds: $(counts) instead of $whole; $(said)"; fi
}

scenario= saved=
# Changes a file at random: bytes, the length, a line twice.
damage() {
    local size at
    size=$(stat -c %s "$1")
    for _ in $(seq $((1 + RANDOM % 4))); do
        at=$(((RANDOM * 32768 + RANDOM) % size))
        case $((RANDOM % 4)) in
            0 | 1) printf "\\x$(printf %02x $((RANDOM % 256)))" | dd of="$1" bs=1 seek=$at conv=notrunc status=none ;;
            2) truncate -s $at "$1"; size=$((at > 0 ? at : 1)) ;;
            3) head -c $((RANDOM % 200)) /dev/urandom >>"$1" ;;
        esac
    done
}
try_damage() {
    if [ -z "$scenario" ]; then
        run 20 "$vsrun" "$dir/philosophers_threads" 3
        scenario=$(echo "$PWD"/philosophers_threads-deadlock-1.vsrun.json)
        mv "$scenario" "$dir/scenario" && scenario=$dir/scenario
        run 20 "$vsrun" --max-executions 200 --save "$dir/saved" "$dir/lockcount" 6
        saved=$dir/saved
    fi
    local file=$saved command
    command=("$vsrun" --max-executions 5 --resume damaged "$dir/lockcount" 6)
    case $((RANDOM % 3)) in
        0) file=$scenario command=("$vsrun" show damaged) ;;
        1) file=$scenario command=("$vsrun" replay --trust damaged) ;;
    esac
    cp "$file" damaged
    damage damaged
    cmp -s "$file" damaged && return
    run 20 "${command[@]}"
    # A change of what is no part of it may leave it what it was.
    if broke; then
        cp damaged "$dir/damaged-$((${tried[damage]:-0}))"
        fails damage "${command[*]}: $(said)"
    else
        survives damage
    fi
}

try_limits() {
    local limit as=()
    case $((RANDOM % 5)) in
        0) limit="-u $((3 + RANDOM % 20))" ;;
        1) limit="-n $((8 + RANDOM % 400))" ;;
        2) limit="-f $((RANDOM * 1000))" ;;
        3) limit="-v $((RANDOM * 1000))" ;;
        4) limit="-t $((1 + RANDOM % 2))" ;;
    esac
    # Root has no limit on processes.
    case $limit in -u*) as=(setpriv --reuid 61234 --regid 61234 --clear-groups) ;; esac
    run 30 "${as[@]}" env HOME=/nonexistent bash -c "ulimit $limit; cd /tmp; exec '$vsrun' --scenario-dir /tmp/soak-$$ '$dir/lockcount' 4"
    rm -rf /tmp/soak-$$
    case "$status/$limit" in
        0/* | 2/* | 3/*) survives limits ;;
        # The kernel ends who has used his time, or cannot even start it.
        137/-t* | 152/-t* | 126/* | 127/* | 254/-u*) survives limits ;;
        *) fails limits "ulimit $limit: $(said)" ;;
    esac
}

try_disk() {
    local full=$dir/full
    rm -rf "$full/s"
    case $((RANDOM % 3)) in
        0) run 20 "$vsrun" --scenario-dir "$full/s" "$dir/philosophers_threads" 3 ;;
        1) run 20 "$vsrun" --save "$full/saved" "$dir/lockcount" 3 ;;
        2) run 20 "$vsrun" --output "$full/printed" "$dir/philosophers_threads" 3 ;;
    esac
    if broke || [ -z "$(cat out err)" ]; then fails disk "$(said)"; else survives disk; fi
}

names=($("$dir/hostile"))
next=0
try_hostile() {
    local name=${names[next % ${#names[@]}]} since end
    next=$((next + 1))
    cp "$dir/hostile" ./hostile
    since=$(date +%s%N)
    run 30 "$vsrun" --time 2 --memory 1G --progress never --output /dev/null ./hostile "$name"
    end=$((($(date +%s%N) - since) / 1000000))
    if broke || [ $end -gt 8000 ]; then
        fails hostile "$name, $end ms: $(said)"
    elif ! kill -0 $decoy 2>/dev/null; then
        fails hostile "$name: a process outside was ended"
        sleep 100000 &
        decoy=$!
    elif [ -n "$(left_for_good)" ] || [ -n "$(ls -A /dev/shm)" ]; then
        fails hostile "$name: left $(left) $(ls /dev/shm)"
    else
        survives hostile
    fi
}

until=$((SECONDS + seconds)) round=0
while [ $SECONDS -lt $until ]; do
    for kind; do
        times=1
        case $kind in damage) times=10 ;; esac
        [ $short = 1 ] && case $kind in hostile) times=${#names[@]} ;; *) times=$((2 * times)) ;; esac
        for _ in $(seq $times); do try_$kind; done
    done
    round=$((round + 1))
    [ $short = 1 ] && break
    [ -t 2 ] && printf '\rsoak: round %d, %d s left ' $round $((until - SECONDS)) >&2
done
end_own $decoy || true

failed=0
echo "seed $SEED"
for kind; do
    echo "$kind: ${tried[$kind]:-0} tried, ${survived[$kind]:-0} survived"
    [ "${tried[$kind]:-0}" = "${survived[$kind]:-0}" ] || failed=1
done
exit $failed
