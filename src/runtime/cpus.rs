//! The CPUs of the workers.

use nix::sched::{sched_getaffinity, sched_setaffinity, CpuSet};
use nix::unistd::Pid;

/// The CPUs that the calling thread may use, in an order that begins with another one for another run of vsrun (most
/// often), so that two runs at a time do not share one while another is idle. A worker and its world share one.
pub fn cpus() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    let mut allowed: Vec<_> = (0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect();
    let first = std::process::id() as usize % allowed.len().max(1);
    allowed.rotate_left(first);
    allowed
}

/// Keeps the calling thread, and what it starts, on that CPU.
pub(super) fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    if set.set(cpu).is_ok() {
        let _ = sched_setaffinity(Pid::from_raw(0), &set);
    }
}
