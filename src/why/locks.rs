//! Locks on files, as `/proc/locks` has them: who has one, and who waits for it.

use std::fs;

/// A line of `/proc/locks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// A lock and those that wait for it have the same number.
    number: u64,
    pub waits: bool,
    /// `FLOCK`, `POSIX`, `OFDLCK`.
    pub kind: String,
    /// The process; -1: an open file description's, of nobody in particular.
    pid: i32,
    inode: u64,
}

pub(super) fn parse(line: &str) -> Option<Line> {
    let mut fields = line.split_ascii_whitespace();
    let number = fields.next()?.strip_suffix(':')?.parse().ok()?;
    let first = fields.next()?;
    let waits = first == "->";
    let kind = if waits { fields.next()? } else { first };
    let (_how, _mode) = (fields.next()?, fields.next()?);
    let pid = fields.next()?.parse().ok()?;
    let inode = fields.next()?.rsplit(':').next()?.parse().ok()?;
    Some(Line { number, waits, kind: kind.to_string(), pid, inode })
}

/// The processes that have the locks for which `pid` waits on the file with that inode; -1 for a lock of an open file
/// description. `None`: it does not wait there, as far as the kernel says.
pub(super) fn holders(pid: i32, inode: u64) -> Option<Vec<i32>> {
    holders_in(&fs::read_to_string("/proc/locks").unwrap_or_default(), pid, inode)
}

fn holders_in(text: &str, pid: i32, inode: u64) -> Option<Vec<i32>> {
    let lines: Vec<Line> = text.lines().filter_map(parse).collect();
    let waiting = lines.iter().find(|line| line.waits && line.pid == pid && line.inode == inode)?;
    let has = |line: &&Line| !line.waits && line.number == waiting.number;
    let mut pids: Vec<i32> = lines.iter().filter(has).map(|line| line.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    Some(pids)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
1: POSIX  ADVISORY  WRITE 101 08:01:77 0 EOF
1: -> POSIX  ADVISORY  WRITE 102 08:01:77 0 9
2: FLOCK  ADVISORY  WRITE 102 08:01:78 0 EOF
2: -> FLOCK  ADVISORY  WRITE 101 08:01:78 0 EOF
3: OFDLCK ADVISORY  READ -1 00:1b:79 0 EOF
3: -> OFDLCK ADVISORY  WRITE -1 00:1b:79 0 EOF
what is this
";

    #[test]
    fn who_has_what_others_wait_for() {
        assert_eq!(holders_in(TEXT, 102, 77), Some(vec![101]));
        assert_eq!(holders_in(TEXT, 101, 78), Some(vec![102]));
        assert_eq!(holders_in(TEXT, -1, 79), Some(vec![-1]));
        assert_eq!(holders_in(TEXT, 101, 77), None);
        assert_eq!(holders_in("", 1, 1), None);
    }
}
