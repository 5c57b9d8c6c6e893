//! Who knows which pieces are left, whoever explores them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::swarm::Swarm;
use crate::base::print::complain;
use crate::explore::{progress_of, progress_of_parts, Failure, Progress};

/// A piece whose process is killed, or lost, so often in a row is not begun again.
const TRIES: u32 = 5;
/// How often it is said how far it is.
const NEWS: Duration = Duration::from_secs(2);
/// Pieces that one of which more are to have something becomes. scripts/simulate.sh says what other numbers would cost: with many most are so small that to
/// begin them takes longer than to explore them.
const PARTS: usize = 4;
/// With fewer pieces than that for each node, those that are long are split, so that there is something for whoever is ready first.
const FEW: usize = 2;
/// By so much a turn is shorter where there is less than one for each node: what is under way can be split when its turn is over.
const SHORTER: u32 = 3;

/// What the nodes share.
pub(super) struct Desk {
    pub left: VecDeque<Progress>,
    pub under_way: usize,
    pub ends: Option<End>,
    pub outdated: bool,
    /// How long a piece has its turn: longer, where one got nowhere in that time.
    pub grain: Duration,
    keep_going: bool,
    /// Processes that were killed, or lost, since the piece last got on.
    killed: BTreeMap<PathBuf, u32>,
    /// Pieces that have had a turn of which something was left: more can work on them when there is nothing else to do.
    long: BTreeSet<PathBuf>,
    /// Where executions are drawn by lot: tasks are its, made when there is room for them.
    swarm: Option<Swarm>,
    /// Pieces.
    all: usize,
    /// Executions of this run.
    executions: u64,
    since: Instant,
    /// When it was said last how far it is.
    told: Instant,
}

/// What ends the exploration.
pub(super) enum End {
    Bug,
    Failed(Failure),
}

/// How a turn has ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The piece is explored, or its time was over; what it came to stands in its files.
    Worked,
    /// The same, and a bug of the program is among that.
    Bug,
    /// The process was killed.
    Killed,
    /// There is no word of it.
    Lost,
    /// The piece cannot be explored: the exit status that says whose fault that is, and what the process said.
    Failed(i32, String),
}

impl Turn {
    /// Of a process that explored a piece: its exit status (`None`: a signal has killed it), and what it wrote to standard error.
    pub fn of(code: Option<i32>, said: &str) -> Turn {
        match code {
            None => Turn::Killed,
            Some(0 | 3) => Turn::Worked,
            Some(1) => Turn::Bug,
            Some(code) => Turn::Failed(code, said.lines().last().unwrap_or_default().to_string()),
        }
    }
}

impl Desk {
    /// With all pieces of a directory.
    pub fn new(pieces: Vec<Progress>, grain: Duration, keep_going: bool) -> Desk {
        let all = pieces.len();
        Desk {
            left: pieces.into_iter().filter(|piece| !piece.over).collect(),
            under_way: 0,
            ends: None,
            outdated: false,
            grain,
            keep_going,
            killed: BTreeMap::new(),
            long: BTreeSet::new(),
            swarm: None,
            all,
            executions: 0,
            since: Instant::now(),
            told: Instant::now(),
        }
    }

    /// With tasks of a swarm that were begun, and those that are still to be made.
    pub fn of_swarm((swarm, left): (Swarm, Vec<Progress>), grain: Duration, keep_going: bool) -> Desk {
        Desk { swarm: Some(swarm), ..Desk::new(left, grain, keep_going) }
    }

    /// Nobody needs to go on.
    pub fn is_ending(&self) -> bool {
        self.ends.is_some() || self.outdated || self.swarm.as_ref().is_some_and(Swarm::is_late)
    }

    /// Nothing is left to be done.
    pub fn is_over(&self) -> bool {
        let spent = self.swarm.as_ref().is_none_or(Swarm::is_spent);
        self.is_ending() || self.left.is_empty() && self.under_way == 0 && spent
    }

    /// There is room for so many: a swarm makes tasks where fewer wait.
    pub fn fill(&mut self, room: usize) {
        let Some(swarm) = &mut self.swarm else { return };
        swarm.tick(false);
        while self.left.len() < room {
            match swarm.next() {
                Ok(Some(task)) => self.left.push_back(task),
                Ok(None) => return,
                Err(failure) => return self.fails(failure),
            }
        }
    }

    /// How far it is, now and then.
    pub fn news(&mut self) {
        if self.told.elapsed() >= NEWS {
            self.told = Instant::now();
            let speed = self.executions as f64 / self.since.elapsed().as_secs_f64().max(0.001);
            if let Some(swarm) = &self.swarm {
                return tell(&swarm.news(self.under_way, speed));
            }
            let open = self.left.len() + self.under_way;
            tell(&format!(
                "{} of {} pieces explored, {} under way; {} executions, {speed:.0}/s",
                self.all - open.min(self.all),
                self.all,
                self.under_way,
                self.executions
            ));
        }
    }

