//! What a reader gets on a terminal: colours, where they are wanted, circles, and commands that can be copied into a shell.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

use crate::base::surroundings;
use crate::base::text::escape_bytes;

/// Whether a report to `stream` is to be coloured: it is a terminal that can, or the user asks for it, and the user does not
/// forbid it (`NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE`, `TERM`).
pub fn colours_for(stream: &impl RawStream) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}

/// Colours text, or leaves it alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint(pub bool);

impl Paint {
    fn styled(self, style: Style, text: &str) -> String {
        let style = if self.0 { style } else { Style::new() };
        format!("{style}{text}{style:#}")
    }

    /// Something bad.
    pub fn bad(self, text: &str) -> String {
        self.styled(AnsiColor::Red.on_default().bold(), text)
    }

    /// Something good.
    pub fn good(self, text: &str) -> String {
        self.styled(AnsiColor::Green.on_default().bold(), text)
    }

    /// A heading.
    pub fn head(self, text: &str) -> String {
        self.styled(Style::new().bold(), text)
    }

    /// Something to copy.
    pub fn copy(self, text: &str) -> String {
        self.styled(AnsiColor::Cyan.on_default(), text)
    }
}

/// How a scenario is seen again; `alone`: in a debugger, too, which nothing can be that needs the supervisor.
pub(super) fn replay_lines(scenario: Option<&Path>, alone: bool, paint: Paint) -> String {
    let Some(path) = scenario else { return "  no scenario was written\n".to_string() };
    let file = shell_path(path);
    let mut lines = vec![format!("{} replay {file}", surroundings::command())];
    // In a pack there is no gdb.
    if alone && !surroundings::is_pack() {
        lines.push(format!("vsrun debug {file}"));
        lines.push(format!(
            "gdb -ex 'handle all nostop noprint pass' -ex run --args vsrun replay --no-supervisor {file}"
        ));
    }
    let mut text: String = lines.iter().map(|line| format!("  {}\n", paint.copy(line))).collect();
    if !alone {
        text.push_str("  (in no debugger: what --toss gives needs the supervisor; 'vsrun replay --until N' shows the state after step N)\n");
    }
    text
}

/// A path as a word for the shell that no command takes for an option.
pub(crate) fn shell_path(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    if bytes.starts_with(b"-") {
        return shell_word(&[b"./", bytes].concat());
    }
    shell_word(bytes)
}

/// Bytes as one word for the shell, quoted where needed.
pub(crate) fn shell_word(bytes: &[u8]) -> String {
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

/// Who waits for whom in a circle, one link a line, with a line at the side that closes it.
pub(crate) fn circle(links: &[String]) -> String {
    let width = links.iter().map(|l| l.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for (i, link) in links.iter().enumerate() {
        let arrow = if i == 0 { ".->" } else { "|  " };
        let corner = if i + 1 == links.len() { " --." } else { "" };
        let pad = if corner.is_empty() { 0 } else { width };
        let _ = writeln!(out, "  {arrow} {link:pad$}{corner}");
    }
    let _ = writeln!(out, "  '{}'", "-".repeat(width + 6));
    out
}

/// A program and its arguments as a line for the shell.
pub fn shell_line(words: &[std::ffi::OsString]) -> String {
    words.iter().map(|word| shell_word(word.as_bytes())).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_where_wanted() {
        assert_eq!(Paint(false).bad("x"), "x");
        assert_eq!(Paint(true).bad("x"), "\x1b[1m\x1b[31mx\x1b[0m");
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(!colours_for(&file));
    }

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
