//! The arena: the memory that holds the whole modelled state of one world, shared by vsrun and the program's
//! processes. This file is the contract between them; [`VERSION`] changes with any field here or in what it contains.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `magic`, `version`, `size` | vsrun, once | the shim, before anything else |
//! | `control`, `back` | as their fields say | both |
//! | `plan`, `prefix`, `expected`, `aims`, `sleep` | vsrun, before an execution starts (`sleep`, `aims`, what is left of `expected` and of the guide in `prefix` then by the scheduler step) | the scheduler step, what `aims` has met vsrun |
//! | `known_shared`, `declared` | vsrun, before an execution starts | the holder of the turn |
//! | `world`, `steps`, `trail`, `seen`, `records`, `enabled`, `noted`, `late` | the holder of the turn | anyone who knows that the world stands still |

use crate::base::aims::Aims;
use crate::base::back::Back;
use crate::base::records::Records;
use crate::base::toss::{Tossing, MAX_TOSSES};
use crate::base::watch::{Entry, Gone, LateFile, Record, Watching, LATE_PATH, MAX_LATE};
use crate::base::{numbers, Kind, Op, Pid, Table, Tid, Uid, NONE};
use crate::state::pieces::Pieces;
use crate::state::visited::{State, Visited};
use crate::state::{
    Act, Closing, Declared, Effects, Files, Noted, Orders, Owned, Word, World, MAX_DECLARED, MAX_KNOWN, MAX_NOTED,
    MAX_OWNED, MAX_WORDS,
};

/// "vsrun" and a line end, so that a text file is never taken for an arena.
pub const MAGIC: u64 = 0x0a6e_7572_7376_0001;
/// Version of everything in the arena.
pub const VERSION: u32 = 80;
/// Where every process of a world maps the arena.
pub const ARENA_ADDR: u64 = 0x2000_0000_0000;
/// Where every process of a world maps the pool that shared memory segments and named semaphores are cut from.
pub const POOL_ADDR: u64 = 0x2100_0000_0000;
/// Bytes of freed blocks that each process keeps back, where nothing else is asked for.
pub const QUARANTINE: u64 = 256 << 10;
/// Size of the pool, bytes; pages that are never touched cost nothing.
pub const POOL_SIZE: u64 = 1 << 34;
/// Where a process that goes back ([`Back`]) has what is not put back.
pub const BACK_ADDR: u64 = 0x2300_0000_0000;
/// Where a process of a watched world keeps what calls use in the place of memory that is an object.
pub const ASIDE_ADDR: u64 = 0x2400_0000_0000;
/// Descriptors of a process that goes back: by the first the kernel watches for writes, the second says what was written.
pub const WRITES_FD: i32 = 245;
#[allow(missing_docs)]
pub const WRITTEN_FD: i32 = 246;
/// Where descriptors of files that messages of the program carry go in and come out.
pub const MAIL_IN_FD: i32 = 247;
#[allow(missing_docs)]
pub const MAIL_OUT_FD: i32 = 248;
/// Descriptor of what stands in the kernel for each descriptor of the model.
pub const PLACE_FD: i32 = 249;
/// Descriptor of the arena in every process of a world.
pub const ARENA_FD: i32 = 250;
/// Descriptor of the pool in every process of a world.
pub const POOL_FD: i32 = 251;
/// Descriptor of a file of fixed random bytes that stands for /dev/urandom.
pub const RANDOM_FD: i32 = 252;
/// Descriptor of the guard's pipe, without a supervisor.
pub const GUARD_FD: i32 = 253;
/// First descriptor that is not the program's. Low enough that a fork has little to copy, and below the one that shells take for their scripts.
pub const FIRST_FD: i32 = 245;
/// One past the last descriptor that is not the program's.
pub const LAST_FD: i32 = 254;
/// Pages in [`Arena::common`].
pub const MAX_COMMON: usize = 1 << 10;
/// Pages in [`Arena::met`].
pub const MAX_MET: usize = 1 << 7;
/// In [`Arena::met`]: no page may be taken for the own one of a thread.
pub const ALL_PAGES: u64 = u64::MAX;
/// Longest schedule prefix.
pub const MAX_PREFIX: usize = 1 << 20;
/// Of a guide of `guide` choices behind a prefix of `prefix`: so many as there is room for.
pub const fn guide_that_fits(prefix: usize, guide: usize) -> usize {
    let room = MAX_PREFIX.saturating_sub(prefix);
    if guide < room {
        guide
    } else {
        room
    }
}

