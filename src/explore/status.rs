//! The one line on a terminal that says how far vsrun has got, written again and again in its place.
//!
//! It is cut to the terminal's width, as that is now: one that does not fit would be wrapped, and the next one would be written below it. Where
//! the terminal has become narrower since, it has wrapped the line that stands there, and all its rows are taken away.

use std::io::{self, IsTerminal, Write};

use console::Term;

/// The width of a terminal that does not tell it.
const WIDTH: usize = 80;

/// The line on standard error.
#[derive(Debug)]
pub(super) struct StatusLine {
    term: Term,
    /// Characters that stand there.
    shown: usize,
}

impl StatusLine {
    /// Nothing stands there yet. `None`: standard error is no terminal, or one that cannot write over a line.
    pub fn new() -> Option<StatusLine> {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        (io::stderr().is_terminal() && !dumb).then(|| StatusLine { term: Term::stderr(), shown: 0 })
    }

    fn width(&self) -> usize {
        self.term.size_checked().map_or(WIDTH, |(_, columns)| usize::from(columns))
    }

    /// Writes a line in the place of the one that stands there.
    pub fn set(&mut self, text: &str) {
        let (bytes, shown) = replaced(self.shown, text, self.width());
        self.shown = shown;
        // Whether anybody reads it does not matter.
        let _ = io::stderr().lock().write_all(bytes.as_bytes());
    }

    /// Takes it away.
    pub fn clear(&mut self) {
        if self.shown > 0 {
            self.set("");
        }
    }
}

/// What to write where `shown` characters of one line stand, for `text` to stand there; and how many of its characters do. The last column
/// stays free: some terminals go to the next row once it is written.
fn replaced(shown: usize, text: &str, width: usize) -> (String, usize) {
    let rows = shown.saturating_sub(1) / width.max(1);
    let up = if rows > 0 { format!("\x1b[{rows}A") } else { String::new() };
    let text: String = text.chars().take(width.saturating_sub(1)).collect();
    let n = text.chars().count();
    (format!("\r{up}\x1b[J{text}"), n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_row_whatever_the_width() {
        assert_eq!(replaced(0, "abcdef", 80), ("\r\x1b[Jabcdef".into(), 6));
        assert_eq!(replaced(6, "abcdef", 4), ("\r\x1b[1A\x1b[Jabc".into(), 3));
        // The terminal has become narrower: what stands there takes three rows now, then two.
        assert_eq!(replaced(21, "x", 10), ("\r\x1b[2A\x1b[Jx".into(), 1));
        assert_eq!(replaced(20, "", 10), ("\r\x1b[1A\x1b[J".into(), 0));
        assert_eq!(replaced(10, "", 10), ("\r\x1b[J".into(), 0));
        assert_eq!(replaced(3, "abc", 1), ("\r\x1b[2A\x1b[J".into(), 0));
        assert_eq!(replaced(3, "abc", 0).1, 0);
    }
}
