//! Which objects are shared: what the user declares of them, what executions have shown, and when a search starts over
//! because of that. What it is good for and why nothing is lost: `vsrun_model::sharing`.
//!
//! An execution in which an object turns out to be shared goes on to its end, with the object shared from then on. It
//! is an execution of the program like any other, and a bug that it shows is one. A systematic search then begins again
//! with what is known by then; its counts are those of the last beginning. Executions that are under way then are let
//! end; their bugs count, and what they show to be shared, but not for the search. Searches that have no plan (random,
//! pct, once) go on with what is known.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vsrun_model::sharing::{name_of_ignored, MAX_KNOWN, MAX_WORDS};
use vsrun_model::End;

use super::failure::Failure;
use crate::base::files;
use crate::base::text::escape;
use crate::binary::ignored::ignored;
use crate::binary::{Modules, SymbolCache};
use crate::config::{Config, SearchKind};
use crate::finding::Ending;
use crate::objects::{Declaration, Objects, Shown, What};
use crate::runtime::{Outcome, Worker};

/// What is known in the course of an exploration; one for all workers.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Sharing {
    /// What the user says: of which variable.
    wanted: Vec<(What, String)>,
    /// Objects are taken to be unshared, as long as there is room for the names of those that are not.
    reduces: bool,
    objects: Arc<Objects>,
    /// The search is systematic: it starts over when something new is known.
    systematic: bool,
    /// Something new is known: as soon as no execution is under way, the search starts over.
    due: bool,
    /// Declarations that do not hold, by index.
    refuted: BTreeSet<u32>,
    restarts: u64,
    /// Executions of the beginnings before the last one.
    earlier: u64,
    /// Operations without a transition since the last beginning.
    passed: u64,
    /// Accesses to memory that nothing orders, a line each: that memory counts as objects.
    #[serde(default)]
    races: BTreeSet<String>,
}

/// So many of them are told.
const MAX_RACES: usize = 20;

impl Sharing {
    /// What is known at the start.
    ///
    /// # Errors
    /// An annotation file that cannot be understood, a variable that is declared to be both.
    pub fn new(config: &Config) -> Result<Sharing, Failure> {
        // The yardsticks and the searches of the papers take all.
        let classic = matches!(
            config.search,
            SearchKind::Naive
                | SearchKind::Traces
                | SearchKind::Sss
                | SearchKind::IfSss
                | SearchKind::Composed
                | SearchKind::ExitBlock
                | SearchKind::ExitBlockRw
        );
        let reduces = !classic && !config.all_objects;
        let objects = Arc::new(Objects { unshared: reduces, ..Objects::default() });
        let systematic = !matches!(config.search, SearchKind::Once | SearchKind::Random | SearchKind::Pct);
        let wanted = wanted(config)?;
        Ok(Sharing { wanted, reduces, objects, systematic, ..Sharing::default() })
    }

    /// Finds the variables that something was said of in the program, which stands at its root.
    ///
    /// # Errors
    /// A variable that the program does not have.
    pub fn find(&mut self, worker: &Worker) -> Result<(), Failure> {
        let declared = declarations(&self.wanted, worker.root_pid())?;
        let mut shared = self.objects.shared.clone();
        if self.reduces {
            shared.extend(ignored_results(worker.root_pid()));
        }
        self.objects = Arc::new(Objects { declared, shared, ..(*self.objects).clone() });
        self.objects.fits().map_err(Failure::environment)
    }

