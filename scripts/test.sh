#!/usr/bin/env bash
# Everything that is checked: ./scripts/test.sh
#
# Formatting, lints, documentation, all tests (unit, property, and c-tests/ from end to end), then benchmark, real programs and demo in
# their short forms. Goes on after a failure. At the end stands what the steps that failed said last, and how long each step and each binary
# of the tests took; the last line says how many steps passed and failed.
set -euo pipefail
cd "$(dirname "$0")/.."
# Nothing is built twice here: what incremental builds keep would only cost time.
export CARGO_INCREMENTAL=0

place=$(mktemp -d)
# A line for each step that is over, and one for each binary of the tests: seconds, seconds of CPU time, how it ended, name.
steps=$place/steps binaries=$place/binaries
: >"$steps" >"$binaries"

# NAME COMMAND...
step() {
    local name=$1 result=passed TIMEFORMAT='%0R %0U %0S' real user system
    shift
    printf '\n== %s: %s\n' "$name" "$*"
    # What the shell says of the time goes to the file, what the command says where it always does.
    # (The command does not get descriptor 3: programs show what they inherit.)
    { time "$@" 2>&3 3>&- || result="FAILED with status $?"; } 3>&2 2>"$place/time.$BASHPID"
    read -r real user system <"$place/time.$BASHPID"
    printf -- '-- %s %s (%d s)\n' "$name" "$result" "$real"
    printf '%d %d %s %s\n' "$real" $((user + system)) "${result%% *}" "$name" >>"$steps"
}

# NAME COMMAND...: a step beside another one. What it says comes in one piece when it is over.
beside() {
    # (Each part of a pipeline has a BASHPID of its own.)
    local said=$place/said.$BASHPID
    step "$@" >"$said" 2>&1
    flock "$place" cat "$said"
    ! tail -n 1 "$said" | grep -q '^-- .* FAILED' || tail -n 30 "$said" >>"$place/failed"
}

# FILE: its lines, the longest first.
table() {
    sort -k1,1nr "$1" | while read -r seconds cpu result name; do
        printf '%6s s %6s s  %-6s  %s\n' "$seconds" "$cpu" "$result" "$name"
    done
}

# The canary has no standard library, so it cannot unwind as a debug build of all else does.
lints() {
    cargo clippy --quiet --workspace --exclude vsrun-canary --all-targets -- -D warnings &&
        cargo clippy --quiet -p vsrun-canary --config 'profile.dev.panic="abort"' -- -D warnings
}

documentation() {
    RUSTDOCFLAGS='-D warnings' cargo doc --quiet --no-deps --workspace --lib
}

# Where there are no namespaces it says that nothing is tried.
soak() {
    ./scripts/soak.sh --short || [ $? = 2 ]
}

# The release build needs one CPU for the most part, and a directory of its own; so do the targets of the fuzzer, behind it, while tests wait.
build_log=$place/build fuzz_log=$place/fuzz
cargo build --quiet --release >"$build_log" 2>&1 &
build=$!
(
    wait_for=$build
    while kill -0 "$wait_for" 2>/dev/null; do sleep 1; done
    exec nice -n 10 ./scripts/fuzz.sh --build >"$fuzz_log" 2>&1
) &
fuzz_build=$!
cluster= others=
. scripts/own.sh
trap 'end_own "$build" "$fuzz_build" $cluster $others || :; rm -rf "$place"' EXIT
built() {
    wait "$build" && return
    local status=$?
    cat "$build_log"
    return "$status"
}

fuzz() {
    if wait "$fuzz_build"; then
        ./scripts/fuzz.sh --short
        return
    fi
    cat "$fuzz_log"
    return 1
}

# One binary after the other; the line that cargo prints before says which.
tests() {
    local status=0
    cargo test --no-fail-fast -- --quiet 2>&1 | tee "$place/tests" || status=$?
    awk '
        $1 == "Running" { name = $(NF - 1); of = $NF; gsub(/.*\/|-[0-9a-f]*\)$/, "", of); if ($2 == "unittests") name = name " of " of }
        $1 == "Doc-tests" { name = "examples of " $2 }
        /^test result:/ { seconds = $NF; sub(/s$/, "", seconds); print seconds, "-", $3 == "ok." ? "passed" : "FAILED", name }' \
        "$place/tests" >"$binaries"
    return $status
}

step format cargo fmt --all --check
step lints lints
step documentation documentation
# The release build goes on beside this, and is looked at where it is needed.
step 'build of the tests' cargo test --quiet --no-run
step build built
# What waits for other programs most of the time goes on beside the tests, which need all CPUs.
VSRUN=${CARGO_TARGET_DIR:-target}/release/vsrun beside cluster ./scripts/cluster.sh --short &
cluster=$!
step tests tests
# What `cargo bench` measures runs once, in what was built for the tests.
step benchmarks cargo test --quiet --bench costs
export VSRUN=${CARGO_TARGET_DIR:-target}/release/vsrun
# Most of these use one CPU: two of them at a time. What `benchmark` and `cost` measure beside others is no figure to be written down.
(
    beside 'real programs' ./scripts/real-programs.sh --short
    beside 'nothing left' ./scripts/leaves-nothing.sh --short
    beside pieces ./scripts/pieces.sh --short
    beside experiment ./scripts/experiment.sh --short
) &
others=$!
beside benchmark ./scripts/bench.sh --short
beside cost ./scripts/cost.sh --short
beside checkpoints ./scripts/checkpoints.sh --short
beside 'ways to begin' ./scripts/checkpoints.sh --same --short
beside states ./scripts/states.sh --short
beside steady ./scripts/soak.sh --executions 20000
beside searches ./scripts/compare-searches.sh --short
beside races ./scripts/tsan.sh --short
beside first ./scripts/first.sh --short
beside shorten ./scripts/shorten.sh --short
beside demo ./scripts/demo.sh
beside patched ./scripts/patched.sh --short
beside simulation ./scripts/simulate.sh --short
beside install ./scripts/package.sh check
wait "$cluster" "$others"
# These use all of them, and have bounds of time.
step soak soak
step fuzz fuzz

[ ! -s "$place/failed" ] || { printf '\nwhat failed said last\n'; cat "$place/failed"; }
printf '\nseconds, and of CPU time: each step (%d s in all)\n' "$SECONDS"
table "$steps"
printf '\nseconds: each binary of the tests\n'
table "$binaries"
failed=$(grep -c '^[^ ]* [^ ]* FAILED ' "$steps" || :)
printf '\n%d passed, %d failed\n' "$(($(wc -l <"$steps") - failed))" "$failed"
[ "$failed" -eq 0 ]
