//! Descriptors of the model: which numbers of this process they are, how they come and go.
//!
//! NOTE [Placeholders] At the number of each descriptor of the model stands a copy of [`PLACE_FD`] in the kernel's
//! table (an O_PATH descriptor, with which the kernel refuses to read, write, or map anything). So the kernel gives out
//! the lowest free number, copies the table at fork, and closes at exec what is to be closed; and a call that should
//! have been modelled and was not fails instead of meeting something else.

use vsrun_model::arena::{FIRST_FD, LAST_FD, PLACE_FD};
use vsrun_model::calls::name;
use vsrun_model::channel::{ChanId, ChanKind};
use vsrun_model::fd::{DescId, DescKind};
use vsrun_model::file::Use;
use vsrun_model::op::CANCEL_POINT;
use vsrun_model::{Kind, Op, NONE};

use super::files;
use crate::gate::{self, end, fiber, local, machine, me, model, world, Phase};
use crate::sys::errno::ENFILE;
use crate::sys::track::track;
use crate::sys::{decimal, limit, raw};

/// The description that `fd` names, if it is one of the model.
#[inline]
pub fn find(fd: u64) -> Option<DescId> {
    let p = local().pid;
    if p == NONE || !world().has_fds(p) {
        return None;
    }
    world().fd(p, fd as i32)
}

/// A call that is not modelled for this kind of descriptor.
pub fn refuse(nr: i64, desc: DescId, a: [u64; 6]) -> ! {
    end::unsupported(&[
        b"system call ",
        name(nr).unwrap_or("without a name").as_bytes(),
        b" on a ",
        world().descs[desc].kind.name().as_bytes(),
        b" (arguments ",
        &decimal(a[1] as i64),
        b", ",
        &decimal(a[2] as i64),
        b")",
    ])
}

fn out_of_room() -> ! {
    end::no_room(&[b"the program has more descriptors than vsrun can hold"])
}

/// A channel made by the running thread.
pub fn new_channel(kind: ChanKind, room: u64) -> ChanId {
    model().channel_new(local().cur, kind, room).unwrap_or_else(|| out_of_room())
}

/// A description without names.
pub fn new_desc(kind: DescKind, flags: u32, input: ChanId, output: ChanId) -> DescId {
    model().desc_new(kind, flags, input, output).unwrap_or_else(|| out_of_room())
}

/// A number that the call under way has reserved, for what it has made.
fn take_reserved(cloexec: bool) -> Option<i32> {
    let all = &mut fiber().reserved;
    let number = all.iter_mut().find(|number| **number > 0).map(core::mem::take)? - 1;
    raw!(libc::SYS_fcntl, number, libc::F_SETFD, if cloexec { libc::FD_CLOEXEC } else { 0 });
    Some(number)
}

/// The kernel has no number for a descriptor. That is the environment's doing where vsrun's own stand among those that the program may
/// have, or where it is the whole system that has no more. Gives the error where it is the program's.
#[cold]
pub fn refused(error: i64) -> i64 {
    if error == ENFILE || limit(libc::RLIMIT_NOFILE) > FIRST_FD as u64 {
        end::refused(b"a descriptor", error);
    }
    error
}

/// Fails as a call does that takes a number before it does anything else, where the program may have no more.
pub fn needs_number() -> Result<(), i64> {
    if fiber().reserved[0] != 0 {
        return Ok(());
    }
    let number = raw!(libc::SYS_fcntl, PLACE_FD, libc::F_DUPFD_CLOEXEC, 0);
    if number < 0 {
        return Err(refused(number));
    }
    raw!(libc::SYS_close, number);
    Ok(())
}

/// Gives `desc` a descriptor; its number, or a negative error number (then the description is gone).
pub fn install(desc: DescId, cloexec: bool) -> i64 {
    let command = if cloexec { libc::F_DUPFD_CLOEXEC } else { libc::F_DUPFD };
    let fd = match take_reserved(cloexec) {
        Some(fd) => fd.into(),
        None => raw!(libc::SYS_fcntl, PLACE_FD, command, 0),
    };
    if fd < 0 {
        model().desc_drop(desc);
        return refused(fd);
    }
    if !model().fd_set(local().pid, fd as i32, desc) {
        out_of_room();
    }
    fd
}

