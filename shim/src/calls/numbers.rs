//! Numbers of descriptors, where several threads of the process use them: looking one up, putting something there, and holding what one
//! stands for. What it means is the model's: `vsrun_model::fd`, `sched::descriptor`; what is done around each call: `table`.

use vsrun_model::arena::LAST_FD;
use vsrun_model::file::Use;
use vsrun_model::{Kind, ObjId, Op, NONE};

use super::{fd, files};
use crate::gate::{self, local, machine, model, world, Phase};
use crate::sys::{cstr, load, raw};

/// The operation that looks up the numbers of these objects.
pub fn look_at(first: ObjId, second: Option<ObjId>) {
    let mut op = Op::on(Kind::FD_LOOK, first);
    op.obj2 = second.filter(|&second| second != first).unwrap_or(NONE);
    gate::pass(op);
}

/// What a look at one number of several finds.
#[derive(Clone, Copy)]
pub struct Looked {
    /// It is not reserved for what somebody opens just now.
    pub stands: bool,
    /// Other threads change what it stands for.
    pub shared: bool,
}

/// Looks up one number, as a part of a call that asks about several.
pub fn look(number: i32) -> Looked {
    let obj = if is_watched(number) { machine().use_number(local().cur, number, Use::Read) } else { None };
    if let Some(obj) = obj {
        look_at(obj, None);
    }
    Looked { stands: obj.is_none_or(stands), shared: obj.is_some() }
}

/// Whether anything is to be noted of its uses.
pub fn is_watched(number: i32) -> bool {
    let begun = !matches!(local().phase, Phase::BeforeRoot | Phase::Off);
    begun && gate::is_threaded() && number >= 0 && !fd::is_ours(number as u64)
}

/// Whether the number of that object stands for something, as far as others may know.
pub fn stands(obj: ObjId) -> bool {
    world().objects[obj].value == 0
}

/// From now on the number of that object stands for what was put there.
pub fn put(obj: Option<ObjId>) {
    let Some(obj) = obj else { return };
    machine().number_stands(obj, false);
    gate::pass_then(Op::on(Kind::FD_CHANGE, obj), |_| machine().number_stands(obj, true));
}

/// What is made at a moment when others cannot come in between (what a message brings) gets the lowest free number: noted, and an operation
/// before it.
pub fn before_received() {
    if !gate::is_threaded() || matches!(local().phase, Phase::BeforeRoot | Phase::Off) {
        return;
    }
    if let Some(free) = machine().use_free_numbers(local().cur, Use::Write) {
        gate::pass(Op::on(Kind::FD_RESERVE, free));
    }
}

/// All numbers are copied, by a fork: which there are depends on who opens and closes beside it. `visible`: the fork is an operation that
/// everything depends on.
pub fn copied(visible: bool) {
    if !gate::is_threaded() || matches!(local().phase, Phase::BeforeRoot | Phase::Off) {
        return;
    }
    if let Some(free) = machine().use_free_numbers(local().cur, Use::Write).filter(|_| !visible) {
        gate::pass(Op::on(Kind::FD_RESERVE, free));
    }
}

/// What stands at each number, and whether it is to be closed on exec, goes with a copy of the process, or with what it executes, which has its
/// turn now.
pub fn kept() {
    if !gate::is_threaded() || matches!(local().phase, Phase::BeforeRoot | Phase::Off) {
        return;
    }
    each_open(|number| {
        if is_watched(number) {
            machine().use_number(local().cur, number, Use::Read);
        }
    });
}

/// Calls `each` with all descriptors of the process.
#[inline(never)]
fn each_open(mut each: impl FnMut(i32)) {
    let dir = raw!(libc::SYS_open, c"/proc/self/fd".as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC);
    if dir < 0 {
        // Which there are is not known.
        return machine().libc_used_numbers();
    }
    let mut entries = [0u64; 128];
    let at = entries.as_mut_ptr() as u64;
    // A descriptor is the name of an entry (struct linux_dirent64: number, offset, length, kind, name).
    loop {
        let n = raw!(libc::SYS_getdents64, dir, at, size_of_val(&entries));
        if n <= 0 {
            break;
        }
        let mut entry = at;
        while entry < at + n as u64 {
            let name = cstr(entry + 19, 16);
            let number = name.iter().fold(0, |number, digit| number * 10 + i64::from(digit & 15));
            if name.iter().all(u8::is_ascii_digit) && number != dir {
                each(number as i32);
            }
            entry += u64::from(load::<u16>(entry + 16));
        }
    }
    raw!(libc::SYS_close, dir);
}

/// It has that number.
pub fn received(number: i64) {
    let begun = !matches!(local().phase, Phase::BeforeRoot | Phase::Off);
    if number >= 0 && begun && gate::is_threaded() {
        put(machine().use_number(local().cur, number as i32, Use::Write));
    }
}

/// A second number for what `number` stands for. `None`: it stands for nothing, or there is no room.
pub fn hide(number: i32) -> Option<i32> {
    let hidden = raw!(libc::SYS_fcntl, number, libc::F_DUPFD_CLOEXEC, LAST_FD) as i32;
    if hidden < 0 {
        return None;
    }
    if let Some(desc) = fd::find(number as u64) {
        fd::named(hidden.into(), desc);
    }
    files::copy_descriptor(number, hidden);
    Some(hidden)
}

/// The same; the number is free.
pub fn move_away(number: i32) -> Option<i32> {
    let hidden = hide(number)?;
    if fd::find(number as u64).is_some() {
        model().fd_close(local().pid, number);
    }
    files::forget_descriptor(number);
    raw!(libc::SYS_close, number);
    Some(hidden)
}

/// Undoes [`hide`]; `hidden` is 1 + the number, 0: there is none.
pub fn uncover(hidden: i32) {
    if hidden > 0 {
        model().fd_let_go(local().pid, hidden - 1);
        files::forget_descriptor(hidden - 1);
        raw!(libc::SYS_close, hidden - 1);
    }
}
