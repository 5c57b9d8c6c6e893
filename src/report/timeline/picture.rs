//! What a picture of an execution shows, as plain data: lanes, rows, arrows between them, and who waits for whom at the end. The formats are
//! functions of it.

use std::collections::BTreeMap;

use vsrun_model::{Kind, ObjId, Tid};

use crate::finding::{
    BugKind, CycleLink, Finding, Names, People, PlaceView, StepView, Thing, ThreadStatus, ThreadView, Words,
};
use crate::incomplete::uncontrolled;
use crate::race::{Arrow, Tie};
use crate::report::story;

/// An execution that was looked at.
pub struct Picture {
    /// What kind of bug it is, if it is one.
    pub kind: Option<BugKind>,
    /// The line about its end.
    pub summary: String,
    /// What is said first of an execution in which calls went to the kernel by the user's wish.
    pub uncontrolled: Option<String>,
    /// What happened, in sentences.
    pub story: Vec<String>,
    /// What was run, as one would type it.
    pub program: String,
    /// The file of the scenario; empty: there is none.
    pub scenario: String,
    /// The processes, in order of creation: number, and what people call it.
    pub processes: Vec<(i32, String)>,
    /// The threads, those of a process side by side.
    pub lanes: Vec<Lane>,
    /// The steps.
    pub rows: Vec<Row>,
    /// Steps in all, also those that are no rows.
    pub steps: u64,
    /// What came directly before what, by rows, ascending by the later one.
    pub links: Vec<Link>,
    /// Who waits for whom at the end.
    pub graph: Graph,
    /// The end of what the program printed.
    pub printed: String,
}

/// A thread.
#[derive(Clone, Debug)]
pub struct Lane {
    /// Its path of creation: `0.1`.
    pub id: String,
    /// What people call it: `worker#1 (0.1)`.
    pub name: String,
    /// Its process, by index.
    pub process: usize,
    /// What it does at the end.
    pub status: &'static str,
    /// The operation that it is at; empty: none.
    pub at: String,
    /// Where that is: call stack, innermost first.
    pub frames: Vec<PlaceView>,
    /// What has to happen before it goes on.
    pub waits_for: Vec<String>,
    /// Locks that it holds.
    pub holds: Vec<String>,
}

/// A step.
pub struct Row {
    /// Its number, from 1.
    pub n: u64,
    /// Who made it, by index of the lane.
    pub lane: usize,
    /// The operation: `pthread_mutex_lock(lock_a)`.
    pub text: String,
    /// The name of its kind.
    pub kind: &'static str,
    /// More to say; empty: nothing.
    pub note: String,
    /// Where in the program; `None`: that is not known.
    pub place: Option<PlaceView>,
    /// The end may depend on it.
    pub matters: bool,
}

/// An arrow from one row to a later one of another lane.
pub struct Link {
    /// The earlier row, by index.
    pub from: usize,
    /// The later one.
    pub to: usize,
    /// What kind of arrow it is, in one word.
    pub kind: &'static str,
    /// Why it is there: `lock lock_a`.
    pub why: String,
}

/// Who waits for whom.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Threads, and what they wait for.
    pub nodes: Vec<Node>,
    /// From who waits to what it waits for, and from there to who holds that.
    pub edges: Vec<Edge>,
}

/// A thread, or what one waits for.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is called.
    pub label: String,
    /// The lane, if it is a thread.
    pub lane: Option<usize>,
    /// It is in the circle that is the bug.
    pub in_circle: bool,
}

/// An arrow of the graph.
#[derive(Clone, Debug)]
pub struct Edge {
    /// The node that it comes from, by index.
    pub from: usize,
    /// The node that it goes to.
    pub to: usize,
    /// `waits for`, `held by`.
    pub label: &'static str,
}

/// What is known of an execution beside what was seen.
pub struct About {
    /// See [`Picture::program`].
    pub program: String,
    /// See [`Picture::scenario`].
    pub scenario: String,
    /// What the program printed.
    pub printed: Vec<u8>,
    /// Kinds of calls that went to the kernel by the user's wish.
    pub uncontrolled: u32,
}

/// Bytes of what was printed that are kept.
const PRINTED: usize = 64 << 10;

