//! Why the result of a search is not all that there is to know: one enumeration, carried by the trace of each execution,
//! counted, saved and merged over workers. Every sentence about it is here.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use vsrun_model::kind::Unproven;
use vsrun_model::progress::NO_PROGRESS;
use vsrun_model::world::{
    World, BETWEEN_CALLS, CANCELLED_WITHIN, CANCELS_LATE, CIRCLE_INHERITED, CPU_TIMER, DEATH_SIGNAL, DEFERRED,
    DUMPS_LATE, EDGE_AGAIN, EXITS_TWICE, EXIT_STREAMS, FORK_COPIES, FORK_LOCKS, FUTEX_TIMED, GONE_WAITERS, HANDED_ON,
    KEY_DELETED, LEAVES_SEVERAL, LEAVES_WORDS, LIBC_THREADS, NOT_SHARED, ONE_STEP, OTHER_LOOKS, OTHER_RECEIVER,
    OVERRUNS, PAGES_SHARED, PERMISSION, PLACE_UNLOCKED, READY_EARLY, REFILLED, RESET_WITHIN, ROUNDS, SIGIO, STOPS_LATE,
    SYN_RETRIES, TERMINAL, VFORKED, WAITS_ON, WAKES_IGNORED, WAKE_LOST, WOKEN_FAILS,
};
use vsrun_model::End;

