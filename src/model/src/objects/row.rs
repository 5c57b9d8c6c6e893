//! One row for each kind of operation: all that is to be known of it. A row is a struct without defaults, so that an answer that is
//! left out does not compile; what a row does not say is nowhere else asked of a kind.
//!
//! The rows stand with their families (`kinds!`), and `table` puts them together.

// What rows speak of: families import all of this file.
pub(crate) use super::question::{Answer, Question};
pub use super::shown::*;
pub(crate) use crate::base::{errno, Kind, ObjId, Op, Pid, Tid, CANCEL_POINT, NONE, PARTIAL, TIMED, TRY, VARIANT};
pub(crate) use crate::state::{Act, Applied, By, Cell, ChanKind, Effects, Footprint, How, Thread, World};

/// All that is to be known of a kind of operation. What each operation asks comes first, in one line of the cache.
#[repr(C, align(64))]
pub struct Row {
    /// Its number.
    pub kind: Kind,
    /// What [`Op::obj`] and [`Op::obj2`] are.
    pub operands: Operands,
    /// What it does to a lock, or to those who wait.
    pub role: Role,
    /// Which channels it concerns, if it is on descriptors.
    pub channels: Channels,
    /// What it does with a word of the program's memory at the moment when it is performed.
    pub memory: Memory,
    /// Which of its results count as polls in vain.
    pub polls: Polls,
    /// What a signal does to a thread that is parked at it.
    pub signals: Signals,
    /// What it is to objects that one thread alone uses, see `sched::sharing`.
    pub alone: Alone,
    /// In how many ways it can go on now, and whether it could have come earlier.
    pub enabled: Enabled,
    /// Performs it, in one of these ways.
    pub perform: fn(&mut World, Tid, &Op, u32) -> Applied,
    /// The name used in reports and scenario files.
    pub name: &'static str,
    /// What its dependencies are conditional on.
    pub records: Records,
    /// What it touches, beside what every transition does (see `relation::depend`).
    pub cells: fn(&Act, Effects, &mut Footprint),
    /// For two operations of this kind (the first) and any: false if there is no state in which both are enabled and their order
    /// matters, because this one waits for the other.
    pub follows: fn(&Act, &Act) -> bool,
    /// For two operations, the first of this kind: false if the second is not blocked by the first having been performed.
    pub blocks: fn(&Act, &Act) -> bool,
    /// Whether its thread waits for what does not come from this world, see `sched::closing`.
    pub idle: Idle,
    /// It can tell a transition of another thread from the next otherwise than by locks; `true`: its process has other threads. See
    /// invisible-first search (Stoller, TR 536, Section 4).
    pub tells: fn(&Act, bool) -> bool,
    /// Why the reductions are not proven to lose nothing where it is done.
    pub unproven: fn(&Op) -> Option<Unproven>,
    /// How it is shown to users.
    pub shown: Shown,
}

impl Row {
    /// It is the second half of an operation that waits in two steps: its thread is in a queue already, or has left it.
    pub fn is_second_half(&self) -> bool {
        let queued = matches!(self.signals.taken, Taken::KeepsPlace | Taken::Sleeps(_));
        queued || matches!(self.role, Role::Acquires(Lock::Announced | Lock::Again))
    }
}

/// What the operands of a kind are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operands {
    /// Nothing.
    Nothing,
    /// A thread.
    Thread,
    /// A process.
    Process,
    /// An object; `obj2` is a number.
    One,
    /// Objects, as far as they are not `NONE`.
    Objects,
}

/// When a kind can go on.
#[derive(Clone, Copy)]
pub enum Enabled {
    /// Always, in one way.
    Always,
    /// Always, in so many ways.
    Ways(fn(&World, Tid, &Op) -> u32),
    /// Not always.
    Blocks {
        /// In how many ways now; 0: it would block.
        now: fn(&World, Tid, &Op) -> u32,
        /// Whether it could have come earlier. Not asked where it has been let go by a deadline or a request to end, unless
        /// `reacquires`.
        before: fn(&Question) -> Answer,
        /// It has to acquire a lock also when it has been let go.
        reacquires: bool,
    },
}

/// What is recorded with an operation ([`Act::state`]).
#[derive(Clone, Copy)]
pub struct Records {
    /// The state.
    pub state: fn(&World, Tid, &Op) -> i64,
    /// The operation with other numbers for threads, processes and objects; its operands are done already.
    pub renamed: fn(&mut Act, &Renaming),
    /// What counts is what it was performed with, also where it stood at it before.
    pub settles: bool,
    /// What it finds in a state that has not been seen.
    pub there: fn(&Question) -> i64,
    /// Of what only looks in some states: a state in which it does more.
    pub most: Option<i64>,
}

