//! What a thread waits for, from its system call and what the kernel and the memory say of its arguments.

use super::descriptors::{kind, watched, Ends, Kind, Way};
use super::futex;
use super::locks;
use super::look::{Activity, Process, Thread};
use super::proc::{self, Call};
use super::wait::{name, Enders, Party, Surroundings, Wait};
use crate::runtime::tracee::semaphore;

/// What `thread` of `process` waits for; `None`: it does not.
pub(super) fn wait_of(process: &Process, thread: &Thread, around: &Surroundings) -> Option<Wait> {
    match thread.activity {
        Activity::Waiting => Some(waiting(process, thread, around)),
        Activity::Stopped if process.tracer != 0 => {
            let tracer = format!("its tracer, process {}", process.tracer);
            Some(Wait::new(
                "(stopped by its tracer)",
                "its tracer",
                "",
                Enders::Unknown(format!("it is up to {tracer}")),
            ))
        }
        Activity::Stopped => {
            let why = format!("a signal has stopped it; 'kill -CONT {}' lets it go on", process.pid);
            Some(Wait::new("(stopped by a signal)", "SIGCONT", "", Enders::Unknown(why)))
        }
        _ => None,
    }
}

fn waiting(process: &Process, thread: &Thread, around: &Surroundings) -> Wait {
    let Call::Blocked { nr, args, .. } = &thread.mark.call else {
        let place = thread.kernel_function.as_deref().unwrap_or("a place that must not be read");
        let why = "its system call must not be read".to_string();
        return Wait::new(format!("(in the kernel: {place})"), "what is not known", "", Enders::Unknown(why));
    };
    let nr = if *nr == libc::SYS_restart_syscall { restarted(thread) } else { *nr };
    match nr {
        libc::SYS_futex => futex::wait(process, thread, args, around),
        libc::SYS_semop | libc::SYS_semtimedop => semop(process, nr, args),
        libc::SYS_wait4 | libc::SYS_waitid | libc::SYS_vfork => children(process, nr, args),
        libc::SYS_flock | libc::SYS_fcntl => file_lock(process, nr, args, around),
        libc::SYS_msgrcv | libc::SYS_msgsnd => message(process, nr, args),
        libc::SYS_poll | libc::SYS_ppoll => poll(process, nr, args, around),
        libc::SYS_select | libc::SYS_pselect6 => select(process, nr, args, around),
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => epoll(process, nr, args, around),
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => Wait::new("sleep", "the time to pass", "", Enders::Time),
        libc::SYS_pause | libc::SYS_rt_sigsuspend | libc::SYS_rt_sigtimedwait => {
            let limited = nr == libc::SYS_rt_sigtimedwait && args[2] != 0;
            Wait::new(name(nr), "a signal", "", Enders::Outside("who sends it a signal".into())).until(limited)
        }
        _ => match transfer(nr) {
            Some(way) => descriptor(process, nr, args[0] as i32, way, around),
            None => other(thread, nr),
        },
    }
}

fn other(thread: &Thread, nr: i64) -> Wait {
    let call = if nr < 0 { "(in no system call)".to_string() } else { name(nr) };
    let place = thread.kernel_function.as_deref().map_or(String::new(), |place| format!(" (in the kernel: {place})"));
    let why = format!("what ends {call} is not known to vsrun");
    Wait::new(format!("{call}{place}"), format!("the end of {call}"), "", Enders::Unknown(why))
}

/// The call that was begun again after a stop: the kernel only says that it was.
fn restarted(thread: &Thread) -> i64 {
    let place = thread.kernel_function.as_deref().unwrap_or_default();
    match place {
        _ if place.contains("futex") => libc::SYS_futex,
        _ if place.contains("nanosleep") => libc::SYS_nanosleep,
        _ if place.contains("poll") => libc::SYS_poll,
        _ => libc::SYS_restart_syscall,
    }
}

// ------------------------------------------------------------------------------------------------------- semaphores

