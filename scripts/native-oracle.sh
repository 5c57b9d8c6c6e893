#!/usr/bin/env bash
# Random programs run natively and under vsrun: ./scripts/native-oracle.sh [CASES [RUNS [SEED...]]]
#
# CASES programs (default 40) of each family of tests/native/program.rs for each SEED (default 1), each run RUNS times (default 60)
# natively, with delays, yields, one CPU and two, and explored once. What native runs show must be among what vsrun explores, wherever it
# says that it explored everything. Seeds run one after the other; start several of these for several CPUs.
# VSRUN_NATIVE_FAMILY=NAME,NAME: only these families. A program that is wrong is printed with its outcomes on both sides; again, told in full:
#   VSRUN_NATIVE_PROGRAM='...' cargo test --release --test native -- --ignored --nocapture
#
# Exit status 1 if a native outcome is missing.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."
cases=${1:-40} runs=${2:-60}
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- 1

wrong=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for seed in "$@"; do
    VSRUN_NATIVE_CASES=$cases VSRUN_NATIVE_RUNS=$runs VSRUN_NATIVE_SEED=$seed \
        cargo test --quiet --release --test native -- --ignored --nocapture 2>&1 | tee "$log" || true
    if ! grep -q ' programs, .* complete,' "$log"; then
        echo "seed $seed: the programs did not run" >&2
        exit 2
    fi
    awk -v seed="$seed" '/ programs, / { programs += $2; complete += $4; misuse += $6; wrong += $11 }
        END { print "seed " seed ": " programs " programs, " complete " complete, " wrong + 0 " wrong"; exit wrong > 0 }' "$log" || wrong=1
done
exit $wrong
