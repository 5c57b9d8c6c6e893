//! A place in code, by the symbols of its file and, where there is debug information, by source line.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::base::text::escape;

/// A place in code. Printed by source line if that is known, else by symbol.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PlaceView {
    /// What is printed before it: `memcpy, `.
    pub before: String,
    /// Function, offset, module: `worker+0x2d (prog)`; or what else there is to say, of which there is no place.
    pub symbol: String,
    /// The source lines: that of the instruction first, and where functions were inlined, those of their calls, up to the function
    /// that the symbol names. Empty: there is no debug information.
    pub lines: Vec<LineView>,
    /// Of a function that is called from several places: the call by which it got there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<LineView>,
}

/// A line of a source file.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LineView {
    /// The function that it is in, demangled; empty if unknown.
    pub function: String,
    /// The file, with its directory as the compiler gives it.
    pub file: String,
    /// The same for people: below the directory of the compilation, or the last component alone.
    pub name: String,
    /// Its number, from 1; 0: code that the compiler made for no line.
    pub line: u32,
    /// What stands there, if the file is there and is not younger than the program.
    pub text: Option<String>,
}

/// Functions inlined into each other that are told one by one.
const MOST_SHOWN: usize = 4;

impl LineView {
    /// It is in a header of a library, as far as the name of the file tells.
    pub fn is_of_library(&self) -> bool {
        const HEADERS: [&str; 4] = ["/usr/include/", "/usr/lib/gcc/", "/usr/lib/llvm-", "/rustc/"];
        HEADERS.iter().any(|directory| self.file.starts_with(directory))
    }
}

impl fmt::Display for LineView {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if !self.function.is_empty() {
            write!(f, "{} ", escape(&self.function))?;
        }
        f.write_str(&escape(&self.name))?;
        match self.line {
            0 => Ok(()),
            line => write!(f, ":{line}"),
        }
    }
}

impl fmt::Display for PlaceView {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.before)?;
        if self.lines.is_empty() {
            return f.write_str(&self.symbol);
        }
        let shown = self.shown();
        let left_out = shown.len().saturating_sub(MOST_SHOWN);
        for (i, line) in shown.iter().enumerate() {
            match i {
                0 => write!(f, "{line}")?,
                // Of many those in the middle say least.
                1 if left_out > 0 => f.write_str(", ..")?,
                _ if i <= left_out => {}
                _ => write!(f, ", inlined in {line}")?,
            }
        }
        Ok(())
    }
}

impl From<&str> for PlaceView {
    fn from(symbol: &str) -> PlaceView {
        symbol.to_string().into()
    }
}

/// Without a source line.
impl From<String> for PlaceView {
    fn from(symbol: String) -> PlaceView {
        PlaceView { symbol, ..PlaceView::default() }
    }
}

impl PlaceView {
    /// The same with something printed before it.
    pub fn behind(&self, before: impl Into<String>) -> PlaceView {
        PlaceView { before: before.into(), ..self.clone() }
    }

    /// It is in libc, the loader or the library of C++, which programs are written with.
    pub fn is_of_libc(&self) -> bool {
        const LIBRARIES: [&str; 4] = ["(libc.so", "(libstdc++.so", "(libc++.so", "(ld-linux"];
        LIBRARIES.iter().any(|library| self.symbol.contains(library))
    }

    /// Of a call stack, innermost first, the innermost place in the program's own code: rather one of which the source line is known, and
    /// rather one that is not all of a library's headers.
    pub fn of_program(frames: &[PlaceView]) -> Option<&PlaceView> {
        let program = |frame: &&PlaceView| !frame.is_of_libc();
        let known = |frame: &&PlaceView| program(frame) && !frame.lines.is_empty();
        let own = |frame: &&PlaceView| known(frame) && frame.lines.iter().any(|line| !line.is_of_library());
        frames.iter().find(own).or(frames.iter().find(known)).or(frames.iter().find(program))
    }

