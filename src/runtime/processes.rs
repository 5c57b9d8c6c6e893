//! Processes, as the kernel has them: what stopped them, how they are let go, killed and collected, on which CPUs they run.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sched::{sched_getaffinity, sched_setaffinity, CpuSet};
use nix::sys::signal::Signal;
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::Pid;
use vsrun_model::arena::{Arena, ARENA_ADDR};
use vsrun_model::carrier::ProcessState;

use super::memory::ProcessMemory;
use super::session::{PrivateDir, SHIM_NAME};
use super::tracee::{fault_address, send, Reason, Stopped};

/// A signal by which the kernel says that the program is at fault.
pub(super) fn is_fault(signal: i32) -> bool {
    use libc::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP, SIGXCPU, SIGXFSZ};
    matches!(signal, SIGSEGV | SIGBUS | SIGFPE | SIGILL | SIGTRAP | SIGABRT | SIGXCPU | SIGXFSZ)
}

/// True if that process is stopped by a signal, and not by a tracer: by one from outside, since stops of the program are the
/// model's.
pub(super) fn is_stopped(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name before it may hold anything.
    stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
}

/// Lets a tracee go on; one that died meanwhile needs nothing.
pub(super) fn resume_quietly(stopped: Stopped) {
    let signal = match stopped.reason() {
        Reason::Signal(signal) if signal.number() != libc::SIGSTOP => Some(signal),
        _ => None,
    };
    drop(stopped.resume(signal));
}

/// Wall-clock time in which a process that was killed ends.
const KILL_LIMIT: Duration = Duration::from_secs(2);

/// Kills and collects these children of the calling thread; numbers of processes that are collected already are ignored, whoever has them now. The
/// guard is spared.
pub(super) fn reap(pids: impl IntoIterator<Item = i32>, dir: &PrivateDir) {
    let is_left = |pid: &Pid| {
        let ended = waitpid(*pid, Some(WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD | WaitPidFlag::WNOHANG));
        !matches!(ended, Err(Errno::ECHILD) | Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)))
    };
    let children = pids.into_iter().filter(|&pid| Some(pid) != dir.guard_pid()).map(Pid::from_raw);
    let left: Vec<Pid> = children.filter(is_left).collect();
    // All at once: they end beside each other.
    for &pid in &left {
        send(pid, Signal::SIGKILL);
    }
    left.into_iter().for_each(collect);
}

/// Waits for a child that was killed.
fn collect(pid: Pid) {
    let since = Instant::now();
    loop {
        match waitpid(pid, Some(WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD)) {
            Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) => return,
            // A tick has come. One that hangs in the kernel ends when that lets it.
            Err(Errno::EINTR) if since.elapsed() > KILL_LIMIT => return,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return,
        }
    }
}

/// Real pids of this thread's children.
pub(super) fn children() -> Vec<i32> {
    let text = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// The CPUs that the calling thread may use, in an order that begins with another one for another run of vsrun (most
/// often). A worker and its world share one.
pub fn cpus() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    let mut allowed: Vec<_> = (0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect();
    let first = std::process::id() as usize % allowed.len().max(1);
    allowed.rotate_left(first);
    allowed
}

/// What this process has claimed, as long as it is there.
static CLAIMED: Mutex<Claims> = Mutex::new(Vec::new());

/// The same for so many workers: first those that no other run on this machine has claimed, so that two runs at a time do not share one while another is
/// idle. They are claimed now.
pub fn cpus_for(workers: usize) -> Vec<usize> {
    claimed_first(cpus(), workers, &mut claims(), claim)
}

/// The calling thread, and what it starts, stays on as many CPUs as there are workers, which no other run has claimed; where there are fewer of these, on all that
/// it may use. Engines that start several processes on a machine need not tell each its own.
pub fn stay_on_claimed(workers: usize) {
    cpus_for(workers);
    let claimed = claims();
    if claimed.len() >= workers {
        let mut set = CpuSet::new();
        for (cpu, _) in claimed.iter().take(workers) {
            let _ = set.set(*cpu);
        }
        let _ = sched_setaffinity(Pid::from_raw(0), &set);
    }
}

fn claims() -> MutexGuard<'static, Claims> {
    CLAIMED.lock().unwrap_or_else(|e| e.into_inner())
}

/// CPUs, each with the name that says so.
type Claims = Vec<(usize, UnixDatagram)>;

fn claimed_first(
    mut all: Vec<usize>,
    workers: usize,
    claimed: &mut Claims,
    claim: impl Fn(usize) -> Option<UnixDatagram>,
) -> Vec<usize> {
    for &cpu in &all {
        if claimed.len() < workers && claimed.iter().all(|(known, _)| *known != cpu) {
            claimed.extend(claim(cpu).map(|name| (cpu, name)));
        }
    }
    all.sort_by_key(|cpu| claimed.iter().all(|(known, _)| known != cpu));
    all
}