/// Most entries of a sleep set.
pub const MAX_SLEEP: usize = 1 << 14;
/// Most threads of which it is said how many transitions they are expected to make.
pub const MAX_EXPECTED: usize = 1024;
/// Longest trace that is recorded.
pub const MAX_STEPS: usize = 1 << 22;
/// Most pending operations that are recorded in one trace.
pub const MAX_SEEN: usize = 1 << 22;
/// Most records of what was done to watched memory.
pub const MAX_RECORDS: usize = 1 << 24;
/// Most pieces of memory in [`Pages`].
pub const MAX_RANGES: usize = 128;
/// Most pages in them.
pub const MAX_PAGES: usize = 1 << 14;
/// Size of a page, bytes.
pub const PAGE: u64 = 4096;
/// System call numbers that are counted.
pub const MAX_SYSCALLS: usize = 512;
/// Place in `Control::passed` for files over which threads communicate.
pub const SHARED_FILES: usize = MAX_SYSCALLS - 2;
/// Place in `Control::passed` for descriptors that libc uses while it holds a lock of its own.
pub const LIBC_NUMBERS: usize = MAX_SYSCALLS - 3;
/// See [`Control::guarded`].
pub const GUARDED_ALWAYS: u32 = u32::MAX;
/// Longest path of the shim library.
pub const MAX_PATH: usize = 256;

/// One choice of a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(C)]
pub struct Choice {
    /// The thread that moves.
    pub uid: Uid,
    /// The alternative of its operation.
    pub value: u32,
    /// The kind of operation that is expected, or [`Kind::NONE`] for any.
    pub kind: Kind,
    #[cfg_attr(feature = "serde", serde(skip))]
    pad: [u8; 3],
}

impl Choice {
    /// A choice.
    pub const fn new(uid: Uid, value: u32, kind: Kind) -> Choice {
        Choice { uid, value, kind, pad: [0; 3] }
    }
}

/// One transition of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Step {
    /// What moved, in the state before.
    pub act: Act,
    /// The alternative taken.
    pub value: u32,
    /// How many there were.
    pub choices: u32,
    /// What it did beyond its operation.
    pub did: Effects,
    /// Zero.
    pub pad: [u8; 7],
    /// First of the records in `seen` for the state before; none are kept for steps of the prefix.
    pub seen_at: u32,
    /// Number of them.
    pub n_seen: u32,
}

/// The pending operation of a thread in a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Seen {
    /// The operation.
    pub act: Act,
    /// Its alternatives; 0: not enabled.
    pub choices: u32,
    /// It was asleep (in any alternative).
    pub asleep: u32,
}

/// Most transitions of an execution of which the states are told.
pub const MAX_STATES: usize = 1 << 20;

/// What comes after the prefix. A transparent integer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct Policy(pub u32);

impl Policy {
    /// Stay on the same thread while it is enabled and not asleep; then the first in order of creation.
    pub const STAY: Policy = Policy(0);
    /// Any enabled alternative, by the seed.
    pub const RANDOM: Policy = Policy(1);
    /// The enabled thread of highest priority; priorities are drawn from the seed, and lowered at `pct_depth` - 1 steps
    /// (Burckhardt, Kothari, Musuvathi, Nagarakatte, ASPLOS 2010). After `pct_fair` transitions as [`Policy::RANDOM`]: priorities are not
    /// fair, so that who waits in a loop for one of lower priority does so for ever.
    pub const PCT: Policy = Policy(2);
    /// Any enabled thread, by the seed, with a probability in proportion to the transitions that it has left, as far as is
    /// known from `Arena::expected`: so that with threads of known lengths all interleavings are about equally likely.
    pub const WALK: Policy = Policy(3);
    /// As [`Policy::STAY`], and what is likelier outside: a signal interrupts a call that waits, rather than come just before it.
    pub const LIKELY: Policy = Policy(4);
    /// The enabled operation of highest priority; each operation has one of its own, drawn from the seed, and has another one drawn when an
    /// operation that it depends on is performed while it waits (POS: Yuan, Yang, Gu, CAV 2018).
    pub const POS: Policy = Policy(5);
    /// Operations on the objects in `Aims::interest` in an order in which each interleaving of them is about equally likely, by `Arena::expected`,
    /// which counts these operations alone; any other enabled alternative, by the seed (SURW: Zhao, Wolff, Mathur, Roychoudhury, Selectively
    /// uniform concurrency testing, ASPLOS 2025). After `pct_fair` transitions as [`Policy::RANDOM`].
    pub const SURW: Policy = Policy(6);
    /// As [`Policy::POS`], with the operations put off that `Aims::wishes` hold back (RFF: Wolff, Shi, Duck, Mathur, Roychoudhury, Greybox fuzzing
    /// for concurrency testing, ASPLOS 2024). After `pct_fair` transitions as [`Policy::RANDOM`].
    pub const RFF: Policy = Policy(7);
    /// As [`Policy::POS`]; what came after what is noted of all transitions, with threads and repetitions told apart. After `pct_fair` transitions as
    /// [`Policy::RANDOM`].
    pub const NOVEL: Policy = Policy(8);

