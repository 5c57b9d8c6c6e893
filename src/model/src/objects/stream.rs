//! State of libc's own that threads of a process share: the locks of stdio streams and of directories that are read (a `DIR`), and what has no
//! lock that anybody can hold, but an order that can be told (random numbers, the list of exit handlers).
//!
//! The lock of a stream is recursive and belongs to a thread, not to an operation: how often its owner has taken it is counted by
//! libc, in the stream. Here it is taken once, by the first, and given back by the last. A thread that ends keeps it. That of a directory
//! is held while one function works on it, which may be a place to switch where others change the directory; so is the lock of a thread's under
//! which libc asks the kernel about the thread's policy.
//! When taking it is a visible operation, and when it only passes, says `sched::stream`.

use super::mutex::{acquires, releases};
use super::row::*;
use crate::base::numbers;
use crate::state::{ObjKind, Object, DIRECTORY, LOADER, STREAM_LIST, THREAD_DATA, UNWINDER};

kinds! {
    /// Take the lock of a stream. [`EXPLICIT`]: the program asks for it by name. `arg`: its order can be told; where it always
    /// can, which function takes it ([`held_by`]).
    STREAM_LOCK = 45, "stream_lock" {
        operands: Operands::Objects,
        enabled: blocks(|w, t, op| u32::from(w.stream_ready(t, op.obj) || op.has(TRY)), |q| q.lock_is_free(q.act.op.obj)),
        perform: |w, t, op, _| Applied::Done(w.stream_lock(t, op.obj)),
        records: OWNER, cells: acquires, follows: |a, b| releases(b, a.op.obj), blocks: MAY_BLOCK,
        role: Role::Acquires(Lock::Mutex), channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::OfLibc, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::By(|op| match () {
            () if op.arg > 1 => HOLDERS.get(op.arg as usize - 2).map_or("libc_lock", |name| name),
            () if !op.has(EXPLICIT) => "stdio_lock",
            () if op.has(TRY) => "ftrylockfile",
            () => "flockfile",
        }), arguments: OBJECT, outcome: Outcome::Nothing, waits: FOR_OWNER, identity: BY_OBJECTS },
    }
    /// Give it back.
    STREAM_UNLOCK = 46, "stream_unlock" {
        operands: Operands::Objects, enabled: Enabled::Always,
        perform: |w, t, op, _| {
            w.stream_unlock(t, op.obj);
            Applied::Done(0)
        },
        records: OWNER, cells: ON_OBJECTS, follows: NOBODY, blocks: GIVES,
        role: Role::Releases(Lock::Mutex), channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::OfLibc, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown::passes(Call::By(|op| match () {
            () if op.arg > 1 => "libc_unlock",
            () if op.has(EXPLICIT) => "funlockfile",
            () => "stdio_unlock",
        }), OBJECT),
    }
    /// Use what libc keeps for all threads, in one step; `arg` is which function does (`libc_use`).
    LIBC_USE = 47, "libc_use" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: DONE,
        records: Records::NOTHING, cells: ON_OBJECTS, follows: NOBODY, blocks: GIVES,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::OfLibc, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown::passes(Call::By(|op| LIBC_USES.get(op.arg as usize).map_or("libc_use", |name| name)), OBJECT),
    }
}

/// Flag of these operations: the program asks for it by name (flockfile, rand), libc does not do it on its own account.
pub const EXPLICIT: u8 = VARIANT;

numbers! {
    /// What libc keeps for all threads of a process beside its streams: the address of its object, which is an [`ObjKind::LIBC`].
    Kept(u64), or "libc's own":
    RANDOM = 0, "random numbers";
    EXIT_HANDLERS = 1, "exit handlers";
    ATTRIBUTES = 2, "what threads are made with";
}

/// What of libc's own has another kind of object, told by a flag.
const KEPT_OTHERWISE: [(ObjKind, u32, &str); 3] = [
    (ObjKind::STREAM, STREAM_LIST, "the list of streams"),
    (ObjKind::STREAM, LOADER, "the loader"),
    (ObjKind::ONCE, UNWINDER, "what libc unwinds with (libgcc_s)"),
];

