//! The first line of a script, read as the kernel reads it (`fs/binfmt_script.c`).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// As much of the file as the kernel looks at.
pub(super) const LINE_MAX: usize = 256;

/// `#!interpreter argument`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub interpreter: PathBuf,
    pub argument: Option<OsString>,
}

/// What the start of a file (up to `LINE_MAX` bytes) says: Ok(None) if it is no script.
pub(super) fn parse(start: &[u8]) -> Result<Option<Line>, &'static str> {
    let Some(rest) = start.strip_prefix(b"#!") else { return Ok(None) };
    let end = rest.iter().position(|b| matches!(b, b'\n' | 0));
    let line = trim(&rest[..end.unwrap_or(rest.len())]);
    let blank = line.iter().position(|b| is_blank(*b));
    if line.is_empty() {
        return Err("a script whose #! names no interpreter; write its path after #!");
    }
    if end.is_none() && blank.is_none() && start.len() >= LINE_MAX {
        return Err("a script whose #! line is too long; the kernel reads 256 bytes");
    }
    let (interpreter, argument) = line.split_at(blank.unwrap_or(line.len()));
    let os = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let argument = trim(argument);
    Ok(Some(Line { interpreter: os(interpreter).into(), argument: (!argument.is_empty()).then(|| os(argument)) }))
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn trim(bytes: &[u8]) -> &[u8] {
    let first = bytes.iter().position(|b| !is_blank(*b)).unwrap_or(bytes.len());
    let end = bytes.iter().rposition(|b| !is_blank(*b)).map_or(first, |last| last + 1);
    &bytes[first..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> (String, Option<String>) {
        let line = parse(text.as_bytes()).unwrap().unwrap();
        (line.interpreter.to_str().unwrap().to_string(), line.argument.map(|a| a.into_string().unwrap()))
    }

    #[test]
    fn as_the_kernel_splits() {
        assert_eq!(line("#!/bin/sh\necho"), ("/bin/sh".into(), None));
        assert_eq!(line("#! \t/usr/bin/env  python3 -u \t\nx"), ("/usr/bin/env".into(), Some("python3 -u".into())));
        assert_eq!(line("#!/bin/sh"), ("/bin/sh".into(), None));
        assert_eq!(line("#!/bin/sh\r\n"), ("/bin/sh\r".into(), None));
        assert_eq!(parse(b"echo"), Ok(None));
        assert_eq!(parse(b""), Ok(None));
    }

    #[test]
    fn refused() {
        assert!(parse(b"#!\n/bin/sh").is_err());
        assert!(parse(b"#!  \t").is_err());
        assert!(parse([b"#!/".to_vec(), vec![b'a'; LINE_MAX - 3]].concat().as_slice()).is_err());
    }
}
