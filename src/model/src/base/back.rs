//! Traffic between vsrun and a process that goes back: at the end of an execution it undoes what it has done since its first choice, and
//! stands there again, for the next execution. The shim's part is `gate::back`, vsrun's `runtime::back`.
//!
//! NOTE \[Marks\] It may go back less far: to a *mark*, a state within the execution of which it has kept what it has written since the first choice, and vsrun
//! what stands in the arena. Marks are on the way of one execution; the next one that begins with the same choices goes on from there.
//!
//! NOTE \[Several\] Of several processes each goes back by itself, and vsrun sees to it that all of them stand in the same state. The one that has the turn speaks
//! first ([`Back::stand`]); the others wait for theirs, and get [`Back::order`]s meanwhile. One that was made later joins them at the next
//! mark, which is its first choice; one that is over stays, as long as there is a state to go back to in which it was not.
//!
//! NOTE \[Late\] For the next execution each is told where it goes back to ([`Back::late`]), and does so when it is given the turn, before anything else: until
//! then nobody sees what it has in memory. So it is woken once only. Should it not be able to, the execution counts for nothing ([`Back::astray`]).

//! NOTE \[Copies\] Instead of going back, processes may stand still ([`Back::copies`]): at the first choice, and at each mark, a process is copied by a fork, the copy
//! goes on with the execution, and the *original* waits at a word of its own ([`Back::at`]). To go on from there once more it is copied again. No kernel has to tell what was
//! written, and all that a fork copies is as it was: mappings, descriptors, limits, ids, also behind an exec. Who has not had the turn since the mark before is not copied
//! again. In an execution that begins at a mark each is copied when it is given the turn ([`Back::stands`]); until then its original stands for it.

use super::numbers;

/// Most pieces of memory that are watched for writes.
pub const MAX_SPANS: usize = 512;
/// Most pages that are put back.
pub const MAX_BACK_PAGES: usize = 1 << 13;
/// Places for marks.
pub const MAX_MARKS: usize = 16;
/// Most processes that go back together.
pub const MAX_MEMBERS: usize = 64;
/// Most processes that stand still.
pub const MAX_ORIGINALS: usize = 256;
/// Most marks on the way to where an execution leaves the one before.
pub const MAX_WANTED: usize = 16;

numbers! {
    /// How far the process is, and who is to act. A transparent integer, and a futex word.
    Stand(u32):
    /// There is none.
    NONE = 0,
    /// The execution that is asked for next is to stop before its first choice. Written by vsrun.
    ASKED = 1,
    /// It has: vsrun keeps what is not memory of the process, and says what is to be put back.
    STOPPED = 2,
    /// It goes on. Written by vsrun.
    RUNS = 3,
    /// The execution is over, and the process stands before its first choice again.
    BACK = 4,
    /// It has done what it cannot undo, says why, and ends as any other.
    GIVEN_UP = 5,
    /// It has kept what it needs to come back to where it is, in place [`Back::slot`]: vsrun keeps the rest, and says which place is next.
    MARKED = 6,
    /// The execution is over, and its processes end as any other.
    ENDS = 7,
}

numbers! {
    /// What a process is told to do. A transparent integer.
    Order(u32):
    /// Nothing.
    NONE = 0,
    /// It is to go back from now on: it sees whether it can.
    PREPARE = 1,
    /// It is said what is to be put back ([`Back::spans`], [`Back::pages`]): it keeps that, and waits for its turn.
    KEEP = 2,
    /// It keeps what it needs to come back to where it is, in place [`Back::slot`], and waits for its turn.
    MARK = 3,
    /// It is copied; the original stands still in place [`Back::place`], and the copy waits for its turn.
    COPY = 4,
}

numbers! {
    /// What has become of an order. A transparent integer, and a futex word.
    Answer(u32):
    /// It is still to be done.
    AWAITED = 0,
    /// It is done.
    DONE = 1,
    /// It cannot be done: [`Back::why`].
    FAILED = 2,
}

numbers! {
    /// What a futex word of a process is set to. A transparent integer.
    Turn(u32):
    /// It waits.
    NONE = 0,
    /// It has the turn.
    TAKES = 1,
    /// It has an [`Order`].
    OBEYS = 2,
}

numbers! {
    /// Why a process does not go back. Numbers of system calls, and beyond them these. A transparent integer.
    Hinders(u32):
    /// Nothing does.
    NONE = 512,
    /// The kernel does not tell what is written (userfaultfd, PAGEMAP_SCAN): too old, or not allowed.
    KERNEL = 513,
    /// There are more processes than go back together, or it would have to be known in which state each of several is.
    PROCESSES = 514,
    /// There is more memory, or in more pieces, than is put back.
    ROOM = 515,
    /// Pages were written of which nothing is kept yet: those in [`Back::missed`].
    PAGES = 516,
    /// What processes share, or a file that was written, was used.
    SHARED = 517,
    /// Memory that was there at the first choice was unmapped or protected in a way that cannot be undone.
    MAPPINGS = 518,
    /// With watched memory: something was mapped, or used, further from all else than what is put back of its shadow.
    SHADOWS = 519,
    /// Somebody else has ended a process that was to go back.
    GONE = 520,
    /// The kernel refused a copy of a process.
    COPIES = 521,
}

