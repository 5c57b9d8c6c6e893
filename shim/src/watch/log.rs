//! The log of a process, and the shadow that says what is in it.
//!
//! NOTE [Marks] The shadow of a byte is 0xff once the byte is in the log, that for reading and that for writing apart. A write marks
//! both: a read of what the transition has written tells nothing. All marks are of the transition that is under way, since it alone runs.
//! NOTE [Overflow] A log that is full is handed over at once, and its marks stay, so that nothing is recorded twice; which they
//! were is forgotten, so that at the end of the transition the whole shadow is dropped.
//! NOTE [Objects] The shadow of memory of which each use is an operation is [`OBJECT`] throughout: no check takes it for recorded, and
//! the slow paths find it there. It is never marked otherwise, and what is recorded leaves it out.
//! NOTE [Own pages] What a thread does to pages that no other thread has used need not be recorded in each of its transitions, see `gate::own`.
//! Its marks stay then until another thread of the process runs ([`switches`]), so what it does there again comes to no slow path.
//! NOTE [Runs] A loop over memory makes one entry for each of its sites: an access right behind, or before, those that an entry of the same site
//! stands for is added to that entry. Of others the first two of a site make one entry with their distance, if that is not large, and those that come
//! after them in the same distance are added: a column of a matrix, say. So an access comes earlier than it was made, which is no matter within a transition, but in one case: what the child of
//! a fork reads before it has written it is what its parent has left. There reads may come earlier, but writes may not.

use core::cell::UnsafeCell;
use core::sync::atomic::compiler_fence;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use vsrun_model::library::number;
use vsrun_model::watch::{Entry, FENCE, MEMORY, READ_BIT, WRITE_BIT};

use super::pages::{MorePages, Pages};
use crate::sys::{cover, cpuid, load, raw, store, WATCHES};

/// Bytes of the log, and what lies behind so that a range that is split needs no care.
const LOG_SIZE: u64 = 4 << 20;
const SLACK: u64 = 64 << 10;
const ENTRY: u64 = size_of::<Entry>() as u64;
/// In the number of a site that a slow path got: the access is locked.
pub const LOCKED: u32 = 1 << 30;
/// The same: it reads before it writes, and is not locked.
pub const READS: u32 = 1 << 29;

/// The shadow of memory that is an object.
pub const OBJECT: u8 = 0x7f;

/// A use of memory that is an object: at most eight bytes, of one word.
#[derive(Clone, Copy)]
pub struct Touch {
    /// The first byte.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// The whole access that it is a part of: first and one past the last address.
    pub whole: (u64, u64),
    /// As in [`Entry`].
    pub site: u32,
    /// It writes,
    pub writes: bool,
    /// and reads before it does.
    pub reads: bool,
    /// It is locked.
    pub locked: bool,
    /// It writes only if what is there is what lies in rax, which is this.
    pub compares: Option<u64>,
    /// It is the second word of an access to several of them, or a word that is used in parts.
    pub wide: bool,
    /// Where the registers of its thread are kept, see `state`; 0: nowhere.
    pub frame: u64,
    /// A system call does it, which is under way.
    pub in_call: bool,
}

/// What is said of who may use memory, where a function of the program is entered or left.
#[derive(Clone, Copy)]
pub struct Claimed {
    /// A constant of [`Record`](vsrun_model::watch::Record).
    pub what: u32,
    /// The first byte.
    pub at: u64,
    /// Bytes.
    pub size: u64,
    /// Of what is handed over, the thread that gets it (`pthread_t`), or 0.
    pub to: u64,
    /// The number of the instruction.
    pub site: u32,
}

/// What is done by those above.
#[derive(Clone, Copy)]
pub struct Hooks {
    /// The log is full.
    pub full: fn(),
    /// Memory that is an object is about to be used. The turn may be passed. False: it is none any more.
    pub touch: fn(Touch) -> bool,
    /// All marks are gone: those of objects are to be made again.
    pub dropped: fn(),
    /// Something is said of who may use memory.
    pub claims: fn(Claimed),
}

/// x87 and SSE registers, components 0 and 1, lie in front.
const FIRST_COMPONENT: u32 = 2;
/// Up to the tiles of AMX.
const COMPONENTS: usize = 17;