    /// An execution of it tells what it has met, in [`Arena::aims`].
    pub fn aims(self) -> bool {
        matches!(self, Policy::SURW | Policy::RFF | Policy::NOVEL)
    }
}

/// The schedule and bounds of an execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Plan {
    /// What comes after the prefix.
    pub policy: Policy,
    /// Choices in `Arena::prefix`.
    pub prefix_len: u32,
    /// Choices behind them there that are made as far as that is possible, before the policy decides.
    pub guide_len: u32,
    /// Seed of the policies that draw lots.
    pub seed: u64,
    /// Depth d of the bugs that [`Policy::PCT`] looks for.
    pub pct_depth: u32,
    /// Estimate k of the number of transitions, among which [`Policy::PCT`] puts its changes of priority.
    pub pct_length: u32,
    /// Transitions after which [`Policy::PCT`], [`Policy::SURW`], [`Policy::RFF`] and [`Policy::NOVEL`] become fair.
    pub pct_fair: u64,
    /// Transitions after which the execution is cut.
    pub max_depth: u64,
    /// Transitions without progress after which it is cut, not within its prefix; 0: there is no such bound.
    pub max_idle: u64,
    /// Record the pending operations of the states after the prefix.
    pub record: bool,
    /// End the execution when a process exits with a status other than 0.
    pub fail_on_exit: bool,
    /// Do not even record the transitions: the schedule alone repeats the execution.
    pub blind: bool,
    /// Go on after a circle of locks while something is enabled.
    pub past_cycles: bool,
    /// What ends a thread or a process wakes what sleeps there: effects of sleeping operations are not known.
    pub wake_by_effects: bool,
    /// What sleeps wakes by what the transitions did, which is known after them. Nothing in the sleep set may call for the
    /// end of its process or come to its visible end ([`Effects::EXITS`]) while other threads live in it.
    pub late_wake: bool,
    /// Operations on objects that one thread alone uses are no transitions; see `sharing`.
    pub unshared: bool,
    /// What the last transition of the prefix is expected to do. With `wake_by_effects`, nothing sleeps any more if it does
    /// more.
    pub expected_effects: Effects,
    /// With `record`: so many of the last choices of the prefix are recorded like what comes after it.
    pub record_back: u32,
    /// What is done to watched memory is recorded.
    pub watches: bool,
    /// Accesses of an instruction in one transition, each right behind the one before in memory, may be recorded as one.
    pub merges: bool,
    /// There is memory of which each use is an operation, in [`Arena::words`].
    pub has_words: bool,
    /// Each execution decides, before there is a second thread, whether blocks of the heap that are freed are given out again at once or kept back.
    pub reuses: bool,
    /// What a thread does to pages that no other one has used yet is not recorded; where another one comes to such a page that is told: see [`Arena::met`].
    pub own_pages: bool,
    /// Which operations of different threads come one after the other is noted, in [`Arena::orders`].
    pub orders: bool,
    /// Operations take no time, and nobody gives way to others, so that states come again.
    pub timeless: bool,
    /// States are told apart, and the execution ends behind its prefix where it comes to one that was met before; see `sched::states`.
    pub states: bool,
    /// With `states`: what tells them apart is told piece by piece, in [`Arena::pieces`].
    pub pieces: bool,
    /// 1 + the transitions after which states are not told apart, within the prefix; 0: they are. See `World::untold`.
    pub untold: u32,
    /// The time is a part of them from the beginning: the program looks at the clock, see `World::told_time`.
    pub timed: bool,
    /// 1 + the choices of the prefix that lead to a state to which the others lead back, where the execution ends; 0: it goes on. See `End::LOOP`.
    pub loops: u32,
}

