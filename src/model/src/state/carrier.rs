//! What the shim, which carries the threads, keeps of them and of their processes. The model takes no decision by it; it lies in
//! the arena so that it is copied with the rest, and so that the supervisor can read it.

use core::hash::Hash;

use crate::base::back::Turn;
use crate::base::mixer::{Mixer, Purpose};
use crate::base::ObjId;

/// Instructions of a loop that waits for others to write.
pub const MAX_READS: usize = 8;

/// What an instruction found in memory.
#[derive(Clone, Copy, Hash, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct ReadWord {
    /// Number of the access site; with `size` 0: none.
    pub site: u32,
    /// Bytes, at most 8.
    pub size: u32,
    /// Where.
    pub address: u64,
    /// What was there.
    pub value: u64,
    /// How often it was found again.
    pub times: u32,
    /// The word, as an object.
    pub word: u32,
    /// What the thread had of its own when it came there, a hash; 0: not known.
    pub state: u64,
    /// How many instructions had read such memory before.
    pub before: u64,
    /// The same when it was read last: of rounds that were made in one step, the last one's.
    pub last: u64,
    /// `state` and `before` as they were when `times` was a power of two last: a loop may come back to where it was after many rounds only
    /// (Brent, BIT 1980).
    pub earlier: [u64; 2],
}

/// A fiber: the thread as the shim runs it.
#[derive(Clone, Copy, Hash, Debug, Default)]
#[repr(C)]
pub struct FiberState {
    /// Stack pointer of the saved context while it does not run.
    pub context: u64,
    /// Where states are told apart: its stack pointer where it came to the gate last, what the code there keeps in registers (rbx, rbp, r12 to r15) and
    /// the control words of its arithmetic.
    pub stand: [u64; 8],
    /// Where its stack begins and where it ends; zeros: that is not known. What lies from there to its stack pointer is nothing any more, and all of it once the
    /// thread is over, if the stack is libc's.
    pub stack: [u64; 2],
    /// See `stack`.
    pub of_libc: bool,
    /// What it has put there, and its thread-local variables, are gone: it is about to end.
    pub stack_over: bool,
    pad_stack: [u8; 6],
    /// Thread pointer; also its pthread_t.
    pub fs: u64,
    /// Start routine, if known.
    pub start: u64,
    /// Word that the kernel would clear and wake at its exit.
    pub clear_tid: u64,
    /// Alternate signal stack: address, flags, size.
    pub altstack: [u64; 3],
    /// The system call it is in, passed through to the kernel: number + 1, and its arguments.
    pub in_call: [u64; 7],
    /// One more than the number of the site at which it is about to use memory that is an object; 0: it is not.
    pub place: u32,
    /// One more than the number of the system call whose uses of memory are recorded; 0: it is in none.
    pub uses_for: u32,
    /// One more than its transitions when it announced the fork that libc is about to make; 0: none.
    pub forks: u32,
    /// It holds libc's lock of the list of streams for that fork.
    pub holds_list: bool,
    /// That fork is to come to a place where it returns.
    pub fork_returns: bool,
    pad_forks: [u8; 2],
    /// What it looked up or read last in a file, a hash; 0: something else.
    pub looked: u64,
    /// The file that `Thread::address` names is the one that was found, in a step before.
    pub settled: bool,
    /// It has asked for faults where it reads the time-stamp counter.
    pub tsc_faults: bool,
    /// Faults of the environment that have struck it.
    pub faults: u8,
    /// No fault strikes it now.
    pub spared: bool,
    /// What it has read of memory that is an object, and found again since it did anything else: the first so many are in use.
    pub reads: [ReadWord; MAX_READS],
    /// See `reads`.
    pub n_reads: u8,
    /// How often it has read such memory.
    pub all_reads: u64,
    /// The loop that it is in goes round in one step, so often at most; 0: it does not, [`u32::MAX`]: it has, and goes on.
    pub rounds: u32,
    pad_rounds: u32,
    /// The last instruction that it was to change such memory with in one step, if nothing else came after it: the value then.
    pub update: ReadWord,
    /// Where its next operation would have to wait, it is interrupted.
    pub interrupted: bool,
    /// Its nice value.
    pub nice: i8,
    /// Its scheduling policy, and the priority if that has one.
    pub policy: u8,
    /// See `policy`.
    pub rt_priority: u8,
    /// What it creates begins with the usual policy.
    pub reset_on_fork: bool,
    /// Processors that it does not want to run on.
    pub barred: u8,
    /// libc's pthread_cancel is under way: what it calls is part of that operation.
    pub asks_to_end: bool,
    /// A request to end is heeded in the operations on descriptors of the call that is under way.
    pub cancellable: bool,
    /// It has executed a fence since it used memory that is an object.
    pub fenced: bool,
    pad: [u8; 4],
    /// Its store buffer, the oldest first.
    pub late: [Late; MAX_LATE],
    /// How many are in it.
    pub n_late: u8,
    /// Loads in a row that have found what is in it.
    pub forwarded: u8,
    pad_late: [u8; 6],
    /// Its name; of the first thread of a process it may be the kernel's only, and 0 here.
    pub name: [u8; 16],
    /// Numbers that its call has reserved for descriptors, and not given away yet: 1 + the number, 0 for none.
    pub reserved: [i32; 2],
}

