//! What one execution did, as plain data.

use std::cell::Cell;
use std::collections::BTreeSet;

use vsrun_model::watch::Record;
use vsrun_model::{Arena, End, World, NONE};

use super::look;
use crate::finding::{BugKind, Ending};
use crate::objects::Shown;
use crate::race::{self, first_of, pending, races, trespasses, violations, Access, Claim, Conflict, Flaws, Note, Race};
use crate::search::Answers;
use crate::trace::Trace;
use crate::words::ends::{headline, waits_outside};
use crate::words::identity::identity;

/// What an execution did.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The trace.
    pub trace: Trace,
    /// How it ended.
    pub ending: Ending,
    /// What that means.
    pub sign: Sign,
    /// What it showed of the sharing of objects.
    pub shown: Shown,
    /// Accesses to watched memory that conflict and that nothing orders.
    pub races: Vec<Race>,
    /// Those that are bugs.
    pub conflicts: Vec<Conflict>,
    /// Uses of memory by threads that may not, by what the program says.
    pub trespasses: Vec<Conflict>,
    /// Not all that it did was looked at, since vsrun is to end: what is known of memory is not all.
    pub given_up: bool,
}

/// What the end of an execution means, before anybody has looked around.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Nothing.
    Clean,
    /// What is left waits for peers that do not come.
    Idle,
    /// A process waits for input from outside.
    Input,
    /// A bug.
    Bug {
        /// Its kind.
        kind: BugKind,
        /// Equal for equal bugs.
        identity: u64,
    },
    /// It was cut where the program had more of something than there is room for: the line about it.
    NoRoom(String),
    /// Something that vsrun does not support: the line about it.
    Unsupported(String),
    /// The world sits in a system call that went to the kernel.
    Sits,
    /// A process ended without the model knowing, with this exit status.
    Died(i32),
    /// Somebody outside interfered: the line about it.
    Outside(String),
    /// The program overwrote vsrun's memory: nothing else is known.
    Overwritten,
    /// The schedule could not be followed at this step, from 0.
    Unfollowed(u32),
    /// vsrun is at fault: why.
    Fault(String),
}

impl Outcome {
    /// From the arena of an execution whose processes are gone.
    /// `flaws`: what is looked for; `by_step`: its trace is to tell what each transition did to memory; `known`: libraries of which it was known
    /// that they come while the program runs; `to_end`: vsrun is to end, see [`Outcome::given_up`]; `answers`: of the executions before it.
    pub fn new(
        arena: &Arena,
        mut trace: Trace,
        ending: Ending,
        (flaws, by_step): (Flaws, bool),
        (known, to_end): (&BTreeSet<String>, &dyn Fn() -> bool),
        answers: &mut Answers,
    ) -> Outcome {
        let patience = Patience::new(to_end);
        let notes = || patience.limits(notes(arena));
        let sign = sign(&arena.world, &trace, &ending);
        let mut shown = Shown::read(arena, known);
        shown.answered = answers.of(arena);
        // What could not be recorded may be anything.
        if is_told(arena, &ending) && by_step && arena.records_lost == 0 {
            trace.touched = race::by_step(trace.steps.len(), notes());
        }
        let races = races_of((arena, notes()), &trace, &ending);
        let conflicts = match flaws.any() && shown.names.is_empty() {
            true => conflicts((arena, notes()), &trace, &ending, (flaws, &races)),
            // Where an object turned out to be shared, what was done to it before orders nothing yet.
            false => Vec::new(),
        };
        let races = settled_first(races);
        if !shown.is_new() {
            // Where an object turned out to be shared, what was done to it before orders nothing yet.
            shown.words = races.iter().map(|race| race.word).collect();
        }
        let trespasses = match is_told(arena, &ending) && trace.unrecorded == 0 && shown.names.is_empty() {
            true => trespasses(&trace, notes()),
            false => Vec::new(),
        };
        let given_up = patience.is_over();
        shown.trespass = arena.distrusts == 0 && (!trespasses.is_empty() || arena.owned_lost > 0);
        Outcome { trace, ending, sign, shown, races, conflicts, trespasses, given_up }
    }
}

