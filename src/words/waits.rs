//! Who holds what and who waits for what, read off a world that stands still.

use vsrun_model::channel::{ChanId, ChanKind};
use vsrun_model::epoll::{flag, Watch};
use vsrun_model::fd::{poll, DescId};
use vsrun_model::object::{NONE, PREFER_WRITER};
use vsrun_model::op::VARIANT;
use vsrun_model::{Kind, ObjId, ObjKind, Object, Op, Pid, ProcState, Thread, ThreadState, Tid, World};

use super::common::{abridged, hopeless, if_over, processes};
use super::ops::signal_set;
use super::{channels, locks, sockets};
use crate::finding::{words, Word, Words};

/// The locks that `t` holds.
pub fn holds(world: &World, t: Tid) -> Vec<Words> {
    let objects = world.objects.as_slice().iter().zip(0..);
    objects.filter_map(|(object, id)| hold(world, t, object, id).map(|how| words![Word::Object(id), how])).collect()
}

fn hold(world: &World, t: Tid, object: &Object, id: ObjId) -> Option<Words> {
    let owns = object.owner == t;
    match object.key.kind {
        ObjKind::MUTEX if owns && object.count > 1 => Some(words![" (", object.count, " times)"]),
        ObjKind::MUTEX | ObjKind::SPIN if owns => Some(Words::default()),
        ObjKind::RWLOCK if owns => Some(" (for writing)".into()),
        ObjKind::RWLOCK => world.read_holds(id).find(|(reader, _)| *reader == t).map(|_| " (for reading)".into()),
        ObjKind::ONCE if owns => Some(" (runs its initializer)".into()),
        _ => None,
    }
}

