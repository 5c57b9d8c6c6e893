//! Colours, where they are wanted.

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

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
}
