#!/usr/bin/env bash
# Races that ThreadSanitizer reports, against those of --race hb: ./scripts/tsan.sh [RUNS]    or --short
#
# Each racy program of c-tests below is built with -fsanitize=thread and run RUNS times (100) natively. What it reports, a pair of functions and
# the global variable if it is one, must be among what `vsrun --race hb --keep-going` reports of the same source without the sanitizer.
# What vsrun reports beyond that is printed, and no failure: 100 runs do not show all.
#
# Programs are left out in which one race orders another pair of accesses (a flag that is no atomic variable, and what it guards):
# ThreadSanitizer reports both, vsrun the one that decides the order.
#
# --short: three of them, 10 runs each. VSRUN=PATH uses that binary instead of building one. Exit status: 0 all were found, 1 not, 2 nothing to compare.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."

runs=${1:-100} short=
if [ "$runs" = --short ]; then
    runs=10 short=1
fi
case "$runs" in '' | *[!0-9]*) echo "usage: scripts/tsan.sh [RUNS] or --short" >&2; exit 2 ;; esac
programs="races:section9 races:locks races:rwlock-shared races:atomic-plain races:two races:table races:try
    race_shapes:counter race_shapes:locks race_shapes:driver race_shapes:local race_shapes:bytes race_shapes:semaphore race_shapes:join"
[ -z "$short" ] || programs='races:two race_shapes:local race_shapes:join'

if [ -z "${VSRUN:-}" ]; then
    cargo build --quiet --release
    VSRUN=${CARGO_TARGET_DIR:-target}/release/vsrun
fi
VSRUN=$(realpath "$VSRUN")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# Reports of ThreadSanitizer: the innermost functions of both accesses, in order, and the variable.
pairs_of_tsan() {
    awk '
        /WARNING: ThreadSanitizer: data race/ { n = 0; variable = "-"; wanted = 0; inside = 1 }
        inside && /(Write|Read|write|read) of size [0-9]+ at / { wanted = 1; next }
        inside && wanted && /^ *#0 / { pair[n++] = $2; wanted = 0 }
        inside && /Location is global/ { split($0, part, "\x27"); variable = part[2] == "<null>" ? "-" : part[2] }
        /^SUMMARY: ThreadSanitizer/ && inside {
            if (n == 2) {
                a = pair[0]; b = pair[1]
                if (a > b) { c = a; a = b; b = c }
                print a, b, variable
            } else print "?", $0
            inside = 0
        }'
}

# The same of vsrun.
pairs_of_vsrun() {
    sed -n 's/^    race: \(race on .*\)/\1/p; s/^RACE: \(race on .*\)/\1/p' |
        sed -E 's/^race on (\[[a-z]+\]|[^.[+: ]+)[^: ]*: ([^ +]+) [^ ]+ and ([^ +]+) .*/\2 \3 \1/' |
        awk '{ a = $1; b = $2; if (a > b) { c = a; a = b; b = c } print a, b, $3 }' | sort -u
}

bad=0 compared=0
for program in $programs; do
    source=${program%%:*} shape=${program#*:}
    for kind in plain tsan; do
        flags=$([ $kind = tsan ] && echo -fsanitize=thread || true)
        [ -x "$dir/$source-$kind" ] || gcc -O1 -g -fno-inline -pthread $flags -o "$dir/$source-$kind" "c-tests/$source.c"
    done
    for _ in $(seq "$runs"); do
        TSAN_OPTIONS=exitcode=0 timeout 20 "$dir/$source-tsan" "$shape" 2>&1 || true
    done | pairs_of_tsan | sort -u > "$dir/theirs"
    if grep -q '^?' "$dir/theirs"; then
        echo "$program: a report of ThreadSanitizer is not understood: $(grep '^?' "$dir/theirs" | head -1)"
        bad=1
    fi
    timeout 120 "$VSRUN" --race hb --keep-going --time 60 --scenario-dir "$dir" "$dir/$source-plain" "$shape" \
        2>&1 | pairs_of_vsrun > "$dir/ours" || true
    n=0 missing=
    while read -r a b variable; do
        n=$((n + 1))
        # Of what is no global variable only the functions are compared.
        [ "$variable" = - ] && wanted="^$a $b " || wanted="^$a $b $variable\$"
        grep -q "$wanted" "$dir/ours" || missing="$missing ($a $b $variable)"
    done < "$dir/theirs"
    compared=$((compared + n))
    echo "$program: ThreadSanitizer $n, vsrun $(wc -l < "$dir/ours")${missing:+, missing$missing}"
    [ -z "$missing" ] || bad=1
done
echo "$compared pairs of ThreadSanitizer compared"
[ "$compared" -gt 0 ] || exit 2
exit $bad
