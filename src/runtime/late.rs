//! Libraries that come while the program runs (dlopen), as they are prepared at the root: each gets a place of its own, far from all others, is analysed and
//! planned like what is loaded already, and its code is patched by the library that is preloaded, as soon as the loader has mapped it
//! (`shim/src/watch/late.rs`). Which ones come an execution tells: then they are among the objects that the search knows, and it starts over.

use std::collections::BTreeSet;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use vsrun_model::watch::{Part, Place, TRAP_ALONE};

use super::loaded::{is_left_out, Changes, Loaded};
use crate::binary::elf::{ceil, floor, ElfFile, Load};

/// Where the first one lies: in memory that is watched, and where neither the kernel nor a program maps anything by itself.
const FIRST: u64 = 0x5600_0000_0000;
/// None lies there.
const LAST: u64 = 0x56f0_0000_0000;
/// Between two of them: room for trampolines beside each.
const BETWEEN: u64 = 1 << 30;
const PAGE: u64 = 4096;

/// A library that comes later, where it is to lie.
pub(super) struct Late {
    pub(super) path: PathBuf,
    /// See [`Part::file`].
    file: [u64; 5],
    /// From its first to its last page.
    pub(super) range: Range<u64>,
    bias: u64,
    loads: Vec<Load>,
    /// See [`Part::around`].
    around: u64,
    text: Vec<(u64, Vec<u8>)>,
}

/// Those of these files that can be prepared; the others are named once they come.
pub(super) fn libraries(paths: &BTreeSet<String>) -> Vec<Late> {
    let mut next = FIRST;
    let mut all = Vec::new();
    for path in paths {
        let Some(late) = library(Path::new(path), next).filter(|late| late.range.end < LAST) else { continue };
        next = (late.range.end + BETWEEN).next_multiple_of(BETWEEN);
        all.push(late);
    }
    all
}

/// The library at `path`, to lie at `base`. `None`: it is not mapped as the loader maps most, or its code is not what is in the file.
fn library(path: &Path, base: u64) -> Option<Late> {
    let elf = ElfFile::open(path).ok().filter(ElfFile::is_dyn)?;
    let loads = elf.loads();
    let (first, last) = (loads.first()?, loads.last()?);
    let ascends = loads.windows(2).all(|two| ceil(two[0].vaddr + two[0].memsz) <= floor(two[1].vaddr));
    let code_is_plain = loads.iter().filter(|l| l.executable).all(|l| !l.writable && l.memsz == l.filesz);
    let align = elf.loads_align();
    if !ascends || !code_is_plain || elf.has_text_relocations() || align > BETWEEN {
        return None;
    }
    let low = floor(first.vaddr);
    // As glibc has it (elf/dl-map-segments.h).
    let length = last.vaddr.checked_add(last.memsz)? - low;
    let around = if align > PAGE { length.max(align) + align } else { 0 };
    let (bias, end) = (base.wrapping_sub(low), base + ceil(length));
    let file = File::open(path).ok()?;
    let meta = file.metadata().ok()?;
    let code = |load: &Load| {
        let pages = floor(load.offset)..ceil(load.offset + load.filesz);
        let mut bytes = vec![0; (pages.end - pages.start) as usize];
        let there = (meta.len().min(pages.end) - pages.start) as usize;
        file.read_exact_at(&mut bytes[..there], pages.start).ok()?;
        Some((bias.wrapping_add(floor(load.vaddr)), bytes))
    };
    let text: Option<Vec<_>> = loads.iter().filter(|l| l.executable).map(code).collect();
    let file = [meta.dev(), meta.ino(), meta.len(), meta.ctime() as u64, meta.ctime_nsec() as u64];
    Some(Late { path: path.to_path_buf(), file, range: base..end, bias, loads, around, text: text? })
}

impl Late {
    /// As one that is loaded; `None`: it is one of those that are not watched.
    pub(super) fn loaded(&self) -> Option<Loaded> {
        let name = self.path.file_name()?.to_string_lossy().into_owned();
        let (path, bias, text) = (self.path.clone(), self.bias, self.text.clone());
        (!is_left_out(&name)).then_some(Loaded { path, name, bias, text, intact: true, is_late: true })
    }

    /// What /proc/PID/maps would have of it.
    pub(super) fn maps(&self) -> Vec<u8> {
        use std::os::unix::ffi::OsStrExt;
        let mut lines = Vec::new();
        let mut line = |range: Range<u64>, perms: &str, offset: u64, path: &[u8]| {
            if !range.is_empty() {
                lines.extend(format!("{:x}-{:x} {perms} {offset:08x} 00:00 0 ", range.start, range.end).bytes());
                lines.extend(path);
                lines.push(b'\n');
            }
        };
        for load in &self.loads {
            let of_file = floor(load.vaddr)..ceil(load.vaddr + load.filesz);
            let rest = of_file.end..ceil(load.vaddr + load.memsz).max(of_file.end);
            let at = |range: Range<u64>| self.bias.wrapping_add(range.start)..self.bias.wrapping_add(range.end);
            let perms = match (load.writable, load.executable) {
                (true, _) => "rw-p",
                (_, true) => "r-xp",
                _ => "r--p",
            };
            line(at(of_file), perms, floor(load.offset), self.path.as_os_str().as_bytes());
            line(at(rest), perms, 0, b"");
        }
        lines
    }

    /// Its executable parts, without their changes; with what is to be changed in them of all that is planned, and what is there before. At `traps`
    /// there is to be what a process has that makes its patches itself.
    pub(super) fn parts(&self, writes: &[(u64, Vec<u8>)], traps: &[Place]) -> Vec<(Part, Changes)> {
        let first = self.loads.first().map_or(0, |load| floor(load.offset));
        let whole = [self.range.start, self.range.end - self.range.start, first];
        let codes = self.loads.iter().filter(|load| load.executable).zip(&self.text);
        let part = |(load, (at, bytes)): (&Load, &(u64, Vec<u8>))| {
            let part = [*at, bytes.len() as u64, floor(load.offset)];
            let inside = |write: &&(u64, Vec<u8>)| (*at..*at + bytes.len() as u64).contains(&write.0);
            let mut changes = Changes::default();
            for (to, new) in writes.iter().filter(inside) {
                let from = (to - at) as usize;
                let mut new = new.clone();
                for trap in traps {
                    if let Some(byte) = new.get_mut(trap.at.wrapping_sub(*to) as usize) {
                        *byte = TRAP_ALONE;
                    }
                }
                changes.add(*to, &bytes[from..from + new.len()], &new);
            }
            (Part { file: self.file, whole, around: self.around, part, changes: [0; 2] }, changes)
        };
        codes.map(part).collect()
    }
}
