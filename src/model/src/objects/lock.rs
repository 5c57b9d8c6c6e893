//! Locks of files: record locks of processes (fcntl F_SETLK), of open file descriptions (F_OFD_SETLK), and flock.
//!
//! A file has two objects, one for locks of records, one for flock: the kernel does not let them see each other. A lock is
//! owned by a process or by an open file description; what the shim makes of descriptors is its own affair. Locks of an
//! object lie in `World::file_locks` in the order of the kernel's list: owners in the order of their first lock, those of
//! an owner by their starts.
//!
//! NOTE [EDEADLK] The kernel refuses to let a process sleep for a record lock if that would close a circle of such sleepers.
//! A pending operation may be taken as one that has not entered the kernel yet, so any of those in a circle may be the
//! last to enter: each of them is enabled, and fails with EDEADLK. One that does depends on everything. A circle can be
//! made or broken by other threads of a process in it; so the lock operations of processes that have had several threads
//! depend on all waits for record locks ([`THREADED`]). Where a lock has several owners of which some wait in turn and others do
//! not, the answer of the kernel depends on the order of its lists: that is refused.

use super::question::Did;
use super::row::*;
use crate::state::{
    owner_process, End, FileLock, KnownFile, LockState, Tagged, ThreadState, CLOSE, DESCRIPTION, GAVE_UP_FLOCK,
    IS_DESCRIPTION, LAST, NAME_BITS, NAME_SHIFT, SEVERAL_OWNERS, THREADED, UNLOCK, WRITE,
};

kinds! {
    /// Lock the bytes from `arg` to `deadline` of a file (fcntl F_SETLK, F_SETLKW, F_OFD_SETLK); `mask`: see [`crate::lock`].
    RECORD_LOCK = 110, "fcntl_lock" {
        operands: Operands::Objects, enabled: blocks(World::record_lock_choices, |q| q.file_lock()),
        perform: |w, t, op, _| w.record_lock_perform(t, op),
        records: Records { settles: true, ..RECORDS }, cells: |act, _, cells| {
            if LockState::of(act.state, 0).circle {
                cells.touch(Cell::World, How::Writes);
            }
            cells.touch(Cell::LockCircles, How::Changes);
            if may_circle(&act.op) {
                cells.touch(Cell::LockCircles, How::Looks);
            }
            touch_range(act, false, cells);
        }, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::FileLock(FileLockUse::Takes), channels: Channels::None, signals: Signals::RESTARTS, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::One("fcntl"), arguments: |op, _, words| range_words(op, if op.tries() { "SETLK" } else { "SETLKW" }, how(op), words),
            outcome: Outcome::Nothing, waits: Some(in_the_way), identity: by_range },
    }
    /// Give back such locks; also what the close of a descriptor does (`CLOSE`).
    RECORD_UNLOCK = 111, "fcntl_unlock" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: |w, t, op, _| w.record_unlock_perform(t, op),
        records: RECORDS, cells: |act, _, cells| {
            cells.touch(Cell::LockCircles, How::Changes);
            touch_range(act, false, cells);
        }, follows: NOBODY, blocks: |e, _| e.op.has(THREADED),
        role: Role::FileLock(FileLockUse::GivesBack), channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown::passes(Call::By(|op| if op.mask & CLOSE != 0 { "close" } else { "fcntl" }), |op, _, words| match op.mask & CLOSE != 0 {
            // Locks of a file that nobody has locked are no object.
            true if op.obj == NONE => say![words, "gives back record locks"],
            true => say![words, "gives back record locks of ", Thing::Object(op.obj)],
            false => range_words(op, "SETLK", "F_UNLCK", words),
        }),
    }
    /// F_GETLK.
    RECORD_TEST = 112, "fcntl_getlk" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: |w, t, op, _| w.record_test_perform(t, op),
        records: RECORDS, cells: |act, _, cells| touch_range(act, true, cells), follows: NOBODY, blocks: GIVES,
        role: Role::FileLock(FileLockUse::Tests), channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown::passes(Call::One("fcntl"), |op, _, words| range_words(op, "GETLK", how(op), words)),
    }
    /// flock; a close that may give a lock back too.
    FLOCK = 113, "flock" {
        operands: Operands::Objects, enabled: blocks(World::flock_choices, |q| q.file_lock()),
        perform: |w, t, op, _| w.flock_perform(t, op),
        records: RECORDS, cells: |act, _, cells| touch_range(act, false, cells),
        follows: NOBODY, blocks: |e, _| e.op.mask & UNLOCK == 0,
        role: Role::FileLock(FileLockUse::Whole), channels: Channels::None, signals: Signals::RESTARTS, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::By(|op| if op.mask & CLOSE != 0 { "close" } else { "flock" }), arguments: flock_words,
            outcome: Outcome::Nothing, waits: Some(in_the_way), identity: by_range },
    }
}