impl Picture {
    /// The picture of what was seen; `arrows`: by indices of its steps.
    pub fn new(found: &Finding, arrows: &[Arrow], about: About) -> Picture {
        let people = &People::of(found);
        let (lanes, lane_of) = lanes(found, people);
        let by_name: BTreeMap<String, usize> = lanes.iter().zip(0..).map(|(lane, i)| (lane.id.clone(), i)).collect();
        let (rows, row_of) = rows(found, people, &by_name);
        let printed = &about.printed[about.printed.len().saturating_sub(PRINTED)..];
        Picture {
            kind: found.kind,
            summary: found.summary.render(people),
            uncontrolled: uncontrolled(about.uncontrolled),
            story: story::of(found, people).sentences,
            program: about.program,
            scenario: about.scenario,
            processes: (0..)
                .zip(&found.processes)
                .map(|(p, of)| (of.vpid, people.process_name(p).to_string()))
                .collect(),
            links: links(people, arrows, &rows, &row_of),
            graph: graph((found, people), &lanes, &lane_of),
            lanes,
            rows,
            steps: found.transitions(),
            printed: String::from_utf8_lossy(printed).into_owned(),
        }
    }
}

/// The lanes, and the lane of each thread.
pub(crate) fn lanes(found: &Finding, people: &People) -> (Vec<Lane>, Vec<usize>) {
    let mut order: Vec<usize> = (0..found.threads.len()).collect();
    order.sort_by_key(|&t| (found.threads[t].process, t));
    let mut lane_of = vec![0; order.len()];
    order.iter().zip(0..).for_each(|(&t, lane)| lane_of[t] = lane);
    (order.iter().map(|&t| lane(people, t as Tid, &found.threads[t])).collect(), lane_of)
}

fn lane(people: &People, t: Tid, thread: &ThreadView) -> Lane {
    let texts = |all: &[Words]| all.iter().map(|words| words.render(people)).collect();
    Lane {
        name: people.thread(t),
        id: thread.uid.to_string(),
        process: thread.process as usize,
        status: match thread.status {
            ThreadStatus::Running => "running",
            ThreadStatus::Ready => "could go on",
            ThreadStatus::Waiting => "waiting",
            ThreadStatus::InCall => "in a system call",
            ThreadStatus::Exited => "over",
        },
        at: thread.pending.as_ref().map_or_else(String::new, |pending| pending.text.render(people)),
        frames: thread.frames.clone(),
        waits_for: texts(&thread.waits_for),
        holds: texts(&thread.holds),
    }
}

/// The rows, and for each step its row, or, for those that are none, the one of its thread before it and after it.
fn rows(found: &Finding, people: &People, lanes: &BTreeMap<String, usize>) -> (Vec<Row>, Vec<[Option<usize>; 2]>) {
    // That a call returns, with no signal to be handled, says nothing.
    let silent = |step: &StepView| step.op.kind == Kind::RETURN && step.op.signals == 0;
    let (mut rows, mut row_of) = (Vec::new(), vec![[None; 2]; found.steps.len()]);
    let mut last = vec![None; lanes.len()];
    for (i, step) in found.steps.iter().enumerate() {
        let lane = lanes.get(&step.thread.to_string()).copied().unwrap_or(0);
        if silent(step) {
            row_of[i] = [last.get(lane).copied().flatten(), None];
            continue;
        }
        row_of[i] = [Some(rows.len()); 2];
        if let Some(last) = last.get_mut(lane) {
            *last = Some(rows.len());
        }
        rows.push(Row {
            n: i as u64 + 1,
            lane,
            text: step.text.render(people),
            kind: step.op.kind.row().name,
            note: step.note.as_ref().map_or_else(String::new, |note| note.render(people)),
            place: step.at.clone(),
            matters: step.matters,
        });
    }
    let mut next = vec![None; lanes.len()];
    for (i, step) in found.steps.iter().enumerate().rev() {
        let lane = lanes.get(&step.thread.to_string()).copied().unwrap_or(0);
        let Some(next) = next.get_mut(lane) else { continue };
        match row_of[i][1] {
            Some(row) => *next = Some(row),
            None => row_of[i][1] = *next,
        }
    }
    (rows, row_of)
}

