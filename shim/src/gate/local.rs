//! What one process of the world keeps for itself: copied by fork, gone at exec. One kernel thread uses it.

use core::cell::UnsafeCell;
use core::hash::Hash;

use vsrun_model::arena::{Arena, ARENA_ADDR, POOL_ADDR, POOL_SIZE};
use vsrun_model::carrier::{FiberState, ProcessState};
use vsrun_model::object::{NONE, SHARED};
use vsrun_model::states::{Mixer, Purpose};
use vsrun_model::watch::{Range, MAX_RANGES};
use vsrun_model::{Op, Pid, Thread, Tid, World};

/// Region number of the pool (named semaphores, SysV shared memory).
pub const POOL_REGION: u32 = SHARED | 0x3fff_ffff;

/// What the program asked rt_sigaction for.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Action {
    /// Handler, SIG_DFL (0) or SIG_IGN (1).
    pub handler: u64,
    /// SA_* flags.
    pub flags: u64,
    /// SA_RESTORER function.
    pub restorer: u64,
    /// Signals blocked during the handler.
    pub mask: u64,
}

impl Action {
    /// The default.
    pub const NONE: Action = Action { handler: 0, flags: 0, restorer: 0, mask: 0 };
}

/// Readings of the time-stamp counter by one instruction, with no visible operation in between.
#[derive(Clone, Copy)]
pub struct Spin {
    /// Address of the instruction.
    pub site: u64,
    /// How often it was executed.
    pub readings: u32,
    /// Virtual time of the first reading, ns.
    pub since: u64,
}

impl Spin {
    /// None.
    pub const NONE: Spin = Spin { site: 0, readings: 0, since: 0 };
}

/// How far this process is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The library is not in charge (yet).
    Off,
    /// Before main of the first process.
    BeforeRoot,
    /// Under way.
    Running,
}

/// What the gate asks of what is built on it. Set by `init` before the program's first operation.
#[derive(Clone, Copy)]
pub struct Hooks {
    /// Signals are due for the running fiber, or it looks whether there are any: their handlers run.
    pub deliver: fn(),
    /// The running fiber has taken a signal while it was parked at that operation: the handler runs. The flag: in the call,
    /// which then fails. True: it fails.
    pub run_taken: fn(&Op, bool) -> bool,
    /// The process ends: descriptors of files that have been locked are closed.
    pub close_locked: fn(),
    /// Stores go through buffers, and what comes next waits until that of the running fiber is empty.
    pub drain: fn(),
}

/// What the running fiber alone sees of memory, see `late`.
#[derive(Clone, Copy)]
pub struct View {
    /// Bytes; 0: nothing.
    pub size: u32,
    /// They are about to be stored.
    pub stores: bool,
    /// Where.
    pub address: u64,
    /// What everybody else sees there.
    pub others: u64,
}

impl View {
    /// Nothing.
    pub const NONE: View = View { size: 0, stores: false, address: 0, others: 0 };
}