/// What must happen before `t` can go on; empty if nothing must.
pub fn waits_for(world: &World, t: Tid) -> Vec<Words> {
    let thread = &world.threads[t];
    if thread.state != ThreadState::PARKED || world.choices(t) > 0 {
        return Vec::new();
    }
    let op = &thread.pending;
    let name = Word::Object;
    let object = world.objects.get(op.obj);
    let process = &world.procs[thread.pid];
    if process.stopped != 0 {
        let by: Words = match world.threads.contains(process.stopper) {
            true => Word::Thread(process.stopper).into(),
            false => "?".into(),
        };
        let signal = Word::Signal(process.stopped.into());
        let whose = Word::Process(thread.pid);
        return vec![words!["SIGCONT for process ", whose, ", which thread ", by, " has stopped by ", signal]];
    }
    let hope = || hopeless(world, t);
    match (op.kind, object) {
        (Kind::SIGSUSPEND, _) => vec![words!["a signal that it does not block", hope()]],
        (Kind::SIGWAIT, _) => vec![words![signal_set(op.arg as u64), hope()]],
        (Kind::JOIN, _) => vec![words!["the end of thread ", Word::Thread(op.obj)]],
        (Kind::WAIT, _) => vec![children(world, t)],
        (Kind::SLEEP, _) => vec!["time to pass".into()],
        (Kind::YIELD, _) => vec!["another thread to move".into()],
        (Kind::MUTEX_LOCK | Kind::SPIN_LOCK | Kind::ONCE | Kind::FUTEX_PI_WAIT, _) => vec![held(world, t, op.obj)],
        (Kind::RW_RDLOCK | Kind::RW_WRLOCK | Kind::RW_WRWAIT, Some(_)) => rwlock(world, t),
        (Kind::COND_WAKE, _) if thread.woken => vec![held(world, t, op.obj2)],
        (Kind::COND_WAKE, _) => vec![words![name(op.obj), " to be signalled", hope()]],
        (Kind::FUTEX_SLEEP, _) => vec![words![name(op.obj), " to be woken", hope()]],
        (Kind::BARRIER_WAKE, Some(b)) => {
            vec![words![name(op.obj), ", where ", b.n_waiters, " of ", b.count, " have arrived"]]
        }
        (Kind::COND_DESTROY | Kind::BARRIER_DESTROY, Some(o)) => {
            vec![words!["nobody to wait on ", name(op.obj), " any more (", o.n_waiters, " do)"]]
        }
        (Kind::SEM_WAIT, _) => vec![words![name(op.obj), " to be posted (its value is 0)", hope()]],
        (Kind::SYSV_OP, Some(_)) => semaphores(world, thread),
        (Kind::FD_READ | Kind::FD_WRITE | Kind::FD_ACCEPT | Kind::FD_CONNECT | Kind::FD_SEND, _)
            if sockets::waits(world, t, op).is_some() =>
        {
            sockets::waits(world, t, op).into_iter().collect()
        }
        (Kind::RECORD_LOCK | Kind::FLOCK, Some(_)) => locks::in_the_way(world, t),
        (Kind::MSG_SEND | Kind::MSG_RECEIVE, Some(_)) => vec![channels::queue(world, t)],
        (Kind::MQ_SEND | Kind::MQ_RECEIVE, Some(_)) => vec![channels::posix_queue(world, t)],
        (Kind::FD_READ | Kind::FD_WRITE, _) => {
            world.channel_of(op.obj).map(|c| channel(world, c, op)).into_iter().collect()
        }
        (Kind::FD_POLL, _) => polled(world, thread),
        (Kind::FD_OPENED, _) => {
            let other = if op.has(VARIANT) { "writing" } else { "reading" };
            vec![words![name(op.obj), " to be opened for ", other, hope()]]
        }
        (Kind::FD_WAIT, _) => world.channel_of(op.obj).map(|c| watched(world, c)).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// What a read or write of a channel waits for, and who could bring it about.
fn channel(world: &World, id: ChanId, op: &Op) -> Words {
    let name = Word::Object(op.obj);
    let channel = &world.channels[id];
    match channel.kind {
        ChanKind::COUNTER if op.kind == Kind::FD_READ => return words![name, " to be written to (its value is 0)"],
        ChanKind::COUNTER => {
            return words![name, " to be read (its value is ", channel.value, ", and ", op.arg, " more is too much)"]
        }
        ChanKind::TIMER => return words![name, " to be set"],
        ChanKind::SIGNALS => return words!["a signal of ", name],
        _ => {}
    }
    let holders = |write: bool| {
        let all: Vec<Pid> = world.holders(id, write).collect();
        match all.len() {
            0 | 1 => processes(&all),
            _ => words!["processes ", abridged(all.iter().map(|&p| Word::Process(p).into()))],
        }
    };
    if op.kind == Kind::FD_READ {
        return words!["something in ", name, ", which is empty (its end for writing is open in ", holders(true), ")"];
    }
    let room = words!["room for ", op.arg, " bytes in ", name, ", which holds ", channel.len()];
    words![room, " (its end for reading is open in ", holders(false), ")"]
}

/// The descriptions that a poll waits for.
fn polled(world: &World, thread: &Thread) -> Vec<Words> {
    let asked = &thread.polled[..(thread.n_polled as usize).min(thread.polled.len())];
    asked.iter().filter_map(|p| event_of(world, p.desc, p.events)).collect()
}

/// What an epoll instance waits for.
fn watched(world: &World, epoll: ChanId) -> Vec<Words> {
    let watches = world.watches.as_slice().iter().filter(|w| w.epoll == epoll);
    let one = |w: &Watch| {
        let waits = match (w.enabled(), w.events & flag::EDGE != 0) {
            (false, _) => " (reported once, and not set again)",
            (true, true) => " (edge-triggered)",
            (true, false) => "",
        };
        Some(words![event_of(world, w.desc, w.events as u16)?, waits])
    };
    let all: Vec<Words> = watches.filter_map(one).collect();
    match all.is_empty() {
        true => vec!["an event, but it watches nothing".into()],
        false => all,
    }
}

/// Events of a description.
fn event_of(world: &World, desc: DescId, events: u16) -> Option<Words> {
    let desc = world.descs.get(desc)?;
    let words: Vec<&str> = [(poll::IN, "input"), (poll::OUT, "room")]
        .into_iter()
        .filter(|(bit, _)| events & bit != 0)
        .map(|(_, word)| word)
        .collect();
    let channel = if desc.input == NONE { desc.output } else { desc.input };
    let object = world.channel_obj(channel);
    let what: Words = if object == NONE { desc.kind.name().into() } else { Word::Object(object).into() };
    let words = if words.is_empty() { "an event".to_string() } else { words.join(" or ") };
    Some(words![words, " of ", what])
}

/// A lock and its owner.
fn held(world: &World, t: Tid, id: ObjId) -> Words {
    let lock = Word::Object(id);
    match world.objects.get(id).map_or(NONE, |o| o.owner) {
        NONE => lock.into(),
        owner if owner == t => words![lock, ", which it holds itself"],
        owner => words![lock, ", held by thread ", Word::Thread(owner), if_over(world, owner)],
    }
}

fn rwlock(world: &World, t: Tid) -> Vec<Words> {
    let op = &world.threads[t].pending;
    let lock = &world.objects[op.obj];
    if lock.owner != NONE {
        return vec![words![held(world, t, op.obj), " for writing"]];
    }
    let name = || Word::Object(op.obj);
    if op.kind == Kind::RW_RDLOCK && lock.flags & PREFER_WRITER != 0 {
        let waiting =
            |&&w: &&Tid| world.threads[w].pending.kind == Kind::RW_WRWAIT && world.threads[w].pending.obj == op.obj;
        let writers = world.live.as_slice().iter().filter(waiting);
        return writers.map(|&w| words![name(), ", where the writer ", Word::Thread(w), " waits first"]).collect();
    }
    let reader = |(r, _): (Tid, u32)| match r == t {
        true => words![name(), ", which it holds itself for reading"],
        false => words![name(), ", held by thread ", Word::Thread(r), " for reading", if_over(world, r)],
    };
    world.read_holds(op.obj).map(reader).collect()
}

/// The semaphores of a set that a semop cannot pass.
fn semaphores(world: &World, thread: &Thread) -> Vec<Words> {
    let set = thread.pending.obj;
    let operations = &thread.sembuf[..(thread.n_sembuf as usize).min(thread.sembuf.len())];
    let blocked = operations.iter().filter_map(|o| {
        let semaphore = world.sysv_value(set, o.num.into());
        let wanted = match o.op {
            0 if semaphore.value != 0 => "become 0".to_string(),
            op if semaphore.value + i32::from(op) < 0 => format!("reach {}", -i32::from(op)),
            _ => return None,
        };
        let last =
            if semaphore.vpid == 0 { String::new() } else { format!(", last changed by process {}", semaphore.vpid) };
        Some(words!["[", o.num, "] of ", Word::Object(set), " to ", wanted, " (it is ", semaphore.value, last, ")"])
    });
    blocked.collect()
}

fn children(world: &World, t: Tid) -> Words {
    let p = world.threads[t].pid;
    let selector = world.threads[t].pending.arg;
    let procs = world.procs.as_slice().iter().zip(0..);
    let awaited = procs.filter(|(c, _)| {
        c.parent == p && c.state == ProcState::LIVE && (selector <= 0 || selector == i64::from(c.vpid))
    });
    let mut list: Vec<Words> = awaited.map(|(_, child)| Word::Process(child).into()).collect();
    if list.len() > 8 {
        list.truncate(8);
        list.push("...".into());
    }
    match list.len() {
        1 => words!["the end of process ", list.remove(0)],
        _ => words!["the end of one of the processes ", Words::join(list, ", ")],
    }
}

#[cfg(test)]
#[path = "waits_tests.rs"]
mod tests;
