//! Objects that one thread alone uses: their operations are no place to switch (Stoller, TR 536, Section 10:
//! tentatively unshared objects).
//!
//! An object is *own* as long as all its uses, from the moment a second thread exists, are ordered by the lives of
//! threads: one thread uses it, or first a thread and then one that it creates later, or first a thread and then the
//! one that has joined it; or it is a read-write lock that is only read (`sched::readers`). An operation on an own object that would not block is performed at once, as a part of the
//! transition under way: no scheduler step, nothing recorded, nothing counted. One that would block is published as
//! usual. When a thread uses an object out of this order, the object is shared from then on; its name is noted, and
//! who explores systematically starts over with that name among those known.
//!
//! Why nothing is lost. Call the names known to be shared K, and think of a system in which every other object has a
//! copy per line of ordered uses. In it the operations on these objects touch nothing that another thread touches
//! unless creation or join orders them anyway; so they commute with everything that others do and may be moved to the
//! end of their thread's transition before, and what is recorded of the transitions is all that their dependency rests
//! on. A search that is complete explores a representative of each of that system's maximal traces. The two systems
//! are the same up to the first use out of order. If some execution of the real one has such a use, then so has a trace
//! of the other one, hence one of the executions explored: the search starts over, with a larger K. If none has, the
//! systems are equal. The check is made in each execution. What else can tell where between two transitions a thread
//! stands makes its operations visible again, in the same way (see [`Arena::expose`]):
//! * a request to end it, a signal for its process: they hit it between any two operations; SIGCHLD, if it is handled,
//!   does so when a child ends, so that this goes for the child too;
//! * a process with several threads, one of which waits for whichever child ends first: it can tell whether another has
//!   forked yet;
//! * who asks whether it is over without waiting for it: tryjoin, WNOHANG, a wait for whichever child ends first, a
//!   join or wait by a thread that may itself be asked to end, a wait that a signal may interrupt;
//! * a fork copies what another thread of the process holds at that moment: the copy counts as used by that thread,
//!   and so the use of the copy as one out of order.
//!
//! The end of such a thread, and of its process, is an operation of its own (`Kind::END`), in every search: without it a thread would
//! be over as soon as it has done its last visible operation.
//!
//! An execution that ends early (an assertion, a circle of locks) ends the others where they stand: who looks for more
//! bugs starts over with the object passed last in that transition among those known, so that it is a place to switch.
//! What is left out on purpose: how far a thread that is killed by the end of its process got with its own objects.
//!
//! An object declared atomic is the user's word that the order of its critical sections does not matter and that they
//! have no visible operation inside, as the paper asks of atomic methods. The second half is checked: a thread that
//! reaches a place to switch with an atomic lock held shows that it is none, whatever the order of the threads. That a
//! thread had to wait for an atomic object shows it too.
//!
//! libc loads what unwinds (libgcc_s) once, for whoever is the first to end by pthread_exit, to ask another to end, or to ask for its stack. As long as
//! nothing of that is a place to switch, it is a part of one transition, and nobody can tell who was first. Once something is, whether it is
//! loaded is an object like that of pthread_once ([`Arena::loading_is_told`]): who comes later looks at it, or waits.
//!
//! A transition must come to an end. After [`LONG_RUN`] operations that passed in one transition, the next one is
//! published, whatever others do, so that equivalent executions have the same transitions; and the thread gives way to
//! all others that can run, which may show the object that it polls to be shared. After [`LONG_RUNS`] of these in a row
//! that is so only while another one can run. A thread that never comes to a visible operation then diverges: whoever
//! watches the execution sees `World::ops` move, but not what [`visible`] counts.
//!
//! The name of an object is its place: kind and address, or region and offset. It is the same in all processes that
//! fork from each other, and says nothing of who allocated it: where the addresses of a heap depend on the schedule,
//! an object may be known under several, each of which has to be found shared once. An object that is made anew at a
//! place (an init call) has had no user yet. Barriers, condition variables, futexes, System V semaphores and names
//! are always shared: they are there for talking to others, and around futexes memory is used without a lock.

