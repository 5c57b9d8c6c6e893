//! How pieces go through the hands of an engine.
//!
//! Nothing is believed of it but that what it was given is over. How a task ended stands in a file that the task itself has written (`work.sh`), and
//! what it came to in the files of its piece; a task of which there is neither is lost, and its piece is handed over again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::desk::{interrupted, split_piece, tell, Desk, Turn};
use super::engine::{Engine, Tasks};
use crate::config::Cluster;
use crate::explore::{Failure, Progress};
use crate::runtime::tracee;

/// What a task runs.
static WORK: &str = include_str!("work.sh");
const SCRIPT: &str = "work.sh";
/// As long as it is there pieces are explored.
const GO: &str = "go";
/// Directories of runs begin so.
const RUN: &str = "engine-";
/// How often it is looked what has come.
const PAUSE: Duration = Duration::from_millis(200);
/// How often the engine is asked.
const ASKED: Duration = Duration::from_secs(2);
/// What is handed over is gathered for so long, while it has something to do.
const HANDED: Duration = Duration::from_secs(1);
/// An engine that does not answer is asked again for so long.
const PATIENCE: Duration = Duration::from_secs(600);
/// What is under way has so long to end when nobody wants it any more.
const LAST: Duration = Duration::from_secs(30);

/// The directory of a run, removed at the end, with the word that pieces are to be explored.
struct Place(PathBuf);

impl Place {
    /// What other runs have left there is to end: whoever began it is gone.
    fn create(dir: &Path) -> std::io::Result<Place> {
        let dir = fs::canonicalize(dir)?;
        for old in fs::read_dir(&dir)?.flatten().filter(|old| old.file_name().to_string_lossy().starts_with(RUN)) {
            let _ = fs::remove_dir_all(old.path());
        }
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let place = Place(dir.join(format!("{RUN}{}-{}", std::process::id(), since.as_millis())));
        fs::create_dir(&place.0)?;
        fs::write(place.0.join(SCRIPT), WORK)?;
        fs::write(place.0.join(GO), "")?;
        Ok(place)
    }

    fn ends(&self) {
        let _ = fs::remove_file(self.0.join(GO));
    }

    /// How a task ended, if it has.
    fn told(&self, task: &(String, usize)) -> Option<Turn> {
        let name = |what: &str| self.0.join(format!("{}.{}.{what}", task.0, task.1));
        let status: i32 = fs::read_to_string(name("exit")).ok()?.trim().parse().ok()?;
        let said = fs::read_to_string(name("err")).unwrap_or_default();
        let _ = fs::remove_file(name("exit"));
        let _ = fs::remove_file(name("err"));
        // What a shell says of one that a signal has killed.
        let code = Some(status).filter(|&status| status <= 128);
        Some(Turn::of(code, &said))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What is in the engine's hands.
struct Hands<'a> {
    engine: &'a mut dyn Engine,
    place: Place,
    /// By list and number.
    tasks: BTreeMap<(String, usize), Progress>,
    /// What the engine calls each list.
    jobs: BTreeMap<String, String>,
    lists: usize,
    /// When something was handed over last.
    handed: Option<Instant>,
    asked: Instant,
    /// Since when it has not answered.
    silent: Option<Instant>,
}

/// Explores all pieces that are left, each by that vsrun; `most` of them at a time.
///
/// # Errors
/// The directory cannot be written, or the engine does not answer.
pub(super) fn explore_all(
    mut desk: Desk,
    args: &Cluster,
    engine: &mut dyn Engine,
    most: Option<usize>,
    own: &Path,
) -> Result<Desk, Failure> {
    let place = Place::create(&args.dir).map_err(|e| Failure::environment(format!("{}: {e}", args.dir.display())))?;
    let mut hands = Hands {
        engine,
        place,
        tasks: BTreeMap::new(),
        jobs: BTreeMap::new(),
        lists: 0,
        handed: None,
        asked: Instant::now(),
        silent: None,
    };
    while !desk.is_over() {
        if tracee::interrupted() {
            desk.fails(interrupted());
            break;
        }
        if let Some(nodes) = most {
            split_long(&mut desk, (own, nodes), &args.dir);
        }
        let handed = hands.hand_over(&mut desk, own, most).and_then(|()| {
            hands.take(&mut desk);
            hands.look(&mut desk)
        });
        match handed {
            Ok(()) => hands.silent = None,
            Err(why) => hands.waits(&mut desk, &why),
        }
        desk.news();
        std::thread::sleep(PAUSE);
    }
    hands.end(&mut desk);
    Ok(desk)
}

/// Splits what is long, where fewer pieces are left than can be worked on.
fn split_long(desk: &mut Desk, (own, nodes): (&Path, usize), dir: &Path) {
    while let Some(at) = desk.left.iter().position(|piece| desk.is_better_split(piece, nodes)) {
        let Some(piece) = desk.left.remove(at) else { return };
        desk.under_way += 1;
        let parts = split_piece(own, dir, &piece);
        desk.was_split(piece, parts);
    }
}

impl Hands<'_> {
    /// Gives the engine what waits.
    fn hand_over(&mut self, desk: &mut Desk, own: &Path, most: Option<usize>) -> Result<(), String> {
        let room = most.map_or(usize::MAX, |most| most.saturating_sub(self.tasks.len())).min(self.engine.most());
        let soon = !self.tasks.is_empty() && self.handed.is_some_and(|at| at.elapsed() < HANDED);
        if soon {
            return Ok(());
        }
        desk.fill(room);
        let numbers = desk.left.len().min(room);
        if numbers == 0 {
            return Ok(());
        }
        let list = format!("list-{}", self.lists + 1);
        let names = desk.left.iter().take(numbers).filter_map(|piece| piece.file.file_name());
        let names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        fs::write(self.place.0.join(&list), names.join("\n") + "\n").map_err(|e| e.to_string())?;
        let grain = format!("{}ms", desk.turn(most).as_millis());
        let arguments = [&*self.place.0.to_string_lossy(), &*own.to_string_lossy(), &grain, &list];
        let script = self.place.0.join(SCRIPT);
        let dir = self.place.0.parent().unwrap_or(Path::new("/"));
        let tasks = Tasks { script: &script, arguments: arguments.map(String::from).to_vec(), numbers, dir };
        let job = self.engine.submit(&tasks)?;
        self.lists += 1;
        self.handed = Some(Instant::now());
        self.jobs.insert(list.clone(), job);
        for number in 1..=numbers {
            if let Some(piece) = desk.left.pop_front() {
                desk.under_way += 1;
                self.tasks.insert((list.clone(), number), piece);
            }
        }
        Ok(())
    }

