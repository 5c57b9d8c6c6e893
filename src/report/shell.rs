//! Commands that a reader can copy into a shell.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::paint::Paint;
use crate::base::text::escape_bytes;

/// How a scenario is seen again.
pub(super) fn replay_lines(scenario: Option<&Path>, paint: Paint) -> String {
    let Some(path) = scenario else { return "  no scenario was written\n".to_string() };
    let file = shell_path(path);
    let plain = paint.copy(&format!("vsrun replay {file}"));
    let gdb = paint.copy(&format!(
        "gdb -ex 'handle SIGSYS nostop noprint pass' -ex run --args vsrun replay --no-supervisor {file}"
    ));
    format!("  {plain}\n  {gdb}\n")
}

/// A path as a word for the shell that no command takes for an option.
pub(super) fn shell_path(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    if bytes.starts_with(b"-") {
        return shell_word(&[b"./", bytes].concat());
    }
    shell_word(bytes)
}

/// Bytes as one word for the shell, quoted where needed.
pub(super) fn shell_word(bytes: &[u8]) -> String {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"_-./+,:=@%".contains(b);
    if !bytes.is_empty() && bytes.iter().all(plain) {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let shown = escape_bytes(bytes);
    if shown.as_bytes() == bytes {
        return format!("'{}'", shown.replace('\'', "'\\''"));
    }
    format!("$'{}'", shown.replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_the_shell() {
        assert_eq!(shell_word(b"a-b_./c"), "a-b_./c");
        assert_eq!(shell_word(b""), "''");
        assert_eq!(shell_word(b"it's $HOME"), "'it'\\''s $HOME'");
        assert_eq!(shell_word(b"a\nb"), "$'a\\x0ab'");
        assert_eq!(shell_word(b"\xff'"), "$'\\xff\\''");
        assert_eq!(shell_path(Path::new("-rf")), "./-rf");
        assert_eq!(shell_path(Path::new("./d e/-x")), "'./d e/-x'");
    }
}
