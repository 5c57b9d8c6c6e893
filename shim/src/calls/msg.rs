//! System V message queues: the arguments of the calls; what they mean is the model's.

use vsrun_model::msg::{Queue, COPY, EXCEPT, MSGMAX, MSGMNB, NOERROR, SET_SIZE};
use vsrun_model::object::DESTROYED;
use vsrun_model::op::{CANCEL_POINT, PARTIAL, TELLS_LAST, TRY};
use vsrun_model::{Ctl, Kind, ObjId, ObjKind, Op};

use super::{sync, time};
use crate::gate::{self, end, inject, local, machine, me, model, world};
use crate::sys::errno::*;
use crate::sys::{bytes, bytes_mut, decimal, guard, load, raw, store, touch, writable, zero};

pub const CAP_SYS_RESOURCE: u32 = 24;
/// Permission bits for reading and for writing, of all classes.
const READ: u32 = 0o444;
const WRITE: u32 = 0o222;

/// msgget, msgsnd, msgrcv, msgctl. `cancellable`: called through libc, which makes waits cancellation points.
pub fn call(nr: i64, a: [u64; 6], cancellable: bool) -> i64 {
    let flags = if cancellable { CANCEL_POINT } else { 0 };
    match nr {
        libc::SYS_msgget => get(a[0] as i32, a[1] as i32),
        libc::SYS_msgsnd => send(a[0] as i32, a[1], a[2], a[3] as i32, flags),
        libc::SYS_msgrcv => receive(a[0] as i32, a[1], a[2], a[3] as i64, a[4] as i32, flags),
        _ => control(a[0] as i32, a[1] as i32 & !0x100, a[2]),
    }
}

fn get(key: i32, flags: i32) -> i64 {
    if key != libc::IPC_PRIVATE {
        gate::pass(Op::on(Kind::NAME, sync::names()));
        if let Some(queue) = world().name_find(ObjKind::MSGQ, &key.to_ne_bytes()) {
            let both = libc::IPC_CREAT | libc::IPC_EXCL;
            return match () {
                _ if flags & both == both => EEXIST,
                _ if !permits(queue, flags as u32) => EACCES,
                _ => world().objects[queue].key.addr as i64,
            };
        }
        if flags & libc::IPC_CREAT == 0 {
            return ENOENT;
        }
    }
    let id = world().new_queue_id(local().cur);
    let dates = [0, 0, date()];
    let mode = flags as u32 & 0o777;
    let made = Queue { key, limit: MSGMNB, longest: MSGMAX, mode, dates, ..Queue::default() };
    let Some(queue) = model().queue_make(ObjKind::MSGQ, id, made) else {
        end::no_room(&[b"the program uses more message queues than vsrun can hold"])
    };
    if key != libc::IPC_PRIVATE && !model().name_add(&key.to_ne_bytes(), queue) {
        end::no_room(&[b"the program uses more names than vsrun can hold"]);
    }
    id as i64
}

/// What the kernel's ipcperms says to the owner; all processes of a world have one user.
fn permits(queue: ObjId, wanted: u32) -> bool {
    let wanted = wanted >> 6 | wanted >> 3 | wanted;
    // Of what is gone nobody asks.
    let gone = world().objects[queue].flags & DESTROYED != 0;
    gone || wanted & !(world().message_queue(queue).mode >> 6) & 7 == 0 || raw!(libc::SYS_geteuid) == 0
}

/// The date, seconds, as IPC_STAT shows it.
fn date() -> i64 {
    (time::read(libc::CLOCK_REALTIME) / 1_000_000_000) as i64
}

fn find(id: i32) -> Option<ObjId> {
    sync::by_id(ObjKind::MSGQ, u64::try_from(id).ok()?)
}

/// An operation on `queue`.
fn on_queue(kind: Kind, queue: ObjId) -> Op {
    let op = Op::on(kind, queue);
    if machine().waits_are_told(queue) {
        op.with(TELLS_LAST)
    } else {
        op
    }
}