impl Plan {
    /// What comes is decided by a search that goes through the tree, and all of it is recorded: no lots are drawn, and nothing is noted beside the trace.
    pub fn goes_through_tree(&self) -> bool {
        self.policy == Policy::STAY && self.guide_len == 0 && !self.orders && !self.blind
    }
}

numbers! {
    /// What the root is asked to do.
    Command(u32):
    NONE = 0,
    /// Fork an execution.
    RUN = 1,
    /// Fork an execution that asks to be traced by vsrun before it goes on.
    RUN_TRACED = 2,
    /// Map the file by which memory is watched.
    WATCH = 3,
    /// Fork an execution that tells which pages it uses, see [`Pages`].
    RUN_TELLING = 4,
    /// Keep those pages alone.
    KEEP = 5,
    /// Map a page for code, see [`Tossing`].
    ROOM = 6,
    /// From now on traps are patches, see [`Tossing`].
    TRAPS = 7,
}

/// What processes are to show: the kind in the lowest two bits, above them how many requests there were. A transparent integer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct Shows(pub u32);

impl Shows {
    /// Threads are fibers.
    pub const NOTHING: u32 = 0;
    /// Each fiber is a thread of the kernel's.
    pub const THREADS: u32 = 1;
    /// The same, and the first process stops in its debugger.
    pub const END: u32 = 2;

    /// Which of these.
    pub fn kind(self) -> u32 {
        self.0 & 3
    }

    /// The next request, of that kind.
    pub fn next(self, kind: u32) -> Shows {
        Shows((self.0 | 3).wrapping_add(1) | kind)
    }
}

numbers! {
    /// How a process under test is run.
    Mode(u32):
    /// The first process stops before main and forks executions.
    ROOT = 0,
    /// No root: the first process goes straight on, once, and shows the end to a debugger.
    DIRECT = 1,
}

/// Pages of code and constants that the root has mapped and not written to. The kernel copies the root's entry for each of them into the
/// process of an execution and takes it away at its end, which for a libc and a shim costs a fifth of a small execution, though that
/// uses one page in six. So some executions tell what they use, and the root gives up the others: who uses one of these all
/// the same gets it from the file.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Pages {
    /// Address of the first page, and how many there are. Written by vsrun.
    pub ranges: [(u64, u64); MAX_RANGES],
    /// Number of `ranges`.
    pub len: u32,
    /// A bit for each page of the ranges, one after the other: it is used, or not the root's to give up. Written by both.
    pub used: [u64; MAX_PAGES / 64],
}

impl Pages {
    /// None are known.
    pub const NONE: Pages = Pages { ranges: [(0, 0); MAX_RANGES], len: 0, used: [0; MAX_PAGES / 64] };

    /// The address of each page, and its place among the bits.
    pub fn all(&self) -> impl Iterator<Item = (u64, usize)> + '_ {
        let ranges = self.ranges.iter().take(self.len as usize);
        let pages = ranges.flat_map(|&(at, count)| (0..count).map(move |n| at + n * PAGE));
        pages.take(MAX_PAGES).enumerate().map(|(n, at)| (at, n))
    }

    /// Whether page `n` is used.
    pub fn is_used(&self, n: usize) -> bool {
        self.used.get(n / 64).is_some_and(|bits| bits >> (n % 64) & 1 != 0)
    }

    /// Page `n` is used.
    pub fn set_used(&mut self, n: usize) {
        if let Some(bits) = self.used.get_mut(n / 64) {
            *bits |= 1 << (n % 64);
        }
    }
}