use crate::arena::Arena;
use crate::base::{Kind, ObjId, Op, Pid, Tid, Uid, CANCEL_POINT, NONE, TIMED, TRY};
use crate::objects::answer::STARTS;
use crate::objects::row::{Alone, Role};
use crate::state::{Applied, Declared, Key, Noted, ObjKind, ProcState, Sharing, Thread, ThreadState, World, SHARED};

/// Operations that pass in one transition before one is published.
pub const LONG_RUN: u32 = 10_000;
/// So many long runs of a thread in a row end whether another thread can run or not.
pub const LONG_RUNS: u8 = 100;
/// Kinds of names, in the place of the kind of an object.
const THREAD: u64 = 0x100;
const PROCESS: u64 = 0x101;
const CHILDREN: u64 = 0x102;
const ASKED: u64 = 0x103;
const ASKED_WHO_WAITS: u64 = 0x104;
const CANCELS: u64 = 0x105;
const RETURNS: u64 = 0x106;
const SENT: u64 = 0x107;
pub(super) const TOLD: u64 = 0x108;
const IGNORED: u64 = 0x109;
const FLOCKED: u64 = 0x10a;
const LOADS: u64 = 0x10b;
const SIGCHLD: u64 = 1 << 16;
/// `Thread::exposed` and `Thread::answered`: not looked up yet, no, yes.
const UNASKED: u8 = 0;
const HIDDEN: u8 = 1;
const EXPOSED: u8 = 2;

