//! Names that come from outside (paths, arguments, symbols) made safe to print on one line.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

/// A number of something: `1 state`, `2 states`.
pub fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// `name` on one line and reversible: control characters, bytes that are not UTF-8, characters that reorder or
/// break lines, and the backslash itself become `\xNN`, one for each byte.
pub fn escape(name: impl AsRef<OsStr>) -> String {
    escape_bytes(name.as_ref().as_bytes())
}

/// The same for bytes that are not known to be a path.
pub fn escape_bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_plain(c) {
                out.push(c);
            } else {
                push_hex(&mut out, c.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        push_hex(&mut out, chunk.invalid());
    }
    out
}

/// Text of several words on one line: what [`escape`] does, but a backslash stays.
pub fn one_line(text: &str) -> String {
    text.split('\\').map(|part| escape_bytes(part.as_bytes())).collect::<Vec<_>>().join("\\")
}

/// Characters that show as themselves and leave the line alone.
fn is_plain(c: char) -> bool {
    let breaks_or_reorders = matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !c.is_control() && c != '\\' && !breaks_or_reorders
}

fn push_hex(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        let _ = write!(out, "\\x{byte:02x}"); // writing to a String cannot fail
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_stay() {
        assert_eq!(escape("./a b/prögram-1"), "./a b/prögram-1");
        assert_eq!(escape(""), "");
    }

    #[test]
    fn everything_else_is_hex() {
        assert_eq!(escape("a\nb\tc\\d\x7f"), "a\\x0ab\\x09c\\x5cd\\x7f");
        assert_eq!(escape_bytes(b"x\xff\xfe.y"), "x\\xff\\xfe.y");
        assert_eq!(escape("a\u{202e}b"), "a\\xe2\\x80\\xaeb");
    }
}
