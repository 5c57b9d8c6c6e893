//! How operations are shown: what the call is named, what it is given, what comes of it, what it waits for, and what of it tells one
//! deadlock from another. Here is what several families share.

pub(crate) use crate::base::words::{list, say, Part};
pub use crate::base::words::{Thing, Words};
use crate::base::{ObjId, Op, Pid, Tid, NONE, TIMED, TRY};
use crate::state::{ChanId, Thread, ThreadState, World, SHARED};

/// See [`Shown::arguments`].
pub type Arguments = fn(&Op, Option<&Thread>, &mut dyn Words);
/// See [`Shown::waits`].
pub type Waits = fn(&World, Tid, &Op, &mut dyn Words);
/// See [`Shown::identity`].
pub type Identity = fn(&World, Tid, &Op, &mut dyn FnMut(u64));

/// How a kind of operation is shown.
pub struct Shown {
    /// The function that a program calls.
    pub call: Call,
    /// Its arguments; with the thread, if one is parked at it.
    pub arguments: Arguments,
    /// What is said after it in a trace.
    pub outcome: Outcome,
    /// What must happen before the thread that is parked at it goes on, a sentence for each; `None`: it never blocks.
    pub waits: Option<Waits>,
    /// What tells a deadlock with the thread parked at it from others with the same thread parked at the same kind.
    pub identity: Identity,
}

impl Shown {
    /// It never blocks, and who waits for what is not changed by it.
    pub const fn passes(call: Call, arguments: Arguments) -> Shown {
        Shown { call, arguments, outcome: Outcome::Nothing, waits: None, identity: BY_OBJECTS }
    }
}

/// The function that a program calls for an operation.
pub enum Call {
    /// The name of the row.
    Row,
    /// This one.
    One(&'static str),
    /// One that waits, one that does not ([`TRY`]), one with a deadline ([`TIMED`]).
    Three(&'static str, &'static str, &'static str),
    /// By the operation.
    By(fn(&Op) -> &'static str),
    /// It is no call by itself: words, which are followed by the arguments.
    Words(&'static str),
}

/// What is said after an operation in a trace.
pub enum Outcome {
    /// Nothing.
    Nothing,
    /// The value that was chosen.
    Value,
    /// It returns: it is the second half of a call.
    Returns,
    /// It gets the lock that it has waited for.
    GetsIt,
    /// Nothing; from now on its thread waits on `obj`.
    Queues,
    /// Whom it wakes: so many of those that wait on `obj`.
    Wakes(fn(&Op) -> usize),
}

/// [`Shown::arguments`]: none.
pub const NO_ARGUMENTS: Arguments = |_, _, _| ();
/// [`Shown::arguments`]: the object, if there is one.
pub const OBJECT: Arguments = |op, _, words| Thing::Object(op.obj).say(words);
/// [`Shown::arguments`]: the object and the number `arg`.
pub const OBJECT_AND_NUMBER: Arguments = |op, _, words| say![words, Thing::Object(op.obj), ", ", op.arg];
/// [`Shown::arguments`]: the thread.
pub const THREAD: Arguments = |op, _, words| Thing::Thread(op.obj).say(words);
/// [`Shown::waits`]: for the owner of the lock `obj`.
pub const FOR_OWNER: Option<Waits> = Some(|world, t, op, words| held(world, t, op.obj, words));

/// [`Shown::identity`]: the objects.
pub const BY_OBJECTS: Identity = |world, _, op, add| {
    object_identity(world, op.obj, add);
    object_identity(world, op.obj2, add);
};

impl Op {
    /// The function that a program calls for this operation.
    pub fn call(&self) -> &'static str {
        let row = self.kind.row();
        match row.shown.call {
            Call::Row => row.name,
            Call::One(name) | Call::Words(name) => name,
            Call::Three(_, name, _) if self.has(TRY) => name,
            Call::Three(_, _, name) if self.has(TIMED) => name,
            Call::Three(name, _, _) => name,
            Call::By(name) => name(self),
        }
    }
}

/// A number that tells a thread from others in every execution.
pub fn thread_identity(world: &World, t: Tid) -> u64 {
    world.threads.get(t).map_or(0, |thread| thread.uid.0)
}

/// The same for a process: it is known by its first thread.
pub fn process_identity(world: &World, p: Pid) -> u64 {
    world.procs.get(p).map_or(0, |process| thread_identity(world, process.main_thread))
}

/// The same for an object, by where it is, in several numbers.
pub fn object_identity(world: &World, id: ObjId, add: &mut dyn FnMut(u64)) {
    let Some(object) = world.objects.get(id) else { return add(0) };
    let key = &object.key;
    let space = if key.space & SHARED != 0 { u64::from(key.space) } else { process_identity(world, key.space) };
    [1, space, key.kind.0.into(), key.addr, object.generation.into()].into_iter().for_each(add);
}

/// Says a lock and its owner, in what `t` waits for.
pub fn held(world: &World, t: Tid, id: ObjId, words: &mut dyn Words) {
    let lock = Thing::Object(id);
    match world.objects.get(id).map_or(NONE, |o| o.owner) {
        NONE => say![words, lock],
        owner if owner == t => say![words, lock, ", which it holds itself"],
        owner => say![words, lock, ", held by thread ", Thing::Thread(owner), if_over(world, owner)],
    }
}

/// Said where a wake-up must come from somebody: whether anybody is left.
pub fn hopeless(world: &World, t: Tid) -> &'static str {
    let mut others = world.live.as_slice().iter().filter(|&&other| other != t);
    let stuck = |&other: &Tid| world.threads[other].state == ThreadState::PARKED && world.choices(other) == 0;
    if others.all(stuck) {
        " (nobody is left who could)"
    } else {
        ""
    }
}

/// Said of a thread that holds something.
pub fn if_over(world: &World, t: Tid) -> &'static str {
    if world.threads.get(t).is_some_and(Thread::alive) {
        ""
    } else {
        " (which is over)"
    }
}

/// The processes that have the end of a channel for writing (`true`) or reading open, not more of them than that.
pub struct Holders<'a>(pub &'a World, pub ChanId, pub bool, pub usize);

impl Part for Holders<'_> {
    fn say(&self, words: &mut dyn Words) {
        let Holders(world, channel, write, most) = *self;
        let all = || world.holders(channel, write).map(Thing::Process);
        say![words, ["no process", "process ", "processes "][all().take(2).count()]];
        list(all(), ", ", most, words);
    }
}

/// A process by the number that it has in the program.
pub struct Numbered<'a>(pub &'a World, pub i32);

impl Part for Numbered<'_> {
    fn say(&self, words: &mut dyn Words) {
        let Numbered(world, vpid) = *self;
        match world.procs.as_slice().iter().rposition(|process| process.vpid == vpid) {
            Some(p) => Thing::Process(p as Pid).say(words),
            None => say![words, vpid],
        }
    }
}