pub(super) fn mixed(a: u64, b: u64, c: u64) -> u64 {
    let mut z = a.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ b.wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(31) ^ c;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Of `World::ops`, those that are neither `World::passed` nor `World::long_runs`. A published operation counts twice: when
/// it is published and when it is performed.
pub fn visible(ops: u64, passed: u64, long_runs: u64) -> u64 {
    ops.saturating_sub(passed).saturating_sub(long_runs.saturating_mul(2))
}

/// The name of a call of which nobody looks at the result, by the address to which it returns: among what is known from the start.
pub fn name_of_ignored(returns_to: u64) -> u64 {
    mixed(IGNORED, returns_to, 0)
}

/// The name of the returns of that thread's calls that signals answer: see `objects::answer`. Each of them has one of its own, too.
pub fn name_of_returns(uid: Uid) -> u64 {
    mixed(RETURNS, uid.0, 0)
}

/// The name of the returns of calls of that kind by that thread.
pub fn name_of_return(uid: Uid, kind: Kind) -> u64 {
    mixed(RETURNS, uid.0, kind.0.into())
}

/// The name of the object at `key`, the same in all executions of a program.
pub fn name_of(key: Key) -> u64 {
    let space = if key.space & SHARED != 0 { key.space } else { 0 };
    mixed(space.into(), key.kind.0.into(), key.addr)
}

impl World {
    /// `t` has passed [`LONG_RUN`] operations: true if it gives way.
    #[cold]
    #[inline(never)]
    fn ends_run(&mut self, t: Tid) -> bool {
        self.passed_run = 0;
        if self.threads[t].long_runs == LONG_RUNS {
            let could = |&x: &Tid| {
                let thread = &self.threads[x];
                // The creator of a thread that is still to give the turn back is running.
                x != t && !thread.long_run && (thread.state == ThreadState::RUNNING || self.choices(x) > 0)
            };
            if !self.live.as_slice().iter().any(could) {
                return false;
            }
        } else {
            self.threads[t].long_runs += 1;
        }
        self.threads[t].long_run = true;
        self.long_runs += 1;
        true
    }

    /// Performs an operation that would not block, within the transition under way.
    pub(crate) fn perform_at_once(&mut self, t: Tid, op: &Op) -> Applied {
        // A thread that has just been created is still to give the turn back at its first visible operation.
        let state = self.threads[t].state;
        self.ops += 1;
        self.passed += 1;
        self.takes_time();
        self.passed_last = op.obj;
        self.passed_run += 1;
        self.threads[t].pending = *op;
        let applied = self.perform(t, 0);
        if self.threads[t].state == ThreadState::RUNNING {
            self.threads[t].state = state;
        }
        applied
    }
}

impl Arena {
    /// Thread `t` has reached `op`. Performs it if it is no place to switch and returns what it gives; `None`: it is
    /// to be published.
    pub fn pass(&mut self, t: Tid, op: &Op) -> Option<Applied> {
        if !self.world.concurrent {
            return None;
        }
        if self.world.any_copied_beside {
            self.world.note_copied(t, op);
        }
        let is_of_libc = matches!(op.kind.row().alone, Alone::OfLibc);
        let applied = match () {
            () if is_of_libc => self.pass_of_libc(t, op),
            () if self.plan.unshared || self.declared.len > 0 => self.pass_tracked(t, op),
            () => {
                self.expose(t, op);
                None
            }
        };
        if applied.is_none() {
            self.hold_streams(t);
        }
        if applied.is_none() && self.world.threads[t].loads {
            self.note(LOADS, 0);
        }
        let thread = &mut self.world.threads[t];
        if applied.is_none() && !thread.long_run {
            thread.long_runs = 0;
        }
        if applied.is_none() && thread.atomic_held > 0 {
            self.refute_held(t);
        }
        applied
    }

    fn pass_tracked(&mut self, t: Tid, op: &Op) -> Option<Applied> {
        let row = op.kind.row();
        self.follow_order(t, op);
        if row.role == Role::WaitsOn {
            self.use_second(t, op);
        }
        let Alone::Passes(goes_through) = row.alone else {
            self.expose(t, op);
            return None;
        };
        let passes = self.use_object(t, op, op.obj) && !self.is_exposed(t);
        if !passes {
            return None;
        }
        if !goes_through(&self.world, t, op) {
            if self.world.objects[op.obj].sharing == Sharing::ATOMIC {
                self.note_object(op.obj);
            }
            return None;
        }
        if self.ends_long_run(t) {
            return None;
        }
        let applied = self.world.perform_at_once(t, op);
        if self.world.objects[op.obj].sharing == Sharing::ATOMIC {
            self.count_held(t, op, applied);
        }
        Some(applied)
    }

    /// `t` has passed so many operations in one transition that this one is to be published.
    #[inline]
    pub(crate) fn ends_long_run(&mut self, t: Tid) -> bool {
        self.world.passed_run >= LONG_RUN && self.world.ends_run(t)
    }

    fn count_held(&mut self, t: Tid, op: &Op, applied: Applied) {
        let held = &mut self.world.threads[t].atomic_held;
        match op.kind.row().role {
            Role::Acquires(_) => {
                let acquired = matches!(applied, Applied::Done(0 | crate::base::errno::EOWNERDEAD));
                *held += u32::from(acquired);
            }
            Role::Releases(_) => *held = held.saturating_sub(1),
            _ => {}
        }
    }

    /// `t` has reached a place to switch with atomic locks held: they are none.
    fn refute_held(&mut self, t: Tid) {
        self.world.threads[t].atomic_held = 0;
        for id in 0..self.world.objects.len {
            let object = &self.world.objects[id];
            let held = object.owner == t || self.world.read_holds(id).any(|(reader, _)| reader == t);
            if object.sharing == Sharing::ATOMIC && held {
                self.note_object(id);
            }
        }
    }

    #[inline(never)]
    fn use_second(&mut self, t: Tid, op: &Op) {
        self.use_object(t, op, op.obj2);
    }

    /// Notes that `t` uses object `id` by `op`. True: it is its own, or need not be.
    #[inline(always)]
    fn use_object(&mut self, t: Tid, op: &Op, id: ObjId) -> bool {
        if !self.world.objects.contains(id) {
            return false;
        }
        let mut sharing = self.world.objects[id].sharing;
        if sharing == Sharing::UNKNOWN {
            sharing = self.look_up(self.world.objects[id].key);
            self.world.objects[id].sharing = sharing;
        }
        match sharing {
            Sharing::SHARED => return false,
            Sharing::ATOMIC => return true,
            _ => {}
        }
        let in_order = self.world.objects[id].user == t || self.world.in_order(t, id);
        let own = match self.world.objects[id].key.kind {
            ObjKind::RWLOCK if in_order => self.comes_after_readers(t, op),
            ObjKind::RWLOCK => self.reads_beside(t, op),
            _ => in_order,
        };
        if !own {
            self.note_object(id);
            return false;
        }
        // The stamp is later than that of any thread created before, see `World::create_thread`.
        let at = self.world.ops + 1;
        let object = &mut self.world.objects[id];
        object.user = t;
        object.used_at = at;
        true
    }

    #[inline(never)]
    fn look_up(&self, key: Key) -> Sharing {
        if self.is_known(name_of(key)) {
            return Sharing::SHARED;
        }
        match self.declaration(key) {
            Some(at) => self.declared[at].what,
            None if self.plan.unshared => Sharing::OWN,
            None => Sharing::SHARED,
        }
    }

    /// That name is among those of shared objects with which the execution began.
    pub fn is_known(&self, name: u64) -> bool {
        self.known_shared.as_slice().binary_search(&name).is_ok()
    }

    /// The index of what is declared of the object at `key`. A program that replaces the first one has other symbols.
    fn declaration(&self, key: Key) -> Option<u32> {
        let first_program = key.space & SHARED == 0 && self.world.procs.get(key.space).is_some_and(|p| p.execs == 0);
        let within = |d: &Declared| first_program && d.start <= key.addr && key.addr < d.end;
        self.declared.as_slice().iter().position(within).map(|at| at as u32)
    }

    /// Object `id` is shared from now on.
    #[inline(never)]
    pub(crate) fn note_object(&mut self, id: ObjId) {
        let key = self.world.objects[id].key;
        self.world.objects[id].sharing = Sharing::SHARED;
        let declared = self.declaration(key).map_or(0, |at| at + 1);
        self.note(name_of(key), declared);
    }

    pub(crate) fn note(&mut self, name: u64, declared: u32) {
        if !self.is_known(name) && !self.noted.as_slice().iter().any(|n| n.name == name) {
            self.noted.push(Noted { name, declared, pad: 0 });
        }
    }

    /// Makes the operations of those visible whose position between two transitions `op` of `t` can tell or change.
    fn expose(&mut self, t: Tid, op: &Op) {
        let own = self.world.threads[t].pid;
        match op.kind.row().alone {
            Alone::Passes(_) | Alone::OfLibc | Alone::Visible => {}
            Alone::ExposesThread => self.expose_thread(op.obj),
            Alone::ExposesThreadIfItGivesUp if !self.gives_up(t, op) => {}
            Alone::ExposesThreadIfItGivesUp => self.expose_thread(op.obj),
            // A group, or all.
            Alone::ExposesProcess if op.obj == NONE => {
                (0..self.world.procs.len).for_each(|p| self.expose_target(p, op))
            }
            Alone::ExposesProcess => self.expose_target(op.obj, op),
            // A signal, whoever sends it, reaches it between any two operations.
            Alone::ExposesOwnProcess => self.expose_process(own),
            Alone::ExposesOwnProcessIfMasked => {
                if self.world.has_own_mask(t, op) {
                    self.expose_process(own);
                }
                for p in (0..self.world.procs.len).filter(|&p| p != own) {
                    if self.world.takes_events_of(t, op, p) {
                        self.expose_process(p);
                    }
                }
            }
            Alone::ExposesChildren => self.expose_children(t, op),
            Alone::ExposesCopied if self.plan.watches || !self.copies_of_others(t) => {}
            Alone::ExposesCopied => self.expose_process(own),
        }
    }

    /// What other threads of the process of `t` do in no order with what it does now, or have done: a copy of memory shows how far they are. Where memory is
    /// watched, so do uses of it.
    fn copies_of_others(&self, t: Tid) -> bool {
        let world = &self.world;
        let in_no_order = |&u: &Tid| world.threads[u].pid == world.threads[t].pid && !world.ordered(u, u64::MAX, t);
        (0..world.threads.len).any(|u| in_no_order(&u))
    }

    /// True if `op`, a join or wait, can end before what it waits for is there.
    fn gives_up(&mut self, t: Tid, op: &Op) -> bool {
        let ends = op.has(TRY) || op.has(TIMED) && self.world.timeouts_any;
        ends || (op.has(CANCEL_POINT) || self.world.may_be_interrupted(t, op)) && self.is_exposed(t)
    }

    /// A timer may interrupt the threads of process `p` anywhere.
    pub fn expose_to_timers(&mut self, p: Pid) {
        if self.world.concurrent && (self.plan.unshared || self.declared.len > 0) {
            self.expose_process(p);
        }
    }

    /// Somebody looks for thread `t` by its number: whether it is there is a question of who came first.
    pub fn expose_by_id(&mut self, t: Tid) {
        let thread = &self.world.threads[t];
        if thread.pid == self.world.threads[self.world.current].pid {
            self.expose_thread(t);
        } else {
            self.expose_process(thread.pid);
        }
    }

    /// Somebody asks a thread to end: calls at which it heeds that are places to switch from the next execution on.
    pub fn note_cancels(&mut self) {
        self.note(CANCELS, 0);
    }

    /// Somebody does.
    pub fn cancels(&self) -> bool {
        self.is_known(CANCELS)
    }

    /// Thread `t` begins to have libc load what unwinds, or has done so. What is a place to switch meanwhile makes that an operation, from the next
    /// execution on.
    pub fn loads(&mut self, t: Tid, loads: bool) {
        self.world.threads[t].loads = loads;
    }

    /// It is an operation.
    pub fn loading_is_told(&self) -> bool {
        self.is_known(LOADS)
    }

    /// What the process of `t` does about SIGCHLD changes: that tells which of its children have ended.
    pub fn child_signal_changes(&mut self, t: Tid) {
        let p = self.world.threads[t].pid;
        let has_children = self.world.procs.as_slice().iter().any(|c| c.creator == p);
        if !self.world.concurrent || !has_children {
            return;
        }
        self.expose_process(p);
        self.note(self.name_of_process(CHILDREN, p), 0);
        for child in 0..self.world.procs.len {
            if self.world.procs[child].parent == p {
                self.expose_threads_of(child);
            }
        }
    }

    /// Somebody can tell how far thread `t` is otherwise than by its visible operations or by waiting for its end: that is a place to
    /// switch then, and so are calls between which a signal may come.
    pub fn is_watched(&mut self, t: Tid) -> bool {
        self.world.concurrent && self.is_exposed(t)
    }

    /// Signals are known that answer operations of this kind by `t`: that it returns from them is an operation.
    #[inline]
    pub fn is_answered(&mut self, t: Tid, kind: Kind) -> bool {
        if !self.world.concurrent || self.world.threads[t].answered == HIDDEN {
            return false;
        }
        self.finds_answers(t, kind)
    }

    #[cold]
    fn finds_answers(&mut self, t: Tid, kind: Kind) -> bool {
        let uid = self.world.threads[t].uid;
        let known = self.is_known(name_of_returns(uid));
        self.world.threads[t].answered = if known { EXPOSED } else { HIDDEN };
        known && self.is_known(name_of_return(uid, kind))
    }

    /// Signals are known that answer what `t` has done last: where it changes its mask, it may take one.
    pub fn is_mask_answered(&mut self, t: Tid) -> bool {
        let Thread { last, creates, transitions, .. } = self.world.threads[t];
        self.is_answered(t, last)
            || transitions == 0 && self.is_answered(t, STARTS)
            || creates && self.is_answered(t, Kind::FORK)
    }

    /// Nobody looks at the result of the call by thread `t` that returns to that address. A program that replaces the first one has other code.
    pub fn is_ignored(&self, t: Tid, returns_to: u64) -> bool {
        let first_program = self.world.threads.get(t).is_some_and(|x| self.world.procs[x.pid].execs == 0);
        first_program && self.is_known(name_of_ignored(returns_to))
    }

    /// Locks of an open file description of the file with that number are used. That another process closes it is an operation, which it has
    /// to be also where it comes before the first lock: so from now on such a description is known from its open.
    pub fn note_flocked(&mut self, number: u64) {
        if self.world.concurrent {
            self.note(mixed(FLOCKED, number, 1), 0);
            self.note(mixed(FLOCKED, 0, 0), 0);
        }
    }

    /// Some file is known for that.
    pub fn knows_flocked(&self) -> bool {
        self.is_known(mixed(FLOCKED, 0, 0))
    }

    /// The file with that number is.
    pub fn is_flocked(&self, number: u64) -> bool {
        self.is_known(mixed(FLOCKED, number, 1))
    }

    /// Somebody asks who used object `id` last: operations on it commute less from now on.
    pub fn ask(&mut self, id: ObjId) {
        if self.world.concurrent {
            self.note(self.asked(id), 0);
        }
    }

    /// Somebody does.
    pub fn is_asked(&self, id: ObjId) -> bool {
        let name = self.asked(id);
        self.is_known(name) || self.noted.as_slice().iter().any(|n| n.name == name)
    }

    /// Somebody asks who waits for object `id`, or can tell who has waited: that a wait begins is a step of its own from now on.
    pub fn ask_who_waits(&mut self, id: ObjId) {
        if self.world.concurrent {
            self.ask(id);
            self.note(self.asked_who_waits(id), 0);
        }
    }

    /// Somebody does.
    pub fn waits_are_told(&self, id: ObjId) -> bool {
        let name = self.asked_who_waits(id);
        self.is_known(name) || self.noted.as_slice().iter().any(|n| n.name == name)
    }

    fn asked_who_waits(&self, id: ObjId) -> u64 {
        mixed(ASKED_WHO_WAITS, name_of(self.world.objects[id].key), 0)
    }

    fn asked(&self, id: ObjId) -> u64 {
        mixed(ASKED, name_of(self.world.objects[id].key), 0)
    }

    fn expose_thread(&mut self, t: Tid) {
        if self.world.threads.contains(t) {
            self.world.threads[t].exposed = EXPOSED;
            self.note(mixed(THREAD, self.world.threads[t].uid.0, 0), 0);
        }
    }

    fn expose_process(&mut self, p: Pid) {
        if self.world.procs.contains(p) {
            self.note(self.name_of_process(PROCESS, p), 0);
            self.expose_threads_of(p);
        }
    }

    /// `op` concerns process `p`.
    fn expose_target(&mut self, p: Pid, op: &Op) {
        self.expose_process(p);
        if op.kind == Kind::KILL && op.arg != 0 && self.world.procs.contains(p) {
            self.note(self.name_of_process(SENT, p), 0);
        }
    }

    /// Signals are sent to process `p`: that it has begun to end, and takes none any more, is told before it is over.
    pub fn is_sent_signals(&self, p: Pid) -> bool {
        self.world.concurrent && self.is_known(self.name_of_process(SENT, p))
    }

    /// A wait for one process is like a join; else it can tell which child ended first, or that none has.
    fn expose_children(&mut self, t: Tid, op: &Op) {
        let p = self.world.threads[t].pid;
        let children = |w: &World, c: Pid| w.procs[c].parent == p && w.procs[c].state != ProcState::REAPED;
        let several = (0..self.world.procs.len).filter(|&c| children(&self.world, c)).count() > 1;
        // One that is over creates none any more: what it has created is among the children, or somebody has waited for that, which is an operation.
        let siblings = self.world.live.as_slice().iter().any(|&u| u != t && self.world.threads[u].pid == p);
        let tells = self.gives_up(t, op) || op.arg <= 0 && (several || siblings);
        if !tells {
            return;
        }
        // It can tell too whether another thread of the process has created a child yet.
        if siblings {
            self.expose_process(p);
        }
        self.note(self.name_of_process(CHILDREN, p), 0);
        for child in 0..self.world.procs.len {
            if self.world.procs[child].parent == p {
                self.expose_threads_of(child);
            }
        }
    }

    fn expose_threads_of(&mut self, p: Pid) {
        for i in 0..self.world.live.len {
            let t = self.world.live[i];
            if self.world.threads[t].pid == p {
                self.world.threads[t].exposed = EXPOSED;
            }
        }
    }

    /// A process is named by its first thread.
    fn name_of_process(&self, kind: u64, p: Pid) -> u64 {
        let main = self.world.procs[p].main_thread;
        mixed(kind, self.world.threads.get(main).map_or(0, |t| t.uid.0), 0)
    }

    /// True if the operations of `t` are all visible.
    #[inline]
    fn is_exposed(&mut self, t: Tid) -> bool {
        let p = self.world.threads[t].pid;
        if self.sees_children_end(p) || self.world.has_signal_timers(p) {
            return true;
        }
        match self.world.threads[t].exposed {
            UNASKED => self.asks_if_exposed(t),
            known => known == EXPOSED,
        }
    }

    #[inline(never)]
    fn asks_if_exposed(&mut self, t: Tid) -> bool {
        let thread = &self.world.threads[t];
        let p = thread.pid;
        let parent = self.world.procs[p].parent;
        let known = self.is_known(mixed(THREAD, thread.uid.0, 0))
            || self.is_known(self.name_of_process(PROCESS, p))
            || self.world.procs.contains(parent) && self.is_known(self.name_of_process(CHILDREN, parent));
        self.world.threads[t].exposed = if known { EXPOSED } else { HIDDEN };
        known
    }

    /// True if a handler tells process `p` or its parent when a child ends.
    #[inline]
    fn sees_children_end(&self, p: Pid) -> bool {
        // Asked at each operation of searches for what is shared.
        match self.world.procs.len {
            1 if p == 0 => self.world.procs[p].handled & SIGCHLD != 0,
            _ => self.sees_some_end(p),
        }
    }

    #[inline(never)]
    fn sees_some_end(&self, p: Pid) -> bool {
        let tells = |p: Pid| {
            let Some(process) = self.world.procs.get(p) else { return false };
            // One that blocks it may look for it later. While a thread is created its creator blocks everything.
            let blocks = |t: Tid| self.world.threads.get(t).is_some_and(|t| t.sigmask & SIGCHLD != 0);
            let procs = self.world.procs.as_slice();
            let of_child = |c: usize| {
                procs[c].creator == p && (blocks(process.main_thread) || blocks(self.world.forker_of(c as Pid)))
            };
            process.handled & SIGCHLD != 0 || (0..procs.len()).any(of_child)
        };
        tells(p) || self.world.procs.get(p).is_some_and(|c| tells(c.parent))
    }

    /// The name of the object passed last in the transition in which the execution ended, if there is one.
    pub fn passed_last(&self) -> Option<u64> {
        self.world.objects.get(self.world.passed_last).map(|o| name_of(o.key))
    }
}