    /// Goes on from what was saved. `Err`: which option was another one then.
    pub fn resume(&mut self, saved: &Sharing) -> Result<(), &'static str> {
        if self.reduces != saved.reduces {
            return Err("--all-objects");
        }
        if self.wanted != saved.wanted {
            return Err("--unshared, --atomic or --annotations");
        }
        *self = Sharing { systematic: self.systematic, ..saved.clone() };
        Ok(())
    }

    /// What executions are given at present.
    pub fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    /// Executions before the last beginning.
    pub fn earlier(&self) -> u64 {
        self.earlier
    }

    /// How often the search has started over.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// All that it counts.
    pub fn counts(&self) -> [u64; 3] {
        [self.restarts, self.earlier, self.passed]
    }

    /// True if the search has to start over.
    pub fn is_due(&self) -> bool {
        self.due
    }

    /// Takes what an execution has shown for known.
    pub fn learn(&mut self, shown: Shown) {
        self.passed += shown.passed;
        self.refuted.extend(shown.refuted);
        if shown.names.is_subset(&self.objects.shared) && shown.words.is_subset(&self.objects.words) {
            return;
        }
        let shared = &self.objects.shared | &shown.names;
        let mut words = &self.objects.words | &shown.words;
        while words.len() > MAX_WORDS {
            words.pop_last();
        }
        let objects = match shared.len() <= MAX_KNOWN {
            true => Objects { shared, words, ..(*self.objects).clone() },
            // Too many: then every object is shared.
            false => Objects { words, ..Objects::default() },
        };
        if objects == *self.objects {
            return;
        }
        self.objects = Arc::new(objects);
        self.due = self.systematic;
    }

    /// More memory can become an object.
    pub fn has_room(&self) -> bool {
        self.objects.words.len() < MAX_WORDS
    }

    /// These accesses are explored in every order from now on.
    pub fn note_races(&mut self, texts: Vec<String>) {
        self.races.extend(texts);
        while self.races.len() > MAX_RACES {
            self.races.pop_last();
        }
    }

    /// The search starts over, after so many `executions` since the last beginning.
    pub fn start_over(&mut self, executions: u64) {
        self.due = false;
        self.restarts += 1;
        self.earlier += executions;
        self.passed = 0;
    }

    /// Lines for the summary.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for d in self.refuted.iter().filter_map(|&at| self.objects.declared.get(at as usize)) {
            let why = match d.what {
                What::Unshared => "several threads use it",
                What::Atomic => "it is held at another place to switch, or waited for",
            };
            notes.push(format!("{} is declared {}, but {why}: it counts as shared", d.symbol, d.what.word()));
        }
        let words = self.objects.words.len();
        if words > 0 {
            let many = if words == 1 { "8 bytes".into() } else { format!("{words} times 8 bytes") };
            notes.push(format!(
                "threads use {many} of memory without an order: each access there was a place to switch"
            ));
            notes.extend(self.races.iter().cloned());
        }
        if self.restarts > 0 {
            let times = if self.restarts == 1 { "once".into() } else { format!("{} times", self.restarts) };
            notes.push(format!(
                "the search started over {times}, when objects turned out to be shared (executions before that: {})",
                self.earlier
            ));
        }
        if self.passed > 0 {
            notes.push(format!(
                "{} operations on objects that are unshared or declared atomic were no place to switch",
                self.passed
            ));
        }
        notes
    }
}

/// What the search learns from an execution. `keep_going`: other bugs are looked for after the first.
pub(super) fn shown_by(outcome: &Outcome, keep_going: bool) -> Shown {
    let mut shown = outcome.shown.clone();
    // A bug ends the other threads where they stand. To see what they would have done otherwise, there has to be
    // a place to switch before it.
    if keep_going && ended_early(outcome) {
        shown.names.extend(shown.last);
    }
    shown
}

/// True if threads were ended where they stood by what one of them did.
fn ended_early(outcome: &Outcome) -> bool {
    const WHOLE: [End; 5] = [End::FINISHED, End::DEADLOCK, End::SLEEP_BLOCKED, End::DEPTH, End::WAITS_OUTSIDE];
    outcome.ending != Ending::Modelled || !WHOLE.contains(&outcome.trace.end)
}

/// What the user says, of which variable.
fn wanted(config: &Config) -> Result<Vec<(What, String)>, Failure> {
    let mut wanted: Vec<(What, String)> = Vec::new();
    wanted.extend(config.unshared.iter().map(|s| (What::Unshared, s.clone())));
    wanted.extend(config.atomic.iter().map(|s| (What::Atomic, s.clone())));
    if let Some(path) = &config.annotations {
        wanted.extend(read_annotations(path).map_err(Failure::environment)?);
    }
    match declared_twice(&wanted) {
        Some(symbol) => Err(Failure::environment(format!("{symbol} is declared unshared and atomic"))),
        None => Ok(wanted),
    }
}

/// A variable that is said to be both.
pub(super) fn declared_twice(wanted: &[(What, String)]) -> Option<&str> {
    let mut known = BTreeMap::new();
    wanted
        .iter()
        .find(|(what, symbol)| *known.entry(symbol).or_insert(*what) != *what)
        .map(|(_, symbol)| symbol.as_str())
}

