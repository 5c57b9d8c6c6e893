#!/usr/bin/env bash
# Random bytes for all that vsrun reads from outside: ./scripts/fuzz.sh [SECONDS [TARGET...]]    or --short, or --build
#
# For SECONDS (default 600) in all, libFuzzer gives inputs to each TARGET in turn; for each is printed how many were tried and how many
# survived: no panic (overflow of a sum is one), no 3 s for one of them, no 2 GB. The targets are in fuzz/src/targets:
#   scenario     scenario files: what `show` prints of them, the schedules that a replay takes from them
#   saved        saved searches: the header
#   search       saved searches: the state of each search that can be saved; what is accepted goes on, on programs of the model
#   pieces       pieces.json: what a search was split into
#   swarm        files of a swarm: its description, tasks, what these came to
#   annotations  files of --annotations
#   elf          ELF files: checks before the start, libraries, fingerprint, symbols, source lines
#   allowed      ELF files: what their threads may do (persistent sets)
#   sites        ELF files: access sites, and how they are patched
#   unwind       unwind tables: call stacks
#   ldcache      the loader's cache of libraries; the map of a process
#   arguments    the command line
# --short: a few thousand inputs for each, with a fixed seed. --build: the targets are built, and that is all.
#
# Inputs to begin with are in fuzz/corpus; what is found beyond them stays in target/fuzz/corpus, and a longer run goes on from there.
# `cargo fuzz run -s none TARGET` runs one, too. JOBS=N runs that many targets at a time (default: all CPUs). Exit status 1 if an input did not
# survive; its file is named, and tests/search/corpus.rs runs it, too, once it lies in fuzz/corpus/TARGET.
# Not here, for it is not built yet: the debugger's JSON.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."

all=(scenario saved search pieces swarm annotations elf allowed sites unwind ldcache arguments)
seconds=600 short=0 only_build=0
if [ "${1:-}" = --short ]; then
    short=1
    shift
elif [ "${1:-}" = --build ]; then
    only_build=1
    shift
elif [ $# -gt 0 ]; then
    seconds=$1
    shift
fi
[ $# -gt 0 ] || set -- "${all[@]}"
case "$seconds" in '' | *[!0-9]*) set -- '' ;; esac
for target; do
    case " ${all[*]} " in
        *" $target "*) ;;
        *) sed -n '2,/^set -eu/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
    esac
done

# What cargo-fuzz builds with, and works with a compiler of any channel: counters and comparisons for libFuzzer.
flags='-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters'
flags="$flags -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing"
target=${CARGO_TARGET_DIR:-target}
RUSTFLAGS=$flags cargo build --quiet --release --locked --manifest-path fuzz/Cargo.toml \
    --target x86_64-unknown-linux-gnu --target-dir "$target"
[ $only_build = 0 ] || exit 0
binaries=$target/x86_64-unknown-linux-gnu/release
directory=$target/fuzz

# Inputs that are read as files lie in memory.
place=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d)
trap 'rm -rf "$place"' EXIT
export TMPDIR=$place
jobs=${JOBS:-$(nproc)}
each=$((seconds * jobs / $#))

# How many inputs a target gets in a short run: some seconds' worth.
short_of() {
    case $1 in
        annotations | ldcache | pieces | swarm) echo 100000 ;;
        saved | unwind | scenario | search) echo 20000 ;;
        allowed | sites) echo 1000 ;;
        *) echo 4000 ;;
    esac
}

run() {
    local target=$1 kept=$directory/corpus/$1 options
    if [ $short = 1 ]; then
        kept=$place/$target
        options=(-seed=1 -runs="$(short_of "$target")")
    else
        options=(-max_total_time="$((each > 0 ? each : 1))")
    fi
    mkdir -p "$kept" "$directory"
    local status=0 tried survived
    "$binaries/$target" "${options[@]}" -timeout=3 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$directory/$target-" "$kept" "fuzz/corpus/$target" >"$place/$target.log" 2>&1 || status=$?
    tried=$(sed -n 's/^stat::number_of_executed_units: *//p' "$place/$target.log")
    survived=${tried:-0}
    if [ $status != 0 ]; then
        survived=$((survived > 0 ? survived - 1 : 0))
        [ -n "$tried" ] || tail -n 3 "$place/$target.log"
        echo "FAILED $target: $(grep -a -m 1 -A 1 'panicked\|ERROR: libFuzzer\|memory allocation' "$place/$target.log" | tr '\n' ' ' | cut -c1-300)"
        sed -n 's/.*Test unit written to /FAILED the input: /p' "$place/$target.log"
    fi
    echo "$target: ${tried:-0} tried, $survived survived"
    return $status
}

failed=0
for target; do
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
        wait -n || failed=1
    done
    run "$target" &
done
while [ -n "$(jobs -p)" ]; do
    wait -n || failed=1
done
exit $failed