impl Outcome {
    /// It ran without end, and read these words again and again: whether others write them is to be seen, so that is no bug yet, unless nobody
    /// could do so any more (`alone`).
    pub(super) fn with_polled(mut self, words: BTreeSet<(u32, u64)>, alone: bool) -> Outcome {
        if !words.is_empty() && !alone {
            self.sign = Sign::Clean;
        }
        self.shown.words.extend(words);
        self
    }

    /// Of an execution whose arena is not to be trusted.
    pub fn overwritten() -> Outcome {
        let (trace, ending) = (Trace::default(), Ending::Overwritten);
        let (sign, shown) = (Sign::Overwritten, Shown::default());
        let (conflicts, trespasses) = (Vec::new(), Vec::new());
        Outcome { trace, ending, sign, shown, races: Vec::new(), conflicts, trespasses, given_up: false }
    }

    /// Its trace does not tell what happened: the schedule alone repeats it.
    pub fn is_untold(&self) -> bool {
        matches!(self.sign, Sign::Overwritten | Sign::Died(_) | Sign::Unfollowed(_) | Sign::Fault(_))
    }
}

/// What was done to memory is known: a world that is interrupted goes on while its trace is read.
fn is_told(arena: &Arena, ending: &Ending) -> bool {
    arena.plan.watches && *ending != Ending::Interrupted
}

/// The accesses of an execution that conflict and that nothing orders.
fn races_of((arena, notes): (&Arena, impl Iterator<Item = Note> + Clone), trace: &Trace, ending: &Ending) -> Vec<Race> {
    let words = || arena.words.as_slice().iter().map(|word| (word.space, word.address)).collect();
    match is_told(arena, ending) {
        true => races(trace, notes, words()),
        false => Vec::new(),
    }
}

/// The accesses of an execution that are bugs.
fn conflicts(
    (arena, notes): (&Arena, impl Iterator<Item = Note> + Clone),
    trace: &Trace,
    ending: &Ending,
    (flaws, races): (Flaws, &[Race]),
) -> Vec<Conflict> {
    let mut all = Vec::new();
    if !is_told(arena, ending) || trace.unrecorded > 0 {
        return all;
    }
    if flaws.unordered {
        all.extend(first_of(races));
        all.extend(pending(trace));
    }
    if flaws.undisciplined {
        all.extend(violations(trace, notes.clone()));
        all.extend(trespasses(trace, notes));
    }
    all
}

/// All that is wrong with uses of memory in the execution that stands in the arena.
pub(super) fn all_conflicts(arena: &Arena, trace: &Trace, ending: &Ending) -> Vec<Conflict> {
    let races = races_of((arena, notes(arena)), trace, ending);
    conflicts((arena, notes(arena)), trace, ending, (Flaws::ALL, &races))
}

/// How long what an execution did is looked at: an analysis that takes seconds is given up where vsrun is to end.
struct Patience<'a> {
    to_end: &'a dyn Fn() -> bool,
    looked_at: Cell<u32>,
    over: Cell<bool>,
}

impl<'a> Patience<'a> {
    /// So many notes are looked at before it is asked again.
    const OFTEN: u32 = 1 << 12;

