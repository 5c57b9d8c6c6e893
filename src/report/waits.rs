//! Who holds what and who waits for what, read off a world that stands still.

use vsrun_model::channel::{ChanId, ChanKind};
use vsrun_model::epoll::{flag, Watch};
use vsrun_model::fd::{poll, DescId};
use vsrun_model::object::{NONE, PREFER_WRITER};
use vsrun_model::op::VARIANT;
use vsrun_model::{End, Kind, Misuse, ObjId, ObjKind, Object, Op, ProcState, Thread, ThreadState, Tid, World};

use super::sockets;
use super::views::{in_handler, pending_text, signal_name, signal_set, Names};
use super::{BugKind, CycleLink, ProgramStatus, ThreadStatus, ThreadView};

/// The locks that `t` holds.
pub fn holds(world: &World, t: Tid, names: &Names) -> Vec<String> {
    let objects = world.objects.as_slice().iter().zip(0..);
    objects.filter_map(|(object, id)| hold(world, t, object, id).map(|how| (names.object)(id) + &how)).collect()
}

fn hold(world: &World, t: Tid, object: &Object, id: ObjId) -> Option<String> {
    let owns = object.owner == t;
    match object.key.kind {
        ObjKind::MUTEX if owns && object.count > 1 => Some(format!(" ({} times)", object.count)),
        ObjKind::MUTEX | ObjKind::SPIN if owns => Some(String::new()),
        ObjKind::RWLOCK if owns => Some(" (for writing)".to_string()),
        ObjKind::RWLOCK => world.read_holds(id).find(|(reader, _)| *reader == t).map(|_| " (for reading)".to_string()),
        ObjKind::ONCE if owns => Some(" (runs its initializer)".to_string()),
        _ => None,
    }
}