    /// What has come.
    fn take(&mut self, desk: &mut Desk) {
        let ended: Vec<_> = self.tasks.keys().filter_map(|task| Some((task.clone(), self.place.told(task)?))).collect();
        for (task, turn) in ended {
            if let Some(before) = self.tasks.remove(&task) {
                desk.take(before, turn);
            }
        }
    }

    /// Asks the engine, now and then, which of its jobs are over: what has not come by then is lost.
    fn look(&mut self, desk: &mut Desk) -> Result<(), String> {
        if self.asked.elapsed() < ASKED {
            return Ok(());
        }
        self.asked = Instant::now();
        let mut over = Vec::new();
        for (list, job) in &self.jobs {
            if self.engine.is_over(job)? {
                over.push(list.clone());
            }
        }
        // What was written while it was asked is here by now.
        self.take(desk);
        for list in over {
            self.jobs.remove(&list);
            let lost: Vec<_> = self.tasks.keys().filter(|task| task.0 == list).cloned().collect();
            for task in lost {
                if let Some(before) = self.tasks.remove(&task) {
                    desk.take(before, Turn::Lost);
                }
            }
        }
        Ok(())
    }

    /// It did not answer.
    fn waits(&mut self, desk: &mut Desk, why: &str) {
        let name = self.engine.name();
        let since = *self.silent.get_or_insert_with(|| {
            tell(&format!("{name} does not answer, it is asked again: {why}"));
            Instant::now()
        });
        if since.elapsed() >= PATIENCE {
            let message = format!(
                "{name} has not answered for {} minutes: {why}; the same command goes on",
                PATIENCE.as_secs() / 60
            );
            desk.fails(Failure::environment(message));
        }
        std::thread::sleep(ASKED.saturating_sub(PAUSE));
    }

    /// What is under way ends, and is waited for.
    fn end(&mut self, desk: &mut Desk) {
        self.place.ends();
        let since = Instant::now();
        self.jobs.values().for_each(|job| self.engine.cancel(job));
        while !self.jobs.is_empty() && since.elapsed() < LAST {
            let over: Vec<_> = self
                .jobs
                .iter()
                .filter(|(_, job)| self.engine.is_over(job).unwrap_or(true))
                .map(|(list, _)| list.clone())
                .collect();
            over.iter().for_each(|list| drop(self.jobs.remove(list)));
            self.take(desk);
            std::thread::sleep(PAUSE);
        }
    }
}
