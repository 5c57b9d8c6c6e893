//! The arena as vsrun sees it, and the root checkpoint's copy of the modelled state.

use std::fs::File;
use std::io;
use std::mem::size_of;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::ptr::NonNull;
use std::time::Duration;

use vsrun_model::arena::{Arena, Attached, Region, Segment, ARENA_FD, MAGIC, VERSION};
use vsrun_model::back::{Answer, Order, Stand, Turn, MAX_MEMBERS};
use vsrun_model::table::Table;

const PAGE: usize = 4096;

/// An arena mapped into this process.
///
/// NOTE [Who may look] The program's processes write to the arena while one of them has the turn. vsrun reads the
/// model's part only when the world stands still (before it starts, after it ended, at a ptrace stop), and single
/// words (`ops`, `end`) at any time, through [`ArenaMap::peek`].
pub struct ArenaMap {
    memory: NonNull<Arena>,
    file: Option<OwnedFd>,
}

fn map(fd: RawFd, flags: i32) -> io::Result<NonNull<Arena>> {
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), size_of::<Arena>(), prot, flags | libc::MAP_NORESERVE, fd, 0) };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(at.cast()).ok_or_else(|| io::Error::other("mmap returned null"))
}

/// An anonymous file of that size.
pub fn memory_file(name: &std::ffi::CStr, size: u64) -> io::Result<OwnedFd> {
    // SAFETY: memfd_create reads the name only.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let file = File::from(fd);
    file.set_len(size)?;
    Ok(file.into())
}

/// Waits until a word of the arena is not as it is given, or for so long. True: a signal came.
fn await_word(word: *const u32, value: u32, most: Duration) -> bool {
    let limit = libc::timespec { tv_sec: most.as_secs() as i64, tv_nsec: most.subsec_nanos().into() };
    // SAFETY: callers give the address of a word of a mapping that lives, and the limit lives until the call is over; the kernel reads both.
    let result = unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, value, &raw const limit) };
    result < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
}

/// A descriptor that the kernel has just made for us, closed on exec.
fn own(number: i64) -> io::Result<OwnedFd> {
    match number {
        ..0 => Err(io::Error::last_os_error()),
        // SAFETY: nobody else has it.
        _ => Ok(unsafe { OwnedFd::from_raw_fd(number as i32) }),
    }
}

/// A process, whoever gets its number when it is over.
pub struct Handle(OwnedFd);

impl Handle {
    /// That which has the number now.
    ///
    /// # Errors
    /// There is none.
    pub fn of(pid: i32) -> io::Result<Handle> {
        // SAFETY: pidfd_open takes two numbers.
        own(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) }).map(Handle)
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// It is over.
    pub fn send(&self, signal: i32) -> io::Result<()> {
        let none = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: pidfd_send_signal takes numbers, and a place from which it reads nothing where that is null.
        match unsafe { libc::syscall(libc::SYS_pidfd_send_signal, self.0.as_raw_fd(), signal, none, 0) } {
            ..0 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

/// The description that a descriptor of that process is of, under a descriptor of ours. The process is a child of ours.
pub fn descriptor_of(pid: nix::unistd::Pid, fd: i32) -> io::Result<OwnedFd> {
    let process = Handle::of(pid.as_raw())?.0;
    // SAFETY: pidfd_getfd takes three numbers; the first is a descriptor that is open here.
    own(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), fd, 0) })
}

/// Our descriptor `own` and descriptor `fd` of that process are of one description, as far as the kernel tells.
pub fn is_same_description(own: RawFd, pid: nix::unistd::Pid, fd: RawFd) -> bool {
    const KCMP_FILE: i32 = 0;
    // SAFETY: kcmp takes numbers.
    unsafe { libc::syscall(libc::SYS_kcmp, libc::getpid(), pid.as_raw(), KCMP_FILE, own, fd) == 0 }
}

