//! SysV semaphore sets: semop with several operations at once, SEM_UNDO, IPC_NOWAIT, semtimedop, semctl.

use super::row::*;
use crate::base::{PARTIAL, SEVERAL, TELLS_LAST, TELLS_WAITS};
use crate::state::{
    Ctl, Key, ObjKind, SemBuf, SemSet, SemVal, ThreadState, Undo, DESTROYED, IPC_NOWAIT, SEMVMX, SEM_UNDO, SHARED,
};

kinds! {
    /// semop/semtimedop on a SysV semaphore set.
    SYSV_OP = 56, "semop" {
        operands: Operands::Objects, enabled: blocks(World::sysv_op_choices, |q| q.semop()),
        perform: World::sysv_op_perform,
        records: Records::number(World::sysv_state), cells: |act, _, cells| {
            let simple = act.op.flags & (VARIANT | SEVERAL | TELLS_LAST) == 0;
            // Where the others wait that are looked at depends on which semaphores are 0 then.
            let on = if act.op.has(TELLS_WAITS) { u32::MAX } else { act.op.mask };
            let how = How::Semop { on, amount: if simple { act.op.arg } else { 0 }, value: act.state };
            cells.touch_all(act, how);
        }, follows: NOBODY, blocks: semop_blocks,
        role: Role::None, channels: Channels::None, signals: Signals { fails_by_stop: FailsByStop::Always, ..Signals::FAILS },
        polls: Polls::Errors, alone: Alone::Visible, idle: Idle { peer: World::waits_by_name, ..Idle::BUSY }, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::Three("semop", "semop", "semtimedop"), arguments: semop_arguments,
            outcome: Outcome::Nothing, waits: Some(semop_waits), identity: |world, t, op, add| {
            object_identity(world, op.obj, add);
            semops_of(&world.threads[t]).iter().flat_map(|o| [u64::from(o.num), i64::from(o.op) as u64]).for_each(add);
        } },
    }
    /// semctl on a SysV semaphore set.
    SYSV_CTL = 57, "semctl" {
        operands: Operands::One,
        enabled: blocks(|w, t, op| match Ctl(op.arg as u8) {
            _ if w.sleeper_goes_first(t, op) => 0,
            Ctl::REMOVE => 1,
            _ => w.ways_of_removed(t, op.obj),
        }, |q| q.unless_someone_sleeps()),
        perform: World::sysv_ctl_perform,
        records: Records::number(|w, _, op| w.sysv_value(op.obj, op.obj2).value as i64), cells: |act, _, cells| {
            touch_removal(act, cells);
            cells.touch_all(act, How::Writes);
        }, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { waits: Some(|_, _, _, words| say![words, "one that sleeps there and can go on"]), ..Shown::passes(Call::Row, |op, _, words| match Ctl(op.arg as u8) {
            Ctl::SET_VALUE => say![words, Thing::Object(op.obj), ", [", op.obj2, "], SETVAL ", op.arg >> 8],
            Ctl::REMOVE => say![words, Thing::Object(op.obj), ", IPC_RMID"],
            _ => say![words, Thing::Object(op.obj)],
        }) },
    }
}

impl Part for SemBuf {
    fn say(&self, words: &mut dyn Words) {
        match self.op {
            0 => say![words, "[", self.num, "] =0"],
            op => say![words, format_args!("[{}] {op:+}", self.num)],
        }
    }
}

/// All that its semop does is to wait for zeros.
fn waits_for_zeros(thread: &Thread) -> bool {
    semops_of(thread).iter().all(|o| o.op == 0)
}

/// The operations of the semop that a thread is parked at.
fn semops_of(thread: &Thread) -> &[SemBuf] {
    &thread.sembuf[..(thread.n_sembuf as usize).min(thread.sembuf.len())]
}

/// `[2] -1, [3] -1`; where the operands are not known any more, the semaphores (modulo 32), and the amount if there is one.
fn semop_arguments(op: &Op, thread: Option<&Thread>, words: &mut dyn Words) {
    say![words, Thing::Object(op.obj), ", "];
    let known = thread.map_or(&[][..], semops_of);
    if !known.is_empty() {
        return list(known.iter().copied(), ", ", usize::MAX, words);
    }
    if op.has(SEVERAL) && op.arg != 0 {
        let one = |(num, amount): (u8, i8)| SemBuf { num: num.into(), op: amount.into(), flags: 0 };
        return list(packed_semops(op.arg).map(one), ", ", usize::MAX, words);
    }
    for (i, bit) in (0..32).filter(|bit| op.mask >> bit & 1 == 1).enumerate() {
        say![words, if i == 0 { "[" } else { " [" }, bit, "]"];
    }
    if op.arg != 0 {
        say![words, format_args!(" {:+}", op.arg)];
    }
}

