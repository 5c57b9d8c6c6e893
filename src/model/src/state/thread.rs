//! What is kept of a thread.

use crate::base::{numbers, Address, Kind, ObjId, Op, Pid, Tid, Uid};
use crate::state::object::Found;
use crate::state::{Credentials, FiberState, Handling, Polled, SemBuf, SigInfo, MAX_HANDLERS, MAX_POLLED};

/// Semaphore operations in one semop that are modelled (SEMOPM is 500; programs use a handful).
pub const MAX_SEMBUF: usize = 64;

/// Words that a thread may wait for at once (FUTEX_WAITV_MAX).
pub const MAX_AWAITED: usize = 128;

numbers! {
    /// Where one is that waits for several words, as far as one of them is concerned.
    AwaitedState(u32):
    /// Not in its queue.
    OUT = 0,
    /// In its queue.
    QUEUED = 1,
    /// It has been woken there.
    WOKEN = 2,
}

/// One of several words that a thread waits for.
#[derive(Clone, Copy, Hash, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Awaited {
    /// The futex that its call has named.
    pub named: ObjId,
    /// The futex in whose queue it is: another one where it has been moved (FUTEX_REQUEUE).
    pub obj: ObjId,
    /// Whether it waits there.
    pub state: AwaitedState,
}

numbers! {
    /// Where a thread is in its life.
    ThreadState(u8):
    FREE = 0,
    /// Created; runs up to its first visible operation before its creator goes on.
    STARTING = 1,
    /// Has the turn, or waits inside the creation of another thread.
    RUNNING = 2,
    /// At a visible operation.
    PARKED = 3,
    EXITED = 4,
}

/// Ends by request: `Thread::cancel` bits.
pub const CANCEL_REQUESTED: u8 = 1;
/// The request was looked at and cancellation is switched off.
pub const CANCEL_DISABLED: u8 = 2;
/// A request strikes it anywhere.
pub const CANCEL_ANYWHERE: u8 = 4;
/// So often a thread may yield while another that could move does not: what spins a few times before it waits (the
/// atomic waits of libstdc++ yield four times) gets to its wait on some path. Without a limit, loops that poll would
/// have paths without end.
pub const YIELD_WINDOW: usize = 4;
/// After so many failed polls, or waits that gave up, in a row a thread is taken to go round in a loop: its next ones are treated like
/// yields.
pub const POLLS: u8 = 3;
/// After so many looks for events in a row a thread goes round in a loop, and gives way.
pub const LOOKS: u8 = 8;

/// So often timers fire for a thread at any moment; from then on only when nothing else can run, since what sets its timer again and
/// again would go on for ever.
pub const TICKS: u8 = 3;