/// Bytes of a file, the last included; nothing for all of them.
struct Bytes(u64, u64);

impl Part for Bytes {
    fn say(&self, words: &mut dyn Words) {
        match *self {
            Bytes(0, LAST) => {}
            Bytes(first, LAST) => say![words, "[", first, "..]"],
            Bytes(first, last) => say![words, "[", first, "..", last, "]"],
        }
    }
}

fn how(op: &Op) -> &'static str {
    ["F_RDLCK", "F_WRLCK"][usize::from(op.mask & WRITE != 0)]
}

fn range_words(op: &Op, command: &str, what: &str, words: &mut dyn Words) {
    say![words, Thing::Object(op.obj)];
    if op.mask & CLOSE == 0 {
        let prefix = if op.mask & DESCRIPTION != 0 { ", F_OFD_" } else { ", F_" };
        say![words, Bytes(op.arg as u64, op.deadline), prefix, command, ", ", what];
    }
}

fn flock_words(op: &Op, _: Option<&Thread>, words: &mut dyn Words) {
    say![words, Thing::Object(op.obj)];
    let what = match op.mask {
        mask if mask & CLOSE != 0 => return,
        mask if mask & UNLOCK != 0 => ", LOCK_UN",
        mask if mask & WRITE != 0 => ", LOCK_EX",
        _ => ", LOCK_SH",
    };
    say![words, what, if op.tries() { "|LOCK_NB" } else { "" }];
}

/// Says which locks are in the way.
fn in_the_way(world: &World, t: Tid, op: &Op, words: &mut dyn Words) {
    for lock in world.locks_against(t, op) {
        let whole = op.kind == Kind::FLOCK;
        let place = if whole { Bytes(0, LAST) } else { Bytes(lock.first, lock.last) };
        say![words, Thing::Object(op.obj), place, ", held by "];
        match owner_process(lock.owner) {
            Some(p) => say![words, "process ", Thing::Process(p)],
            None => say![words, "an open file description (locked by process ", Thing::Process(lock.by), ")"],
        }
        say![words, if lock.write { " for writing" } else { " for reading" }];
        words.next();
    }
}

fn by_range(world: &World, _: Tid, op: &Op, add: &mut dyn FnMut(u64)) {
    object_identity(world, op.obj, add);
    [op.arg as u64, op.deadline, op.mask.into()].into_iter().for_each(add);
}

/// See [`LockState`].
const RECORDS: Records = Records {
    renamed: |act, to| act.state = LockState::of(act.state, 0).renamed(to.process).pack(),
    ..Records::number(|w, t, op| w.lock_state(t, op).pack())
};

fn touch_range(act: &Act, tests: bool, cells: &mut Footprint) {
    let (first, last) = range_of(&act.op);
    cells.touch_all(act, How::FileLock { first, last, tests });
}

/// An operation on locks of files.
fn is_lock(op: &Op) -> bool {
    matches!(op.kind.row().role, Role::FileLock(_))
}

/// Whether two of them are about the same bytes. F_GETLK tells how far the lock reaches that it finds, which those next to it change.
fn overlap(a: &Op, b: &Op) -> bool {
    let test = a.kind == Kind::RECORD_TEST || b.kind == Kind::RECORD_TEST;
    let (a, b) = (range_of(a), range_of(b));
    test || a.0 <= b.1 && b.0 <= a.1
}

/// True if `e` may have let a lock of a file go that stood against `p`.
fn gives_locks_back(e: &Did, p: &Act) -> bool {
    let on_file = e.act.op.names(p.op.obj) && is_lock(&e.act.op) && e.act.op.kind != Kind::RECORD_TEST;
    let changed = e.found.is_some_and(|(before, after)| before != after);
    on_file || changed || e.did.has(Effects::ENDS) || e.act.op.kind.row().channels.any()
}

