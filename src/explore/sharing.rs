//! Which objects are shared: what the user declares of them, what executions have shown, and when a search starts over
//! because of that. What it is good for and why nothing is lost: `vsrun_model::sharing`.
//!
//! An execution in which an object turns out to be shared goes on to its end, with the object shared from then on. It
//! is an execution of the program like any other, and a bug that it shows is one. A systematic search then begins again
//! with what is known by then; its counts are those of the last beginning. Executions that are under way then are let
//! end; their bugs count, and what they show to be shared, but not for the search. Searches that have no plan (random,
//! pct, once) go on with what is known.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vsrun_model::sharing::{name_of_ignored, MAX_KNOWN, MAX_WORDS};
use vsrun_model::End;

use super::annotations::{annotated, Annotations, Said};
use super::failure::Failure;
use crate::binary::ignored::ignored;
use crate::binary::{Modules, SymbolCache};
use crate::config::{Config, SearchKind};
use crate::finding::Ending;
use crate::objects::{Declaration, Objects, Shown, What};
use crate::runtime::{Outcome, Quiet, Worker};
use crate::scenario::Predicate;

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
    /// What the program says of who may use memory, where it does not hold: a line each.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    trespasses: BTreeSet<String>,
    /// What the user says of memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    said: Vec<(Said, String)>,
    /// What the user says of who may use memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    predicates: Vec<Predicate>,
    /// What is not reported of memory, by address.
    #[serde(skip)]
    quiet: Arc<Quiet>,
    /// Memory that the user has said to be there for communication.
    #[serde(skip)]
    given: BTreeSet<(u32, u64)>,
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
                | SearchKind::Stateful
                | SearchKind::Traces
                | SearchKind::Sss
                | SearchKind::IfSss
                | SearchKind::Composed
                | SearchKind::Transactions
                | SearchKind::ExitBlock
                | SearchKind::ExitBlockRw
        );
        // Which locks are held is told by steps. And where an object turns out to be shared, what was done to it before orders nothing, and
        // there is no other execution.
        let flaws = config.race().flaws();
        let needs_all = flaws.undisciplined || flaws.any() && config.search == SearchKind::Once;
        let reduces = !classic && !config.all_objects && !needs_all;
        let objects = Arc::new(Objects { unshared: reduces, ..Objects::default() });
        // Walks count the transitions of threads, so they begin again with what is a transition.
        let goes_on = config.search.draws_lots() && config.search != SearchKind::Walk;
        let systematic = config.search != SearchKind::Once && !goes_on;
        let Annotations { objects: wanted, memory: said, predicates } = annotated(config)?;
        if flaws.undisciplined && !wanted.is_empty() {
            let why = "--race lockset counts all locks: it takes no variables declared unshared or atomic";
            return Err(Failure::environment(why));
        }
        let communicates = said.iter().find(|(said, _)| *said == Said::Communication);
        if let Some((_, symbol)) = communicates.filter(|_| !config.race().watches()) {
            return Err(Failure::environment(format!("communication {symbol}: memory is watched with --race only")));
        }
        if let Some(predicate) = predicates.first().filter(|_| !config.race().watches()) {
            return Err(Failure::environment(format!("{predicate}: memory is watched with --race only")));
        }
        Ok(Sharing { wanted, said, predicates, reduces, objects, systematic, ..Sharing::default() })
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
        let (quiet, given) = places(&self.said, worker.root_pid())?;
        let words = &self.objects.words | &given;
        (self.quiet, self.given) = (Arc::new(quiet), given);
        self.objects = Arc::new(Objects { declared, shared, words, ..(*self.objects).clone() });
        self.objects.fits().map_err(Failure::environment)
    }

    /// Goes on from what was saved. `Err`: which option was another one then.
    pub fn resume(&mut self, saved: &Sharing) -> Result<(), &'static str> {
        if self.reduces != saved.reduces {
            return Err("--all-objects");
        }
        if (&self.wanted, &self.said, &self.predicates) != (&saved.wanted, &saved.said, &saved.predicates) {
            return Err("--unshared, --atomic or --annotations");
        }
        *self = Sharing { systematic: self.systematic, ..saved.clone() };
        Ok(())
    }

    /// Takes what others have come to know for known too.
    pub fn join(&mut self, other: &Sharing) {
        let (mine, theirs) = (&self.objects, &other.objects);
        let objects = Objects {
            shared: &mine.shared | &theirs.shared,
            words: &mine.words | &theirs.words,
            late: &mine.late | &theirs.late,
            distrusts: mine.distrusts || theirs.distrusts,
            reuses: mine.reuses || theirs.reuses,
            // Where there was no room for all names every object counts.
            unshared: mine.unshared && theirs.unshared,
            ..(**mine).clone()
        };
        self.objects = Arc::new(objects);
        self.refuted.extend(&other.refuted);
        self.passed += other.passed;
        self.due |= other.due;
        self.note_races(other.races.iter().cloned().collect());
        self.note_trespasses(other.trespasses.iter().cloned().collect());
    }

    /// What is known, for a search that begins.
    pub fn at_a_beginning(&self) -> Sharing {
        Sharing { due: false, passed: 0, ..self.clone() }
    }

    /// The same where nothing begins anew.
    pub fn settled(&self) -> Sharing {
        Sharing { due: false, ..self.clone() }
    }

    /// What uses of memory are not reported.
    pub fn quiet(&self) -> &Arc<Quiet> {
        &self.quiet
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

    /// The search starts over with what turns out to be so.
    pub fn starts_over(&self) -> bool {
        self.systematic
    }

    /// True if the search has to start over.
    pub fn is_due(&self) -> bool {
        self.due
    }

    /// Takes what an execution has shown for known.
    pub fn learn(&mut self, shown: Shown) {
        self.passed += shown.passed;
        self.refuted.extend(&shown.refuted);
        let mut objects = self.with(&shown);
        // With more known, what signals answer may be another call.
        if objects.is_none() && !shown.answered.is_subset(&self.objects.shared) {
            let shared = &self.objects.shared | &shown.answered;
            objects = (shared.len() <= MAX_KNOWN).then(|| Objects { shared, ..(*self.objects).clone() });
        }
        if let Some(objects) = objects {
            self.objects = Arc::new(objects);
            self.due = self.systematic;
        }
    }

    /// What is known with what an execution has shown, but for what signals answer; `None`: that was known.
    fn with(&self, shown: &Shown) -> Option<Objects> {
        let trusts = !shown.trespass || self.objects.distrusts;
        let (names, words) = (shown.names.is_subset(&self.objects.shared), shown.words.is_subset(&self.objects.words));
        let reuses = self.objects.reuses || shown.kept_apart;
        if trusts && names && words && reuses == self.objects.reuses && shown.late.is_subset(&self.objects.late) {
            return None;
        }
        let distrusts = self.objects.distrusts || shown.trespass;
        let shared = &self.objects.shared | &shown.names;
        let late = &self.objects.late | &shown.late;
        let mut words = &self.objects.words | &shown.words;
        while words.len() > MAX_WORDS {
            words.pop_last();
        }
        let objects = match shared.len() <= MAX_KNOWN {
            true => Objects { shared, words, distrusts, reuses, late, ..(*self.objects).clone() },
            // Too many: then every object is shared.
            false => Objects { words, distrusts, reuses, late, ..Objects::default() },
        };
        (objects != *self.objects).then_some(objects)
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

    /// What the program says of who may use memory does not hold: a line each.
    pub fn note_trespasses(&mut self, texts: Vec<String>) {
        self.trespasses.extend(texts);
        while self.trespasses.len() > MAX_RACES {
            self.trespasses.pop_last();
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
        let words = self.objects.words.difference(&self.given).count();
        if words > 0 {
            let many = if words == 1 { "8 bytes".into() } else { format!("{words} times 8 bytes") };
            notes.push(format!(
                "threads use {many} of memory without an order: each access there was a place to switch"
            ));
            notes.extend(self.races.iter().cloned());
        }
        if self.objects.reuses {
            notes.push(
                "freed blocks of the heap were kept back in some executions, where who uses one is told, and given out again at once in the others, as the allocator does".into(),
            );
        }
        for text in &self.trespasses {
            notes.push(format!("{text}: what is said of who owns memory was not relied on"));
        }
        if self.restarts > 0 {
            let times = if self.restarts == 1 { "once".into() } else { format!("{} times", self.restarts) };
            let late = if self.objects.late.is_empty() { "" } else { ", or libraries to come late" };
            let reuses = if self.objects.reuses { ", or freed memory to be given out again" } else { "" };
            notes.push(format!(
                "the search started over {times}, when objects turned out to be shared{late}{reuses} (executions before that: {})",
                self.earlier
            ));
        }
        if self.passed > 0 {
            let operations = if self.passed == 1 { "operation" } else { "operations" };
            let were = if self.passed == 1 { "was" } else { "were" };
            notes.push(format!(
                "{} {operations} on objects that are unshared or declared atomic {were} no place to switch",
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
    const WHOLE: [End; 6] =
        [End::FINISHED, End::DEADLOCK, End::SLEEP_BLOCKED, End::DEPTH, End::WAITS_OUTSIDE, End::MET];
    outcome.ending != Ending::Modelled || !WHOLE.contains(&outcome.trace.end)
}

/// What the user says of objects, with their addresses in process `pid`.
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

/// Where in process `pid` the memory and the functions are of which something is said: what is not reported, and the words of memory that
/// is there for communication.
fn places(said: &[(Said, String)], pid: i32) -> Result<(Quiet, BTreeSet<(u32, u64)>), Failure> {
    let (mut quiet, mut words) = (Quiet::default(), BTreeSet::new());
    if said.is_empty() {
        return Ok((quiet, words));
    }
    let modules = Modules::of_process(pid, &mut SymbolCache::new())
        .map_err(|e| Failure::environment(format!("the memory map of the program: {e}")))?;
    for (said, symbol) in said {
        let (found, what) = match said {
            Said::BenignIn => (modules.functions_named(symbol), "a function"),
            _ => (modules.objects_named(symbol), "a global variable"),
        };
        if found.is_empty() {
            return Err(Failure::environment(format!(
                "{} {symbol}: neither the program nor a library loaded with it has {what} of that name",
                said.word()
            )));
        }
        let ranges = found.iter().map(|&(start, size)| start..start.saturating_add(size));
        match said {
            Said::BenignIn => quiet.functions.extend(ranges),
            _ => quiet.variables.extend(ranges),
        }
        if *said == Said::Communication {
            words.extend(found.iter().flat_map(|&(start, size)| {
                (start / 8..start.saturating_add(size).div_ceil(8)).take(MAX_WORDS + 1).map(|word| (0, word * 8))
            }));
        }
    }
    Ok((quiet, words))
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