/// What must happen before `t` can go on; empty if nothing must.
pub fn waits_for(world: &World, t: Tid, names: &Names) -> Vec<String> {
    let thread = &world.threads[t];
    if thread.state != ThreadState::PARKED || world.choices(t) > 0 {
        return Vec::new();
    }
    let op = &thread.pending;
    let name = |id: ObjId| (names.object)(id);
    let object = world.objects.get(op.obj);
    let process = &world.procs[thread.pid];
    if process.stopped != 0 {
        let by =
            if world.threads.contains(process.stopper) { (names.thread)(process.stopper) } else { "?".to_string() };
        let signal = signal_name(process.stopped.into());
        return vec![format!(
            "SIGCONT for process {}, which thread {by} has stopped by {signal}",
            (names.process)(thread.pid)
        )];
    }
    match (op.kind, object) {
        (Kind::SIGSUSPEND, _) => vec![format!("a signal that it does not block{}", hopeless(world, t))],
        (Kind::SIGWAIT, _) => vec![format!("{}{}", signal_set(op.arg as u64), hopeless(world, t))],
        (Kind::JOIN, _) => vec![format!("the end of thread {}", (names.thread)(op.obj))],
        (Kind::WAIT, _) => vec![children(world, t, names)],
        (Kind::SLEEP, _) => vec!["time to pass".to_string()],
        (Kind::YIELD, _) => vec!["another thread to move".to_string()],
        (Kind::MUTEX_LOCK | Kind::SPIN_LOCK | Kind::ONCE | Kind::FUTEX_PI_WAIT, _) => {
            vec![held(world, t, op.obj, names)]
        }
        (Kind::RW_RDLOCK | Kind::RW_WRLOCK | Kind::RW_WRWAIT, Some(_)) => rwlock(world, t, names),
        (Kind::COND_WAKE, _) if thread.woken => vec![held(world, t, op.obj2, names)],
        (Kind::COND_WAKE, _) => vec![format!("{} to be signalled{}", name(op.obj), hopeless(world, t))],
        (Kind::FUTEX_SLEEP, _) => vec![format!("{} to be woken{}", name(op.obj), hopeless(world, t))],
        (Kind::BARRIER_WAKE, Some(b)) => {
            vec![format!("{}, where {} of {} have arrived", name(op.obj), b.n_waiters, b.count)]
        }
        (Kind::COND_DESTROY | Kind::BARRIER_DESTROY, Some(o)) => {
            vec![format!("nobody to wait on {} any more ({} do)", name(op.obj), o.n_waiters)]
        }
        (Kind::SEM_WAIT, _) => vec![format!("{} to be posted (its value is 0){}", name(op.obj), hopeless(world, t))],
        (Kind::SYSV_OP, Some(_)) => semaphores(world, thread, names),
        (Kind::FD_READ | Kind::FD_WRITE | Kind::FD_ACCEPT | Kind::FD_CONNECT | Kind::FD_SEND, _)
            if sockets::waits(world, t, op, names).is_some() =>
        {
            sockets::waits(world, t, op, names).into_iter().collect()
        }
        (Kind::RECORD_LOCK | Kind::FLOCK, Some(_)) => super::locks::in_the_way(world, t, names),
        (Kind::MSG_SEND | Kind::MSG_RECEIVE, Some(_)) => vec![super::channels::queue(world, t, names)],
        (Kind::MQ_SEND | Kind::MQ_RECEIVE, Some(_)) => vec![super::channels::posix_queue(world, t, names)],
        (Kind::FD_READ | Kind::FD_WRITE, _) => {
            world.channel_of(op.obj).map(|c| channel(world, c, op, names)).into_iter().collect()
        }
        (Kind::FD_POLL, _) => polled(world, thread, names),
        (Kind::FD_OPENED, _) => {
            let other = if op.has(VARIANT) { "writing" } else { "reading" };
            vec![format!("{} to be opened for {other}{}", name(op.obj), hopeless(world, t))]
        }
        (Kind::FD_WAIT, _) => world.channel_of(op.obj).map(|c| watched(world, c, names)).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// Said where a wake-up must come from somebody: whether anybody is left.
pub(super) fn hopeless(world: &World, t: Tid) -> &'static str {
    let mut others = world.live.as_slice().iter().filter(|&&other| other != t);
    let stuck = |&other: &Tid| world.threads[other].state == ThreadState::PARKED && world.choices(other) == 0;
    if others.all(stuck) {
        " (nobody is left who could)"
    } else {
        ""
    }
}

/// What a read or write of a channel waits for, and who could bring it about.
fn channel(world: &World, id: ChanId, op: &Op, names: &Names) -> String {
    let name = (names.object)(op.obj);
    match world.channels[id].kind {
        ChanKind::COUNTER if op.kind == Kind::FD_READ => return format!("{name} to be written to (its value is 0)"),
        ChanKind::COUNTER => {
            return format!(
                "{name} to be read (its value is {}, and {} more is too much)",
                world.channels[id].value, op.arg
            )
        }
        ChanKind::TIMER => return format!("{name} to be set"),
        ChanKind::SIGNALS => return format!("a signal of {name}"),
        _ => {}
    }
    let processes = |write: bool| {
        let all: Vec<String> = world.holders(id, write).map(names.process).collect();
        match all.len() {
            0 => "no process".to_string(),
            1 => format!("process {}", all[0]),
            _ => format!("processes {}", abridged(all.into_iter())),
        }
    };
    if op.kind == Kind::FD_READ {
        return format!("something in {name}, which is empty (its end for writing is open in {})", processes(true));
    }
    let held = world.channels[id].len();
    format!(
        "room for {} bytes in {name}, which holds {held} (its end for reading is open in {})",
        op.arg,
        processes(false)
    )
}

/// The descriptions that a poll waits for.
fn polled(world: &World, thread: &Thread, names: &Names) -> Vec<String> {
    let asked = &thread.polled[..(thread.n_polled as usize).min(thread.polled.len())];
    asked.iter().filter_map(|p| event_of(world, p.desc, p.events, names)).collect()
}

/// What an epoll instance waits for.
fn watched(world: &World, epoll: ChanId, names: &Names) -> Vec<String> {
    let watches = world.watches.as_slice().iter().filter(|w| w.epoll == epoll);
    let one = |w: &Watch| {
        let waits = match (w.enabled(), w.events & flag::EDGE != 0) {
            (false, _) => " (reported once, and not set again)",
            (true, true) => " (edge-triggered)",
            (true, false) => "",
        };
        Some(event_of(world, w.desc, w.events as u16, names)? + waits)
    };
    let all: Vec<String> = watches.filter_map(one).collect();
    match all.is_empty() {
        true => vec!["an event, but it watches nothing".to_string()],
        false => all,
    }
}

/// Events of a description.
fn event_of(world: &World, desc: DescId, events: u16, names: &Names) -> Option<String> {
    let desc = world.descs.get(desc)?;
    let words: Vec<&str> = [(poll::IN, "input"), (poll::OUT, "room")]
        .into_iter()
        .filter(|(bit, _)| events & bit != 0)
        .map(|(_, word)| word)
        .collect();
    let channel = if desc.input == NONE { desc.output } else { desc.input };
    let object = world.channel_obj(channel);
    let what = if object == NONE { desc.kind.name().to_string() } else { (names.object)(object) };
    let words = if words.is_empty() { "an event".to_string() } else { words.join(" or ") };
    Some(format!("{words} of {what}"))
}

/// A lock and its owner.
fn held(world: &World, t: Tid, id: ObjId, names: &Names) -> String {
    let lock = (names.object)(id);
    match world.objects.get(id).map_or(NONE, |o| o.owner) {
        NONE => lock,
        owner if owner == t => format!("{lock}, which it holds itself"),
        owner => format!("{lock}, held by thread {}{}", (names.thread)(owner), if_over(world, owner)),
    }
}

fn if_over(world: &World, t: Tid) -> &'static str {
    if world.threads.get(t).is_some_and(Thread::alive) {
        ""
    } else {
        " (which is over)"
    }
}

