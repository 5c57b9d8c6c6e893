//! The state of an exploration in a file, so that it can be resumed (`--save`, `--resume`).
//!
//! | bytes | |
//! |---|---|
//! | 16 | [`MAGIC`], the version in it |
//! | 8 + n | length and JSON of [`Header`]: what is explored, what was found; its parts are those of scenario files |
//! | n | bytes of the search (`Search::save`) |
//! | 8 | checksum of everything before (FNV-1a) |
//!
//! Numbers are little-endian. A state is written to `FILE.tmp`, the one before is kept as `FILE.1`, and only then the new
//! one gets its name: wherever this is cut off, a whole state is left.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use vsrun_model::aims::Wish;
use vsrun_model::arena::{Choice, Policy};
use vsrun_model::{Kind, Uid};

use super::executions::Counts;
use super::found::{Candidate, Found};
use super::outcomes::{Ended, Kept, Outcomes};
use super::setting::{Piece, Setting};
use super::sharing::Sharing;
use crate::base::files;
use crate::base::hash::fnv1a;
use crate::base::text::escape;
use crate::codec;
use crate::config::{Config, Race, SearchKind};
use crate::finding::BugKind;
use crate::incomplete::Reason;
use crate::objects::Objects;
use crate::runtime::cpu;
use crate::scenario;
use crate::schedule::Schedule;
use crate::search::Search;

/// First bytes of a file of any version.
const FORMAT: &[u8] = b"vsrun search ";
/// First bytes of a file; changes when an older vsrun would misread one.
const MAGIC: &[u8; 16] = b"vsrun search 24\n";
/// Bytes that a saved search may have.
const LARGEST: u64 = 4 << 30;
/// How often a state is saved.
const INTERVAL: Duration = Duration::from_secs(5);
/// What saving takes may be this part of the time at most.
const MOST: u32 = 20;

/// What is explored and what was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Header {
    /// As scenarios name it.
    pub program: scenario::Program,
    /// As in scenarios.
    pub fingerprint: Value,
    /// What executions depend on.
    pub options: scenario::Options,
    /// What [`search_text`] says.
    pub search: String,
    pub executions: u64,
    pub max_depth: u64,
    /// Executions that were cut, and those that reached their end.
    pub cut: u64,
    pub ended: u64,
    /// Why the search is not complete, and how many executions have shown it.
    pub reasons: BTreeMap<Reason, u64>,
    pub outcomes: SavedOutcomes,
    /// Functions that return a choice which have been called.
    pub tosses: u64,
    pub notes: Vec<String>,
    /// Calls that went to the kernel, by number.
    pub passed: Vec<u32>,
    /// Seconds so far.
    pub seconds: f64,
    pub bugs: Vec<SavedBug>,
    /// What is known of objects.
    pub sharing: Sharing,
    /// The piece that it is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub piece: Option<Piece>,
}

/// A bug and what repeats it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SavedBug {
    identity: u64,
    kind: BugKind,
    summary: String,
    /// Bytes of the path of its scenario.
    scenario: Option<Vec<u8>>,
    execution: u64,
    transitions: u64,
    schedule: SavedSchedule,
    /// What was known of objects, and how often the search had started over.
    objects: Objects,
    restarts: u64,
}

/// What repeats an execution.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct SavedSchedule {
    /// (thread, alternative, kind of operation)
    prefix: Vec<(u64, u32, u8)>,
    /// The same, of what is followed behind it as far as it can be.
    guide: Vec<(u64, u32, u8)>,
    policy: u32,
    seed: u64,
    pct: (u32, u32, u64),
    /// (thread, transitions)
    #[serde(default)]
    expected: Vec<(u64, u32)>,
    interest: Vec<u64>,
    /// (object, writer, reader, wanted)
    wishes: Vec<(u64, u64, u64, bool)>,
}

/// What executions came to that ran to their end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct SavedOutcomes {
    executions: u64,
    overflow: bool,
    /// (outcome, executions)
    times: Vec<(u64, u64)>,
    kept: Vec<SavedOutcome>,
}

/// An outcome. What was known of objects is what is known now: the table begins anew when the search starts over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SavedOutcome {
    text: u64,
    status: i32,
    bytes: u64,
    output: Vec<u8>,
    execution: u64,
    transitions: u64,
    schedule: SavedSchedule,
}

/// A whole state.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Saved {
    pub header: Header,
    /// For `Search::restore`.
    pub search: Vec<u8>,
}