impl Object {
    /// The words for what libc keeps there, of which a process has one. `None`: it is something else.
    pub fn kept(&self) -> Option<&'static str> {
        if self.key.kind == ObjKind::LIBC {
            return Some(Kept(self.key.addr).name());
        }
        let is_it = |(kind, flag, _): &&(ObjKind, u32, &str)| self.key.kind == *kind && self.flags & flag != 0;
        KEPT_OTHERWISE.iter().find(is_it).map(|kept| kept.2)
    }

    /// The word for what it is; a directory that is read is no stream to people.
    pub fn kind_name(&self) -> &'static str {
        match self.key.kind {
            ObjKind::STREAM if self.flags & DIRECTORY != 0 => "directory",
            ObjKind::STREAM if self.flags & THREAD_DATA != 0 => "what libc keeps of a thread",
            kind => kind.name(),
        }
    }
}

/// The functions that [`Kind::LIBC_USE`] is about, by [`Op::arg`].
const LIBC_USES: [&str; 13] = [
    "random",
    "srandom",
    "initstate",
    "setstate",
    "__cxa_atexit",
    "on_exit",
    "__cxa_at_quick_exit",
    "exit",
    "pthread_setattr_default_np",
    "pthread_getattr_default_np",
    "quick_exit",
    "pthread_join",
    "pthread_detach",
];

/// [`Op::arg`] of a use of what libc keeps by the function of that name.
pub fn libc_use(function: &str) -> i64 {
    LIBC_USES.iter().position(|name| *name == function).unwrap_or(LIBC_USES.len()) as i64
}

/// The functions that hold a lock of libc's while they work: that of a directory, and one of a thread's.
const HOLDERS: [&str; 7] = [
    "readdir",
    "telldir",
    "seekdir",
    "rewinddir",
    "pthread_getschedparam",
    "pthread_setschedparam",
    "pthread_setschedprio",
];

/// [`Op::arg`] of a lock of libc's that is taken and given back by the function of that name.
pub fn held_by(function: &str) -> i64 {
    2 + HOLDERS.iter().position(|name| *name == function).unwrap_or(HOLDERS.len()) as i64
}

/// 1 + the owner.
const OWNER: Records = Records::owner(|w, _, op| w.objects[op.obj].owner.wrapping_add(1) as i64)
    .looking(|q| q.lock_state(q.act.op.obj), 0);

impl World {
    /// True if `t` would get the lock of stream `s` at once.
    pub(crate) fn stream_ready(&self, t: Tid, s: ObjId) -> bool {
        let owner = self.objects[s].owner;
        owner == NONE || owner == t
    }

    /// `t` takes the lock of stream `s`, if nobody else has it. Gives 0 or minus an error number.
    pub(crate) fn stream_lock(&mut self, t: Tid, s: ObjId) -> i64 {
        if !self.stream_ready(t, s) {
            return errno::EBUSY;
        }
        let stream = &mut self.objects[s];
        stream.count += 1;
        if stream.owner == NONE {
            stream.owner = t;
            self.threads[t].streams += 1;
            self.threads[t].stream = s;
        }
        0
    }

    /// The lock of stream `s` is given back, by whomever: libc does not look whose it is.
    pub(crate) fn stream_unlock(&mut self, _: Tid, s: ObjId) {
        let stream = &mut self.objects[s];
        stream.count = stream.count.saturating_sub(1);
        if stream.count > 0 {
            return;
        }
        let owner = core::mem::replace(&mut stream.owner, NONE);
        if self.threads.contains(owner) {
            self.threads[owner].streams = self.threads[owner].streams.saturating_sub(1);
        }
    }

    /// The memory of stream `s` says that `owner` holds its lock, or nobody ([`NONE`]): it was used while nobody looked.
    pub fn stream_found(&mut self, s: ObjId, owner: Tid) {
        while self.objects[s].owner != NONE {
            self.objects[s].count = 1;
            self.stream_unlock(owner, s);
        }
        if owner != NONE {
            self.stream_lock(owner, s);
        }
    }

    /// The thread that a forked process has, `copy`, holds the streams that the forking one holds.
    pub(crate) fn inherit_streams(&mut self, forker: Tid, copy: Tid) {
        self.threads[copy].streams = self.threads[forker].streams;
        // Which they are is found when it is asked for.
        self.threads[copy].stream = NONE;
    }

    /// `s` is a stream whose lock `t` holds.
    pub(crate) fn holds_stream(&self, t: Tid, s: ObjId) -> bool {
        self.objects.get(s).is_some_and(|o| o.key.kind == ObjKind::STREAM && o.owner == t)
    }
}
