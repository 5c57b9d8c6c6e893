//! The engine on this machine: processes, each on a CPU of its own.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sched::{sched_setaffinity, CpuSet};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;

use super::desk::{interrupted, split_piece, Desk, Turn};
use crate::config::Cluster;
use crate::explore::Failure;
use crate::runtime::{cpus, tracee};

/// How often it is looked whether a process is over.
const PAUSE: Duration = Duration::from_millis(20);

fn lock(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Explores all pieces that are left, so many at a time, each by that vsrun.
pub(super) fn explore_all(desk: Desk, args: &Cluster, nodes: usize, own: &Path) -> Desk {
    let (desk, cpus) = (Mutex::new(desk), cpus());
    std::thread::scope(|scope| {
        for node in 0..nodes {
            let (desk, cpu) = (&desk, cpus.get(node % cpus.len().max(1)).copied());
            scope.spawn(move || {
                // What it starts is on that CPU: vsrun takes the first that it may use.
                let mut only = CpuSet::new();
                if cpu.is_some_and(|cpu| only.set(cpu).is_ok()) {
                    let _ = sched_setaffinity(Pid::from_raw(0), &only);
                }
                work(desk, (own, nodes), (&args.dir, &args.dir.join(format!("node-{node}.err"))));
            });
        }
    });
    desk.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Explores one piece after the other.
fn work(desk: &Mutex<Desk>, (own, nodes): (&Path, usize), (dir, errors): (&Path, &Path)) {
    loop {
        let mut state = lock(desk);
        if tracee::interrupted() {
            state.fails(interrupted());
        }
        if state.is_over() {
            let _ = fs::remove_file(errors);
            return;
        }
        state.fill(1);
        let Some(piece) = state.left.pop_front() else {
            drop(state);
            std::thread::sleep(PAUSE);
            continue;
        };
        state.under_way += 1;
        let grain = state.turn(Some(nodes));
        let split = state.is_better_split(&piece, nodes);
        drop(state);
        if split {
            let parts = split_piece(own, dir, &piece);
            lock(desk).was_split(piece, parts);
            continue;
        }
        let turn = one(desk, own, (&piece.file, grain), errors);
        let mut state = lock(desk);
        match turn {
            Ok(turn) => state.take(piece, turn),
            Err(e) => {
                state.under_way -= 1;
                state.fails(Failure::environment(format!("vsrun pieces work: {e}")));
            }
        }
    }
}

/// Runs a process for a piece until it is over, or nobody needs it.
fn one(desk: &Mutex<Desk>, own: &Path, (piece, grain): (&Path, Duration), errors: &Path) -> std::io::Result<Turn> {
    let mut command = Command::new(own);
    command.args(["pieces", "work", "--time"]).arg(format!("{}ms", grain.as_millis())).arg(piece);
    let mut child: Child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(errors)?).spawn()?;
    let mut asked = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if lock(desk).is_ending() && !asked {
            asked = true;
            // Only this thread waits for it, and it has not: the number is its own, also if it has ended by now.
            let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
        }
        std::thread::sleep(PAUSE);
    };
    let said = fs::read_to_string(errors).unwrap_or_default();
    Ok(Turn::of(status.code(), &said))
}
