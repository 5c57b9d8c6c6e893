//! LD_PRELOAD: hidden from the program, given to every program it executes.

use crate::gate::{arena, end};
use crate::sys::{bytes, bytes_mut, cstr, load, raw, readable, store};

const NAME: &[u8] = b"LD_PRELOAD=";

fn shim_path() -> &'static [u8] {
    let path = &arena().control.shim_path;
    let len = path.iter().position(|&b| b == 0).unwrap_or(path.len());
    &path[..len]
}

/// Takes the shim out of LD_PRELOAD in the environment at `envp`, in place.
pub fn hide(envp: u64) {
    let mut at = envp;
    while load::<u64>(at) != 0 {
        let entry: u64 = load(at);
        let text = cstr(entry, 1 << 20);
        if let Some(rest) = text.strip_prefix(NAME).and_then(|t| t.strip_prefix(shim_path())) {
            if rest.is_empty() {
                let mut from = at;
                while load::<u64>(from) != 0 {
                    store(from, load::<u64>(from + 8));
                    from += 8;
                }
                return;
            }
            let (len, rest_at) = (text.len(), text.len() - rest.len() + 1);
            // The rest and its NUL move down over the shim and the colon.
            bytes_mut(entry, len + 1).copy_within(rest_at.., NAME.len());
            return;
        }
        at += 8;
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

/// A copy of the environment at `envp` in which LD_PRELOAD starts with the shim.
pub fn with_shim(envp: u64) -> u64 {
    let mut n = 0;
    let mut old: &[u8] = b"";
    while envp != 0 && load::<u64>(envp + 8 * n) != 0 {
        if let Some(value) = cstr(load(envp + 8 * n), 1 << 20).strip_prefix(NAME) {
            old = value;
        }
        n += 1;
    }
    let text_len = NAME.len() + shim_path().len() + 1 + old.len() + 1;
    let size = 8 * (n as usize + 2) + text_len;
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
    let text = table + 8 * (n + 2);
    write_text(text, text_len, old);
    store(table, text);
    let mut to = table + 8;
    for i in 0..n {
        let entry: u64 = load(envp + 8 * i);
        if !cstr(entry, 1 << 20).starts_with(NAME) {
            store(to, entry);
            to += 8;
        }
    }
    store(to, 0u64);
    table
}

fn write_text(at: u64, len: usize, old: &[u8]) {
    let target = bytes_mut(at, len);
    let mut used = 0;
    let separator: &[u8] = if old.is_empty() { b"" } else { b":" };
    for part in [NAME, shim_path(), separator, old] {
        target[used..used + part.len()].copy_from_slice(part);
        used += part.len();
    }
    target[used] = 0;
}
