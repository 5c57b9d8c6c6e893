//! Calls between loaded objects, bound before the executions are forked: each of them would look the same names up again, and copy the
//! pages that the addresses are kept on.

use super::elf::{find_map, is_named, own_base, text_by, text_of, Auxv, Image};
use super::{cstr, load, store};

const DT_NULL: u64 = 0;
const DT_PLTRELSZ: u64 = 2;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_JMPREL: u64 = 23;
const R_X86_64_JUMP_SLOT: u64 = 7;
/// Of a relocation, and of a symbol.
const ENTRY: u64 = 24;

/// What the loader would bind at the first call (elf/dl-runtime.c): calls of the executable to the shim, and those of libc to itself and the loader (`malloc`, `_dl_allocate_tls`).
/// They are bound to the first definition in the order in which the loader has loaded the objects, as it does it. The shim has no versions,
/// so that its definitions fit all calls (elf/dl-lookup.c, check_match).
pub fn calls(auxv: &Auxv) {
    let Some(program) = find_map(|_| true) else { return };
    let shim = own_base();
    let text = text_by(auxv.phdr, auxv.phnum, load(program));
    each_unbound(program, text, |name| defined_by(name, |map| load::<u64>(map) == shim));
    if let Some(libc) = find_map(|map| is_named(map, b"/libc.so.6")) {
        let own = |map| map == libc || is_named(map, b"/ld-linux-x86-64.so.2");
        each_unbound(libc, text_of(load(libc)), |name| defined_by(name, own));
    }
}

/// Where function `name` is if an object of which `wanted` is true is the first that defines it.
fn defined_by(name: &[u8], wanted: impl Fn(u64) -> bool) -> Option<u64> {
    // The vDSO is in the list, and in no scope.
    let mut last = 0;
    find_map(|map| {
        last = map;
        !is_named(map, b"linux-vdso") && (wanted(map) || Image::of_map(map).find(name).is_some())
    })?;
    if wanted(last) {
        Image::of_map(last).function(name)
    } else {
        None
    }
}

/// Writes what `find` says into each slot of the object with the loader's record at `map` that leads into its own text, from where the
/// loader is called.
fn each_unbound(map: u64, (low, high): (u64, u64), find: impl Fn(&[u8]) -> Option<u64>) {
    let (bias, mut at) = (load::<u64>(map), load::<u64>(map + 16));
    let (mut symbols, mut strings, mut slots, mut size) = (0, 0, 0, 0);
    while load::<u64>(at) != DT_NULL {
        let value = load::<u64>(at + 8);
        match load::<u64>(at) {
            DT_SYMTAB => symbols = value,
            DT_STRTAB => strings = value,
            DT_JMPREL => slots = value,
            DT_PLTRELSZ => size = value,
            _ => {}
        }
        at += 16;
    }
    for slot in (slots..slots + size).step_by(ENTRY as usize) {
        let (place, info) = (bias + load::<u64>(slot), load::<u64>(slot + 8));
        let symbol = symbols + ENTRY * (info >> 32);
        let unbound = || (low..high).contains(&load::<u64>(place));
        if info as u32 as u64 == R_X86_64_JUMP_SLOT && unbound() {
            if let Some(function) = find(cstr(strings + u64::from(load::<u32>(symbol)), 256)) {
                store(place, function);
            }
        }
    }
}