/// Why a search is not complete, or what it is complete for only. In the order in which they are told: the first one is
/// what the report says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The run did not take place, or came to nothing.
    Failed,
    /// vsrun was at fault in one execution.
    Fault,
    /// What an execution came to, the same schedule did not come to again.
    Unconfirmed,
    /// Somebody outside interfered.
    Disturbed,
    /// Calls that are not modelled went to the kernel, by the user's wish.
    Uncontrolled,
    /// The first bug ended the exploration.
    FirstBug,
    /// The program did something that vsrun does not support.
    Unsupported,
    /// vsrun was asked to end.
    Interrupted,
    /// The search draws lots.
    Random,
    /// The time was spent.
    Time,
    /// The number of executions was reached.
    Executions,
    /// Executions were cut where the program had more of something than there is room for.
    Room,
    /// Executions were cut at the depth bound.
    Depth,
    /// Executions were cut that made no progress.
    Idle,
    /// One execution was asked for.
    Once,
    /// Pieces of the tree are not explored.
    Pieces,
    /// Objects are shared that were not known to be when the tree was split.
    Again,
    /// System calls that could communicate went to the kernel.
    PassedThrough,
    /// Threads used memory in an order that nothing keeps.
    Races,
    /// Some of what was done to memory was not seen.
    Unwatched,
    /// The processor could have let a load overtake a store.
    Tso,
    /// A program or library that came late has its own functions, not those that return a choice.
    OwnFunctions,
    /// Several threads used a file in a way that is not modelled.
    SharedFiles,
    /// libc used descriptors of its own while it held a lock of its own, beside other threads.
    LibcDescriptors,
    /// See [`Unproven::FlockGaveUp`].
    FlockGaveUp,
    /// See [`Unproven::SeveralOwners`].
    SeveralOwners,
    /// See [`Unproven::PiFutex`].
    PiFutex,
    /// See [`Unproven::Notified`].
    Notified,
    /// FIOASYNC asked for SIGIO.
    NoSigio,
    /// A timer of processor time was to send a signal.
    NoCpuTimer,
    /// TCP_DEFER_ACCEPT was to keep connections back until there is data.
    NotDeferred,
    /// A request for a connection that a full queue refused was granted as soon as there was room.
    RetriedAtOnce,
    /// A stop took effect at once on a process that could have gone on for a while.
    StoppedAtOnce,
    /// A signal that is ignored could have made a wait fail.
    WakesIgnored,
    /// Whether destructors of a key run that is deleted beside the end of a thread.
    KeyDeleted,
    /// Who closes a circle of mutexes with priority inheritance waits for ever, though the circle is broken.
    CircleInherited,
    /// A send on a local socket that had begun could have been told of a reset.
    ResetWithin,
    /// A receive could have got what was sent into the room that it made.
    Refilled,
    /// Children of a thread that had ended, or of others, were found in one order.
    HandedOn,
    /// A signal with a core dump took effect after one call of each thread.
    DumpedSoon,
    /// Of several threads that want a signal the first was chosen.
    OtherReceiver,
    /// User ids that have changed did not decide who may send signals.
    Permission,
    /// Several may use a terminal that was set.
    Terminal,
    /// What another thread prints came before or after the exit of one, not within.
    ExitStreams,
    /// Several threads were in exit.
    ExitsTwice,
    /// What becomes of pages that vmsplice has put into a pipe was not seen there.
    PagesShared,
    /// Several moved the place of a memfd: each did so in one step.
    PlaceUnlocked,
    /// A thread that heeds requests to end anywhere was asked to: it ended at calls only.
    CancelledWithin,
    /// Several processes used an object that was not made for that.
    NotShared,
    /// A signal came to who had been let go, but had not looked yet, and did not make its call fail.
    WokenFails,
    /// A thread ended that had made a process which asked for a signal then.
    DeathSignal,
    /// A program asked how many periods of a timer had passed unseen.
    Overruns,
    /// Those who watch for edges were told of each once: not again of what they had seen with the one before, nor by who leaves something in a pipe.
    EdgeAgain,
    /// Who waited at an instance with a signal descriptor was not the one whom a signal of another process woke.
    OtherLooks,
    /// A thread forked with libc's locks held.
    ForkLocks,
    /// A fork copied all at one moment.
    ForkCopies,
    /// What the kernel does step by step was one step.
    OneStep,
    /// How far libc's own threads have come was not varied when that was asked.
    LibcThreads,
    /// A descriptor of a process was ready when SIGCHLD was sent, not before.
    ReadyEarly,
    /// A request to end a thread came before a call or after it.
    CancelsLate,
    /// A thread left several robust mutexes at once.
    LeavesSeveral,
    /// What somebody waits for who is not there.
    GoneWaiters,
    /// A futex was waited for with a deadline.
    FutexTimed,
    /// Who waited for several futexes left them at once.
    LeavesWords,
    /// Who waited beside one that was woken and did not go on was let go in its place.
    WakeLost,
    /// A write to a pipe went behind what another thread had written after the pipe had been full.
    WaitsOn,
    /// A loop that reads memory and may end by itself went round many times in one step.
    Rounds,
    /// The child of a vfork was one of a fork.
    Vforked,
    /// Schedules beyond a bound were left out.
    Bound,
    /// Some within the bound too: waits gave up at any moment.
    TimedBound,
    /// The search switches only where locks are released.
    LockReleases,
    /// The search could not use all that executions did.
    Unseen,
    /// Signals came to a program whose states are told apart.
    #[serde(rename = "states:signals")]
    SignalsAnswer,
    /// A deadline was noticed only when nothing else could run.
    UrgentTimeouts,
    /// Timers that are set again and again fired only when nothing else could run.
    TimersHeld,
    /// Whether a timer had expired was told by how long a thread had waited that did not set it, or that waited for another timer.
    TimersApart,
    /// An assumption: nobody can tell that a handler runs between two instructions.
    BetweenCalls,
    /// An assumption: who calls sched_yield again and again was made to wait.
    FairSchedules,
}

/// What follows from the reductions' not being proven.
macro_rules! not_proven {
    ($name:literal, $what:literal) => {
        (
            $name,
            "the search took schedules to be equivalent, which is not proven for what the program does (see the notes)",
            concat!($what, ": the reduction is not proven for that; --search naive explores all"),
        )
    };
}

/// What follows from a signal that never comes.
macro_rules! never_came {
    ($name:literal, $signal:literal) => {
        (
            $name,
            "all schedules of what is modelled were run, but some signals are not (see the notes)",
            concat!($signal, " was asked for and is not modelled: it never came"),
        )
    };
}

