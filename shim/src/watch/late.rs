//! Libraries that the program loads later, and that the tool knows: each gets the place that the tool has chosen for it, wherever the kernel would
//! have put it in this execution, and its code is patched when it is mapped.
//!
//! NOTE [Late] The loader maps a library as a whole first, where the kernel likes, or takes memory for it where it has to be aligned: the shim
//! names the place. Then it maps each segment over that. An executable one is patched at once: nothing of it has been executed, and code without
//! relocations, which is all that the tool prepares, is as it is in the file from then on. What comes from another file, lies elsewhere or is not
//! what the tool has read is not patched. Unmapped, the patches are gone with the code.

use vsrun_model::watch::{Change, Header, Part, WATCH_ADDR};

use super::log::{is_patched, knows_libraries};
use crate::sys::{load, raw, readable, store};

const PAGE: u64 = 4096;

fn parts() -> impl Iterator<Item = Part> {
    let [at, count] = match knows_libraries() {
        true => load::<Header>(WATCH_ADDR).parts,
        false => [0; 2],
    };
    (0..count).map(move |n| load(WATCH_ADDR + at + size_of::<Part>() as u64 * n))
}

fn changes(part: &Part) -> impl Iterator<Item = Change> + Clone {
    let [at, count] = part.changes;
    (0..count).map(move |n| load(WATCH_ADDR + at + size_of::<Change>() as u64 * n))
}

/// What stands in [`Part::file`].
fn file(fd: i32) -> Option<[u64; 5]> {
    let mut stat = [0u64; 18];
    (raw!(libc::SYS_fstat, fd, stat.as_mut_ptr()) == 0).then(|| [stat[0], stat[1], stat[6], stat[13], stat[14]])
}

fn whole_pages(length: u64) -> u64 {
    length.next_multiple_of(PAGE)
}

/// mmap with these arguments maps a library that the tool knows, anywhere: where it is to lie.
pub fn place(a: [u64; 6]) -> Option<u64> {
    let [at, length, prot, flags, fd, offset] = a;
    let kind = flags as i32 & (libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_TYPE);
    if at != 0 || !is_patched() {
        return None;
    }
    if kind == libc::MAP_PRIVATE | libc::MAP_ANONYMOUS && prot as i32 == libc::PROT_NONE {
        return parts().find(|part| part.around == length).map(|part| part.whole[0]);
    }
    if kind != libc::MAP_PRIVATE {
        return None;
    }
    let size = whole_pages(length);
    let mut fitting = parts().filter(|part| part.whole[1..] == [size, offset]).peekable();
    fitting.peek()?;
    let file = file(fd as i32)?;
    fitting.find(|part| part.file == file).map(|part| part.whole[0])
}

/// Patches what mmap has mapped at `at`, executable, from a file. False: it is none of what the tool knows.
pub fn patch(at: u64, length: u64, fd: i32, offset: u64) -> bool {
    let size = whole_pages(length);
    let fits = |part: &Part| part.part[0] == at && part.part[1] <= size && part.part[2] == offset;
    let Some(part) = parts().find(fits).filter(|part| is_patched() && file(fd) == Some(part.file)) else {
        return false;
    };
    changes(&part).all(|c| has(&c, c.was)) && write(&part, |change| change.is)
}

/// Where the words of so many bytes begin, and the bytes behind the last whole word.
fn words_and_bytes(length: u64) -> (impl Iterator<Item = u64>, impl Iterator<Item = u64>) {
    let words = length & !7;
    ((0..words).step_by(8), words..length)
}

/// At the place of the change is what lies at that offset in the file.
fn has(change: &Change, offset: u64) -> bool {
    let (mut words, mut bytes) = words_and_bytes(change.length);
    let (at, from) = (change.at, WATCH_ADDR + offset);
    readable(at, change.length) == change.length
        && words.all(|n| load::<u64>(at + n) == load::<u64>(from + n))
        && bytes.all(|n| load::<u8>(at + n) == load::<u8>(from + n))
}

/// Writes what the changes of a part say, over code that is executable and can be read before and afterwards.
fn write(part: &Part, what: fn(&Change) -> u64) -> bool {
    let [at, size, _] = part.part;
    let text = libc::PROT_READ | libc::PROT_EXEC;
    if raw!(libc::SYS_mprotect, at, size, text | libc::PROT_WRITE) < 0 {
        return false;
    }
    for change in changes(part) {
        let from = WATCH_ADDR + what(&change);
        let (words, bytes) = words_and_bytes(change.length);
        words.for_each(|n| store(change.at + n, load::<u64>(from + n)));
        bytes.for_each(|n| store(change.at + n, load::<u8>(from + n)));
    }
    raw!(libc::SYS_mprotect, at, size, text) == 0
}

/// There are patches in this part.
fn is_there(part: &Part) -> bool {
    part.changes[1] > 0 && changes(part).all(|c| has(&c, c.is))
}

/// There are such patches in this memory.
pub fn holds_late_patches(start: u64, length: u64) -> bool {
    let end = start.saturating_add(length);
    parts().any(|part| part.part[0] < end && start < part.part[0] + part.part[1] && is_there(&part))
}

/// Puts back what was there before.
pub fn undo() {
    parts().filter(is_there).for_each(|part| {
        write(&part, |change| change.was);
    });
}