/// Traffic between vsrun and the root.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Control {
    /// Futex word; vsrun sets it, the root clears it.
    pub command: u32,
    /// Futex word; the root counts the states of readiness it has reached: 1 = at the root.
    pub ready: u32,
    /// Real pid of the execution last forked, or a negative error number; written by the root.
    pub forked: i32,
    /// How the first process goes on before main.
    pub mode: Mode,
    /// Real process id of vsrun, so that children can tell that it is gone.
    pub vsrun_pid: i32,
    /// 1: at the end the process that has the turn stops itself (SIGSTOP) so that vsrun can look around.
    pub stop_at_end: u32,
    /// For so many calls of each process the arena can only be read while the program's own code runs, see [`Control::guards`]; or [`GUARDED_ALWAYS`].
    pub guarded: u32,
    /// After so many of these that is so for ever fewer of them only; 0: for all. Written by vsrun, as the two beside it.
    pub guarded_thickly: u32,
    /// Which of these they are: another number, others.
    pub guarded_seed: u32,
    /// Wait status of the first process; written by it. Valid once `status_known` is 1.
    pub status: i32,
    /// See `status`.
    pub status_known: u32,
    /// 1: stores to memory that is an object go through buffers, as on x86.
    pub store_buffers: u32,
    /// 1: the process that has the turn has stopped itself because of `told_from`; vsrun clears it.
    pub tells: u32,
    /// 1: names of files that calls use are told to vsrun, in the file `names` beside the shim library.
    pub names_told: u32,
    /// Bytes used of the pool; written by the holder of the turn.
    pub pool_used: u64,
    /// From this transition on, counted from 1, who makes one stops itself (SIGSTOP) just before, so that vsrun can see from where in
    /// the program; 0: nobody does.
    pub told_from: u64,
    /// Without a supervisor: what processes that wait for the turn are to show a debugger, see [`Shows`]. Written by the holder of the turn.
    pub shows: Shows,
    /// Number of shared regions given out.
    pub regions: u32,
    /// 1 once a file in the execution's private /dev/shm has been opened; written by the holder of the turn.
    pub shm_used: u32,
    /// File name of the shim library, NUL-terminated; the execution's /dev/shm is `shm` beside it.
    pub shim_path: [u8; MAX_PATH],
    /// Processes that the user of vsrun may have (RLIMIT_NPROC): what the program has not set itself.
    pub processes: u64,
    /// What executions use of the root's memory.
    pub pages: Pages,
    /// Watched memory.
    pub watching: Watching,
    /// Functions that return a choice.
    pub tossing: Tossing,
    /// Bytes of freed blocks of the heap that each process keeps back, written by vsrun; [`QUARANTINE`] unless asked for.
    pub quarantine: u64,
    /// 1: the program is to see the processor of [`crate::cpu`].
    pub baseline: u64,
    /// System calls that went through to the kernel, by number.
    pub passed: [u32; MAX_SYSCALLS],
}

/// Behind [`Control::guarded_thickly`] calls so many are guarded, on average, each time their number doubles.
const GUARDED_THINLY: u32 = 8;

impl Control {
    /// Whether the arena can only be read while the program's own code runs up to its call number `n`, counted from 0. That costs two system calls which go
    /// through all page tables of the arena, so of many calls it is so for few: as many of the second thousand as of the second million. They are drawn by lot, so that
    /// they do not keep step with a loop of the program, and anew with each seed.
    pub fn guards(&self, n: u32) -> bool {
        if n >= self.guarded {
            return false;
        }
        let thickly = self.guarded_thickly;
        if thickly == 0 || n < thickly {
            return true;
        }
        // One of so many: a power of two.
        let of = ((1 << n.ilog2()) / GUARDED_THINLY).max(1);
        let mixed = (n ^ self.guarded_seed.wrapping_mul(0x85eb_ca6b)).wrapping_mul(0x9e37_79b1);
        (mixed ^ mixed >> 15).wrapping_mul(0x2c1b_3c6d) >> 12 & (of - 1) == 0
    }
}

/// A region that processes share: a shared mapping of a file or of anonymous memory.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Region {
    /// Device of the file, or 0 for memory of the pool and anonymous memory.
    pub dev: u64,
    /// Inode of the file; a number of its own for anonymous memory.
    pub ino: u64,
    /// 1: a process has mapped it that can write there.
    pub written: u32,
    /// 1: a process has mapped it whose code is not watched.
    pub unwatched: u32,
}

