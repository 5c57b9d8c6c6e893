#!/usr/bin/env bash
# vsrun cluster on the engines that there are, each with four workers on this machine: ./scripts/cluster.sh [--short] [local|slurm|hq]...
#
# A search of 100,800 executions (--short: 2,400) on one machine, by each engine, and by each engine while processes that explore pieces are killed, a node
# is drained (Slurm), and vsrun itself is killed and begun again: verdict and counts must be the same each time. All of it once more of that program in a
# pack, its own file gone. Slurm is started here, as the user who runs this, from Debian's slurmctld and slurmd; HyperQueue by its Python package. An
# engine that is not installed is said to be skipped. Exit status 0 if all is the same, 1 if not, 2 for wrong usage.
set -euo pipefail
cd "$(dirname "$0")/.."

threads=7 grain=5 engines=()
for argument; do
    case $argument in
    --short) threads=5 grain=1 ;;
    local | slurm | hq) engines+=("$argument") ;;
    *) sed -n '2,7s/^# \?//p' "$0" >&2 && exit 2 ;;
    esac
done
[ ${#engines[@]} -gt 0 ] || engines=(local slurm hq)

vsrun=${VSRUN:-}
if [ -z "$vsrun" ]; then
    cargo build --quiet --release
    vsrun=${CARGO_TARGET_DIR:-$PWD/target}/release/vsrun
fi
vsrun=$(realpath "$vsrun")
work=$(mktemp -d)
own=() failed=0
. scripts/own.sh
ends() {
    end_own "${own[@]}" || :
    for pid in "${own[@]}"; do wait "$pid" 2>/dev/null || :; done
    rm -rf "$work"
}
trap ends EXIT
gcc -O1 -pthread -I shim/include -o "$work/tosses" scripts/cluster/tosses.c
search=(--race off --keep-going "$work/tosses" "$threads")
# Another one with the same counts, which is in a pack alone.
mkdir "$work/gone"
cp "$work/tosses" "$work/gone/tosses"
(cd "$work" && "$vsrun" pack -o pack --look 0.5 --race off --keep-going gone/tosses "$threads" >/dev/null)
rm -r "$work/gone"

# What a report of JSON says of the search.
counts() {
    python3 -c 'import json,sys; r=json.load(sys.stdin); print(r["verdict"], r["complete"], r["executions"] - r["sleep_blocked"], len(r["bugs"]))'
}

# NAME FILE: compares with the whole.
compare() {
    local said
    said=$(counts <"$2" || :)
    if [ "$said" = "$whole" ]; then
        echo "cluster: $1: $said, as on one machine"
    else
        echo "cluster: FAILED: $1: $said, on one machine $whole"
        tail -n 5 "$work/said"
        failed=1
    fi
}

# ENGINE: an engine knows how many workers it has.
at_a_time() {
    [ "$1" != local ] || echo "-n 4"
}

# ENGINE DIR PROGRAM..: runs all of it.
all_of() {
    (cd "$work" && "$vsrun" cluster --engine "$1" $(at_a_time "$1") --into 48 --grain "$grain" --look 0 -o "$2" --format json "${@:3}" 2>"$work/said")
}

# ENGINE NAME PROGRAM..: the same with trouble.
troubled() {
    local dir=$work/$1-troubled${2:+-pack} vsrun_pid victim n
    (cd "$work" && exec "$vsrun" cluster --engine "$1" $(at_a_time "$1") --into 48 --grain "$grain" --look 0 -o "$dir" --format json "${@:3}" >"$work/first" 2>"$work/said") &
    vsrun_pid=$!
    for n in $(seq 300); do
        ls "$dir"/*.state >/dev/null 2>&1 && break
        sleep 0.1
    done
    # Those that explore a piece just now, and what runs under them.
    for n in 1 2 3; do
        victim=$(pgrep -f "pieces work .*$dir" | head -n 1 || :)
        # Not ours to wait for: found by the directory of this run a moment ago.
        [ -z "$victim" ] || kill -9 "$victim" 2>/dev/null || :
        sleep 0.5
    done
    [ "$1" != slurm ] || scontrol update nodename=n2 state=drain reason=test
    if end_own -9 "$vsrun_pid"; then
        echo "cluster: $1$2: vsrun was killed with $(ls "$dir"/*.state 2>/dev/null | wc -l) of 48 pieces begun"
    fi
    wait "$vsrun_pid" 2>/dev/null || :
    (cd "$work" && "$vsrun" cluster --engine "$1" $(at_a_time "$1") --grain "$grain" -o "$dir" --format json >"$work/again" 2>"$work/said") || :
    compare "$1, processes and vsrun killed$2" "$work/again"
    [ "$1" != slurm ] || scontrol update nodename=n2 state=resume
    left=$(ls -d "$dir"/engine-* 2>/dev/null || :)
    [ -z "$left" ] || { echo "cluster: FAILED: $1 leaves $left"; failed=1; }
}

# ENGINE NAME PROGRAM..: executions drawn by lot, exactly so many, by a command that is killed once.
swarm() {
    local dir=$work/$1-swarm${2:+-pack} vsrun_pid said n
    (cd "$work" && exec "$vsrun" cluster --swarm --engine "$1" -n 4 --grain 1 --max-executions 2000 --vary none -o "$dir" "${@:3}" >"$work/first" 2>"$work/said") &
    vsrun_pid=$!
    for n in $(seq 300); do
        ls "$dir"/*.done >/dev/null 2>&1 && break
        sleep 0.1
    done
    end_own -9 "$vsrun_pid" || :
    wait "$vsrun_pid" 2>/dev/null || :
    (cd "$work" && "$vsrun" cluster --engine "$1" -n 4 --grain 1 -o "$dir" --format json >"$work/again" 2>"$work/said") || :
    said=$(python3 -c 'import json,sys; r=json.load(sys.stdin); print(r["verdict"], r["complete"], r["executions"], r["tasks_left"])' <"$work/again" || :)
    if [ "$said" = "ok False 2000 0" ]; then
        echo "cluster: $1, a swarm$2, vsrun killed: $said"
    else
        echo "cluster: FAILED: $1, a swarm$2: $said, not ok False 2000 0"
        tail -n 5 "$work/said"
        failed=1
    fi
}

. scripts/cluster/engines.sh

whole=$("$vsrun" --search optimal --format json "${search[@]}" | counts)
echo "cluster: one machine: $whole"
for engine in "${engines[@]}"; do
    if [ "$engine" != local ] && ! "start_$engine"; then
        echo "cluster: $engine is not there: skipped"
        continue
    fi
    began=$SECONDS
    all_of "$engine" "$work/$engine" "${search[@]}" >"$work/report" || :
    compare "$engine, four at a time, $((SECONDS - began)) s" "$work/report"
    troubled "$engine" "" "${search[@]}"
    swarm "$engine" "" "${search[@]}"
    began=$SECONDS
    all_of "$engine" "$work/$engine-pack" "$work/pack" >"$work/report" || :
    compare "$engine, four at a time, in a pack, $((SECONDS - began)) s" "$work/report"
    troubled "$engine" ", in a pack" "$work/pack"
    swarm "$engine" ", in a pack" "$work/pack"
done
exit $failed