impl ArenaMap {
    /// A new arena in shared memory, to be handed to a program.
    pub fn shared() -> io::Result<ArenaMap> {
        let fd = memory_file(c"vsrun-arena", size_of::<Arena>() as u64)?;
        let memory = map(fd.as_raw_fd(), libc::MAP_SHARED)?;
        let mut arena = ArenaMap { memory, file: Some(fd) };
        arena.init();
        Ok(arena)
    }

    /// That of the world which process `pid`, of this user, belongs to: as it is now, and not to be changed by what is done here. Whoever calls
    /// knows that the world stands still.
    ///
    /// # Errors
    /// The process is gone, or has no arena of this version.
    pub fn of_process(pid: i32) -> io::Result<ArenaMap> {
        let file = File::open(format!("/proc/{pid}/fd/{ARENA_FD}"))?;
        let size = size_of::<Arena>() as u64;
        if file.metadata()?.len() != size {
            return Err(io::Error::other("it is no process of a program that this vsrun has started"));
        }
        let arena = ArenaMap { memory: map(file.as_raw_fd(), libc::MAP_PRIVATE)?, file: None };
        if (arena.magic, arena.version, arena.size) != (MAGIC, VERSION, size) {
            return Err(io::Error::other("it is no process of a program that this vsrun has started"));
        }
        Ok(arena)
    }

    /// Both processes are of one world.
    ///
    /// # Errors
    /// One of them is gone.
    pub fn is_shared_by(one: i32, two: i32) -> io::Result<bool> {
        let arena = |pid: i32| std::fs::metadata(format!("/proc/{pid}/fd/{ARENA_FD}")).map(|m| (m.dev(), m.ino()));
        Ok(arena(one)? == arena(two)?)
    }

    /// A new arena of this process alone: copies of worlds, tests.
    pub fn private() -> io::Result<ArenaMap> {
        let memory = map(-1, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS)?;
        let mut arena = ArenaMap { memory, file: None };
        arena.init();
        Ok(arena)
    }

    /// Bytes of it that are in memory, where it is this process's own.
    fn resident(&self) -> u64 {
        let mut there = vec![0u8; size_of::<Arena>().div_ceil(PAGE)];
        // SAFETY: the mapping is this value's; the kernel writes a byte for each of its pages, which the vector has.
        let known = unsafe { libc::mincore(self.memory.as_ptr().cast(), size_of::<Arena>(), there.as_mut_ptr()) };
        let pages = there.iter().filter(|&page| page & 1 != 0).count();
        if known == 0 {
            (pages * PAGE) as u64
        } else {
            size_of::<Arena>() as u64
        }
    }

