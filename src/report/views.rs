//! The model in words: operations, objects, threads.

use std::collections::BTreeMap;

use vsrun_model::arena::Step;
use vsrun_model::channel::ChanKind;
use vsrun_model::inject::fault_of;
use vsrun_model::object::{Key, ObjKind, NONE, SHARED};
use vsrun_model::signal::{self, Handling};
use vsrun_model::{op, world, Ctl, Kind, ObjId, Object, Op, Pid, SemBuf, Thread, Tid, World};

use super::StepView;
use crate::scenario::ScenarioStep;

/// How the things that operations refer to by index are called.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    /// An object: `lock_a`.
    pub object: &'a dyn Fn(ObjId) -> String,
    /// A thread: `0.1`.
    pub thread: &'a dyn Fn(Tid) -> String,
    /// A process: `1002`.
    pub process: &'a dyn Fn(Pid) -> String,
}

/// A thread by its path of creation.
pub fn thread_name(world: &World, t: Tid) -> String {
    world
        .threads
        .get(t)
        .map_or_else(|| "a thread that does not exist here".to_string(), |thread| thread.uid.to_string())
}

/// A process by the process id that the program sees.
pub fn process_name(world: &World, p: Pid) -> String {
    world.procs.get(p).map_or_else(|| "?".to_string(), |process| process.vpid.to_string())
}

/// A channel: what it is, the thread that made it, and how many it had made by then, itself included. It keeps its name
/// when it is closed.
fn channel_name(world: &World, object: &Object) -> String {
    let kind = match ChanKind(object.flags as u8) {
        ChanKind::PIPE => "pipe",
        ChanKind::FIFO => {
            let id = world.objects.as_slice().iter().position(|o| o.key == object.key);
            let own = world.names.as_slice().iter().find(|name| Some(name.obj as usize) == id);
            let name = own.map_or(&[][..], |n| &n.bytes[..(n.len as usize).min(n.bytes.len())]);
            return format!("FIFO {}", String::from_utf8_lossy(name));
        }
        ChanKind::QUEUE => {
            let id = world.objects.as_slice().iter().position(|o| o.key == object.key);
            match id.and_then(|id| world.mqueue_called(id as ObjId)) {
                Some(name) => return format!("message queue {}", String::from_utf8_lossy(name)),
                None => "message queue",
            }
        }
        ChanKind::COUNTER => "eventfd",
        ChanKind::TIMER => "timerfd",
        ChanKind::SIGNALS => "signalfd",
        ChanKind::EPOLL => "epoll",
        ChanKind::STREAM => "tcp socket",
        ChanKind::LOCAL => "unix socket",
        ChanKind::PACKET => "datagram socket",
        _ => "channel",
    };
    format!("{kind} {}:{}", thread_name(world, object.value as u32), object.count)
}

/// An object: by its own name (named semaphores), by its identifier (SysV), by what `symbol` knows of its place, or by
/// kind and place. `@0.1` tells the private objects of processes apart, `#2` the second object at a place.
pub fn object_name(world: &World, id: ObjId, symbol: &dyn Fn(&Key) -> Option<String>) -> String {
    let Some(object) = world.objects.get(id) else { return "?".to_string() };
    let key = &object.key;
    let named = matches!(key.kind, ObjKind::SEM | ObjKind::RECORDS | ObjKind::FLOCK | ObjKind::FILE | ObjKind::PATHS);
    let own = world.names.as_slice().iter().find(|name| name.obj == id && named);
    if let Some(name) = own {
        return String::from_utf8_lossy(&name.bytes[..(name.len as usize).min(name.bytes.len())]).into_owned();
    }
    let again = if object.generation == 0 { String::new() } else { format!("#{}", u64::from(object.generation) + 1) };
    match key.kind {
        ObjKind::MSGQ => return format!("queue {}", key.addr),
        ObjKind::SYSV => return format!("set {}{again}", key.addr),
        ObjKind::NAMES => return "names".to_string(),
        ObjKind::PATHS => return "names of files".to_string(),
        ObjKind::CHANNEL => return super::sockets::name(world, id).unwrap_or_else(|| channel_name(world, object)),
        _ => {}
    }
    let private = key.space & SHARED == 0;
    let place = symbol(key).unwrap_or_else(|| match private {
        true => format!("{} {:#x}", key.kind.name(), key.addr),
        false => format!("{} {:#x} in region {}", key.kind.name(), key.addr, key.space & !SHARED),
    });
    let whose = match world.procs.get(key.space) {
        Some(process) if private && world.procs.as_slice().len() > 1 => {
            format!("@{}", thread_name(world, process.main_thread))
        }
        _ => String::new(),
    };
    format!("{place}{again}{whose}")
}