fn semop(process: &Process, nr: i64, args: &[u64; 6]) -> Wait {
    const MOST: u64 = 500;
    let (id, count) = (args[0] as i32, args[2].min(MOST));
    let limited = nr == libc::SYS_semtimedop && args[3] != 0;
    let mut bytes = vec![0; 6 * count as usize];
    let read = process.memory.as_ref().is_some_and(|memory| memory.read(args[1], &mut bytes).is_ok());
    let number = |at: &[u8]| i16::from_le_bytes([at[0], at[1]]);
    let ops: Vec<(u16, i16)> = bytes.chunks_exact(6).map(|op| (number(op) as u16, number(&op[2..]))).collect();
    let shown = ops.iter().map(|(n, change)| format!("[{n}] {change:+}")).collect::<Vec<_>>().join(", ");
    let call = format!("semop(set {id}, {shown})");
    let unknown = |why: &str| Wait::new(call.clone(), format!("semaphore set {id}"), "", Enders::Unknown(why.into()));
    if !read || ops.is_empty() {
        return unknown("its operations cannot be read").until(limited);
    }
    if !process.same_ipc {
        return unknown("it is in another IPC namespace, where vsrun cannot ask").until(limited);
    }
    // As the kernel does: one after the other, up to the first that cannot be done.
    let mut values = std::collections::BTreeMap::new();
    for &(n, change) in &ops {
        let Ok(semaphore) = semaphore(id, n) else { return unknown("it is gone, or must not be read").until(limited) };
        let value = values.entry(n).or_insert(semaphore.value);
        let blocks = if change == 0 { *value != 0 } else { *value + i32::from(change) < 0 };
        if blocks {
            let object = format!("[{n}] of semaphore set {id}");
            let last = semaphore.last;
            let who = format!("value {}", semaphore.value);
            let enders = match last {
                0 => Enders::Unknown("nobody has changed it yet, so that who will is not known".into()),
                last if last == process.pid => {
                    Enders::Unknown("it was the last to change it itself, so that who will is not known".into())
                }
                last if proc::stat(&last.to_string()).is_none_or(|stat| stat.state == 'Z') => Enders::Unknown(format!(
                    "process {last}, which has changed it last, is over; if it held it, nobody gives it back"
                )),
                last => Enders::Likely(vec![Party::Process(last)]),
            };
            return Wait::new(call, object, "last changed by", enders).with(who).until(limited);
        }
        *value += i32::from(change);
    }
    unknown("its values have changed meanwhile").until(limited)
}

fn message(process: &Process, nr: i64, args: &[u64; 6]) -> Wait {
    let id = args[0] as i32;
    let receives = nr == libc::SYS_msgrcv;
    let (object, via) = match receives {
        true => (format!("a message in queue {id}"), "last sent by"),
        false => (format!("room in message queue {id}"), "last received by"),
    };
    let text = std::fs::read_to_string(format!("/proc/{}/root/proc/sysvipc/msg", process.pid));
    let text = text.or_else(|_| std::fs::read_to_string("/proc/sysvipc/msg")).unwrap_or_default();
    let fields = text.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let line = fields.filter(|_| process.same_ipc).find(|f| f.get(1).and_then(|id| id.parse().ok()) == Some(id));
    let last = line.as_ref().and_then(|f| f.get(if receives { 5 } else { 6 })?.parse::<i32>().ok());
    let enders = match last {
        Some(last) if last > 0 && last != process.pid && proc::stat(&last.to_string()).is_some() => {
            Enders::Likely(vec![Party::Process(last)])
        }
        Some(0) => Enders::Unknown("nobody has done that yet, so that who will is not known".into()),
        Some(last) => Enders::Unknown(format!("who will is not known (last: process {last})")),
        None => Enders::Unknown("the queue cannot be looked at".into()),
    };
    let wait = Wait::new(format!("{}(queue {id})", name(nr)), object, via, enders);
    match line.and_then(|f| f.get(4).map(|n| format!("messages in it: {n}"))) {
        Some(fact) => wait.with(fact),
        None => wait,
    }
}

// --------------------------------------------------------------------------------------------- processes and files

fn children(process: &Process, nr: i64, args: &[u64; 6]) -> Wait {
    const P_PID: u64 = 1;
    let parents = proc::parents();
    let all = parents.iter().filter(|(_, &parent)| parent == process.pid).map(|(&child, _)| child);
    let wanted = match nr {
        libc::SYS_wait4 => Some(args[0] as i32).filter(|&pid| pid > 0),
        libc::SYS_waitid if args[0] == P_PID => Some(args[1] as i32),
        _ => None,
    };
    let wanted = wanted.filter(|_| process.same_pids);
    let children: Vec<i32> = all.filter(|child| wanted.is_none_or(|pid| pid == *child)).collect();
    let parties = children.iter().map(|&pid| Party::Process(pid)).collect();
    let which = wanted.map_or(String::new(), |pid| pid.to_string());
    let enders =
        if children.is_empty() { Enders::Unknown("no child of it can be seen".into()) } else { Enders::Only(parties) };
    let wait = Wait::new(format!("{}({which})", name(nr)), "the end of", "", enders);
    match children.len() {
        0 | 1 => wait,
        n => wait.with(format!("any of {n} children")),
    }
}