/// Says which semaphores of the set keep a semop waiting.
fn semop_waits(world: &World, t: Tid, op: &Op, words: &mut dyn Words) {
    let set = op.obj;
    for o in world.objects.get(set).map_or(&[][..], |_| semops_of(&world.threads[t])) {
        let SemVal { value, vpid, .. } = world.sysv_value(set, o.num.into());
        match o.op {
            0 if value != 0 => say![words, "[", o.num, "] of ", Thing::Object(set), " to become 0 (it is ", value],
            op if value + i32::from(op) < 0 => {
                say![words, "[", o.num, "] of ", Thing::Object(set), " to reach ", -i32::from(op), " (it is ", value];
            }
            _ => continue,
        }
        if vpid != 0 {
            say![words, ", last changed by process ", Numbered(world, vpid)];
        }
        say![words, ")"];
        words.next();
    }
}

/// A set or queue that is removed frees its key.
pub(crate) fn touch_removal(act: &Act, cells: &mut Footprint) {
    if Ctl(act.op.arg as u8) == Ctl::REMOVE {
        cells.touch(Cell::Removals, How::Changes);
    }
}

fn semop_blocks(e: &Act, p: &Act) -> bool {
    match (e.op.has(SEVERAL), p.op.has(SEVERAL)) {
        _ if e.op.has(TELLS_LAST) => true,
        (true, _) => true,
        (false, false) => (e.op.arg > 0) != (p.op.arg < 0),
        (false, true) => {
            let num = e.op.mask.trailing_zeros();
            e.op.arg <= 0 || packed_semops(p.op.arg).any(|(n, amount)| amount == 0 && u32::from(n) % 32 == num)
        }
    }
}

impl Question<'_> {
    /// It never waits, but for one that sleeps and is let go: those are not recorded.
    pub(crate) fn unless_someone_sleeps(&self) -> Answer {
        if self.act.op.has(TELLS_LAST) {
            Answer::Unknown
        } else {
            Answer::Yes
        }
    }

    /// What the dropped ones added to its semaphores is undone, the last first.
    fn semop(&self) -> Answer {
        let p = self.act;
        if p.op.has(TELLS_LAST) {
            return Answer::Unknown;
        }
        let Some(mut values) = Values::of(p) else { return Answer::Unknown };
        for d in self.dropped.iter().rev() {
            let x = d.act;
            let on = |kind: Kind| x.op.kind == kind && x.op.names(p.op.obj);
            if let Some((before, after)) = d.found {
                values.subtract(before, after);
            } else if x.op.kind == Kind::EXIT {
                return Answer::Unknown;
            } else if on(Kind::SYSV_CTL) {
                if x.op.arg as u8 != Ctl::SET_VALUE.0 {
                    return Answer::Unknown;
                }
                values.set(x.op.obj2 % 32, x.state);
            } else if on(Kind::SYSV_OP) && x.op.mask & p.op.mask != 0 {
                let Some(theirs) = Values::of(x) else { return Answer::Unknown };
                if theirs.goes() {
                    theirs.ops().for_each(|(num, amount)| values.add(num, -amount));
                }
            }
        }
        Answer::from(values.goes())
    }
}

/// The operations of a semop and the values they found, at most four.
struct Values {
    op: Op,
    values: [i64; 4],
}

impl Values {
    /// `None`: they do not fit in a record.
    fn of(a: &Act) -> Option<Values> {
        let too_many = a.op.has(SEVERAL) && a.op.arg == 0;
        (!too_many).then(|| Values { op: a.op, values: Values::unpacked(&a.op, a.state) })
    }

