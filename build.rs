//! Builds the shim (a C library in Rust, without std) and the canary (a program of the same kind), and leaves them where
//! `include_bytes!` finds them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    for watched in [
        "shim/src",
        "shim/Cargo.toml",
        "canary/src",
        "canary/Cargo.toml",
        "src/model/src",
        "src/model/Cargo.toml",
        "Cargo.lock",
        "build.rs",
    ] {
        println!("cargo:rerun-if-changed={}", root.join(watched).display());
    }
    // Fuzz targets run no program.
    if env::var_os("CARGO_CFG_FUZZING").is_some() {
        for name in ["libvsrun.so", "libvsrun-heap.so", "vsrun-canary"] {
            fs::write(out.join(name), "").expect("the directory is there");
        }
        return;
    }
    // All profiles share what is built here: the shim is always optimized. Each variant has a directory of its own, so that builds at
    // the same time do not take each other's.
    let all = out.ancestors().nth(4).expect("OUT_DIR is PROFILE/build/NAME/out of the target directory");
    for (features, name) in [("", "libvsrun.so"), ("heap", "libvsrun-heap.so")] {
        let target = all.join("shim").join(if features.is_empty() { "plain" } else { features });
        build_shim(&root, &target, features);
        let library = target.join("x86_64-unknown-linux-gnu/release/libvsrun_shim.so");
        fs::copy(&library, out.join(name)).expect("the shim was built");
    }
    let target = all.join("shim").join("canary");
    let mut command = cargo(&root.join("canary/Cargo.toml"), &target);
    command.args([
        "--bin",
        "vsrun-canary",
        "--config",
        "profile.release.panic=\"abort\"",
        "--",
        "-Clink-arg=-Wl,--build-id",
    ]);
    run(command);
    let program = target.join("x86_64-unknown-linux-gnu/release/vsrun-canary");
    fs::copy(&program, out.join("vsrun-canary")).expect("the canary was built");
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
    // The constructor must run before those of all other libraries; relocations are done at load time.
    command.args(["--", "-Clink-arg=-Wl,-z,initfirst", "-Clink-arg=-Wl,-z,now", "-Cforce-unwind-tables=yes"]);
    run(command);
}
