//! `vsrun cluster`: a search is split, its pieces are explored side by side, and summed up. What the pieces have come to stands in their files alone, so that
//! whoever is killed, this process too, costs no more than the time since it last saved.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sched::{sched_setaffinity, CpuSet};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;

use crate::base::print::complain;
use crate::config::{Cluster, MergePieces, Searched, SplitPieces};
use crate::explore::{merge, progress, progress_of, split, Failure, Progress, Split};
use crate::finding::Summary;
use crate::runtime::cpus;

/// A piece whose process is killed so often is not begun again.
const TRIES: u32 = 5;
/// How often it is said how far it is.
const NEWS: Duration = Duration::from_secs(2);
/// How often it is looked whether a process is over.
const PAUSE: Duration = Duration::from_millis(20);

/// Runs all of it; `again` says whether there are pieces that go on.
///
/// # Errors
/// The program cannot be run, or a piece cannot be explored.
pub fn run(args: &Cluster, search: &Searched, again: bool) -> Result<Summary, Failure> {
    let nodes = args.nodes.map_or_else(|| cpus().len().max(1), |n| n as usize);
    let into = args.into.unwrap_or(16 * nodes as u32);
    let how = SplitPieces { into, dir: args.dir.clone(), look: args.look, search: None };
    if !again {
        if let Split::Over(summary) = split(&how, search, false)? {
            return Ok(summary);
        }
    }
    loop {
        let pieces = progress(&args.dir)?;
        if pieces.iter().any(|piece| piece.outdated) {
            tell("objects turned out to be shared: the search is split again");
            split(&how, search, true)?;
            continue;
        }
        let left: VecDeque<PathBuf> =
            pieces.iter().filter(|piece| !piece.over).map(|piece| piece.file.clone()).collect();
        if left.is_empty() {
            break;
        }
        let all = pieces.len();
        let desk = Mutex::new(Desk {
            left,
            under_way: 0,
            ends: None,
            outdated: false,
            tries: 0,
            all,
            told: Instant::now(),
            grain: args.grain,
        });
        let desk = explore_all(desk, args, (nodes, search.config.keep_going))?;
        match desk.ends {
            Some(End::Bug) => break,
            Some(End::Failed(failure)) => return Err(failure),
            None => {}
        }
    }
    let (format, scenario_dir) = (args.format, args.scenario_dir.clone());
    merge(&MergePieces { format, scenario_dir, dir: args.dir.clone() }, search.config.clone())
}

/// What the nodes share.
struct Desk {
    left: VecDeque<PathBuf>,
    under_way: usize,
    ends: Option<End>,
    outdated: bool,
    /// Processes that were killed.
    tries: u32,
    /// How long a piece has its turn: longer, where one got nowhere in that time.
    grain: Duration,
    /// Pieces.
    all: usize,
    /// When it was said last how far it is.
    told: Instant,
}

/// What ends the exploration.
enum End {
    Bug,
    Failed(Failure),
}

impl Desk {
    fn news(&mut self) {
        if self.told.elapsed() >= NEWS {
            self.told = Instant::now();
            let open = self.left.len() + self.under_way;
            tell(&format!(
                "{} of {} pieces explored, {} under way",
                self.all - open.min(self.all),
                self.all,
                self.under_way
            ));
        }
    }

    fn is_over(&self) -> bool {
        self.ends.is_some() || self.outdated || self.left.is_empty() && self.under_way == 0
    }
}