fn send(id: i32, message: u64, size: u64, flags: i32, point: u8) -> i64 {
    let mtype: i64 = load(message);
    if size > MSGMAX as u64 || id < 0 || mtype < 1 {
        return EINVAL;
    }
    touch(message + 8, size);
    let Some(queue) = find(id) else { return EINVAL };
    if !permits(queue, WRITE) {
        return EACCES;
    }
    if flags & libc::IPC_NOWAIT == 0 {
        inject::interrupts();
    }
    if !model().stage(local().cur, bytes(message + 8, size as usize)) {
        end::no_room(&[b"the program has more bytes in message queues than vsrun can hold"]);
    }
    let nowait = if flags & libc::IPC_NOWAIT != 0 { TRY } else { 0 };
    let mut op = on_queue(Kind::MSG_SEND, queue).arg(mtype).with(point | nowait);
    op.mask = size as u32;
    gate::pass_then(op, |error| {
        if error == 0 {
            model().queue_dated(queue, 0, date());
        }
    })
}

fn receive(id: i32, message: u64, size: u64, mtype: i64, flags: i32, point: u8) -> i64 {
    if id < 0 || (size as i64) < 0 {
        return EINVAL;
    }
    if flags & libc::MSG_COPY != 0 {
        if flags & libc::MSG_EXCEPT != 0 || flags & libc::IPC_NOWAIT == 0 {
            return EINVAL;
        }
        return copy(id, message, size, mtype, flags);
    }
    let Some(queue) = find(id) else { return EINVAL };
    if !permits(queue, READ) {
        return EACCES;
    }
    let mut op = on_queue(Kind::MSG_RECEIVE, queue).arg(mtype).with(point);
    if flags & libc::IPC_NOWAIT != 0 {
        op = op.with(TRY);
    } else {
        inject::interrupts();
    }
    if flags & libc::MSG_EXCEPT != 0 && mtype > 0 {
        op = op.with(EXCEPT);
    }
    // No message is longer, so that a larger buffer makes no difference.
    op.mask = size.min(MSGMAX as u64) as u32 | if flags & libc::MSG_NOERROR != 0 { NOERROR } else { 0 };
    let mut len = 0;
    let mut taken = |error| {
        if error != 0 {
            return;
        }
        let mtype;
        [len, mtype, _] = me().out;
        store(message, mtype);
        // The message is gone all the same.
        if writable(message + 8, len as u64) < len as u64 {
            guard::fail();
            model().unstage(local().cur, &mut []);
        } else if len > 0 {
            model().unstage(local().cur, bytes_mut(message + 8, len as usize));
        } else {
            model().unstage(local().cur, &mut []);
        }
        model().queue_dated(queue, 1, date());
    };
    let mut error = ENOMSG;
    if machine().waits_are_told(queue) && !op.tries() {
        error = gate::pass_then(op.with(TRY), &mut taken);
        op = op.with(PARTIAL);
    }
    if error == ENOMSG {
        error = gate::pass_then(op, &mut taken);
    }
    if error != 0 {
        return error;
    }
    len
}

/// msgrcv with MSG_COPY (ipc/msg.c, do_msgrcv): `place` is where the message stands. The kernel makes one of the buffer first, and
/// copies the other into that, which has to have room for it.
fn copy(id: i32, to: u64, size: u64, place: i64, flags: i32) -> i64 {
    let room = size.min(MSGMAX.into());
    touch(to + 8, room);
    let Some(queue) = find(id) else { return EINVAL };
    if !permits(queue, READ) {
        return EACCES;
    }
    // No queue has so many.
    let place = if (0..1 << 40).contains(&place) { place } else { -1 };
    let error = gate::pass(on_queue(Kind::MSG_CTL, queue).arg(place << 8 | i64::from(COPY.0)).with(TRY));
    if error != 0 {
        return error;
    }
    let Some(message) = world().nth_message(queue, place) else { return ENOMSG };
    let len = u64::from(message.len);
    if len > room {
        return if flags & libc::MSG_NOERROR == 0 { E2BIG } else { EINVAL };
    }
    store(to, message.mtype);
    if writable(to + 8, len) < len {
        return EFAULT;
    }
    if len > 0 {
        world().peek(message, bytes_mut(to + 8, len as usize));
    }
    len as i64
}

fn pass_control(queue: ObjId, what: Ctl, value: i64) -> Result<(), i64> {
    match gate::pass(on_queue(Kind::MSG_CTL, queue).arg(value << 8 | what.0 as i64)) {
        0 => Ok(()),
        error => Err(error),
    }
}