/// Other numbers for threads, processes and objects: those that mean the same in every execution.
pub struct Renaming<'a> {
    /// Of threads.
    pub thread: &'a dyn Fn(Tid) -> Tid,
    /// Of processes.
    pub process: &'a dyn Fn(Pid) -> Pid,
    /// Of objects.
    pub object: &'a dyn Fn(ObjId) -> ObjId,
}

impl Records {
    /// Nothing.
    pub const NOTHING: Records = Records::number(|_, _, _| 0);

    /// A number that means the same everywhere.
    pub const fn number(state: fn(&World, Tid, &Op) -> i64) -> Records {
        Records { state, renamed: |_, _| (), settles: false, there: |q| q.act.state, most: None }
    }

    /// The same, of what only looks in some states: what it finds in one that has not been seen, and one in which it does more.
    pub const fn looking(self, there: fn(&Question) -> i64, most: i64) -> Records {
        Records { there, most: Some(most), ..self }
    }

    /// 1 + a thread, 0 for none.
    pub const fn owner(state: fn(&World, Tid, &Op) -> i64) -> Records {
        let renamed = |act: &mut Act, to: &Renaming<'_>| act.state = i64::from(to.owner(act.state as u32));
        Records { renamed, ..Records::number(state) }
    }
}

impl Renaming<'_> {
    /// Of 1 + a thread, or 0.
    pub fn owner(&self, owner: u32) -> u32 {
        if owner == 0 {
            0
        } else {
            (self.thread)(owner - 1) + 1
        }
    }
}

/// What an operation does to a lock, or to those who wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Nothing.
    None,
    /// Acquires the lock `obj`.
    Acquires(Lock),
    /// Gives it back.
    Releases(Lock),
    /// Destroys the lock or condition variable `obj`.
    Destroys,
    /// Waits for the thread that has `obj`, which is no lock that it gives back.
    AwaitsOwner,
    /// Gives back the lock `obj2` and waits on `obj`.
    WaitsOn,
    /// Acquires the lock `obj2` again.
    Reacquires,
    /// Wakes who waits on `obj`, and nothing else.
    Notifies,
    /// Wakes who waits on `obj`.
    Wakes,
    /// Wakes who waits on `obj` or `obj2`.
    WakesBoth,
    /// Is about a lock of a file.
    FileLock(FileLockUse),
    /// Takes one from the semaphore `obj`.
    Takes,
    /// Adds one to it.
    Adds,
    /// Arrives at the barrier `obj`.
    Arrives,
}

/// Kinds of locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lock {
    /// A mutex.
    Mutex,
    /// The same by one that has given up a wait for a condition.
    Again,
    /// A spin lock.
    Spin,
    /// A read-write lock, for reading.
    Read,
    /// A read-write lock, for writing.
    Write,
    /// The same by a writer that has announced itself.
    Announced,
    /// A read-write lock that is given back.
    Either,
}

/// What is done with locks of files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileLockUse {
    /// Takes a record lock.
    Takes,
    /// Gives one back.
    GivesBack,
    /// Looks for one.
    Tests,
    /// flock.
    Whole,
}

/// What an operation on descriptors does with channels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Channels {
    /// It is none.
    None,
    /// It is none, but may end a process, which closes all that it has.
    Ends,
    /// Takes from one.
    Reads,
    /// Puts into one.
    Writes,
    /// Takes a connection from one.
    Accepts,
    /// Puts a message into a queue.
    Sends,
    /// Takes one from it.
    Receives,
    /// Looks at several.
    Polls,
    /// Looks at what an epoll instance watches.
    Waits,
    /// Changes what it watches.
    Watches,
    /// Opens one, or waits for its other end.
    Opens,
    /// Looks for a socket by its name, to connect to it.
    Connects,
    /// The same, to send it a datagram.
    SendsTo,
    /// Gives a socket a name.
    Binds,
    /// Changes its state.
    Controls,
    /// Closes it.
    Closes,
    /// Closes all that a process has.
    ClosesAll,
}

impl Channels {
    /// It is an operation on descriptors.
    pub fn any(self) -> bool {
        !matches!(self, Channels::None | Channels::Ends)
    }