/// A SysV shared memory segment cut from the pool.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Segment {
    /// IPC key, 0 for IPC_PRIVATE.
    pub key: i32,
    /// Identifier.
    pub id: i32,
    /// Offset in the pool.
    pub offset: u64,
    /// Size as asked for, bytes.
    pub size: u64,
    /// Attachments.
    pub attached: u32,
    /// Permission bits.
    pub mode: u32,
    /// 1: to be removed when nobody is attached; 2: gone.
    pub removed: u32,
    /// Virtual pid of the creator.
    pub creator: i32,
    /// When it was attached and detached last, and made or changed, virtual ns; 0: never.
    pub dates: [u64; 3],
    /// Virtual pid of who attached or detached it last, or 0.
    pub last: i32,
    pub(crate) pad: u32,
}

/// What a process has attached.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Attached {
    /// The process.
    pub process: Pid,
    /// Index of the segment.
    pub segment: u32,
    /// How often.
    pub times: u32,
    /// Calls under way for which the segment is counted once more, see [`Arena::segment_enters`].
    pub entering: u32,
}

/// The arena. About 1.6 GB of address space, of which only what is used becomes memory.
#[repr(C)]
pub struct Arena {
    /// [`MAGIC`].
    pub magic: u64,
    /// [`VERSION`].
    pub version: u32,
    pad: u32,
    /// Size of this structure, bytes.
    pub size: u64,
    /// Traffic with the root.
    pub control: Control,
    /// Traffic with a process that goes back.
    pub back: Back,
    /// The schedule.
    pub plan: Plan,
    /// Random state of the policies that draw lots.
    pub random: u64,
    /// Transitions taken since [`Arena::prepare`].
    pub taken: u64,
    /// The first choices of the guide, so many, have been made or given up.
    pub guided: u32,
    /// Steps that were taken but not recorded, by wish or because `steps` was full.
    pub unrecorded: u64,
    /// A hash of all steps, recorded or not: thread, operation and alternative.
    pub trail: u64,
    /// The kind of the operation of the last step, recorded or not.
    pub last: Kind,
    /// The modelled state.
    pub world: World,
    /// Shared regions, by number.
    pub regions: Table<Region, 4096>,
    /// SysV shared memory.
    pub segments: Table<Segment, 1024>,
    /// Who has attached which of it.
    pub attached: Table<Attached, 4096>,
    /// The private layer over the file system.
    pub files: Files,
    /// Further root processes, and the signal at the end.
    pub closing: Closing,
    /// Scratch: the enabled threads of the present state.
    pub enabled: Table<(Tid, u32), { crate::state::world::MAX_THREADS }>,
    /// Sleep set at the end of the prefix, then of the present state: (thread, alternative).
    pub sleep: Table<(Tid, u32), MAX_SLEEP>,
    /// Transitions that threads are expected to make in all, ascending by name, for [`Policy::WALK`] and [`Policy::SURW`]. Written by vsrun.
    pub expected: Table<(Uid, u32), MAX_EXPECTED>,
    /// What the policy aims at.
    pub aims: Aims,
    /// With [`Plan::orders`]: what came after what.
    pub orders: Orders,
    /// Names of what is known to be shared, ascending; see `sharing`.
    pub known_shared: Table<u64, MAX_KNOWN>,
    /// Memory of which each use is an operation, ascending. Written by vsrun.
    pub words: Table<Word, MAX_WORDS>,
    /// What the user has said about objects.
    pub declared: Table<Declared, MAX_DECLARED>,
    /// Names of what turned out to be shared in this execution.
    pub noted: Table<Noted, MAX_NOTED>,
    /// Libraries that came after the patches in this execution, each once.
    pub late: Table<LateFile, MAX_LATE>,
    /// The prefix of the schedule, and the guide behind it.
    pub prefix: [Choice; MAX_PREFIX],
    /// The trace.
    pub steps: Table<Step, MAX_STEPS>,
    /// Pending operations recorded along the trace.
    pub seen: Table<Seen, MAX_SEEN>,
    /// What was done to watched memory.
    pub records: Records<MAX_RECORDS>,
    /// Records for which there was no room.
    pub records_lost: u64,
    /// Memory that threads own.
    pub owned: Table<Owned, MAX_OWNED>,
    /// Pieces of it for which there was no room.
    pub owned_lost: u64,
    /// What is said of it does not count. Written by vsrun.
    pub distrusts: u64,
    /// With [`Plan::own_pages`]: numbers of pages that several threads use, so that all is recorded there. Written by vsrun.
    pub common: Table<u64, MAX_COMMON>,
    /// With [`Plan::own_pages`]: numbers of pages that another thread came to in this execution. What was recorded is not all then.
    pub met: Table<u64, MAX_MET>,
    /// With [`Plan::states`]: the states that this execution has come to behind its prefix, by how many transitions were made before.
    pub states: [State; MAX_STATES],
    /// With [`Plan::pieces`]: what tells these apart.
    pub pieces: Pieces,
    /// All states that were met.
    pub visited: Visited,
}

