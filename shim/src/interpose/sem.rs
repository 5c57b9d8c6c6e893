//! sem_* and the System V semaphore functions.

use vsrun_model::inject::EINTR;
use vsrun_model::object::{Key, ObjKind};
use vsrun_model::{op, Kind, Op};

use super::{thread, timed};
use crate::local::{me, world, POOL_REGION};
use crate::sys::{bytes_mut, cstr, ret, ret_errno, set_errno, store};
use crate::{end, gate, inject, shm, sync, sysv};

fn pass(kind: Kind, s: u64, shape: impl FnOnce(Op) -> Result<Op, i32>) -> i32 {
    let id = sync::sem(s);
    let result = match shape(Op::on(kind, id)) {
        Ok(op) => gate::pass(op),
        Err(error) => error as i64,
    };
    sync::sem_mirror(s, id);
    ret_errno(result)
}

fn wait(s: u64, shape: impl FnOnce(Op) -> Result<Op, i32>) -> i32 {
    thread::cancellation_point();
    if inject::strikes(EINTR) {
        return ret_errno(libc::EINTR as i64);
    }
    let result = pass(Kind::SEM_WAIT, s, |op| shape(op.with(op::CANCEL_POINT)));
    if result != 0 {
        thread::cancellation_point();
    }
    result
}

#[no_mangle]
extern "C" fn sem_init(s: u64, shared: i32, value: u32) -> i32 {
    if value > i32::MAX as u32 {
        set_errno(libc::EINVAL as i64);
        return -1;
    }
    sync::sem_init(s, shared != 0, value);
    0
}

#[no_mangle]
extern "C" fn sem_destroy(s: u64) -> i32 {
    gate::pass(Op::on(Kind::SEM_DESTROY, sync::sem(s))) as i32
}

#[no_mangle]
extern "C" fn sem_wait(s: u64) -> i32 {
    wait(s, Ok)
}

#[no_mangle]
extern "C" fn sem_timedwait(s: u64, abstime: u64) -> i32 {
    wait(s, |op| timed(op, libc::CLOCK_REALTIME, abstime))
}

#[no_mangle]
extern "C" fn sem_clockwait(s: u64, clock: i32, abstime: u64) -> i32 {
    wait(s, |op| timed(op, clock, abstime))
}

#[no_mangle]
extern "C" fn sem_trywait(s: u64) -> i32 {
    pass(Kind::SEM_WAIT, s, |op| Ok(op.with(op::TRY)))
}

#[no_mangle]
extern "C" fn sem_post(s: u64) -> i32 {
    pass(Kind::SEM_POST, s, Ok)
}

#[no_mangle]
extern "C" fn sem_getvalue(s: u64, value: u64) -> i32 {
    let result = pass(Kind::SEM_GET, s, Ok);
    store(value, me().out[0] as i32);
    result
}

fn plain_name<'a>(name: u64) -> Option<&'a [u8]> {
    let name = cstr(name, 4096);
    let name = name.strip_prefix(b"/").unwrap_or(name);
    (!name.is_empty() && name.len() < 252 && !name.contains(&b'/')).then_some(name)
}

/// `mode` and `value` are there only with O_CREAT; what the registers hold otherwise is not looked at.
#[no_mangle]
extern "C" fn sem_open(name: u64, flags: i32, _mode: u32, value: u32) -> u64 {
    let Some(name) = plain_name(name) else {
        set_errno(libc::EINVAL as i64);
        return 0;
    };
    gate::pass(Op::on(Kind::NAME, sync::names()));
    if let Some(id) = world().name_find(ObjKind::SEM, name) {
        if flags & libc::O_CREAT != 0 && flags & libc::O_EXCL != 0 {
            set_errno(libc::EEXIST as i64);
            return 0;
        }
        return vsrun_model::arena::POOL_ADDR + world().objects[id].key.addr;
    }
    if flags & libc::O_CREAT == 0 {
        set_errno(libc::ENOENT as i64);
        return 0;
    }
    if value > i32::MAX as u32 {
        set_errno(libc::EINVAL as i64);
        return 0;
    }
    let addr = shm::named_sem();
    let key = Key::new(POOL_REGION, ObjKind::SEM, addr - vsrun_model::arena::POOL_ADDR);
    let made = world().make(key, |o| o.value = value as i32);
    match made {
        Some(id) if world().name_add(name, id) => {
            bytes_mut(addr, 32).fill(0);
            sync::sem_mirror(addr, id);
            addr
        }
        _ => end::unsupported(&[b"the program uses more named semaphores than vsrun can hold"]),
    }
}

#[no_mangle]
extern "C" fn sem_close(_s: u64) -> i32 {
    0
}

#[no_mangle]
extern "C" fn sem_unlink(name: u64) -> i32 {
    let Some(name) = plain_name(name) else {
        set_errno(libc::ENOENT as i64);
        return -1;
    };
    gate::pass(Op::on(Kind::NAME, sync::names()));
    if world().name_remove(ObjKind::SEM, name) {
        return 0;
    }
    set_errno(libc::ENOENT as i64);
    -1
}

#[no_mangle]
extern "C" fn semop(id: i32, ops: u64, n: u64) -> i32 {
    ret(sysv::call(libc::SYS_semop, [id as u64, ops, n, 0, 0, 0])) as i32
}

#[no_mangle]
extern "C" fn semtimedop(id: i32, ops: u64, n: u64, timeout: u64) -> i32 {
    ret(sysv::call(libc::SYS_semtimedop, [id as u64, ops, n, timeout, 0, 0])) as i32
}

#[no_mangle]
extern "C" fn semget(key: i32, n: i32, flags: i32) -> i32 {
    ret(sysv::call(libc::SYS_semget, [key as u64, n as u64, flags as u64, 0, 0, 0])) as i32
}

#[no_mangle]
extern "C" fn semctl(id: i32, num: i32, command: i32, arg: u64) -> i32 {
    ret(sysv::call(libc::SYS_semctl, [id as u64, num as u64, command as u64, arg, 0, 0])) as i32
}
