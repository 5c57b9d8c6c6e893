//! A thread that runs without a visible operation may wait for another one to write memory: what does it read again and again?

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use vsrun_model::arena::{POOL_ADDR, POOL_SIZE};
use vsrun_model::object::SHARED;
use vsrun_model::watch::{Entry, Range, Watching, MAX_RANGES, READ_BIT, WRITE_BIT};
use vsrun_model::Tid;

use super::memory::{MemoryError, ProcessMemory};
use super::processes::is_stopped;
use super::tracee::send;
use super::worker::Worker;
use crate::binary::Mapping;

/// Words of memory, by space and address.
type Words = BTreeSet<(u32, u64)>;

const ENTRY: u64 = size_of::<Entry>() as u64;
/// A loop that waits reads no more words than that.
const MOST: usize = 64;
/// What is read of more bytes at once is not waited for.
const LONGEST: u64 = 8 * MOST as u64;
/// How long it is looked at.
const WHILE: Duration = Duration::from_millis(30);

impl Worker {
    /// The words that the running thread, which makes no visible operation, reads over and over and does not write; none that are objects
    /// already. Not those that nobody else could have written in another order, where nobody could any more in this one.
    pub(super) fn polled(&self) -> Words {
        let Watching { log, ranges, .. } = self.arena.control.watching;
        let holder = self.turn_holder().filter(|_| self.watched.is_some() && log != 0);
        let mut words = holder.and_then(|pid| polled(pid, log, ranges).ok()).unwrap_or_default();
        if self.diverges_alone() {
            let (own, processes) = (self.memory_had_others(), self.arena.world.procs.len > 1);
            words.retain(|word| if word.0 & SHARED != 0 { processes } else { own });
        }
        // A loop that reads only these diverges all the same.
        self.arena.words.as_slice().iter().for_each(|word| {
            words.remove(&(word.space, word.address));
        });
        words
    }

    /// Threads other than the running one have used the memory of its process, or what a fork has copied into it.
    fn memory_had_others(&self) -> bool {
        let world = &self.arena.world;
        let process = |t: Tid| world.threads.get(t).map(|thread| thread.pid);
        let copied_from = |&pid: &u32| world.procs.get(pid).and_then(|p| world.procs.get(p.creator).map(|_| p.creator));
        let several = |pid: u32| world.threads.as_slice().iter().filter(|t| t.pid == pid).count() > 1;
        std::iter::successors(process(world.current), copied_from).any(several)
    }

    /// The running thread diverges in any case: nobody else could write anything before it goes on. Others may have done so before, and in
    /// another order would do so later: that has to be explored all the same.
    pub(super) fn diverges_alone(&self) -> bool {
        self.arena.moves_alone(self.arena.world.current)
    }
}

/// What the log of `pid`, whose state lies at `log`, has of the loop that it is in. See [`Watching::ranges`].
fn polled(pid: Pid, log: u64, ranges: [u64; 2]) -> Result<Words, MemoryError> {
    let memory = ProcessMemory::open(pid)?;
    if !stops(pid) {
        return Ok(Words::new());
    }
    let (next, start) = (memory.read_u64(log)?, memory.read_u64(log + 32)?);
    // All of it is forgotten, so that what comes now is recorded.
    for entry in entries(&memory, start, next)? {
        let nothing = vec![0; entry.size().min(1 << 20) as usize];
        memory.write(entry.address ^ 1 << READ_BIT, &nothing)?;
        if entry.writes() {
            memory.write(entry.address ^ 1 << WRITE_BIT, &nothing)?;
        }
    }
    memory.write(log, &start.to_le_bytes())?;
    send(pid, Signal::SIGCONT);
    std::thread::sleep(WHILE);
    if !stops(pid) {
        return Ok(Words::new());
    }
    let found = entries(&memory, start, memory.read_u64(log)?)?;
    let maps = Mapping::parse_all(&std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default());
    let shared = shared(&memory, ranges)?;
    let words = |writes: bool| -> Words {
        let wanted =
            found.iter().filter(|entry| entry.writes() == writes && entry.unit() <= 64 && entry.size() <= LONGEST);
        let of = |entry: &Entry| (entry.address & !7..entry.address + entry.size()).step_by(8);
        wanted.flat_map(of).filter_map(|address| place_of(address, &shared, &maps)).collect()
    };
    let read = &words(false) - &words(true);
    Ok(if read.len() <= MOST { read } else { Words::new() })
}

/// Space and address of a word; `None`: in a mapping that processes share of which the library does not know.
fn place_of(address: u64, shared: &[Range], maps: &[Mapping]) -> Option<(u32, u64)> {
    if address.wrapping_sub(POOL_ADDR) < POOL_SIZE {
        return Some((SHARED | 0x3fff_ffff, address - POOL_ADDR));
    }
    if let Some(range) = shared.iter().find(|range| (range.start..range.end).contains(&address)) {
        return Some((range.space, address - range.start + range.offset));
    }
    let mapping = maps.iter().find(|m| (m.start..m.end).contains(&address))?;
    (!mapping.perms.ends_with('s')).then_some((0, address))
}

/// What the process has mapped that others may share.
fn shared(memory: &ProcessMemory, [number, first]: [u64; 2]) -> Result<Vec<Range>, MemoryError> {
    let mut bytes = vec![0; (memory.read_u64(number)? as usize).min(MAX_RANGES) * size_of::<Range>()];
    memory.read(first, &mut bytes)?;
    let (words, _) = bytes.as_chunks::<8>();
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let range = |of: &[u64]| Range {
        start: of[0],
        end: of[1],
        offset: of[2],
        space: of[3] as u32,
        segment: (of[3] >> 32) as u32,
    };
    Ok(words.chunks_exact(size_of::<Range>() / 8).map(range).collect())
}

/// Those that lie apart one by one.
fn entries(memory: &ProcessMemory, start: u64, next: u64) -> Result<Vec<Entry>, MemoryError> {
    let mut bytes = vec![0; next.saturating_sub(start).min(64 << 20) as usize];
    memory.read(start, &mut bytes)?;
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |all, &b| all << 8 | u64::from(b));
    let entry =
        |e: &[u8]| Entry { address: number(&e[..8]), site: number(&e[8..12]) as u32, what: number(&e[12..16]) as u32 };
    let each = |entry: Entry| {
        let (whole, parts) = if entry.is_strided() { (None, Some(entry.parts())) } else { (Some(entry), None) };
        whole.into_iter().chain(parts.into_iter().flatten())
    };
    Ok(bytes.chunks_exact(ENTRY as usize).map(entry).flat_map(each).collect())
}

/// Stops the process. False: it is gone.
fn stops(pid: Pid) -> bool {
    const LIMIT: Duration = Duration::from_secs(2);
    let since = Instant::now();
    let sent = send(pid, Signal::SIGSTOP);
    while sent && since.elapsed() < LIMIT {
        if is_stopped(pid) {
            return true;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    false
}