impl Question<'_> {
    /// Operations on the same part of a file depend on each other; those that stay may all the same be about other parts of what
    /// `p` wants. What another one has found tells where it was about the same part; and one that is blocked may be in a
    /// circle, which lets it go on.
    fn file_lock(&self) -> Answer {
        let p = self.act;
        let me = owner_of(&p.op, p.pid);
        let mut state = Some(p.state);
        let meets = |a: &Act| a.op.names(p.op.obj) && overlap(&a.op, &p.op);
        for d in self.dropped {
            match d.found {
                Some((before, after)) if before != after => state = Some(before),
                _ if !meets(d.act) => continue,
                _ if range_of(&d.act.op) == range_of(&p.op) => state = Some(d.act.state),
                _ => state = None,
            }
            break;
        }
        // Others change locks without an operation on them: the end of a process, a close.
        let ends = self.dropped.iter().any(|d| d.did.has(Effects::ENDS));
        let granted = match (state, self.not_locked_by_kept(me)) {
            (_, Some(false)) => Some(false),
            (Some(state), kept) if !ends => match LockState::of(state, me).grants(&p.op) {
                Some(true) => kept,
                Some(false) if !self.kept.iter().any(|k| gives_locks_back(k, p)) => Some(false),
                _ => None,
            },
            _ => None,
        };
        let threads = self.dropped.iter().any(|d| d.act.op.has(THREADED) && is_lock(&d.act.op));
        let circles = self.lock_waits && p.op.kind == Kind::RECORD_LOCK && p.op.mask & DESCRIPTION == 0;
        let released = self.dropped.first().is_some_and(|d| d.act.op.kind == Kind::RECORD_UNLOCK && meets(d.act));
        match granted {
            Some(true) => Answer::Yes,
            Some(false) if !circles || released && !threads => Answer::No,
            _ => Answer::Unknown,
        }
    }

    /// Whether what `p` wants, if it is free before, is free after the transitions that stay, too.
    fn not_locked_by_kept(&self, me: u32) -> Option<bool> {
        let p = self.act;
        let against = |k: &&Did| {
            let takes =
                k.act.op.kind == Kind::RECORD_LOCK || k.act.op.kind == Kind::FLOCK && k.act.op.mask & UNLOCK == 0;
            let conflicts = (k.act.op.mask | p.op.mask) & WRITE != 0;
            let other = owner_of(&k.act.op, k.act.pid) != me;
            takes && conflicts && other && k.act.op.names(p.op.obj) && overlap(&k.act.op, &p.op)
        };
        let gives_back = p.op.kind == Kind::FLOCK && p.op.mask & UNLOCK != 0;
        let Some(last) = self.kept.iter().rposition(|k| !gives_back && against(&k)) else { return Some(true) };
        // It may have tried in vain, or have been told EDEADLK; or a later one gives the lock back.
        let taken = !self.kept[last].act.op.tries() && !self.lock_waits;
        let kept = self.kept[last + 1..].iter().all(|k| !gives_locks_back(k, p));
        (taken && kept).then_some(false)
    }
}

/// So many waits the kernel follows when it looks for a circle.
const MAX_WAITS: usize = 10;

/// The number of the owner that performs `op` in process `pid`.
pub(crate) fn owner_of(op: &Op, pid: Pid) -> u32 {
    match op.mask & DESCRIPTION {
        0 => pid + 1,
        _ => IS_DESCRIPTION | op.mask >> NAME_SHIFT,
    }
}

/// First and last byte that `op` is about.
pub(crate) fn range_of(op: &Op) -> (u64, u64) {
    (op.arg as u64, op.deadline)
}

/// Whether waiting closes a circle.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Circle {
    None,
    Closed,
    /// Through some owners and not through others.
    Unclear,
}

impl LockState {
    /// Whether `op` gets what it asks for. `None`: the state does not tell.
    pub fn grants(self, op: &Op) -> Option<bool> {
        let write = op.mask & WRITE != 0;
        match () {
            () if op.kind == Kind::FLOCK && op.mask & UNLOCK != 0 => Some(true),
            () if self.writer != 0 && self.writer != self.me => Some(false),
            // What this owner holds is given up first.
            () if op.kind == Kind::FLOCK && write && self.many => None,
            // Another owner may hold another part of the range, for writing too.
            () if !write && self.many && self.writer != 0 => None,
            () => Some(!write || !self.many && (self.reader == 0 || self.reader == self.me)),
        }
    }
}