/// The search with what belongs to it, in words.
///
/// Whether memory is watched is part of it: of executions that ran without nothing can be claimed of that.
pub(super) fn search_text(config: &Config) -> String {
    let search = match config.search {
        SearchKind::Bounded(bound) => format!("--bound {}={}", config.search.name(), bound.limit()),
        SearchKind::Pct => format!("--search pct --pct-depth {} --pct-fair {}", config.pct_depth, config.pct_fair),
        kind => format!("--search {}", kind.name()),
    };
    match config.race() {
        Race::Off => search,
        race => format!("{search} --race {}", race.name()),
    }
}

impl SavedBug {
    fn new(found: &Found) -> SavedBug {
        let Candidate { schedule, transitions, execution, .. } = &found.best;
        SavedBug {
            identity: found.identity,
            kind: found.kind,
            summary: found.summary.clone(),
            scenario: found.path.as_ref().map(|path| path.as_os_str().as_bytes().to_vec()),
            execution: *execution,
            transitions: *transitions,
            schedule: SavedSchedule::new(schedule),
            objects: (*found.best.objects).clone(),
            restarts: found.best.restarts,
        }
    }

    fn found(&self) -> Found {
        let schedule = Schedule { ends: self.kind == BugKind::Race, ..self.schedule.schedule() };
        let (transitions, execution) = (self.transitions, self.execution);
        let objects = Arc::new(self.objects.clone());
        let best = Candidate { schedule, transitions, execution, objects, restarts: self.restarts, whole: None };
        let mut found = Found::new(self.identity, self.kind, best);
        found.path = self.scenario.clone().map(|bytes| OsString::from_vec(bytes).into());
        found.summary.clone_from(&self.summary);
        found
    }
}

impl SavedSchedule {
    fn new(schedule: &Schedule) -> SavedSchedule {
        SavedSchedule {
            prefix: schedule.prefix.iter().map(|c| (c.uid.0, c.value, c.kind.0)).collect(),
            guide: schedule.guide.iter().map(|c| (c.uid.0, c.value, c.kind.0)).collect(),
            policy: schedule.policy.0,
            seed: schedule.seed,
            pct: (schedule.pct_depth, schedule.pct_length, schedule.pct_fair),
            expected: schedule.expected.iter().map(|&(uid, n)| (uid.0, n)).collect(),
            interest: schedule.interest.clone(),
            wishes: schedule.wishes.iter().map(|w| (w.object, w.writer, w.reader, w.wanted != 0)).collect(),
        }
    }

    fn schedule(&self) -> Schedule {
        let choice = |&(uid, value, kind): &(u64, u32, u8)| Choice::new(Uid(uid), value, Kind(kind));
        Schedule {
            prefix: self.prefix.iter().map(choice).collect(),
            guide: self.guide.iter().map(choice).collect(),
            policy: Policy(self.policy),
            seed: self.seed,
            pct_depth: self.pct.0,
            pct_length: self.pct.1,
            pct_fair: self.pct.2,
            expected: self.expected.iter().map(|&(uid, n)| (Uid(uid), n)).collect(),
            interest: self.interest.clone(),
            wishes: self
                .wishes
                .iter()
                .map(|&(object, writer, reader, w)| Wish::new(object, writer, reader, w))
                .collect(),
            ..Schedule::default()
        }
    }
}

impl SavedOutcomes {
    fn new(outcomes: &Outcomes) -> SavedOutcomes {
        let kept = |kept: &Kept| SavedOutcome {
            text: kept.ended.text,
            status: kept.ended.status,
            bytes: kept.ended.bytes,
            output: kept.ended.output.clone(),
            execution: kept.best.execution,
            transitions: kept.best.transitions,
            schedule: SavedSchedule::new(&kept.best.schedule),
        };
        SavedOutcomes {
            executions: outcomes.executions,
            overflow: outcomes.overflow,
            times: outcomes.times.iter().map(|(&outcome, &n)| (outcome, n)).collect(),
            kept: outcomes.kept.values().map(kept).collect(),
        }
    }

    /// The outcomes, where that is known of objects.
    pub fn outcomes(&self, sharing: &Sharing) -> Outcomes {
        let kept = |saved: &SavedOutcome| {
            let SavedOutcome { text, status, bytes, .. } = *saved;
            let ended = Ended { text, status, bytes, output: saved.output.clone() };
            let best = Candidate {
                schedule: saved.schedule.schedule(),
                transitions: saved.transitions,
                execution: saved.execution,
                objects: Arc::clone(sharing.objects()),
                restarts: sharing.restarts(),
                whole: None,
            };
            (ended.identity(), Kept { ended, best })
        };
        let (times, kept) = (self.times.iter().copied().collect(), self.kept.iter().map(kept).collect());
        Outcomes::going_on(self.executions, self.overflow, times, kept)
    }