/// A visible operation as a call: `pthread_mutex_lock(lock_a)`.
pub fn op_text(op: &Op, names: &Names) -> String {
    format!("{}({})", call_name(op), arguments(op, names))
}

/// The operation that `t` is parked at.
pub fn pending_text(world: &World, t: Tid, names: &Names) -> String {
    let thread = &world.threads[t];
    let op = &thread.pending;
    let handler = in_handler(thread, names);
    if op.kind != Kind::SYSV_OP || thread.n_sembuf == 0 {
        return op_text(op, names) + &handler;
    }
    let buffers = &thread.sembuf[..(thread.n_sembuf as usize).min(thread.sembuf.len())];
    format!("{}({}, {}){handler}", call_name(op), (names.object)(op.obj), semop_text(buffers))
}

/// The signal handlers that a thread is in, the innermost first, and what they interrupted.
pub fn in_handler(thread: &Thread, names: &Names) -> String {
    let noted = &thread.handlers[..usize::from(thread.n_handlers).min(thread.handlers.len())];
    let one = |h: &Handling| match h.op.kind {
        Kind::NONE => format!(", in the handler of {}", signal_name(h.signal)),
        _ => format!(", in the handler of {}, which interrupted {}", signal_name(h.signal), op_text(&h.op, names)),
    };
    noted.iter().rev().map(one).collect()
}

/// SIGUSR1, or the number of a real-time signal.
pub fn signal_name(number: u32) -> String {
    let known = nix::sys::signal::Signal::try_from(number as i32);
    known.map_or_else(|_| format!("signal {number}"), |signal| signal.as_str().to_string())
}

/// The signals of a set.
pub fn signal_set(set: u64) -> String {
    let all: Vec<_> = (1..=64).filter(|n| set >> (n - 1) & 1 == 1).map(signal_name).collect();
    match all.len() {
        0 => "no signal".to_string(),
        n if n > 32 => "any signal".to_string(),
        _ => all.join(" or "),
    }
}