impl World {
    fn conflicting<'a>(&'a self, owner: u32, op: &'a Op) -> impl Iterator<Item = FileLock> + 'a {
        let (first, last) = range_of(op);
        let write = op.mask & WRITE != 0;
        let conflicts = move |l: &&FileLock| {
            l.obj == op.obj && l.owner != owner && l.first <= last && first <= l.last && (write || l.write)
        };
        self.file_locks.as_slice().iter().filter(conflicts).copied()
    }

    /// The locks on the object that `op` names, in the kernel's order.
    pub fn locks_on(&self, obj: ObjId) -> impl Iterator<Item = &FileLock> {
        self.file_locks.as_slice().iter().filter(move |l| l.obj == obj)
    }

    /// The locks that keep the operation `op` of `t` waiting, in the kernel's order.
    pub fn locks_against<'a>(&'a self, t: Tid, op: &'a Op) -> impl Iterator<Item = FileLock> + 'a {
        self.conflicting(owner_of(op, self.threads[t].pid), op)
    }

    /// True if `pid` owns record locks of file `obj`, or of any with [`NONE`].
    pub fn has_record_locks(&self, pid: Pid, obj: ObjId) -> bool {
        self.file_locks.as_slice().iter().any(|l| l.owner == pid + 1 && (obj == NONE || l.obj == obj))
    }

    /// True if the open file description `name` owns locks.
    pub fn description_locks(&self, name: u32) -> bool {
        self.file_locks.as_slice().iter().any(|l| l.owner == IS_DESCRIPTION | name)
    }

    /// What an operation on locks is conditional on.
    pub(crate) fn lock_state(&self, t: Tid, op: &Op) -> LockState {
        let me = owner_of(op, self.threads[t].pid);
        let (first, last) = range_of(op);
        let mut state = LockState { me, ..LockState::default() };
        for lock in self.locks_on(op.obj).filter(|l| l.first <= last && first <= l.last) {
            let place = if lock.write { &mut state.writer } else { &mut state.reader };
            match *place {
                0 => *place = lock.owner,
                owner => state.many |= owner != lock.owner,
            }
        }
        // With both kinds, a writer beside a reader holds another part of the range.
        state.many |= state.writer != 0 && state.reader != 0 && state.writer != state.reader;
        state.circle = op.kind == Kind::RECORD_LOCK && self.circle(t, op) == Circle::Closed;
        state
    }

    pub(crate) fn record_lock_choices(&self, t: Tid, op: &Op) -> u32 {
        let free = self.locks_against(t, op).next().is_none();
        u32::from(free || op.has(TRY) || self.cancelled(t, op) || self.circle(t, op) == Circle::Closed)
    }

    pub(crate) fn record_lock_perform(&mut self, t: Tid, op: &Op) -> Applied {
        if self.locks_against(t, op).next().is_some() {
            return Applied::Done(match () {
                () if op.has(TRY) => errno::EAGAIN,
                () if self.circle(t, op) == Circle::Closed => errno::EDEADLK,
                () => errno::EINTR,
            });
        }
        let pid = self.threads[t].pid;
        self.note_locks(pid, op);
        self.set_range(pid, op, Some(op.mask & WRITE != 0))
    }

    /// Open file descriptions have names, and closing one may give locks back.
    pub fn flocks_come(&mut self) {
        self.flocks_used = true;
    }

    /// From now on the end of a process may give locks back.
    fn note_locks(&mut self, pid: Pid, op: &Op) {
        match op.mask & DESCRIPTION {
            0 => self.procs[pid].record_locks = true,
            _ => {
                self.procs[pid].description_locks = true;
                self.flocks_used = true;
            }
        }
    }

    pub(crate) fn record_unlock_perform(&mut self, t: Tid, op: &Op) -> Applied {
        self.set_range(self.threads[t].pid, op, None)
    }

    /// F_GETLK: leaves in `Thread::out` the first lock in the way: 0 (none), 1 (read), 2 (write) and above bit 8 the virtual
    /// pid of its owner or -1; first and last byte.
    pub(crate) fn record_test_perform(&mut self, t: Tid, op: &Op) -> Applied {
        let found = self.locks_against(t, op).next();
        if found.is_some_and(|one| self.locks_against(t, op).any(|other| other.owner != one.owner)) {
            self.beyond |= SEVERAL_OWNERS;
        }
        self.threads[t].out = match found {
            None => [0; 3],
            Some(l) => {
                let vpid = owner_process(l.owner).map_or(-1, |p| self.procs[p].vpid);
                [(1 + i64::from(l.write)) | (i64::from(vpid) << 8), l.first as i64, l.last as i64]
            }
        };
        Applied::Done(0)
    }

