//! Looks at a process and at those that its waits lead to, and draws the picture.
//!
//! NOTE [What makes it certain]. Each thread of a circle is noted in its wait (its call, and how often it was switched away from)
//! before anything is asked about what it waits for, and again after all was asked. If nothing has changed, it was in that wait all
//! the time, so that all held at once, though the threads were looked at one after the other. Otherwise it counts as moving.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::Duration;

use super::calls::wait_of;
use super::command::explore;
use super::descriptors::Descriptors;
use super::graph::{self, Node};
use super::look::{program_of, Activity, Process, Thread, Tools};
use super::names::Names;
use super::picture::{CircleView, Looked, Picture, ProcessView, ThreadView, Verdict, WaitView};
use super::proc;
use super::target::{target, whose};
use super::wait::{Enders, Party, Surroundings, Wait};
use crate::explore::Failure;

/// Between two looks: long for a processor, short for a person.
const BETWEEN: Duration = Duration::from_millis(100);
/// Processes that are looked at.
const MOST: usize = 64;

/// What hangs in process `id`, and why.
///
/// # Errors
/// It cannot be looked at.
pub fn why(id: i32) -> Result<Picture, Failure> {
    let pid = target(id)?;
    let mut scene = Scene { pid, ..Scene::default() };
    let mut next = proc::family(pid, &proc::parents());
    while !next.is_empty() {
        scene.add(&next)?;
        next = scene.led_to();
    }
    for round in 1..=ROUNDS {
        let moved =
            scene.processes.iter_mut().map(|process| process.check(round < ROUNDS)).filter(|good| !good).count();
        // In the last round what has moved counts as moving, and what is known of the others was asked before this.
        if moved == 0 || round == ROUNDS {
            break;
        }
        scene.led_to();
    }
    Ok(scene.picture())
}

/// How often it is asked again what threads wait for that have moved and are back in the same place: vsrun's own stop may do that.
const ROUNDS: usize = 5;

/// What has been looked at so far.
#[derive(Default)]
struct Scene {
    pid: i32,
    tools: Tools,
    processes: Vec<Process>,
    /// By thread.
    waits: BTreeMap<i32, Wait>,
    /// Processes that cannot be looked at.
    closed: BTreeMap<i32, String>,
    hidden: usize,
}

impl Scene {
    fn add(&mut self, pids: &[i32]) -> Result<(), Failure> {
        let before = self.processes.len();
        for &pid in pids {
            if self.processes.len() >= MOST {
                self.closed.insert(pid, format!("no more than {MOST} processes are looked at"));
                continue;
            }
            match Process::open(pid, &mut self.tools) {
                Ok(process) => self.processes.push(process),
                Err(e) if pid == self.pid => {
                    let message = format!("process {pid} must not be looked at: {e}{}", whose(pid));
                    return Err(Failure::environment(message));
                }
                Err(e) => drop(self.closed.insert(pid, format!("{e}{}", whose(pid)))),
            }
        }
        sleep(BETWEEN);
        self.processes[before..].iter_mut().for_each(Process::look_again);
        for process in &mut self.processes[before..] {
            process.find_stacks(&mut self.tools);
        }
        Ok(())
    }

    /// Finds out what all wait for; the processes by which that could end and that have not been looked at.
    fn led_to(&mut self) -> Vec<i32> {
        let descriptors = Descriptors::read();
        self.hidden = descriptors.hidden;
        let around = Surroundings { processes: &self.processes, descriptors: &descriptors };
        let mut waits = BTreeMap::new();
        for process in &self.processes {
            let of = |thread: &Thread| Some((thread.tid, wait_of(process, thread, &around)?));
            waits.extend(process.threads.iter().filter_map(of));
        }
        self.waits = waits;
        let process = |party: Party| match party {
            Party::Process(pid) => Some(pid),
            Party::Thread(tid) => proc::process_of(tid),
        };
        let parties = self.waits.values().flat_map(|wait| parties(&wait.enders));
        let mut all: Vec<i32> = parties.filter_map(process).collect();
        all.sort_unstable();
        all.dedup();
        all.retain(|pid| !self.closed.contains_key(pid) && !self.processes.iter().any(|p| p.pid == *pid));
        all.retain(|&pid| pid != std::process::id() as i32);
        all
    }

    fn threads(&self) -> Vec<(&Process, &Thread)> {
        let all = self.processes.iter().flat_map(|p| p.threads.iter().map(move |t| (p, t)));
        all.filter(|(_, thread)| thread.activity != Activity::Over).collect()
    }

    /// The wait of a thread that is still in it.
    fn wait(&self, thread: &Thread) -> Option<&Wait> {
        let waits = matches!(thread.activity, Activity::Waiting | Activity::Stopped);
        self.waits.get(&thread.tid).filter(|_| waits)
    }

