//! What one look at a world that stands still showed.

use serde::{Deserialize, Serialize};
use vsrun_model::arena::{Arena, ARENA_ADDR};
use vsrun_model::{End, Kind, ObjId, ObjKind, Op, Pid, Tid, Uid};

use super::ending::{BugKind, Ending, SignalView};
use super::gone::{GoneView, OriginView};
use super::place::{LineView, PlaceView};
use super::touched::Touched;
use super::words::{Names, Words};
use crate::base::serial;
use crate::schedule::has_room_for;

/// An execution at its end: what the report, the scenario and JSON are made from. Things are named by index; the tables
/// have their names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What kind of bug it is, if it is one.
    pub kind: Option<BugKind>,
    /// Equal for equal bugs.
    pub identity: u64,
    /// The line about it.
    pub summary: Words,
    /// How it ended, as the supervisor saw it.
    pub ending: Ending,
    /// How it ended for the model, and a number that says more, whose meaning depends on it.
    #[serde(with = "Ended")]
    pub end: End,
    /// See `end`.
    pub code: u32,
    /// What was said of the end: the text of an assertion, for instance.
    pub message: String,
    /// The fatal signal of a crash.
    pub signal: Option<SignalView>,
    /// The circle of waiting, if that is the bug: each link's thread waits for the next link's, the last for the first.
    pub cycle: Option<Vec<CycleLink>>,
    /// The uses of memory, if they are the bug.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub race: Option<RaceView>,
    /// The use of freed memory, if that is the bug.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<GoneView>,
    /// The threads, in order of creation.
    pub threads: Vec<ThreadView>,
    /// The processes, in order of creation.
    pub processes: Vec<ProcessView>,
    /// The objects.
    pub objects: Vec<ObjectView>,
    /// The transitions, from the first, as far as they were recorded.
    pub steps: Vec<StepView>,
    /// Transitions that were not recorded, because there were too many.
    pub unrecorded: u64,
    /// Transitions of the schedule that were taken, by the model's count.
    pub moves: u64,
    /// Functions of the program return a choice (`--toss`), as they do under the supervisor only.
    #[serde(default)]
    pub tosses: bool,
    /// Uses of variables that are watched (`--watch`), in their order,
    #[serde(default)]
    pub touches: Vec<Touched>,
    /// and how many more there were.
    #[serde(default)]
    pub touches_lost: u64,
    /// Of an execution that was cut off: what went on there, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<String>,
}

/// A link of a circle of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CycleLink {
    /// Who waits.
    pub thread: Tid,
    /// For what; the next link's thread holds it. `None`: for the end of that thread.
    pub object: Option<ObjId>,
}

/// Two uses of the same memory that are a bug.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RaceView {
    /// What is used: a variable, a block of the heap, a mapping.
    pub place: String,
    /// The word that both use, as it is an object: by space and address.
    pub word: (u32, u64),
    /// Nothing orders them. Otherwise no lock is held at all uses of that memory.
    pub unordered: bool,
    /// Where the block of the heap in which it lies was given out, if that is known.
    #[serde(default)]
    pub allocated: Option<OriginView>,
    /// The thread of the second may not make it, by what the program says of who may use that memory.
    #[serde(default)]
    pub trespass: bool,
    /// The one that came first in the execution, and the other.
    pub uses: [UseView; 2],
}

/// A use of memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UseView {
    /// By whom.
    pub thread: Tid,
    /// What: `write of 4 bytes, plain`.
    pub what: String,
    /// The instruction, or the function of libc or the system call.
    pub at: PlaceView,
    /// The last step that the thread had made, by its index in [`Finding::steps`].
    pub step: Option<usize>,
    /// The thread stands at it; otherwise it stands at the operation that comes after it, or later.
    pub pending: bool,
    /// Locks that the thread holds there.
    pub holds: Vec<Words>,
    /// Where it is, innermost first, as far as that is known.
    pub frames: Vec<PlaceView>,
}

/// What a thread is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThreadStatus {
    /// It has the turn.
    Running,
    /// At a visible operation that could go on.
    Ready,
    /// At a visible operation that would block.
    Waiting,
    /// In a system call that went to the kernel.
    InCall,
    /// Over.
    Exited,
}

/// A thread at the time of a bug.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadView {
    /// Its name: path of creation.
    #[serde(with = "serial::uid")]
    pub uid: Uid,
    /// Its process.
    pub process: Pid,
    /// The routine it was started with; empty if unknown.
    pub start: String,
    /// The source line at which that begins, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins: Option<LineView>,
    /// The name that the program has given it; empty if it has not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub given: String,
    /// The thread that has created it, or its process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creator: Option<Tid>,
    /// What it is doing.
    pub status: ThreadStatus,
    /// Where it is, innermost first.
    pub frames: Vec<PlaceView>,
    /// The operation it is at.
    pub pending: Option<Pending>,
    /// Locks it holds.
    pub holds: Vec<Words>,
    /// What must happen before it can go on.
    pub waits_for: Vec<Words>,
}