    /// Moves something into or out of one channel, which is all that it concerns, but for the instances that it wakes.
    pub fn moves(self) -> bool {
        use Channels::*;
        matches!(self, Reads | Writes | Accepts | Sends | Receives)
    }

    /// Only looks at the channels, several of them.
    pub fn watches(self) -> bool {
        matches!(self, Channels::Polls | Channels::Waits)
    }

    /// Looks for a socket by its name.
    pub fn names(self) -> bool {
        matches!(self, Channels::Connects | Channels::SendsTo | Channels::Binds)
    }

    /// Changes or closes one.
    pub fn settles(self) -> bool {
        matches!(self, Channels::Controls | Channels::Closes)
    }

    /// May be let go by a timer.
    pub fn awaits_timers(self) -> bool {
        self.watches() || self == Channels::Reads
    }
}

/// What a signal does to a thread that is parked at an operation.
#[derive(Clone, Copy)]
pub struct Signals {
    /// How it takes one.
    pub taken: Taken,
    /// Whether it fails with EINTR where it blocks and a handler has run (signal(7); the kernel's ERESTARTSYS, ERESTARTNOHAND and
    /// ERESTART_RESTARTBLOCK).
    pub fails: Fails,
    /// The same where its process is stopped and goes on, without a handler (signal(7), "Interruption of system calls and library
    /// functions by stop signals"; measured on Linux 6.18, where System V message queues and futexes are not among them).
    pub fails_by_stop: FailsByStop,
    /// It asks for signals also where it is not to wait, once it has found nothing (fs/select.c, do_poll and do_select).
    pub asks: bool,
    /// Whether one that has slept asks for signals before it looks for what it waits for.
    pub asks_first: AsksFirst,
}

/// Where the kernel asks for signals right behind a sleep, so that a call may fail with EINTR which could go on. Left out: [`WOKEN_FAILS`](crate::state::WOKEN_FAILS).
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AsksFirst {
    /// It looks first, and goes on if it can.
    Never,
    /// unix_stream_connect, inet_wait_for_connect; unix_dgram_sendmsg; do_msgsnd.
    Always,
    /// On a channel of that kind: unix_stream_read_generic, sk_stream_wait_memory.
    Over(ChanKind),
}

/// How a thread that is parked at an operation takes a signal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It takes none.
    Never,
    /// The same: its process is stopped.
    Stopped,
    /// Before the operation, or after it, or instead of it.
    Around,
    /// The same; a mask of its own may be in force.
    WithMask,
    /// Its call is over: those that are due are handled now, whatever comes next.
    Returns,
    /// It waits for any that the mask `arg` lets through.
    Suspends,
    /// It waits for those in `arg`.
    Waits,
    /// As `Around`; it joins a queue, which a thread can be in once only.
    Queues,
    /// It keeps its place in that queue, and may be woken meanwhile.
    KeepsPlace,
    /// It sleeps already: it leaves the queue and begins anew.
    Sleeps(Leave),
}

/// Where one that sleeps is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// In the queue of an object.
    Queue,
    /// In those of several words.
    Words,
    /// Waiting for a futex with priority inheritance.
    Inheritance,
}

/// Whether an operation that blocks fails with EINTR once a handler has run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fails {
    /// Locks, joins and the like wait on.
    Never,
    /// Installed with SA_RESTART or not.
    Always,
    /// Not if the handler was installed with SA_RESTART.
    UnlessRestarted,
    /// The same; always with a deadline (SO_RCVTIMEO, SO_SNDTIMEO, futexes), and where a part has been moved.
    UnlessRestartedOrTimed,
}

/// Whether an operation that blocks fails with EINTR because its process was stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FailsByStop {
    /// It does not.
    Never,
    /// It does.
    Always,
    /// With a deadline (SO_RCVTIMEO, SO_SNDTIMEO); what has been transferred is what the call gives then.
    IfTimed,
}

impl Signals {
    /// None is taken.
    pub const NEVER: Signals = Signals {
        taken: Taken::Never,
        fails: Fails::Never,
        fails_by_stop: FailsByStop::Never,
        asks: false,
        asks_first: AsksFirst::Never,
    };
    /// Its call is over.
    pub const RETURNS: Signals = Signals { taken: Taken::Returns, ..Signals::NEVER };
    /// It waits on whatever comes.
    pub const WAITS_ON: Signals = Signals { taken: Taken::Around, ..Signals::NEVER };
    /// It fails unless the handler restarts calls.
    pub const RESTARTS: Signals = Signals { fails: Fails::UnlessRestarted, ..Signals::WAITS_ON };
    /// It fails always.
    pub const FAILS: Signals = Signals { fails: Fails::Always, ..Signals::WAITS_ON };
    /// It moves something through a channel.
    pub const TRANSFERS: Signals =
        Signals { fails: Fails::UnlessRestartedOrTimed, fails_by_stop: FailsByStop::IfTimed, ..Signals::WAITS_ON };

