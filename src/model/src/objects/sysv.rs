//! SysV semaphore sets: semop with several operations at once, SEM_UNDO, IPC_NOWAIT, semtimedop, semctl.

use crate::base::errno;
use crate::base::ids::{ObjId, Pid, Tid, NONE};
use crate::base::op::{Kind, Op};
use crate::state::object::{Key, ObjKind, DESTROYED, SHARED};
use crate::state::sem::{Ctl, SemBuf, SemVal, Undo, IPC_NOWAIT, SEMVMX, SEM_UNDO};
use crate::state::world::{Applied, World};

/// Up to three operations of a semop in one number: 16 bits each (semaphore, amount), their count on top. `None` where
/// they do not fit.
pub fn pack_semops(ops: &[crate::SemBuf]) -> Option<i64> {
    let mut packed = (ops.len() as u64) << 48;
    for (i, op) in ops.iter().enumerate() {
        let (num, amount) = (u8::try_from(op.num).ok()?, i8::try_from(op.op).ok()?);
        packed |= u64::from(u16::from_le_bytes([num, amount as u8])) << (16 * i as u32).min(48);
    }
    (ops.len() <= 3).then_some(packed as i64)
}

/// The (semaphore, amount) pairs of [`pack_semops`].
pub fn packed_semops(packed: i64) -> impl Iterator<Item = (u8, i8)> {
    let n = (packed as u64 >> 48).min(3);
    (0..n).map(move |i| {
        let [num, amount] = ((packed as u64 >> (16 * i)) as u16).to_le_bytes();
        (num, amount as i8)
    })
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
            let pending = thread.pending.kind == Kind::SYSV_OP && thread.pending.obj == obj;
            let ops = &thread.sembuf[..thread.n_sembuf as usize];
            pending
                && self.sysv_op_choices(t, &thread.pending) == 0
                && ops.iter().any(|o| o.num as u32 == num && if zero { o.op == 0 } else { o.op < 0 })
        };
        self.live.as_slice().iter().filter(waits).count() as u32
    }
}
