#!/usr/bin/env bash
# Everything that is checked: ./scripts/test.sh
#
# Formatting, lints, documentation, all tests (unit, property, and c-tests/ from end to end), then benchmark, real programs and demo in
# their short forms. Goes on after a failure; the last line says how many steps passed and failed.
set -eu
cd "$(dirname "$0")/.."
# Nothing is built twice here: what incremental builds keep would only cost time.
export CARGO_INCREMENTAL=0

passed=0 failed=0

# NAME COMMAND...
step() {
    local name=$1 begin=$SECONDS result=passed
    shift
    printf '\n== %s: %s\n' "$name" "$*"
    "$@" || result="FAILED with status $?"
    printf -- '-- %s %s (%d s)\n' "$name" "$result" $((SECONDS - begin))
    if [ "$result" = passed ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
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
build_log=$(mktemp) fuzz_log=$(mktemp)
cargo build --quiet --release >"$build_log" 2>&1 &
build=$!
(
    wait_for=$build
    while kill -0 "$wait_for" 2>/dev/null; do sleep 1; done
    exec nice -n 10 ./scripts/fuzz.sh --build >"$fuzz_log" 2>&1
) &
fuzz_build=$!
trap 'kill "$build" "$fuzz_build" 2>/dev/null || :; rm -f "$build_log" "$fuzz_log"' EXIT
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

step format cargo fmt --all --check
step lints lints
step documentation documentation
step build built
step tests cargo test --quiet --no-fail-fast
step benchmark ./scripts/bench.sh --short
step cost ./scripts/cost.sh --short
step searches ./scripts/compare-searches.sh --short
step 'real programs' ./scripts/real-programs.sh --short
step 'nothing left' ./scripts/leaves-nothing.sh --short
step patched ./scripts/patched.sh --short
step races ./scripts/tsan.sh --short
step shorten ./scripts/shorten.sh --short
step soak soak
step fuzz fuzz
step install ./scripts/package.sh check
step demo ./scripts/demo.sh

printf '\n%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