impl Arena {
    /// Makes zeroed memory an arena with an empty world.
    pub fn init(&mut self) {
        self.init_header();
        self.plan.max_depth = u64::MAX;
        self.world.reset();
        self.clear();
    }

    /// Empties what is not the world's and not an execution's alone.
    pub fn clear(&mut self) {
        self.regions.clear();
        self.segments.clear();
        self.attached.clear();
        self.files.reset();
        self.enabled.clear();
        self.known_shared.clear();
        self.words.clear();
        self.common.clear();
        self.declared.clear();
        self.distrusts = 0;
    }

    /// False: somebody who is not to has written to the arena of an execution that was prepared.
    pub fn is_sealed(&self) -> bool {
        let header = (self.magic, self.version, self.size) == (MAGIC, VERSION, core::mem::size_of::<Arena>() as u64);
        let files =
            self.files.shadows.is_sealed() && self.files.copies.is_sealed() && self.files.used_files.is_sealed();
        let memory = self.regions.is_sealed() && self.segments.is_sealed() && self.attached.is_sealed();
        let schedule = self.enabled.is_sealed() && self.sleep.is_sealed() && self.expected.is_sealed();
        let schedule = schedule && (!self.plan.policy.aims() || self.aims.is_sealed());
        let schedule = schedule && (!self.plan.orders || self.orders.seen.is_sealed());
        let known = self.known_shared.is_sealed() && self.words.is_sealed() && self.declared.is_sealed();
        let known = known && self.owned.is_sealed() && self.late.is_sealed();
        let known = known && self.common.is_sealed() && self.met.is_sealed();
        let trace =
            self.noted.is_sealed() && self.steps.is_sealed() && self.seen.is_sealed() && self.records.is_sealed();
        header && files && memory && schedule && known && trace && self.world.is_sealed()
    }

    /// Writes what tells an arena.
    pub fn init_header(&mut self) {
        self.magic = MAGIC;
        self.version = VERSION;
        self.size = core::mem::size_of::<Arena>() as u64;
    }

    /// The trace.
    pub fn trace(&self) -> &[Step] {
        self.steps.as_slice()
    }

    /// The pending operations in the state before step `index`; empty within the prefix.
    pub fn seen_at(&self, index: usize) -> &[Seen] {
        let step = &self.trace()[index];
        let from = step.seen_at as usize;
        self.seen.as_slice().get(from..from + step.n_seen as usize).unwrap_or(&[])
    }

    /// A region for the shared mapping of a file or of memory, found by what backs it. `None`: no room.
    pub fn region(&mut self, dev: u64, ino: u64) -> Option<u32> {
        let same = |r: &Region| r.dev == dev && r.ino == ino;
        match self.regions.as_slice().iter().position(same) {
            Some(at) => Some(at as u32),
            None => self.regions.push(Region { dev, ino, ..Region::default() }),
        }
    }

    /// A process has mapped a region, so that it can write there or not, and it runs code that is not watched or does not. True: one process can
    /// write there, and one whose code is not watched can read it.
    pub fn region_mapped(&mut self, region: u32, writable: bool, unwatched: bool) -> bool {
        let Some(region) = self.regions.as_mut_slice().get_mut(region as usize) else { return true };
        region.written |= u32::from(writable);
        region.unwatched |= u32::from(unwatched);
        region.written != 0 && region.unwatched != 0
    }

    /// Gives channel `id` a ring, if it has none: where it lies in the pool. `None`: no room.
    pub fn ring(&mut self, id: crate::state::channel::ChanId) -> Option<u64> {
        use crate::state::channel::NO_RING;
        let (ring, room) = (self.world.channels[id].ring, self.world.channels[id].room);
        if ring != NO_RING {
            return Some(ring);
        }
        let at = match self.world.ring_again(room) {
            Some(at) => at,
            None => {
                let at = (self.control.pool_used + 4095) & !4095;
                if at + room > POOL_SIZE {
                    return None;
                }
                self.control.pool_used = at + room;
                at
            }
        };
        self.world.channels[id].ring = at;
        Some(at)
    }