fn file_lock(process: &Process, nr: i64, args: &[u64; 6], around: &Surroundings) -> Wait {
    use std::os::unix::fs::MetadataExt;
    let fd = args[0] as i32;
    let path = proc::link(process.pid, &format!("fd/{fd}")).map_or("?".into(), |path| path.display().to_string());
    let inode = std::fs::metadata(format!("/proc/{}/fd/{fd}", process.pid)).map(|meta| meta.ino());
    // Record locks belong to processes, the others to open file descriptions.
    let kind = match nr {
        libc::SYS_flock => Some("FLOCK"),
        _ if args[1] as i32 == libc::F_OFD_SETLKW => Some("OFDLCK"),
        _ => None,
    };
    let who = if kind == Some("OFDLCK") { -1 } else { process.pid };
    let holders = inode.ok().and_then(|inode| locks::holders(who, inode)).unwrap_or_default();
    let by_description = kind.map(|kind| around.descriptors.lockers(&path, kind)).unwrap_or_default();
    let is_there = |pid: &i32| proc::stat(&pid.to_string()).is_some_and(|stat| stat.state != 'Z');
    let parties = |pids: Vec<i32>| pids.into_iter().map(Party::Process).collect();
    let enders = match (by_description.is_empty(), holders.is_empty()) {
        (false, _) if around.descriptors.hidden == 0 => Enders::Only(parties(by_description)),
        (false, _) => Enders::Likely(parties(by_description)),
        (true, false) if holders.iter().all(is_there) && kind.is_none() => Enders::Only(parties(holders)),
        (true, false) if holders.iter().all(is_there) => Enders::Likely(parties(holders)),
        (true, false) => Enders::Unknown("who has taken it is over, and who has it now cannot be seen".into()),
        (true, true) => Enders::Unknown("who has it is not in /proc/locks".into()),
    };
    Wait::new(format!("{}({path})", name(nr)), format!("the lock on {path}"), "held by", enders)
}

/// Calls that wait at the descriptor that is their first argument.
fn transfer(nr: i64) -> Option<Way> {
    match nr {
        libc::SYS_read | libc::SYS_readv | libc::SYS_recvfrom | libc::SYS_recvmsg | libc::SYS_recvmmsg => Some(Way::In),
        libc::SYS_accept | libc::SYS_accept4 => Some(Way::In),
        libc::SYS_write | libc::SYS_writev | libc::SYS_sendto | libc::SYS_sendmsg | libc::SYS_sendmmsg => {
            Some(Way::Out)
        }
        _ => None,
    }
}

fn descriptor(process: &Process, nr: i64, fd: i32, way: Way, around: &Surroundings) -> Wait {
    let call = format!("{}({fd})", name(nr));
    match around.descriptors.ends(process.pid, fd, way) {
        Some(ends) => {
            let enders = enders_of(process, &ends, around);
            Wait::new(call, ends.what, ends.via, enders)
        }
        None => {
            let link =
                proc::link(process.pid, &format!("fd/{fd}")).map_or("?".into(), |link| link.display().to_string());
            let why = format!("who has the other end of {link} is not known");
            Wait::new(call, format!("descriptor {fd} ({link})"), "", Enders::Unknown(why))
        }
    }
}

fn enders_of(process: &Process, ends: &Ends, around: &Surroundings) -> Enders {
    let parties: Vec<Party> = ends.processes.iter().map(|&pid| Party::Process(pid)).collect();
    match &ends.outside {
        Some(who) => Enders::Outside(who.clone()),
        None if own_handler(process, &ends.processes) => match &process.threads[..] {
            [_] => Enders::Outside(HANDLER.into()),
            _ => Enders::Unknown(OWN.into()),
        },
        // Who must not be looked at may have it too.
        None if around.descriptors.hidden > 0 => Enders::Likely(parties),
        None => Enders::Only(parties),
    }
}

/// Who ends a wait at a pipe that signal handlers write to.
const HANDLER: &str = "a signal handler of its own";
/// The same where there are other threads.
const OWN: &str = "another thread of it or a signal handler may do that, and who is to is not known";

/// A handler for signals may write to a pipe of which the process has both ends.
fn own_handler(process: &Process, others: &[i32]) -> bool {
    others.contains(&process.pid) && proc::catches_signals(process.pid)
}

// --------------------------------------------------------------------------------------------- several descriptors

