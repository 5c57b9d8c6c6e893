//! Answers questions of gdb's script, which has stopped a program: a line in, a line out.

use std::fs;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::{json, Value};
use vsrun_model::{End, ProcState};

use crate::explore::Failure;
use crate::finding::{BugKind, Names, People, ThreadStatus};
use crate::report::json::add_state;
use crate::report::text::ring;
use crate::runtime::checkpoint::{ArenaMap, Handle};
use crate::runtime::Inspector;
use crate::trace::Trace;

/// CPU time that a process uses without a visible operation before it is stopped, in ticks of a hundredth of a second.
const SPINS: u64 = 100;
/// How often that is looked at.
const OFTEN: Duration = Duration::from_millis(100);

/// Reads lines and answers each of them, until there are no more. `state PID`: an object on the world that process PID belongs to.
/// `stop N FILE`: as soon as the world of the process whose number is in that file has made N transitions, and who has the turn then uses a
/// second of CPU time without an operation, that process gets SIGINT; the next line takes that back. Errors are objects with `error`.
///
/// # Errors
/// The answer cannot be written.
pub(super) fn answer() -> Result<i32, Failure> {
    let mut inspector = Inspector::default();
    let mut lookout: Option<Arc<AtomicBool>> = None;
    for line in io::stdin().lock().lines() {
        let line = line?;
        if let Some(lookout) = lookout.take() {
            lookout.store(true, Ordering::Relaxed);
        }
        let mut words = line.splitn(3, ' ');
        let (what, number, file) = (words.next(), words.next().and_then(|word| word.parse::<u64>().ok()), words.next());
        let said = match (what, number, file) {
            (Some("state"), Some(pid), None) => {
                state(&mut inspector, pid as i32).unwrap_or_else(|e| json!({"error": e.to_string()}))
            }
            (Some("stop"), Some(steps), Some(file)) => {
                lookout = Some(watch_out(PathBuf::from(file), steps));
                json!({})
            }
            (Some("rest"), None, None) => json!({}),
            _ => json!({"error": "not understood"}),
        };
        let mut out = io::stdout().lock();
        writeln!(out, "{said}")?;
        out.flush()?;
    }
    Ok(0)
}

/// The world that process `pid` belongs to: `taken` transitions; `running`, who has the turn; the threads with what reports say of them, and with
/// the kernel's number of the process (`pid`) and the thread pointer (`fs`), by which a debugger finds them; the `circle`, drawn; and where
/// it has `ended`, by what `kind` of bug, in a line.
fn state(inspector: &mut Inspector, pid: i32) -> io::Result<Value> {
    let arena = ArenaMap::of_process(pid)?;
    let world = &arena.world;
    let found = inspector.glance(world, &Trace::read(&arena));
    let people = People::of(&found);
    let mut threads = Vec::new();
    for (t, view) in (0..).zip(&found.threads) {
        let process = &world.procs[view.process];
        let over = view.status == ThreadStatus::Exited || process.state != ProcState::LIVE;
        let mut line = json!({
            "thread": view.uid.to_string(), "name": people.thread(t), "process": process.vpid, "pid": process.own.real_pid,
            "fs": world.threads[t].fiber.fs, "status": view.status, "over": over,
        });
        add_state(&mut line, view, &people);
        threads.push(line);
    }
    Ok(json!({
        "taken": arena.taken, "ended": world.end != End::RUNNING, "kind": found.kind.map(BugKind::name),
        "summary": found.summary.render(&people),
        "running": world.threads.get(world.current).map(|thread| thread.uid.to_string()),
        "threads": threads,
        "circle": found.cycle.as_ref().filter(|cycle| !cycle.is_empty()).map(|cycle| ring(cycle, &people)),
    }))
}

/// Waits for a program that runs for ever; see [`answer`]. Where the flag is set nobody waits any more.
fn watch_out(file: PathBuf, steps: u64) -> Arc<AtomicBool> {
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&over);
    thread::spawn(move || {
        let mut since = None;
        while !is_over.load(Ordering::Relaxed) {
            let now = progress(&file).filter(|now| now.taken >= steps);
            match (&since, now) {
                (Some(Progress { ops, process, used, .. }), Some(now))
                    if (*ops, *process) == (now.ops, now.process) =>
                {
                    if now.used.saturating_sub(*used) >= SPINS && !is_over.swap(true, Ordering::Relaxed) {
                        interrupt(&file, now.process);
                    }
                }
                (_, now) => since = now,
            }
            thread::sleep(OFTEN);
        }
    });
    over
}

/// Sends SIGINT to that process of the program. It may be over by now, and its number another's: what is held stays the same process, and whether that
/// is one of the program's is looked at after it is held.
fn interrupt(file: &Path, process: i32) {
    let Ok(held) = Handle::of(process) else { return };
    if main_process(file).is_some_and(|main| ArenaMap::is_shared_by(main, process).unwrap_or(false)) {
        let _ = held.send(libc::SIGINT);
    }
}

/// The process of the program that is written there.
fn main_process(file: &Path) -> Option<i32> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// How far a program is.
struct Progress {
    taken: u64,
    ops: u64,
    /// The process that has the turn, and the CPU time that it has used, in ticks.
    process: i32,
    used: u64,
}

fn progress(file: &Path) -> Option<Progress> {
    let arena = ArenaMap::of_process(main_process(file)?).ok()?;
    let world = &arena.world;
    let process = world.procs.get(world.threads.get(world.current)?.pid)?.own.real_pid;
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Behind the name, which is in brackets: the fields from the third on. Time in user code and in the kernel are the 14th and 15th.
    let mut times = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut time = || times.next()?.parse::<u64>().ok();
    Some(Progress { taken: arena.taken, ops: world.ops, process, used: time()? + time()? })
}
