//! Executions that begin like one which showed something new, and go on as samples of the partial orders.
//!
//! What is new is a pair of operations, as in [`rff`](super::rff): one came after the other had written the same object last. Here threads that do the same
//! are told apart, and the first times from later ones, so that an execution in which a loop goes round once more, or is left early, shows something
//! new. Such an execution is kept. Most of the next ones begin with the steps of one that was kept, up to a place that is drawn and comes before the new pair, or right after it, and go on by
//! partial order sampling (POS): what needs several rare things to happen in turn is found from executions that have come to the first of them, where samples would have to come to all of
//! them at once. Which one is gone on from is drawn in favour of those whose pair is rare and from which few began (as Go-Explore does with states: Ecoffet,
//! Huizinga, Lehman, Stanley, Clune, First return, then explore, Nature 590, 2021; and greybox fuzzers with inputs). Every few executions nothing is begun with.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use vsrun_model::aims::{paired, Pair};
use vsrun_model::arena::{Choice, Policy, MAX_PREFIX};
use vsrun_model::{Kind, Uid};

use super::api::Search;
use super::lots::Lots;
use super::pct::Pct;
use crate::codec;
use crate::incomplete::Reason;
use crate::schedule::Schedule;
use crate::trace::Trace;

/// Most executions that are kept, the choices that these have in all, and most pairs that are known.
const MOST_KEPT: usize = 1 << 12;
const MOST_CHOICES: usize = 1 << 18;
const MOST_PAIRS: usize = 1 << 18;
/// One of so many executions begins with nothing.
const FRESH: usize = 5;
/// Of so many that are drawn the best is gone on from.
const DRAWN: usize = 8;

/// A choice as it is saved: thread, alternative, kind.
type Saved = (u64, u32, u8);

/// What an execution begins with.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Start {
    seed: u64,
    /// The steps that come first.
    first: Vec<Saved>,
    /// It is run once more, to be kept, for that pair was new, after so many transitions.
    shows: Option<(u64, u32)>,
}

/// An execution that showed a new pair.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Kept {
    /// Its steps up to the one that showed it.
    steps: Vec<Saved>,
    /// The pair.
    shows: u64,
    /// How many have begun with it.
    begun: u64,
}

/// An endless sequence of such executions.
#[derive(Debug)]
pub struct Novel {
    lots: Lots,
    /// Executions handed out.
    ticket: u64,
    /// What is to be begun before anything is drawn: what was under way when the search was saved, and what is to be kept.
    again: Vec<Start>,
    /// Executions under way, by ticket.
    running: BTreeMap<u64, Start>,
    kept: Vec<Kept>,
    /// Choices in these.
    choices: usize,
    /// In how many executions pairs were shown.
    pairs: BTreeMap<u64, u64>,
    transitions: u64,
}

impl Novel {
    /// The executions of `seed`.
    pub fn new(seed: u64) -> Novel {
        Novel {
            lots: Lots { state: seed.wrapping_mul(0x9e6c_63d0_876a_3f6d) },
            ticket: 0,
            again: Vec::new(),
            running: BTreeMap::new(),
            kept: Vec::new(),
            choices: 0,
            pairs: BTreeMap::new(),
            transitions: 0,
        }
    }

    /// Those of `seed` that go on from what another one has kept.
    ///
    /// # Errors
    /// These are not the bytes of one.
    pub fn after(seed: u64, saved: &[u8]) -> Result<Novel, String> {
        let mut novel = Novel::new(seed);
        let (lots, ticket) = (novel.lots, novel.ticket);
        novel.restore(saved)?;
        (novel.lots, novel.ticket, novel.transitions) = (lots, ticket, 0);
        novel.again.clear();
        Ok(novel)
    }

    /// How often what an execution is kept for was seen, and it was gone on from.
    fn worn(&self, kept: &Kept) -> u64 {
        let seen = self.pairs.get(&kept.shows).copied().unwrap_or(0);
        seen.saturating_mul(kept.begun + 1)
    }