    /// (semaphore, amount); a single operation is on the semaphore of its mask.
    fn ops(&self) -> impl Iterator<Item = (u32, i64)> + '_ {
        let single = (!self.op.has(SEVERAL)).then(|| (self.op.mask.trailing_zeros(), self.op.arg));
        let several = if self.op.has(SEVERAL) { self.op.arg } else { 0 };
        single.into_iter().chain(packed_semops(several).map(|(num, amount)| (u32::from(num) % 32, i64::from(amount))))
    }

    /// The values found of semaphore `num`, one for each operation on it.
    fn of_semaphore(&mut self, num: u32) -> impl Iterator<Item = &mut i64> {
        let mut nums = [NONE; 4];
        self.ops().zip(nums.iter_mut()).for_each(|((n, _), place)| *place = n);
        self.values.iter_mut().zip(nums).filter(move |(_, n)| *n == num).map(|(value, _)| value)
    }

    fn add(&mut self, num: u32, amount: i64) {
        self.of_semaphore(num).for_each(|value| *value += amount);
    }

    fn set(&mut self, num: u32, found: i64) {
        self.of_semaphore(num).for_each(|value| *value = found);
    }

    /// Takes away what was added between two recorded states of the same operation.
    fn subtract(&mut self, before: i64, after: i64) {
        let [before, after] = [before, after].map(|state| Values::unpacked(&self.op, state));
        for ((value, b), a) in self.values.iter_mut().zip(before).zip(after) {
            *value -= a - b;
        }
    }

    fn unpacked(op: &Op, state: i64) -> [i64; 4] {
        match op.has(SEVERAL) {
            true => [0, 16, 32, 48].map(|shift| state >> shift & 0xffff),
            false => [state, 0, 0, 0],
        }
    }

    /// The semop would be performed, or fail for another reason than that it would have to wait.
    fn goes(&self) -> bool {
        let mut before: [(u32, i64); 4] = [(NONE, 0); 4];
        for (i, (num, amount)) in self.ops().enumerate().take(4) {
            let so_far: i64 = before.iter().filter(|b| b.0 == num).map(|b| b.1).sum();
            let value = self.values[i] + so_far;
            if amount == 0 && value != 0 || value + amount < 0 {
                return false;
            }
            if value + amount > i64::from(SEMVMX) {
                return true;
            }
            before[i] = (num, amount);
        }
        true
    }
}

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
    /// At the operation number `at` of it.
    Block {
        nowait: bool,
        at: usize,
    },
    Removed,
    Fail(i64),
}

impl World {
    pub(crate) fn sysv_state(&self, t: Tid, op: &Op) -> i64 {
        let thread = &self.threads[t];
        let ops = &thread.sembuf[..(thread.n_sembuf as usize).min(4)];
        if let [one] = ops {
            return self.sysv_value(op.obj, one.num as u32).value as i64;
        }
        let value = |num: u16| self.sysv_value(op.obj, num as u32).value as u64 & 0xffff;
        ops.iter().rev().fold(0u64, |packed, o| packed << 16 | value(o.num)) as i64
    }

    /// A new set of `n` semaphores with value 0. `None`: no room.
    pub fn sysv_make(&mut self, id: u32, n: u32) -> Option<ObjId> {
        let first = self.semvals.len;
        for _ in 0..n {
            self.semvals.push(SemVal::default())?;
        }
        let record = self.semsets.push(SemSet { dates: [0, self.now.max(1)], ..SemSet::default() })?;
        self.make(Key::new(SHARED, ObjKind::SYSV, id as u64), |set| {
            set.count = n;
            set.extra = first;
            set.value = record as i32;
        })
    }

    /// What is told of a set.
    pub fn sysv_set_record(&self, obj: ObjId) -> SemSet {
        self.semsets[self.objects[obj].value as u32]
    }

    /// A set that was just made has that key and these permissions.
    pub fn sysv_name(&mut self, obj: ObjId, key: i32, mode: u32) {
        let record = self.objects[obj].value as u32;
        (self.semsets[record].key, self.semsets[record].mode) = (key, mode);
    }

    /// IPC_SET.
    pub fn sysv_set_mode(&mut self, obj: ObjId, mode: u32) {
        self.semsets[self.objects[obj].value as u32].mode = mode;
        self.sysv_date(obj, 1);
    }