fn lock(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tell(text: &str) {
    complain(&format!("vsrun: {text}"));
}

/// Explores all pieces that are left, so many at a time.
fn explore_all(desk: Mutex<Desk>, args: &Cluster, (nodes, keep_going): (usize, bool)) -> Result<Desk, Failure> {
    let own = std::env::current_exe().map_err(|e| Failure::environment(format!("vsrun's own file: {e}")))?;
    let cpus = cpus();
    std::thread::scope(|scope| {
        for node in 0..nodes {
            let (desk, own, cpu) = (&desk, &own, cpus.get(node % cpus.len().max(1)).copied());
            scope.spawn(move || {
                // What it starts is on that CPU: vsrun takes the first that it may use.
                let mut only = CpuSet::new();
                if cpu.is_some_and(|cpu| only.set(cpu).is_ok()) {
                    let _ = sched_setaffinity(Pid::from_raw(0), &only);
                }
                work(desk, own, (args, node), keep_going);
            });
        }
    });
    Ok(desk.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Explores one piece after the other.
fn work(desk: &Mutex<Desk>, own: &Path, (args, node): (&Cluster, usize), keep_going: bool) {
    let errors = args.dir.join(format!("node-{node}.err"));
    loop {
        let mut state = lock(desk);
        if state.is_over() {
            let _ = fs::remove_file(&errors);
            return;
        }
        let Some(piece) = state.left.pop_front() else {
            drop(state);
            std::thread::sleep(PAUSE);
            continue;
        };
        state.under_way += 1;
        let grain = state.grain;
        drop(state);
        let before = progress_of(&piece).map_or(0, |piece| piece.executions);
        let ended = one(desk, own, (&piece, grain), &errors);
        let mut state = lock(desk);
        state.under_way -= 1;
        take(&mut state, (piece, before), ended, keep_going);
        state.news();
    }
}

/// What a process has come to that explored a piece, which had so many executions `before`.
fn take(
    state: &mut Desk,
    (piece, before): (PathBuf, u64),
    ended: std::io::Result<(ExitStatus, String)>,
    keep_going: bool,
) {
    let (status, said) = match ended {
        Ok(ended) => ended,
        Err(e) => {
            state.ends.get_or_insert(End::Failed(Failure::environment(format!("vsrun pieces work: {e}"))));
            return;
        }
    };
    match status.code() {
        Some(0) => {}
        Some(1) if !keep_going => drop(state.ends.get_or_insert(End::Bug)),
        Some(1 | 3) => match progress_of(&piece) {
            Ok(Progress { outdated: true, .. }) => state.outdated = true,
            Ok(Progress { over: true, .. }) => {}
            Ok(Progress { executions, .. }) => {
                // The way to main, or one execution, takes longer than its turn.
                if executions == before {
                    state.grain = state.grain.saturating_mul(2);
                }
                state.left.push_back(piece);
            }
            Err(failure) => drop(state.ends.get_or_insert(End::Failed(failure))),
        },
        None if state.tries < TRIES => {
            state.tries += 1;
            tell(&format!("a process that explored {} was killed ({status}): the piece goes on", piece.display()));
            state.left.push_back(piece);
        }
        code => {
            let message =
                if said.is_empty() { format!("vsrun pieces work {}: {status}", piece.display()) } else { said };
            let message = message.strip_prefix("vsrun: ").unwrap_or(&message).to_string();
            state.ends.get_or_insert(End::Failed(Failure { code: code.unwrap_or(2), message }));
        }
    }
}

/// Runs a process for a piece until it is over, or nobody needs it. What it said to standard error.
fn one(
    desk: &Mutex<Desk>,
    own: &Path,
    (piece, grain): (&Path, Duration),
    errors: &Path,
) -> std::io::Result<(ExitStatus, String)> {
    let mut command = Command::new(own);
    command.args(["pieces", "work", "--time"]).arg(format!("{}ms", grain.as_millis())).arg(piece);
    let mut child: Child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(errors)?).spawn()?;
    let mut asked = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        let ends = lock(desk);
        if (ends.ends.is_some() || ends.outdated) && !asked {
            asked = true;
            let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
        }
        drop(ends);
        std::thread::sleep(PAUSE);
    };
    let said = fs::read_to_string(errors).unwrap_or_default();
    Ok((status, said.lines().last().unwrap_or_default().to_string()))
}