    fn picture(&self) -> Picture {
        let threads = self.threads();
        let nodes: Vec<Node> = threads.iter().map(|(_, thread)| self.node(thread, &threads)).collect();
        let stuck = graph::stuck(&nodes);
        let names = Names::of(&self.processes);
        let certain = graph::stuck(&self.known(&nodes, &threads));
        let circle = |circle: Vec<usize>| self.circle(circle, &threads, &nodes, &certain, &names);
        let circles: Vec<CircleView> = graph::circles(&nodes, &stuck).into_iter().map(circle).collect();
        let possible: Vec<CircleView> = graph::possible(&nodes, &stuck).into_iter().map(circle).collect();
        let mut views: Vec<ThreadView> =
            threads.iter().zip(&stuck).map(|((p, t), &stuck)| self.thread(p, t, stuck, &names)).collect();
        hold(&mut views);
        let open = |view: &ThreadView| view.wait.as_ref().is_some_and(|wait| wait.unknown.is_some());
        let verdict = match () {
            () if stuck.contains(&true) => Verdict::Deadlock { certain: certain.contains(&true) },
            () if !possible.is_empty() || views.iter().any(open) => Verdict::Unknown,
            () => Verdict::Ok,
        };
        let mut picture = Picture {
            pid: self.pid,
            program: proc::words(self.pid, "cmdline").iter().map(|w| String::from_utf8_lossy(w).into_owned()).collect(),
            verdict,
            summary: String::new(),
            circles,
            possible,
            processes: self.processes.iter().map(|p| ProcessView { pid: p.pid, program: p.comm.clone() }).collect(),
            threads: views,
            unknown: self.unknown(),
            looked: self.looked(),
            explore: explore(self.pid, &self.clients()),
        };
        picture.summary = super::words::summary(&picture);
        picture
    }

    fn node(&self, thread: &Thread, threads: &[(&Process, &Thread)]) -> Node {
        let free = Node { may_go_on: true, ..Node::default() };
        let Some(wait) = self.wait(thread).filter(|wait| !wait.limited) else { return free };
        let (parties, named) = match &wait.enders {
            Enders::Only(parties) | Enders::Likely(parties) => (parties, true),
            Enders::Anybody(parties) => (parties, false),
            _ => return free,
        };
        let mut enders = Vec::new();
        for party in parties {
            let is_of = |(process, other): &(&Process, &Thread)| match *party {
                Party::Thread(tid) => other.tid == tid,
                Party::Process(pid) => process.pid == pid && other.tid != thread.tid,
            };
            let found: Vec<usize> = (0..threads.len()).filter(|&t| is_of(&threads[t])).collect();
            let own = matches!(party, Party::Process(pid) if self.process_of(thread) == Some(*pid));
            if found.is_empty() && !own {
                // It has not been looked at, or is over by now: it may do anything.
                return free;
            }
            enders.extend(found);
        }
        enders.sort_unstable();
        enders.dedup();
        Node { may_go_on: false, enders, named }
    }

    fn process_of(&self, thread: &Thread) -> Option<i32> {
        self.processes.iter().find(|p| p.threads.iter().any(|t| t.tid == thread.tid)).map(|p| p.pid)
    }

    /// The same where nothing is taken for known that is only likely.
    fn known(&self, nodes: &[Node], threads: &[(&Process, &Thread)]) -> Vec<Node> {
        let likely = |thread: &Thread| self.wait(thread).is_some_and(|wait| matches!(wait.enders, Enders::Likely(_)));
        let node = |(node, (_, thread)): (&Node, &(&Process, &Thread))| Node {
            may_go_on: node.may_go_on || likely(thread),
            ..node.clone()
        };
        nodes.iter().zip(threads).map(node).collect()
    }

    fn circle(
        &self,
        circle: Vec<usize>,
        threads: &[(&Process, &Thread)],
        nodes: &[Node],
        certain: &[bool],
        names: &Names,
    ) -> CircleView {
        let stuck = graph::stuck(nodes);
        let mut helpers: Vec<usize> = circle.iter().flat_map(|&t| nodes[t].enders.iter().copied()).collect();
        helpers.sort_unstable();
        helpers.dedup();
        helpers.retain(|t| !circle.contains(t) && !stuck[*t]);
        CircleView {
            certain: circle.iter().all(|&t| certain[t]),
            helpers: helpers.into_iter().map(|t| names.thread(threads[t].1.tid)).collect(),
            threads: circle,
        }
    }

    fn thread(&self, process: &Process, thread: &Thread, stuck: bool, names: &Names) -> ThreadView {
        let doing = match thread.activity {
            Activity::Moving => "moves",
            Activity::Computing => "computes without a pause",
            Activity::Waiting => "waits",
            Activity::Stopped => "is stopped",
            Activity::Over => "is over",
        };
        ThreadView {
            tid: thread.tid,
            pid: process.pid,
            name: names.thread(thread.tid),
            doing,
            stuck,
            wait: self.wait(thread).map(|wait| self.view(wait, names)),
            holds: Vec::new(),
            frames: thread.frames.clone(),
            exact: thread.exact,
        }
    }