    /// The innermost source line that is told, without the functions that it is inlined in, and the call that is told beside it:
    /// `down accounts.c:19, from transfer :41`.
    pub fn brief(&self) -> Option<String> {
        let line = self.source()?;
        let Some(from) = &self.from else { return Some(line.to_string()) };
        let called = match from.name == line.name && from.line > 0 {
            true => format!("{} :{}", escape(&from.function), from.line),
            false => from.to_string(),
        };
        Some(format!("{line}, from {called}"))
    }

    /// The lines of a call stack's own code that are told, from this place outwards.
    pub fn calls<'a>(&'a self, callers: &'a [PlaceView]) -> impl Iterator<Item = &'a LineView> {
        let own = callers.iter().filter(|frame| !frame.is_of_libc());
        std::iter::once(self).chain(own).flat_map(PlaceView::shown)
    }

    /// The innermost source line that is told.
    pub fn source(&self) -> Option<&LineView> {
        self.shown().first().copied()
    }

    /// By symbol, whether source lines are known or not.
    pub fn by_symbol(&self) -> String {
        format!("{}{}", self.before, self.symbol)
    }

    /// What stands in the source there.
    pub fn text(&self) -> Option<&str> {
        self.shown().first()?.text.as_deref()
    }

    /// The lines that are told: without those of the headers of libraries that were inlined into others.
    fn shown(&self) -> Vec<&LineView> {
        let own: Vec<_> = self.lines.iter().filter(|line| !line.is_of_library()).collect();
        if own.is_empty() {
            self.lines.iter().collect()
        } else {
            own
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_line_if_that_is_known() {
        let line = |function: &str, line| LineView {
            function: function.into(),
            file: "/src/accounts.c".into(),
            name: "accounts.c".into(),
            line,
            text: Some("a += b;".into()),
        };
        let mut place = PlaceView::from("worker+0x2d (prog)").behind("memcpy, ");
        assert_eq!((place.to_string(), place.text()), ("memcpy, worker+0x2d (prog)".into(), None));
        place.lines = vec![line("transfer", 19), line("worker", 41)];
        assert_eq!(place.to_string(), "memcpy, transfer accounts.c:19, inlined in worker accounts.c:41");
        assert_eq!(place.by_symbol(), "memcpy, worker+0x2d (prog)");
        assert_eq!(place.text(), Some("a += b;"));
        let of_library =
            |function| LineView { file: "/usr/include/c++/12/mutex".into(), text: None, ..line(function, 9) };
        let inner = [of_library("lock"), line("transfer", 19), of_library("invoke"), line("worker", 41)];
        assert_eq!(PlaceView { lines: inner.to_vec(), ..place.clone() }.to_string(), place.to_string());
        assert_eq!(PlaceView { lines: inner.to_vec(), ..place.clone() }.text(), Some("a += b;"));
        place.lines = vec![of_library("lock"), of_library("call")];
        assert_eq!(place.to_string(), "memcpy, lock accounts.c:9, inlined in call accounts.c:9");
        place.lines = (1..=6).map(|n| line("f", n)).collect();
        let some =
            "f accounts.c:1, .., inlined in f accounts.c:4, inlined in f accounts.c:5, inlined in f accounts.c:6";
        assert_eq!(place.to_string(), format!("memcpy, {some}"));
        let called =
            PlaceView { lines: vec![line("down", 7)], from: Some(line("transfer", 19)), ..PlaceView::default() };
        assert_eq!(called.brief().as_deref(), Some("down accounts.c:7, from transfer :19"));
        let elsewhere = LineView { name: "main.c".into(), ..line("main", 3) };
        let called = PlaceView { from: Some(elsewhere), ..called };
        assert_eq!(called.brief().as_deref(), Some("down accounts.c:7, from main main.c:3"));
        assert_eq!(called.to_string(), "down accounts.c:7");
        place.lines = vec![line("", 0)];
        place.lines[0].name = "a\nb.c".into();
        assert_eq!(place.to_string(), "memcpy, a\\x0ab.c");
        let json = serde_json::to_string(&place).unwrap();
        assert_eq!(serde_json::from_str::<PlaceView>(&json).unwrap(), place);
    }
}
