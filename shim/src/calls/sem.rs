//! POSIX semaphores.

use vsrun_model::arena::POOL_ADDR;
use vsrun_model::{op, Key, Kind, ObjKind, Op};

use super::used::{site, used};
use super::{fd, shm, sync, thread};
use crate::gate::{self, end, inject, me, mirror, model, world, POOL_REGION};
use crate::sys::errno::*;
use crate::sys::{cstr, ret, store};

/// The function that waits, and the one that posts.
const WAITS: u32 = site("sem_wait");
const POSTS: u32 = site("sem_post");

/// Performs an operation on the semaphore at `s`, by the function of that number; `shape` adds flags or a deadline. The result is as libc gives it.
fn pass(kind: Kind, site: u32, s: u64, shape: impl FnOnce(Op) -> Result<Op, i64>) -> i32 {
    used(s, site);
    let id = sync::sem(s);
    let result = match shape(Op::on(kind, id)) {
        Ok(op) => gate::pass(op),
        Err(error) => error,
    };
    mirror::sem(s, id);
    ret(result) as i32
}

/// sem_wait and its like.
pub fn wait(s: u64, shape: impl FnOnce(Op) -> Result<Op, i64>) -> i32 {
    thread::cancellation_point();
    inject::interrupts();
    let result = pass(Kind::SEM_WAIT, WAITS, s, |op| shape(op.with(op::CANCEL_POINT)));
    if result != 0 {
        thread::cancellation_point();
    }
    result
}

/// sem_trywait.
pub fn try_wait(s: u64) -> i32 {
    pass(Kind::SEM_WAIT, WAITS, s, |op| Ok(op.with(op::TRY)))
}

/// sem_post.
pub fn post(s: u64) -> i32 {
    pass(Kind::SEM_POST, POSTS, s, Ok)
}

/// sem_init.
pub fn init(s: u64, shared: bool, value: u32) -> i32 {
    if value > i32::MAX as u32 {
        return ret(EINVAL) as i32;
    }
    sync::sem_init(s, shared, value);
    0
}

/// sem_destroy.
pub fn destroy(s: u64) -> i32 {
    used(s, const { site("sem_destroy") });
    ret(gate::pass(Op::on(Kind::SEM_DESTROY, sync::sem(s)))) as i32
}

/// sem_getvalue.
pub fn value(s: u64, value: u64) -> i32 {
    let result = pass(Kind::SEM_GET, const { site("sem_getvalue") }, s, Ok);
    store(value, me().out[0] as i32);
    result
}

fn plain_name<'a>(name: u64) -> Option<&'a [u8]> {
    let name = cstr(name, 4096);
    let name = name.strip_prefix(b"/").unwrap_or(name);
    (!name.is_empty() && name.len() < 252 && !name.contains(&b'/')).then_some(name)
}

fn fail(error: i64) -> u64 {
    ret(error);
    0
}

/// sem_open: the semaphore's address, or 0.
pub fn open(name: u64, flags: i32, value: u32) -> u64 {
    let Some(name) = plain_name(name) else { return fail(EINVAL) };
    // libc opens a file for it.
    if let Err(error) = fd::needs_number() {
        return fail(error);
    }
    gate::pass(Op::on(Kind::NAME, sync::names()));
    if let Some(id) = world().name_find(ObjKind::SEM, name) {
        if flags & libc::O_CREAT != 0 && flags & libc::O_EXCL != 0 {
            return fail(EEXIST);
        }
        return POOL_ADDR + world().objects[id].key.addr;
    }
    if flags & libc::O_CREAT == 0 {
        return fail(ENOENT);
    }
    if value > i32::MAX as u32 {
        return fail(EINVAL);
    }
    let addr = shm::named_sem();
    let key = Key::new(POOL_REGION, ObjKind::SEM, addr - POOL_ADDR);
    match model().sem_new(key, value as i32) {
        Some(id) if model().name_add(name, id) => {
            sync::sem_named(addr);
            mirror::sem(addr, id);
            addr
        }
        _ => end::no_room(&[b"the program uses more named semaphores than vsrun can hold"]),
    }
}

/// sem_unlink.
pub fn unlink(name: u64) -> i32 {
    let Some(name) = plain_name(name) else { return ret(ENOENT) as i32 };
    gate::pass(Op::on(Kind::NAME, sync::names()));
    if model().name_remove(ObjKind::SEM, name) {
        return 0;
    }
    ret(ENOENT) as i32
}
