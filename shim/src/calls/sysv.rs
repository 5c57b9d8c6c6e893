//! SysV semaphore sets: the arguments of the calls; what they mean is the model's.

use vsrun_model::op::{pack_semops, PARTIAL, TELLS_LAST, TELLS_WAITS, TRY};
use vsrun_model::{Ctl, Kind, ObjId, ObjKind, Op, SemBuf, IPC_NOWAIT, MAX_SEMBUF, NOWAIT, SEVERAL_OPS};

use super::{sync, time};
use crate::gate::{self, end, inject, local, machine, model, world};
use crate::sys::errno::*;
use crate::sys::{decimal, load, raw, store, touch, zero};

const SEMMSL: i64 = 32000;
const SEMOPM: u64 = 500;

/// semget, semop, semtimedop, semctl.
pub fn call(nr: i64, a: [u64; 6]) -> i64 {
    match nr {
        libc::SYS_semget => get(a[0] as i32, a[1] as i32 as i64, a[2] as i32),
        libc::SYS_semop => operate(a[0] as u32, a[1], a[2], 0),
        libc::SYS_semtimedop => operate(a[0] as u32, a[1], a[2], a[3]),
        _ => control(a[0] as u32, a[1] as u32, a[2] as i32 & !0x100, a[3]),
    }
}

fn get(key: i32, n: i64, flags: i32) -> i64 {
    if key != libc::IPC_PRIVATE {
        gate::pass(Op::on(Kind::NAME, sync::names()));
        let name = key.to_ne_bytes();
        if let Some(set) = world().name_find(ObjKind::SYSV, &name) {
            let both = libc::IPC_CREAT | libc::IPC_EXCL;
            let object = &world().objects[set];
            return match () {
                _ if flags & both == both => EEXIST,
                _ if n > object.count as i64 => EINVAL,
                _ => object.key.addr as i64,
            };
        }
        if flags & libc::IPC_CREAT == 0 {
            return ENOENT;
        }
    }
    if n <= 0 || n > SEMMSL {
        return EINVAL;
    }
    let id = next_set();
    let Some(set) = model().sysv_make(id, n as u32) else {
        end::no_room(&[b"the program uses more SysV semaphores than vsrun can hold"])
    };
    model().sysv_name(set, key, flags as u32 & 0o777);
    if key != libc::IPC_PRIVATE && !model().name_add(&key.to_ne_bytes(), set) {
        end::no_room(&[b"the program uses more names than vsrun can hold"]);
    }
    id as i64
}

fn next_set() -> u32 {
    let sets = world().objects.as_slice().iter().filter(|o| o.key.kind == ObjKind::SYSV);
    sets.map(|o| o.key.addr as u32 + 1).max().unwrap_or(0)
}

fn operate(id: u32, ops: u64, n: u64, timeout: u64) -> i64 {
    // The kernel copies the timeout and the operations before it looks at anything else.
    if timeout != 0 {
        touch(timeout, 16);
    }
    if n > SEMOPM {
        return E2BIG;
    }
    if n == 0 {
        return EINVAL;
    }
    touch(ops, 6 * n);
    if timeout != 0 && time::timespec(timeout).is_none() {
        return EINVAL;
    }
    let Some(set) = sync::by_id(ObjKind::SYSV, id.into()) else { return EINVAL };
    if n as usize > MAX_SEMBUF {
        end::unsupported(&[b"a semop with more than 64 operations"]);
    }
    let mut op = Op::on(Kind::SYSV_OP, set);
    let mut all = [SemBuf::default(); MAX_SEMBUF];
    let all = &mut all[..n as usize];
    for (i, one) in all.iter_mut().enumerate() {
        *one = load(ops + 6 * i as u64);
        op.mask |= 1 << (one.num % 32);
        if one.flags & IPC_NOWAIT != 0 {
            op = op.with(NOWAIT);
        }
    }
    // One that only adds never waits.
    let interrupted = !op.tries() && all.iter().any(|one| one.op <= 0) && inject::interrupts();
    if interrupted {
        all.iter_mut().for_each(|one| one.flags |= IPC_NOWAIT);
        op = op.with(NOWAIT);
    }
    model().set_semops(local().cur, all);
    op.arg = all[0].op as i64;
    if n > 1 {
        op = op.with(SEVERAL_OPS).arg(pack_semops(all).unwrap_or(0));
    }
    if timeout != 0 {
        let Some(ns) = time::timespec(timeout) else { return EINVAL };
        op = op.until(time::relative(ns));
    }
    if machine().is_asked(set) {
        op = op.with(TELLS_LAST);
    }
    if machine().waits_are_told(set) {
        op = op.with(TELLS_WAITS);
    }
    if machine().waits_are_told(set) && !op.tries() {
        match gate::pass(op.with(TRY)) {
            EAGAIN => op = op.with(PARTIAL),
            result => return result,
        }
    }
    match gate::pass(op) {
        EAGAIN if interrupted => EINTR,
        result => result,
    }
}