/// A piece of memory of the process's own, as it stands before the first choice.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Span {
    /// Where it begins.
    pub start: u64,
    /// One past its last byte.
    pub end: u64,
    /// What may be done there (PROT_..).
    pub prot: u32,
    /// [`Span::PLAIN`], [`Span::EMPTY`], or 0: a file is behind it, or it grows (stack, heap).
    pub kind: u32,
}

impl Span {
    /// Mapped again it is what it was, but for what stands there.
    pub const PLAIN: u32 = 1;
    /// The same, it cannot be written, and nothing stands there. The process finds that out.
    pub const EMPTY: u32 = 2;

    /// See [`Span::PLAIN`].
    pub fn comes_back(&self) -> bool {
        self.kind == Span::PLAIN || self.is_empty()
    }

    /// See [`Span::EMPTY`].
    pub fn is_empty(&self) -> bool {
        self.kind == Span::EMPTY
    }

    /// It can be written.
    pub fn is_writable(&self) -> bool {
        self.prot & WRITE != 0
    }
}

/// PROT_WRITE.
const WRITE: u32 = 2;

/// The traffic.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Back {
    /// How far it is.
    pub stand: Stand,
    /// Why it does not go back, once it has given up.
    pub why: Hinders,
    /// Not 0: there are processes that go back, and none of them ends for the kernel. Written by vsrun; taken away by who gives up.
    pub holds: u32,
    /// The process that has said last how far it is: it had the turn.
    pub speaker: u32,
    /// What the process that is told to is to do. Written by vsrun.
    pub order: Order,
    /// How many orders each process has been given so far. Written by vsrun.
    pub given: [u32; MAX_MEMBERS],
    /// How many of them it had taken last: it is told at two words.
    pub taken: [u32; MAX_MEMBERS],
    /// The one that had the turn in the state from which the execution goes on. Written by vsrun.
    pub leader: u32,
    /// Not 0: one could not go back within the execution. Set by the process, cleared by vsrun.
    pub astray: u32,
    /// Where each process goes back to when it has the turn, as `to` and one more; 0: nowhere. Written by vsrun, cleared by the process. See NOTE \[Late\].
    pub late: [u32; MAX_MEMBERS],
    /// What has become of that, in each process. Set to [`Answer::AWAITED`] by vsrun, else written by the process.
    pub answers: [Answer; MAX_MEMBERS],
    /// Not 0: the process has had the turn. Set by the process, cleared by vsrun.
    pub moved: [u32; MAX_MEMBERS],
    /// Where a process waits that goes back, and one that is over: set by vsrun, cleared by itself. (Where it waits for its turn within an execution, that is
    /// `ProcessState::turn`, which may be another process's meanwhile.)
    pub words: [Turn; MAX_MEMBERS],
    /// Not 0: processes do not go back, their originals stand still: see NOTE \[Copies\]. Written by vsrun.
    pub copies: u32,
    /// The real pid of the process that has been copied last. Written by it.
    pub original: i32,
    /// One more than the place of the original that stands for each process; 0: the process is there itself. Written by vsrun, cleared by the copy.
    pub stands: [u32; MAX_MEMBERS],
    /// Where originals wait: set to [`Turn::TAKES`] by who gives the turn to a process that one stands for, cleared by itself.
    pub at: [Turn; MAX_ORIGINALS],
    /// Bit N: descriptor N is vsrun's file for what the program prints. Written by vsrun.
    pub printed: u32,
    /// Number of `spans`.
    pub n_spans: u32,
    /// Number of `pages`.
    pub n_pages: u32,
    /// Number of `missed`.
    pub n_missed: u32,
    /// Where it goes back to: one more than a place, or 0: the first choice. Written by vsrun.
    pub to: u32,
    /// The place of the next mark. Written by vsrun.
    pub slot: u32,
    /// The place of the next original. Written by vsrun.
    pub place: u32,
    /// Bit N: it can still come back to the mark in place N. Written by the process at the end of an execution.
    pub usable: u32,
    /// Number of `wanted`; those that have come are not counted.
    pub n_wanted: u32,
    /// Marks are made before these transitions: the last one is the next. Written by vsrun.
    pub wanted: [u64; MAX_WANTED],
    /// Behind those, so many transitions after one the next one is made; 0: none is.
    pub every: u64,
    /// Transitions before the last mark.
    pub marked_at: u64,
    /// Pages that all marks of a process may take together. Written by vsrun.
    pub room: u64,
    /// Pages that those of one process take, used or not, and what the largest of them takes. Written by the process; of several the most.
    pub held: u64,
    /// See `held`.
    pub largest: u64,
    /// Marks that were not made in this execution, as there was no room. Written by the process.
    pub no_room: u32,
    /// Memory that can be written, watched for that, and memory without a file that cannot; ascending. Written by vsrun.
    pub spans: [Span; MAX_SPANS],
    /// Addresses of the pages that are put back, ascending. Written by vsrun.
    pub pages: [u64; MAX_BACK_PAGES],
    /// Addresses of pages that were written and are not among these. Written by the process.
    pub missed: [u64; MAX_BACK_PAGES],
}

impl Back {
    /// The pages of which nothing is kept yet.
    pub fn missed(&self) -> &[u64] {
        &self.missed[..(self.n_missed as usize).min(MAX_BACK_PAGES)]
    }
}