    fn new(to_end: &'a dyn Fn() -> bool) -> Patience<'a> {
        Patience { to_end, looked_at: Cell::new(0), over: Cell::new(false) }
    }

    fn is_over(&self) -> bool {
        self.over.get()
    }

    /// These notes, up to where it is over.
    fn limits<'b>(&'b self, notes: impl Iterator<Item = Note> + Clone + 'b) -> impl Iterator<Item = Note> + Clone + 'b {
        notes.take_while(|_| {
            self.looked_at.set(self.looked_at.get() + 1);
            if self.looked_at.get() >= Self::OFTEN {
                self.looked_at.set(0);
                self.over.set(self.over.get() || (self.to_end)());
            }
            !self.over.get()
        })
    }
}

/// Where threads update memory atomically, that may be what orders their other accesses, once each of these updates is an operation. So it comes
/// first, and the others are looked at when the search has started over.
fn settled_first(races: Vec<Race>) -> Vec<Race> {
    let atomic: BTreeSet<_> =
        races.iter().filter(|r| r.first.access.locked || r.second.access.locked).map(|r| r.word).collect();
    races.into_iter().filter(|race| atomic.is_empty() || atomic.contains(&race.word)).collect()
}

/// What was done to watched memory.
pub(super) fn notes(arena: &Arena) -> impl Iterator<Item = Note> + Clone + '_ {
    arena.records.iter().map(|record| {
        let Record { address, size, stride, site, thread, space, what } = record;
        // Of what is said of who may use memory.
        let at = stride.checked_sub(1).and_then(|at| u32::try_from(at).ok());
        match what & Record::KIND {
            Record::STEP => Note::Step { index: address as u32 },
            Record::BEGINS => Note::Begins { thread, creator: site, process: space, parent: address as u32 },
            Record::ENDS => Note::Ends { thread },
            Record::ANEW => Note::Anew { thread, space, address, size },
            Record::OWNS => Note::Claims { thread, space, address, size, claim: Claim::Owns, at },
            Record::DISOWNS => Note::Claims { thread, space, address, size, claim: Claim::Disowns, at },
            Record::HANDS_OVER => {
                let claim = Claim::HandsOver(Some(site).filter(|&to| to != NONE));
                Note::Claims { thread, space, address, size, claim, at }
            }
            _ => {
                let (write, locked) = (what & Record::WRITES != 0, what & Record::LOCKED != 0);
                let of = |size| Access { space, address, size, write, locked, site };
                match record.unit() {
                    None => Note::Touches { thread, access: of(size) },
                    Some(unit) => {
                        let stride = if stride == 0 { unit as i64 } else { stride };
                        Note::Runs { thread, access: of(unit), times: (size / unit) as u32, stride }
                    }
                }
            }
        }
    })
}

/// The line about an execution, of which nothing but the model is known.
fn plain_line(world: &World, ending: &Ending) -> String {
    look::from_model(world, &Trace::default(), ending, &|_| None).line()
}

fn sign(world: &World, trace: &Trace, ending: &Ending) -> Sign {
    let bug = |kind| Sign::Bug { kind, identity: identity(world, ending, trace.last_kind) };
    let message = || String::from_utf8_lossy(world.message()).into_owned();
    match ending {
        Ending::Modelled => match world.end {
            End::FINISHED | End::SLEEP_BLOCKED | End::DEPTH | End::MET => Sign::Clean,
            End::WAITS_OUTSIDE => Sign::Idle,
            End::MISMATCH => Sign::Unfollowed(world.end_code),
            End::ROOM => Sign::NoRoom(message().trim_end().to_string()),
            End::REFUSED => Sign::Outside(message().trim_end().to_string()),
            End::UNSUPPORTED => Sign::Unsupported(message().trim_end().to_string()),
            _ => headline(world).map_or_else(|| Sign::Fault(message()), |(kind, _)| bug(kind)),
        },
        Ending::Crash { .. } => bug(BugKind::Crash),
        Ending::Divergence => bug(BugKind::Divergence),
        Ending::Sits { call, .. } if waits_outside(world, call) => Sign::Input,
        Ending::Sits { .. } => Sign::Sits,
        Ending::Died(status) => Sign::Died(*status),
        Ending::Outside(_) | Ending::Memory { .. } => Sign::Outside(plain_line(world, ending)),
        Ending::Overwritten => Sign::Overwritten,
        Ending::Interrupted => Sign::Clean,
    }
}
