//! Closing the system: further root processes (`--with`), and what is left when they are done.
//!
//! A server that is left over when its clients are gone waits for ever, and that is no deadlock. The world is *idle* if
//!
//! 1. nothing is enabled, and no thread waits in a circle of locks;
//! 2. the clients are all over and one of them exited by itself; where there are none, the first process did (the shell
//!    in `sh -c 'server & client'`);
//! 3. in every process that is left, some thread waits for what only a new peer could give, or for a child that is left;
//!    and no thread waits for anything else than that or what its own process gives threads without work: a condition
//!    variable, a semaphore, a futex, the end of a thread, a descriptor.
//!
//! Deadlines of what is left go on firing for a while ([`IDLE_JUMPS`]): housekeeping that a server does every second would
//! have no end.

use crate::arena::Arena;
use crate::base::ids::{Pid, Tid, NONE};
use crate::base::op::Kind;
use crate::state::channel::ChanKind;
use crate::state::fd::{DescId, DescKind};
use crate::state::process::ProcState;
use crate::state::world::World;

/// So often time moves on in an idle world before it is over.
pub const IDLE_JUMPS: u32 = 32;

/// Operations by which a process waits for a peer that it need not know: to connect, to send a message or a signal.
fn waits_for_a_peer(world: &World, t: Tid, clients: bool) -> bool {
    let op = &world.threads[t].pending;
    match op.kind {
        // Others find these by their names. A group of processes that has come to its end in them by itself is in a
        // deadlock; a server whose clients are all gone is not.
        Kind::SEM_WAIT | Kind::SYSV_OP | Kind::MQ_SEND | Kind::MQ_RECEIVE => {
            clients && world.names.as_slice().iter().any(|n| n.obj == op.obj)
        }
        Kind::FD_ACCEPT | Kind::SIGSUSPEND | Kind::SIGWAIT => true,
        Kind::FD_READ => world.channel_of(op.obj).is_some_and(|c| {
            let signals = world.channels[c].kind == ChanKind::SIGNALS;
            signals || world.sink(c).is_some_and(|s| world.takes_strangers(s))
        }),
        Kind::FD_POLL => {
            let thread = &world.threads[t];
            thread.polled[..(thread.n_polled as usize).min(thread.polled.len())]
                .iter()
                .any(|p| meets_strangers(world, p.desc))
        }
        Kind::FD_WAIT => {
            let epoll = world.channel_of(op.obj);
            world.watches.as_slice().iter().any(|w| Some(w.epoll) == epoll && meets_strangers(world, w.desc))
        }
        _ => false,
    }
}

/// A socket that hears of peers it does not know yet, or a signal descriptor.
fn meets_strangers(world: &World, desc: DescId) -> bool {
    let signals = world.descs.get(desc).is_some_and(|d| d.kind == DescKind::SIGNAL);
    signals || world.socket_of(desc).is_some_and(|s| world.takes_strangers(s))
}

/// Operations in which threads without work wait for others of their process.
fn waits_for_work(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::COND_WAKE
            | Kind::SEM_WAIT
            | Kind::FUTEX_SLEEP
            | Kind::JOIN
            | Kind::SLEEP
            | Kind::FD_READ
            | Kind::FD_POLL
            | Kind::FD_WAIT
            | Kind::MQ_RECEIVE
    )
}

impl Arena {
    /// Whether what is left only waits for peers that do not come, where nothing is enabled: see the head of the file.
    pub fn is_idle(&self) -> bool {
        let world = &self.world;
        let clients = self.closing.clients;
        let roots = if clients > 0 { 1..clients + 1 } else { 0..1 };
        let over = |p: Pid| world.procs.get(p).is_some_and(|p| p.state != ProcState::LIVE);
        let by_itself = |p: Pid| over(p) && world.procs[p].status & 0x7f == 0;
        if self.closing.stopped != 0 || !roots.clone().all(over) || !roots.clone().any(by_itself) {
            return false;
        }
        let live = world.live.as_slice();
        let waits = |t: Tid| waits_for_a_peer(world, t, clients > 0) || self.waits_for_child(t);
        let waits_in = |p: Pid| live.iter().any(|&t| world.threads[t].pid == p && waits(t));
        live.iter()
            .all(|&t| (waits(t) || waits_for_work(world.threads[t].pending.kind)) && waits_in(world.threads[t].pid))
            && live.iter().any(|&t| waits_for_a_peer(world, t, clients > 0))
    }

    /// An idle world has seen enough time pass.
    pub(crate) fn is_settled(&mut self) -> bool {
        if !self.is_idle() {
            return false;
        }
        self.world.idle_jumps += 1;
        self.world.idle_jumps > IDLE_JUMPS
    }

    /// Waits for a child that is still there.
    fn waits_for_child(&self, t: Tid) -> bool {
        let world = &self.world;
        let parent = world.threads[t].pid;
        world.threads[t].pending.kind == Kind::WAIT
            && world.procs.as_slice().iter().any(|c| c.parent == parent && parent != NONE && c.state == ProcState::LIVE)
    }
}