/// State of the log. The slow paths, which are assembly, know the first four fields, and vsrun the first five.
#[repr(C)]
pub struct Log {
    /// Where the next entry goes.
    pub next: u64,
    /// There it is full.
    pub end: u64,
    /// Not 0: there is memory that is an object.
    pub objects: u64,
    /// Bytes that XSAVE writes here, a multiple of 64.
    pub state_size: u64,
    /// Where the first entry is; 0: memory is not watched.
    pub start: u64,
    /// Of each component of the processor's state from the third on, where XSAVE puts it and how long it is.
    components: [[u32; 2]; COMPONENTS],
    overflown: bool,
    recording: bool,
    /// There are no patches any more.
    undone: bool,
    /// Words that are objects which the instruction, function or call that is under way has used.
    used: u32,
    /// The last of them.
    used_last: u64,
    /// Set by [`set_up`].
    hooks: Option<Hooks>,
    /// What [`set_patches`] was told: the first and one past the last byte of pages with patches, and whether there are libraries that may come later.
    patches: ([u64; 2], bool),
    /// File to which it is appended, NUL-terminated; empty: none.
    path: u64,
    /// What stays marked beyond the transition: so many entries, the first of them, and whether there are others that are not known any more.
    kept: u32,
    forgotten: bool,
    first_kept: [Entry; FIRST_KEPT],
    /// Pages that threads have for themselves.
    pages: Pages,
    /// A read that lies right beside what the same site has read is added to its entry, and a write likewise, see NOTE [Runs].
    merges: [bool; 2],
    /// The last entry that a slow path has made for a site, by some bits of its number.
    last: [Last; LAST],
}

/// The last entry of a site. The rest is of an entry with [`Entry::STRIDED`] alone: who makes one of an entry writes that here, so as long as the
/// entry is there it is of that entry.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Last {
    /// Where it is; that may be beyond the end of the log, or another entry by now.
    entry: u64,
    /// Where its next access is, if it is one that can be added.
    next: u64,
    /// Bytes from each access to the next one.
    stride: u64,
    reserved: u64,
}

impl Last {
    const NONE: Last = Last { entry: u64::MAX, next: 0, stride: 0, reserved: 0 };
}

/// Sites of which the last entry is known.
pub const LAST: usize = 64;
const _: () = assert!(LAST.is_power_of_two() && LAST <= 256 && size_of::<Last>() == 1 << LAST_SIZE);

/// The state and, right behind it, the entries: what is recorded in a short execution is on the page of the state. All of it is zeros at first,
/// so it takes no room in the file.
#[repr(C, align(4096))]
pub struct Area {
    log: Log,
    entries: [u64; ((LOG_SIZE + SLACK) / 8) as usize],
    /// What is kept behind [`Log::first_kept`].
    kept: [Entry; MORE_KEPT],
    pages: MorePages,
}
const _: () = assert!(core::mem::offset_of!(Area, log) == 0 && core::mem::offset_of!(Area, entries).is_multiple_of(8));

#[repr(transparent)]
pub struct Cell(UnsafeCell<Area>);
// SAFETY: a process of a world has one kernel thread; slow paths, which come in between, only append, and no borrow is alive while the
// program's code runs.
unsafe impl Sync for Cell {}

/// In [`Log`]: whether what is accessed is handed over, a byte.
pub const RECORDING: usize = core::mem::offset_of!(Log, recording);
pub const MERGES: usize = core::mem::offset_of!(Log, merges);
pub const LAST_AT: usize = core::mem::offset_of!(Log, last);
/// The logarithm of the size of a [`Last`], and where its fields are.
pub const LAST_SIZE: u32 = 5;
pub const LAST_NEXT: usize = core::mem::offset_of!(Last, next);
pub const LAST_STRIDE: usize = core::mem::offset_of!(Last, stride);

