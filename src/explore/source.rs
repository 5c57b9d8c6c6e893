//! The source around a place, for people.

use std::path::Path;

use crate::base::files;
use crate::finding::PlaceView;

/// Bytes of a source file.
const LARGEST: u64 = 16 << 20;
/// A tab goes to the next column that is a multiple of it.
const TAB: usize = 4;

/// Some lines of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The file for people.
    pub name: String,
    /// The line that it is about, from 1.
    pub line: u32,
    /// Lines with their numbers.
    pub lines: Vec<(u32, String)>,
}

impl Source {
    /// At most so many lines before and behind that of a place. `None`: it has no line, or the file is not there or younger than the program.
    pub fn around(place: &PlaceView, lines: u32) -> Option<Source> {
        // Its text is known if the file is the one that was compiled.
        let at = place.source().filter(|line| line.text.is_some())?;
        let bytes = files::read(Path::new(&at.file), LARGEST).ok()?;
        let first = at.line.saturating_sub(lines).max(1);
        let some = (1u32..).zip(bytes.split(|byte| *byte == b'\n')).skip(first as usize - 1);
        let some = some.take_while(|(n, _)| *n <= at.line.saturating_add(lines));
        let text = |bytes: &[u8]| untabbed(String::from_utf8_lossy(bytes).trim_end());
        Some(Source { name: at.name.clone(), line: at.line, lines: some.map(|(n, line)| (n, text(line))).collect() })
    }
}

/// With spaces for tabs.
fn untabbed(line: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    for c in line.chars() {
        let width = if c == '\t' { TAB - column % TAB } else { 1 };
        column += width;
        match c {
            '\t' => out.extend(std::iter::repeat_n(' ', width)),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;
    use crate::finding::LineView;

    #[test]
    fn lines_around_a_place() {
        let dir = TempDir::new();
        let file = dir.path().join("a.c");
        std::fs::write(&file, "one\n\ttwo\nth\tree  \nfour\n").unwrap();
        let at = |line, text: Option<&str>| {
            let line = LineView {
                file: file.to_string_lossy().into_owned(),
                name: "a.c".into(),
                line,
                text: text.map(String::from),
                ..LineView::default()
            };
            PlaceView { lines: vec![line], ..PlaceView::default() }
        };
        let source = Source::around(&at(2, Some("two")), 1).unwrap();
        let lines: Vec<(u32, &str)> = source.lines.iter().map(|(n, line)| (*n, line.as_str())).collect();
        assert_eq!((source.line, lines), (2, vec![(1, "one"), (2, "    two"), (3, "th  ree")]));
        assert_eq!(Source::around(&at(1, Some("one")), 0).unwrap().lines, [(1, "one".to_string())]);
        assert_eq!(Source::around(&at(2, None), 1), None, "the file is not the one that was compiled");
        assert_eq!(Source::around(&PlaceView::default(), 1), None);
    }
}
