//! Traps and faults in patched code.

use vsrun_model::watch::{Header, Mapping, Place, WATCH_ADDR};

use super::log::{is_mapped, is_patched};
use crate::sys::load;

fn header() -> Header {
    load(WATCH_ADDR)
}

/// The place of number `n` in the table at `table`.
fn place(table: [u64; 2], n: u64) -> Place {
    load(WATCH_ADDR + table[0] + size_of::<Place>() as u64 * n)
}

/// What belongs to `address` in a table that is sorted by it.
fn find(table: [u64; 2], address: u64) -> Option<u64> {
    let (mut low, mut high) = (0, table[1]);
    while low < high {
        let middle = low + (high - low) / 2;
        let there = place(table, middle);
        if there.at == address {
            return Some(there.to);
        }
        if there.at < address {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    None
}

/// Where the trap at `address` leads, if it is one of the patches.
pub fn trap(address: u64) -> Option<u64> {
    is_patched().then(|| find(header().traps, address)).flatten()
}

/// Code of a trampoline lies at `address`.
fn is_in_trampoline(address: u64) -> bool {
    let [at, count] = header().mappings;
    let mapping = |n: u64| load::<Mapping>(WATCH_ADDR + at + size_of::<Mapping>() as u64 * n);
    (0..count).map(mapping).any(|m| (m.at..m.at + m.length).contains(&address))
}

/// Where the instruction at `address` was before it was moved.
pub fn moved_from(address: u64) -> Option<u64> {
    is_mapped().then(|| find(header().moves, address)).flatten()
}

/// Where the instruction that was at `address` is now, if it was moved.
pub fn moved_to(address: u64) -> Option<u64> {
    if !is_patched() {
        return None;
    }
    let table = header().moves;
    (0..table[1]).map(|n| place(table, n)).find(|place| place.to == address).map(|place| place.at)
}

/// The instruction at `address` has faulted. If it is a check, the memory has no shadow, and is not watched: where to go on.
pub fn mends(address: u64) -> Option<u64> {
    if !is_mapped() || !is_in_trampoline(address) || moved_from(address).is_some() {
        return None;
    }
    behind_check(address)
}

/// One past the comparison at `address`, with the jump that follows it.
fn behind_check(address: u64) -> Option<u64> {
    const JUMP: u64 = 6;
    let byte = |at: u64| load::<u8>(at);
    let mut at = address;
    if byte(at) == 0x66 {
        at += 1;
    }
    if byte(at) & 0xf0 != 0x40 || !matches!(byte(at + 1), 0x80 | 0x83) || byte(at + 2) & 0xf8 != 0x78 {
        return None;
    }
    let scaled = u64::from(byte(at + 2) & 7 == 4);
    // Prefix, opcode, operand, distance, value.
    at += 5 + scaled;
    (byte(at) == 0x0f && byte(at + 1) == 0x85).then_some(at + JUMP)
}
