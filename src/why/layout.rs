//! Where glibc on x86-64 has what belongs to its locks: offsets in bytes, from its headers (`bits/struct_mutex.h`,
//! `bits/thread-shared-types.h`, `bits/struct_rwlock.h`, `semaphore.h`, `nptl/descr.h`), versions 2.25 to 2.41 and later. What is read is
//! not believed further than it makes sense: memory may be damaged.

use std::path::Path;

use crate::runtime::memory::ProcessMemory;

/// From the thread's descriptor (its thread pointer) to its id, which the kernel clears at its end.
const TID: u64 = 720;
/// From the thread pointer to the word that holds the thread pointer itself.
const SELF: u64 = 16;

/// A glibc whose layouts are known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Glibc {
    /// Its minor version.
    Minor(u32),
    /// It is linked statically, and says no version.
    Static,
}

/// The first version with these layouts.
pub(super) const FIRST: u32 = 25;

/// The minor version of the glibc in a file (2.36: 36), by the line that it prints of itself.
pub(super) fn version(file: &Path) -> Option<u32> {
    const LINE: &[u8] = b" release version 2.";
    let text = std::fs::read(file).ok().filter(|bytes| find(bytes, b"GNU C Library").is_some())?;
    let digits = &text[find(&text, LINE)? + LINE.len()..];
    let digits: String = digits.iter().take(4).map(|&b| char::from(b)).take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// A little-endian word of 32 bits.
pub(super) fn word(memory: &ProcessMemory, address: u64) -> Option<u32> {
    let mut bytes = [0; 4];
    memory.read(address, &mut bytes).ok()?;
    Some(u32::from_le_bytes(bytes))
}

/// A `pthread_mutex_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mutex {
    pub lock: u32,
    pub owner: u32,
    pub kind: u32,
}

impl Mutex {
    pub(super) fn read(memory: &ProcessMemory, address: u64) -> Option<Mutex> {
        Some(Mutex {
            lock: word(memory, address)?,
            owner: word(memory, address.checked_add(8)?)?,
            kind: word(memory, address.checked_add(16)?)?,
        })
    }

    /// Robust, or with priority inheritance: the owner is in the lock word.
    fn owner_in_lock(&self) -> bool {
        self.kind & (16 | 32) != 0
    }

    /// The thread that has it, by its id in its own namespace; 0: none is named.
    pub(super) fn holder(&self) -> u32 {
        const TID_MASK: u32 = 0x3fff_ffff;
        if self.owner_in_lock() {
            self.lock & TID_MASK
        } else {
            self.owner
        }
    }

    /// The words for its type that matter to who waits.
    pub(super) fn attributes(&self) -> &'static str {
        match (self.kind & 16 != 0, self.kind & 32 != 0, self.kind & 3) {
            (true, _, _) => "robust mutex",
            (_, true, _) => "priority-inheriting mutex",
            (_, _, 1) => "recursive mutex",
            _ => "mutex",
        }
    }
}

/// The condition variable whose futex word is at `address`: the words of its two groups (`__g_signals`).
/// Both places where it may begin, if the version does not tell.
pub(super) fn conditions_of(address: u64, version: Glibc) -> Vec<u64> {
    let signals: &[u64] = match version {
        Glibc::Minor(..=40) => &[40],
        Glibc::Minor(_) => &[32],
        Glibc::Static => &[40, 32],
    };
    let second = if address.is_multiple_of(8) { 0 } else { 4 };
    signals.iter().map(|signals| address.wrapping_sub(signals + second)).collect()
}

/// A `pthread_rwlock_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RwLock {
    pub readers: u32,
    pub writer: u32,
}

impl RwLock {
    pub(super) fn read(memory: &ProcessMemory, address: u64) -> Option<RwLock> {
        // The lowest three bits of the count say in which phase it is.
        let readers = word(memory, address)? >> 3;
        Some(RwLock { readers, writer: word(memory, address.checked_add(24)?)? })
    }

    /// How far behind its start the word may be that a thread waits for: `__readers`, `__wrphase_futex`, `__writers_futex`.
    pub(super) const WORDS: [u64; 3] = [0, 8, 12];
}

