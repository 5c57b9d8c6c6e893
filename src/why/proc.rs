//! What /proc says of processes and threads: proc(5). Nothing here stops or changes them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// `PF_KTHREAD` of the kernel.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Some of `stat`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stat {
    pub comm: String,
    /// `R`, `S`, `D`, `T`, `t`, `Z`, ..
    pub state: char,
    pub parent: i32,
    pub is_of_kernel: bool,
    /// CPU time used, in the program and in the kernel; clock ticks.
    pub ticks: [u64; 2],
}

/// Of a process, or with `PID/task/TID` of a thread.
pub(super) fn stat(who: &str) -> Option<Stat> {
    parse_stat(&String::from_utf8_lossy(&fs::read(format!("/proc/{who}/stat")).ok()?))
}

fn parse_stat(text: &str) -> Option<Stat> {
    // The name may hold anything, brackets too.
    let (before, after) = text.rsplit_once(") ")?;
    let comm = before.split_once('(')?.1.to_string();
    let fields: Vec<&str> = after.split_ascii_whitespace().collect();
    let number = |n: usize| fields.get(n)?.parse::<u64>().ok();
    Some(Stat {
        comm,
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        is_of_kernel: number(6)? & KERNEL_THREAD != 0,
        ticks: [number(11)?, number(12)?],
    })
}

/// Where a thread is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// On a processor, or about to be.
    Running,
    /// It waits in the kernel.
    Blocked {
        /// The number of the system call; -1: it is in none.
        nr: i64,
        args: [u64; 6],
        sp: u64,
        pc: u64,
    },
    /// That must not be read, or the thread is over.
    Hidden,
}

impl Call {
    /// Arguments, stack pointer and program counter: a call that the kernel begins again has another number, but these.
    pub(super) fn place(&self) -> Option<([u64; 6], u64, u64)> {
        match self {
            Call::Blocked { args, sp, pc, .. } => Some((*args, *sp, *pc)),
            _ => None,
        }
    }
}

/// `PID/task/TID/syscall`.
pub(super) fn call(who: &str) -> Call {
    fs::read_to_string(format!("/proc/{who}/syscall")).ok().and_then(|text| parse_call(&text)).unwrap_or(Call::Hidden)
}

fn parse_call(text: &str) -> Option<Call> {
    let mut fields = text.split_ascii_whitespace();
    let first = fields.next()?;
    if first == "running" {
        return Some(Call::Running);
    }
    let nr = first.parse().ok()?;
    let numbers: Option<Vec<u64>> =
        fields.map(|field| u64::from_str_radix(field.trim_start_matches("0x"), 16).ok()).collect();
    match numbers?[..] {
        [a, b, c, d, e, f, sp, pc] => Some(Call::Blocked { nr, args: [a, b, c, d, e, f], sp, pc }),
        [sp, pc] => Some(Call::Blocked { nr, args: [0; 6], sp, pc }),
        _ => None,
    }
}

/// The lines of `status` by name.
pub(super) fn status(who: &str) -> BTreeMap<String, String> {
    let text = fs::read(format!("/proc/{who}/status")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(name, value)| (name.to_string(), value.trim().to_string())).collect()
}

/// The id of a thread in its own namespace.
pub(super) fn own_id(pid: i32, tid: i32) -> u32 {
    let status = status(&format!("{pid}/task/{tid}"));
    let own = status.get("NSpid").and_then(|ids| ids.split_ascii_whitespace().last()?.parse().ok());
    own.unwrap_or(tid as u32)
}

/// Whether a process has handlers for signals, other than glibc's own (32, 33) and for faults: who waits in it may be let go by a
/// handler.
pub(super) fn catches_signals(pid: i32) -> bool {
    let status = status(&pid.to_string());
    let caught = status.get("SigCgt").and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0);
    let left_out = [libc::SIGILL, libc::SIGTRAP, libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGSEGV, 32, 33];
    left_out.iter().fold(caught, |mask, signal| mask & !(1 << (signal - 1))) != 0
}

/// The first number of a line of `status`.
pub(super) fn number(status: &BTreeMap<String, String>, name: &str) -> Option<u64> {
    status.get(name)?.split_ascii_whitespace().next()?.parse().ok()
}

/// The process of a thread.
pub(super) fn process_of(tid: i32) -> Option<i32> {
    number(&status(&tid.to_string()), "Tgid").map(|n| n as i32)
}

