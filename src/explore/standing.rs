//! An execution and the states that it goes through, as plain data: what is to be seen where one stands in it.

use vsrun_model::arena::{Choice, Seen};
use vsrun_model::{End, Uid};

use crate::finding::{BugKind, Finding, People, PlaceView, StepView};
use crate::report::listing;
use crate::report::timeline::{graph, lanes, Graph, Lane};
use crate::words::steps::way;

/// Bytes of what was printed that are shown: the last ones.
const PRINTED: usize = 64 << 10;

/// An execution from its first step to its end.
#[derive(Clone, Debug)]
pub struct Path {
    /// What was run: the arguments, the name first, as one would type it.
    pub program: String,
    /// The steps, from the first.
    pub steps: Vec<Step>,
    /// The threads that there are in it: path of creation, and what people call them; those of a process side by side.
    pub threads: Vec<(String, String)>,
    /// The processes: number, and what people call them.
    pub processes: Vec<(i32, String)>,
    /// How it ends.
    pub end: EndOfPath,
    /// Steps that are those of the scenario's file; after them it was left. `None`: all are.
    pub left: Option<usize>,
    /// What has to be known beside it, a sentence each.
    pub notes: Vec<String>,
}

/// How an execution ends.
#[derive(Clone, Debug)]
pub struct EndOfPath {
    /// In one word: that of the kind of bug, or `finished`, `waits-outside`, `cut`, `error`, ...
    pub name: &'static str,
    /// It is a bug of the program.
    pub is_bug: bool,
    /// The line about it.
    pub line: String,
}

/// A step.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its number, from 1.
    pub n: usize,
    /// The path of creation of who makes it.
    pub thread: String,
    /// What people call that thread.
    pub name: String,
    /// The operation as a call, with what came of it.
    pub text: String,
    /// The name of its kind.
    pub kind: &'static str,
    /// More to say; empty: nothing.
    pub note: String,
    /// The alternative that was taken, from 0,
    pub value: u32,
    /// of so many.
    pub alternatives: u32,
    /// Where in the program, if that is known.
    pub place: Option<PlaceView>,
    /// The end may depend on it.
    pub matters: bool,
}

/// Between two steps, everything stands still.
#[derive(Clone, Debug)]
pub struct State {
    /// Steps that were made.
    pub at: usize,
    /// The threads that there are, those that are over among them.
    pub threads: Vec<At>,
    /// Who waits for whom.
    pub graph: Graph,
    /// The end of what was printed so far.
    pub printed: String,
}

/// A thread in a state.
#[derive(Clone, Debug)]
pub struct At {
    /// Who it is, what it is at, what it waits for and holds, where it is.
    pub lane: Lane,
    /// Where in the program's own code it is, if that is known.
    pub place: Option<PlaceView>,
    /// In which ways it can make the next step, each in words that tell it from the others: empty where there is one alone. None: it cannot.
    pub ways: Vec<String>,
    /// What is chosen by the first of them.
    pub(super) choice: Choice,
}

impl Path {
    /// What was seen of an execution to its end.
    pub(super) fn new(found: &Finding, program: String) -> Path {
        let people = &People::of(found);
        let (lanes, _) = lanes(found, people);
        let is_cut = found.kind.is_none() && found.end == End::DEPTH;
        let end = EndOfPath {
            name: if is_cut { BugKind::Cut.name() } else { listing::end(found) },
            is_bug: found.kind.is_some_and(BugKind::is_of_program),
            line: match is_cut {
                true => format!("the execution goes on; it is not followed after step {}", found.steps.len()),
                false => found.summary.render(people),
            },
        };
        Path {
            program,
            steps: found.steps.iter().zip(1..).map(|(step, n)| step_of(step, n, people)).collect(),
            threads: lanes.into_iter().map(|lane| (lane.id, lane.name)).collect(),
            processes: (0..)
                .zip(&found.processes)
                .map(|(p, of)| (of.vpid, people.process_name(p).to_string()))
                .collect(),
            end,
            left: None,
            notes: Vec::new(),
        }
    }
}

fn step_of(step: &StepView, n: usize, people: &People) -> Step {
    Step {
        n,
        thread: step.thread.to_string(),
        name: people.mover(step.thread),
        text: step.text.render(people),
        kind: step.op.kind.row().name,
        note: step.note.as_ref().map_or_else(String::new, |note| note.render(people)),
        value: step.value,
        alternatives: step.alternatives,
        place: step.at.clone(),
        matters: step.matters,
    }
}

