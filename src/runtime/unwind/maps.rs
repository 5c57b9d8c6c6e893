//! The mappings of a process.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A line of `/proc/PID/maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The first address.
    pub start: u64,
    /// The first address behind it.
    pub end: u64,
    /// Where in the file it starts.
    pub offset: u64,
    /// The mapped file; None for anonymous memory and the kernel's own (`[stack]`, `[vdso]`).
    pub path: Option<PathBuf>,
    /// Whether code in it can run.
    pub exec: bool,
}

impl Mapping {
    pub(super) fn contains(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }
}

/// The mappings in the text of `/proc/PID/maps`. Lines that are not of that form are left out.
pub fn parse_maps(text: &str) -> Vec<Mapping> {
    text.lines().filter_map(parse_mapping).collect()
}

/// `start-end rwxp offset major:minor inode      path`
fn parse_mapping(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut field = || {
        let (field, tail) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = tail;
        field
    };
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = field().split_once('-')?;
    let (permissions, offset, _device, _inode) = (field(), field(), field(), field());
    let name = rest.trim_start_matches(' ');
    Some(Mapping {
        start: hex(start)?,
        end: hex(end)?,
        offset: hex(offset)?,
        path: name.starts_with('/').then(|| path_of(name)),
        exec: permissions.contains('x'),
    })
}

/// The kernel writes a newline in a name as an octal escape, and nothing else so.
fn path_of(name: &str) -> PathBuf {
    PathBuf::from(OsString::from_vec(name.replace("\\012", "\n").into_bytes()))
}

pub(super) fn executable_at(maps: &[Mapping], address: u64) -> Option<&Mapping> {
    maps.iter().find(|m| m.exec && m.contains(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_parsed() {
        let text = "\
555555554000-555555555000 r--p 00001000 fe:00 123                        /a dir/pro\\012gram (x)\n\
7ffff7fc5000-7ffff7fc7000 r-xp 00000000 00:00 0                          [vdso]\n\
7ffff7fc9000-7ffff7fca000 rw-p 00000000 00:00 0 \n\
not a mapping\n";
        let maps = parse_maps(text);
        let first = Mapping {
            start: 0x5555_5555_4000,
            end: 0x5555_5555_5000,
            offset: 0x1000,
            path: Some(PathBuf::from("/a dir/pro\ngram (x)")),
            exec: false,
        };
        assert_eq!(maps[0], first);
        assert_eq!((maps[1].exec, &maps[1].path), (true, &None));
        assert_eq!((maps[2].exec, &maps[2].path, maps.len()), (false, &None, 3));
    }
}
