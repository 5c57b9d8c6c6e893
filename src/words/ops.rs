//! Visible operations as the calls that programs make.

use vsrun_model::inject::fault_of;
use vsrun_model::object::NONE;
use vsrun_model::signal::Handling;
use vsrun_model::{op, world, Ctl, Kind, Op, SemBuf, Thread, Tid, World};

use super::{channels, files, locks};
use crate::finding::{signal_name, words, Word, Words};

/// A visible operation as a call: `pthread_mutex_lock(lock_a)`.
pub fn op_text(op: &Op) -> Words {
    words![call_name(op), "(", arguments(op), ")"]
}

/// The operation that `t` is parked at.
pub fn pending_text(world: &World, t: Tid) -> Words {
    let thread = &world.threads[t];
    let op = &thread.pending;
    let handler = in_handler(thread);
    if op.kind != Kind::SYSV_OP || thread.n_sembuf == 0 {
        return words![op_text(op), handler];
    }
    let buffers = &thread.sembuf[..(thread.n_sembuf as usize).min(thread.sembuf.len())];
    words![call_name(op), "(", Word::Object(op.obj), ", ", semop_text(buffers), ")", handler]
}

/// The signal handlers that a thread is in, the innermost first, and what they interrupted.
pub fn in_handler(thread: &Thread) -> Words {
    let noted = &thread.handlers[..usize::from(thread.n_handlers).min(thread.handlers.len())];
    let one = |h: &Handling| match h.op.kind {
        Kind::NONE => words![", in the handler of ", Word::Signal(h.signal)],
        _ => words![", in the handler of ", Word::Signal(h.signal), ", which interrupted ", op_text(&h.op)],
    };
    Words::join(noted.iter().rev().map(one), "")
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
fn semop_text(buffers: &[SemBuf]) -> String {
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
        Kind::RECORD_LOCK | Kind::RECORD_UNLOCK | Kind::RECORD_TEST | Kind::FLOCK => [locks::call_name(op); 3],
        kind if kind.row().polls == vsrun_model::kind::Polls::Unknown => [files::call_name(op); 3],
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

fn arguments(op: &Op) -> Words {
    let object = || if op.obj == NONE { Words::default() } else { Word::Object(op.obj).into() };
    let two = |with: &'static str| words![object(), with, Word::Object(op.obj2)];
    match op.kind {
        Kind::NONE | Kind::YIELD | Kind::THREAD_EXIT | Kind::EXEC | Kind::STOPPED | Kind::TIMER => Words::default(),
        Kind::SIGSUSPEND => Words::default(),
        Kind::SIGWAIT => signal_set(op.arg as u64).into(),
        Kind::SLEEP => format!("until +{} s", op.deadline.saturating_sub(world::START) as f64 / 1e9).into(),
        Kind::TOSS => fault_of(op).map_or_else(|| op.arg.into(), |fault| format!("fault {fault}?").into()),
        Kind::JOIN | Kind::CANCEL => Word::Thread(op.obj).into(),
        Kind::WAIT if op.has(op::TRY) => words![op.arg, ", WNOHANG"],
        Kind::WAIT => op.arg.into(),
        Kind::EXIT if op.arg & 0x7f == 0 => (op.arg >> 8 & 0xff).into(),
        Kind::EXIT => words!["signal ", op.arg & 0x7f],
        Kind::KILL => words![Word::Process(op.obj), ", ", op.arg],
        Kind::COND_WAIT | Kind::COND_WAKE if op.obj2 != NONE => two(", "),
        Kind::FD_READ | Kind::FD_WRITE | Kind::FD_SEND => words![object(), ", ", op.arg],
        Kind::FD_WAIT => object(),
        Kind::FD_EPOLL_CTL => words![object(), ", descriptor ", op.arg >> 32],
        Kind::FD_CLOSE => {
            words!["descriptor ", op.arg, " of ", if op.obj2 == NONE { object() } else { two(" and ") }]
        }
        Kind::FD_CLOSE_ALL => Words::default(),
        Kind::SYSV_OP => words![object(), ", ", sysv_amount(op)],
        Kind::SYSV_CTL => words![object(), sysv_command(op)],
        Kind::RECORD_LOCK | Kind::RECORD_UNLOCK | Kind::RECORD_TEST | Kind::FLOCK => locks::arguments(op, object()),
        Kind::MSG_SEND | Kind::MSG_RECEIVE | Kind::MSG_CTL | Kind::MQ_SEND | Kind::MQ_RECEIVE => {
            words![object(), channels::queue_arguments(op)]
        }
        kind if kind.row().polls == vsrun_model::kind::Polls::Unknown => files::arguments(op),
        Kind::FUTEX_WAKE => words![object(), ", ", many(op.arg & 0xffff_ffff)],
        Kind::FUTEX_WAKE_OP if op.obj2 != NONE => {
            words![two(", "), ", wake ", many(op.arg & 0xffff_ffff), ", ", many(op.arg >> 32)]
        }
        Kind::FUTEX_REQUEUE if op.obj2 != NONE => {
            words![two(" -> "), ", wake ", many(op.arg & 0xffff_ffff), ", move ", many(op.arg >> 32)]
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

#[cfg(test)]
#[path = "ops_tests.rs"]
mod tests;