impl Reason {
    /// The word for programs, what the report says of the search, and a note about what the program did ("" for none).
    #[rustfmt::skip]
    fn texts(self) -> (&'static str, &'static str, &'static str) {
        const CALLS: &str =
            "all schedules of what is modelled were run, but system calls that could communicate went to the kernel";
        const NUMBERS: &str =
            "all schedules of what is modelled were run, but which thread gets which descriptor inside of libc's own locks was not varied";
        const COUNT: &str = "budget spent: the number of executions is reached (--max-executions, --once)";
        match self {
            Reason::Failed => ("failed", "the run did not take place", ""),
            Reason::Fault => ("vsrun-bug", "vsrun failed in one execution, which ended the search", ""),
            Reason::Unconfirmed => ("unconfirmed", "what an execution came to did not come again: executions do not depend on their schedules alone", ""),
            Reason::Disturbed => ("environment", "what is around the program interfered with an execution, which ended the search", ""),
            Reason::Uncontrolled => ("uncontrolled", "calls that are not modelled went to the kernel, as --uncontrolled asks: what they do was not explored", ""),
            Reason::FirstBug => ("first-bug", "stopped at the first bug; --keep-going explores on", ""),
            Reason::Unsupported => ("unsupported", "the program does something that is not supported", ""),
            Reason::Interrupted => ("interrupted", "interrupted before the end", ""),
            Reason::Random => ("random", "a random search never is complete", ""),
            Reason::Time => ("time", "budget spent: the time is over (--time)", ""),
            Reason::Executions => ("executions", COUNT, ""),
            Reason::Room => ("room", "bounded: executions were cut where the program had more of something than vsrun can hold, or could not be followed on (see the notes)", ""),
            Reason::Depth => ("depth", "bounded: executions were cut at the depth bound (--max-depth)", ""),
            Reason::Idle => ("idle", "bounded: executions were cut that made no progress for long (--max-idle)", ""),
            Reason::Once => ("executions", COUNT, ""),
            Reason::Pieces => ("pieces", "pieces of the search are not explored yet (vsrun pieces work)", ""),
            Reason::Again => ("pieces:again", "objects turned out to be shared that were not when the search was split: it is to be split again (vsrun pieces split --again)", ""),
            Reason::PassedThrough => ("passed-through", CALLS, ""),
            Reason::Races => ("races", "all schedules of what is visible were run, but threads use memory without an order (see the notes): a switch between such accesses was not explored", ""),
            Reason::Unwatched => ("not-watched", "all schedules of what is visible were run, but some of what threads do to memory was not seen (see the notes)", ""),
            Reason::Tso => (
                "tso",
                "all orders of what threads do to memory were explored, but not that the processor lets a load overtake an earlier store (see the notes)",
                "a thread stores to memory that others use, and then loads other such memory, with no fence and no locked instruction between: x86 may let the load come first, which is not explored",
            ),
            Reason::OwnFunctions => ("toss", "all schedules were run, but a program or library that came after the start has its own functions, not those of --toss (see the notes)", ""),
            Reason::SharedFiles => ("files", CALLS, ""),
            Reason::LibcDescriptors => ("libc-descriptors", NUMBERS, ""),
            Reason::FlockGaveUp => not_proven!("not-proven:flock", "flock gave up one kind of lock to wait for the other"),
            Reason::SeveralOwners => not_proven!("not-proven:getlk", "F_GETLK found locks of several processes, in the order of their list"),
            Reason::PiFutex => not_proven!("not-proven:pi-futex", "futexes with priority inheritance were locked"),
            Reason::Notified => not_proven!("not-proven:mq-notify", "a message was sent while mq_notify waited for one"),
            Reason::NoSigio => never_came!("signals:sigio", "SIGIO for input on a descriptor (FIOASYNC)"),
            Reason::NoCpuTimer => never_came!("signals:cpu-timer", "the signal of a timer of processor time"),
            Reason::NotDeferred => (
                "sockets:defer-accept",
                "all schedules of what is modelled were run, but connections did not wait for their data (see the notes)",
                "TCP_DEFER_ACCEPT was asked for: connections were there to be accepted at once, as they are once its time is over; that they come only with their data is not modelled",
            ),
            Reason::RetriedAtOnce => (
                "sockets:retries",
                "all schedules of what is modelled were run, but refused connections came again at once (see the notes)",
                "a TCP connection was asked for, without waiting, while the listener's queue was full, and was there as soon as there was room; that the request comes again at any later moment is not modelled",
            ),
            Reason::StoppedAtOnce => (
                "signals:stop",
                "all schedules of what is modelled were run, but processes stopped at once when others stopped them, and their parents were told at once (see the notes)",
                "a process stopped, or went on: that it may do something more after kill has returned, and that SIGCHLD about it comes later, is not modelled",
            ),
            Reason::WakesIgnored => (
                "signals:ignored",
                "all schedules of what is modelled were run, but not that a signal which is ignored makes a wait fail (see the notes)",
                "a signal that is ignored (SIGCHLD of a child that ended) came just when libc may have blocked all signals in one thread to create a thread or process: a wait of another one (epoll_wait, semop, ..) may fail with EINTR then, which is not modelled",
            ),
            Reason::KeyDeleted => (
                "threads:key-deleted",
                "all schedules of what is modelled were run, but not that a thread ends before or after a key is deleted (see the notes)",
                "a key of thread-specific data was deleted beside other threads: whether its destructor still runs for one that ends meanwhile was not varied",
            ),
            Reason::CircleInherited => (
                "mutexes:inherited-circle",
                "all schedules of what is modelled were run, but not that a thread waits for ever which closes a circle of mutexes with priority inheritance (see the notes)",
                "threads may wait for each other in a circle of mutexes with priority inheritance that can still be broken (by a deadline, ..): the kernel refuses who closes it, and glibc lets that one wait for ever all the same, or fails; that is not modelled",
            ),
            Reason::ResetWithin => (
                "sockets:reset-within",
                "all schedules of what is modelled were run, but not that a send finds its local socket reset which has begun before (see the notes)",
                "the other end of a local stream went with data unread, and a send failed with EPIPE: had it been waiting for room just then, it would have failed with ECONNRESET, which is not modelled",
            ),
            Reason::Refilled => (
                "sockets:refilled",
                "all schedules of what is modelled were run, but not that a receive gets what is sent into the room that it makes (see the notes)",
                "a receive on a stream that was full asked for more than there was, and gave what there was: that it also gives what is sent while it goes on is not modelled",
            ),
            Reason::HandedOn => (
                "processes:handed-on",
                "all schedules of what is modelled were run, but not that a thread ends before or after a wait looks for its children (see the notes)",
                "a wait found several children that different threads had made: which is the first depends on whether these threads have ended, which was not varied",
            ),
            Reason::DumpedSoon => (
                "signals:core",
                "all schedules of what is modelled were run, but threads did little after a signal with a core dump (see the notes)",
                "another process sent a signal that dumps core, and each thread made one more call at most: those that do not take the signal may make more, which is not modelled",
            ),
            Reason::OtherReceiver => (
                "signals:receiver",
                "all schedules of what is modelled were run, but signals for a process went to the first thread that wants them (see the notes)",
                "a signal was sent to a process of which several threads want it, and the first of them may have been about to take another signal, or another one had been chosen before: that the kernel chooses a different thread is not modelled",
            ),
            Reason::Permission => (
                "signals:permission",
                "all schedules of what is modelled were run, but not that a signal is refused (see the notes)",
                "a process that is not the superuser's sent a signal to one whose user ids, or its own, had been set: whether it may was not asked",
            ),
            Reason::Terminal => (
                "terminal",
                "all schedules of what is modelled were run, but a terminal was set beside other threads or processes (see the notes)",
                "a terminal was set: what others that use it see of that went to the kernel, in one order",
            ),
            Reason::ExitStreams => (
                "streams:exit",
                "all schedules of what is modelled were run, but not that a thread prints within the exit of another one (see the notes)",
                "a thread used a stream while another one was in exit: it came before libc wrote out all streams, or after, not between that and the moment when libc takes their buffers away",
            ),
            Reason::ExitsTwice => (
                "threads:exits",
                "all schedules of what is modelled were run, but not which of several threads that exit runs which handler (see the notes)",
                "a thread called exit while another one was in exit: which of them runs which exit handler was not varied",
            ),
            Reason::PagesShared => (
                "pipes:vmsplice",
                "all schedules of what is modelled were run, but not that pages in a pipe change before they are read (see the notes)",
                "vmsplice put memory of the program into a pipe: what is read there is what the memory held then, though natively it is what it holds when it is read; that it was left alone until then was not seen to",
            ),
            Reason::PlaceUnlocked => (
                "files:memfd-place",
                "all schedules of what is modelled were run, but not that a read or write of a memfd moves the place after another one has begun there (see the notes)",
                "several threads or processes read or write a memfd by the place of its descriptor: the kernel has no lock on that place, so that two may begin at the same one; each was one step here",
            ),
            Reason::CancelledWithin => (
                "threads:cancelled-within",
                "all schedules of what is modelled were run, but not that a thread which heeds requests to end anywhere ends between two calls (see the notes)",
                "a thread with asynchronous cancelability (pthread_setcanceltype) was asked to end: natively that may strike between any two instructions, here at its calls",
            ),
            Reason::NotShared => (
                "objects:not-shared",
                "all schedules of what is modelled were run, but several processes used an object that was not made for that (see the notes)",
                "several processes use a mutex, condition variable, read-write lock, barrier or semaphore in memory that they share, which was not initialized for several processes (PTHREAD_PROCESS_SHARED, sem_init with pshared 1): \
                 natively who waits for it in one process is not woken by another one, and may wait for ever; here it is",
            ),
            Reason::WokenFails => (
                "signals:woken-fails",
                "all schedules of what is modelled were run, but not that a signal makes a call fail which could have gone on (see the notes)",
                "a signal with a handler came while what its thread waited for was there already (data of a Unix stream socket, room for a send or msgsnd, a connect): the kernel looks for signals first there, so the call may fail with EINTR natively",
            ),
            Reason::DeathSignal => (
                "signals:parent-death",
                "all schedules of what is modelled were run, but not the signal for the end of a parent's thread (see the notes)",
                "a thread ended that had forked a process which asked for a signal then (PR_SET_PDEATHSIG): natively it comes with the end of that thread, here it did not",
            ),
            Reason::Overruns => (
                "timers:overruns",
                "all schedules of what is modelled were run, but with one number of periods that had passed unseen (see the notes)",
                "timer_getoverrun was called: how many periods of a timer pass before its signal is taken was not varied",
            ),
            Reason::ForkLocks => (
                "threads:fork-locks",
                "all schedules of what is modelled were run, but not what other threads do between the moment when libc takes its locks for a fork and the fork (see the notes)",
                "a thread came to an operation within fork, in a handler of pthread_atfork say, or libc forked by itself (daemon, forkpty): malloc's locks were held there, so that others had to wait for it",
            ),
            Reason::ForkCopies => (
                "processes:fork-copies",
                "all schedules of what is modelled were run, but not that another thread changes descriptors or other state within a fork (see the notes)",
                "a process with threads forked while another thread was about to open or close a descriptor, or to set directory, umask, a signal's action or a limit: natively the child may have the memory from after that and the descriptors from before, and it used a lock or the like that threads share; here a fork copied all at one moment",
            ),
            Reason::OneStep => (
                "calls:one-step",
                "all schedules of what is modelled were run, but not what others do and see between the steps of certain calls (see the notes)",
                "a call that the kernel carries out step by step was one step here, where others could tell: a signal for a group (one process after the other), a name made, given or taken away (the count of links first), a path with several names that others change, a transfer of more than a page of a file that others use, or a poll of more than 64 descriptors",
            ),
            Reason::LibcThreads => (
                "threads:libc",
                "all schedules of what is modelled were run, but not how far threads of the C library have come when that is asked (see the notes)",
                "the program uses POSIX asynchronous I/O or getaddrinfo_a: what aio_error, aio_cancel, gai_error and the like answer was explored for some moments only",
            ),
            Reason::ReadyEarly => (
                "processes:pidfd-early",
                "all schedules of what is modelled were run, but not that a descriptor of a process is ready before SIGCHLD is sent (see the notes)",
                "a process that has a descriptor (pidfd) ended, and its parent blocks or handles SIGCHLD: natively the descriptor is ready a moment before the signal is there; here both came at once",
            ),
            Reason::OtherLooks => (
                "epoll:other-signals",
                "all schedules of what is modelled were run, but not that a signal wakes who waits at an epoll instance for signals that are not its own (see the notes)",
                "processes or threads wait at one epoll instance that watches a signal descriptor: natively a signal may wake the one that has no such signal, which takes the event out of the list for all; here the one that has it was woken",
            ),
            Reason::EdgeAgain => (
                "epoll:edge-again",
                "all schedules of what is modelled were run, but not that what is watched for edges (EPOLLET) makes one more event than it has told of (see the notes)",
                "an epoll instance watches for edges (EPOLLET): natively an edge makes one more event where what it tells has been seen with the one before, and so does a pipe's reader or writer which has waited and leaves something for others",
            ),
            Reason::CancelsLate => (
                "threads:cancelled-late",
                "all schedules of what is modelled were run, but not that a request to end a thread strikes in a call that has done its work (see the notes)",
                "pthread_cancel came right after a call of its target that may be interrupted by it: natively the request may strike before that call returns, so that what it has read, written or accepted is lost on the thread",
            ),
            Reason::LeavesSeveral => (
                "mutexes:robust-steps",
                "all schedules of what is modelled were run, but not what comes between the moments at which a thread leaves several robust mutexes (see the notes)",
                "a thread ended that held several robust mutexes: all were left at one moment, natively one after the other, the last that was locked first",
            ),
            Reason::GoneWaiters => (
                "objects:waiters-gone",
                "all schedules of what is modelled were run, but not what becomes of an object for which somebody waits who is not there (see the notes)",
                "a condition variable or read-write lock was used for which a thread waits that is not there: in the child of a fork, where a thread of the parent waited, or after a process was killed that waited; natively such an object still counts it",
            ),
            Reason::FutexTimed => (
                "futexes:timed",
                "all schedules of what is modelled were run, but not in all orders a futex wait that gives up and what is written for those who wait (see the notes)",
                "a wait for a futex with a deadline gave up (std::future::wait_for, std::counting_semaphore, ..) before others were woken: whether the word was written before that was not varied",
            ),
            Reason::LeavesWords => (
                "futexes:left-at-once",
                "all schedules of what is modelled were run, but not what comes between the moments at which a thread that is interrupted leaves several futexes (see the notes)",
                "a signal interrupted a wait for several futexes (futex_waitv), or its process was killed: all were left at one moment, natively one after the other",
            ),
            Reason::WakeLost => (
                "wake-ups:lost",
                "all schedules of what is modelled were run, but not that a wake-up is lost with a thread that does not go on (see the notes)",
                "a thread that waited for a semaphore or lock beside others was killed, cancelled, or left its wait by a signal handler that did not return, when it may have been woken already: natively the others may then sleep on, though the semaphore is not 0 or the lock is free, until it is posted or unlocked once more",
            ),
            Reason::WaitsOn => (
                "pipes:full",
                "all schedules of what is modelled were run, but not that a write to a pipe waits on for a page of its own (see the notes)",
                "a thread wrote to a pipe that had been full, behind what another one had written meanwhile: natively, if it waited for room before that, it needs a page of its own, and waits on while there is none",
            ),
            Reason::Rounds => (
                "rounds",
                "all schedules of what is modelled were run, but of a loop that may end by itself not in which of many rounds it sees that memory has changed (see the notes)",
                "a loop read memory, found the same more than 16 times and did something of its own in each round, such as counting them: the first 16 rounds were explored one by one, all others as one step",
            ),
            Reason::Vforked => (
                "vfork-changes-nothing",
                "",
                "vfork was called: its child is taken to change nothing that its parent uses before it executes a program or ends, which POSIX asks for, and its parent went on beside it",
            ),
            Reason::Bound => ("bound", "bounded: all that schedules within the bound can do was explored, those beyond it were left out (--bound)", ""),
            Reason::TimedBound => ("bound:timeouts", "bounded: most of what schedules within the bound can do was explored, not all, since waits could give up at any moment (--timeouts urgent bounds exactly)", ""),
            Reason::LockReleases => ("lock-releases", "the search switches only where locks are released", ""),
            Reason::SignalsAnswer => ("states:signals", "all states that are told apart were met, but signals came (see the notes)", "signals came: what they answer is told by how a state was come to, which is no part of it; --search naive explores all"),
            Reason::Unseen => ("unseen", "the search could not follow all that executions did", ""),
            Reason::BetweenCalls => ("signals-at-calls", "", "signals come at calls: a handler ran where a call of its thread began or returned; that it runs between two other instructions only the memory of its own thread could tell"),
            Reason::FairSchedules => ("fair-schedules", "", "fair schedules only: a thread that yielded, polled or waited for time to pass again and again was made to wait until another had moved"),
            Reason::TimersHeld => ("timers-held", "bounded: a timer of which several expiries had come fired only when nothing else could run, or no more of them were counted, or several fired at once in one order only beside other events, or one whose signal was blocked may have fired before sigpending looked or before it was set anew", ""),
            Reason::TimersApart => (
                "timers-apart",
                "bounded: a timer that one thread set (timerfd) had always expired where one looked at it that had waited for as long, though that was another thread, or what it waited for was another timer, which may count from earlier",
                "",
            ),
            Reason::UrgentTimeouts => ("urgent-timeouts", "bounded: timeouts, timers and sleeps ended only when nothing else could run; --timeouts any explores the rest", ""),
        }
    }