/// True if nobody but the running thread can notice what becomes of a name of `desc`, as long as others are left.
pub fn is_private(desc: DescId) -> bool {
    local().borrowed || world().desc_is_private(local().cur, desc)
}

/// Closes a descriptor of the model, or the model's side of one that the kernel closes.
pub fn forget(fd: i32) {
    flush(fd);
    release(fd);
}

/// The same of those from `first` to `last` that are `which`. What goes with the number of a descriptor goes in the order of these; what stood
/// there is released when the call returns, the last one first (fs/open.c, filp_close; fs/file_table.c, fput; kernel/task_work.c,
/// task_work_run).
pub fn forget_all(first: i32, last: i32, which: impl Fn(i32) -> bool) {
    let next = |from: i32| world().fds_from(local().pid, from).find(|&(fd, _)| fd > last || which(fd));
    let mut from = first;
    while let Some((fd, _)) = next(from).filter(|&(fd, _)| fd <= last) {
        flush(fd);
        from = fd + 1;
    }
    let before = |until: i32| {
        world().fds_from(local().pid, first).take_while(|&(fd, _)| fd <= until).filter(|&(fd, _)| which(fd)).last()
    };
    let mut until = last;
    while let Some((fd, _)) = before(until) {
        release(fd);
        until = fd - 1;
    }
}

/// What goes with a number of a descriptor of the model, before that is closed.
fn flush(fd: i32) {
    let Some(desc) = world().fd(local().pid, fd) else { return };
    if world().descs[desc].kind == DescKind::QUEUE && !local().borrowed {
        request_goes(desc);
    }
}

/// Closes a descriptor of the model.
fn release(fd: i32) {
    let p = local().pid;
    let Some(desc) = world().fd(p, fd) else { return };
    // Nobody else can have what libc has made in this transition.
    let own = || world().descs[desc].refs == 1 && machine().is_made_by_libc(p, fd);
    if local().borrowed || world().close_is_private(local().cur, desc) || own() {
        model().fd_close(p, fd);
        return;
    }
    let mut op = world().desc_op(Kind::FD_CLOSE, desc).arg(i64::from(fd));
    op.deadline = gate::shown(fd) as u64 + 1;
    gate::pass(op);
}

/// A name of message queue `desc` is about to be closed: what its process has asked to be told by a socket is taken back before that
/// (fs/open.c, filp_flush).
fn request_goes(desc: DescId) {
    let queue = world().descs[desc].input;
    if world().mqueue_owner(local().pid, desc) && world().mqueue_socket(queue).is_some() {
        take_request_back(desc, queue);
    }
}

/// What the process has asked to be told about `queue` is taken back (mq_notify). If it was to be told by a socket, that is told.
pub fn take_request_back(desc: DescId, queue: ChanId) -> i64 {
    let p = local().pid;
    let told = || world().mqueue_socket(queue).filter(|_| world().mqueue_owner(p, desc));
    let socket = told();
    let mut op = world().desc_op(Kind::FD_CONTROL, desc);
    if let Some(channel) = socket {
        op.obj2 = world().channel_obj(channel);
        op.mask |= world().channel_bit(channel);
    }
    gate::pass_then(op, |_| {
        if told().is_some_and(|now| Some(now) != socket) {
            // Another one is told than the operation names, or one where it names none.
            gate::note_passed(libc::SYS_mq_notify);
        }
        model().mqueue_ask(queue, p, None);
    })
}

/// close.
pub fn close(fd: i32) -> i64 {
    forget(fd);
    raw!(libc::SYS_close, fd);
    0
}

/// Makes `fd`, for the program, from another name of `desc`, by call `nr`.
pub fn again(nr: i64, a: [u64; 6], desc: DescId) -> i64 {
    let cloexec = nr == libc::SYS_fcntl && a[1] as i32 == libc::F_DUPFD_CLOEXEC;
    match take_reserved(cloexec) {
        Some(fd) => named(fd.into(), desc),
        None => named(raw!(nr, a[0], a[1], a[2]), desc),
    }
}

