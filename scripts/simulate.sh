#!/usr/bin/env bash
# vsrun cluster with 1 to 200 workers on a tree of 10^8 executions, simulated: ./scripts/simulate.sh [--short | --measure | --validate] [local|slurm|hq]...
#
# A simulation of discrete events of what src/cluster does, with times of pieces and of engines that were measured (scripts/cluster/measured.json), and
# trees put together of splits that were measured. Prints, for each engine, wall time, speed-up, and where the rest goes. --measure: measures all of that
# anew on this machine, with the engines that are installed (see scripts/cluster.sh), some 15 minutes. --validate: runs searches here, with 1, 2 and 4
# workers, and prints the ratio of simulated and real time. --short: 100 workers only, without and with tasks that are lost, and a quick
# measurement against what is stored. Exit status 0 if all checks hold, 1 if not, 2 for wrong usage.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin
export PYTHONDONTWRITEBYTECODE=1

mode=table engines=()
for argument; do
    case $argument in
    --short | --measure | --validate) mode=${argument#--} ;;
    local | slurm | hq) engines+=("$argument") ;;
    *) sed -n '2,9s/^# \?//p' "$0" >&2 && exit 2 ;;
    esac
done
[ ${#engines[@]} -gt 0 ] || engines=(local slurm hq)

vsrun=${VSRUN:-}
if [ "$mode" != table ] && [ -z "$vsrun" ]; then
    cargo build --quiet --release
    vsrun=${CARGO_TARGET_DIR:-$PWD/target}/release/vsrun
fi
work=$(mktemp -d)
own=() failed=0
. scripts/own.sh
stop_engines() {
    end_own "${own[@]}" || :
    for pid in "${own[@]}"; do wait "$pid" 2>/dev/null || :; done
    own=()
}
trap 'stop_engines; rm -rf "$work"' EXIT
. scripts/cluster/engines.sh

simulate() {
    python3 scripts/cluster/simulate.py "$@" --vsrun "$vsrun" --work "$work" || failed=1
}

case $mode in
table | short) simulate "$mode" "${engines[@]}" ;;
measure | validate)
    [ "$mode" = validate ] || simulate measure
    for engine in "${engines[@]}"; do
        if [ "$engine" = local ]; then
            [ "$mode" = measure ] || simulate validate local
            continue
        fi
        # To measure: 25 CPUs for each of four workers, which do next to nothing.
        if ! CPUS=$([ "$mode" = measure ] && echo 25 || echo 1) start_$engine; then
            echo "simulate: $engine is not there: skipped"
            continue
        fi
        simulate "$mode" "$engine"
        stop_engines
        rm -rf "${work:?}/$engine"
        if [ "$engine" = slurm ] && [ "$mode" = measure ]; then
            # As it comes, without what makes it quick.
            CPUS=25 SCHEDULER='' start_slurm && simulate measure slurm-slow
            stop_engines
        fi
    done
    ;;
esac
exit $failed