    /// The word of the contract.
    pub fn name(self) -> &'static str {
        self.texts().0
    }

    /// What the report says of a search that is not complete for this reason.
    pub fn sentence(self) -> &'static str {
        self.texts().1
    }

    /// What the reader should know of the program's part in it.
    pub fn note(self) -> Option<&'static str> {
        Some(self.texts().2).filter(|note| !note.is_empty())
    }

    /// What a complete search assumes all the same.
    pub fn is_assumption(self) -> bool {
        matches!(self, Reason::FairSchedules | Reason::BetweenCalls | Reason::Vforked)
    }
}

impl From<Unproven> for Reason {
    fn from(what: Unproven) -> Reason {
        match what {
            Unproven::FlockGaveUp => Reason::FlockGaveUp,
            Unproven::SeveralOwners => Reason::SeveralOwners,
            Unproven::PiFutex => Reason::PiFutex,
            Unproven::Notified => Reason::Notified,
        }
    }
}

/// What begins whatever is said of executions in which calls of these kinds (bits of [`KINDS`](vsrun_model::calls::KINDS)) went
/// to the kernel. `None`: no kind was let through.
pub fn uncontrolled(kinds: u32) -> Option<String> {
    let all: Vec<_> = vsrun_model::calls::kinds_of(kinds).collect();
    let list = |names: Vec<&str>, by: &str| names.join(by);
    (!all.is_empty()).then(|| {
        format!(
            "UNCONTROLLED: {} went to the kernel (--uncontrolled {}): never complete, and replays are best effort",
            list(all.iter().map(|kind| kind.1).collect(), ", "),
            list(all.iter().map(|kind| kind.0).collect(), ","),
        )
    })
}