/// The kernel has made `fd` from another name of `desc`.
pub fn named(fd: i64, desc: DescId) -> i64 {
    if fd >= 0 && !model().fd_set(local().pid, fd as i32, desc) {
        out_of_room();
    }
    fd
}

/// A descriptor that was just made is not to be: nobody has seen it.
pub fn take_back(fd: i64) {
    model().fd_close(local().pid, fd as i32);
    raw!(libc::SYS_close, fd);
}

/// Performs an operation on a description, which stays while it lasts; see [`gate::pass_then`].
pub fn pass(desc: DescId, op: Op, then: impl FnMut(i64)) -> i64 {
    pass_after(desc, op, None, then)
}

/// The same; `before` is called when it is about to be performed.
pub fn pass_after(desc: DescId, mut op: Op, before: Option<fn()>, mut then: impl FnMut(i64)) -> i64 {
    let cur = local().cur;
    // It is none of the operations that come with this one.
    let cancellable = core::mem::take(&mut fiber().cancellable);
    if cancellable {
        op = op.with(CANCEL_POINT);
    }
    // A call of several operations holds it throughout.
    let held = me().holding == desc;
    if !held {
        model().desc_hold(cur, desc);
    }
    let result = gate::pass_after(op, before, |result| {
        then(result);
        if !held {
            model().desc_release(cur);
        }
    });
    fiber().cancellable = cancellable;
    result
}

/// Performs several operations on a description, which stays while they last, whoever closes it in between.
pub fn throughout<T>(desc: DescId, work: impl FnOnce() -> T) -> T {
    if !gate::is_threaded() || me().holding == desc {
        return work();
    }
    model().desc_hold(local().cur, desc);
    let result = work();
    model().desc_release(local().cur);
    result
}

/// Looks at a description's state or changes it, for all who have it.
pub fn control(desc: DescId) {
    gate::pass(world().desc_op(Kind::FD_CONTROL, desc));
}

/// A change of a description's state: a visible operation if others have it too, or a signal may come before it.
pub fn settle(desc: DescId) {
    if !is_private(desc) || gate::is_place_for_handlers() {
        control(desc);
    }
}

/// Sets the file status flags of a description, visibly if others have it too.
pub fn set_flags(desc: DescId, flags: u32) {
    // Whether others have it still is a question of who came first. What they may change is compared when it is changed.
    let watched = is_begun() && !local().borrowed && world().concurrent;
    let shared = if watched { machine().use_flags(local().cur, desc, Use::Write) } else { None };
    match shared {
        Some(obj) => gate::pass_then(Op::on(Kind::FD_CHANGE, obj), |_| model().desc_set_flags(desc, flags)),
        None if flags == world().descs[desc].flags => 0,
        None => {
            settle(desc);
            model().desc_set_flags(desc, flags);
            0
        }
    };
}

fn is_begun() -> bool {
    !matches!(local().phase, Phase::BeforeRoot | Phase::Off)
}

/// Looks at them at the beginning of a call: visibly, if others change them.
#[inline]
pub fn look_at_flags(number: u64) {
    if machine().flags_change() {
        look_at_flags_of(number);
    }
}

#[inline(never)]
fn look_at_flags_of(number: u64) {
    let watched = is_begun() && !local().borrowed && world().concurrent;
    let Some(desc) = find(number).filter(|_| watched) else { return };
    if let Some(obj) = machine().use_flags(local().cur, desc, Use::Read) {
        gate::pass(Op::on(Kind::FD_LOOK, obj));
    }
}

/// F_GETFD: the kernel knows such a descriptor.
pub fn is_open(fd: u64) -> bool {
    raw!(libc::SYS_fcntl, fd, libc::F_GETFD) >= 0
}

/// True for descriptors that are vsrun's, or kept for a process that goes back.
pub fn is_ours(fd: u64) -> bool {
    (FIRST_FD..LAST_FD).contains(&(fd as i32)) || track().keeps(fd)
}

/// Passes a call on that concerns files, on behalf of one that mixes them with descriptors of the model.
pub fn on_file(nr: i64, a: [u64; 6]) -> i64 {
    files::using(nr, a, || gate::through(nr, a))
}
