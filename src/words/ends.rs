//! How an execution ended, in a line: what kind of bug it is and what is to be said of it first.

use vsrun_model::kind::{Operands, Role};
use vsrun_model::{End, Misuse, ProcState, Process, ThreadState, Tid, World, NONE};

use super::ops::{in_handler, pending_text};
use super::syscalls;
use crate::finding::{signal_name, words, BugKind, CycleLink, Ending, Intrusion, ProgramStatus, Thing, Words};

/// The circle of waiting that ended the execution.
pub fn cycle(world: &World) -> Option<Vec<CycleLink>> {
    let threads = &world.cycle[..(world.n_cycle as usize).min(world.cycle.len())];
    let link = |&thread: &Tid| {
        let op = world.threads.get(thread)?.pending;
        let row = op.kind.row();
        let object = match (row.operands, row.role) {
            (Operands::Thread, _) => None,
            (_, Role::Reacquires) => Some(op.obj2),
            _ => Some(op.obj),
        };
        Some(CycleLink { thread, object })
    };
    (world.end == End::CYCLE && !threads.is_empty()).then(|| threads.iter().filter_map(link).collect())
}

/// Kind of bug, if it is one, and the line about an execution that ended so; `at`: the innermost function of the program
/// in the thread that has the turn.
pub fn line(world: &World, ending: &Ending, at: Option<&str>) -> (Option<BugKind>, Words) {
    let thread = Thing::Thread(world.current);
    let at = at.map_or(String::new(), |at| format!(" at {at}"));
    match ending {
        Ending::Modelled => match headline(world) {
            Some((kind, line)) => (Some(kind), line),
            None => (None, words!["the execution ended without a bug (", end_name(world.end), ")"]),
        },
        Ending::Crash { signal, .. } => (Some(BugKind::Crash), words![fatal(*signal), " in thread ", thread, at]),
        Ending::Divergence => {
            let runs = " runs without ever reaching a visible operation";
            (Some(BugKind::Divergence), words!["thread ", thread, runs, at])
        }
        Ending::Sits { thread, call } => (None, sits(world, *thread, call)),
        Ending::Died(status) => (None, words!["a process ended behind the model's back (status ", *status, ")"]),
        Ending::Outside(what) => (None, outside(world, what)),
        Ending::Memory { used, bound } => (None, memory(*used, *bound).into()),
        Ending::Overwritten => (None, "the program overwrote vsrun's memory".into()),
        Ending::Interrupted => (None, "interrupted".into()),
    }
}

/// What came from outside, and to whom.
fn outside(world: &World, what: &Intrusion) -> Words {
    let whom: Words = match what.process {
        Some(process) if (process as usize) < world.procs.as_slice().len() => {
            words!["process ", Thing::Process(process), " of the program"]
        }
        _ => "the process from which executions are forked".into(),
    };
    let by = match what.sender {
        _ if what.signal == libc::SIGKILL => " (by kill, or by the kernel when memory was short)".to_string(),
        0 => String::new(),
        sender => format!(" (by process {sender})"),
    };
    words![fatal(what.signal), " was sent to ", whom, " from outside", by, "; that is no behaviour of the program"]
}

fn memory(used: u64, bound: u64) -> String {
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let (used, bound) = (mib(used), mib(bound));
    format!("the program's processes use {used} MiB of memory together, and may use {bound} MiB; --memory sets that")
}

/// The name of a fatal signal.
fn fatal(signal: i32) -> String {
    const FIRST_REAL_TIME: i32 = 34; // of those that glibc leaves to programs
    match signal {
        FIRST_REAL_TIME..=64 => format!("SIGRTMIN+{}", signal - FIRST_REAL_TIME),
        1..FIRST_REAL_TIME => signal_name(signal as u32),
        _ => "a signal".to_string(),
    }
}

fn end_name(end: End) -> &'static str {
    match end {
        End::FINISHED => "everything finished",
        End::DEPTH => "depth bound",
        End::WAITS_OUTSIDE => "what is left waits for peers that do not come",
        End::SLEEP_BLOCKED => "everything enabled is asleep",
        End::MET => "the state was met before",
        End::MISMATCH => "the schedule could not be followed",
        _ => "no end",
    }
}

/// The process that has the turn only waits for input from outside, and everything else is over.
pub fn waits_outside(world: &World, call: &[u64; 7]) -> bool {
    world.live.len == 1 && call[0] > 0 && syscalls::waits_for_input(call[0] as i64 - 1)
}

fn sits(world: &World, thread: Tid, call: &[u64; 7]) -> Words {
    let uid = world.threads.get(thread).map_or(String::new(), |t| t.uid.to_string());
    if call[0] == 0 {
        return words!["thread ", uid, " neither runs nor waits in a system call"];
    }
    let name = syscalls::name(call[0] as i64 - 1);
    format!(
        "thread {uid} sits in {name}({:#x}, {:#x}, {:#x}), which vsrun does not model: what it waits for may be another \
         thread of the program, which cannot run meanwhile",
        call[1], call[2], call[3]
    )
    .into()
}