    /// Whether `op` fails with EINTR where it blocks and a handler has run.
    pub fn fail(&self, op: &Op, restarts: bool) -> bool {
        match self.fails {
            Fails::Never => false,
            Fails::Always => true,
            Fails::UnlessRestarted => !restarts,
            Fails::UnlessRestartedOrTimed => op.has(TIMED | PARTIAL) || !restarts,
        }
    }

    /// Whether `op` fails with EINTR where it blocks and its process was stopped.
    pub fn fail_by_stop(&self, op: &Op) -> bool {
        match self.fails_by_stop {
            FailsByStop::Never => false,
            FailsByStop::Always => true,
            FailsByStop::IfTimed => op.has(TIMED | PARTIAL),
        }
    }
}

/// Which results of an operation count as polls in vain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Polls {
    /// Known to the caller only, later.
    Unknown,
    /// Errors that say that it would have had to wait.
    Errors,
    /// The same, and 0: no event.
    Events,
}

/// What an operation is to objects that one thread alone uses.
#[derive(Clone, Copy)]
pub enum Alone {
    /// Its object may be its thread's own: then it is no place to switch if this says that it would go through.
    Passes(fn(&World, Tid, &Op) -> bool),
    /// It is about the lock of a stream, or something else that libc keeps for all threads: see `sched::stream`.
    OfLibc,
    /// It is a place to switch.
    Visible,
    /// The same; it may find the thread `obj` anywhere between two transitions.
    ExposesThread,
    /// The same, where it can end before the thread does.
    ExposesThreadIfItGivesUp,
    /// The same for the threads of process `obj`.
    ExposesProcess,
    /// Those of its own process may be found anywhere.
    ExposesOwnProcess,
    /// The same if it has a mask of its own.
    ExposesOwnProcessIfMasked,
    /// The threads of its children.
    ExposesChildren,
    /// Those of its own process, what they have in memory being copied, where the copy is not watched.
    ExposesCopied,
}

/// What an operation does with a word of the program's memory; addresses and values are in `Thread::out`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// Nothing.
    Nothing,
    /// Compares it with a value.
    Compares,
    /// The same, and changes it.
    Changes,
    /// Needs to know it.
    Looks,
}

/// What a thread waits for in an operation, where nothing can move.
#[derive(Clone, Copy)]
pub struct Idle {
    /// For others of its process: it is without work.
    pub work: bool,
    /// For a peer that it need not know; with `true`: clients from outside are part of the world.
    pub peer: fn(&World, Tid, bool) -> bool,
    /// For a child.
    pub child: bool,
}

impl Idle {
    /// For neither.
    pub const BUSY: Idle = Idle { work: false, peer: |_, _, _| false, child: false };
    /// For work.
    pub const WORKER: Idle = Idle { work: true, ..Idle::BUSY };
}

/// What is done for which the reductions are not proven to lose nothing: random programs with some of it have shown a trace that was
/// missed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Unproven {
    /// flock gave up one kind of lock to wait for the other.
    FlockGaveUp,
    /// F_GETLK found locks of several processes, in the order of their list.
    SeveralOwners,
    /// A futex with priority inheritance.
    PiFutex,
    /// A message was sent while mq_notify waited for one.
    Notified,
}

/// [`Row::perform`] of what has no more effect than having its turn: what the caller then does belongs to the same transition.
pub const DONE: fn(&mut World, Tid, &Op, u32) -> Applied = |_, _, _, _| Applied::Done(0);
/// It is proven.
pub const PROVEN: fn(&Op) -> Option<Unproven> = |_| None;
/// [`Row::tells`]: it cannot.
pub const NOT: fn(&Act, bool) -> bool = |_, _| false;
/// [`Row::tells`]: it can.
pub const YES: fn(&Act, bool) -> bool = |_, _| true;
/// [`Row::follows`] of what waits for nobody in particular.
pub const NOBODY: fn(&Act, &Act) -> bool = |_, _| false;
/// [`Row::blocks`] of what may take something away.
pub const MAY_BLOCK: fn(&Act, &Act) -> bool = |_, _| true;
/// [`Row::blocks`] of what gives something back, or looks.
pub const GIVES: fn(&Act, &Act) -> bool = |_, _| false;