/// semctl on `set`.
fn on_set(set: ObjId) -> Op {
    let op = Op::on(Kind::SYSV_CTL, set);
    if machine().waits_are_told(set) {
        op.with(TELLS_LAST)
    } else {
        op
    }
}

fn pass_access(set: ObjId) -> Result<(), i64> {
    match gate::pass(on_set(set).arg(Ctl::ACCESS.0 as i64)) {
        0 => Ok(()),
        error => Err(error),
    }
}

fn control(id: u32, num: u32, command: i32, arg: u64) -> i64 {
    const STATS: [i32; 4] = [libc::IPC_INFO, 18, 19, 20];
    if STATS.contains(&command) {
        end::unsupported(&[
            b"semctl with IPC_INFO, SEM_STAT, SEM_INFO or SEM_STAT_ANY (command ",
            &decimal(command),
            b")",
        ]);
    }
    if !matches!(command, libc::IPC_RMID | libc::IPC_SET | libc::IPC_STAT | libc::GETPID..=libc::SETALL) {
        return EINVAL;
    }
    let Some(set) = sync::by_id(ObjKind::SYSV, id.into()) else { return EINVAL };
    let count = world().objects[set].count;
    let indexed = matches!(command, libc::GETVAL | libc::SETVAL | libc::GETPID | libc::GETNCNT | libc::GETZCNT);
    if indexed && num >= count {
        return EINVAL;
    }
    if command == libc::SETVAL {
        let mut op = on_set(set).arg((arg as i32 as i64) << 8 | Ctl::SET_VALUE.0 as i64);
        op.obj2 = num;
        return gate::pass(op);
    }
    if command == libc::IPC_RMID {
        return gate::pass(on_set(set).arg(Ctl::REMOVE.0 as i64));
    }
    match command {
        libc::SETALL => touch(arg, 2 * u64::from(count)),
        libc::IPC_SET => touch(arg, 104),
        _ => {}
    }
    if let Err(error) = pass_access(set) {
        return error;
    }
    match command {
        libc::GETVAL => world().sysv_value(set, num).value as i64,
        libc::GETPID => {
            machine().ask(set);
            world().sysv_value(set, num).vpid as i64
        }
        libc::GETNCNT | libc::GETZCNT => {
            machine().ask_who_waits(set);
            i64::from(world().sysv_waiting(set, num, command == libc::GETZCNT))
        }
        libc::GETALL => {
            for i in 0..count {
                store(arg + 2 * i as u64, world().sysv_value(set, i).value as u16);
            }
            0
        }
        libc::SETALL => {
            if (0..count).any(|i| load::<u16>(arg + 2 * i as u64) > 32767) {
                return ERANGE;
            }
            for i in 0..count {
                let value = load::<u16>(arg + 2 * i as u64) as i32;
                model().sysv_set(local().cur, set, i, value);
            }
            model().sysv_settled(set);
            0
        }
        libc::IPC_STAT => {
            let record = world().sysv_set_record(set);
            let date = |ns: u64| if ns == 0 { 0 } else { time::date_of(ns) };
            zero(arg, 104);
            store(arg, record.key);
            let (uid, gid) = (raw!(libc::SYS_geteuid) as u32, raw!(libc::SYS_getegid) as u32);
            store(arg + 4, [uid, gid, uid, gid, record.mode]);
            store(arg + 48, date(record.dates[0]));
            store(arg + 64, date(record.dates[1]));
            store(arg + 80, count as u64);
            0
        }
        _ => {
            let owner: [u32; 2] = load(arg + 4);
            if owner != [raw!(libc::SYS_geteuid) as u32, raw!(libc::SYS_getegid) as u32] {
                end::unsupported(&[b"semctl IPC_SET that gives a set to another user or group"]);
            }
            model().sysv_set_mode(set, load::<u32>(arg + 20) & 0o777);
            0
        }
    }
}