    /// A wait as it is told. Who has not been looked at may do anything.
    fn view(&self, wait: &Wait, names: &Names) -> WaitView {
        let mut view = view(wait, names);
        let strange = |party: &Party| match *party {
            Party::Process(pid) => !self.processes.iter().any(|p| p.pid == pid),
            Party::Thread(tid) => !self.processes.iter().any(|p| p.threads.iter().any(|t| t.tid == tid)),
        };
        if let Some(party) = parties(&wait.enders).iter().find(|party| strange(party)) {
            let why = format!("{} was not looked at", names.party(party));
            view.unknown = view.unknown.or(Some(why)).filter(|_| !wait.limited);
        }
        view
    }

    fn looked(&self) -> Looked {
        let stops = &self.tools.stops;
        Looked {
            between: BETWEEN,
            stops: (stops.len(), stops.iter().max().copied().unwrap_or_default(), stops.iter().sum()),
            spared: self.tools.spared,
        }
    }

    /// Processes that talk to the program and are not of its family: local clients.
    fn clients(&self) -> Vec<i32> {
        let parents = proc::parents();
        let family = proc::family(self.pid, &parents);
        let mut above = vec![self.pid];
        while let Some(&parent) = parents.get(&above[above.len() - 1]).filter(|&&parent| parent > 0) {
            above.push(parent);
        }
        let own = program_of(self.pid);
        let talks = |p: &&Process| !family.contains(&p.pid) && !above.contains(&p.pid) && program_of(p.pid) != own;
        self.processes.iter().filter(talks).map(|p| p.pid).collect()
    }

    fn unknown(&self) -> Vec<String> {
        let mut all = Vec::new();
        for process in &self.processes {
            let name = format!("process {} ({})", process.pid, process.comm);
            if process.tracer != 0 {
                let tracer = process.tracer;
                all.push(format!("{name} is traced by process {tracer} (a debugger?): its threads were not stopped, and are shown without registers"));
            }
            if process.memory.is_none() {
                let whose = whose(process.pid);
                all.push(format!("the memory and system calls of {name} must not be read{whose}: owners of locks and call stacks are missing"));
            } else if process.libc.is_none() {
                all.push(format!("{name} uses no glibc that is known here: owners of its locks are not known"));
            }
            if !process.same_pids {
                all.push(format!("{name} is in another PID namespace: ids are those of this one"));
            }
            if process.modules.modules().is_empty() {
                all.push(format!("the program of {name} cannot be read: its functions have no names"));
            }
        }
        all.extend(self.closed.iter().map(|(pid, why)| format!("process {pid} was not looked at: {why}")));
        let of_descriptors = |wait: &Wait| matches!(wait.via, "written by" | "read by");
        if self.hidden > 0 && self.waits.values().any(of_descriptors) {
            all.push(format!("the descriptors of {} processes must not be read (run vsrun as root): they may have other ends of pipes and sockets", self.hidden));
        }
        if let Some(why) = &self.tools.refused {
            all.push(format!(
                "a thread could not be stopped, so that its call stack is found without registers: {why}"
            ));
        }
        all
    }
}

/// Those who are named.
fn parties(enders: &Enders) -> Vec<Party> {
    match enders {
        Enders::Only(all) | Enders::Likely(all) | Enders::Anybody(all) => all.clone(),
        _ => Vec::new(),
    }
}

/// Why it is not known who ends a wait that several could.
const WHICH: &str = "which thread is to do that cannot be known";

fn view(wait: &Wait, names: &Names) -> WaitView {
    let (mut outside, mut unknown) = (None, None);
    match &wait.enders {
        Enders::Time => outside = Some("the clock".to_string()),
        Enders::Outside(who) => outside = Some(who.clone()),
        Enders::Unknown(why) => unknown = Some(why.clone()),
        Enders::Anybody(_) => unknown = Some(WHICH.to_string()),
        Enders::Only(_) | Enders::Likely(_) => {}
    }
    let who = match &wait.enders {
        Enders::Anybody(_) => Vec::new(),
        enders => parties(enders).iter().map(|party| names.party(party)).collect(),
    };
    WaitView {
        call: wait.call.clone(),
        object: wait.object.clone(),
        via: wait.via.to_string(),
        who,
        facts: wait.facts.clone(),
        limited: wait.limited,
        outside,
        unknown: unknown.filter(|_| !wait.limited),
    }
}

/// What one thread waits for and another has is told of the other one, too.
fn hold(views: &mut [ThreadView]) {
    let held = |view: &ThreadView| {
        let wait = view.wait.as_ref().filter(|wait| wait.via == "held by" && wait.who.len() == 1)?;
        Some((wait.who[0].clone(), wait.object.clone()))
    };
    let all: Vec<(String, String)> = views.iter().filter_map(held).collect();
    for view in views {
        let mut own: Vec<String> =
            all.iter().filter(|(who, _)| *who == view.name).map(|(_, object)| object.clone()).collect();
        own.sort();
        own.dedup();
        view.holds = own;
    }
}