/// The same with the addresses in process `pid`.
fn declarations(wanted: &[(What, String)], pid: i32) -> Result<Vec<Declaration>, Failure> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let mut cache = SymbolCache::new();
    let modules = Modules::of_process(pid, &mut cache)
        .map_err(|e| Failure::environment(format!("the memory map of the program: {e}")))?;
    let mut all: Vec<Declaration> = Vec::new();
    for (what, symbol) in wanted {
        let found = modules.objects_named(symbol);
        if found.is_empty() {
            return Err(Failure::environment(format!(
                "{} {symbol}: neither the program nor a library loaded with it has a global variable of that name",
                what.word()
            )));
        }
        let declared = |(start, size)| Declaration { symbol: symbol.clone(), what: *what, start, size };
        all.extend(found.into_iter().map(declared));
    }
    Ok(all)
}

/// The function whose result tells in which order threads called it.
const TELLS_THE_LAST: &str = "pthread_barrier_wait";

/// The names of its calls whose result the program does not look at. Where a file cannot be read all are taken to be looked at.
fn ignored_results(pid: i32) -> Vec<u64> {
    let Ok(modules) = Modules::of_process(pid, &mut SymbolCache::new()) else { return Vec::new() };
    // Libc has the function, and does not call it.
    let callers = modules.modules().iter().filter(|m| m.elf.path().file_name().is_none_or(|name| name != "libc.so.6"));
    let calls = callers.flat_map(|m| ignored(m.elf.path(), m.bias, TELLS_THE_LAST).unwrap_or_default());
    calls.map(name_of_ignored).collect()
}

/// Bytes that an annotation file may have.
const LARGEST_ANNOTATIONS: u64 = 16 << 20;

/// Reads an annotation file: a line each, `unshared SYMBOL` or `atomic SYMBOL`; `#` begins a comment.
fn read_annotations(path: &Path) -> Result<Vec<(What, String)>, String> {
    let text = files::read(path, LARGEST_ANNOTATIONS).map_err(|e| format!("{}: {e}", escape(path)))?;
    annotations_of(&text).map_err(|(line, what)| format!("{}:{line}: {what}", escape(path)))
}

/// What the content of an annotation file says, or the number of a line that is wrong and why.
pub(super) fn annotations_of(text: &[u8]) -> Result<Vec<(What, String)>, (usize, String)> {
    let line_of = |at: usize| text[..at].iter().filter(|&&b| b == b'\n').count() + 1;
    annotations(std::str::from_utf8(text).map_err(|e| (line_of(e.valid_up_to()), "it is not UTF-8".to_string()))?)
}

/// What the lines of an annotation file say, or the number of one that is wrong and why.
fn annotations(text: &str) -> Result<Vec<(What, String)>, (usize, String)> {
    let mut all = Vec::new();
    for (at, line) in text.lines().enumerate() {
        // A symbol may have blanks inside (of a template), but no `#`.
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let (word, symbol) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let what = match word {
            "unshared" => What::Unshared,
            "atomic" => What::Atomic,
            _ => return Err((at + 1, format!("'{word}' where 'unshared' or 'atomic' is needed"))),
        };
        if symbol.is_empty() {
            return Err((at + 1, format!("'{word}' without the name of a variable")));
        }
        all.push((what, symbol.trim().to_string()));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotation_files() {
        let text = "# locks\nunshared  cache_lock\n\n  atomic log::lock<int, 3> # of the log\n";
        let expected = [(What::Unshared, "cache_lock".into()), (What::Atomic, "log::lock<int, 3>".into())];
        assert_eq!(annotations(text), Ok(expected.to_vec()));
        assert_eq!(annotations(""), Ok(vec![]));
        let wrong = |text| annotations(text).unwrap_err();
        assert_eq!(wrong("unshared a\nshared b\n"), (2, "'shared' where 'unshared' or 'atomic' is needed".into()));
        assert_eq!(wrong("\natomic # x\n"), (2, "'atomic' without the name of a variable".into()));
    }

    #[test]
    fn what_is_declared_twice() {
        let read = |text: String| annotations_of(text.as_bytes()).unwrap();
        assert_eq!(declared_twice(&read("atomic a\natomic b\natomic a\nunshared b\n".into())), Some("b"));
        assert_eq!(declared_twice(&read((0..300_000).map(|n| format!("atomic v{n}\n")).collect())), None);
        assert_eq!(annotations_of(b"atomic a\n# \xff\n"), Err((2, "it is not UTF-8".into())));
    }
}
