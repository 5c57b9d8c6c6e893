//! Which pages of code and constants executions use, so that the root gives up the others: see [`Pages`].

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use nix::unistd::Pid;
use vsrun_model::arena::{Command, Pages, MAX_PAGES, MAX_RANGES, PAGE};

use super::setup::StartError;
use super::worker::Worker;
use crate::binary::modules::Mapping;

/// After so many untraced executions of a worker one tells what it uses. Not the first, which are guarded and do more; one early, and one
/// more, since the first may have come to its end before it had done much. Each takes some ten times as long as others.
const TELLING: [u32; 2] = [6, 60];

/// What stands in the file `pagemap` for a page: it is there; it is the file's, not written to. For one that is nowhere it is 0.
const PRESENT: u64 = 1 << 63;
const OF_FILE: u64 = 1 << 61;
const NOWHERE: u64 = 0;

impl Worker {
    /// What the root is asked for the next untraced execution; before that, what the last one has told is made use of. What stands in the
    /// arena a program may have overwritten, so the root is told what the worker itself has found; only what is used comes from there.
    pub(super) fn tend_pages(&mut self) -> io::Result<Command> {
        if self.known.told {
            self.keep_pages()?;
        }
        if self.known.runs == TELLING[0] {
            let maps = std::fs::read(format!("/proc/{}/maps", self.root)).unwrap_or_default();
            find(&mut self.known.pages, &Mapping::parse_all(&maps), &entries(self.root));
        }
        let tells = self.known.pages.len > 0 && TELLING.contains(&self.known.runs);
        self.known.runs = self.known.runs.saturating_add(1);
        self.known.told = tells;
        if !tells {
            return Ok(Command::RUN);
        }
        self.arena.control.pages = *self.known.pages;
        Ok(Command::RUN_TELLING)
    }

    /// Lets the root keep what is used alone.
    fn keep_pages(&mut self) -> io::Result<()> {
        let told = self.arena.control.pages.used;
        self.known.pages.used.iter_mut().zip(told).for_each(|(bits, told)| *bits |= told);
        spare_written(&mut self.known.pages, &entries(self.root));
        self.arena.control.pages = *self.known.pages;
        match self.ask_root(Command::KEEP) {
            // It does so before it forks the next execution, which is given up at once then.
            Ok(()) | Err(StartError::Interrupted) => Ok(()),
            Err(e) => Err(io::Error::other(e.to_string())),
        }
    }
}

/// What the kernel tells of the page at an address of that process; 0: nothing.
fn entries(root: Pid) -> impl Fn(u64) -> u64 {
    /// So many are read at a time.
    const PIECE: u64 = 512;
    let file = File::open(format!("/proc/{root}/pagemap"));
    let read = RefCell::new((u64::MAX, Vec::new()));
    move |at| {
        let (page, mut read) = (at / PAGE, read.borrow_mut());
        let first = page - page % PIECE;
        if read.0 != first {
            let mut bytes = vec![0; 8 * PIECE as usize];
            let got = file.as_ref().map_or(0, |file| file.read_at(&mut bytes, first * 8).unwrap_or(0));
            bytes.truncate(got);
            *read = (first, bytes);
        }
        let entry = read.1.chunks_exact(8).nth((page - first) as usize);
        entry.and_then(|bytes| bytes.try_into().ok()).map_or(NOWHERE, u64::from_le_bytes)
    }
}

fn is_clean(entry: u64) -> bool {
    entry & (PRESENT | OF_FILE) == PRESENT | OF_FILE
}

