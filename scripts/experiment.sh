#!/usr/bin/env bash
# What it pays to keep states that executions begin in: ./scripts/experiment.sh [--short] [--plots DIR] [NAME...]
#
# One program, explored by `--search optimal`, whose executions begin in five ways: `replay` (each starts the program), `fork` (a copy of the program before its
# main), the first choice (one process that puts back what it has written; `--checkpoint rollback --checkpoint-memory 0`), marks (the same, and the next execution
# goes on from a state within the one before; `--checkpoint rollback`), copies (processes stand still in such states; `--checkpoint copies`). One size of the program is changed at a time: transitions of an execution, invisible
# work for each, written pages, threads, processes.
#
# Printed are tables in Markdown: executions a second of CPU time (of vsrun and all that it has started; medians; the difference of two runs, so without the
# start), and the most memory that they had together. With --plots the same is drawn, an SVG for each size (docs/experiment/ has those of docs/EXPERIMENT.md).
# What each run did goes to stderr.
#
# Fails if a run fails, or if executions, transitions or verdict depend on how executions begin. --short: few sizes, each once. NAME: only depth, work, pages, threads, processes.
#
# VSRUN=PATH measures that binary instead of building one.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."

runs=3 short=0 plots=- names=()
while [ $# -gt 0 ]; do
    case $1 in
        --short) runs=1 short=1 ;;
        --plots)
            [ $# -gt 1 ] || { echo "--plots DIR" >&2; exit 2; }
            plots=$(realpath "$2")
            shift
            ;;
        depth | work | pages | threads | processes) names+=("$1") ;;
        *) echo "usage: scripts/experiment.sh [--short] [--plots DIR] [depth|work|pages|threads|processes...]" >&2; exit 2 ;;
    esac
    shift
done

. scripts/vsrun.sh
# A copy of its own, so that it shares no memory with what runs beside.
cp "$vsrun" "$dir/vsrun"
"${CC:-gcc}" -O2 -o "$dir/program" scripts/experiment/program.c -lpthread
[ "$plots" = - ] || mkdir -p "$plots"
measure=$PWD/scripts/experiment/measure.py
cd "$dir"
python3 -B "$measure" ./vsrun ./program "$plots" "$runs" "$short" "${names[@]}"