fn rwlock(world: &World, t: Tid, names: &Names) -> Vec<String> {
    let op = &world.threads[t].pending;
    let lock = &world.objects[op.obj];
    if lock.owner != NONE {
        return vec![format!("{} for writing", held(world, t, op.obj, names))];
    }
    let name = (names.object)(op.obj);
    if op.kind == Kind::RW_RDLOCK && lock.flags & PREFER_WRITER != 0 {
        let waiting =
            |&&w: &&Tid| world.threads[w].pending.kind == Kind::RW_WRWAIT && world.threads[w].pending.obj == op.obj;
        let writers = world.live.as_slice().iter().filter(waiting);
        return writers.map(|&w| format!("{name}, where the writer {} waits first", (names.thread)(w))).collect();
    }
    let reader = |(r, _): (Tid, u32)| match r == t {
        true => format!("{name}, which it holds itself for reading"),
        false => format!("{name}, held by thread {} for reading{}", (names.thread)(r), if_over(world, r)),
    };
    world.read_holds(op.obj).map(reader).collect()
}

/// The semaphores of a set that a semop cannot pass.
fn semaphores(world: &World, thread: &Thread, names: &Names) -> Vec<String> {
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
        Some(format!("[{}] of {} to {wanted} (it is {}{last})", o.num, (names.object)(set), semaphore.value))
    });
    blocked.collect()
}

fn children(world: &World, t: Tid, names: &Names) -> String {
    let p = world.threads[t].pid;
    let selector = world.threads[t].pending.arg;
    let procs = world.procs.as_slice().iter().zip(0..);
    let awaited = procs.filter(|(c, _)| {
        c.parent == p && c.state == ProcState::LIVE && (selector <= 0 || selector == i64::from(c.vpid))
    });
    let mut list: Vec<_> = awaited.map(|(_, child)| (names.process)(child)).collect();
    if list.len() > 8 {
        list.truncate(8);
        list.push("...".to_string());
    }
    match list.len() {
        1 => format!("the end of process {}", list[0]),
        _ => format!("the end of one of the processes {}", list.join(", ")),
    }
}

/// The circle of waiting that ended the execution.
pub fn cycle(world: &World, names: &Names) -> Option<Vec<CycleLink>> {
    let threads = &world.cycle[..(world.n_cycle as usize).min(world.cycle.len())];
    let link = |&t: &Tid| {
        let op = world.threads.get(t)?.pending;
        let object = match op.kind {
            Kind::JOIN => None,
            Kind::COND_WAKE => Some((names.object)(op.obj2)),
            _ => Some((names.object)(op.obj)),
        };
        Some(CycleLink { thread: (names.thread)(t), object })
    };
    (world.end == End::CYCLE && !threads.is_empty()).then(|| threads.iter().filter_map(link).collect())
}

/// All threads, in order of creation (that of `World::threads`), as far as the model knows them: the caller adds
/// `program`, `start` and `frames`.
pub fn thread_views(world: &World, names: &Names) -> Vec<ThreadView> {
    let all = 0..world.threads.as_slice().len() as Tid;
    all.map(|t| thread_view(world, t, names)).collect()
}

fn thread_view(world: &World, t: Tid, names: &Names) -> ThreadView {
    let thread = &world.threads[t];
    let status = match thread.state {
        ThreadState::PARKED if world.choices(t) == 0 => ThreadStatus::Waiting,
        ThreadState::PARKED => ThreadStatus::Ready,
        ThreadState::EXITED | ThreadState::FREE => ThreadStatus::Exited,
        _ if thread.fiber.in_call[0] != 0 => ThreadStatus::InCall,
        _ => ThreadStatus::Running,
    };
    let over = status == ThreadStatus::Exited;
    ThreadView {
        thread: (names.thread)(t),
        vpid: world.procs.get(thread.pid).map_or(0, |p| p.vpid),
        program: String::new(),
        start: String::new(),
        status,
        frames: Vec::new(),
        pending: (thread.state == ThreadState::PARKED).then(|| pending_text(world, t, names)),
        holds: if over { Vec::new() } else { holds(world, t, names) },
        waits_for: waits_for(world, t, names),
    }
}

