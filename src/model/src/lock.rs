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

use crate::object::*;
use crate::op::{self, Kind, Op};
use crate::thread::ThreadState;
use crate::world::{Applied, End, World, GAVE_UP_FLOCK, SEVERAL_OWNERS};
use crate::{errno, Act, ObjId, Pid, Tid};

/// Last byte of the largest file.
pub const LAST: u64 = i64::MAX as u64;
/// In [`Op::mask`]: for writing (exclusive).
pub const WRITE: u32 = 1;
/// In [`Op::mask`] of a flock: gives the lock back.
pub const UNLOCK: u32 = 2;
/// In [`Op::mask`] of a flock that stands for the close of a descriptor: whether it was the last one is seen by the caller, who
/// then calls [`World::drop_description_locks`].
pub const CLOSE: u32 = 8;
/// In [`Op::mask`]: the owner is the open file description with the name in the bits above.
pub const DESCRIPTION: u32 = 4;
const NAME_SHIFT: u32 = 8;
/// Bits of the name of a description.
pub const NAME_BITS: u32 = 20;
/// Flag of a record lock operation by a process that has had several threads.
pub const THREADED: u8 = op::VARIANT;
/// Set in the number of an owner that is a description; else it is 1 + a process.
const IS_DESCRIPTION: u32 = 1 << NAME_BITS;
/// So many waits the kernel follows when it looks for a circle.
const MAX_WAITS: usize = 10;

/// A lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct FileLock {
    /// The file.
    pub obj: ObjId,
    /// Number of the owner, see [`owner_process`].
    pub owner: u32,
    /// First byte.
    pub first: u64,
    /// Last byte.
    pub last: u64,
    /// For writing.
    pub write: bool,
    pad: [u8; 3],
    /// The process that took it.
    pub by: Pid,
}

/// A file that has been locked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct KnownFile {
    /// Device.
    pub dev: u64,
    /// Inode.
    pub ino: u64,
    /// Address in the keys of its objects.
    pub number: u64,
}

/// An open file description that has had locks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Tagged {
    /// Device of its file.
    pub dev: u64,
    /// Inode of its file.
    pub ino: u64,
    /// Its name.
    pub name: u32,
    /// Zero.
    pub pad: u32,
}

/// The mask of an operation of an open file description.
pub const fn by_description(name: u32) -> u32 {
    DESCRIPTION | (name & (IS_DESCRIPTION - 1)) << NAME_SHIFT
}

/// The process that is the owner with this number; `None`: it is an open file description.
pub fn owner_process(owner: u32) -> Option<Pid> {
    (owner & IS_DESCRIPTION == 0).then(|| owner - 1)
}

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

/// Whether two operations on one object are about the same bytes. F_GETLK tells how far the lock reaches that it finds,
/// which those next to it change.
pub(crate) fn overlap(a: &Op, b: &Op) -> bool {
    let test = a.kind == Kind::RECORD_TEST || b.kind == Kind::RECORD_TEST;
    let (a, b) = (range_of(a), range_of(b));
    test || a.0 <= b.1 && b.0 <= a.1
}

/// True for operations on locks of files.
pub fn is_lock(kind: Kind) -> bool {
    matches!(kind, Kind::RECORD_LOCK | Kind::RECORD_UNLOCK | Kind::RECORD_TEST | Kind::FLOCK)
}

/// [`crate::Act::state`] of an operation on locks of a file: who holds something of its range.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LockState {
    /// The owner of a lock for writing, or 0.
    pub writer: u32,
    /// The first owner of a lock for reading, or 0.
    pub reader: u32,
    /// There are more owners than these.
    pub many: bool,
    /// To wait would close a circle.
    pub circle: bool,
    /// The owner that asks.
    pub me: u32,
}

impl LockState {
    /// As a number.
    pub fn pack(self) -> i64 {
        const OWNER: u64 = 0x1f_ffff;
        let bits = u64::from(self.writer) & OWNER
            | (u64::from(self.reader) & OWNER) << 21
            | u64::from(self.many) << 42
            | u64::from(self.circle) << 43;
        bits as i64
    }

    /// From [`crate::Act::state`] of an operation by owner `me`.
    pub fn of(state: i64, me: u32) -> LockState {
        const OWNER: i64 = 0x1f_ffff;
        LockState {
            writer: (state & OWNER) as u32,
            reader: (state >> 21 & OWNER) as u32,
            many: state >> 42 & 1 != 0,
            circle: state >> 43 & 1 != 0,
            me,
        }
    }

    /// The same with other numbers of processes.
    pub fn renamed(self, process: impl Fn(Pid) -> Pid) -> LockState {
        let owner = |o: u32| if o == 0 || o & IS_DESCRIPTION != 0 { o } else { process(o - 1) + 1 };
        LockState { writer: owner(self.writer), reader: owner(self.reader), ..self }
    }

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

/// Whether waiting closes a circle.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Circle {
    None,
    Closed,
    /// Through some owners and not through others.
    Unclear,
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
        u32::from(free || op.has(op::TRY) || self.cancelled(t, op) || self.circle(t, op) == Circle::Closed)
    }

    pub(crate) fn record_lock_perform(&mut self, t: Tid, op: &Op) -> Applied {
        if self.locks_against(t, op).next().is_some() {
            return Applied::Done(match () {
                () if op.has(op::TRY) => errno::EAGAIN,
                () if self.circle(t, op) == Circle::Closed => errno::EDEADLK,
                () => errno::EINTR,
            });
        }
        let pid = self.threads[t].pid;
        self.note_locks(pid, op);
        self.set_range(pid, op, Some(op.mask & WRITE != 0))
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
        u32::from(free || op.has(op::TRY) || self.cancelled(t, op) || self.changes_flock(owner, op))
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
            () if op.has(op::TRY) => Applied::Done(errno::EAGAIN),
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
    pub(crate) fn check_record_waits(&mut self, t: Tid) {
        if !may_circle(&self.threads[t].pending) {
            return;
        }
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
    op.kind == Kind::RECORD_LOCK && op.mask & DESCRIPTION == 0 && !op.has(op::TRY)
}

/// `act` would be told EDEADLK.
pub fn fails_in_circle(act: &Act) -> bool {
    act.op.kind == Kind::RECORD_LOCK && LockState::of(act.state, 0).circle
}

/// `a` may make or break a circle that `b` waits in, whatever file it is about.
pub(crate) fn moves_circles(a: &Op, b: &Op) -> bool {
    matches!(a.kind, Kind::RECORD_LOCK | Kind::RECORD_UNLOCK) && may_circle(b)
}

/// The same question for every `b`: what it is enough to ask of each alone.
pub(crate) fn moves_or_waits(op: &Op) -> [bool; 2] {
    [is_lock(op.kind) && op.kind != Kind::FLOCK, may_circle(op)]
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
