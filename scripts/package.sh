#!/usr/bin/env bash
# Packages of vsrun: ./scripts/package.sh check|crates|deb
#
# check    installs it as README says, into a directory of its own, and looks at what came: size, man pages, completions; and whether the
#          crate would have all that its build needs. Uses the release build that is there
# crates   makes both crates, builds vsrun from what was packed, and installs it from there
# deb      a Debian package with man pages and completions; needs cargo-deb and dpkg-dev
#
# Exit status 0 if all is as it should be, 1 if not, 2 for wrong usage.
set -eu
cd "$(dirname "$0")/.."

# So many bytes the binary may have. (10,400,000 before images of packs, which take two crates: hashes and archives.)
most=10700000
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() {
    echo "package: FAILED: $*" >&2
    exit 1
}

# PLACE: what stands there works.
look_at() {
    local vsrun=$1 size page
    size=$(stat -c %s "$vsrun")
    echo "package: $vsrun has $size bytes"
    [ "$size" -lt $most ] || fail "more than $most"
    "$vsrun" doctor >"$dir/doctor" || fail "vsrun doctor: $(grep '^BAD' "$dir/doctor")"
    lay_out "$vsrun" "$dir/packaging"
    for page in "$dir"/packaging/man/*.1; do
        ! grep -q "panicked" "$page" || fail "$page"
        if command -v man >/dev/null; then
            [ -z "$(LC_ALL=C.UTF-8 MANWIDTH=100 man --warnings -l "$page" 2>&1 >/dev/null)" ] || fail "man complains of $page"
        fi
    done
    bash -n "$dir/packaging/vsrun.bash" || fail "bash does not take the completions"
}

# VSRUN PLACE: man pages and completions.
lay_out() {
    mkdir -p "$2/man"
    "$1" man "$2/man"
    "$1" completions bash >"$2/vsrun.bash"
    "$1" completions zsh >"$2/_vsrun"
    "$1" completions fish >"$2/vsrun.fish"
}

case "${1:-}" in
    check)
        cargo install --locked --path . --quiet --offline --root "$dir" --no-track
        look_at "$dir/bin/vsrun"
        cargo package --list --allow-dirty --offline -p vsrun >"$dir/list"
        for pair in shim/src:shim canary/src:canary src/model/src:model; do
            (cd "${pair%%:*}" && find . -type f) | sed "s,^\.,embedded/${pair#*:}," | sort >"$dir/wanted"
            missing=$(sort "$dir/list" | comm -13 - "$dir/wanted")
            [ -z "$missing" ] || fail "the crate lacks $missing"
        done
        echo "package: the crate has $(wc -l <"$dir/list") files"
        ;;
    crates)
        cargo package --allow-dirty -p vsrun-model -p vsrun
        for crate in "$target"/package/vsrun-*.crate; do tar -xf "$crate" -C "$dir"; done
        model=$(echo "$dir"/vsrun-model-*) vsrun=$(echo "$dir"/vsrun-[0-9]*)
        # Where a registry has the model this is not needed.
        (cd "$vsrun" && CARGO_TARGET_DIR="$target/from-crate" cargo install --path . --quiet --no-track --root "$dir" \
            --config "patch.crates-io.vsrun-model.path=\"$model\"")
        look_at "$dir/bin/vsrun"
        ls -l "$target"/package/vsrun-*.crate
        ;;
    deb)
        cargo build --release --quiet
        lay_out "$target/release/vsrun" "$target/release/packaging"
        cargo deb --no-build
        ;;
    *)
        echo "usage: scripts/package.sh check|crates|deb" >&2
        exit 2
        ;;
esac
echo "package: good"