/// Kind of bug and the line about it, where the way the execution ended is a bug of the program or something that
/// vsrun does not support. `None`: it is neither, or (crash, divergence) the model does not know it.
pub fn headline(world: &World) -> Option<(BugKind, Words)> {
    let thread = || Thing::Thread(world.end_thread);
    let message = || String::from_utf8_lossy(world.message()).trim_end().to_string();
    Some(match world.end {
        End::DEADLOCK => (BugKind::Deadlock, deadlock(world)),
        End::CYCLE => (BugKind::Deadlock, circle(world)),
        End::ASSERT | End::FREED => (BugKind::Assert, message().into()),
        End::MISUSE => (BugKind::Assert, misuse(world)),
        End::LIVELOCK => {
            let process = Thing::Process(world.end_obj);
            let states = words![" could do nothing in ", world.end_code, " states in a row"];
            (BugKind::Livelock, words!["process ", process, states])
        }
        End::LOOP => (BugKind::Livelock, going_round(world)),
        End::STATUS => match ProgramStatus::from_wait(world.end_code as i32) {
            ProgramStatus::Exit(status) => {
                let last = world.threads.get(world.end_thread).is_some_and(|t| world.is_last_start(t.pid));
                let what = if last { ", at the last start of the program (--restart)" } else { "" };
                (BugKind::Assert, words!["exit status ", status, ", by thread ", thread(), what])
            }
            ProgramStatus::Signal(signal) => {
                (BugKind::Assert, words!["exit status: killed by signal ", signal, ", thread ", thread()])
            }
        },
        End::KILLED => {
            let kills = words![Thing::Signal(world.end_code), " kills "];
            let whom = match world.end_obj {
                NONE => "the first process".into(),
                p => words!["process ", Thing::Process(p), ", the program started again"],
            };
            (BugKind::Crash, words![kills, whom, ", sent by thread ", thread()])
        }
        End::UNSUPPORTED | End::ROOM => (BugKind::Error, message().into()),
        End::REFUSED => (BugKind::Environment, message().into()),
        _ => return None,
    })
}

fn misuse(world: &World) -> Words {
    let object = if world.end_obj == NONE { Words::default() } else { words![": ", Thing::Object(world.end_obj)] };
    let what = Misuse(world.end_code).name();
    words!["misuse by thread ", Thing::Thread(world.end_thread), ": ", what, object]
}

fn circle(world: &World) -> Words {
    let links = cycle(world).unwrap_or_default();
    let what = |link: &CycleLink, end: &'static str| link.object.map_or(end.into(), |id| Thing::Object(id).into());
    if let [link] = links.as_slice() {
        let handler = world.threads.get(world.cycle[0]).map_or(Words::default(), in_handler);
        let what: Words = what(link, "its own end");
        return words!["thread ", Thing::Thread(link.thread), " waits for ", what, ", which it holds itself", handler];
    }
    let one = |l: &CycleLink| words![Thing::Thread(l.thread), " for ", what(l, "a thread's end")];
    words![links.len(), " threads wait for each other: ", abridged(links.iter().map(one))]
}

fn abridged(items: impl Iterator<Item = Words>) -> Words {
    Words::list(items, ", ", 4)
}

/// Threads that have moved since the state to which they have come back.
pub(super) fn who_goes_round(world: &World) -> impl Iterator<Item = Tid> + '_ {
    let since = u64::from(world.end_code);
    world.live.as_slice().iter().copied().filter(move |&t| world.threads[t].moved > since)
}

fn going_round(world: &World) -> Words {
    let round = world.moves.saturating_sub(world.end_code.into());
    let names = abridged(who_goes_round(world).map(|t| words![Thing::Thread(t)]));
    let back = words![" after ", world.end_code, " transitions, ", round, " more lead back to the same state"];
    match who_goes_round(world).count() {
        1 => words!["thread ", names, " can go round for ever and gets nowhere:", back],
        _ => words!["threads ", names, " can go round for ever and get nowhere:", back],
    }
}

fn deadlock(world: &World) -> Words {
    let waiting = world.live.as_slice().iter().filter(|&&t| world.threads[t].state == ThreadState::PARKED);
    let one = |&t: &Tid| words![Thing::Thread(t), " in ", pending_text(world, t)];
    let list = abridged(waiting.map(one));
    let stopped = |p: &&Process| p.stopped != 0 && p.state == ProcState::LIVE;
    let of = |p: &Process| {
        let by = match world.threads.contains(p.stopper) {
            true => words![", by thread ", Thing::Thread(p.stopper)],
            false => Words::default(),
        };
        words!["process ", p.vpid, " is stopped (", Thing::Signal(p.stopped.into()), by, ")"]
    };
    let stopped: Vec<Words> = world.procs.as_slice().iter().filter(stopped).map(of).collect();
    if !stopped.is_empty() {
        return words!["nothing can move: ", abridged(stopped.into_iter()), "; waiting: ", list];
    }
    match world.live.as_slice().len() {
        1 => words!["nothing can move, one thread waits: ", list],
        n => words!["nothing can move, ", n, " threads wait: ", list],
    }
}
