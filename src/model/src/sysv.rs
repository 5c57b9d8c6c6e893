//! SysV semaphore sets: semop with several operations at once, SEM_UNDO, IPC_NOWAIT, semtimedop, semctl.

use crate::object::*;
use crate::op::{self, Op};
use crate::world::{Applied, World};
use crate::{errno, ObjId, Pid, Tid};

/// SEM_UNDO of `sem_flg`.
pub const SEM_UNDO: i16 = 0x1000;
/// IPC_NOWAIT of `sem_flg`.
pub const IPC_NOWAIT: i16 = 0x800;
/// Largest value of a semaphore.
pub(crate) const SEMVMX: i32 = 32767;

/// struct sembuf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SemBuf {
    /// Number of the semaphore in the set.
    pub num: u16,
    /// What to add; 0 waits for zero.
    pub op: i16,
    /// [`SEM_UNDO`], [`IPC_NOWAIT`].
    pub flags: i16,
}

/// One semaphore of a set.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct SemVal {
    /// Its value.
    pub value: i32,
    /// Virtual pid of the last process that operated on it.
    pub vpid: i32,
}

/// What the end of a process gives back.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Undo {
    /// The process.
    pub pid: Pid,
    /// The set.
    pub obj: ObjId,
    /// Which semaphore.
    pub num: u32,
    /// What is added at exit.
    pub adjust: i32,
}

/// What a semctl does; `Op::arg` carries it in its low byte, the value of a SETVAL in the rest, and `Op::obj2` the
/// number of the semaphore.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Ctl(pub u8);

#[allow(missing_docs)]
impl Ctl {
    /// Reads, or sets several values, which the caller does itself with [`World::sysv_value`], [`World::sysv_set`].
    pub const ACCESS: Ctl = Ctl(0);
    pub const SET_VALUE: Ctl = Ctl(1);
    pub const REMOVE: Ctl = Ctl(2);
}

/// How a semop would go now.
enum Verdict {
    Go,
    Block { nowait: bool },
    Fail(i64),
}

impl World {
    /// A new set of `n` semaphores with value 0. `None`: no room.
    pub fn sysv_make(&mut self, id: u32, n: u32) -> Option<ObjId> {
        let first = self.semvals.len;
        for _ in 0..n {
            self.semvals.push(SemVal::default())?;
        }
        self.make(Key::new(SHARED, ObjKind::SYSV, id as u64), |set| {
            set.count = n;
            set.extra = first;
        })
    }

    /// The set with identifier `id`, if it exists.
    pub fn sysv_find(&self, id: u32) -> Option<ObjId> {
        self.find(Key::new(SHARED, ObjKind::SYSV, id as u64)).filter(|&o| self.objects[o].flags & DESTROYED == 0)
    }

    /// Semaphore `num` of set `obj`.
    pub fn sysv_value(&self, obj: ObjId, num: u32) -> SemVal {
        self.semvals.get(self.objects[obj].extra.wrapping_add(num)).copied().unwrap_or_default()
    }

    /// Sets semaphore `num` of set `obj`; undo adjustments for it are forgotten in all processes.
    pub fn sysv_set(&mut self, t: Tid, obj: ObjId, num: u32, value: i32) {
        let vpid = self.procs[self.threads[t].pid].vpid;
        let at = self.objects[obj].extra + num;
        self.semvals[at] = SemVal { value, vpid };
        for undo in self.undos.as_mut_slice() {
            if undo.obj == obj && undo.num == num {
                undo.adjust = 0;
            }
        }
    }

    /// Tries the operations of `t`'s semop in order, on a scratch copy of the few values it touches.
    fn sysv_try(&self, t: Tid, obj: ObjId) -> Verdict {
        let set = &self.objects[obj];
        if set.flags & DESTROYED != 0 {
            return Verdict::Fail(errno::EIDRM);
        }
        let thread = &self.threads[t];
        let ops = &thread.sembuf[..thread.n_sembuf as usize];
        if ops.iter().any(|o| o.num as u32 >= set.count) {
            return Verdict::Fail(errno::EFBIG);
        }
        for (i, o) in ops.iter().enumerate() {
            let before: i32 = ops[..i].iter().filter(|p| p.num == o.num).map(|p| p.op as i32).sum();
            let value = self.sysv_value(obj, o.num as u32).value + before;
            let blocks = if o.op == 0 { value != 0 } else { value + (o.op as i32) < 0 };
            if blocks {
                return Verdict::Block { nowait: o.flags & IPC_NOWAIT != 0 };
            }
            if value + o.op as i32 > SEMVMX {
                return Verdict::Fail(errno::ERANGE);
            }
        }
        Verdict::Go
    }

