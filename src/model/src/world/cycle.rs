//! Who waits for whom among locks: a circle is a deadlock as soon as it closes, even if other threads still run. Searches
//! for which what the others do after it matters let them go on ([`World::past_cycles`]).
//!
//! Where a thread that is not in the circle could let one of it go on, it is a deadlock only when nothing else can run
//! ([`World::can_be_broken`]).

use crate::base::{Kind, ObjId, Op, Tid, CANCEL_POINT, NONE, TIMED, TRY};
use crate::objects::row::Role;
use crate::state::{
    End, ObjKind, ThreadState, World, CIRCLE_INHERITED, INHERITS, MAX_CYCLE, MUTEX_NORMAL, MUTEX_TYPE, ROBUST,
};

/// Signals 32 and 33, which glibc handles itself: to cancel threads, to change the user of all of them.
const OF_GLIBC: u64 = 3 << 31;

impl World {
    /// The lock that `t` waits for without an end in sight: blocked, not timed, not cancellable.
    fn waits_for_lock(&self, t: Tid) -> Option<ObjId> {
        let thread = self.threads.get(t)?;
        let op: &Op = &thread.pending;
        let lasting = !op.has(TRY) && (!op.has(TIMED) || thread.woken);
        let lock = match op.kind.row().role {
            Role::Acquires(_) | Role::AwaitsOwner if lasting => op.obj,
            Role::Reacquires if thread.woken => op.obj2,
            _ => return None,
        };
        (thread.state == ThreadState::PARKED && self.choices(t) == 0).then_some(lock)
    }

    /// The thread that `t` waits to see the end of.
    fn joins(&self, t: Tid) -> Option<Tid> {
        let thread = self.threads.get(t)?;
        let op = &thread.pending;
        let lasting = op.kind == Kind::JOIN && !op.has(TRY | TIMED);
        (lasting && thread.state == ThreadState::PARKED && self.choices(t) == 0).then_some(op.obj)
    }

    /// Calls `f` with each thread that `t` waits for.
    fn each_awaited(&self, t: Tid, mut f: impl FnMut(Tid) -> bool) -> bool {
        if let Some(target) = self.joins(t) {
            return f(target);
        }
        let Some(lock) = self.waits_for_lock(t) else { return false };
        let object = &self.objects[lock];
        if object.owner != NONE {
            return f(object.owner);
        }
        if object.key.kind == ObjKind::RWLOCK && self.threads[t].pending.kind != Kind::RW_RDLOCK {
            return self.read_holds(lock).any(|(reader, _)| f(reader));
        }
        false
    }

    /// Ends the execution if `t`, which has just begun to wait, closes a circle.
    #[inline]
    pub(crate) fn check_cycle(&mut self, t: Tid) {
        if may_close(self.threads[t].pending.kind) && self.choices(t) == 0 && self.end == End::RUNNING {
            self.check_wait(t);
        }
    }

    #[inline(never)]
    fn check_wait(&mut self, t: Tid) {
        if self.waits_for_lock(t).is_none() && self.joins(t).is_none() {
            return;
        }
        let Some((path, n)) = self.circle_of(t) else { return };
        if self.can_be_broken(&path[..n]) {
            return;
        }
        if self.n_cycle > 0 {
            if let Some(place) = self.later_cycles.iter_mut().find(|at| **at == 0) {
                *place = self.moves;
            }
            return;
        }
        self.note_circle(path, n);
        if !self.past_cycles {
            self.end_in_cycle();
        }
    }

    /// `t` has just begun to wait: what glibc and the kernel make of a circle of mutexes with priority inheritance. The kernel refuses who
    /// closes it (rt_mutex_adjust_prio_chain); glibc then waits for ever, or until the deadline of that wait, and where the type of the
    /// mutex would have it refuse more, it did not expect that (nptl/pthread_mutex_lock.c, pthread_mutex_timedlock.c).
    #[inline]
    pub(crate) fn check_inherited(&mut self, t: Tid) {
        if self.any_inherits && self.end == End::RUNNING {
            self.follow_inherited(t);
        }
    }

    #[inline(never)]
    fn follow_inherited(&mut self, t: Tid) {
        let (mut path, mut n, mut at) = ([NONE; MAX_CYCLE], 0, t);
        let (mut timed, mut checked) = (0, NONE);
        while let Some(lock) = self.waits_inheriting(at).filter(|_| n < MAX_CYCLE) {
            path[n] = at;
            n += 1;
            timed += usize::from(self.threads[at].pending.has(TIMED) && !self.threads[at].woken);
            if self.objects[lock].flags & MUTEX_TYPE != MUTEX_NORMAL {
                checked = at;
            }
            at = self.objects[lock].owner;
            if at != t {
                continue;
            }
            if timed > 0 || self.can_be_broken(&path[..n]) {
                // If all have a deadline, all give up.
                if timed < n || checked != NONE {
                    self.never_comes(CIRCLE_INHERITED);
                }
            } else if checked != NONE {
                let what = b"glibc: assertion `e != EDEADLK || (kind != PTHREAD_MUTEX_ERRORCHECK_NP && kind != \
                    PTHREAD_MUTEX_RECURSIVE_NP)' failed: threads wait for each other in a circle of mutexes with priority inheritance";
                self.finish_with(End::ASSERT, checked, &[what]);
            }
            return;
        }
    }