/// The operations of a semop: `[2] -1, [3] -1`.
pub fn semop_text(buffers: &[SemBuf]) -> String {
    let one = |b: &SemBuf| if b.op == 0 { format!("[{}] =0", b.num) } else { format!("[{}] {:+}", b.num, b.op) };
    buffers.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The function that a program calls for this operation.
pub fn call_name(op: &Op) -> &'static str {
    let [plain, trying, timed] = match op.kind {
        Kind::YIELD => ["sched_yield"; 3],
        Kind::SLEEP => ["sleep"; 3],
        Kind::TOSS => ["VS_toss"; 3],
        Kind::JOIN => ["pthread_join", "pthread_tryjoin_np", "pthread_timedjoin_np"],
        Kind::WAIT => ["waitpid"; 3],
        Kind::EXIT => ["exit_group"; 3],
        Kind::THREAD_EXIT => ["pthread_exit"; 3],
        Kind::CANCEL => ["pthread_cancel"; 3],
        Kind::KILL => ["kill"; 3],
        Kind::EXEC => ["exec"; 3],
        Kind::SIGSUSPEND if op.has(op::VARIANT) => ["pause"; 3],
        Kind::SIGSUSPEND => ["sigsuspend"; 3],
        Kind::SIGWAIT => ["sigwait", "sigtimedwait", "sigtimedwait"],
        Kind::MUTEX_LOCK => ["pthread_mutex_lock", "pthread_mutex_trylock", "pthread_mutex_timedlock"],
        Kind::MUTEX_UNLOCK => ["pthread_mutex_unlock"; 3],
        Kind::MUTEX_DESTROY => ["pthread_mutex_destroy"; 3],
        Kind::COND_WAIT | Kind::COND_WAKE => ["pthread_cond_wait", "pthread_cond_wait", "pthread_cond_timedwait"],
        Kind::COND_SIGNAL => ["pthread_cond_signal"; 3],
        Kind::COND_BROADCAST => ["pthread_cond_broadcast"; 3],
        Kind::COND_DESTROY => ["pthread_cond_destroy"; 3],
        Kind::RW_RDLOCK => ["pthread_rwlock_rdlock", "pthread_rwlock_tryrdlock", "pthread_rwlock_timedrdlock"],
        Kind::RW_WRLOCK | Kind::RW_WRWAIT => {
            ["pthread_rwlock_wrlock", "pthread_rwlock_trywrlock", "pthread_rwlock_timedwrlock"]
        }
        Kind::RW_UNLOCK => ["pthread_rwlock_unlock"; 3],
        Kind::RW_DESTROY => ["pthread_rwlock_destroy"; 3],
        Kind::SPIN_LOCK => ["pthread_spin_lock", "pthread_spin_trylock", "pthread_spin_lock"],
        Kind::SPIN_UNLOCK => ["pthread_spin_unlock"; 3],
        Kind::BARRIER_WAIT | Kind::BARRIER_WAKE => ["pthread_barrier_wait"; 3],
        Kind::BARRIER_DESTROY => ["pthread_barrier_destroy"; 3],
        Kind::ONCE => ["pthread_once"; 3],
        Kind::SEM_WAIT => ["sem_wait", "sem_trywait", "sem_timedwait"],
        Kind::NAME => ["name_lookup"; 3],
        Kind::SYSV_OP => ["semop", "semop", "semtimedop"],
        Kind::SYSV_CTL => ["semctl"; 3],
        Kind::RECORD_LOCK | Kind::RECORD_UNLOCK | Kind::RECORD_TEST | Kind::FLOCK => [super::locks::call_name(op); 3],
        kind if kind.row().polls == vsrun_model::kind::Polls::Unknown => [super::files::call_name(op); 3],
        Kind::MQ_SEND => ["mq_send", "mq_send", "mq_timedsend"],
        Kind::MQ_RECEIVE => ["mq_receive", "mq_receive", "mq_timedreceive"],
        Kind::FUTEX_WAIT | Kind::FUTEX_SLEEP => ["futex_wait"; 3],
        Kind::FUTEX_LOCK_PI | Kind::FUTEX_PI_WAIT => ["futex_lock_pi", "futex_trylock_pi", "futex_lock_pi"],
        other => [other.name(); 3],
    };
    match () {
        () if op.has(op::TRY) => trying,
        () if op.has(op::TIMED) => timed,
        () => plain,
    }
}