/// A [`Log`] and what it tells of.
pub static LOG: Cell = Cell(UnsafeCell::new(Area {
    log: Log {
        next: 0,
        end: 0,
        objects: 0,
        state_size: 0,
        start: 0,
        components: [[0; 2]; COMPONENTS],
        overflown: false,
        recording: false,
        undone: false,
        used: 0,
        used_last: 0,
        hooks: None,
        patches: ([0; 2], false),
        path: 0,
        kept: 0,
        forgotten: false,
        first_kept: [Entry { address: 0, site: 0, what: 0 }; FIRST_KEPT],
        pages: Pages::NONE,
        merges: [false; 2],
        // None of them, once it is set up.
        last: [Last { entry: 0, ..Last::NONE }; LAST],
    },
    entries: [0; ((LOG_SIZE + SLACK) / 8) as usize],
    kept: [Entry { address: 0, site: 0, what: 0 }; MORE_KEPT],
    pages: MorePages::NONE,
}));

fn log() -> &'static mut Log {
    // SAFETY: see `Cell`; callers use the borrow for one statement. The state alone is borrowed, not the entries.
    unsafe { &mut (*LOG.0.get()).log }
}

/// Sets up the log and maps the shadow; `path` as in [`Log::path`]. Gives 0 or a negative error number.
pub fn set_up(path: u64, hooks: Hooks) -> i64 {
    let map = |at: u64, length: u64| {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
        let result = raw!(libc::SYS_mmap, at, length, libc::PROT_READ | libc::PROT_WRITE, flags, -1i64, 0);
        // A core that the program asks for would hold all of it.
        raw!(libc::SYS_madvise, at, length, libc::MADV_DONTDUMP);
        match result {
            error if error < 0 => error,
            elsewhere if elsewhere as u64 != at => crate::sys::errno::EEXIST,
            _ => 0,
        }
    };
    for [start, end] in MEMORY {
        for bit in [READ_BIT, WRITE_BIT] {
            let error = map(start ^ 1 << bit, end - start);
            if error != 0 {
                return error;
            }
        }
    }
    let start = state_at() + core::mem::offset_of!(Area, entries) as u64;
    let l = log();
    (l.next, l.end, l.start) = (start, start + LOG_SIZE, start);
    (l.state_size, l.components) = (state_size(), components());
    (l.hooks, l.path) = (Some(hooks), path);
    l.last = [Last::NONE; LAST];
    WATCHES.store(true, Relaxed);
    0
}

/// Patches lie in these pages, from the first byte to one past the last; `later`: and in those of libraries that the program may load.
pub fn set_patches(pages: [u64; 2], later: bool) {
    log().patches = (pages, later);
}

/// There may be patches in this memory: not, if neither it nor a library has any.
pub fn may_hold_patches(start: u64, end: u64) -> bool {
    let ([first, last], later) = log().patches;
    later || start < last && first < end
}

/// The tool knows libraries that the program may load.
pub fn knows_libraries() -> bool {
    log().patches.1
}

/// Bytes of address space that shadow and log take.
pub fn reserved() -> u64 {
    let shadows = MEMORY.iter().map(|[start, end]| 2 * (end - start)).sum::<u64>();
    LOG_SIZE + SLACK + if is_mapped() { shadows } else { 0 }
}

/// How much XSAVE writes, with the processor as the kernel has set it up.
pub fn state_size() -> u64 {
    let [_, size, ..] = cpuid::ask(13, 0);
    u64::from(size.max(576)).next_multiple_of(64)
}

/// Where XSAVE puts what (Intel SDM 1, 13.5): it is not the same on all processors.
fn components() -> [[u32; 2]; COMPONENTS] {
    core::array::from_fn(|n| {
        let [size, at, ..] = cpuid::ask(13, n as u32 + FIRST_COMPONENT);
        [at, size]
    })
}

/// Where XSAVE puts component `n` of the processor's state, and how long that is; `None`: it is not known.
pub fn component(n: u32) -> Option<[u64; 2]> {
    let known = log().components.get(n.checked_sub(FIRST_COMPONENT)? as usize)?;
    (known[1] > 0).then(|| known.map(u64::from))
}

/// The word at `address` is an object from now on.
pub fn is_object(address: u64) {
    is_special(address, 8);
}

/// Of each use of this memory [`Hooks::touch`] is told from now on.
pub fn is_special(address: u64, size: u64) {
    switches();
    if has_shadow(address, size) {
        fill(address ^ 1 << READ_BIT, size, OBJECT);
        fill(address ^ 1 << WRITE_BIT, size, OBJECT);
        log().objects = 1;
    }
}

