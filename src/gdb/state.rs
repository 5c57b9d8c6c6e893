//! Answers questions of gdb's script, which has stopped a program: a line in, a line out.

use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::{json, Value};
use vsrun_model::{End, ProcState, World};

use crate::explore::Failure;
use crate::finding::{BugKind, Names, People, ThreadStatus};
use crate::report::json::add_state;
use crate::report::text::ring;
use crate::runtime::checkpoint::ArenaMap;
use crate::runtime::Inspector;
use crate::trace::Trace;

/// How long a process runs without a visible operation before it is stopped.
const SPINS: Duration = Duration::from_secs(1);

/// Reads lines and answers each of them, until there are no more. `state PID`: an object on the world that process PID belongs to.
/// `stop PID N`: as soon as that world has made N transitions and then none for a second, the process that has the turn gets SIGINT;
/// the next line takes that back. Errors are objects with `error`.
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
        let words: Vec<&str> = line.split_whitespace().collect();
        let numbers: Vec<i64> = words.iter().skip(1).filter_map(|word| word.parse().ok()).collect();
        let said = match (words.first().copied(), numbers.as_slice()) {
            (Some("state"), &[pid]) => {
                state(&mut inspector, pid as i32).unwrap_or_else(|e| json!({"error": e.to_string()}))
            }
            (Some("stop"), &[pid, steps]) => {
                lookout = Some(watch_out(pid as i32, steps as u64));
                json!({})
            }
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
fn watch_out(pid: i32, steps: u64) -> Arc<AtomicBool> {
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&over);
    thread::spawn(move || {
        let mut before = None;
        while !is_over.load(Ordering::Relaxed) {
            let now = ArenaMap::of_process(pid).ok().map(|arena| (arena.taken, arena.world.ops, holder(&arena.world)));
            match now {
                Some((taken, _, Some(process))) if taken >= steps && now == before => {
                    if !is_over.swap(true, Ordering::Relaxed) {
                        let _ = kill(Pid::from_raw(process), Signal::SIGINT);
                    }
                }
                _ => before = now,
            }
            thread::sleep(SPINS);
        }
    });
    over
}

/// The process that has the turn.
fn holder(world: &World) -> Option<i32> {
    let thread = world.threads.get(world.current)?;
    Some(world.procs.get(thread.pid)?.own.real_pid).filter(|&pid| pid > 0)
}