/// The operation that a thread is at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// The operation.
    #[serde(with = "Operation")]
    pub op: Op,
    /// In how many ways it could go on; 0: it would block.
    pub alternatives: u32,
    /// It as a call, with the signal handlers that the thread is in.
    pub text: Words,
}

/// A process at the time of a bug.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessView {
    /// Its number, as the program knows it.
    pub vpid: i32,
    /// The program that it runs; empty if unknown.
    pub program: String,
    /// Programs that it has become by exec.
    #[serde(default)]
    pub execs: u8,
    /// Its wait status, if it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<i32>,
}

/// An object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectView {
    /// What it is.
    #[serde(with = "ObjectKind")]
    pub kind: ObjKind,
    /// What it is called.
    pub name: String,
    /// Of memory, what it is called from each byte of its word on; none of other objects.
    pub bytes: Vec<String>,
    /// Of a channel, the step in which the descriptor to read from it came up, from 1; 0: it was there before the first. `None`: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<u64>,
    /// Of a channel, the processes that can read from it in the end,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readers: Vec<Pid>,
    /// and write to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writers: Vec<Pid>,
}

/// One transition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepView {
    /// Who moved.
    #[serde(with = "serial::uid")]
    pub thread: Uid,
    /// The operation.
    #[serde(with = "Operation")]
    pub op: Op,
    /// The alternative taken.
    pub value: u32,
    /// How many there were.
    pub alternatives: u32,
    /// The operation as a call, with what came of it: `pthread_cond_signal(c) wakes 0.1`.
    pub text: Words,
    /// More to say: `alternative 2 of 3`.
    pub note: Option<Words>,
    /// Whom it woke, of an operation that wakes and if it is known.
    pub woken: Option<Vec<Tid>>,
    /// The end may depend on it; otherwise it happened beside what led there.
    #[serde(default = "needed")]
    pub matters: bool,
    /// It takes a lock of a file that has been replaced since that was opened: by this step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<usize>,
    /// From where in the program's own code it was made, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<PlaceView>,
}

fn needed() -> bool {
    true
}

impl Finding {
    /// See [`ObjectView::made`].
    pub fn made(&self, id: ObjId) -> Option<u64> {
        self.objects.get(id as usize)?.made
    }

    /// Step `n`, from 1, is the accepting of a connection.
    pub fn comes_from_accept(&self, n: u64) -> bool {
        let step = (n as usize).checked_sub(1).and_then(|n| self.steps.get(n));
        step.is_some_and(|step| step.op.kind == Kind::FD_ACCEPT)
    }

    /// Transitions of the execution.
    pub fn transitions(&self) -> u64 {
        self.steps.len() as u64 + self.unrecorded
    }

    /// Its steps are all known, and not too many for a schedule: a scenario has them. Otherwise it has the policy and the seed that made them.
    pub fn is_repeated_by_its_steps(&self) -> bool {
        has_room_for(self.steps.len(), self.unrecorded)
    }

    /// It ended where the program wrote to vsrun's memory, which it can only read then.
    pub fn overwrites_vsrun(&self) -> bool {
        let address = self.signal.as_ref().and_then(|signal| signal.address);
        let crash = matches!(self.ending, Ending::Crash { signal, .. } if signal == libc::SIGSEGV);
        crash && address.is_some_and(|at| at.wrapping_sub(ARENA_ADDR) < size_of::<Arena>() as u64)
    }

    /// The process that thread belongs to.
    pub fn process_of(&self, thread: &ThreadView) -> Option<&ProcessView> {
        self.processes.get(thread.process as usize)
    }
}

impl Names for Finding {
    fn object(&self, id: ObjId) -> String {
        self.objects.get(id as usize).map_or_else(|| "?".into(), |object| object.name.clone())
    }

    fn memory(&self, id: ObjId, byte: u8) -> String {
        let of = |object: &ObjectView| object.bytes.get(usize::from(byte)).cloned();
        self.objects.get(id as usize).and_then(of).unwrap_or_else(|| self.object(id))
    }

    fn thread(&self, t: Tid) -> String {
        let thread = self.threads.get(t as usize);
        thread.map_or_else(|| "a thread that does not exist here".into(), |thread| thread.uid.to_string())
    }

    fn process(&self, p: Pid) -> String {
        self.processes.get(p as usize).map_or_else(|| "?".into(), |process| process.vpid.to_string())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "End")]
struct Ended(u8);

#[derive(Serialize, Deserialize)]
#[serde(remote = "ObjKind")]
struct ObjectKind(u8);

#[derive(Serialize, Deserialize)]
#[serde(remote = "Op")]
struct Operation {
    #[serde(with = "serial::kind")]
    kind: Kind,
    flags: u8,
    signals: u16,
    obj: u32,
    obj2: u32,
    mask: u32,
    arg: i64,
    deadline: u64,
}