    /// Notes a semop (0), or that values or attributes were set (1).
    fn sysv_date(&mut self, obj: ObjId, which: usize) {
        self.semsets[self.objects[obj].value as u32].dates[which] = self.now.max(1);
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
        self.sysv_date(obj, 1);
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
            return Verdict::Removed;
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
                return Verdict::Block { nowait: o.flags & IPC_NOWAIT != 0, at: i };
            }
            if value + o.op as i32 > SEMVMX {
                return Verdict::Fail(errno::ERANGE);
            }
        }
        Verdict::Go
    }

    pub(crate) fn sysv_op_choices(&self, t: Tid, op: &Op) -> u32 {
        if self.sleeper_goes_first(t, op) {
            return 0;
        }
        match self.sysv_try(t, op.obj) {
            Verdict::Block { nowait, .. } => u32::from(nowait || op.has(TRY) || self.may_time_out(op)),
            Verdict::Removed if op.has(PARTIAL) => 1,
            Verdict::Removed => self.ways_of_removed(t, op.obj),
            _ => 1,
        }
    }

    pub(crate) fn sysv_op_perform(&mut self, t: Tid, op: &Op, value: u32) -> Applied {
        let verdict = self.sysv_try(t, op.obj);
        if !matches!(verdict, Verdict::Removed) && !self.sysv_begin_undo(t, op.obj) {
            return self.full("semaphore undo records");
        }
        match verdict {
            Verdict::Removed => self.finds_removed(t, op, value),
            Verdict::Fail(e) => Applied::Done(e),
            Verdict::Block { .. } => Applied::Done(errno::EAGAIN),
            Verdict::Go => {
                self.sysv_date(op.obj, 0);
                let pid = self.threads[t].pid;
                for i in 0..self.threads[t].n_sembuf as usize {
                    let o = self.threads[t].sembuf[i];
                    let at = self.objects[op.obj].extra + o.num as u32;
                    self.semvals[at].value += o.op as i32;
                    self.semvals[at].vpid = self.procs[pid].vpid;
                    if let Some(undo) = self.undo_of(pid, op.obj, o) {
                        undo.adjust -= o.op as i32;
                    }
                }
                let ops = semops_of(&self.threads[t]);
                let zero = |o: &SemBuf| self.sysv_value(op.obj, o.num.into()).value == 0;
                if ops.iter().any(|o| o.op != 0) && ops.iter().any(zero) {
                    self.sysv_look_again(op.obj);
                }
                Applied::Done(0)
            }
        }
    }

    /// `t` begins to wait with its semop for set `obj`: at which of its operations.
    pub(crate) fn sysv_sleeps(&mut self, t: Tid, obj: ObjId) {
        if let Verdict::Block { at, .. } = self.sysv_try(t, obj) {
            self.threads[t].sem_at = at as u32;
        }
    }

    /// Semaphores of set `obj` have got values of their own: if one of them is 0, those that wait for zeros are looked at.
    pub fn sysv_settled(&mut self, obj: ObjId) {
        if (0..self.objects[obj].count).any(|num| self.sysv_value(obj, num).value == 0) {
            self.sysv_look_again(obj);
        }
    }

    /// A semaphore of set `obj` has become 0, or stays so: those that wait for nothing but zeros are looked at, whatever they wait for; at
    /// other times they are not (ipc/sem.c, do_smart_wakeup_zero).
    fn sysv_look_again(&mut self, obj: ObjId) {
        for at in 0..self.live.len {
            let t = self.live[at];
            if self.sleeps_at_set(t, obj) && waits_for_zeros(&self.threads[t]) {
                self.sysv_sleeps(t, obj);
            }
        }
    }

    /// `t` waits in a semop on set `obj`, as has been told.
    fn sleeps_at_set(&self, t: Tid, obj: ObjId) -> bool {
        let Thread { pending: op, state, .. } = &self.threads[t];
        *state == ThreadState::PARKED && op.kind == Kind::SYSV_OP && op.obj == obj && op.has(PARTIAL)
    }

    /// The record for one operation of a semop, if it asks for one.
    fn undo_of(&mut self, pid: Pid, obj: ObjId, o: SemBuf) -> Option<&mut Undo> {
        let same = |u: &&mut Undo| u.pid == pid && u.obj == obj && u.num == u32::from(o.num);
        self.undos.as_mut_slice().iter_mut().filter(|_| o.flags & SEM_UNDO != 0).find(same)
    }

    /// A semop with SEM_UNDO makes a record before it is tried, so that one that fails does so too (ipc/sem.c, do_semtimedop). False: no
    /// room.
    fn sysv_begin_undo(&mut self, t: Tid, obj: ObjId) -> bool {
        let pid = self.threads[t].pid;
        (0..self.threads[t].n_sembuf as usize).all(|i| {
            let o = self.threads[t].sembuf[i];
            o.flags & SEM_UNDO == 0
                || self.undo_of(pid, obj, o).is_some()
                || self.undos.push(Undo { pid, obj, num: o.num.into(), adjust: 0 }).is_some()
        })
    }

    /// At the end of a process: the kernel adds the adjustments and keeps the values in range. That counts as a semop on each set of
    /// which there is a record, whatever it says (exit_sem, do_smart_update).
    pub(crate) fn undo_all(&mut self, pid: Pid) {
        while let Some(first) = self.undos.as_slice().iter().find(|undo| undo.pid == pid) {
            let set = first.obj;
            self.undo_set(pid, set);
            if self.objects[set].flags & DESTROYED == 0 {
                self.sysv_settled(set);
            }
        }
    }

    fn undo_set(&mut self, pid: Pid, set: ObjId) {
        for i in 0..self.undos.len {
            let undo = self.undos[i];
            if undo.pid != pid || undo.obj != set {
                continue;
            }
            (self.undos[i].pid, self.undos[i].adjust) = (NONE, 0);
            if self.objects[undo.obj].flags & DESTROYED != 0 {
                continue;
            }
            self.sysv_date(undo.obj, 0);
            if undo.adjust != 0 {
                let at = self.objects[undo.obj].extra + undo.num;
                self.semvals[at].value = (self.semvals[at].value + undo.adjust).clamp(0, SEMVMX);
                self.semvals[at].vpid = self.procs[pid].vpid;
            }
        }
    }

    pub(crate) fn sysv_ctl_perform(&mut self, t: Tid, op: &Op, way: u32) -> Applied {
        if self.objects[op.obj].flags & DESTROYED != 0 {
            return self.finds_removed(t, op, way);
        }
        let (command, value) = (Ctl(op.arg as u8), op.arg >> 8);
        if command == Ctl::SET_VALUE {
            if !(0..=SEMVMX as i64).contains(&value) {
                return Applied::Done(errno::ERANGE);
            }
            self.sysv_set(t, op.obj, op.obj2, value as i32);
            self.sysv_settled(op.obj);
        } else if command == Ctl::REMOVE {
            self.note_removal(t, op.obj);
            for name in self.names.as_mut_slice() {
                if name.obj == op.obj {
                    name.obj = NONE;
                }
            }
        }
        Applied::Done(0)
    }

    /// Another thread sleeps at that object, as has been told ([`PARTIAL`]), and could go on: the kernel did its operation together
    /// with the one that let it, so nobody comes in between (ipc/sem.c, do_smart_update; ipc/msg.c, pipelined_send).
    pub(crate) fn sleeper_goes_first(&self, t: Tid, op: &Op) -> bool {
        if op.has(PARTIAL) {
            return false;
        }
        let goes = |&&u: &&Tid| {
            let thread = &self.threads[u];
            let its = &thread.pending;
            u != t
                && thread.state == ThreadState::PARKED
                && its.obj == op.obj
                && its.has(PARTIAL)
                && (op.kind != Kind::SYSV_OP || its.mask & op.mask != 0)
                && match its.kind {
                    Kind::SYSV_OP => !matches!(self.sysv_try(u, its.obj), Verdict::Block { .. }),
                    Kind::MSG_RECEIVE => self.offers(its),
                    _ => false,
                }
        };
        self.live.as_slice().iter().find(goes).is_some()
    }

    /// Threads that wait for semaphore `num` of `obj` to grow (`zero` = false) or to become zero. A semop of several operations counts
    /// where the first of them is that could not be done when it was looked at last (ipc/sem.c, check_qop).
    pub fn sysv_waiting(&self, obj: ObjId, num: u32, zero: bool) -> u32 {
        let waits = |&&t: &&Tid| {
            let thread = &self.threads[t];
            match self.sysv_try(t, obj) {
                Verdict::Block { at, .. } if self.sleeps_at_set(t, obj) => {
                    let o = thread.sembuf[if waits_for_zeros(thread) { thread.sem_at as usize } else { at }];
                    u32::from(o.num) == num && if zero { o.op == 0 } else { o.op < 0 }
                }
                _ => false,
            }
        };
        self.live.as_slice().iter().filter(waits).count() as u32
    }
}