/// This memory is like any other again.
pub fn forget(address: u64, size: u64) {
    if has_shadow(address, size) {
        fill(address ^ 1 << READ_BIT, size, 0);
        fill(address ^ 1 << WRITE_BIT, size, 0);
    }
}

/// Bytes that XSAVE writes in `VS_PASSING`.
pub fn state_size_in_use() -> u64 {
    log().state_size
}

/// Memory outside of the stretches from `a` to `b` and from `c` to `d` has been written since the log was empty last.
pub fn has_written_outside(a: u64, b: u64, c: u64, d: u64) -> bool {
    let within = |entry: &Entry, from: u64, end: u64| {
        entry.address >= from && entry.address < end && entry.size() <= end - entry.address
    };
    let entries = (log().start..log().next).step_by(ENTRY as usize);
    // SAFETY: between start and next there are whole entries, which slow paths have written.
    let mut entries = entries.map(|at| unsafe { (at as *const Entry).read() });
    let is_outside = |e: &Entry| !within(e, a, b) && !within(e, c, d);
    let outside = |e: Entry| if e.is_strided() { e.parts().any(|part| is_outside(&part)) } else { is_outside(&e) };
    log().overflown || entries.any(|e| e.writes() && outside(e))
}

/// Where the state of the log is.
pub fn state_at() -> u64 {
    LOG.0.get() as u64
}

/// Whether memory is watched in this process.
#[inline]
pub fn is_mapped() -> bool {
    WATCHES.load(Relaxed)
}

/// Whether what is accessed is handed over: from the moment that there is a second thread.
#[inline]
pub fn is_recording() -> bool {
    is_mapped() && log().recording
}

/// There are patches in the code of this process.
pub fn is_patched() -> bool {
    is_mapped() && !log().undone
}

/// There are none any more.
pub fn is_undone() {
    log().undone = true;
}

/// There is a second thread in the world: what was accessed before was before it, and is forgotten. `merges`: which of reads and writes may be
/// told earlier than they were made.
#[cold]
pub fn begin(merges: [bool; 2]) {
    end_of_transition(|_| {});
    log().recording = true;
    log().merges = merges;
}

/// No entry stands for several writes from now on, see NOTE [Runs].
pub fn keeps_writes_apart() {
    log().merges[1] = false;
}

/// The file to which what is recorded is appended.
pub fn appends_to() -> Option<u64> {
    Some(log().path).filter(|path| *path != 0)
}

/// A fence has been executed since the last transition ended.
pub fn has_fenced() -> bool {
    is_recording() && is_marked(FENCE ^ 1 << READ_BIT, 1)
}

/// The log is full, and nobody is to have it.
pub fn discard() {
    hand_over(|_| {});
}

/// The log is full: `consumer` gets what is in it, in order. The marks stay.
pub fn hand_over(consumer: impl FnMut(&Entry)) {
    hand_over_keeping(|_| false, consumer);
}

/// The transition of the running thread is over: `consumer` gets what it has accessed and has not been handed over yet, in order,
/// and nothing is recorded any more.
#[inline]
pub fn end_of_transition(consumer: impl FnMut(&Entry)) {
    end_of_transition_keeping(|_| false, consumer);
}

/// The same where what `keeps` says of stays marked and is not handed over.
#[inline]
pub fn end_of_transition_keeping(mut keeps: impl FnMut(&Entry) -> bool, mut consumer: impl FnMut(&Entry)) {
    each(|entry| {
        if keeps(&entry) {
            keep(&entry);
        } else {
            consumer(&entry);
            unmark(&entry);
        }
    });
    if log().overflown {
        drop_shadow();
    }
}

/// As [`hand_over`], where what `keeps` says of is not handed over.
pub fn hand_over_keeping(mut keeps: impl FnMut(&Entry) -> bool, mut consumer: impl FnMut(&Entry)) {
    each(|entry| {
        if keeps(&entry) {
            keep(&entry);
        } else {
            consumer(&entry);
            log().overflown = true;
        }
    });
}