    /// Takes what another part of the same search has come to.
    fn add(&mut self, other: &SavedOutcomes) {
        self.executions += other.executions;
        self.overflow |= other.overflow;
        let mut times: BTreeMap<u64, u64> = self.times.iter().copied().collect();
        for &(outcome, n) in &other.times {
            *times.entry(outcome).or_insert(0) += n;
        }
        self.times = times.into_iter().collect();
        let is = |a: &SavedOutcome, b: &SavedOutcome| (a.text, a.status, a.bytes) == (b.text, b.status, b.bytes);
        for kept in &other.kept {
            if !self.kept.iter().any(|known| is(known, kept)) {
                self.kept.push(kept.clone());
            }
        }
    }

    fn counts(&self) -> impl Iterator<Item = u64> + '_ {
        let of = |kept: &SavedOutcome| [kept.execution, kept.transitions, kept.bytes];
        let times = self.times.iter().map(|(_, n)| *n);
        [self.executions].into_iter().chain(times).chain(self.kept.iter().flat_map(of))
    }
}

impl Header {
    /// The state of an exploration.
    pub fn new<'f>(
        setting: &Setting,
        sharing: &Sharing,
        (counts, outcomes, passed): (&Counts, &Outcomes, &[u32]),
        seconds: f64,
        found: impl Iterator<Item = &'f Found>,
    ) -> Header {
        Header {
            program: setting.spec.program.clone(),
            fingerprint: setting.identity.clone(),
            options: setting.spec.options.clone(),
            search: search_text(setting.config),
            executions: counts.executions,
            max_depth: counts.max_depth,
            cut: counts.cut,
            ended: counts.ended,
            reasons: counts.reasons.clone(),
            outcomes: SavedOutcomes::new(outcomes),
            tosses: counts.tosses,
            notes: counts.notes.clone(),
            passed: passed.to_vec(),
            seconds,
            // A bug that nobody has looked at yet will be found again (its execution is not over for the search), and is
            // then to end the exploration if it is to end at the first one.
            bugs: found.filter(|f| setting.config.keep_going || !f.summary.is_empty()).map(SavedBug::new).collect(),
            sharing: sharing.clone(),
            piece: setting.piece().cloned(),
        }
    }

    /// Takes what another part of the same search has come to.
    pub fn add(&mut self, other: &Header) {
        self.executions += other.executions;
        self.max_depth = self.max_depth.max(other.max_depth);
        self.cut += other.cut;
        self.ended += other.ended;
        for (&reason, n) in &other.reasons {
            *self.reasons.entry(reason).or_insert(0) += n;
        }
        self.outcomes.add(&other.outcomes);
        self.tosses |= other.tosses;
        for note in &other.notes {
            if !self.notes.contains(note) {
                self.notes.push(note.clone());
            }
        }
        self.passed.resize(self.passed.len().max(other.passed.len()), 0);
        self.passed.iter_mut().zip(&other.passed).for_each(|(sum, n)| *sum = sum.saturating_add(*n));
        self.seconds += other.seconds;
        for bug in &other.bugs {
            match self.bugs.iter_mut().find(|known| known.identity == bug.identity) {
                Some(known) if bug.transitions < known.transitions => *known = bug.clone(),
                Some(_) => {}
                None => self.bugs.push(bug.clone()),
            }
        }
        self.sharing.join(&other.sharing);
    }

    /// Bugs that were found.
    pub fn bugs(&self) -> usize {
        self.bugs.len()
    }

    /// What was counted.
    pub fn counts(&self) -> Counts {
        Counts {
            executions: self.executions,
            max_depth: self.max_depth,
            cut: self.cut,
            ended: self.ended,
            broken_off: None,
            reasons: self.reasons.clone(),
            tosses: self.tosses,
            uses: BTreeMap::new(),
            notes: self.notes.clone(),
        }
    }

    /// All that it counts.
    fn all_counts(&self) -> impl Iterator<Item = u64> + '_ {
        let of_bugs = self.bugs.iter().flat_map(|bug| [bug.execution, bug.transitions, bug.restarts]);
        let own =
            [self.executions, self.max_depth, self.cut, self.ended].into_iter().chain(self.reasons.values().copied());
        own.chain(of_bugs).chain(self.sharing.counts()).chain(self.outcomes.counts())
    }

    /// The bugs, none of them looked at.
    pub fn found(&self) -> impl Iterator<Item = Found> + '_ {
        self.bugs.iter().map(SavedBug::found)
    }

    /// Why this is not the state of what is to be explored now, if it is not. The environment is the saved one's.
    pub fn mismatch(&self, setting: &Setting) -> Option<String> {
        let now = &setting.spec.program;
        let words = |argv: &[OsString]| argv.iter().map(escape).collect::<Vec<_>>().join(" ");
        if self.program.exe != now.exe || self.program.script != now.script || self.program.argv != now.argv {
            return Some(format!("it is of another program: {}", words(&self.program.argv)));
        }
        if self.program.cwd != now.cwd {
            return Some(format!("it was saved in another directory: {}", escape(&self.program.cwd)));
        }
        if self.fingerprint != setting.identity {
            return Some("the program has changed since".into());
        }
        match (&self.piece, setting.piece()) {
            (Some(_), None) => return Some("it is a piece of a search: vsrun pieces work explores it".into()),
            (one, two) if one.as_ref() != two => return Some("it is of another piece".into()),
            _ => {}
        }
        if let Err(why) = self.processor(setting) {
            return Some(why);
        }
        let search = search_text(setting.config);
        if self.search != search {
            return Some(format!("it is of another search: {}, not {search}", self.search));
        }
        let name = different_option(&self.options, &setting.spec.options)?;
        Some(format!("it was saved with another {name}"))
    }
}