    /// What the owner holds otherwise it gives up, also where it then has to wait.
    fn changes_flock(&self, owner: u32, op: &Op) -> bool {
        let write = op.mask & WRITE != 0;
        self.locks_on(op.obj).any(|l| l.owner == owner && l.write != write)
    }

    pub(crate) fn flock_choices(&self, t: Tid, op: &Op) -> u32 {
        let owner = owner_of(op, self.threads[t].pid);
        let free = op.mask & UNLOCK != 0 || self.conflicting(owner, op).next().is_none();
        u32::from(free || op.has(TRY) || self.cancelled(t, op) || self.changes_flock(owner, op))
    }

    pub(crate) fn flock_perform(&mut self, t: Tid, op: &Op) -> Applied {
        if op.mask & CLOSE != 0 {
            return Applied::Done(0);
        }
        let owner = owner_of(op, self.threads[t].pid);
        let unlock = op.mask & UNLOCK != 0;
        let free = unlock || self.conflicting(owner, op).next().is_none();
        self.note_locks(self.threads[t].pid, op);
        if unlock || free {
            let write = (!unlock).then_some(op.mask & WRITE != 0);
            return self.set_range(self.threads[t].pid, op, write);
        }
        let changed = self.changes_flock(owner, op);
        if changed {
            self.beyond |= GAVE_UP_FLOCK;
        }
        self.set_range(self.threads[t].pid, op, None);
        match () {
            () if op.has(TRY) => Applied::Done(errno::EAGAIN),
            () if changed => {
                self.park(t, *op);
                Applied::Parked
            }
            () => Applied::Done(errno::EINTR),
        }
    }

    /// Makes the part of a file that `op` of process `by` is about what it asks for: a lock for writing or reading, or none.
    fn set_range(&mut self, by: Pid, op: &Op, write: Option<bool>) -> Applied {
        let (obj, owner, (first, last)) = (op.obj, owner_of(op, by), range_of(op));
        let (mut from, mut to) = (first, last);
        let mut place = None;
        let mut i = 0;
        while let Some(&lock) = self.file_locks.get(i) {
            let mine = lock.obj == obj && lock.owner == owner;
            let same = write == Some(lock.write);
            let near = lock.first <= last.saturating_add(1) && first <= lock.last.saturating_add(1);
            let meets = lock.first <= last && first <= lock.last;
            if !mine || !(meets || same && near) {
                i += 1;
                continue;
            }
            place = place.or(Some(i));
            self.file_locks.remove(i);
            if same {
                (from, to) = (from.min(lock.first), to.max(lock.last));
                continue;
            }
            let left = FileLock { last: first.wrapping_sub(1), ..lock };
            let right = FileLock { first: last.wrapping_add(1), ..lock };
            for (piece, exists) in [(left, lock.first < first), (right, lock.last > last)] {
                if exists {
                    if !self.file_locks.insert(i, piece) {
                        return self.full("locks of files");
                    }
                    i += 1;
                }
            }
        }
        let Some(write) = write else { return Applied::Done(0) };
        let lock = FileLock { obj, owner, first: from, last: to, write, pad: [0; 3], by };
        let locks = self.file_locks.as_slice();
        let mine = |l: &FileLock| l.obj == obj && l.owner == owner;
        let behind = locks.iter().position(|l| mine(l) && l.first > from);
        let end = locks.iter().rposition(mine).map(|at| at + 1);
        let at = behind.or(end).map(|at| at as u32).or(place).unwrap_or(self.file_locks.len);
        match self.file_locks.insert(at, lock) {
            true => Applied::Done(0),
            false => self.full("locks of files"),
        }
    }

    /// The locks of an owner are gone: those of process `pid` at its end.
    pub(crate) fn drop_process_locks(&mut self, pid: Pid) {
        self.drop_locks(pid + 1, NONE);
    }

    /// The last descriptor of the open file description `name` is closed.
    pub fn drop_description_locks(&mut self, name: u32) {
        self.drop_locks(IS_DESCRIPTION | name, NONE);
    }

    /// Process `pid` has closed a descriptor of file `obj`.
    pub fn drop_record_locks(&mut self, pid: Pid, obj: ObjId) {
        self.drop_locks(pid + 1, obj);
    }