/// State of one process.
pub struct Local {
    /// How far it is.
    pub phase: Phase,
    /// Its index in the model.
    pub pid: Pid,
    /// The fiber that runs.
    pub cur: Tid,
    /// Start routine of the thread being created by pthread_create, and whether it is detached.
    pub next_start: u64,
    /// See `next_start`.
    pub next_detached: bool,
    /// See `next_start`: its stack is libc's, and nobody else's business once the thread is over.
    pub next_stack: bool,
    /// The thread in pthread_create, if it has libc's lock of the new thread until it has set that up, or [`NONE`].
    pub sets_up: Tid,
    /// The new thread, which waits for that, or [`NONE`].
    pub held_back: Tid,
    /// That is so of threads that are created without attributes.
    pub sets_up_others: bool,
    /// The program has made a context (makecontext).
    pub contexts: bool,
    /// The call that is under way is to pass its return, with which signals are handled: see `turn::returns`.
    pub returns: bool,
    /// A signal is being delivered on purpose: the next handler call is it.
    pub delivering: bool,
    /// The mask to be in force after the handler that is being entered, where another one was in force before.
    pub mask_after: Option<u64>,
    /// Some thread has an alternate signal stack.
    pub altstacks: bool,
    /// This is the child of a vfork-like clone that still shares its parent's memory.
    pub borrowed: bool,
    /// The child that is being made is to have a descriptor (CLONE_PIDFD).
    pub child_has_pidfd: bool,
    /// Shared mappings in use.
    pub n_ranges: usize,
    /// Shared mappings.
    pub ranges: [Range; MAX_RANGES],
    /// Signal actions, by number.
    pub actions: [Action; 65],
    /// Once controls whose initializer is being run: (thread, object, address, what the word is once it is done).
    pub onces: [(Tid, u32, u64, i32); 16],
    /// Number of `onces`.
    pub n_onces: usize,
    /// The loop on the time-stamp counter that the running fiber may be in.
    pub spin: Spin,
    /// First and one past the last address of the shim's text.
    pub text: (u64, u64),
    /// Where the stack of the first thread begins.
    pub stack: u64,
    /// Calls and operations so far, of all fibers.
    pub acts: u64,
    /// `acts` when the last use of memory that is an object was over.
    pub quiet_since: u64,
    /// The operation that is to be published is a use of such memory.
    pub touches: bool,
    /// A fence was among what has been handed over of the transition under way.
    pub has_fenced: bool,
    /// Something was said of who may use memory: where blocks are given out anew is recorded from then on.
    pub claims: bool,
    /// Uses of memory that the running thread owns, since so many operations of the world: see `touch`.
    pub own_uses: (u32, u64),
    /// What the running fiber writes when it goes on, where some of that is such memory: first and one past the last address.
    pub to_write: (u64, u64),
    /// What the running fiber alone sees of memory until it comes back to the gate, see `late`.
    pub own_view: View,
    /// Code that came after the patches, by name, while nobody else reaches memory of this process; its length.
    pub late_code: ([u8; NAME], usize),
    /// Entries of functions that return a choice are traps.
    pub toss_traps: bool,
    /// That has been told of.
    pub late_told: bool,
    /// It has mapped memory that others may reach, to write there.
    pub shares: bool,
    /// The keys of thread-specific data that were made last, by which thread, after how many of its transitions.
    pub made_keys: ([Option<u32>; 2], Tid, u32),
    /// Whether libc has loaded what unwinds, see `calls::unwinder`.
    pub unwinder: i32,
    /// The locks of its stdio streams are armed; its exit handlers are done. See `calls::stream`.
    pub streams_armed: bool,
    /// They were in a process that this one was forked from: the model knows them.
    pub streams_copied: bool,
    /// See `streams_armed`.
    pub exits: bool,
    /// The thread that exits while others are left, or [`NONE`].
    pub leaves: Tid,
    /// The thread that has called exit first, or [`NONE`].
    pub exiting: Tid,
    /// A path that was followed is kept for the call itself, see `files::keep_walk`.
    pub keeps_walk: bool,
    /// The file whose last name the call takes away that comes next, beside other threads.
    pub removes: Option<(u64, u64)>,
    /// See [`Hooks`].
    pub hooks: Hooks,
    /// It tells which pages it uses, see `gate::pages`.
    pub tells_pages: bool,
    /// The arena can only be read, see `gate::shield`.
    pub closed: bool,
    /// The program's code runs, and it counts how often it has begun to.
    pub outside: bool,
    /// How often it has, as far as that decides what is closed.
    pub calls: u32,
}