/// Finds the mappings that are copied with each fork: those of files that nobody can write to, of which some page has been written.
fn find(pages: &mut Pages, mappings: &[Mapping], entry: &dyn Fn(u64) -> u64) {
    (pages.len, pages.used) = (0, [0; MAX_PAGES / 64]);
    let mut total = 0;
    for m in mappings {
        let fixed = m.file().is_some() && !m.perms.contains('w') && m.perms.ends_with('p');
        let count = (m.end - m.start) / PAGE;
        if !fixed || total + count > MAX_PAGES as u64 || pages.len as usize == MAX_RANGES {
            continue;
        }
        let all: Vec<u64> = (0..count).map(|n| entry(m.start + n * PAGE)).collect();
        let written = all.iter().any(|&e| e & PRESENT != 0 && !is_clean(e));
        if written && all.iter().any(|&e| is_clean(e)) {
            pages.ranges[pages.len as usize] = (m.start, count);
            pages.len += 1;
            total += count;
        }
    }
    spare_written(pages, entry);
}

/// Takes for used what is not as it is in its file: it would be lost.
fn spare_written(pages: &mut Pages, entry: &dyn Fn(u64) -> u64) {
    let is_written = |entry: u64| entry != NOWHERE && !is_clean(entry);
    let spared: Vec<usize> = pages.all().filter(|&(at, _)| is_written(entry(at))).map(|(_, n)| n).collect();
    spared.into_iter().for_each(|n| pages.set_used(n));
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITTEN: u64 = PRESENT;
    const CLEAN: u64 = PRESENT | OF_FILE;

    fn pages() -> Box<Pages> {
        Box::new(Pages { len: 7, used: [1; MAX_PAGES / 64], ..Pages::NONE })
    }

    #[test]
    fn mappings_that_are_copied_with_a_fork_are_found_and_what_was_written_is_spared() {
        let maps = b"10000-14000 r-xp 0 fe:00 1 /lib/a\n\
                     20000-22000 r--p 0 fe:00 1 /lib/nothing written\n\
                     30000-32000 rw-p 0 fe:00 1 /lib/writable\n\
                     40000-42000 r--s 0 fe:00 1 /lib/shared\n\
                     50000-52000 r-xp 0 00:00 0 [vdso]\n\
                     60000-62000 r--p 0 fe:00 1 /lib/b\n";
        let entry = |at: u64| match at {
            0x10000 | 0x12000 | 0x20000 | 0x21000 | 0x61000 => CLEAN,
            0x13000 => 0,
            _ if at.is_multiple_of(0x2000) => WRITTEN,
            0x11000 => WRITTEN,
            _ => CLEAN,
        };
        let mut pages = pages();
        find(&mut pages, &Mapping::parse_all(maps), &entry);
        assert_eq!(pages.ranges[..pages.len as usize], [(0x10000, 4), (0x60000, 2)]);
        let given_up =
            |pages: &Pages| -> Vec<u64> { pages.all().filter(|&(_, n)| !pages.is_used(n)).map(|(at, _)| at).collect() };
        assert_eq!(given_up(&pages), [0x10000, 0x12000, 0x13000, 0x61000]);
        spare_written(&mut pages, &|at| if at == 0x12000 { WRITTEN } else { entry(at) });
        assert_eq!(given_up(&pages), [0x10000, 0x13000, 0x61000]);
        pages.set_used(0);
        assert_eq!(given_up(&pages), [0x13000, 0x61000]);
    }

    #[test]
    fn no_more_mappings_than_there_is_room_for() {
        let line = |n: usize| format!("{:x}-{:x} r-xp 0 fe:00 1 /lib/{n}\n", 0x10000 * n, 0x10000 * n + 0x2000);
        let maps: String = (1..=MAX_RANGES + 5).map(line).collect();
        let mut all = pages();
        find(&mut all, &Mapping::parse_all(maps.as_bytes()), &|at| {
            if at.is_multiple_of(0x2000) {
                WRITTEN
            } else {
                CLEAN
            }
        });
        assert_eq!(all.len as usize, MAX_RANGES);
        let large = format!("10000-{:x} r-xp 0 fe:00 1 /lib/large\n", 0x10000 + PAGE * (MAX_PAGES as u64 + 1));
        find(&mut all, &Mapping::parse_all(large.as_bytes()), &|_| CLEAN);
        assert_eq!(all.len, 0);
    }
}