fn arguments(op: &Op, names: &Names) -> String {
    let object = || if op.obj == NONE { String::new() } else { (names.object)(op.obj) };
    let two = |with: &str| format!("{}{with}{}", object(), (names.object)(op.obj2));
    match op.kind {
        Kind::NONE | Kind::YIELD | Kind::THREAD_EXIT | Kind::EXEC | Kind::STOPPED | Kind::TIMER => String::new(),
        Kind::SIGSUSPEND => String::new(),
        Kind::SIGWAIT => signal_set(op.arg as u64),
        Kind::SLEEP => format!("until +{} s", op.deadline.saturating_sub(world::START) as f64 / 1e9),
        Kind::TOSS => fault_of(op).map_or_else(|| op.arg.to_string(), |fault| format!("fault {fault}?")),
        Kind::JOIN | Kind::CANCEL => (names.thread)(op.obj),
        Kind::WAIT if op.has(op::TRY) => format!("{}, WNOHANG", op.arg),
        Kind::WAIT => op.arg.to_string(),
        Kind::EXIT if op.arg & 0x7f == 0 => (op.arg >> 8 & 0xff).to_string(),
        Kind::EXIT => format!("signal {}", op.arg & 0x7f),
        Kind::KILL => format!("{}, {}", (names.process)(op.obj), op.arg),
        Kind::COND_WAIT | Kind::COND_WAKE if op.obj2 != NONE => two(", "),
        Kind::FD_READ | Kind::FD_WRITE | Kind::FD_SEND => format!("{}, {}", object(), op.arg),
        Kind::FD_WAIT => object(),
        Kind::FD_EPOLL_CTL => format!("{}, descriptor {}", object(), op.arg >> 32),
        Kind::FD_CLOSE => format!("descriptor {} of {}", op.arg, if op.obj2 == NONE { object() } else { two(" and ") }),
        Kind::FD_CLOSE_ALL => String::new(),
        Kind::SYSV_OP => format!("{}, {}", object(), sysv_amount(op)),
        Kind::SYSV_CTL => format!("{}{}", object(), sysv_command(op)),
        Kind::RECORD_LOCK | Kind::RECORD_UNLOCK | Kind::RECORD_TEST | Kind::FLOCK => {
            super::locks::arguments(op, &object())
        }
        Kind::MSG_SEND | Kind::MSG_RECEIVE | Kind::MSG_CTL | Kind::MQ_SEND | Kind::MQ_RECEIVE => {
            object() + &super::channels::queue_arguments(op)
        }
        kind if kind.row().polls == vsrun_model::kind::Polls::Unknown => super::files::arguments(op, names),
        Kind::FUTEX_WAKE => format!("{}, {}", object(), many(op.arg & 0xffff_ffff)),
        Kind::FUTEX_WAKE_OP if op.obj2 != NONE => {
            format!("{}, wake {}, {}", two(", "), many(op.arg & 0xffff_ffff), many(op.arg >> 32))
        }
        Kind::FUTEX_REQUEUE if op.obj2 != NONE => {
            format!("{}, wake {}, move {}", two(" -> "), many(op.arg & 0xffff_ffff), many(op.arg >> 32))
        }
        _ => object(),
    }
}

/// A number of waiters; programs say INT_MAX for all.
fn many(n: i64) -> String {
    if n >= i64::from(i32::MAX) {
        return "all".to_string();
    }
    n.to_string()
}

/// What is known of a semop without its operands: the semaphores (modulo 32), the amount if there is one.
fn sysv_amount(op: &Op) -> String {
    let numbers: Vec<_> = (0..32).filter(|bit| op.mask >> bit & 1 == 1).map(|bit| format!("[{bit}]")).collect();
    match op.arg {
        packed if op.has(op::SEVERAL) && packed != 0 => {
            let all: Vec<_> = op::packed_semops(packed)
                .map(|(num, amount)| SemBuf { num: num.into(), op: amount.into(), flags: 0 })
                .collect();
            semop_text(&all)
        }
        0 => numbers.join(" "),
        amount => format!("{} {amount:+}", numbers.join(" ")),
    }
}

fn sysv_command(op: &Op) -> String {
    match Ctl(op.arg as u8) {
        Ctl::SET_VALUE => format!(", [{}], SETVAL {}", op.obj2, op.arg >> 8),
        Ctl::REMOVE => ", IPC_RMID".to_string(),
        _ => String::new(),
    }
}

/// Which alternative was taken, where there were several and the operation's text does not say it.
pub fn note(kind: Kind, value: u32, alternatives: u32) -> Option<String> {
    (alternatives > 1 && kind != Kind::TOSS).then(|| format!("alternative {} of {alternatives}", value + 1))
}

