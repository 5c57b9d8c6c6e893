//! Who is told of input on a descriptor, and by which signal: F_SETOWN and its like. Asking for these signals (O_ASYNC) is refused,
//! so that all of this is only kept and given back. The kernel keeps it for files, by its own numbers.

use vsrun_model::fd::{DescId, Owner};
use vsrun_model::{Kind, Op, Pid, ProcState};

use super::{fd, files};
use crate::gate::{self, end, local, me, model, world};
use crate::sys::errno::*;
use crate::sys::{load, store};

const F_SETSIG: i32 = 10;
const F_GETSIG: i32 = 11;
const F_SETOWN_EX: i32 = 15;
const F_GETOWN_EX: i32 = 16;

/// Such a command of fcntl.
pub fn concerns(command: i32) -> bool {
    matches!(command, libc::F_SETOWN | libc::F_GETOWN | F_SETOWN_EX | F_GETOWN_EX)
}

/// fcntl of a descriptor of the model. `None`: the command is another one.
pub fn control(desc: DescId, a: [u64; 6]) -> Option<i64> {
    let command = a[1] as i32;
    if !concerns(command) && !matches!(command, F_SETSIG | F_GETSIG) {
        return None;
    }
    if let F_GETSIG | F_SETSIG = command {
        if command == F_SETSIG && a[2] > 64 {
            return Some(EINVAL);
        }
        fd::settle(desc);
        if command == F_GETSIG {
            return Some(world().owner_of(desc).signal.into());
        }
        model().desc_set_owner(desc, Owner { signal: a[2] as u8, ..world().owner_of(desc) });
        return Some(0);
    }
    Some(match asked(command, a[2]) {
        Ok(Some((kind, id))) => {
            fd::settle(desc);
            model().desc_set_owner(desc, Owner { kind, id, ..world().owner_of(desc) });
            0
        }
        Ok(None) => {
            fd::settle(desc);
            let owner = world().owner_of(desc);
            // One that has been waited for is nobody.
            let id = if find(owner.kind, owner.id).is_ok() { owner.id } else { 0 };
            tell(command, a[2], owner.kind, id)
        }
        Err(error) => error,
    })
}

/// fcntl of a file.
pub fn of_file(a: [u64; 6]) -> i64 {
    let command = a[1] as i32;
    let call = |command: i32, argument: u64| files::call(libc::SYS_fcntl, [a[0], command as u64, argument, 0, 0, 0]);
    let real = |p: Pid| world().procs[p].own.real_pid;
    match asked(command, a[2]) {
        Err(error) if fd::is_open(a[0]) => error,
        Err(_) => EBADF,
        Ok(Some((_, 0))) => call(libc::F_SETOWN, 0),
        Ok(Some((Owner::GROUP, _))) => end::unsupported(&[b"fcntl(F_SETOWN) of a file to a process group"]),
        Ok(Some((kind, id))) => match find(kind, id) {
            // Whether the kernel still has its number is not up to the program.
            Ok(p) if world().procs[p].state != ProcState::LIVE => {
                end::unsupported(&[b"fcntl(F_SETOWN) of a file to a process that has ended"])
            }
            Ok(p) => {
                let owner = [i32::from(kind), real(p)];
                call(F_SETOWN_EX, owner.as_ptr() as u64)
            }
            Err(error) => error,
        },
        Ok(None) => {
            let mut owner = [0i32; 2];
            let result = call(F_GETOWN_EX, owner.as_mut_ptr() as u64);
            if result < 0 {
                return result;
            }
            let known =
                |p: &&vsrun_model::Process| owner[1] > 0 && p.own.real_pid == owner[1] && p.state != ProcState::REAPED;
            let id = world().procs.as_slice().iter().find(known).map_or(0, |p| p.vpid);
            tell(command, a[2], owner[0] as u8, id)
        }
    }
}

/// The owner that is to be set: its kind and id. `None`: it is asked for.
fn asked(command: i32, argument: u64) -> Result<Option<(u8, i32)>, i64> {
    let (kind, id) = match command {
        libc::F_SETOWN if argument as i32 == i32::MIN => return Err(EINVAL),
        libc::F_SETOWN if (argument as i32) < 0 => (Owner::GROUP, -(argument as i32)),
        libc::F_SETOWN => (Owner::PROCESS, argument as i32),
        F_SETOWN_EX => match load::<[i32; 2]>(argument) {
            [kind @ 0..=2, id] => (kind as u8, id),
            _ => return Err(EINVAL),
        },
        _ => return Ok(None),
    };
    if id != 0 {
        let p = match kind {
            Owner::GROUP if world().procs[local().pid].pgid == id => Some(local().pid),
            Owner::GROUP => None,
            _ => world().process_named(id),
        };
        // Whether it is there still is a question of who came first, also of another thread.
        let stays = kind == Owner::GROUP || id == world().procs[local().pid].vpid || id == me().vtid;
        if p != Some(local().pid) || !stays {
            gate::pass(Op::on(Kind::KILL, p.unwrap_or(u32::MAX)));
        }
        find(kind, id)?;
    }
    Ok(Some((kind, id)))
}

/// A process that an owner stands for.
fn find(kind: u8, id: i32) -> Result<Pid, i64> {
    let member = |p: &Pid| world().procs[*p].state != ProcState::REAPED && world().procs[*p].pgid == id;
    match kind {
        Owner::GROUP => (0..world().procs.len).find(member),
        Owner::THREAD => files::thread_with_id(id).map(|t| world().threads[t].pid),
        _ => world().process_by_id(id),
    }
    .ok_or(ESRCH)
}

fn tell(command: i32, at: u64, kind: u8, id: i32) -> i64 {
    match command {
        F_GETOWN_EX => {
            store(at, [i32::from(kind), id]);
            0
        }
        _ if kind == Owner::GROUP => -i64::from(id),
        _ => id.into(),
    }
}

/// FIOSETOWN, SIOCSPGRP and what asks for the same, of a socket.
pub fn ioctl(desc: DescId, a: [u64; 6]) -> Option<i64> {
    const SET: [u64; 2] = [0x8901, 0x8902];
    const GET: [u64; 2] = [0x8903, 0x8904];
    let request = a[1] & 0xffff_ffff;
    if SET.contains(&request) {
        let id: i32 = load(a[2]);
        return control(desc, [a[0], libc::F_SETOWN as u64, id as u64, 0, 0, 0]);
    }
    if GET.contains(&request) {
        let id = control(desc, [a[0], libc::F_GETOWN as u64, 0, 0, 0, 0])?;
        store(a[2], id as i32);
        return Some(0);
    }
    None
}
