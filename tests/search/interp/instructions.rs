//! What an instruction does: the operation that it is, or what it does between two of them.

use super::*;

impl Run<'_> {
    pub(super) fn how(op: Op, how: How) -> Op {
        match how {
            How::Block => op,
            How::Try => op.with(TRY),
            How::Timed(n) => op.until(START + n as u64 * 1_000_000),
            How::Cancel => op.with(CANCEL_POINT),
        }
    }

    /// The operation that `ins` is, if it is a visible one here.
    pub(super) fn visible(&mut self, t: Tid, ins: &Ins) -> Option<Op> {
        if let Ins::WaitWhile(_, m, _) = *ins {
            self.uses_protected(t, (false, m), false);
        }
        let o = &self.objects;
        Some(match *ins {
            Ins::Lock(m, how) => Self::how(Op::on(Kind::MUTEX_LOCK, o.mutex[m as usize]), how),
            Ins::Unlock(m) if !self.owns(t, m) => return None,
            Ins::Unlock(m) | Ins::RawUnlock(m) => Op::on(Kind::MUTEX_UNLOCK, o.mutex[m as usize]),
            Ins::CondWait(_, m, _) if !self.owns(t, m) => return None,
            Ins::CondWait(c, m, how) => Self::how(both(Kind::COND_WAIT, o.cond[c as usize], o.mutex[m as usize]), how),
            Ins::WaitWhile(c, m, value) if self.vars[m as usize] == value => {
                both(Kind::COND_WAIT, o.cond[c as usize], o.mutex[m as usize])
            }
            Ins::Signal(c) => Op::on(Kind::COND_SIGNAL, o.cond[c as usize]),
            Ins::Broadcast(c) => Op::on(Kind::COND_BROADCAST, o.cond[c as usize]),
            Ins::SemWait(s, how) => Self::how(Op::on(Kind::SEM_WAIT, o.sem[s as usize]), how),
            Ins::Post(s) => Op::on(Kind::SEM_POST, o.sem[s as usize]),
            Ins::SemGet(s) => Op::on(Kind::SEM_GET, o.sem[s as usize]),
            Ins::Read(l, how) => Self::how(Op::on(Kind::RW_RDLOCK, o.rwlock[l as usize]), how),
            Ins::Write(l, how) => Self::how(Op::on(Kind::RW_WRLOCK, o.rwlock[l as usize]), how),
            Ins::RwUnlock(l) => {
                let lock = o.rwlock[l as usize];
                let world = &self.arena.world;
                if world.objects[lock].owner != t && !world.read_holds(lock).any(|(reader, _)| reader == t) {
                    return None;
                }
                Op::on(Kind::RW_UNLOCK, lock)
            }
            Ins::Spin(s, how) => Self::how(Op::on(Kind::SPIN_LOCK, o.spin[s as usize]), how),
            Ins::SpinUnlock(s) if self.arena.world.objects[o.spin[s as usize]].owner != t => return None,
            Ins::SpinUnlock(s) => Op::on(Kind::SPIN_UNLOCK, o.spin[s as usize]),
            // Of the second one nobody looks at who was the last.
            Ins::Barrier(b) => Op::on(Kind::BARRIER_WAIT, o.barrier[b as usize]).with(if b == 1 { VARIANT } else { 0 }),
            Ins::Stream(s, named, how) => {
                let op = Op::on(Kind::STREAM_LOCK, o.stream[s as usize]);
                Self::how(if named { op.with(EXPLICIT) } else { op }, how)
            }
            Ins::StreamUnlock(s, _) if self.arena.world.objects[o.stream[s as usize]].owner != t => return None,
            Ins::StreamUnlock(s, named) => {
                let op = Op::on(Kind::STREAM_UNLOCK, o.stream[s as usize]);
                if named {
                    op.with(EXPLICIT)
                } else {
                    op
                }
            }
            Ins::Draw => Op::on(Kind::LIBC_USE, o.sequence).with(EXPLICIT),
            Ins::Sysv(ref ops, undo, how) => {
                let ops = ops.clone();
                return Some(self.semop(t, &ops, undo, how));
            }
            Ins::SysvSet(num, value) => both(Kind::SYSV_CTL, o.sysv, num).arg((value as i64) << 8 | 1),
            Ins::MsgSend(q, mtype, size, how) => {
                assert!(self.arena.world.stage(t, &vec![mtype as u8; size as usize]), "room");
                let op = sized(Op::on(Kind::MSG_SEND, o.msgq[q as usize]).arg(mtype), size);
                Self::how(op, how)
            }
            Ins::MsgReceive(q, mtype, size, except, how) => {
                let op = sized(Op::on(Kind::MSG_RECEIVE, o.msgq[q as usize]).arg(mtype), size);
                Self::how(if except && mtype > 0 { op.with(EXCEPT) } else { op }, how)
            }
            Ins::Record(file, write, how) => {
                let op = self.record(t, Kind::RECORD_LOCK, file, write);
                Self::how(op, how)
            }
            Ins::RecordUnlock(file) => self.record(t, Kind::RECORD_UNLOCK, file, false),
            Ins::RecordTest(file, write) => self.record(t, Kind::RECORD_TEST, file, write),
            Ins::Flock(file, name, write, how) => {
                let what = write.map_or(lock::UNLOCK, |write| if write { lock::WRITE } else { 0 });
                let mut op = sized(Op::on(Kind::FLOCK, o.flock[file as usize]), what | by_description(name));
                op.deadline = lock::LAST;
                Self::how(op, how)
            }
            Ins::MsgControl(q, n) => {
                let arg = if n > 2 { (n - 2) << 8 | i64::from(SET_SIZE.0) } else { n };
                Op::on(Kind::MSG_CTL, o.msgq[q as usize]).arg(arg)
            }
            Ins::FutexWait(f, _, how) => Self::how(any_bit(Op::on(Kind::FUTEX_WAIT, o.futex[f as usize])), how),
            Ins::FutexWaitv(words, _, how) => {
                let op = Self::how(any_bit(Op::on(Kind::FUTEX_WAITV, o.futex[words[0] as usize])), how);
                let timed = op.has(TIMED);
                Op { flags: op.flags & !TIMED, ..op }.arg(Several { n: 2, timed, ..Several::default() }.pack())
            }
            Ins::FutexWake(f, n) => any_bit(Op::on(Kind::FUTEX_WAKE, o.futex[f as usize])).arg(n as i64),
            Ins::FutexRequeue(f, g, wake, moved) => {
                let op = both(Kind::FUTEX_REQUEUE, o.futex[f as usize], o.futex[g as usize]);
                any_bit(op).arg((moved as i64) << 32 | wake as i64)
            }
            // The child gets the locks of the other threads as they are.
            Ins::Fork(n) if self.started[n].is_none() && self.arena.world.procs[self.pid(t)].threaded => {
                Op::new(Kind::FORK)
            }
            Ins::Toss(n) => Op::new(Kind::TOSS).arg(n as i64),
            Ins::Once(n) => Op::on(Kind::ONCE, o.once[n as usize]),
            Ins::Join(n, how) => Self::how(Op::on(Kind::JOIN, self.started[n]?), how),
            Ins::Wait(who, how) => {
                let child = match who {
                    Some(n) => self.arena.world.procs[self.pid(self.started[n]?)].vpid as i64,
                    None => -1,
                };
                Self::how(Op::new(Kind::WAIT).arg(child), how)
            }
            Ins::Yield => Op::new(Kind::YIELD),
            Ins::Sleep(n) => Self::how(Op::new(Kind::SLEEP), How::Timed(n)),
            Ins::Cancel(n) => Op::on(Kind::CANCEL, self.started[n]?),
            Ins::Fd(fd, on, how) => return self.on_descriptor(t, fd, on, how),
            Ins::Sock(sock, does, how) => return self.on_socket(t, sock, does, how),
            Ins::Use(uses) => self.on_file(uses),
            Ins::Num(num) => return self.on_number(t, num),
            Ins::Kill(n, signal) => Op::on(Kind::KILL, self.pid(self.started[n]?)).arg(signal.into()),
            Ins::Tkill(n, signal) => Op::on(Kind::KILL, self.pid(self.started[n]?)).arg(signal.into()),
            Ins::Suspend(mask) => {
                let now = self.arena.world.threads[t].sigmask;
                Op::new(Kind::SIGSUSPEND).arg(mask.unwrap_or(now) as i64)
            }
            Ins::Sigwait(set, how) => Self::how(Op::new(Kind::SIGWAIT).arg(set as i64), how),
            Ins::Alarm(_) => Op::on(Kind::TIMER, self.pid(t)),
            Ins::Load(v) if self.watched >> v & 1 == 1 => on_memory(Kind::MEM_READ, o, v),
            Ins::Store(v, _) if self.watched >> v & 1 == 1 => on_memory(Kind::MEM_WRITE, o, v),
            Ins::Update(v) if self.watched >> v & 1 == 1 => on_memory(Kind::MEM_WRITE, o, v).with(ATOMIC),
            Ins::Swap(v, expected, _) if self.watched >> v & 1 == 1 => {
                let op = on_memory(Kind::MEM_WRITE, o, v).with(ATOMIC | COMPARES);
                Op { deadline: half(v, expected), ..op }
            }
            Ins::Await(v, w, update) => {
                let found = |v: u32| {
                    let value = half(v, self.fibers[t as usize].seen[v as usize]);
                    Found { address: 0, mask: half(v, -1), value }
                };
                self.arena.world.threads[t].awaits = [found(v), w.map_or(Found::default(), found)];
                let op = on_memory(Kind::MEM_WAIT, o, v).with(if update { ATOMIC } else { 0 });
                let second = w.map(|w| on_memory(Kind::MEM_WAIT, o, w));
                let (obj2, mask) = second.map_or((NONE, 0), |op| (op.obj, op.mask << 8));
                Op { obj2, mask: op.mask | mask, ..op }
            }
            _ => return None,
        })
    }

    pub(super) fn pid(&self, t: Tid) -> Pid {
        self.arena.world.threads[t].pid
    }

    pub(super) fn owns(&self, t: Tid, m: u32) -> bool {
        self.arena.world.objects[self.objects.mutex[m as usize]].owner == t
    }

    fn record(&self, t: Tid, kind: Kind, file: File, write: bool) -> Op {
        let owner = file.description.map_or(0, by_description);
        let mut op = sized(Op::on(kind, self.objects.records[file.file as usize]), owner | u32::from(write));
        (op.arg, op.deadline) = (file.first, file.last);
        match self.arena.world.procs[self.pid(t)].threaded {
            true => op.with(lock::THREADED),
            false => op,
        }
    }

    pub(super) fn semop(&mut self, t: Tid, ops: &[(u16, i16)], undo: bool, how: How) -> Op {
        let flags = if undo { SEM_UNDO } else { 0 } | if how == How::Try { IPC_NOWAIT } else { 0 };
        let thread = &mut self.arena.world.threads[t];
        let mut op = Op::on(Kind::SYSV_OP, self.objects.sysv);
        thread.n_sembuf = ops.len() as u32;
        for (i, &(num, amount)) in ops.iter().enumerate() {
            thread.sembuf[i] = SemBuf { num, op: amount, flags };
            op.mask |= 1 << (num % 32);
        }
        match ops {
            [(_, amount)] => op.arg = *amount as i64,
            _ => {
                let n = thread.n_sembuf as usize;
                op = op.with(SEVERAL).arg(pack_semops(&thread.sembuf[..n]).unwrap_or(0));
            }
        }
        if how == How::Try {
            op.with(VARIANT)
        } else {
            Self::how(op, how)
        }
    }

    /// The variable that mutex `m` protects, which `t` looks at.
    fn protected(&mut self, t: Tid, m: u32) -> i64 {
        self.uses_protected(t, (false, m), false);
        self.vars[m as usize]
    }

    pub(super) fn invisible(&mut self, t: Tid, ins: &Ins) {
        match *ins {
            Ins::Count(m) if self.owns(t, m) => {
                self.uses_protected(t, (false, m), true);
                let value = self.vars[m as usize];
                self.fibers[t as usize].log.push(value);
                self.vars[m as usize] += 1;
            }
            Ins::CountStream(s) if self.arena.world.objects[self.objects.stream[s as usize]].owner == t => {
                self.uses_protected(t, (true, s), true);
                let value = self.counted[s as usize];
                self.fibers[t as usize].log.push(value);
                self.counted[s as usize] += 1;
            }
            Ins::Add(m, amount) => {
                self.uses_protected(t, (false, m), true);
                self.vars[m as usize] += amount;
                let value = self.vars[m as usize];
                self.fibers[t as usize].log.push(value);
            }
            Ins::AssertNot(m, value) if self.owns(t, m) && self.protected(t, m) == value => {
                let text = format!("thread {} at {}", self.fibers[t as usize].code, self.fibers[t as usize].pc);
                self.arena.world.finish_with(End::ASSERT, t, &[text.as_bytes()]);
            }
            Ins::SkipIf(value) if self.fibers[t as usize].log.last() == Some(&value) => self.fibers[t as usize].pc += 1,
            Ins::Mask(signal, blocks) => self.mask(t, signal, blocks),
            Ins::Log(n) => self.fibers[t as usize].log.push(n),
            Ins::OnceEnd(n) => {
                let once = self.objects.once[n as usize];
                if self.arena.world.objects[once].owner == t {
                    self.arena.world.once_over(once, true);
                }
            }
            Ins::Load(v) | Ins::Store(v, _) | Ins::Update(v) | Ins::Swap(v, ..) => {
                let locked = matches!(ins, Ins::Update(_) | Ins::Swap(..));
                self.touch(t, v, !matches!(ins, Ins::Load(_)), locked);
                let more = self.access(ins);
                let log = &mut self.fibers[t as usize].log;
                log.push(0);
                log.extend(more);
            }
            Ins::Create(code) if self.started[code].is_none() => self.start(t, code, false),
            Ins::Fork(code) if self.started[code].is_none() => self.start(t, code, true),
            _ => {}
        }
    }
}
