//! Whether a world that runs gets on: does it move, does it use CPU time?

use std::time::{Duration, Instant};

use nix::unistd::Pid;

use super::worker::Worker;
use crate::finding::Ending;

/// So many times the CPU time of a divergence may be spent on operations on objects of the thread's own, which are no
/// visible ones: a loop over these alone never comes back to the scheduler.
const OWN_OBJECTS: u32 = 10;
/// Without CPU time and without moving for so long, a world sits in a system call.
const SITS: Duration = Duration::from_millis(700);

impl Worker {
    pub(super) fn process_of(&self, pid: i32) -> Option<u32> {
        let procs = self.arena.world.procs.as_slice();
        procs.iter().rposition(|p| p.own.real_pid == pid).map(|p| p as u32)
    }

    /// The process that has the turn.
    pub(super) fn turn_holder(&self) -> Option<Pid> {
        let world = &self.arena.world;
        let thread = world.threads.get(world.current)?;
        let real = world.procs.get(thread.pid)?.own.real_pid;
        (real > 0).then(|| Pid::from_raw(real))
    }

    /// Looks at a world that has run for a while: does it move, does it use CPU time?
    pub(super) fn look(&self, clock: &mut Clock) -> Option<Ending> {
        let pid = self.turn_holder()?;
        let cpu = cpu_time(pid)?;
        let now = Instant::now();
        let ops = self.arena.progress().0;
        let visible = self.arena.visible_ops();
        let other = pid != clock.pid;
        if other || visible > clock.visible {
            (clock.visible, clock.visible_cpu) = (visible, cpu);
        } else if cpu.saturating_sub(clock.visible_cpu) > self.spec.divergence_timeout() * OWN_OBJECTS {
            return Some(Ending::Divergence);
        }
        if other || ops != clock.ops {
            (clock.ops, clock.pid) = (ops, pid);
            (clock.moved_cpu, clock.last_cpu, clock.busy) = (cpu, cpu, now);
            return None;
        }
        if cpu > clock.last_cpu + Duration::from_millis(1) {
            (clock.last_cpu, clock.busy) = (cpu, now);
        }
        if cpu.saturating_sub(clock.moved_cpu) > self.spec.divergence_timeout() {
            return Some(Ending::Divergence);
        }
        if now.duration_since(clock.busy) < SITS {
            return None;
        }
        let current = self.arena.world.current;
        let call = self.arena.world.threads.get(current)?.fiber.in_call;
        // A stopped or swapped-out machine is given ten seconds before vsrun is blamed.
        let lost = now.duration_since(clock.busy) > Duration::from_secs(10);
        (call[0] != 0 || lost).then_some(Ending::Sits { thread: current, call })
    }
}

/// CPU time of a process.
fn cpu_time(pid: Pid) -> Option<Duration> {
    let clock = nix::time::clock_getcpuclockid(pid).ok()?;
    let time = nix::time::clock_gettime(clock).ok()?;
    Some(Duration::new(time.tv_sec() as u64, time.tv_nsec() as u32))
}

/// What was seen of a world's progress.
pub(super) struct Clock {
    ops: u64,
    /// Visible operations, and the CPU time when there was a new one.
    visible: u64,
    visible_cpu: Duration,
    pid: Pid,
    moved_cpu: Duration,
    last_cpu: Duration,
    busy: Instant,
}

impl Clock {
    pub fn new() -> Clock {
        let zero = Duration::ZERO;
        let (ops, visible, pid, busy) = (u64::MAX, u64::MAX, Pid::from_raw(0), Instant::now());
        Clock { ops, visible, visible_cpu: zero, pid, moved_cpu: zero, last_cpu: zero, busy }
    }
}