/// [`Row::enabled`] of an operation that can be let go by others only.
pub const fn blocks(now: fn(&World, Tid, &Op) -> u32, before: fn(&Question) -> Answer) -> Enabled {
    Enabled::Blocks { now, before, reacquires: false }
}

/// [`Row::cells`] of an operation on nothing but what it names, which commutes with nothing else on it.
pub const ON_OBJECTS: fn(&Act, Effects, &mut Footprint) = |act, _, cells| cells.touch_all(act, How::Writes);

/// [`Row::cells`] of an operation that everything depends on: its effects reach beyond what it names, or whether it is enabled
/// depends on what everybody else does.
pub const WIDE: fn(&Act, Effects, &mut Footprint) = |act, _, cells| {
    cells.touch(Cell::World, How::Writes);
    cells.touch_all(act, How::Writes);
};

/// [`Row::cells`] of an operation on descriptors, in each of its ways.
pub const ON_CHANNELS: fn(&Act, Effects, &mut Footprint) = |act, _, cells| {
    cells.touch(Cell::Channels, How::Channels { mask: act.op.mask, by: act.op.concerns() });
    cells.touch_all(act, How::Writes);
};

impl Footprint {
    /// All objects that an operation names.
    pub fn touch_all(&mut self, act: &Act, how: How) {
        for o in act.op.operands() {
            self.touch_object(o, how);
        }
    }

    /// An object, if it is one.
    pub fn touch_object(&mut self, o: ObjId, how: How) {
        if o != crate::base::ids::NONE {
            self.touch(Cell::Object(o), how);
        }
    }
}

impl Op {
    /// The objects that an operation names, by index; `NONE` for no object.
    pub fn operands(&self) -> [ObjId; 2] {
        use crate::base::ids::NONE;
        match self.kind.row().operands {
            Operands::Nothing | Operands::Thread | Operands::Process => [NONE; 2],
            Operands::One => [self.obj, NONE],
            Operands::Objects => [self.obj, self.obj2],
        }
    }

    /// It names object `o`.
    pub fn names(&self, o: ObjId) -> bool {
        o != crate::base::ids::NONE && self.operands().contains(&o)
    }

    /// It fails at once, or gives up, rather than wait for ever.
    pub fn looks(&self) -> bool {
        self.has(TRY | TIMED)
    }

    /// In which way an operation on descriptors concerns channels.
    pub fn concerns(&self) -> By {
        use crate::base::op::{REACHES, VARIANT};
        let channels = self.kind.row().channels;
        let by_mask = match channels {
            Channels::None | Channels::Ends => false,
            Channels::Polls | Channels::Waits | Channels::ClosesAll | Channels::Watches => true,
            Channels::Connects | Channels::SendsTo | Channels::Binds => true,
            Channels::Controls | Channels::Closes => self.has(VARIANT) || self.has(REACHES),
            Channels::Opens => self.has(REACHES),
            Channels::Reads | Channels::Writes | Channels::Accepts | Channels::Sends | Channels::Receives => false,
        };
        match by_mask {
            true if channels == Channels::Polls && !self.has(VARIANT) => By::MaskLook,
            true => By::Mask,
            false if channels.moves() && self.has(REACHES) => By::NameAndWakes,
            false => By::Name,
        }
    }
}

/// [`Alone::Passes`]: `op` would not block, whatever becomes of deadlines and requests to end.
pub fn goes_through(world: &World, t: Tid, op: &Op) -> bool {
    let waits = TIMED | CANCEL_POINT;
    match op.flags & waits {
        0 => world.choices_of(t, op) > 0,
        _ => world.choices_of(t, &Op { flags: op.flags & !waits, ..*op }) > 0,
    }
}

/// Makes the constants and rows of a family of kinds: each with its number, its name, and all answers.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $text:literal { $($answers:tt)* })*) => {
        impl crate::base::op::Kind {
            $($(#[$doc])* pub const $name: crate::base::op::Kind = crate::base::op::Kind($value);)*
        }

        /// The rows of the family.
        pub(crate) const ROWS: &[$crate::objects::row::Row] = &[
            $($crate::objects::row::Row { kind: crate::base::op::Kind::$name, name: $text, $($answers)* },)*
        ];
    };
}

pub(crate) use kinds;
