//! Which objects are shared: what the user declares of them, what executions have shown, and when a search starts over
//! because of that. What it is good for and why nothing is lost: `vsrun_model::sharing`.
//!
//! An execution in which an object turns out to be shared goes on to its end, with the object shared from then on. It
//! is an execution of the program like any other, and a bug that it shows is one. A systematic search then begins again
//! with what is known by then; its counts are those of the last beginning. Searches that have no plan (random, pct,
//! once) go on with what is known.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};
use vsrun_model::sharing::{Declared, MAX_DECLARED, MAX_KNOWN};
use vsrun_model::{Arena, End};

use crate::args::{Config, SearchKind};
use crate::binary::{text::escape, Modules, SymbolCache};
use crate::explore::Failure;
use crate::runtime::worker::{Ending, Outcome, Worker};

/// What is said of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// One thread alone uses it.
    Unshared,
    /// Its operations are no place to switch, whoever performs them: the order of its critical sections does not
    /// matter, and they have no other place to switch inside (Stoller, TR 536, Section 10: atomic granularity).
    Atomic,
}

impl What {
    fn word(self) -> &'static str {
        match self {
            What::Unshared => "unshared",
            What::Atomic => "atomic",
        }
    }
}

/// What is said of the objects in a range of addresses.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Declaration {
    /// The variable.
    pub symbol: String,
    /// What is said of it.
    pub what: What,
    /// First address.
    pub start: u64,
    /// Size, bytes.
    pub size: u64,
}

/// What an execution knows of the sharing of objects: with the schedule, it determines the transitions.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Objects {
    /// An object is taken to be one thread's own until it is known to be shared.
    pub unshared: bool,
    /// Names of what is known to be shared.
    #[serde(with = "crate::scenario::codec::hex64_set")]
    pub shared: BTreeSet<u64>,
    /// What the user says.
    pub declared: Vec<Declaration>,
}

impl Objects {
    /// True if there is nothing to say: every object is shared.
    pub fn is_plain(&self) -> bool {
        *self == Objects::default()
    }

    /// Puts it into the arena for the executions to come.
    ///
    /// # Errors
    /// It is more than an arena has room for.
    pub fn write(&self, arena: &mut Arena) -> Result<(), &'static str> {
        if self.shared.len() > MAX_KNOWN || self.declared.len() > MAX_DECLARED {
            return Err("more is known of objects than an arena has room for");
        }
        arena.known_shared.clear();
        for &name in &self.shared {
            arena.known_shared.push(name);
        }
        arena.declared.clear();
        for d in &self.declared {
            let what = match d.what {
                What::Unshared => vsrun_model::sharing::Sharing::OWN,
                What::Atomic => vsrun_model::sharing::Sharing::ATOMIC,
            };
            arena.declared.push(Declared::new(d.start, d.start.saturating_add(d.size), what));
        }
        Ok(())
    }
}

/// What is known in the course of an exploration.
#[derive(Debug, Default)]
pub struct Sharing {
    objects: Objects,
    /// The search is systematic: it starts over when something new is known.
    systematic: bool,
    /// Other bugs are looked for after the first.
    keep_going: bool,
    /// Names that the last execution added.
    new: BTreeSet<u64>,
    /// Declarations that do not hold, by index.
    refuted: BTreeSet<u32>,
    restarts: u64,
    /// Executions of the beginnings before the last one.
    earlier: u64,
    /// Operations without a transition since the last beginning.
    passed: u64,
}

impl Sharing {
    /// What is known at the start; the worker is told.
    ///
    /// # Errors
    /// A symbol that the program does not have, an annotation file that cannot be understood.
    pub fn start(config: &Config, worker: &mut Worker) -> Result<Sharing, Failure> {
        let declared = declarations(config, worker.root_pid())?;
        let unshared = config.search != SearchKind::Naive && !config.all_objects;
        let objects = Objects { unshared, declared, ..Objects::default() };
        worker.set_objects(objects.clone()).map_err(Failure::environment)?;
        let systematic = !matches!(config.search, SearchKind::Once | SearchKind::Random | SearchKind::Pct);
        Ok(Sharing { objects, systematic, keep_going: config.keep_going, ..Sharing::default() })
    }

    /// What executions are given at present.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Executions before the last beginning.
    pub fn earlier(&self) -> u64 {
        self.earlier
    }

    /// Looks at what an execution has shown, right after its end.
    pub fn look(&mut self, arena: &Arena, outcome: &Outcome) {
        self.passed += arena.world.passed;
        self.new.clear();
        for noted in arena.noted.as_slice() {
            self.new.insert(noted.name);
            self.refuted.extend(noted.declared.checked_sub(1));
        }
        // A bug ends the other threads where they stand. To see what they would have done otherwise, there has to be
        // a place to switch before it.
        if self.keep_going && ended_early(outcome) {
            self.new.extend(arena.passed_last());
        }
    }

    /// Takes what the last execution has shown for known; what has become of that execution is settled by then. True:
    /// the search has to start over.
    pub fn learn(&mut self, worker: &mut Worker) -> Result<bool, Failure> {
        let before = self.objects.shared.len();
        self.objects.shared.append(&mut self.new);
        if self.objects.shared.len() == before {
            return Ok(false);
        }
        if self.objects.shared.len() > MAX_KNOWN {
            self.objects = Objects::default();
        }
        worker.set_objects(self.objects.clone()).map_err(Failure::own)?;
        Ok(self.systematic)
    }

    /// The search starts over, after so many `executions` since the last beginning.
    pub fn start_over(&mut self, executions: u64) {
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

/// True if threads were ended where they stood by what one of them did.
fn ended_early(outcome: &Outcome) -> bool {
    const WHOLE: [End; 5] = [End::FINISHED, End::DEADLOCK, End::SLEEP_BLOCKED, End::DEPTH, End::WAITS_OUTSIDE];
    outcome.ending != Ending::Modelled || !WHOLE.contains(&outcome.trace.end)
}

/// Everything that is declared, with the addresses in process `pid`.
fn declarations(config: &Config, pid: i32) -> Result<Vec<Declaration>, Failure> {
    let mut wanted: Vec<(What, String)> = Vec::new();
    wanted.extend(config.unshared.iter().map(|s| (What::Unshared, s.clone())));
    wanted.extend(config.atomic.iter().map(|s| (What::Atomic, s.clone())));
    if let Some(path) = &config.annotations {
        wanted.extend(read_annotations(path).map_err(Failure::environment)?);
    }
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let mut cache = SymbolCache::new();
    let modules = Modules::of_process(pid, &mut cache)
        .map_err(|e| Failure::environment(format!("the memory map of the program: {e}")))?;
    let mut all: Vec<Declaration> = Vec::new();
    for (what, symbol) in wanted {
        if all.iter().any(|d| d.symbol == symbol && d.what != what) {
            return Err(Failure::environment(format!("{symbol} is declared unshared and atomic")));
        }
        let found = modules.objects_named(&symbol);
        if found.is_empty() {
            return Err(Failure::environment(format!(
                "{} {symbol}: neither the program nor a library loaded with it has a global variable of that name",
                what.word()
            )));
        }
        all.extend(found.into_iter().map(|(start, size)| Declaration { symbol: symbol.clone(), what, start, size }));
    }
    Ok(all)
}

/// Reads an annotation file: a line each, `unshared SYMBOL` or `atomic SYMBOL`; `#` begins a comment.
fn read_annotations(path: &Path) -> Result<Vec<(What, String)>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", escape(path)))?;
    annotations(&text).map_err(|(line, what)| format!("{}:{line}: {what}", escape(path)))
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
}