/// One thread. `fiber` is the shim's, the rest the model's. Written only by the holder of the turn; readable at any time
/// by the supervisor for reports.
#[derive(Clone, Copy, Hash, Debug)]
#[repr(C)]
pub struct Thread {
    /// Path of creation.
    pub uid: Uid,
    /// Its process.
    pub pid: Pid,
    /// The thread that created it.
    pub creator: Tid,
    /// Threads and processes it has created.
    pub children: u32,
    /// Where it is in its life.
    pub state: ThreadState,
    /// Detached: nobody will join it.
    pub detached: bool,
    /// Joined already.
    pub joined: bool,
    /// Cancellation bits.
    pub cancel: u8,
    /// The operation it is parked at.
    pub pending: Op,
    /// A wake-up has been given to the pending operation.
    pub woken: bool,
    /// Set by the shim before a futex operation is performed: memory holds the expected value.
    pub compare: bool,
    /// It has made a call of the kernel since its process was killed: from that it does not return.
    pub spent: bool,
    /// Operations that try, in vain, in a row, see [`POLLS`].
    pub polls: u8,
    /// Looks for events in a row, whatever they found, with nothing done between them: what is found is left where it is, see `LOOKS`.
    pub looks: u8,
    /// Waits with a deadline that gave up, and sleeps, in a row: with no such wait between them that got what it waited for. What else
    /// the thread does, locks that it tries among it, is what loops that let time pass do in each round.
    pub waits: u8,
    /// How far it has come in time by its own waits, where timeouts fire at any moment: the latest deadline that it has passed,
    /// virtual ns. Deadlines count from here, so that they do not depend on who else has waited.
    pub time: u64,
    /// The same by sleeps and deadlines of its own, and by timers that it has set itself: what others have set may count from earlier.
    pub waited: u64,
    /// Timers that have fired for it at a moment of their own, see `TICKS`.
    pub ticks: u8,
    /// What the clock shows at least once the pending operation gives up.
    pub due: u64,
    /// Once controls whose initializers it is in.
    pub in_once: u8,
    /// The deadline of the pending operation had passed when it was published.
    pub born_expired: bool,
    /// It has taken a signal in the place of an operation for which it may have been woken already: see `objects::lost`.
    pub left_woken: bool,
    /// The once control entered last.
    pub once: ObjId,
    /// `World::moves` at its last transition, or at its creation.
    pub moved: u64,
    /// `World::moves` at its creation.
    pub begun: u64,
    /// What its last transition was that others could be let go by, its creation at first.
    pub last: Kind,
    /// It has created a thread or process since.
    pub creates: bool,
    /// Whether signals are known that answer what it does; see `sharing`.
    pub answered: u8,
    /// Transitions it has made.
    pub transitions: u32,
    /// `World::moves` at its last yields, the oldest first; 0: it has not yielded so often.
    pub yields: [u64; YIELD_WINDOW],
    /// Whether all its operations are visible; see `sharing`.
    pub exposed: u8,
    /// It has passed so many operations that others are to run first.
    pub long_run: bool,
    /// How often that was so since its last other visible operation.
    pub long_runs: u8,
    /// It has libc load what unwinds: see `sharing`.
    pub loads: bool,
    /// Locks declared atomic that it holds.
    pub atomic_held: u32,
    /// Streams whose locks it holds.
    pub streams: u32,
    /// The one that it took last.
    pub stream: ObjId,
    /// The thread that joined it, or [`NONE`](crate::NONE).
    pub heir: Tid,
    /// `World::ops` when it was joined.
    pub joined_at: u64,
    /// `World::ops` when it was created.
    pub born: u64,
    /// Queue it is in: object and next thread.
    pub queued_on: u32,
    /// Next thread in that queue.
    pub queue_next: Tid,
    /// Extra results of the last operation (wait status, pid, value).
    pub out: [i64; 3],
    /// What the shim keeps of it. Not at the end: of a thread that does little only the first page is used.
    pub fiber: FiberState,
    /// Virtual signal mask.
    pub sigmask: u64,
    /// The mask in force while it waits in ppoll, pselect or epoll_pwait; see `masked`.
    pub within: u64,
    /// Its pending operation has a mask of its own, `within`.
    pub masked: bool,
    /// Its process has been stopped while it was parked at an operation that this can interrupt; see `signal`.
    pub stop_hit: bool,
    /// Its process has been stopped by another one while it could have gone on.
    pub stops_late: bool,
    /// When all signals were blocked last, as [`World::ops`](super::World); 0: never. libc does that for a moment around creations and the
    /// like.
    pub hushed_at: u64,
    /// Its last operation is a call in which a request to end it may strike, and has done something.
    pub moved_late: bool,
    /// Signals pending for this thread.
    pub sigpending: u64,
    /// The signal taken last.
    pub taken: SigInfo,
    /// Its handlers that run, the outermost first; see `n_handlers`.
    pub handlers: [Handling; MAX_HANDLERS],
    /// How many; more than [`MAX_HANDLERS`] are counted only.
    pub n_handlers: u8,
    /// A handler has interrupted its wait in a queue, in which it keeps its place.
    pub held: bool,
    /// That wait has its wake-up.
    pub held_woken: bool,
    /// Virtual thread id.
    pub vtid: i32,
    /// Lowered priority of a PCT schedule; 0: the one it was born with.
    pub priority: u32,
    /// First chunk of the message that it sends or has received, or [`NONE`](crate::NONE).
    pub staged: u32,
    /// Operations of the pending semop.
    pub n_sembuf: u32,
    /// At which of them it was to wait when it was looked at last.
    pub sem_at: u32,
    /// The operations.
    pub sembuf: [SemBuf; MAX_SEMBUF],
    /// Channels that it has made.
    pub made: u32,
    /// What the loop that waits at a [`Kind::MEM_WAIT`](crate::Kind::MEM_WAIT) has found in its words.
    pub awaits: [Found; 2],
    /// Words that its call waits for at once.
    pub n_awaited: u32,
    /// The words.
    pub awaited: [Awaited; MAX_AWAITED],
    /// Descriptions that the pending poll asks about.
    pub n_polled: u32,
    /// The descriptions.
    pub polled: [Polled; MAX_POLLED],
    /// The description that the pending operation is on, which stays while it lasts, or [`NONE`](crate::NONE).
    pub holding: u32,
    /// Numbers that its call has for what it holds, which are not the program's: 1 + the number, 0 for none; and which of the program's
    /// it stands for.
    pub hidden: [[i32; 2]; 2],
    /// The address that the pending operation names.
    pub address: Address,
    /// Descriptions that the pending operation sends along: the first of `World::rights`, or [`NONE`](crate::NONE).
    pub sending: u32,
    /// Who it says it is, for those at the other end of a socket.
    pub cred: Credentials,
    /// It says so itself (SCM_CREDENTIALS).
    pub says_cred: bool,
}

impl Thread {
    /// True if it may still run.
    pub fn alive(&self) -> bool {
        self.state != ThreadState::FREE && self.state != ThreadState::EXITED
    }
}