/// The signal that was delivered in the place of the operation, before it or so that it fails.
fn signalled(step: &Step) -> Option<String> {
    let ways = step.act.op.signals;
    let first = step.choices.checked_sub((ways & signal::ALTERNATIVES).count_ones())?;
    let name = signal_name((ways & signal::NUMBER).into());
    let texts = [
        (signal::BEFORE, format!("{name} comes first")),
        (signal::INTERRUPTS, format!("interrupted by {name}")),
        (signal::STOP_BEFORE, "begun after the stop".to_string()),
        (signal::STOP_INTERRUPTS, "interrupted by the stop".to_string()),
    ];
    let mut present = texts.into_iter().filter(|(bit, _)| ways & bit != 0);
    present.nth(step.value.checked_sub(first)? as usize).map(|(_, text)| text)
}

/// The transitions of a trace, from the first: with the results of tosses and who is woken by whom.
pub fn step_views(steps: &[Step], names: &Names) -> Vec<StepView> {
    let mut waiters = Waiters::default();
    let view = |(i, step): (usize, &Step)| StepView {
        n: i as u64 + 1,
        thread: step.act.uid.to_string(),
        op: op_text(&step.act.op, names) + &outcome(step, waiters.advance(step), names),
        note: signalled(step).or_else(|| note(step.act.op.kind, step.value, step.choices)),
        result: None,
    };
    steps.iter().enumerate().map(view).collect()
}

/// The same for a scenario file.
pub fn scenario_steps(steps: &[Step], names: &Names) -> Vec<ScenarioStep> {
    let texts = step_views(steps, names).into_iter().map(|view| view.op);
    steps.iter().zip(texts).map(|(step, text)| ScenarioStep::new(step, text)).collect()
}

fn outcome(step: &Step, woken: Option<Vec<Tid>>, names: &Names) -> String {
    match (step.act.op.kind, woken) {
        (Kind::TOSS, _) => format!(" = {}", step.value),
        (Kind::COND_WAKE | Kind::BARRIER_WAKE | Kind::FUTEX_SLEEP | Kind::FUTEX_PI_WAIT, _) => " returns".to_string(),
        (Kind::RW_WRWAIT, _) => " gets it".to_string(),
        (_, Some(woken)) if woken.is_empty() => " wakes nobody".to_string(),
        (_, Some(woken)) => format!(" wakes {}", woken.into_iter().map(names.thread).collect::<Vec<_>>().join(", ")),
        _ => String::new(),
    }
}

/// Who waits on which condition variable or futex, followed along a trace. Traces do not record it; where the number
/// recorded with a wake-up differs (requeued, timed out, bit sets), nothing is said.
#[derive(Default)]
struct Waiters(BTreeMap<ObjId, Vec<Tid>>);

impl Waiters {
    /// Takes account of a step; for one that wakes, the threads woken if they are known.
    fn advance(&mut self, step: &Step) -> Option<Vec<Tid>> {
        let (t, op) = (step.act.tid, &step.act.op);
        for queue in self.0.values_mut() {
            queue.retain(|waiter| *waiter != t); // who moves does not wait
        }
        let queue = self.0.entry(op.obj).or_default();
        match op.kind {
            Kind::COND_WAIT | Kind::FUTEX_WAIT => {
                let at = queue.partition_point(|waiter| *waiter < t);
                queue.insert(at, t);
                None
            }
            Kind::COND_SIGNAL => Waiters::wake(queue, step, 1),
            Kind::COND_BROADCAST => Waiters::wake(queue, step, usize::MAX),
            Kind::FUTEX_WAKE => Waiters::wake(queue, step, (op.arg & 0xffff_ffff) as usize),
            _ => None,
        }
    }

    /// Wakes `n` from the chosen one on, in thread order, wrapping: what the model does.
    fn wake(queue: &mut Vec<Tid>, step: &Step, n: usize) -> Option<Vec<Tid>> {
        let known = queue.len() as i64 == step.act.state;
        let n = n.min(queue.len());
        let mut first = step.value as usize;
        let mut woken = Vec::new();
        for _ in 0..n {
            first %= queue.len();
            woken.push(queue.remove(first));
        }
        known.then_some(woken)
    }
}

#[cfg(test)]
#[path = "views_tests.rs"]
mod tests;