fn links(people: &People, arrows: &[Arrow], rows: &[Row], row_of: &[[Option<usize>; 2]]) -> Vec<Link> {
    let mut all: Vec<Link> = Vec::new();
    for arrow in arrows {
        let ends = (row_of.get(arrow.from).and_then(|row| row[0]), row_of.get(arrow.to).and_then(|row| row[1]));
        let (Some(from), Some(to)) = ends else { continue };
        if from >= to
            || rows[from].lane == rows[to].lane
            || all.iter().rev().take(8).any(|l| (l.from, l.to) == (from, to))
        {
            continue;
        }
        let object = |id| people.object(id);
        let (kind, why) = match arrow.tie {
            Tie::Creates => ("creates", "creates the thread".into()),
            Tie::Wakes => ("wakes", "wakes it".into()),
            Tie::Signals(signal) => ("signal", crate::finding::signal_name(signal)),
            Tie::Ends => ("end", "its end is awaited".into()),
            Tie::Lock(id) => ("lock", object(id)),
            Tie::Message(id) => ("message", object(id)),
            Tie::Memory(id) => ("memory", object(id)),
            Tie::Object(id) => ("object", object(id)),
        };
        all.push(Link { from, to, kind, why });
    }
    all.sort_by_key(|link| (link.to, link.from));
    all
}

/// A graph under way.
struct Drawing<'a> {
    found: &'a Finding,
    people: &'a People<'a>,
    lanes: &'a [Lane],
    lane_of: &'a [usize],
    graph: Graph,
    /// The nodes by what they are.
    nodes: BTreeMap<(char, String), usize>,
}

/// Who waits for whom: each thread that waits, what for, and who holds that.
pub(crate) fn graph((found, people): (&Finding, &People), lanes: &[Lane], lane_of: &[usize]) -> Graph {
    let mut drawing = Drawing { found, people, lanes, lane_of, graph: Graph::default(), nodes: BTreeMap::new() };
    for (waiter, t) in found.threads.iter().zip(0..) {
        waiter.waits_for.iter().for_each(|sentence| drawing.wait(t, sentence));
    }
    drawing.graph
}

impl Drawing<'_> {
    fn circle(&self) -> &[CycleLink] {
        self.found.cycle.as_deref().unwrap_or_default()
    }

    fn node(&mut self, key: (char, String), label: String, lane: Option<usize>, in_circle: bool) -> usize {
        *self.nodes.entry(key).or_insert_with(|| {
            self.graph.nodes.push(Node { label, lane, in_circle });
            self.graph.nodes.len() - 1
        })
    }

    fn thread(&mut self, t: Tid) -> Option<usize> {
        let lane = *self.lane_of.get(t as usize)?;
        let in_circle = self.circle().iter().any(|link| link.thread == t);
        Some(self.node(('t', t.to_string()), self.lanes[lane].name.clone(), Some(lane), in_circle))
    }

    fn object(&mut self, id: ObjId) -> usize {
        let in_circle = self.circle().iter().any(|link| link.object == Some(id));
        self.node(('o', id.to_string()), self.people.object(id), None, in_circle)
    }

    /// `t` waits for what the sentence says.
    fn wait(&mut self, t: Tid, sentence: &Words) {
        let Some(from) = self.thread(t) else { return };
        let known = self.graph.nodes.len();
        let to = sentence.things().find_map(|thing| match thing {
            Thing::Thread(other) => self.thread(*other),
            Thing::Object(id) => Some(self.object(*id)),
            _ => None,
        });
        let to = to.unwrap_or_else(|| {
            let text = sentence.render(self.people);
            self.node(('s', text.clone()), text, None, false)
        });
        self.graph.edges.push(Edge { from, to, label: "waits for" });
        if let Some(Thing::Object(id)) = sentence.things().find(|thing| matches!(thing, Thing::Object(_))) {
            if to >= known {
                self.holders(*id, to);
            }
        }
    }

    /// Those who hold the object, which is `node`.
    fn holders(&mut self, id: ObjId, node: usize) {
        let holds =
            |thread: &ThreadView| thread.holds.iter().flat_map(Words::things).any(|thing| *thing == Thing::Object(id));
        let all: Vec<Tid> =
            (0..).zip(&self.found.threads).filter(|(_, thread)| holds(thread)).map(|(t, _)| t).collect();
        for t in all {
            let Some(to) = self.thread(t) else { continue };
            self.graph.edges.push(Edge { from: node, to, label: "held by" });
        }
    }
}
