//! Instructions on the numbers of descriptors of a process with several threads. What they stand for is kept here, as the kernel keeps it for a
//! real program: the model knows only which uses depend on each other.

use vsrun_model::errno::{EBADF, EBUSY, EMFILE};
use vsrun_model::file::Use;
use vsrun_model::{Kind, Op, Tid, NONE};

use super::{Ins, Run};

/// Numbers that there are.
pub const NUMBERS: usize = 4;

/// What is done with numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Num {
    /// Logs what it stands for.
    Look(u32),
    /// Logs what both stand for.
    Both(u32, u32),
    Close(u32),
    /// Makes the second stand for what the first does.
    Dup2(u32, u32),
    /// Reserves the lowest free number.
    Reserve,
    /// The number that the thread reserved last stands for something.
    Put,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Slot {
    #[default]
    Free,
    Reserved,
    Stands(i64),
}

/// The table of the first process, and what each thread has reserved.
#[derive(Clone, Debug, Default)]
pub struct Table {
    slots: [Slot; NUMBERS],
    reserved: Vec<(Tid, u32)>,
}

impl Table {
    /// The first two stand for something at the start.
    pub fn new() -> Table {
        Table { slots: [Slot::Stands(1), Slot::Stands(2), Slot::Free, Slot::Free], reserved: Vec::new() }
    }

    /// How it looks in an outcome.
    pub fn text(&self) -> String {
        format!("{:?}", self.slots)
    }

    fn last_of(&self, t: Tid) -> Option<u32> {
        self.reserved.iter().rev().find(|(by, _)| *by == t).map(|(_, n)| *n)
    }

    fn stands(&self, n: u32) -> Option<i64> {
        match self.slots[n as usize] {
            Slot::Stands(what) => Some(what),
            _ => None,
        }
    }
}

impl Run<'_> {
    /// The operation of such an instruction. `None`: it does nothing.
    pub(super) fn on_number(&self, t: Tid, num: Num) -> Option<Op> {
        let of = |n: u32| self.objects.number[n as usize];
        let free = i64::from(self.objects.free) + 1;
        Some(match num {
            Num::Look(n) => Op::on(Kind::FD_LOOK, of(n)),
            Num::Both(a, b) => Op { obj2: if a == b { NONE } else { of(b) }, ..Op::on(Kind::FD_LOOK, of(a)) },
            Num::Close(n) => Op::on(Kind::FD_CHANGE, of(n)).arg(free),
            Num::Dup2(a, b) => Op { obj2: of(a), ..Op::on(Kind::FD_CHANGE, of(b)).arg(free) },
            Num::Reserve => Op::on(Kind::FD_RESERVE, self.objects.free),
            Num::Put => Op::on(Kind::FD_CHANGE, of(self.numbers.last_of(t)?)),
        })
    }

    /// Performs it; what it gives.
    pub(super) fn use_numbers(&mut self, t: Tid, num: Num) -> i64 {
        let table = &mut self.numbers;
        match num {
            Num::Look(n) => table.stands(n).unwrap_or(EBADF),
            Num::Both(a, b) => table.stands(a).unwrap_or(0) * 100 + table.stands(b).unwrap_or(0),
            Num::Close(n) if table.stands(n).is_none() => EBADF,
            Num::Close(n) => {
                table.slots[n as usize] = Slot::Free;
                0
            }
            Num::Dup2(a, b) => match (table.stands(a), table.slots[b as usize]) {
                (None, _) => EBADF,
                (_, Slot::Reserved) => EBUSY,
                (Some(what), _) => {
                    table.slots[b as usize] = Slot::Stands(what);
                    0
                }
            },
            Num::Reserve => {
                let Some(n) = table.slots.iter().position(|&slot| slot == Slot::Free) else { return EMFILE };
                table.slots[n] = Slot::Reserved;
                table.reserved.push((t, n as u32));
                if self.arena.plan.unshared && self.arena.world.concurrent {
                    self.arena.use_number(t, n as i32, Use::Write);
                }
                n as i64
            }
            Num::Put => {
                let Some(n) = table.last_of(t) else { return 0 };
                table.reserved.retain(|&(by, m)| by != t || m != n);
                // What it is, is the thread's.
                table.slots[n as usize] = Slot::Stands(10 + self.fibers[t as usize].code as i64);
                0
            }
        }
    }

    /// Whether the use is visible, where numbers of one thread are passed over: as the shim finds out.
    pub(super) fn is_visible_number(&mut self, t: Tid, num: Num) -> bool {
        if !self.arena.world.concurrent {
            return true;
        }
        let last = self.numbers.last_of(t);
        let arena = &mut *self.arena;
        let mut number = |n: u32, what| arena.use_number(t, n as i32, what).is_some();
        match num {
            Num::Look(n) => number(n, Use::Read),
            Num::Both(a, b) => number(a, Use::Read) | number(b, Use::Read),
            Num::Close(n) => number(n, Use::Write) | arena.use_free_numbers(t, Use::Read).is_some(),
            Num::Dup2(a, b) => {
                number(a, Use::Read) | number(b, Use::Write) | arena.use_free_numbers(t, Use::Read).is_some()
            }
            Num::Reserve => arena.use_free_numbers(t, Use::Write).is_some(),
            Num::Put => last.is_some_and(|n| number(n, Use::Write)),
        }
    }
}

/// The instruction's use of numbers, if it is one.
pub fn number_of(ins: &Ins) -> Option<Num> {
    match ins {
        Ins::Num(num) => Some(*num),
        _ => None,
    }
}