impl Header {
    /// What there is to say of the processor on which this was saved, see [`cpu::compare`].
    ///
    /// # Errors
    /// It was another one, and the program saw it.
    pub fn processor(&self, setting: &Setting) -> Result<Option<String>, String> {
        match (&self.options.cpu, &setting.spec.options.cpu) {
            (Some(saved), Some(here)) if saved.baseline == here.baseline => cpu::compare(saved, here),
            _ => Ok(None),
        }
    }
}

fn different_option(one: &scenario::Options, two: &scenario::Options) -> Option<&'static str> {
    let same = [
        ("--timeouts", one.timeouts_any == two.timeouts_any),
        ("--memory-model", one.store_buffers == two.store_buffers),
        ("--inject", one.inject == two.inject),
        ("--uncontrolled", one.uncontrolled == two.uncontrolled),
        ("--allow-misuse", one.allow_misuse == two.allow_misuse),
        ("--livelock", one.livelock == two.livelock),
        ("--files", one.real_files == two.real_files),
        ("--with", one.with == two.with),
        ("--clients", one.clients_wait == two.clients_wait && one.clients_for == two.clients_for),
        ("--restart", one.restarts == two.restarts && one.restart_always == two.restart_always),
        ("--stop-signal", one.stop_signal == two.stop_signal),
        ("--fail-on-exit", one.fail_on_exit == two.fail_on_exit),
        ("--divergence-timeout", one.divergence_timeout_ms == two.divergence_timeout_ms),
        ("--max-depth", one.max_depth == two.max_depth),
        ("--max-idle", one.max_idle == two.max_idle),
        ("--seed", one.seed == two.seed),
        ("--quarantine", one.quarantine == two.quarantine),
        ("--toss", one.tosses == two.tosses),
        ("--cpu", one.cpu.as_ref().map(|cpu| cpu.baseline) == two.cpu.as_ref().map(|cpu| cpu.baseline)),
        ("standard input", one.stdin == two.stdin),
    ];
    same.iter().find(|(_, same)| !same).map(|(name, _)| *name)
}

impl Saved {
    /// The bytes of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let header = serde_json::to_vec(&self.header).unwrap_or_default(); // no map, no writer: it cannot fail
        let mut out = MAGIC.to_vec();
        out.extend((header.len() as u64).to_le_bytes());
        out.extend(header);
        out.extend(&self.search);
        let sum = fnv1a(out.iter().copied());
        out.extend(sum.to_le_bytes());
        out
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Saved, String> {
        let Some(rest) = bytes.strip_prefix(MAGIC) else {
            let other = bytes.starts_with(FORMAT) && bytes.len() >= MAGIC.len();
            return Err(
                if other { "it was saved by another version of vsrun" } else { "it is not a saved search" }.into()
            );
        };
        let (content, sum) = rest.split_last_chunk().ok_or("it is damaged: it ends too early")?;
        if u64::from_le_bytes(*sum) != fnv1a(bytes[..bytes.len() - sum.len()].iter().copied()) {
            return Err("it is damaged: the checksum does not match".into());
        }
        let parts = content.split_first_chunk();
        let parts = parts.and_then(|(length, rest)| rest.split_at_checked(u64::from_le_bytes(*length) as usize));
        let (header, search) = parts.ok_or("it is damaged: its header is longer than it is")?;
        let header: Header = serde_json::from_slice(header).map_err(|e| format!("it is damaged: {e}"))?;
        codec::counted(header.all_counts()).map_err(|e| format!("it is damaged: {e}"))?;
        Ok(Saved { header, search: search.to_vec() })
    }