    fn drop_locks(&mut self, owner: u32, obj: ObjId) {
        let mut i = 0;
        while let Some(&lock) = self.file_locks.get(i) {
            if lock.owner == owner && (obj == NONE || lock.obj == obj) {
                self.file_locks.remove(i);
            } else {
                i += 1;
            }
        }
    }

    /// The threads of process `pid` that wait for a record lock.
    fn record_waits(&self, pid: Pid) -> impl Iterator<Item = Tid> + '_ {
        let waits = move |&t: &Tid| {
            let thread = &self.threads[t];
            let op = &thread.pending;
            let parked = thread.state == ThreadState::PARKED && thread.pid == pid;
            parked && may_circle(op) && self.locks_against(t, op).next().is_some()
        };
        self.live.as_slice().iter().copied().filter(waits)
    }

    /// Whether the kernel would find a circle if `t` went to sleep for `op`.
    fn circle(&self, t: Tid, op: &Op) -> Circle {
        match may_circle(op) {
            true => self.circle_to(self.threads[t].pid, t, op, 0),
            false => Circle::None,
        }
    }

    fn circle_to(&self, start: Pid, t: Tid, op: &Op, depth: usize) -> Circle {
        if depth > MAX_WAITS {
            return Circle::None;
        }
        let mut answer = None;
        for lock in self.locks_against(t, op) {
            // A description waits for nothing that the kernel follows.
            let through = match owner_process(lock.owner) {
                None => Circle::None,
                Some(p) if p == start => Circle::Closed,
                Some(p) => self.circle_through(start, p, depth),
            };
            match answer {
                None => answer = Some(through),
                Some(other) if other != through => return Circle::Unclear,
                _ => {}
            }
        }
        answer.unwrap_or(Circle::None)
    }

    /// Of several threads of a process that wait, the kernel follows one.
    fn circle_through(&self, start: Pid, p: Pid, depth: usize) -> Circle {
        let mut all = self.record_waits(p).map(|w| self.circle_to(start, w, &self.threads[w].pending, depth + 1));
        let first = all.next().unwrap_or(Circle::None);
        if all.all(|other| other == first) {
            first
        } else {
            Circle::Unclear
        }
    }

    /// `t` has reached a lock operation: what EDEADLK depends on beyond this model is refused.
    #[inline]
    pub(crate) fn check_record_waits(&mut self, t: Tid) {
        if may_circle(&self.threads[t].pending) {
            self.refuse_unclear_waits(t);
        }
    }

    #[inline(never)]
    fn refuse_unclear_waits(&mut self, t: Tid) {
        let unclear = |&w: &Tid| {
            let thread = &self.threads[w];
            thread.state == ThreadState::PARKED && self.circle(w, &thread.pending) == Circle::Unclear
        };
        if self.live.as_slice().iter().any(unclear) {
            let text = b"fcntl(F_SETLKW) blocked by several processes or threads of which only some wait in turn (whether it fails \
with EDEADLK depends on the order of the kernel's lists)";
            self.finish_with(End::UNSUPPORTED, t, &[text]);
        }
    }
}

/// A wait that the kernel looks for circles of.
fn may_circle(op: &Op) -> bool {
    op.kind == Kind::RECORD_LOCK && op.mask & DESCRIPTION == 0 && !op.has(TRY)
}

impl World {
    /// A file that is locked for the first time; `number` is made another one while it is taken. `None`: no room.
    pub fn know_locked_file(&mut self, dev: u64, ino: u64, mut number: u64) -> Option<u64> {
        while self.locked_files.as_slice().iter().any(|f| f.number == number) {
            number = number.wrapping_add(1);
        }
        self.locked_files.push(KnownFile { dev, ino, number }).map(|_| number)
    }

    /// A name that no open file description has yet, from the name of thread `t`: so names do not depend on what others do.
    pub fn new_description_name(&self, t: Tid) -> u32 {
        let mut hash = self.threads[t].uid.0;
        loop {
            hash = (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(0x9e37_79b9_7f4a_7c15);
            let name = (hash >> (64 - NAME_BITS)) as u32;
            if !self.descriptions.as_slice().iter().any(|d| d.name == name) {
                return name;
            }
        }
    }

    /// An open file description takes a lock for the first time. False: no room.
    pub fn know_description(&mut self, dev: u64, ino: u64, name: u32) -> bool {
        self.descriptions.push(Tagged { dev, ino, name, pad: 0 }).is_some()
    }
}