    /// The mutex with priority inheritance that `t` waits for, which another thread has.
    fn waits_inheriting(&self, t: Tid) -> Option<ObjId> {
        let thread = self.threads.get(t)?;
        let lock = match thread.pending.kind.row().role {
            Role::Acquires(_) if !thread.pending.has(TRY) => thread.pending.obj,
            Role::Reacquires if thread.woken => thread.pending.obj2,
            _ => return None,
        };
        let mutex = self.objects.get(lock)?;
        let inherits = mutex.key.kind == ObjKind::MUTEX && mutex.flags & INHERITS != 0;
        (thread.state == ThreadState::PARKED && inherits && mutex.owner != NONE && mutex.owner != t).then_some(lock)
    }

    /// Nothing can run any more: threads may wait in a circle that could have been broken before.
    pub(crate) fn note_cycle_left(&mut self) {
        let found = self.live.as_slice().iter().find_map(|&t| self.circle_of(t));
        if let Some((path, n)) = found {
            self.note_circle(path, n);
        }
    }

    /// The threads of a circle that `t` waits in, and how many.
    fn circle_of(&self, t: Tid) -> Option<([Tid; MAX_CYCLE], usize)> {
        let mut path = [NONE; MAX_CYCLE];
        path[0] = t;
        let n = self.follow(t, &mut path, 1)?;
        // One circle has one description, whoever closes it.
        let first = (0..n).min_by_key(|&i| self.threads[path[i]].uid).unwrap_or(0);
        path[..n].rotate_left(first);
        Some((path, n))
    }

    fn note_circle(&mut self, path: [Tid; MAX_CYCLE], n: usize) {
        self.cycle = path;
        self.n_cycle = n as u32;
        self.cycle_at = self.moves;
    }

    /// A thread that is not in `circle` could change it: by a signal that one of it handles, by cancelling a join, by killing another
    /// process, by the end of its own that owns a robust mutex which another process waits for, by unlocking what it does not own,
    /// where that is allowed.
    fn can_be_broken(&self, circle: &[Tid]) -> bool {
        if circle.iter().any(|&t| self.procs[self.threads[t].pid].dying != 0) {
            return true;
        }
        let others = || self.live.as_slice().iter().filter(|u| !circle.contains(u)).map(|&u| &self.threads[u]);
        if others().next().is_none() {
            return false;
        }
        circle.iter().any(|&t| {
            let thread = &self.threads[t];
            let cancelled = thread.pending.has(CANCEL_POINT) && others().any(|u| u.pid == thread.pid);
            let killed = others().any(|u| u.pid != thread.pid);
            let handles = self.procs[thread.pid].handled & !thread.sigmask & !OF_GLIBC != 0;
            let inherits = self.waits_for_lock(t).is_some_and(|lock| {
                let object = &self.objects[lock];
                let elsewhere = object.owner != NONE && self.threads[object.owner].pid != thread.pid;
                object.key.kind == ObjKind::MUTEX && object.flags & ROBUST != 0 && elsewhere
            });
            cancelled || killed || handles || inherits || self.allow_misuse
        })
    }

    /// Ends the execution for the circle that was noted.
    pub(crate) fn end_in_cycle(&mut self) {
        let t = self.cycle[0];
        let lock = self.waits_for_lock(t).unwrap_or(NONE);
        self.finish(End::CYCLE, t, lock, 0);
    }

    /// Depth-first search for a way back to `path[0]`; circles longer than the path are left to the search for
    /// states in which nothing is enabled.
    fn follow(&self, t: Tid, path: &mut [Tid; MAX_CYCLE], n: usize) -> Option<usize> {
        let mut found = None;
        self.each_awaited(t, |next| {
            if next == path[0] {
                found = Some(n);
            } else if n < MAX_CYCLE && !path[..n].contains(&next) {
                path[n] = next;
                found = self.follow(next, path, n + 1);
            }
            found.is_some()
        });
        found
    }
}

/// Its thread waits, where it waits, for a lock or the end of a thread.
#[inline]
pub(crate) fn may_close(kind: Kind) -> bool {
    kind == Kind::JOIN || matches!(kind.row().role, Role::Acquires(_) | Role::AwaitsOwner | Role::Reacquires)
}