    /// What the shim says about watched memory.
    pub fn watching_is(&mut self, watching: Watching) {
        self.control.watching = watching;
    }

    /// The execution ends with this use of freed memory.
    pub fn note_gone(&mut self, gone: Gone) {
        self.control.watching.gone = gone;
    }

    /// Records what was done to watched memory, where that is asked for.
    #[inline]
    pub fn note_memory(&mut self, record: Record) {
        if self.plan.watches && !self.records.push(record) {
            self.records_lost += 1;
        }
    }

    /// Records that `thread` has made the accesses of an entry, which lie at `address` of `space`, where that is asked for.
    #[inline]
    pub fn note_access(&mut self, entry: &Entry, thread: Tid, space: u32, address: u64) {
        if self.plan.watches && !self.records.push_access(entry, thread, space, address) {
            self.records_lost += 1;
        }
    }

    /// Another thread has come to `page`, which was taken for the own one of a thread; [`ALL_PAGES`]: none may be taken so in this execution.
    #[cold]
    pub fn meets(&mut self, page: u64) {
        if self.met.as_slice().iter().all(|&known| known != page && known != ALL_PAGES) {
            let last = self.met.len as usize + 1 == MAX_MET;
            self.met.push(if last { ALL_PAGES } else { page });
        }
    }

    /// Thread `t` begins, created by `creator`.
    pub fn note_begin(&mut self, t: Tid, creator: Tid) {
        let space = self.pid_of(t);
        let parent = self.world.procs.get(space).map_or(NONE, |p| p.creator);
        let what = Record::BEGINS;
        self.note_memory(Record { address: parent.into(), site: creator, thread: t, space, what, ..Record::default() });
    }

    /// Code named `name` came after the patches, or a call is made of which it is not known what it does to memory: that is not watched.
    pub fn note_later_code(&mut self, name: &[u8]) {
        let watching = &mut self.control.watching;
        watching.later = watching.later.saturating_add(1);
        if watching.later == 1 {
            let n = name.len().min(watching.name.len() - 1);
            watching.name[..n].copy_from_slice(&name[..n]);
            watching.name[n..].fill(0);
        }
    }

    /// The library at `path`, NUL-terminated, came after the patches. More of them than there is room for are told another time.
    pub fn note_late_file(&mut self, path: &[u8; LATE_PATH]) {
        if self.late.as_slice().iter().all(|known| known.path != *path) {
            self.late.push(LateFile { path: *path });
        }
    }

    /// Where the jumps of functions that return a choice are to lead.
    pub fn tosses_at(&mut self, entry: u64) {
        self.control.tossing.entry = entry;
    }

    /// What came of mapping a page for code.
    pub fn room_is(&mut self, result: i64) {
        self.control.tossing.page = if result < 0 { result } else { 1 };
    }

    /// Function `n` that returns a choice is called: what it gives at most.
    pub fn tossed(&mut self, n: usize) -> u32 {
        let tossing = &mut self.control.tossing;
        let n = n.min(MAX_TOSSES - 1);
        tossing.called |= 1 << n;
        tossing.most[n]
    }

    /// The program or library `name` came later, and has its own functions.
    pub fn note_own_functions(&mut self, name: &[u8]) {
        let tossing = &mut self.control.tossing;
        tossing.later = tossing.later.saturating_add(1);
        if tossing.later == 1 {
            let n = name.len().min(tossing.name.len() - 1);
            tossing.name[..n].copy_from_slice(&name[..n]);
            tossing.name[n..].fill(0);
        }
    }

    /// Several words that are objects have been used in one step.
    pub fn note_wide_use(&mut self) {
        let wide = &mut self.control.watching.wide;
        *wide = wide.saturating_add(1);
    }

    /// The process that thread `t` belongs to.
    pub fn pid_of(&self, t: Tid) -> Pid {
        self.world.threads.get(t).map_or(NONE, |t| t.pid)
    }

    /// The pending operation of thread `t`.
    pub fn pending(&self, t: Tid) -> Op {
        self.world.threads.get(t).map_or(Op::default(), |t| t.pending)
    }
}
