//! Builds the shim (a C library in Rust, without std) and the canary (a program of the same kind), and leaves them, compressed, where
//! `include_bytes!` finds them.
//!
//! In the repository they are members of the workspace. A packaged crate has no directories with manifests of their own; there their sources are
//! in `embedded/`, and a workspace of them is laid out in `OUT_DIR`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Where in a workspace what `embedded/` has belongs: name there, directory here.
const MEMBERS: [(&str, &str); 3] = [("shim", "shim"), ("canary", "canary"), ("model", "src/model")];

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let packaged = !root.join("shim/Cargo.toml").exists();
    let sources: &[&str] = match packaged {
        true => &["embedded", "Cargo.toml.orig"],
        false => &[
            "shim/src",
            "shim/Cargo.toml",
            "canary/src",
            "canary/Cargo.toml",
            "src/model/src",
            "src/model/Cargo.toml",
            "Cargo.toml",
        ],
    };
    for watched in sources.iter().chain(&["Cargo.lock", "build.rs"]) {
        println!("cargo:rerun-if-changed={}", root.join(watched).display());
    }
    // Fuzz targets run no program.
    if env::var_os("CARGO_CFG_FUZZING").is_some() {
        for name in ["libvsrun.so", "libvsrun-heap.so", "vsrun-canary"] {
            fs::write(out.join(name), "").expect("the directory is there");
        }
        return;
    }
    let root = if packaged { lay_out(&root, &out.join("workspace")) } else { root };
    // All profiles share what is built here: the shim is always optimized. Each variant has a directory of its own, so that builds at
    // the same time do not take each other's.
    let all = out.ancestors().nth(4).expect("OUT_DIR is PROFILE/build/NAME/out of the target directory");
    for (features, name) in [("", "libvsrun.so"), ("heap", "libvsrun-heap.so")] {
        let target = all.join("shim").join(if features.is_empty() { "plain" } else { features });
        build_shim(&root, &target, features);
        let library = target.join("x86_64-unknown-linux-gnu/release/libvsrun_shim.so");
        pack(&library, &out.join(name));
    }
    let target = all.join("shim").join("canary");
    let mut command = cargo(&root.join("canary/Cargo.toml"), &target);
    command.args([
        "--bin",
        "vsrun-canary",
        "--config",
        "profile.release.panic=\"abort\"",
        "--config",
        "profile.release.strip=\"debuginfo\"",
        "--",
        "-Clink-arg=-Wl,--build-id",
    ]);
    run(command);
    let program = target.join("x86_64-unknown-linux-gnu/release/vsrun-canary");
    fs::copy(&program, out.join("vsrun-canary")).expect("the canary was built");
}

/// Two variants of the shim are a fifth of the binary as they are, and a twelfth when they are compressed. Nobody ships a debug build, and each of
/// the thousands of runs in the tests would unpack one of them: there they stand in the same form, without being made smaller.
fn pack(library: &Path, to: &Path) {
    let bytes = fs::read(library).expect("the shim was built");
    let level = if env::var("PROFILE").is_ok_and(|profile| profile == "debug") { 0 } else { 9 };
    fs::write(to, miniz_oxide::deflate::compress_to_vec_zlib(&bytes, level)).expect("the directory is there");
}

/// Makes a workspace of what is embedded, with the settings of the one that was packaged. Gives where it is.
fn lay_out(package: &Path, workspace: &Path) -> PathBuf {
    let embedded = package.join("embedded");
    for (name, place) in MEMBERS {
        let place = workspace.join(place);
        copy(&embedded.join(name), &place.join("src"));
        copy(&embedded.join(name).with_extension("toml"), &place.join("Cargo.toml"));
    }
    let whole = fs::read_to_string(package.join("Cargo.toml.orig")).expect("a packaged crate has it");
    let members = MEMBERS.map(|(_, place)| format!("{place:?}")).join(", ");
    let mut manifest = format!("[workspace]\nmembers = [{members}]\nresolver = \"2\"\n");
    let mut wanted = false;
    for line in whole.lines() {
        if line.starts_with('[') {
            wanted = ["[workspace.", "[profile.release]"].iter().any(|section| line.starts_with(section));
        }
        if wanted {
            manifest += line;
            manifest += "\n";
        }
    }
    fs::write(workspace.join("Cargo.toml"), manifest).expect("the directory is there");
    // The versions that were packaged, which need not be asked for anywhere.
    copy(&package.join("Cargo.lock"), &workspace.join("Cargo.lock"));
    workspace.to_path_buf()
}

/// A file, or a directory with all that is in it.
fn copy(from: &Path, to: &Path) {
    if !from.is_dir() {
        fs::copy(from, to).unwrap_or_else(|e| panic!("{}: {e}", from.display()));
        return;
    }
    fs::create_dir_all(to).expect("OUT_DIR can be written");
    for entry in fs::read_dir(from).expect("it is there") {
        let entry = entry.expect("it can be read");
        copy(&entry.path(), &to.join(entry.file_name()));
    }
}

/// `cargo rustc` for what runs in or as a program under test.
fn cargo(manifest: &Path, target: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.arg("rustc").arg("--manifest-path").arg(manifest);
    command.args(["--release", "--target", "x86_64-unknown-linux-gnu", "--target-dir"]).arg(target);
    for inherited in
        ["RUSTC_WORKSPACE_WRAPPER", "RUSTC_WRAPPER", "CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", "CARGO_TARGET_DIR"]
    {
        command.env_remove(inherited);
    }
    command
}

fn run(mut command: Command) {
    let status = command.status().expect("cargo runs");
    assert!(status.success(), "{command:?} did not build");
}

fn build_shim(root: &Path, target: &Path, features: &str) {
    let mut command = cargo(&root.join("shim/Cargo.toml"), target);
    command.args(["--lib", "--features", features]);
    // The model is a crate of its own, and each visible operation goes through a dozen of its functions.
    command.args(["--config", "profile.release.lto=\"fat\"", "--config", "profile.release.codegen-units=1"]);
    // Debuggers and reports name its functions.
    command.args(["--config", "profile.release.strip=\"debuginfo\""]);
    // The constructor must run before those of all other libraries; relocations are done at load time.
    command.args(["--", "-Clink-arg=-Wl,-z,initfirst", "-Clink-arg=-Wl,-z,now", "-Cforce-unwind-tables=yes"]);
    run(command);
}