    /// Reads `path`, or, if that is not whole, the state before it; the text is then a note.
    ///
    /// # Errors
    /// One line: there is no whole state.
    pub fn load(path: &Path) -> Result<(Saved, Option<String>), String> {
        let read = |path: &Path| Saved::read(path);
        let wrong = match read(path) {
            Ok(saved) => return Ok((saved, None)),
            Err(wrong) => wrong,
        };
        match read(&with_ending(path, ".1")) {
            Ok(saved) => Ok((saved, Some(format!("{}: {wrong}; the state before it was resumed", escape(path))))),
            Err(_) => Err(format!("{} cannot be resumed: {wrong}", escape(path))),
        }
    }

    fn read(path: &Path) -> Result<Saved, String> {
        files::read(path, LARGEST).map_err(|e| e.to_string()).and_then(|bytes| Saved::from_bytes(&bytes))
    }

    /// Writes `path`; what stood there becomes `path.1`, but not if it is damaged: then `path.1` is the better one. `own`: it is of
    /// this run, and whole.
    pub fn write(&self, path: &Path, own: bool) -> io::Result<()> {
        files::may_be_replaced(path)?;
        let (temporary, mut file) = files::temporary(files::directory_of(path))?;
        let written = file.write_all(&self.to_bytes()).and_then(|()| file.sync_data());
        drop(file);
        let keep = || match own || Saved::read(path).is_ok() {
            true => fs::rename(path, with_ending(path, ".1")),
            false => Ok(()),
        };
        let kept = written
            .and_then(|()| keep().or_else(|e| if e.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(e) }));
        kept.and_then(|()| fs::rename(&temporary, path)).inspect_err(|_| drop(fs::remove_file(&temporary)))
    }
}

/// Saves an exploration now and then.
pub(super) struct Saver {
    path: PathBuf,
    /// Since when this run explores, and for how many seconds earlier ones did.
    started: Instant,
    before: f64,
    last: Instant,
    /// How long the last time took.
    cost: Duration,
    /// What stands there is of this run.
    wrote: bool,
}

impl Saver {
    /// Nothing is written yet.
    pub fn new(path: &Path, before: f64) -> Saver {
        let now = Instant::now();
        Saver { path: path.to_path_buf(), started: now, before, last: now, cost: Duration::ZERO, wrote: false }
    }

    /// True if it is time to save again. A large state is saved less often.
    pub fn is_due(&self) -> bool {
        self.last.elapsed() >= INTERVAL.max(self.cost * MOST)
    }

    /// Saves.
    ///
    /// # Errors
    /// One line.
    pub fn save<'f>(
        &mut self,
        setting: &Setting,
        (search, sharing): (&dyn Search, &Sharing),
        seen: (&Counts, &Outcomes, &[u32]),
        found: impl Iterator<Item = &'f Found>,
    ) -> Result<(), String> {
        let begun = Instant::now();
        let seconds = self.before + self.started.elapsed().as_secs_f64();
        let not_explored = search.discarded() + search.ahead();
        let search = search.save().ok_or_else(|| {
            let search = search_text(setting.config);
            format!("{search} cannot be saved: optimal, dpor, naive, random, walk, pct and --bound can")
        })?;
        let mut header = Header::new(setting, sharing, seen, seconds, found);
        // These are not in what the search has saved.
        header.executions -= not_explored;
        let written = Saved { header, search }.write(&self.path, self.wrote);
        self.wrote |= written.is_ok();
        self.last = Instant::now();
        self.cost = begun.elapsed();
        written.map_err(|e| format!("{}: the search cannot be saved: {e}", escape(&self.path)))
    }

    /// How to go on from what was saved.
    pub fn advice(&self) -> String {
        format!("the search is saved; --resume {} goes on", escape(&self.path))
    }
}

/// The path with that behind its name.
pub(super) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(OsStr::new(ending));
    name.into()
}

#[cfg(test)]
#[path = "save_tests.rs"]
mod tests;