/// Entries of what stays marked: so many lie with the state, so that those of a short execution take no page of their own; the others behind the log.
const FIRST_KEPT: usize = 16;
const MORE_KEPT: usize = 1 << 14;

/// The place of an entry that stays marked, if there is room for so many.
fn kept(n: usize) -> Option<&'static mut Entry> {
    // SAFETY: see `Cell`; callers use the borrow for one statement, and these fields alone are borrowed.
    unsafe {
        let area = LOG.0.get();
        match n.checked_sub(FIRST_KEPT) {
            None => Some(&mut (*area).log.first_kept[n]),
            Some(more) => (*area).kept.get_mut(more),
        }
    }
}

/// Pages that threads have for themselves, see `gate::own`, and what there is no room for in the first part.
pub fn pages() -> (&'static mut Pages, &'static mut MorePages) {
    // SAFETY: see `Cell`; callers use the borrow for one call, and these fields alone are borrowed.
    unsafe { (&mut (*LOG.0.get()).log.pages, &mut (*LOG.0.get()).pages) }
}

#[inline]
fn keep(entry: &Entry) {
    match kept(log().kept as usize) {
        Some(place) => {
            *place = *entry;
            log().kept += 1;
        }
        None => log().forgotten = true,
    }
}

/// Another thread of this process is about to run, or marks are about to be made that are no records: what has stayed marked is so no more.
#[inline]
pub fn switches() {
    if is_mapped() && log().kept > 0 {
        release();
    }
}

#[cold]
#[inline(never)]
fn release() {
    if log().forgotten {
        drop_shadow();
        return;
    }
    for n in 0..core::mem::take(&mut log().kept) as usize {
        if let Some(entry) = kept(n) {
            unmark(entry);
        }
    }
}

/// Empties the log, with each entry shown.
fn each(mut show: impl FnMut(Entry)) {
    compiler_fence(SeqCst);
    let (mut at, end) = (log().start, log().next);
    while at < end {
        // SAFETY: between start and next there are whole entries, which slow paths have written.
        let mut entry = unsafe { (at as *const Entry).read() };
        if entry.site & Entry::FUNCTION == 0 {
            entry.what |= if entry.site & LOCKED != 0 { 2 } else { 0 };
            entry.site &= !(LOCKED | READS);
        }
        show(entry);
        at += ENTRY;
    }
    log().next = log().start;
    compiler_fence(SeqCst);
}

#[cold]
fn drop_shadow() {
    log().overflown = false;
    (log().kept, log().forgotten) = (0, false);
    for [start, end] in MEMORY {
        for bit in [READ_BIT, WRITE_BIT] {
            cover::give_up(start ^ (1 << bit), ((end - 1) ^ (1 << bit)) + 1);
        }
    }
    if let Some(hooks) = log().hooks {
        (hooks.dropped)();
    }
}

/// All of it is memory that has a shadow.
fn has_shadow(address: u64, size: u64) -> bool {
    MEMORY.iter().any(|[start, end]| (*start..*end).contains(&address) && size <= end - address)
}

#[inline]
fn unmark(entry: &Entry) {
    let (mut at, size) = (entry.address, entry.size());
    if entry.is_strided() {
        let (unit, stride) = (entry.unit(), entry.stride() as u64);
        for _ in 0..entry.times() {
            fill(at ^ 1 << READ_BIT, unit, 0);
            if entry.writes() {
                fill(at ^ 1 << WRITE_BIT, unit, 0);
            }
            at = at.wrapping_add(stride);
        }
        return;
    }
    // What a slow path in assembly has made an entry of has a shadow, which it has marked.
    if entry.what >> Entry::UNIT == 0 && !has_shadow(at, size) {
        return;
    }
    fill(entry.address ^ 1 << READ_BIT, size, 0);
    if entry.writes() {
        fill(entry.address ^ 1 << WRITE_BIT, size, 0);
    }
}

#[inline]
fn fill(shadow: u64, size: u64, value: u8) {
    // SAFETY: the shadow of memory that has one is mapped by `set_up`, and nobody else's.
    unsafe {
        match size {
            1 => (shadow as *mut u8).write(value),
            4 => (shadow as *mut u32).write_unaligned(u32::from_ne_bytes([value; 4])),
            8 => (shadow as *mut u64).write_unaligned(u64::from_ne_bytes([value; 8])),
            _ => core::ptr::write_bytes(shadow as *mut u8, value, size as usize),
        }
    }
}