/// What a `pthread_barrier_t` with its word `current_round` at `address` waits for: how many are to come, and how many came.
pub(super) fn barrier(memory: &ProcessMemory, address: u64) -> Option<(u64, u32, u32)> {
    let start = address.checked_sub(4)?;
    let (come, round) = (word(memory, start)?, word(memory, address)?);
    let count = word(memory, start.checked_add(8)?)?;
    (count > 0).then(|| (start, count, come.wrapping_sub(round).min(count)))
}

/// The value of a `sem_t`.
pub(super) fn semaphore(memory: &ProcessMemory, address: u64) -> Option<u32> {
    word(memory, address)
}

/// The thread whose descriptor has its id at `address`.
pub(super) fn thread_with_id_at(memory: &ProcessMemory, address: u64) -> Option<u32> {
    let descriptor = address.checked_sub(TID)?;
    (memory.read_u64(descriptor.checked_add(SELF)?).ok()? == descriptor).then(|| word(memory, address))?
}

/// The thread that has the lock of a stdio stream (`_IO_lock_t`) at `address`.
pub(super) fn owner_of_stream(memory: &ProcessMemory, address: u64) -> Option<u32> {
    let descriptor = memory.read_u64(address.checked_add(8)?).ok()?;
    thread_with_id_at(memory, descriptor.checked_add(TID)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::Pid;

    fn own() -> ProcessMemory {
        ProcessMemory::open_to_read(Pid::this()).unwrap()
    }

    #[test]
    fn a_mutex_as_its_words_say() {
        let words: [u32; 6] = [0x8000_0005, 1, 77, 1, 0, 0];
        let at = words.as_ptr() as u64;
        assert_eq!(Mutex::read(&own(), at).unwrap().holder(), 77);
        let robust = Mutex { lock: 0x8000_0005, owner: 77, kind: 16 };
        assert_eq!((robust.holder(), robust.attributes()), (5, "robust mutex"));
        assert_eq!(Mutex { kind: 1, ..robust }.attributes(), "recursive mutex");
        assert_eq!(Mutex::read(&own(), u64::MAX - 3), None);
        assert_eq!(Mutex::read(&own(), 8), None);
    }

    #[test]
    fn condition_variables_by_their_words() {
        assert_eq!([0x1028, 0x102c].map(|at| conditions_of(at, Glibc::Minor(36))), [[0x1000]; 2]);
        assert_eq!([0x1020, 0x1024].map(|at| conditions_of(at, Glibc::Minor(41))), [[0x1000]; 2]);
        assert_eq!(conditions_of(0x102c, Glibc::Static), [0x1000, 0x1008]);
    }

    #[test]
    fn a_barrier_of_three_with_one_there() {
        let words: [u32; 5] = [4, 3, 3, 0, 0];
        let at = words.as_ptr() as u64;
        assert_eq!(barrier(&own(), at + 4), Some((at, 3, 1)));
        assert_eq!(barrier(&own(), 0), None);
    }

    #[test]
    fn the_descriptor_of_a_thread() {
        use std::os::unix::thread::JoinHandleExt;
        use std::sync::mpsc::channel;
        let ((tell, told), (end, ended)) = (channel(), channel::<()>());
        let thread = std::thread::spawn(move || {
            tell.send(nix::unistd::gettid().as_raw() as u32).unwrap();
            let _ = ended.recv();
        });
        let id = told.recv().unwrap();
        // What the C library calls the thread is the address of its descriptor.
        let pointer = thread.as_pthread_t() as u64;
        assert_eq!(thread_with_id_at(&own(), pointer + TID), Some(id));
        assert_eq!(thread_with_id_at(&own(), pointer + TID + 8), None);
        assert_eq!(thread_with_id_at(&own(), 3), None);
        drop(end);
        thread.join().unwrap();
    }

    #[test]
    fn the_version_of_the_library_here() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let path = maps.split_whitespace().find(|word| word.ends_with("/libc.so.6")).unwrap();
        assert!(version(Path::new(path)).is_some_and(|minor| (25..100).contains(&minor)));
        let dir = crate::base::testing::TempDir::new();
        let said = |text: &str| version(&dir.file("libc", text, 0o644));
        assert_eq!(said("GNU C Library (x) stable release version 2.36.\n"), Some(36));
        assert_eq!(said("GNU C Library (x) stable release version 2."), None);
        assert_eq!(said("Another C Library, stable release version 2.36.\n"), None);
        assert_eq!(version(Path::new("/none")), None);
    }
}