    /// The descriptor to hand to the program.
    pub fn fd(&self) -> Option<RawFd> {
        self.file.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Reads one word that the program may be writing.
    pub fn peek<T: Copy>(&self, word: impl FnOnce(*const Arena) -> *const T) -> T {
        // SAFETY: the closure computes the address of an aligned word of the mapped arena, valid for any bits.
        unsafe { std::ptr::read_volatile(word(self.memory.as_ptr())) }
    }

    /// Visible operations so far, and how the world ended.
    pub fn progress(&self) -> (u64, u8) {
        // SAFETY: computes addresses inside the mapping, without a reference.
        let ops = self.peek(|a| unsafe { &raw const (*a).world.ops });
        // SAFETY: as above.
        let end = self.peek(|a| unsafe { &raw const (*a).world.end.0 });
        (ops, end)
    }

    /// Visible operations so far that belong to no run over own objects.
    pub fn visible_ops(&self) -> u64 {
        // SAFETY: computes an address inside the mapping, without a reference.
        let ops = self.peek(|a| unsafe { &raw const (*a).world.ops });
        // SAFETY: as above.
        let passed = self.peek(|a| unsafe { &raw const (*a).world.passed });
        // SAFETY: as above.
        let long_runs = self.peek(|a| unsafe { &raw const (*a).world.long_runs });
        vsrun_model::sharing::visible(ops, passed, long_runs)
    }

    /// States of readiness the root has reached, and the process it forked last.
    pub fn root_signs(&self) -> (u32, i32) {
        // SAFETY: computes addresses inside the mapping, without a reference.
        let ready = self.peek(|a| unsafe { &raw const (*a).control.ready });
        // SAFETY: as above.
        let forked = self.peek(|a| unsafe { &raw const (*a).control.forked });
        (ready, forked)
    }

    /// How far a process is that goes back.
    pub fn stand(&self) -> Stand {
        // SAFETY: computes an address inside the mapping, without a reference.
        self.peek(|a| unsafe { &raw const (*a).back.stand })
    }

    /// Waits until that is not as it is given, or for so long. True: a signal came.
    pub fn await_stand(&self, stand: Stand, most: Duration) -> bool {
        // SAFETY: computes an address inside the mapping, without a reference.
        let word = unsafe { &raw const (*self.memory.as_ptr()).back.stand.0 };
        await_word(word, stand.0, most)
    }

    /// Lets process `p` go on, which has stopped with the turn, or goes back to where it had it.
    pub fn go_on(&mut self, p: u32) {
        self.back.leader = p;
        // SAFETY: the word lies in the mapping.
        unsafe { std::ptr::write_volatile(&raw mut (*self.memory.as_ptr()).back.stand, Stand::RUNS) };
        // One that is late may wait at either, and takes the turn at that of the world, which is the last to be set.
        let late = self.back.late.get(p as usize).is_some_and(|&late| late != 0);
        self.set_words(p, Turn::TAKES, late);
    }

    /// Lets the original in that place be copied, by an execution that goes on from there.
    pub fn go_on_from(&mut self, place: usize) {
        // SAFETY: the word lies in the mapping.
        unsafe { std::ptr::write_volatile(&raw mut (*self.memory.as_ptr()).back.stand, Stand::RUNS) };
        if let Some(word) = self.back.at.get_mut(place).map(|word| &raw mut *word) {
            // SAFETY: the word lies in the mapping; the kernel only uses its address.
            unsafe {
                std::ptr::write_volatile(word, Turn::TAKES);
                libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, 1);
            }
        }
    }

    /// Tells process `p` to do something; what becomes of it is [`ArenaMap::await_answer`]'s to say.
    pub fn tell(&mut self, p: u32, order: Order) {
        self.back.order = order;
        if let Some(answer) = self.back.answers.get_mut(p as usize) {
            *answer = Answer::AWAITED;
        }
        if let Some(given) = self.back.given.get_mut(p as usize) {
            *given = given.wrapping_add(1);
        }
        // Whichever of the two it waits at.
        self.set_words(p, Turn::OBEYS, true);
    }

    /// Sets the word of process `p` for going back, and its word within executions.
    fn set_words(&mut self, p: u32, turn: Turn, both: bool) {
        let word = self.back.words.get_mut(p as usize).map(|word| &raw mut *word);
        let own = both.then(|| &raw mut self.world.procs[p].own.turn);
        for word in [word, own].into_iter().flatten() {
            // SAFETY: the word lies in the mapping; the kernel only uses its address.
            unsafe {
                std::ptr::write_volatile(word, turn);
                libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, 1);
            }
        }
    }

    /// What has become of the order of process `p`; waits for that, for so long at the most.
    pub fn await_answer(&self, p: u32, most: Duration) -> Answer {
        let p = p as usize % MAX_MEMBERS;
        // SAFETY: computes an address inside the mapping, without a reference; the index is in bounds.
        let answer = || self.peek(|a| unsafe { &raw const (*a).back.answers[p] });
        if answer() == Answer::AWAITED {
            // SAFETY: as above.
            let word = unsafe { &raw const (*self.memory.as_ptr()).back.answers[p].0 };
            await_word(word, Answer::AWAITED.0, most);
        }
        answer()
    }

    /// Sets the root's futex word and wakes it.
    pub fn command(&mut self, command: u32) {
        // SAFETY: the word lies in the mapping; the kernel only uses its address.
        unsafe {
            let word = &raw mut (*self.memory.as_ptr()).control.command;
            std::ptr::write_volatile(word, command);
            libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, 1);
        }
    }
}