/// A page of the shadow at this place, which is looked at now and written next, is made at once: one that was only read would come by two faults.
#[inline]
fn want(shadow: u64) {
    // SAFETY: as for `fill`; nothing is changed.
    unsafe { core::arch::asm!("or byte ptr [{0}], 0", in(reg) shadow, options(nostack)) }
}

fn is_marked(shadow: u64, size: u64) -> bool {
    // SAFETY: as for `fill`.
    let word = |at: u64| unsafe { (at as *const u64).read_unaligned() } == u64::MAX;
    // SAFETY: as for `fill`.
    let byte = |at: u64| unsafe { (at as *const u8).read() } == u8::MAX;
    let words = size / 8 * 8;
    (0..words).step_by(8).all(|n| word(shadow + n)) && (words..size).all(|n| byte(shadow + n))
}

/// An instruction, a function or a call begins: all words that it uses are used in one step.
pub fn begins() {
    log().used = 0;
}

/// Some memory is an object.
pub fn has_objects() -> bool {
    is_mapped() && log().objects != 0
}

/// Some of it is an object.
pub fn has_object(address: u64, size: u64) -> bool {
    if size == 0 || !has_objects() || !has_shadow(address, size) {
        return false;
    }
    // What is asked for will be recorded.
    want(address ^ 1 << READ_BIT);
    // The shadow of a word that is one is OBJECT throughout.
    let shadow = |at: u64| load::<u8>(at ^ 1 << READ_BIT) == OBJECT;
    (address..address + size).step_by(8).any(shadow) || shadow(address + size - 1)
}

/// Records a range, of any length; nothing if all of it is recorded already. What of it is an object has its turn first.
pub fn range(address: u64, size: u64, site: u32, writes: bool, locked: bool) {
    if size == 0 || !is_mapped() {
        return;
    }
    used(Touch { locked, in_call: false, ..of_call(address, size, site, writes) });
}

/// Records that all of it is written by one that means it to be new: a block of the heap that is freed, memory that becomes a lock. What of it is an object
/// has its turn first; nobody can tell what comes between two of these.
pub fn renews(address: u64, size: u64, site: u32) {
    if has_object(address, size) {
        pieces(Touch { in_call: false, ..of_call(address, size, site, true) }, false);
    } else {
        record(address, size, site, true, false);
    }
}

/// Records that a system call is about to read a range. What of it is an object has its turn first.
pub fn call_reads(address: u64, size: u64, site: u32) {
    if size > 0 {
        used(of_call(address, size, site, false));
    }
}

/// Records what the kernel does to memory that is no object in an operation of its own, in one step where it writes.
pub fn kernel_uses(address: u64, size: u64, site: u32, writes: bool) {
    record(address, size, site, writes, writes);
}

fn used(all: Touch) {
    if has_object(all.address, all.size) {
        pieces(all, true);
    } else {
        record(all.address, all.size, all.site, all.writes, all.locked);
    }
}

/// Records that a system call has written a range, but for words that are objects.
pub fn call_wrote(address: u64, size: u64, site: u32) {
    let plain = |at: u64, size: u64| {
        if !has_object(at, size) {
            record(at, size, site, true, false);
        }
    };
    if has_object(address, size) {
        each_word(address, size, plain);
    } else if size > 0 {
        plain(address, size);
    }
}

/// A system call or a function has written a range in one step, words that are objects among the rest. Each of these has its turn behind that: what
/// came between the two is not explored, but another thread that stands at a use of the word meanwhile is seen.
pub fn call_wrote_at_once(address: u64, size: u64, site: u32) {
    each_word(address, size, |at, size| {
        has_turn(at, size, site);
        call_wrote(at, size, site);
    });
}

/// A system call writes to a range what lies at `from`: words that are objects one by one, each in its turn.
pub fn call_writes(address: u64, from: u64, size: u64, site: u32) {
    each_word(address, size, |at, size| {
        has_turn(at, size, site);
        for byte in at..at + size {
            store(byte, load::<u8>(from + (byte - address)));
        }
        call_wrote(at, size, site);
    });
}