    fn draw(&mut self) -> Start {
        let seed = self.lots.draw();
        if self.kept.is_empty() || self.lots.below(FRESH) == 0 {
            return Start { seed, first: Vec::new(), shows: None };
        }
        let drawn: Vec<usize> = (0..DRAWN).map(|_| self.lots.below(self.kept.len())).collect();
        let best = drawn.into_iter().min_by_key(|&at| self.worn(&self.kept[at])).unwrap_or(0);
        let kept = &mut self.kept[best];
        kept.begun += 1;
        let first = kept.steps[..1 + self.lots.below(kept.steps.len())].to_vec();
        Start { seed, first, shows: None }
    }

    /// The first pair of an execution that none before has shown, and after how many transitions.
    fn count(&mut self, pairs: &[Pair]) -> Option<(u64, u32)> {
        let mut new = None;
        for &Pair { object, writer, event, at, .. } in pairs {
            let pair = paired(object, paired(writer, event));
            if let Some(times) = self.pairs.get_mut(&pair) {
                *times += 1;
            } else if self.pairs.len() < MOST_PAIRS {
                self.pairs.insert(pair, 1);
                new = new.or(Some((pair, at)));
            }
        }
        new
    }

    /// Keeps an execution; where there is no room, that which is worn most goes.
    fn keep(&mut self, steps: Vec<Saved>, shows: u64) {
        if steps.is_empty() {
            return;
        }
        self.choices += steps.len();
        self.kept.push(Kept { steps, shows, begun: 0 });
        while self.kept.len() > MOST_KEPT || self.choices > MOST_CHOICES && self.kept.len() > 1 {
            let most = (0..self.kept.len()).max_by_key(|&at| self.worn(&self.kept[at])).unwrap_or(0);
            self.choices -= self.kept.swap_remove(most).steps.len();
        }
    }
}

impl Search for Novel {
    fn next(&mut self) -> Option<Schedule> {
        let start = self.again.pop().unwrap_or_else(|| self.draw());
        self.ticket += 1;
        let choice = |&(uid, value, kind): &Saved| Choice::new(Uid(uid), value, Kind(kind));
        let schedule = Schedule {
            ticket: self.ticket,
            guide: start.first.iter().map(choice).collect(),
            policy: Policy::NOVEL,
            seed: start.seed,
            pct_fair: Pct::FAIR,
            blind: start.shows.is_none(),
            ..Schedule::default()
        };
        self.running.insert(self.ticket, start);
        Some(schedule)
    }

    fn done(&mut self, ticket: u64, trace: &Trace) {
        self.transitions += trace.steps.len() as u64 + trace.unrecorded;
        let Some(start) = self.running.remove(&ticket) else { return };
        match start.shows {
            None => {
                let shows = self.count(&trace.pairs);
                self.again.extend(shows.map(|pair| Start { shows: Some(pair), ..start }));
            }
            Some((shows, at)) => {
                let steps = trace
                    .steps
                    .iter()
                    .take(MAX_PREFIX.min(at as usize + 1))
                    .map(|s| (s.act.uid.0, s.value, s.act.op.kind.0));
                self.keep(steps.collect(), shows);
            }
        }
    }

    fn parallel(&self) -> bool {
        true
    }

    fn save(&self) -> Option<Vec<u8>> {
        let again: Vec<&Start> = self.again.iter().chain(self.running.values()).collect();
        Some(codec::encode(&((self.lots.state, self.ticket, again), &self.kept, &self.pairs, self.transitions)))
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        type State = (u64, u64, Vec<Start>);
        let (state, kept, pairs, transitions): (State, Vec<Kept>, BTreeMap<u64, u64>, u64) = codec::decode(bytes)?;
        let (state, ticket, again) = state;
        codec::counted([ticket, transitions].into_iter().chain(kept.iter().map(|k| k.begun)))?;
        codec::counted(pairs.values().copied())?;
        let long = |steps: &[Saved]| steps.len() > MAX_PREFIX;
        if kept.iter().any(|k| k.steps.is_empty() || long(&k.steps)) || again.iter().any(|start| long(&start.first)) {
            return Err("an execution that was kept is empty, or too long".into());
        }
        let (lots, choices) = (Lots { state }, kept.iter().map(|k| k.steps.len()).sum());
        *self = Novel { lots, ticket, again, running: BTreeMap::new(), kept, choices, pairs, transitions };
        Ok(())
    }

    fn limit(&self) -> Option<Reason> {
        Some(Reason::Random)
    }

    fn transitions(&self) -> u64 {
        self.transitions
    }
}