impl Local {
    /// What of this the program's future depends on. What it does not: who runs, what was noted of what has been done, and what lies beside the program.
    pub fn digest(&self) -> [u64; 2] {
        #[rustfmt::skip]
        let Local {
            phase: _, pid, cur: _, next_start, next_detached, next_stack, sets_up, held_back, sets_up_others, contexts, returns, delivering, mask_after, altstacks, borrowed, child_has_pidfd, n_ranges, ranges,
            actions, onces, n_onces, spin, text: _, stack: _, acts: _, quiet_since: _, touches, has_fenced: _, claims, own_uses: _, to_write, own_view,
            late_code, toss_traps, late_told, shares, made_keys, unwinder, streams_armed, streams_copied, exits, leaves, exiting, keeps_walk, removes,
            hooks: _, tells_pages: _, closed: _, outside: _, calls: _,
        } = self;
        let mut mixer = Mixer::new(Purpose::LOCAL);
        let h = &mut mixer;
        (pid, next_start, next_detached, next_stack, sets_up, held_back, sets_up_others, contexts).hash(h);
        (returns, delivering, mask_after).hash(h);
        (altstacks, borrowed, child_has_pidfd).hash(h);
        for range in &ranges[..*n_ranges] {
            (range.start, range.end, range.space, range.offset).hash(h);
        }
        for Action { handler, flags, restorer, mask } in actions {
            (handler, flags, restorer, mask).hash(h);
        }
        onces[..*n_onces].hash(h);
        if spin.site != 0 {
            (spin.site, spin.readings, spin.since).hash(h);
        }
        (touches, claims, to_write, own_view.size, own_view.stores, own_view.address, own_view.others).hash(h);
        (late_code.1, toss_traps, late_told, shares, unwinder, streams_armed, streams_copied, exits).hash(h);
        (leaves, exiting, keeps_walk, removes).hash(h);
        // Keys count as long as the transition lasts in which they were made.
        let (keys, who, when) = made_keys;
        if world().threads.get(*who).is_some_and(|thread| thread.transitions == *when) {
            (keys, who).hash(h);
        }
        mixer.digest()
    }
}

struct Cell(UnsafeCell<Local>);
// SAFETY: a process of a world has one kernel thread; fibers switch only where no borrow of `Local` is alive.
unsafe impl Sync for Cell {}

static LOCAL: Cell = Cell(UnsafeCell::new(Local {
    phase: Phase::Off,
    pid: NONE,
    cur: NONE,
    next_start: 0,
    next_detached: false,
    next_stack: false,
    sets_up: NONE,
    held_back: NONE,
    sets_up_others: false,
    contexts: false,
    returns: false,
    delivering: false,
    mask_after: None,
    altstacks: false,
    borrowed: false,
    child_has_pidfd: false,
    n_ranges: 0,
    ranges: [Range::NONE; MAX_RANGES],
    actions: [Action::NONE; 65],
    onces: [(NONE, NONE, 0, 0); 16],
    n_onces: 0,
    spin: Spin::NONE,
    text: (0, 0),
    stack: 0,
    acts: 0,
    quiet_since: 0,
    touches: false,
    has_fenced: false,
    claims: false,
    own_uses: (0, 0),
    to_write: (0, 0),
    own_view: View::NONE,
    late_code: ([0; NAME], 0),
    toss_traps: false,
    late_told: false,
    shares: false,
    made_keys: ([None; 2], NONE, 0),
    unwinder: 0,
    streams_armed: false,
    streams_copied: false,
    exits: false,
    leaves: NONE,
    exiting: NONE,
    keeps_walk: false,
    removes: None,
    hooks: Hooks { deliver: || {}, run_taken: |_, fails| fails, close_locked: || {}, drain: || {} },
    tells_pages: false,
    closed: false,
    outside: false,
    calls: 0,
}));

/// Bytes of a name that is kept.
pub const NAME: usize = 120;

/// This process's state. Borrow it for a statement, never across a switch of fibers.
#[inline]
pub fn local() -> &'static mut Local {
    // SAFETY: see `Cell`; callers keep no borrow across a switch or a call that takes another.
    unsafe { &mut *LOCAL.0.get() }
}