impl State {
    /// What was seen of an execution that was stopped after `at` steps; who could move there (`enabled`) in how many ways, and what the threads
    /// are at (`last`). The names are those of the execution that it is the beginning of.
    pub(super) fn new(
        found: &Finding,
        people: &People,
        at: usize,
        (enabled, last): (&[(Uid, u32)], &[Seen]),
        printed: &[u8],
    ) -> State {
        let (lanes, lane_of) = lanes(found, people);
        let graph = graph((found, people), &lanes, &lane_of);
        let mut threads: Vec<At> = lanes.into_iter().map(At::nowhere).collect();
        for (thread, &lane) in found.threads.iter().zip(&lane_of) {
            let Some(at) = threads.get_mut(lane) else { continue };
            at.place = PlaceView::of_program(&thread.frames).cloned();
            let ways = enabled.iter().find(|(uid, _)| *uid == thread.uid).map_or(0, |(_, ways)| *ways);
            // Signals that could come there are known of what is recorded only.
            if let Some(act) = last.iter().map(|seen| &seen.act).find(|act| act.uid == thread.uid) {
                let told = |value| way(&act.op, value, ways).map_or_else(String::new, |words| words.render(people));
                at.ways = (0..ways).map(told).collect();
                at.choice = Choice::new(thread.uid, 0, act.op.kind);
            }
        }
        let printed = &printed[printed.len().saturating_sub(PRINTED)..];
        State { at, threads, graph, printed: String::from_utf8_lossy(printed).into_owned() }
    }

    /// The thread of that path of creation, or that people call so (with the path of creation behind it or not).
    pub fn thread(&self, name: &str) -> Option<&At> {
        let short = |at: &At| at.lane.name.rsplit_once(" (").is_some_and(|(short, _)| short == name);
        let by_path = self.threads.iter().rev().find(|at| at.lane.id == name);
        by_path.or_else(|| self.threads.iter().find(|at| at.lane.name == name || short(at)))
    }

    /// Every choice that there is: the thread, by its index, and the alternative.
    pub fn choices(&self) -> Vec<(usize, u32)> {
        let of = |(t, at): (usize, &At)| (0..at.ways.len() as u32).map(move |value| (t, value)).collect::<Vec<_>>();
        self.threads.iter().enumerate().flat_map(of).collect()
    }

    /// What is waited for or held: its name, who holds it, who waits for it.
    pub fn objects(&self) -> Vec<(String, Vec<String>, Vec<String>)> {
        let mut all: Vec<(String, Vec<String>, Vec<String>)> = Vec::new();
        let mut row = |name: &str| match all.iter().position(|(known, ..)| known == name) {
            Some(row) => row,
            None => {
                all.push((name.to_string(), Vec::new(), Vec::new()));
                all.len() - 1
            }
        };
        let mut held = Vec::new();
        for at in &self.threads {
            held.extend(at.lane.holds.iter().map(|name| (row(name), at.lane.name.clone())));
        }
        let label = |node: usize| &self.graph.nodes[node];
        let waits = |edge: &&crate::report::timeline::Edge| label(edge.from).lane.is_some();
        let waiting: Vec<(usize, String)> = self
            .graph
            .edges
            .iter()
            .filter(waits)
            .map(|edge| (row(&label(edge.to).label), label(edge.from).label.clone()))
            .collect();
        held.into_iter().for_each(|(row, who)| all[row].1.push(who));
        waiting.into_iter().for_each(|(row, who)| all[row].2.push(who));
        all
    }
}

impl At {
    fn nowhere(lane: Lane) -> At {
        At { lane, place: None, ways: Vec::new(), choice: Choice::default() }
    }

    /// For tests of what is made from it.
    #[cfg(test)]
    pub(crate) fn of(lane: Lane, place: Option<PlaceView>, ways: Vec<String>) -> At {
        At { lane, place, ways, choice: Choice::default() }
    }

    /// It can make the next step.
    pub fn can_move(&self) -> bool {
        !self.ways.is_empty()
    }

    /// Alternative `value` of what it is at, as a call.
    pub fn way(&self, value: u32) -> String {
        let told = self.ways.get(value as usize).map_or("", String::as_str);
        match told.strip_prefix("= ") {
            _ if told.is_empty() => self.lane.at.clone(),
            Some(_) => format!("{} {told}", self.lane.at),
            None => format!("{} ({told})", self.lane.at),
        }
    }
}
