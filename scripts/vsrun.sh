# Sourced by scripts, in the repository: a directory that goes when the script ends (`dir`), and what is run (`vsrun`): what VSRUN names, or what is built here.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
if [ -z "${VSRUN:-}" ]; then
    cargo build --release --quiet
    VSRUN=${CARGO_TARGET_DIR:-target}/release/vsrun
fi
vsrun=$(realpath "$VSRUN")