/// The arena, to be read. Borrow it for a statement, never across a switch of fibers or a change.
#[inline]
pub fn arena() -> &'static Arena {
    // SAFETY: mapped by `init` at this address for the life of the process; only the holder of the turn gets here.
    unsafe { &*(ARENA_ADDR as *const Arena) }
}

/// The modelled world, to be read.
#[inline]
pub fn world() -> &'static World {
    &arena().world
}

/// The model, to be changed by one of its operations: `machine().operation(..)`, and nothing else (a test looks).
#[inline]
pub fn machine() -> &'static mut Arena {
    // SAFETY: as for `arena`; the borrow lasts for the call, whose arguments are evaluated before the model runs.
    unsafe { &mut *(ARENA_ADDR as *mut Arena) }
}

/// The same of the modelled world: `model().operation(..)`.
#[inline]
pub fn model() -> &'static mut World {
    // SAFETY: as for `machine`.
    unsafe { &mut (*(ARENA_ADDR as *mut Arena)).world }
}

/// The running fiber's thread record, to be read.
#[inline]
pub fn me() -> &'static Thread {
    &world().threads[local().cur]
}

/// What the shim keeps of thread `t`. Borrow it for a statement.
#[inline]
pub fn fiber_of(t: Tid) -> &'static mut FiberState {
    model().fiber_state(t)
}

/// The same of the running fiber.
#[inline]
pub fn fiber() -> &'static mut FiberState {
    fiber_of(local().cur)
}

/// The program's number for what has descriptor `number` while the call under way holds it.
pub fn shown(number: i32) -> i32 {
    let hides = |&[hidden, _]: &[i32; 2]| hidden > 0 && hidden - 1 == number;
    me().hidden.into_iter().find(hides).map_or(number, |[_, shown]| shown)
}

/// What the shim keeps of process `p`. Borrow it for a statement.
#[inline]
pub fn process_of(p: Pid) -> &'static mut ProcessState {
    model().process_state(p)
}

/// Where objects at `addr` live: (space, address or offset).
#[inline]
pub fn space_of(addr: u64) -> (u32, u64) {
    let l = local();
    if addr.wrapping_sub(POOL_ADDR) < POOL_SIZE {
        return (POOL_REGION, addr - POOL_ADDR);
    }
    for range in &l.ranges[..l.n_ranges] {
        if addr >= range.start && addr < range.end {
            return (range.space, addr - range.start + range.offset);
        }
    }
    (l.pid, addr)
}

/// Where the number of shared mappings is, and the first of them.
pub fn ranges() -> [u64; 2] {
    let l = local();
    [&raw const l.n_ranges as u64, l.ranges.as_ptr() as u64]
}

/// Notes that [start, end) is mapped shared; what was there is forgotten. False: no room.
pub fn add_range(range: Range) -> bool {
    remove_range(range.start, range.end);
    let l = local();
    if l.n_ranges == MAX_RANGES {
        return false;
    }
    l.ranges[l.n_ranges] = range;
    l.n_ranges += 1;
    true
}

/// The running fiber has done something since it read memory that is an object: it is in no loop that only does that.
pub fn forget_reads() {
    let f = fiber();
    (f.n_reads, f.rounds) = (0, 0);
}

/// Notes that [start, end) is not mapped shared any more.
pub fn remove_range(start: u64, end: u64) {
    let l = local();
    let mut i = 0;
    while i < l.n_ranges {
        let r = l.ranges[i];
        if r.end <= start || r.start >= end {
            i += 1;
            continue;
        }
        l.n_ranges -= 1;
        l.ranges[i] = l.ranges[l.n_ranges];
        let keep =
            [Range { end: start, ..r }, Range { start: end, offset: r.offset + end.saturating_sub(r.start), ..r }];
        for k in keep {
            if k.start < k.end && k.start >= r.start && k.end <= r.end && l.n_ranges < MAX_RANGES {
                l.ranges[l.n_ranges] = k;
                l.n_ranges += 1;
            }
        }
        i = 0;
    }
}
