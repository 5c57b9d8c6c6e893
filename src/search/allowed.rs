//! What threads may still do: the static knowledge from which persistent sets are computed (`allowedOps` of Stoller,
//! TR 536, Section 8). Plain data; who finds it out, from the text of a binary or of a model program, is of no concern
//! here.

use std::collections::BTreeSet;
use std::fmt;

use vsrun_model::footprint::By;
use vsrun_model::kind::Operands;
use vsrun_model::object::SHARED;
use vsrun_model::{Act, Key, Kind, ObjKind, Pid, Uid};

/// What one thread may still do: an upper bound, from the program's text. It covers what the threads and processes do
/// that the thread may yet create.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct AllowedOps {
    /// Nothing is known.
    pub anything: bool,
    /// The operations that may come, where something is known.
    pub ops: BTreeSet<(KindClass, Operand)>,
}

/// On what an operation may be performed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Operand {
    /// On any object of the kind; also for operations without an object.
    Any,
    /// On the object at this address: of the private memory of the thread's process, or offset in a shared region.
    Addr(u64),
    /// On an object at an address from the first up to, not including, the second, as for `Addr`.
    Range(u64, u64),
    /// On any semaphore set, but there only these semaphores: a set of bits, number modulo 32.
    Sems(u32),
}

/// Classes of operations: by the kind of the object they are on, and those without an object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum KindClass {
    /// An operation on an object of this kind.
    On(ObjKind),
    /// Creates a thread.
    Create,
    /// Looks whether a thread has ended (try) or waits for it for a while (timed). `Does(Kind::JOIN)` waits however long it takes.
    TryJoin,
    /// Ends the process by a call or by the return of `main`, with nothing to settle: a visible operation only where other
    /// threads live in it. `Does(Kind::EXIT)` is one wherever: other threads end with it, or semaphores are undone, or robust mutexes left
    /// behind.
    ProcessEnd,
    /// May try again and again, in vain, something that would have to wait, and is then made to give way like a yield; goes
    /// with the class of what is tried.
    Poll,
    /// An operation of this kind, which is on no object.
    Does(Kind),
}

impl fmt::Display for KindClass {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            KindClass::On(kind) => kind.name(),
            KindClass::Create => "create",
            KindClass::ProcessEnd => "end",
            KindClass::Does(kind) => kind.name(),
            KindClass::TryJoin => "try join",
            KindClass::Poll => "poll",
        })
    }
}

/// What is known of a thread when its bound is asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ThreadOrigin {
    /// The thread's name.
    pub uid: Uid,
    /// Address of its start routine; 0 for the first thread of a process and where it is not known. The first thread of
    /// a forked process goes on in the routine of the thread that forked.
    pub start: u64,
    /// It runs `main`.
    pub is_main: bool,
    /// Transitions that it has made: a bound may ignore them, or leave out what lies behind the thread by then.
    pub steps: u32,
}

/// Bounds for threads.
pub trait Allowed: Send {
    /// What the thread may still do.
    fn of(&self, thread: &ThreadOrigin) -> AllowedOps;
}

/// No knowledge: every thread may do anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unknown;

impl Allowed for Unknown {
    fn of(&self, _: &ThreadOrigin) -> AllowedOps {
        AllowedOps::anything()
    }
}

impl AllowedOps {
    /// The bound of a thread of which nothing is known.
    pub fn anything() -> AllowedOps {
        AllowedOps { anything: true, ops: BTreeSet::new() }
    }

    /// Whether operations of this class may come, on whatever operand.
    pub fn has(&self, class: KindClass) -> bool {
        self.anything || self.ops.range((class, Operand::Any)..).next().is_some_and(|(c, _)| *c == class)
    }

    /// Whether the thread, in process `pid`, may operate on `object`.
    pub fn touches(&self, pid: Pid, object: &Named) -> bool {
        let within = object.key.space & SHARED != 0 || object.key.space == pid;
        let matches = |operand: &Operand| match *operand {
            Operand::Any => true,
            Operand::Addr(addr) => within && addr == object.key.addr,
            Operand::Range(start, end) => within && (start..end).contains(&object.key.addr),
            Operand::Sems(sems) => sems & object.sems != 0,
        };
        let class = KindClass::On(object.key.kind);
        let ops = self.ops.range((class, Operand::Any)..).take_while(|(c, _)| *c == class);
        self.anything || ops.map(|(_, operand)| operand).any(matches)
    }

    /// Whether the bound allows `act`. The second half of an operation that waits in two steps is allowed with the
    /// first, wherever its thread has been moved in between.
    pub fn covers(&self, act: &Act, objects: &[Key]) -> bool {
        if self.anything || act.op.kind.row().is_second_half() {
            return true;
        }
        // Where a fault may strike, and what the allocator does, depends on nothing that others do.
        if vsrun_model::inject::fault_of(&act.op).is_some() || vsrun_model::inject::is_of_reuse(&act.op) {
            return true;
        }
        if matches!(act.op.concerns(), By::Mask | By::MaskLook) {
            return self.has(KindClass::On(ObjKind::CHANNEL));
        }
        match class_of(act) {
            // Every thread ends, and makes calls that are none of its operations.
            Some(KindClass::Does(Kind::END | Kind::PLACE | Kind::RETURN)) => true,
            Some(KindClass::Does(Kind::EXIT)) => {
                self.has(KindClass::Does(Kind::EXIT)) || self.has(KindClass::ProcessEnd)
            }
            Some(class) => self.has(class),
            None => named(act, objects).is_some_and(|all| all.iter().all(|object| self.touches(act.pid, object))),
        }
    }
}

/// An object that an operation names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Named {
    /// Where it lives, and its kind.
    pub key: Key,
    /// Of a semaphore set the semaphores that are concerned, number modulo 32.
    pub sems: u32,
}

/// The objects that `act` names, found in the table of objects of a trace. `None`: one of them is not in the table.
pub fn named(act: &Act, objects: &[Key]) -> Option<Vec<Named>> {
    let sems = if act.op.kind == Kind::SYSV_OP && act.op.mask != 0 { act.op.mask } else { u32::MAX };
    let named = act.op.operands().into_iter().filter(|&o| o != vsrun_model::NONE);
    named.map(|o| objects.get(o as usize).map(|&key| Named { key, sems })).collect()
}

/// The class of an operation that is not on an object.
pub fn class_of(act: &Act) -> Option<KindClass> {
    match act.op.kind.row().operands {
        Operands::One | Operands::Objects => None,
        Operands::Thread if act.op.kind == Kind::JOIN && act.op.looks() => Some(KindClass::TryJoin),
        Operands::Nothing | Operands::Thread | Operands::Process => Some(KindClass::Does(act.op.kind)),
    }
}