/// A set of reasons, in their order.
pub type Reasons = BTreeSet<Reason>;

/// What one execution has seen, from the world at its end, whatever the search.
pub fn seen_in(world: &World) -> Reasons {
    let seen = [
        (world.end == End::DEPTH && world.end_code != NO_PROGRESS, Reason::Depth),
        (world.end == End::DEPTH && world.end_code == NO_PROGRESS, Reason::Idle),
        (world.end == End::ROOM, Reason::Room),
        (world.timeless && world.stirred, Reason::SignalsAnswer),
        (world.never_come & SIGIO != 0, Reason::NoSigio),
        (world.never_come & CPU_TIMER != 0, Reason::NoCpuTimer),
        (world.never_come & DEFERRED != 0, Reason::NotDeferred),
        (world.never_come & SYN_RETRIES != 0, Reason::RetriedAtOnce),
        (world.never_come & STOPS_LATE != 0, Reason::StoppedAtOnce),
        (world.never_come & WAKES_IGNORED != 0, Reason::WakesIgnored),
        (world.never_come & KEY_DELETED != 0, Reason::KeyDeleted),
        (world.never_come & CIRCLE_INHERITED != 0, Reason::CircleInherited),
        (world.never_come & RESET_WITHIN != 0, Reason::ResetWithin),
        (world.never_come & REFILLED != 0, Reason::Refilled),
        (world.never_come & HANDED_ON != 0, Reason::HandedOn),
        (world.never_come & DUMPS_LATE != 0, Reason::DumpedSoon),
        (world.never_come & OTHER_RECEIVER != 0, Reason::OtherReceiver),
        (world.never_come & PERMISSION != 0, Reason::Permission),
        (world.never_come & TERMINAL != 0, Reason::Terminal),
        (world.never_come & EXIT_STREAMS != 0, Reason::ExitStreams),
        (world.never_come & EXITS_TWICE != 0, Reason::ExitsTwice),
        (world.never_come & BETWEEN_CALLS != 0, Reason::BetweenCalls),
        (world.never_come & PAGES_SHARED != 0, Reason::PagesShared),
        (world.never_come & PLACE_UNLOCKED != 0, Reason::PlaceUnlocked),
        (world.never_come & CANCELLED_WITHIN != 0, Reason::CancelledWithin),
        (world.never_come & NOT_SHARED != 0, Reason::NotShared),
        (world.never_come & WOKEN_FAILS != 0, Reason::WokenFails),
        (world.never_come & DEATH_SIGNAL != 0, Reason::DeathSignal),
        (world.never_come & OVERRUNS != 0, Reason::Overruns),
        (world.never_come & EDGE_AGAIN != 0, Reason::EdgeAgain),
        (world.never_come & FORK_LOCKS != 0, Reason::ForkLocks),
        (world.never_come & FORK_COPIES != 0, Reason::ForkCopies),
        (world.never_come & ONE_STEP != 0, Reason::OneStep),
        (world.never_come & LIBC_THREADS != 0, Reason::LibcThreads),
        (world.never_come & READY_EARLY != 0, Reason::ReadyEarly),
        (world.never_come & OTHER_LOOKS != 0, Reason::OtherLooks),
        (world.never_come & CANCELS_LATE != 0, Reason::CancelsLate),
        (world.never_come & LEAVES_SEVERAL != 0, Reason::LeavesSeveral),
        (world.never_come & GONE_WAITERS != 0, Reason::GoneWaiters),
        (world.never_come & FUTEX_TIMED != 0, Reason::FutexTimed),
        (world.never_come & LEAVES_WORDS != 0, Reason::LeavesWords),
        (world.never_come & WAKE_LOST != 0, Reason::WakeLost),
        (world.never_come & WAITS_ON != 0, Reason::WaitsOn),
        (world.never_come & ROUNDS != 0, Reason::Rounds),
        (world.never_come & VFORKED != 0, Reason::Vforked),
        (world.urgent, Reason::UrgentTimeouts),
        (world.ticks_held, Reason::TimersHeld),
        (world.ticks_apart, Reason::TimersApart),
        (world.held_back, Reason::FairSchedules),
    ];
    seen.into_iter().filter(|(seen, _)| *seen).map(|(_, reason)| reason).collect()
}

/// What has happened there for which reductions are not proven.
pub fn not_proven_in(world: &World) -> Reasons {
    world.unproven().map(Reason::from).collect()
}

/// Of these, why the search is not complete; the others it only assumes.
pub fn undoing(reasons: &Reasons) -> impl Iterator<Item = Reason> + '_ {
    reasons.iter().copied().filter(|reason| !reason.is_assumption())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_in_order_is_told_and_assumptions_undo_nothing() {
        let mut reasons = Reasons::from([Reason::FairSchedules]);
        assert_eq!(undoing(&reasons).count(), 0);
        reasons.extend([Reason::UrgentTimeouts, Reason::Bound, Reason::PiFutex, Reason::Time]);
        let names: Vec<_> = undoing(&reasons).map(Reason::name).collect();
        assert_eq!(names, ["time", "not-proven:pi-futex", "bound", "urgent-timeouts"]);
        let json = serde_json::to_string(&reasons).unwrap();
        assert_eq!(json, r#"["time","pi-futex","bound","urgent-timeouts","fair-schedules"]"#);
        assert_eq!(serde_json::from_str::<Reasons>(&json).unwrap(), reasons);
    }
}