/// Kind of bug and the line about it, where the way the execution ended is a bug of the program or something that
/// vsrun does not support. `None`: it is neither, or (crash, divergence) the model does not know it.
pub fn headline(world: &World, names: &Names) -> Option<(BugKind, String)> {
    let thread = || (names.thread)(world.end_thread);
    let message = || String::from_utf8_lossy(world.message()).trim_end().to_string();
    Some(match world.end {
        End::DEADLOCK => (BugKind::Deadlock, deadlock(world, names)),
        End::CYCLE => (BugKind::Deadlock, circle(world, names)),
        End::ASSERT => (BugKind::Assert, message()),
        End::MISUSE => (BugKind::Assert, misuse(world, names)),
        End::LIVELOCK => {
            let process = (names.process)(world.end_obj);
            (BugKind::Livelock, format!("process {process} could do nothing in {} states in a row", world.end_code))
        }
        End::STATUS => match ProgramStatus::from_wait(world.end_code as i32) {
            ProgramStatus::Exit(status) => (BugKind::Assert, format!("exit status {status}, by thread {}", thread())),
            ProgramStatus::Signal(signal) => {
                (BugKind::Assert, format!("exit status: killed by signal {signal}, thread {}", thread()))
            }
        },
        End::KILLED => (
            BugKind::Crash,
            format!("{} kills the first process, sent by thread {}", signal_name(world.end_code), thread()),
        ),
        End::UNSUPPORTED => (BugKind::Error, message()),
        _ => return None,
    })
}

fn misuse(world: &World, names: &Names) -> String {
    let object = if world.end_obj == NONE { String::new() } else { format!(": {}", (names.object)(world.end_obj)) };
    let what = Misuse(world.end_code).text();
    format!("misuse by thread {}: {what}{object}", (names.thread)(world.end_thread))
}

fn circle(world: &World, names: &Names) -> String {
    let links = cycle(world, names).unwrap_or_default();
    if let [link] = links.as_slice() {
        let what = link.object.as_deref().unwrap_or("its own end");
        let handler = world.threads.get(world.cycle[0]).map_or(String::new(), |t| in_handler(t, names));
        return format!("thread {} waits for {what}, which it holds itself{handler}", link.thread);
    }
    let one = |l: &CycleLink| format!("{} for {}", l.thread, l.object.as_deref().unwrap_or("a thread's end"));
    format!("{} threads wait for each other: {}", links.len(), abridged(links.iter().map(one)))
}

fn deadlock(world: &World, names: &Names) -> String {
    let waiting = world.live.as_slice().iter().filter(|&&t| world.threads[t].state == ThreadState::PARKED);
    let one = |&t: &Tid| format!("{} in {}", (names.thread)(t), pending_text(world, t, names));
    let list = abridged(waiting.map(one));
    let stopped = |p: &&vsrun_model::Process| p.stopped != 0 && p.state == ProcState::LIVE;
    let of = |p: &vsrun_model::Process| match world.threads.contains(p.stopper) {
        true => format!(
            "process {} is stopped ({}, by thread {})",
            p.vpid,
            signal_name(p.stopped.into()),
            (names.thread)(p.stopper)
        ),
        false => format!("process {} is stopped ({})", p.vpid, signal_name(p.stopped.into())),
    };
    let stopped: Vec<String> = world.procs.as_slice().iter().filter(stopped).map(of).collect();
    if !stopped.is_empty() {
        return format!("nothing can move: {}; waiting: {list}", abridged(stopped.into_iter()));
    }
    match world.live.as_slice().len() {
        1 => format!("nothing can move, one thread waits: {list}"),
        n => format!("nothing can move, {n} threads wait: {list}"),
    }
}

/// The first four.
fn abridged(items: impl Iterator<Item = String>) -> String {
    let mut all: Vec<_> = items.take(5).collect();
    if all.len() == 5 {
        all[4] = "...".to_string();
    }
    all.join(", ")
}

#[cfg(test)]
#[path = "waits_tests.rs"]
mod tests;