fn poll(process: &Process, nr: i64, args: &[u64; 6], around: &Surroundings) -> Wait {
    const MOST: u64 = 1024;
    let limited = if nr == libc::SYS_poll { args[2] as i32 >= 0 } else { args[2] != 0 };
    let mut bytes = vec![0; 8 * args[1].min(MOST) as usize];
    let read = process.memory.as_ref().is_some_and(|memory| memory.read(args[0], &mut bytes).is_ok());
    let one = |entry: &[u8]| {
        let fd = i32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]);
        (fd, u32::from(u16::from_le_bytes([entry[4], entry[5]])))
    };
    let all: Vec<(i32, u32)> = bytes.chunks_exact(8).map(one).filter(|(fd, _)| *fd >= 0).collect();
    several(process, nr, read.then_some(all), args[1] <= MOST, around).until(limited)
}

fn select(process: &Process, nr: i64, args: &[u64; 6], around: &Surroundings) -> Wait {
    const MOST: u64 = 1024;
    let bits = |address: u64| -> Option<Vec<u8>> {
        let mut bytes = vec![0; (args[0].min(MOST) as usize).div_ceil(64) * 8];
        if address != 0 {
            process.memory.as_ref()?.read(address, &mut bytes).ok()?;
        }
        Some(bytes)
    };
    let sets = [bits(args[1]), bits(args[2])];
    let all = match &sets {
        [Some(read), Some(write)] => {
            let is_in = |set: &[u8], fd: i32| set[fd as usize / 8] >> (fd % 8) & 1 == 1;
            let events = |fd: i32| (u32::from(is_in(read, fd)) * IN) | (u32::from(is_in(write, fd)) * OUT);
            let fds = 0..args[0].min(MOST) as i32;
            Some(fds.map(|fd| (fd, events(fd))).filter(|(_, events)| *events != 0).collect())
        }
        _ => None,
    };
    several(process, nr, all, args[0] <= MOST, around).until(args[4] != 0)
}

fn epoll(process: &Process, nr: i64, args: &[u64; 6], around: &Surroundings) -> Wait {
    let limited = match nr {
        libc::SYS_epoll_pwait2 => args[3] != 0,
        _ => args[3] as i32 >= 0,
    };
    let fd = args[0] as i32;
    let is_one = kind(process.pid, fd) == Some(Kind::Epoll);
    several(process, nr, is_one.then(|| watched(process.pid, fd)), true, around).until(limited)
}

const IN: u32 = 1;
const OUT: u32 = 4;

/// Any of several descriptors, each with what is waited for there; `None`: which they are cannot be read.
fn several(process: &Process, nr: i64, all: Option<Vec<(i32, u32)>>, whole: bool, around: &Surroundings) -> Wait {
    let Some(all) = all else {
        let why = "which descriptors it waits for cannot be read".to_string();
        return Wait::new(name(nr), "descriptors", "", Enders::Unknown(why));
    };
    let numbers = all.iter().take(8).map(|(fd, _)| fd.to_string()).collect::<Vec<_>>().join(", ");
    let more = if all.len() > 8 { ", .." } else { "" };
    let call = format!("{}({numbers}{more})", name(nr));
    let (mut parties, mut what, mut outside) = (Vec::new(), Vec::new(), None);
    let (mut via, mut unknown) = ("", None);
    for &(fd, events) in &all {
        let way = if events & OUT != 0 && events & IN == 0 { Way::Out } else { Way::In };
        match around.descriptors.ends(process.pid, fd, way) {
            Some(ends) => {
                what.push(ends.what);
                via = ends.via;
                outside = outside.or(ends.outside);
                if own_handler(process, &ends.processes) {
                    match &process.threads[..] {
                        [_] => outside = outside.or(Some(HANDLER.into())),
                        _ => unknown = Some(OWN.into()),
                    }
                }
                parties.extend(ends.processes.into_iter().map(Party::Process));
            }
            None => unknown = Some(format!("who makes descriptor {fd} ready is not known")),
        }
    }
    parties.sort();
    parties.dedup();
    let object = match &what[..] {
        [] if all.is_empty() => "no descriptor at all".to_string(),
        [] => "descriptors".to_string(),
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first}, or {} more", rest.len()),
    };
    let enders = match (outside, unknown) {
        (Some(who), _) => Enders::Outside(who),
        (None, Some(why)) => Enders::Unknown(why),
        (None, None) if all.is_empty() => Enders::Outside("who sends it a signal".into()),
        (None, None) if !whole || around.descriptors.hidden > 0 => Enders::Likely(parties),
        (None, None) => Enders::Only(parties),
    };
    Wait::new(call, object, via, enders)
}
