//! Variables that are vsrun's, LD_PRELOAD and GLIBC_TUNABLES: hidden from the program, given to every program it executes.

use vsrun_model::cpu::TUNABLES;

use crate::gate::{arena, end};
use crate::sys::{bytes, bytes_mut, cstr, load, raw, readable, store};

fn shim_path() -> &'static [u8] {
    let path = &arena().control.shim_path;
    let len = path.iter().position(|&b| b == 0).unwrap_or(path.len());
    &path[..len]
}

/// Their names, with what vsrun puts before the program's own value and a colon; nothing: that variable is the program's.
fn own() -> [(&'static [u8], &'static [u8]); 2] {
    let tunables = if arena().control.baseline != 0 { TUNABLES } else { b"" };
    [(b"LD_PRELOAD=", shim_path()), (b"GLIBC_TUNABLES=", tunables)]
}

/// How much of an entry is vsrun's: from where on, and how many bytes. `None`: nothing; all of it, if nothing of the program's is behind.
fn part_of(text: &[u8]) -> Option<(usize, usize)> {
    own().into_iter().filter(|(_, value)| !value.is_empty()).find_map(|(name, value)| {
        let rest = text.strip_prefix(name)?.strip_prefix(value)?;
        match rest {
            [] => Some((0, text.len())),
            [b':', ..] => Some((name.len(), value.len() + 1)),
            _ => None,
        }
    })
}

/// Takes what is vsrun's out of the environment at `envp`, in place. Where the strings stand behind each other, as the kernel lays them out, they move
/// together, so that /proc/self/environ does not show it either.
pub fn hide(envp: u64) {
    let end = end_of_strings(envp);
    let (mut from, mut table, mut to) = (envp, envp, load::<u64>(envp));
    while load::<u64>(from) != 0 {
        let entry: u64 = load(from);
        let text = cstr(entry, 1 << 20);
        let (len, (at, cut)) = (text.len(), part_of(text).unwrap_or((text.len(), 0)));
        if cut < len || len == 0 {
            let place = if end.is_some() { to } else { entry };
            shift(place, entry, at);
            shift(place + at as u64, entry + (at + cut) as u64, len - at - cut + 1);
            store(table, place);
            table += 8;
            to += (len - cut + 1) as u64;
        }
        from += 8;
    }
    if let Some(end) = end.filter(|end| *end > to) {
        bytes_mut(to, (end - to) as usize).fill(0);
        ends_at(to);
    }
    while table < from {
        store(table, 0u64);
        table += 8;
    }
}

/// The end of the strings of an environment. `None`: they do not stand behind each other, or there are none. Of what its loader is told libc has made a
/// copy elsewhere, and another thing of what stands among the others: that has the same length.
fn end_of_strings(envp: u64) -> Option<u64> {
    let (mut at, mut end) = (envp, load::<u64>(envp));
    while load::<u64>(at) != 0 {
        let text = cstr(load(at), 1 << 20);
        if load::<u64>(at) != end && !text.starts_with(b"GLIBC_TUNABLES=") {
            return None;
        }
        end += text.len() as u64 + 1;
        at += 8;
    }
    (at > envp).then_some(end)
}

/// Tells the kernel that the environment ends there (/proc/self/environ). Where it does not have that (CONFIG_CHECKPOINT_RESTORE), what is behind are zeros.
fn ends_at(end: u64) {
    const PR_SET_MM: i32 = 35;
    const PR_SET_MM_MAP: i32 = 14;
    /// Of /proc/self/stat, the fields that are told: start and end of code and data, start of the heap, of the stack, both ends of arguments and
    /// environment. The end of the heap, in the place with 0, is asked for.
    const FIELDS: [usize; 11] = [26, 27, 45, 46, 47, 0, 28, 48, 49, 50, 51];
    let mut text = [0u8; 1024];
    let fd = raw!(libc::SYS_openat, libc::AT_FDCWD, c"/proc/self/stat".as_ptr(), libc::O_RDONLY);
    if fd < 0 {
        return;
    }
    let n = raw!(libc::SYS_read, fd, text.as_mut_ptr(), text.len()).max(0) as usize;
    raw!(libc::SYS_close, fd);
    // Behind the name, which is in brackets, the third field comes.
    let Some(name) = text[..n].iter().rposition(|&c| c == b')') else { return };
    let number = |digits: &[u8]| {
        digits.iter().take_while(|c| c.is_ascii_digit()).fold(0u64, |all, c| all * 10 + u64::from(c - b'0'))
    };
    let field = |at: usize| text[(name + 2).min(n)..n].split(|&c| c == b' ').nth(at - 3).map_or(0, number);
    // Then an auxiliary vector that stays as it is: none, of no bytes; and no other file that is executed: -1.
    let mut map = [0u64; 13];
    for (word, at) in map.iter_mut().zip(FIELDS) {
        *word = if at == 0 { raw!(libc::SYS_brk, 0) as u64 } else { field(at) };
    }
    map[12] = u64::from(u32::MAX) << 32;
    if (map[9]..map[10]).contains(&end) {
        map[10] = end;
        raw!(libc::SYS_prctl, PR_SET_MM, PR_SET_MM_MAP, map.as_ptr(), size_of_val(&map), 0);
    }
}