/// A part of a word that a call writes, or has written, has its turn if it is an object.
fn has_turn(at: u64, size: u64, site: u32) {
    let touch = Touch { wide: is_in_parts(size, site, true), ..of_call(at, size, site, true) };
    if has_object(at, size) && !is_used(touch) {
        forget_object(at);
    }
}

/// A range, word by word.
fn each_word(address: u64, size: u64, mut f: impl FnMut(u64, u64)) {
    let (mut at, end) = (address, address.wrapping_add(size));
    while at < end {
        let next = end.min((at & !7) + 8);
        f(at, next - at);
        at = next;
    }
}

fn of_call(address: u64, size: u64, site: u32, writes: bool) -> Touch {
    let whole = (address, address + size);
    Touch {
        address,
        size,
        whole,
        site,
        writes,
        reads: false,
        locked: false,
        compares: None,
        wide: false,
        frame: 0,
        in_call: true,
    }
}

/// A use of memory some of which is an object: those words first, in turn, then the rest is recorded. It belongs to the transition under way
/// by then. `one`: several of these words are used at once.
pub fn pieces(all: Touch, one: bool) {
    each_word(all.address, all.size, |at, size| {
        if has_object(at, size) {
            // One that it reads and then writes has its turn twice.
            let again = log().used > 0 && log().used_last == at & !7;
            let used = log().used + u32::from(!again);
            let wide = one && !all.locked && (used == 2 && !again || is_in_parts(size, all.site, all.writes));
            if !is_used(Touch { address: at, size, wide, ..all }) {
                forget_object(at);
            }
            // Others may have used some meanwhile.
            (log().used, log().used_last) = (used, at & !7);
        }
    });
    each_word(all.address, all.size, |at, size| {
        if !has_object(at, size) {
            record(at, size, all.site, all.writes, all.locked);
        }
    });
}

/// So many bytes of one word are not written, or copied, by one access, but by several: others may see the word in between. What reads texts has them
/// in one load (of SSE2).
fn is_in_parts(size: u64, site: u32, writes: bool) -> bool {
    let function = if site & Entry::FUNCTION != 0 { (site & !Entry::FUNCTION) as usize } else { usize::MAX };
    (writes || function < COPIES) && !size.is_power_of_two() || writes && SORTS.contains(&function)
}

/// The first functions, up to and without this one, copy.
const COPIES: usize = number("memset");
/// These go over what they write more than once.
const SORTS: [usize; 2] = [number("qsort"), number("qsort_r")];

/// The word at `address` is no object any more.
fn forget_object(address: u64) {
    for bit in [READ_BIT, WRITE_BIT] {
        fill((address & !7) ^ 1 << bit, 8, 0);
    }
}

fn record(address: u64, size: u64, site: u32, writes: bool, locked: bool) {
    if has_shadow(address, size) {
        let shadow = address ^ 1 << if writes { WRITE_BIT } else { READ_BIT };
        want(shadow);
        if is_marked(shadow, size) {
            return;
        }
        fill(address ^ 1 << READ_BIT, size, u8::MAX);
        if writes {
            fill(shadow, size, u8::MAX);
        }
    }
    let mut done = 0;
    while done < size {
        let part = (size - done).min(Entry::MAX_SIZE);
        let what = (part as u32) << 2 | u32::from(locked) << 1 | u32::from(writes);
        let at = log().next;
        // SAFETY: the log has room beyond its end, see `SLACK`, and is handed over when it is full.
        unsafe { (at as *mut Entry).write(Entry { address: address.wrapping_add(done), site, what }) }
        log().next = at + ENTRY;
        done += part;
        if log().next >= log().end {
            is_full();
        }
    }
}

/// The log is full.
pub fn is_full() {
    if let Some(hooks) = log().hooks {
        (hooks.full)();
    }
}

/// As [`Hooks::touch`].
fn is_used(touch: Touch) -> bool {
    log().hooks.is_none_or(|hooks| (hooks.touch)(touch))
}

/// As [`Hooks::claims`].
pub fn claims(claimed: Claimed) {
    if let Some(hooks) = log().hooks {
        (hooks.claims)(claimed);
    }
}