impl Deref for ArenaMap {
    type Target = Arena;
    fn deref(&self) -> &Arena {
        // SAFETY: mapped for the life of `self`, zero or initialized, all bit patterns valid; see NOTE [Who may look].
        unsafe { self.memory.as_ref() }
    }
}

impl DerefMut for ArenaMap {
    fn deref_mut(&mut self) -> &mut Arena {
        // SAFETY: as for `deref`, and `&mut self` makes it the only reference of this process.
        unsafe { self.memory.as_mut() }
    }
}

impl Drop for ArenaMap {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's and nothing borrowed from it outlives it.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), size_of::<Arena>()) };
    }
}

/// The state of the arena at the root.
pub struct RootState {
    /// The world, and who has used which files.
    world: ArenaMap,
    regions: Table<Region, 4096>,
    segments: Table<Segment, 1024>,
    attached: Table<Attached, 4096>,
    pool_used: u64,
    region_count: u32,
}

impl RootState {
    /// Keeps what stands in `arena` now.
    pub fn take(arena: &Arena) -> io::Result<Box<RootState>> {
        let mut world = ArenaMap::private()?;
        world.world.copy_from(&arena.world);
        world.files.copy_uses(&arena.files);
        Ok(Box::new(RootState {
            world,
            regions: arena.regions,
            segments: arena.segments,
            attached: arena.attached,
            pool_used: arena.control.pool_used,
            region_count: arena.control.regions,
        }))
    }

    /// Bytes of memory that it takes.
    pub fn size(&self) -> u64 {
        self.world.resident() + size_of::<RootState>() as u64
    }

    /// Keeps what stands in `arena` now, in the place of what it has.
    pub fn take_again(&mut self, arena: &Arena) {
        self.world.world.copy_from(&arena.world);
        self.world.files.copy_uses(&arena.files);
        self.regions.copy_from(&arena.regions);
        self.segments.copy_from(&arena.segments);
        self.attached.copy_from(&arena.attached);
        (self.pool_used, self.region_count) = (arena.control.pool_used, arena.control.regions);
    }

    /// Puts it back.
    pub fn restore(&self, arena: &mut Arena) {
        arena.world.copy_from(&self.world.world);
        arena.regions.copy_from(&self.regions);
        arena.segments.copy_from(&self.segments);
        arena.attached.copy_from(&self.attached);
        arena.control.pool_used = self.pool_used;
        arena.control.regions = self.region_count;
        arena.control.shm_used = 0;
        arena.files.reset();
        // What is used after this is an operation, or none, by who has used it before.
        arena.files.copy_uses(&self.world.files);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_used_a_file_is_put_back_and_tells_states_apart() {
        let mut arena = ArenaMap::private().unwrap();
        arena.init();
        let before = (RootState::take(&arena).unwrap(), arena.files.digest_of_uses());
        let file = (7, 11);
        arena.add_used_file(file, 13).unwrap();
        let mut used = RootState::take(&arena).unwrap();
        let digest = arena.files.digest_of_uses();
        assert!(digest != before.1);
        before.0.restore(&mut arena);
        assert_eq!((arena.used_file(file), arena.files.digest_of_uses()), (None, before.1));
        used.restore(&mut arena);
        assert_eq!((arena.used_file(file), arena.files.digest_of_uses()), (Some(0), digest));
        // What is kept in its place.
        arena.files.reset();
        used.take_again(&arena);
        arena.add_used_file(file, 13).unwrap();
        used.restore(&mut arena);
        assert_eq!(arena.used_file(file), None);
    }
}