/// Bytes move to another place, which may have some of them already if it is lower.
fn shift(to: u64, from: u64, len: usize) {
    match from.checked_sub(to) {
        Some(0) => {}
        Some(by) if by < len as u64 => bytes_mut(to, by as usize + len).copy_within(by as usize.., 0),
        _ => bytes_mut(to, len).copy_from_slice(bytes(from, len)),
    }
}

/// True if the strings of a list that ends with a null pointer can be read; no list is one of none.
pub fn is_there(list: u64) -> bool {
    let mut at = list;
    if list == 0 {
        return true;
    }
    loop {
        if readable(at, 8) < 8 {
            return false;
        }
        match load::<u64>(at) {
            0 => return true,
            text if !is_text(text) => return false,
            _ => at += 8,
        }
    }
}

/// True if a string with its NUL can be read.
fn is_text(text: u64) -> bool {
    let mut at = text;
    while readable(at, 1) == 1 {
        let rest = (4096 - at % 4096) as usize;
        if bytes(at, rest).contains(&0) {
            return true;
        }
        at += rest as u64;
    }
    false
}

/// A copy of the environment at `envp` with what is vsrun's, before what is the program's own.
pub fn with_shim(envp: u64) -> u64 {
    let is_given = |(_, value): &(&[u8], &[u8])| !value.is_empty();
    let mut n = 0;
    let mut old: [&[u8]; 2] = [b""; 2];
    while envp != 0 && load::<u64>(envp + 8 * n) != 0 {
        let text = cstr(load(envp + 8 * n), 1 << 20);
        for (old, (name, _)) in old.iter_mut().zip(own()).filter(|(_, own)| is_given(own)) {
            if let Some(value) = text.strip_prefix(name) {
                *old = value;
            }
        }
        n += 1;
    }
    let size_of = |((name, value), old): ((&[u8], &[u8]), &[u8])| name.len() + value.len() + 1 + old.len() + 1;
    let text_len: usize = own().into_iter().zip(old).map(size_of).sum();
    let size = 8 * (n as usize + 3) + text_len;
    let memory = raw!(
        libc::SYS_mmap,
        0,
        size,
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        -1i64,
        0
    );
    if memory < 0 {
        end::unsupported(&[b"no memory for the environment of a program to be executed"]);
    }
    let table = memory as u64;
    let (mut to, mut text) = (table, table + 8 * (n + 3));
    for ((name, value), old) in own().into_iter().zip(old).filter(|(own, _)| is_given(own)) {
        store(to, text);
        to += 8;
        text += write_text(text, [name, value, old]);
    }
    for i in 0..n {
        let entry: u64 = load(envp + 8 * i);
        let text = cstr(entry, 1 << 20);
        if !own().iter().any(|own| is_given(own) && text.starts_with(own.0)) {
            store(to, entry);
            to += 8;
        }
    }
    store(to, 0u64);
    table
}

/// Writes an entry with its NUL; gives its bytes.
fn write_text(at: u64, [name, value, old]: [&[u8]; 3]) -> u64 {
    let separator: &[u8] = if old.is_empty() { b"" } else { b":" };
    let parts = [name, value, separator, old, b"\0"];
    let target = bytes_mut(at, parts.iter().map(|part| part.len()).sum());
    let mut used = 0;
    for part in parts {
        target[used..used + part.len()].copy_from_slice(part);
        used += part.len();
    }
    used as u64
}