fn control(id: i32, command: i32, buffer: u64) -> i64 {
    let known = matches!(command, libc::IPC_STAT | libc::IPC_SET | libc::IPC_RMID);
    if id < 0 || command < 0 {
        return EINVAL;
    }
    if !known {
        if matches!(command, libc::IPC_INFO | 11..=13) {
            end::unsupported(&[
                b"msgctl with IPC_INFO, MSG_STAT, MSG_INFO or MSG_STAT_ANY (command ",
                &decimal(command),
                b")",
            ]);
        }
        return EINVAL;
    }
    if command == libc::IPC_SET {
        touch(buffer, at::SIZE as u64);
    }
    let Some(queue) = find(id) else { return EINVAL };
    let done = match command {
        libc::IPC_RMID => pass_control(queue, Ctl::REMOVE, 0),
        libc::IPC_SET => set(queue, buffer),
        _ => stat(queue, buffer),
    };
    done.err().unwrap_or(0)
}

/// Offsets in struct msqid_ds.
mod at {
    pub const KEY: u64 = 0;
    pub const UID: u64 = 4;
    pub const GID: u64 = 8;
    pub const CUID: u64 = 12;
    pub const CGID: u64 = 16;
    pub const MODE: u64 = 20;
    pub const DATES: u64 = 48;
    pub const BYTES: u64 = 72;
    pub const COUNT: u64 = 80;
    pub const LIMIT: u64 = 88;
    pub const SENDER: u64 = 96;
    pub const RECEIVER: u64 = 100;
    pub const SIZE: usize = 120;
}

fn stat(queue: ObjId, buffer: u64) -> Result<(), i64> {
    if !permits(queue, READ) {
        return Err(EACCES);
    }
    pass_control(queue, Ctl::ACCESS, 0)?;
    // Whether a receiver has slept shows in who it was.
    if (0..world().threads.len).any(|t| world().threads[t].vtid != world().procs[world().threads[t].pid].vpid) {
        machine().ask_who_waits(queue);
    }
    let (record, object) = (world().message_queue(queue), world().objects[queue]);
    let (uid, gid) = (raw!(libc::SYS_geteuid) as u32, raw!(libc::SYS_getegid) as u32);
    zero(buffer, at::SIZE);
    store(buffer + at::KEY, record.key);
    store(buffer + at::UID, uid);
    store(buffer + at::GID, gid);
    store(buffer + at::CUID, uid);
    store(buffer + at::CGID, gid);
    store(buffer + at::MODE, record.mode);
    for (i, date) in record.dates.iter().enumerate() {
        store(buffer + at::DATES + 8 * i as u64, *date);
    }
    store(buffer + at::BYTES, object.value as u64);
    store(buffer + at::COUNT, object.count as u64);
    store(buffer + at::LIMIT, record.limit);
    store(buffer + at::SENDER, record.sender);
    store(buffer + at::RECEIVER, record.receiver);
    Ok(())
}

fn set(queue: ObjId, buffer: u64) -> Result<(), i64> {
    let (limit, mode): (u64, u32) = (load(buffer + at::LIMIT), load(buffer + at::MODE));
    if limit > MSGMNB && !has_capability(CAP_SYS_RESOURCE) {
        return Err(EPERM);
    }
    let owner = [load::<u32>(buffer + at::UID), load::<u32>(buffer + at::GID)];
    if owner != [raw!(libc::SYS_geteuid) as u32, raw!(libc::SYS_getegid) as u32] {
        end::unsupported(&[b"msgctl IPC_SET that gives a message queue to another user or group"]);
    }
    // Larger than any queue gets; the operation keeps 56 bits.
    pass_control(queue, SET_SIZE, limit.min(1 << 40) as i64)?;
    model().queue_set_mode(queue, mode & 0o777, date());
    Ok(())
}

/// Whether the kernel grants this process a capability (below 32).
pub fn has_capability(number: u32) -> bool {
    const VERSION_3: u32 = 0x2008_0522;
    let header = [VERSION_3, 0];
    let mut sets = [0u32; 6];
    let result = raw!(libc::SYS_capget, header.as_ptr(), sets.as_mut_ptr());
    result == 0 && sets[0] >> number & 1 != 0
}