    /// What a turn has come to, of a piece that was so far `before`.
    pub fn take(&mut self, before: Progress, turn: Turn) {
        self.under_way -= 1;
        match turn {
            Turn::Bug if !self.keep_going => drop(self.ends.get_or_insert(End::Bug)),
            Turn::Worked | Turn::Bug | Turn::Killed | Turn::Lost => match self.progress_of(&before.file) {
                Ok(now) => self.goes_on(&before, now, matches!(turn, Turn::Killed | Turn::Lost)),
                Err(failure) => self.fails(failure),
            },
            Turn::Failed(code, said) => {
                let message = match said.is_empty() {
                    true => format!("vsrun pieces work {}: exit status {code}", before.file.display()),
                    false => said.strip_prefix("vsrun: ").unwrap_or(&said).to_string(),
                };
                self.fails(Failure { code, message });
            }
        }
        self.news();
    }

    /// How far it is, taken account of.
    fn progress_of(&mut self, file: &Path) -> Result<Progress, Failure> {
        let Some(swarm) = &mut self.swarm else { return progress_of(file) };
        let now = swarm.progress_of(file)?;
        swarm.take(file).map(|()| now)
    }

    fn goes_on(&mut self, before: &Progress, now: Progress, killed: bool) {
        let got_on = now.executions > before.executions || now.over;
        self.executions += now.executions.saturating_sub(before.executions);
        if got_on {
            self.killed.remove(&now.file);
        } else if killed {
            let tries = self.killed.entry(now.file.clone()).or_default();
            *tries += 1;
            if *tries >= TRIES {
                let message = format!(
                    "{}: {TRIES} processes that explored it were killed, one after the other",
                    now.file.display()
                );
                return self.fails(Failure::environment(message));
            }
            tell(&format!("a process that explored {} was killed: the piece goes on", now.file.display()));
        } else if !now.outdated {
            // The way to main, or one execution, takes longer than its turn.
            self.grain = self.grain.saturating_mul(2);
        }
        if now.outdated {
            self.outdated = true;
        } else if !now.over {
            if got_on {
                self.long.insert(now.file.clone());
            }
            self.left.push_back(now);
        }
    }

    /// There are fewer pieces than so many for each that can work at a time. One alone always has something to do.
    fn has_fewer(&self, each: usize, nodes: usize) -> bool {
        nodes > 1 && self.left.len() + self.under_way < each * nodes
    }

    /// The piece, which is under way or waits, is better split first, where so many can work at a time.
    pub fn is_better_split(&self, piece: &Progress, nodes: usize) -> bool {
        self.long.contains(&piece.file) && self.has_fewer(FEW, nodes)
    }

    /// How long a piece that is begun now has its turn; `nodes`: how many can work at a time, if that is known.
    pub fn turn(&self, nodes: Option<usize>) -> Duration {
        if let Some(swarm) = &self.swarm {
            return swarm.turn(self.grain);
        }
        match nodes {
            Some(nodes) if self.has_fewer(1, nodes) => (self.grain / SHORTER).max(Duration::from_millis(1)),
            _ => self.grain,
        }
    }

    /// The piece was split, or could not be: it is not under way any more.
    pub fn was_split(&mut self, piece: Progress, parts: Result<Vec<Progress>, String>) {
        self.under_way -= 1;
        self.long.remove(&piece.file);
        match parts {
            Ok(parts) => {
                self.all += parts.len().saturating_sub(1);
                self.left.extend(parts.into_iter().filter(|part| !part.over));
            }
            Err(why) => {
                tell(&format!("{} is not split: {why}", piece.file.display()));
                self.left.push_front(piece);
            }
        }
    }

    /// That is the end.
    pub fn fails(&mut self, failure: Failure) {
        self.ends.get_or_insert(End::Failed(failure));
    }
}

pub(super) fn tell(text: &str) {
    complain(&format!("vsrun: {text}"));
}

/// Splits a piece of that directory, by a process of its own: what runs a program ends all children of its process at the end.
pub(super) fn split_piece(own: &Path, dir: &Path, piece: &Progress) -> Result<Vec<Progress>, String> {
    let mut divide = Command::new(own);
    divide.args(["pieces", "divide", "--into", &PARTS.to_string()]).arg(&piece.file).stdin(Stdio::null());
    let done = divide.output().map_err(|e| e.to_string())?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(said.lines().last().unwrap_or("it was killed").to_string());
    }
    progress_of_parts(dir, &piece.file).map_err(|failure| failure.message)
}

/// What is said when vsrun was asked to end.
pub(super) fn interrupted() -> Failure {
    Failure::interrupted("interrupted: vsrun cluster -o DIR, without a program, goes on with what is there")
}

/// The file of this vsrun, which is to be there under the same name wherever pieces are explored.
pub(super) fn own_file() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|e| Failure::environment(format!("vsrun's own file: {e}")))
}

#[cfg(test)]
mod tests {
    use super::Turn;

    #[test]
    fn a_turn_is_told_by_the_status_alone() {
        let said = "vsrun: note: killed, lost, a bug\nvsrun: the last line\n";
        let of = |code| Turn::of(code, said);
        assert_eq!(
            [of(Some(0)), of(Some(3)), of(Some(1)), of(None)],
            [Turn::Worked, Turn::Worked, Turn::Bug, Turn::Killed]
        );
        for code in [2, 4, 127] {
            assert_eq!(of(Some(code)), Turn::Failed(code, "vsrun: the last line".into()));
        }
        assert_eq!(Turn::of(Some(2), ""), Turn::Failed(2, String::new()));
    }
}