    pub(crate) fn sysv_op_choices(&self, t: Tid, op: &Op) -> u32 {
        u32::from(match self.sysv_try(t, op.obj) {
            Verdict::Block { nowait } => nowait || self.may_time_out(op),
            _ => true,
        })
    }

    pub(crate) fn sysv_op_perform(&mut self, t: Tid, op: &Op) -> Applied {
        match self.sysv_try(t, op.obj) {
            Verdict::Fail(e) => Applied::Done(e),
            Verdict::Block { .. } => Applied::Done(errno::EAGAIN),
            Verdict::Go => {
                let pid = self.threads[t].pid;
                for i in 0..self.threads[t].n_sembuf as usize {
                    let o = self.threads[t].sembuf[i];
                    let at = self.objects[op.obj].extra + o.num as u32;
                    self.semvals[at].value += o.op as i32;
                    self.semvals[at].vpid = self.procs[pid].vpid;
                    if o.flags & SEM_UNDO != 0 && !self.sysv_note_undo(pid, op.obj, o) {
                        return self.full("semaphore undo records");
                    }
                }
                Applied::Done(0)
            }
        }
    }

    fn sysv_note_undo(&mut self, pid: Pid, obj: ObjId, o: SemBuf) -> bool {
        let num = o.num as u32;
        let same = |u: &&mut Undo| u.pid == pid && u.obj == obj && u.num == num;
        if let Some(undo) = self.undos.as_mut_slice().iter_mut().find(same) {
            undo.adjust -= o.op as i32;
            return true;
        }
        self.undos.push(Undo { pid, obj, num, adjust: -(o.op as i32) }).is_some()
    }

    /// At the end of a process: the kernel adds the adjustments and keeps the values in range.
    pub(crate) fn undo_all(&mut self, pid: Pid) {
        for i in 0..self.undos.len {
            let undo = self.undos[i];
            if undo.pid == pid && undo.adjust != 0 {
                self.undos[i].adjust = 0;
                if self.objects[undo.obj].flags & DESTROYED == 0 {
                    let at = self.objects[undo.obj].extra + undo.num;
                    let vpid = self.procs[pid].vpid;
                    self.semvals[at].value = (self.semvals[at].value + undo.adjust).clamp(0, SEMVMX);
                    self.semvals[at].vpid = vpid;
                }
            }
        }
    }

    pub(crate) fn sysv_ctl_perform(&mut self, t: Tid, op: &Op) -> Applied {
        if self.objects[op.obj].flags & DESTROYED != 0 {
            return Applied::Done(errno::EIDRM);
        }
        let (command, value) = (Ctl(op.arg as u8), op.arg >> 8);
        if command == Ctl::SET_VALUE {
            if !(0..=SEMVMX as i64).contains(&value) {
                return Applied::Done(errno::ERANGE);
            }
            self.sysv_set(t, op.obj, op.obj2, value as i32);
        } else if command == Ctl::REMOVE {
            self.objects[op.obj].flags |= DESTROYED;
            for name in self.names.as_mut_slice() {
                if name.obj == op.obj {
                    name.obj = NONE;
                }
            }
        }
        Applied::Done(0)
    }

    /// Threads that wait for semaphore `num` of `obj` to grow (`zero` = false) or to become zero.
    pub fn sysv_waiting(&self, obj: ObjId, num: u32, zero: bool) -> u32 {
        let waits = |&&t: &&Tid| {
            let thread = &self.threads[t];
            let pending = thread.pending.kind == op::Kind::SYSV_OP && thread.pending.obj == obj;
            let ops = &thread.sembuf[..thread.n_sembuf as usize];
            pending
                && self.sysv_op_choices(t, &thread.pending) == 0
                && ops.iter().any(|o| o.num as u32 == num && if zero { o.op == 0 } else { o.op < 0 })
        };
        self.live.as_slice().iter().filter(waits).count() as u32
    }
}

/// Flag of a semop: one of its operations has [`IPC_NOWAIT`].
pub const NOWAIT: u8 = crate::op::VARIANT;
/// Flag of a semop of several operations, see [`crate::op::pack_semops`].
pub const SEVERAL: u8 = crate::op::SEVERAL;
