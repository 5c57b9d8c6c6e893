//! Instructions on the contents and names of files. What is in a file is kept here, as it is in the file system for a real
//! program: the model knows only which uses depend on each other.

use vsrun_model::errno::{EEXIST, ENOENT};
use vsrun_model::file::{path_bit, Use, Verdict, NAME, PLACE, PLACED};
use vsrun_model::object::NONE;
use vsrun_model::op::TRY;
use vsrun_model::{Kind, Op, Tid};

use super::{Ins, Run};

/// Files.
pub const FILES: usize = 2;
/// Names of files.
pub const NAMES: usize = 3;
/// Device of the files.
const DEVICE: u64 = 1;

/// What is done to a file or a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uses {
    /// Logs the number in the file.
    Read(u32),
    /// Logs it if it is the first read through the file's description n, else 0; the place is the description's.
    Take(u32, u32),
    /// Puts a number in.
    Write(u32, i64),
    /// Puts in one more than what was logged last.
    Bump(u32),
    /// Appends a digit.
    Append(u32, i64),
    /// Makes the second what the first is.
    Copy(u32, u32),
    /// Makes a name; fails if it is there.
    Make(u32),
    /// Takes a name away; fails if it is not there.
    Unlink(u32),
    /// Gives the first the name of the second.
    Rename(u32, u32),
    /// Whether it is there.
    Look(u32),
    /// Whether both are there.
    Both(u32, u32),
    /// Makes the file empty if there is the name.
    Truncate(u32, u32),
}

/// What files hold.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    values: [i64; FILES],
    /// By file and description: something was read.
    taken: [[bool; 2]; FILES],
    there: [bool; NAMES],
}

impl Run<'_> {
    /// The operation of such an instruction.
    pub(super) fn on_file(&self, uses: Uses) -> Op {
        let file = |f: u32| self.objects.file[f as usize];
        let names = |kind, set: i64| Op::on(kind, self.objects.paths).arg(set).with(TRY);
        let bit = |n: u32| path_bit(u64::from(n));
        let placed = |mut op: Op, mask| {
            op.mask = mask;
            op
        };
        match uses {
            Uses::Read(f) => placed(Op::on(Kind::FILE_READ, file(f)), PLACED),
            Uses::Take(f, n) => placed(Op::on(Kind::FILE_READ, file(f)), n),
            Uses::Write(f, _) | Uses::Bump(f) | Uses::Append(f, _) => Op::on(Kind::FILE_WRITE, file(f)),
            Uses::Copy(from, to) => Op { obj2: file(from), ..Op::on(Kind::FILE_COPY, file(to)) },
            Uses::Make(n) | Uses::Unlink(n) => names(Kind::PATH_CHANGE, bit(n)),
            Uses::Rename(a, b) => names(Kind::PATH_CHANGE, bit(a) | bit(b)),
            Uses::Look(n) => names(Kind::PATH_LOOK, bit(n)),
            Uses::Both(a, b) => names(Kind::PATH_LOOK, bit(a) | bit(b)),
            Uses::Truncate(n, f) => Op { obj2: file(f), ..names(Kind::PATH_TRUNCATE, bit(n)) },
        }
    }

    /// Performs it; what it gives.
    pub(super) fn use_contents(&mut self, t: Tid, uses: Uses) -> i64 {
        let last = self.fibers[t as usize].log.last().copied().unwrap_or(0);
        let c = &mut self.contents;
        let there = |c: &Contents, n: u32| c.there[n as usize];
        match uses {
            Uses::Read(f) => c.values[f as usize],
            Uses::Take(f, n) => {
                let first = !std::mem::replace(&mut c.taken[f as usize][n as usize], true);
                if first {
                    1 + c.values[f as usize]
                } else {
                    0
                }
            }
            Uses::Write(f, value) => set(&mut c.values[f as usize], value),
            Uses::Bump(f) => set(&mut c.values[f as usize], last + 1),
            Uses::Append(f, digit) => {
                let value = c.values[f as usize] * 10 + digit;
                set(&mut c.values[f as usize], value)
            }
            Uses::Copy(from, to) => {
                let value = c.values[from as usize];
                set(&mut c.values[to as usize], value)
            }
            Uses::Make(n) if there(c, n) => EEXIST,
            Uses::Unlink(n) | Uses::Look(n) | Uses::Truncate(n, _) if !there(c, n) => ENOENT,
            Uses::Rename(a, _) if !there(c, a) => ENOENT,
            Uses::Both(a, b) => i64::from(there(c, a)) + 2 * i64::from(there(c, b)),
            Uses::Make(n) | Uses::Unlink(n) => {
                c.there[n as usize] = matches!(uses, Uses::Make(_));
                0
            }
            Uses::Rename(a, b) => {
                c.there[a as usize] = false;
                c.there[b as usize] = true;
                0
            }
            Uses::Look(_) => 0,
            Uses::Truncate(_, f) => set(&mut c.values[f as usize], 0),
        }
    }

    /// Whether the use is visible, where objects of one thread are passed over: as the shim finds out.
    pub(super) fn is_visible_use(&mut self, t: Tid, uses: Uses) -> bool {
        if !self.arena.world.concurrent {
            return true;
        }
        let there = self.contents.there;
        let exists = |n: u32| there[n as usize];
        let file = |f: u32, how| ((DEVICE, u64::from(f)), how);
        let name = |n: u32, changes| ((NAME, u64::from(n)), if changes { Use::Write } else { Use::Read });
        let all: Vec<_> = match uses {
            Uses::Read(f) => vec![file(f, Use::Read)],
            Uses::Take(f, n) => vec![file(f, Use::Read), ((PLACE, u64::from(2 * f + n)), Use::Write)],
            Uses::Write(f, _) | Uses::Bump(f) | Uses::Append(f, _) => vec![file(f, Use::Write)],
            Uses::Copy(from, to) => vec![file(from, Use::Read), file(to, Use::Write)],
            Uses::Make(n) => vec![name(n, !exists(n))],
            Uses::Unlink(n) => vec![name(n, exists(n))],
            Uses::Rename(a, b) => vec![name(a, exists(a)), name(b, exists(a))],
            Uses::Look(n) => vec![name(n, false)],
            Uses::Both(a, b) => vec![name(a, false), name(b, false)],
            Uses::Truncate(n, f) if exists(n) => vec![name(n, false), file(f, Use::Write)],
            Uses::Truncate(n, _) => vec![name(n, false)],
        };
        let mut visible = false;
        for (id, how) in all {
            let row = self.arena.used_file(id).or_else(|| self.arena.add_used_file(id, id.1)).expect("room");
            visible |= self.arena.use_file(t, row, how) == Verdict::Visible;
        }
        visible
    }

    /// Counts what was in vain, as the shim does.
    pub(super) fn after_use(&mut self, t: Tid, op: &Op, result: i64) {
        let vain = result == EEXIST || result == ENOENT;
        let thread = &mut self.arena.world.threads[t];
        thread.polls = if vain && op.tries() { thread.polls.saturating_add(1) } else { 0 };
    }
}

fn set(place: &mut i64, value: i64) -> i64 {
    *place = value;
    NONE.into()
}

/// The instruction's use of a file, if it is one.
pub fn uses_of(ins: &Ins) -> Option<Uses> {
    match ins {
        Ins::Use(uses) => Some(*uses),
        _ => None,
    }
}