/// Claims a CPU, if nobody has, as long as what is given is kept.
fn claim(cpu: usize) -> Option<UnixDatagram> {
    claim_by_name(&format!("vsrun-cpu-{cpu}"))
}

/// (A name in the abstract space of sockets is given back however its owner ends.)
fn claim_by_name(name: &str) -> Option<UnixDatagram> {
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name).ok()?).ok()
}

/// Keeps the calling thread, and what it starts, on that CPU.
pub(super) fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    if set.set(cpu).is_ok() {
        let _ = sched_setaffinity(Pid::from_raw(0), &set);
    }
}

/// True if `stopped` is stopped by a fault of an access to the program's memory in a call: its library answers that. It tells
/// where the table of these accesses lies (`ProcessState::answered`; the format is that of `sys::guard` in the shim).
pub(super) fn is_answered(stopped: &Stopped, own: &ProcessState) -> bool {
    let fault = |info: libc::siginfo_t| matches!(info.si_signo, libc::SIGSEGV | libc::SIGBUS) && info.si_code > 0;
    if own.crashes || !stopped.siginfo().is_ok_and(fault) {
        return false;
    }
    let (Ok(regs), Ok(memory)) = (stopped.regs(), ProcessMemory::open(stopped.pid())) else { return false };
    if opens_arena(stopped, regs.rip) {
        return true;
    }
    let [start, end] = own.answered;
    let mut table = vec![0; end.saturating_sub(start) as usize];
    if memory.read(start, &mut table).is_err() {
        return false;
    }
    const ENTRY: usize = 12;
    let instruction = |entry: &[u8]| i32::from_ne_bytes([entry[0], entry[1], entry[2], entry[3]]);
    table.chunks_exact(ENTRY).enumerate().any(|(i, entry)| {
        let place = start + (i * ENTRY) as u64;
        place.wrapping_add_signed(instruction(entry).into()) == regs.rip
    })
}

/// True if `stopped` faults where vsrun's own library writes to the arena, which could only be read: it makes itself free to.
fn opens_arena(stopped: &Stopped, rip: u64) -> bool {
    let address = stopped.siginfo().ok().as_ref().and_then(fault_address);
    let in_arena = address.is_some_and(|at| at.wrapping_sub(ARENA_ADDR) < size_of::<Arena>() as u64);
    in_arena && {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", stopped.pid())).unwrap_or_default();
        maps.lines().filter(|line| line.ends_with(SHIM_NAME)).any(|line| {
            let bounds = line.split_whitespace().next().and_then(|range| range.split_once('-'));
            let number = |text: &str| u64::from_str_radix(text, 16).ok();
            bounds.is_some_and(|(from, to)| number(from) <= Some(rip) && Some(rip) < number(to))
        })
    }
}

/// True if what `stopped` is stopped by is the fault of an instruction that reads the counter, or asks for the processor.
pub fn is_reading(stopped: &Stopped) -> bool {
    const SI_KERNEL: i32 = 0x80;
    let fault = stopped.siginfo().is_ok_and(|info| info.si_signo == libc::SIGSEGV && info.si_code == SI_KERNEL);
    if !fault {
        return false;
    }
    let (Ok(regs), Ok(memory)) = (stopped.regs(), ProcessMemory::open(stopped.pid())) else { return false };
    let byte = |at: u64| {
        let mut one = [0];
        memory.read(regs.rip.wrapping_add(at), &mut one).ok().map(|()| one[0])
    };
    vsrun_model::counter::decode(byte).is_some() || vsrun_model::cpu::decode(byte).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_run_has_claimed_comes_last() {
        let claim = |cpu: usize| claim_by_name(&format!("vsrun-test-{}-{cpu}", std::process::id()));
        let (mut one, mut other, mut third) = (Vec::new(), Vec::new(), Vec::new());
        assert_eq!(claimed_first(vec![2, 0, 1], 1, &mut one, claim), [2, 0, 1]);
        assert_eq!(claimed_first(vec![2, 0, 1], 2, &mut other, claim), [0, 1, 2]);
        // Again: it keeps what it has.
        assert_eq!(claimed_first(vec![1, 2, 0], 2, &mut other, claim), [1, 0, 2]);
        // All are taken: as they come.
        assert_eq!(claimed_first(vec![1, 2, 0], 1, &mut third, claim), [1, 2, 0]);
        assert!(third.is_empty());
        drop(one);
        assert_eq!(claimed_first(vec![1, 2, 0], 1, &mut third, claim), [2, 1, 0]);
    }
}
