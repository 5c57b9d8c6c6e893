//! Colours, where they are wanted.

use std::io::IsTerminal;

/// Whether a report to `stream` is to be coloured: it is a terminal, and the user did not set NO_COLOR.
pub fn colours_for(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && !std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// Colours text, or leaves it alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint(pub bool);

impl Paint {
    fn code(self, code: &str, text: &str) -> String {
        if self.0 {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_string()
        }
    }

    /// Something bad.
    pub fn bad(self, text: &str) -> String {
        self.code("1;31", text)
    }

    /// Something good.
    pub fn good(self, text: &str) -> String {
        self.code("1;32", text)
    }

    /// A heading.
    pub fn head(self, text: &str) -> String {
        self.code("1", text)
    }

    /// Something to copy.
    pub fn copy(self, text: &str) -> String {
        self.code("36", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_where_wanted() {
        assert_eq!(Paint(false).bad("x"), "x");
        assert_eq!(Paint(true).bad("x"), "\x1b[1;31mx\x1b[0m");
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(!colours_for(&file));
    }
}