impl FiberState {
    /// A hash of what the thread's future depends on, for states that are told apart. Where its stack lies and what it has done so far is no part of it.
    pub fn digest(&self) -> [u64; 2] {
        #[rustfmt::skip]
        let FiberState {
            context: _, stand, stack: _, of_libc: _, stack_over: _, pad_stack: _, fs, start: _, clear_tid, altstack, in_call: _, place, uses_for, forks, holds_list, fork_returns,
            pad_forks: _, looked, settled, tsc_faults, faults, spared, reads, n_reads, all_reads: _, rounds, pad_rounds: _, update, interrupted, nice, policy,
            rt_priority, reset_on_fork, barred, asks_to_end, cancellable, fenced, pad: _, late, n_late, forwarded, pad_late: _, name, reserved,
        } = self;
        let mut mixer = Mixer::new(Purpose::FIBER);
        let h = &mut mixer;
        (stand, fs, clear_tid, altstack, place, uses_for, forks, holds_list, fork_returns, settled).hash(h);
        (tsc_faults, faults, spared, rounds, interrupted, nice, policy, rt_priority, reset_on_fork).hash(h);
        (barred, asks_to_end, cancellable, fenced, forwarded, name, reserved, looked).hash(h);
        reads[..usize::from(*n_reads)].hash(h);
        if *n_reads > 0 {
            update.hash(h);
        }
        late[..usize::from(*n_late)].hash(h);
        mixer.digest()
    }
}

/// Stores that a thread may have made that others cannot see yet.
pub const MAX_LATE: usize = 8;

/// A store that others cannot see yet.
#[derive(Clone, Copy, Hash, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Late {
    /// The first byte.
    pub address: u64,
    /// What is stored, at most eight bytes of one word.
    pub value: u64,
    /// Bytes.
    pub size: u32,
    /// The site of the instruction.
    pub site: u32,
    /// The object.
    pub word: ObjId,
    pad: u32,
}

impl Late {
    /// A store to this memory, of a value that is not known yet.
    pub fn new(address: u64, size: u32, site: u32, word: ObjId) -> Late {
        Late { address, size, site, word, ..Late::default() }
    }
}

/// A process as the kernel runs it.
#[derive(Clone, Copy, Hash, Debug)]
#[repr(C)]
pub struct ProcessState {
    /// The kernel's process id, 0 before it is known; written by the process itself when it starts.
    pub real_pid: i32,
    /// Futex word of the turn: set by whoever passes the turn to it, and by vsrun for an order (see `base::back`), cleared by itself.
    pub turn: Turn,
    /// The request to show something that it has followed last, see `Control::shows`; written by itself.
    pub shown: u32,
    /// State of the deterministic random numbers handed to it.
    pub random: u64,
    /// Where the table of its accesses to memory whose faults are answered begins and ends, see the shim's `sys::guard`.
    pub answered: [u64; 2],
    /// The signal that it wants when its parent ends, 0: none.
    pub death_signal: i32,
    /// It has met a fault that is not answered: the instruction faults once more, and that is the crash.
    pub crashes: bool,
    /// The signal that the process is just sending itself, so that the kernel enters its handler; 0: none.
    pub delivers: i32,
    /// A signal that was sent from outside of the world and is no matter of the model: its number and the kernel's id of who
    /// sent it. The process has ended because of it. Zeros: there was none.
    pub outside: [i32; 2],
}

impl ProcessState {
    /// As [`FiberState::digest`].
    pub fn digest(&self) -> [u64; 2] {
        #[rustfmt::skip]
        let ProcessState {
            real_pid: _, turn: _, shown: _, random, answered: _, death_signal, crashes, delivers, outside,
        } = self;
        Mixer::of(Purpose::PROCESS, &(random, death_signal, crashes, delivers, outside))
    }

    /// Of the first process; others draw from their parents.
    pub(crate) const fn new() -> ProcessState {
        ProcessState {
            real_pid: 0,
            turn: Turn::NONE,
            shown: 0,
            random: 0x2545_f491_4f6c_dd1d,
            answered: [0; 2],
            death_signal: 0,
            crashes: false,
            delivers: 0,
            outside: [0; 2],
        }
    }
}
