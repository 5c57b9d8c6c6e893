#!/usr/bin/env bash
# How soon bugs are found: the default command and the searches that draw lots, over the programs of scripts/first.
# For each program and search the median of executions and seconds to the first bug over SEEDS seeds, and in how many of these it was found in TIME
# seconds. With --short: the programs that the default command is held to, three seeds, and it fails if one is missed or takes too long.
#
#   SEEDS=20 TIME=20 SEARCHES="default random .." scripts/first.sh [--short] [-o table.md] [PROGRAM..]     (VSRUN=PATH: that binary)
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
short=0
out=/dev/stdout
programs=()
while [ $# -gt 0 ]; do
    case $1 in
    --short) short=1 ;;
    -o) out=$2; shift ;;
    -*) sed -n '2,7s/^# \?//p' "$0" >&2 && exit 2 ;;
    *) programs+=("$1") ;;
    esac
    shift
done
if [ -z "${VSRUN:-}" ]; then
    (cd "$here" && cargo build --quiet --release)
    VSRUN=${CARGO_TARGET_DIR:-$here/target}/release/vsrun
fi
vsrun=$(realpath "$VSRUN")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ ${#programs[@]} -eq 0 ]; then
    if [ $short = 1 ]; then
        programs=(endless_readers machine two_stage reorder quicksort inversion shutdown_order safe_stack)
    else
        for source in "$here"/scripts/first/*.c; do programs+=("$(basename "$source" .c)"); done
    fi
fi
for program in "${programs[@]}"; do
    gcc -O1 -g -pthread -o "$work/$program" "$here/scripts/first/$program.c"
done
[ $short = 1 ] && : "${SEEDS:=3}" "${SEARCHES:=default}"
export SEEDS=${SEEDS:-20} TIME=${TIME:-20} SEARCHES=${SEARCHES:-default random walk pct pos surw rff novel predict} SHORT=$short
python3 - "$vsrun" "$work" "$out" "${programs[@]}" <<'PY'
import json, os, statistics, subprocess, sys, time

vsrun, work, out, *programs = sys.argv[1:]
seeds, limit, short = int(os.environ["SEEDS"]), float(os.environ["TIME"]), os.environ["SHORT"] == "1"
searches = os.environ["SEARCHES"].split()
# Seconds in the short form, on a machine that does other things: five times what is wanted; for two of which nothing is, twenty times what they took; for
# the stack what is wanted.
BOUNDS = {"endless_readers": 10, "machine": 10, "two_stage": 10, "reorder": 10, "quicksort": 25, "inversion": 10, "shutdown_order": 20, "safe_stack": 600}


def run(program, search, seed):
    """(executions, seconds) to the first bug; None: there was none in time."""
    most = BOUNDS.get(program, limit) if short else limit
    line = [vsrun, "--progress", "never", "--format", "json", "--shrink", "0", "--time", str(most), "--seed", str(seed), "-j", "1", "--scenario-dir", work]
    line += [] if search == "default" else ["--search", search]
    since = time.monotonic()
    done = subprocess.run(line + [os.path.join(work, program)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    took = time.monotonic() - since
    if done.returncode not in (0, 1, 3):
        raise SystemExit(f"{program} with {search}, seed {seed}: vsrun ended with {done.returncode}")
    bugs = json.loads(done.stdout)["bugs"]
    return (bugs[0]["execution"], took) if bugs else None


lines = ["| program | " + " | ".join(searches) + " |", "|---|" + "---|" * len(searches)]
failed = []
for program in programs:
    cells = []
    for search in searches:
        # That one takes half a minute.
        found = [run(program, search, seed) for seed in range(1, 2 if short and program == "safe_stack" else seeds + 1)]
        there = [f for f in found if f]
        if short and (len(there) < len(found) or max(f[1] for f in there) > BOUNDS.get(program, limit)):
            failed.append(f"{program}: {found}")
        if len(there) * 2 < len(found):
            cells.append(f"{len(there)} of {len(found)}")
            continue
        # Who did not find it took longer than all that did.
        worst = (10**9, limit)
        ranked = [f or worst for f in found]
        executions, seconds = statistics.median_low(f[0] for f in ranked), statistics.median_low(f[1] for f in ranked)
        most = "" if len(there) == len(found) else f", {len(there)} of {len(found)}"
        cells.append(f"{executions}, {seconds:.2f} s{most}")
    lines.append(f"| {program} | " + " | ".join(cells) + " |")
    print(lines[-1], file=sys.stderr, flush=True)
with open(out, "w") as file:
    file.write("\n".join(lines) + "\n")
if failed:
    raise SystemExit("not found, or late: " + "; ".join(failed))
PY
