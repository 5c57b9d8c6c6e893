//! What tests share: a directory that goes away also when a test fails, and compilers.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A fresh directory, removed when dropped.
pub struct TempDir(pub PathBuf);

impl TempDir {
    pub fn new() -> TempDir {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("vsrun-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(name);
        fs::create_dir(&dir).unwrap();
        TempDir(dir.canonicalize().unwrap())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file with the given permission bits.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>, mode: u32) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    /// Compiles C (`.c`) or C++ (`.cc`) source to `name`.
    pub fn compile(&self, name: &str, extension: &str, source: &str, flags: &[&str]) -> PathBuf {
        let input = self.file(&format!("{name}.src.{extension}"), source, 0o644);
        let output = self.0.join(name);
        let compiler = if extension == "c" { "gcc" } else { "g++" };
        let done = Command::new(compiler)
            .current_dir(&self.0)
            .arg(&input)
            .arg("-o")
            .arg(&output)
            .args(flags)
            .output()
            .unwrap();
        assert!(done.status.success(), "{compiler}: {}", String::from_utf8_lossy(&done.stderr));
        output
    }

    /// A small C program.
    pub fn program(&self, name: &str, flags: &[&str]) -> PathBuf {
        self.compile(name, "c", "int main(void){return 0;}", flags)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