/// The kernel's function in which a thread waits.
pub(super) fn kernel_function(who: &str) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{who}/wchan")).ok()?;
    (!name.is_empty() && name != "0").then_some(name)
}

/// The numbers among the names in a directory, ascending.
pub(super) fn numbers(dir: &str) -> Option<Vec<i32>> {
    let entries = fs::read_dir(dir).ok()?.flatten();
    let mut all: Vec<i32> = entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
    all.sort_unstable();
    Some(all)
}

/// The threads of a process.
pub(super) fn threads(pid: i32) -> Vec<i32> {
    numbers(&format!("/proc/{pid}/task")).unwrap_or_default()
}

/// The parent of every process that can be seen.
pub(super) fn parents() -> BTreeMap<i32, i32> {
    let all = numbers("/proc").unwrap_or_default().into_iter();
    all.filter_map(|pid| Some((pid, stat(&pid.to_string())?.parent))).collect()
}

/// `pid`, its children, and theirs.
pub(super) fn family(pid: i32, parents: &BTreeMap<i32, i32>) -> Vec<i32> {
    let mut all = vec![pid];
    let mut at = 0;
    while at < all.len() {
        let of = all[at];
        all.extend(parents.iter().filter(|&(child, &parent)| parent == of && *child != of).map(|(&child, _)| child));
        at += 1;
    }
    all
}

/// What a symbolic link of a process says: `exe`, `cwd`, `ns/ipc`.
pub(super) fn link(pid: i32, name: &str) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/{name}")).ok()
}

/// Whether a process and vsrun are in the same namespace of that kind.
pub(super) fn same_namespace(pid: i32, kind: &str) -> bool {
    let own = fs::read_link(format!("/proc/self/ns/{kind}")).ok();
    own.is_some() && own == link(pid, &format!("ns/{kind}"))
}

/// The parts of a file in which each ends with a zero byte: `cmdline`, `environ`.
pub(super) fn words(pid: i32, name: &str) -> Vec<Vec<u8>> {
    let bytes = fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    if bytes.is_empty() {
        return Vec::new();
    }
    bytes.split(|b| *b == 0).map(<[u8]>::to_vec).collect()
}

/// A path without the word by which the kernel says that the file is gone.
pub(super) fn without_deleted(path: &std::path::Path) -> (&[u8], bool) {
    let bytes = path.as_os_str().as_bytes();
    match bytes.strip_suffix(b" (deleted)") {
        Some(rest) => (rest, true),
        None => (bytes, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_anything() {
        let stat = parse_stat("12 (a) b (c) S 7 1 1 0 -1 2097216 0 0 0 0 31 42 0 0 20").unwrap();
        assert_eq!((stat.comm.as_str(), stat.state, stat.parent), ("a) b (c", 'S', 7));
        assert_eq!((stat.is_of_kernel, stat.ticks), (true, [31, 42]));
        for text in ["", "12", "12 (a) ", "12 (a) S", "12 (a) S x 1"] {
            assert_eq!(parse_stat(text), None, "{text}");
        }
    }

    #[test]
    fn system_calls() {
        assert_eq!(parse_call("running\n"), Some(Call::Running));
        let blocked = Call::Blocked { nr: 202, args: [0x10, 0x80, 2, 0, 0, 0], sp: 0x7ff0, pc: 0x400 };
        assert_eq!(parse_call("202 0x10 0x80 0x2 0x0 0x0 0x0 0x7ff0 0x400"), Some(blocked));
        let outside = Call::Blocked { nr: -1, args: [0; 6], sp: 1, pc: 2 };
        assert_eq!(parse_call("-1 0x1 0x2"), Some(outside));
        for text in ["", "x", "202 0x1", "1 0x1 0x2 zz"] {
            assert_eq!(parse_call(text), None, "{text}");
        }
    }

    #[test]
    fn a_family() {
        let parents = BTreeMap::from([(1, 0), (5, 1), (6, 5), (7, 6), (8, 1), (9, 9)]);
        assert_eq!(family(5, &parents), [5, 6, 7]);
        assert_eq!(family(9, &parents), [9]);
    }

    #[test]
    fn what_there_is_of_this_process() {
        let me = std::process::id() as i32;
        assert!(threads(me).contains(&me));
        assert_eq!(process_of(me), Some(me));
        assert!(same_namespace(me, "ipc"));
        assert!(!words(me, "cmdline").is_empty() && words(-1, "cmdline").is_empty());
        assert_eq!(stat("-1"), None);
    }
}
