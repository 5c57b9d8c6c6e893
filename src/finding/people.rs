//! What the threads, processes and connections of an execution are called for people: by the name that the program has given them, else by
//! the function that a thread was started with, or by what a process is. The path of creation stands behind each name of a thread, so that
//! no two are the same.

use std::collections::{BTreeMap, BTreeSet};

use vsrun_model::{Kind, ObjId, ObjKind, Pid, Tid, Uid};

use super::seen::{Finding, ProcessView, ThreadView};
use super::words::Names;
use crate::base::text::escape;

/// Longest name of a function that a thread is called by, in characters.
const LONGEST: usize = 32;

/// Names for people.
pub struct People<'a> {
    found: &'a Finding,
    threads: Vec<String>,
    processes: Vec<String>,
    /// Connections between two processes.
    channels: BTreeMap<ObjId, String>,
    /// Other channels, by who has made them.
    made: BTreeMap<ObjId, String>,
    /// Those of the private memory of a process that no other process has under the same name.
    objects: BTreeMap<ObjId, String>,
}

/// Numbers those of equal names, in their order, where there are several of one, or where `always` says so.
fn numbered(names: Vec<String>, always: impl Fn(&str) -> bool) -> Vec<String> {
    let all = names.iter().fold(BTreeMap::<&str, u32>::new(), |mut all, name| {
        *all.entry(name).or_default() += 1;
        all
    });
    let mut before = BTreeMap::<&str, u32>::new();
    let mut numbered = Vec::new();
    for name in &names {
        let n = before.entry(name).or_default();
        *n += 1;
        let several = all.get(name.as_str()).is_some_and(|n| *n > 1);
        numbered.push(if several || always(name) { format!("{name}#{n}") } else { name.clone() });
    }
    numbered
}

/// A forked process that has become no other program.
const CHILD: &str = "child";

impl<'a> People<'a> {
    /// Those of an execution that was looked at.
    pub fn of(found: &'a Finding) -> People<'a> {
        let plain = |names: Vec<String>| names.iter().map(escape).collect::<Vec<String>>();
        let processes = plain(process_names(found));
        let threads = plain(thread_names(found, &processes));
        let mut people = People {
            found,
            threads,
            processes,
            channels: BTreeMap::new(),
            made: BTreeMap::new(),
            objects: private_objects(found),
        };
        people.channels = channels(found, &people);
        people.made = made_by(found, &people);
        people
    }

    /// A thread without its path of creation: `worker#1`.
    pub fn name(&self, t: Tid) -> &str {
        self.threads.get(t as usize).map_or("?", String::as_str)
    }

    /// A process without its number: `child#1`.
    pub fn process_name(&self, p: Pid) -> &str {
        self.processes.get(p as usize).map_or("?", String::as_str)
    }

    /// The thread of a step, with its path of creation.
    pub fn mover(&self, uid: Uid) -> String {
        let t = self.found.threads.iter().rposition(|thread| thread.uid == uid);
        t.map_or_else(|| uid.to_string(), |t| self.thread(t as Tid))
    }

    /// The connections that are called by who is at their ends: their names here, and what they are called else.
    pub fn connections(&self) -> impl Iterator<Item = (ObjId, &str, String)> + '_ {
        self.channels.iter().map(|(&id, name)| (id, name.as_str(), self.found.object(id)))
    }

    /// The other channels that have come up after the first step: their names, and the step.
    pub fn made_later(&self) -> impl Iterator<Item = (&str, u64)> + '_ {
        let of = |(&id, name)| Some((String::as_str(name), self.found.made(id).filter(|step| *step > 0)?));
        self.made.iter().filter_map(of)
    }
}

impl Names for People<'_> {
    fn object(&self, id: ObjId) -> String {
        let known = self.channels.get(&id).or_else(|| self.made.get(&id)).or_else(|| self.objects.get(&id));
        known.cloned().unwrap_or_else(|| self.found.object(id))
    }

    fn memory(&self, id: ObjId, byte: u8) -> String {
        self.found.memory(id, byte)
    }

    fn thread(&self, t: Tid) -> String {
        match self.found.threads.get(t as usize) {
            Some(thread) => format!("{} ({})", self.name(t), thread.uid),
            None => self.found.thread(t),
        }
    }

    fn process(&self, p: Pid) -> String {
        match self.found.processes.len() {
            0 | 1 => self.found.process(p),
            _ => format!("{} ({})", self.found.process(p), self.process_name(p)),
        }
    }
}

impl Finding {
    /// The line about it, with names for people.
    pub fn line(&self) -> String {
        self.summary.render(&People::of(self))
    }

    /// The first thread of a process.
    pub fn first_thread(&self, p: Pid) -> Option<(Tid, &ThreadView)> {
        (0..).zip(&self.threads).find(|(_, thread)| thread.process == p)
    }

    /// The thread that has made a process; `None`: it was there from the start.
    pub fn forker(&self, p: Pid) -> Option<Tid> {
        self.first_thread(p)?.1.creator
    }

    /// The file that a process runs; of one that is over, what its parent runs, unless it has become another program. Empty: not known.
    pub fn program_of(&self, p: Pid) -> &str {
        let mut at = p;
        // Parents have smaller numbers, so this ends.
        loop {
            let Some(process) = self.processes.get(at as usize) else { return "" };
            let forker = self.forker(at).and_then(|t| Some(self.threads.get(t as usize)?.process));
            match forker {
                _ if !process.program.is_empty() => return &process.program,
                Some(parent) if parent < at && process.execs == 0 => at = parent,
                _ => return "",
            }
        }
    }
}

fn process_names(found: &Finding) -> Vec<String> {
    let one = |(p, process): (Pid, &ProcessView)| {
        let given = found.first_thread(p).map_or("", |(_, thread)| thread.given.as_str());
        let program = found.program_of(p);
        // What the kernel calls a process is the beginning of its program's name.
        match () {
            () if !given.is_empty() && !program.starts_with(given) => given.to_string(),
            () if found.forker(p).is_some() && process.execs == 0 => CHILD.to_string(),
            () if program.is_empty() => "process".to_string(),
            () => program.to_string(),
        }
    };
    numbered((0..).zip(&found.processes).map(one).collect(), |name| name == CHILD)
}

/// What a thread that is not the first of its process is called by itself.
fn own_name(found: &Finding, thread: &ThreadView) -> String {
    /// What the library of C++ starts them with.
    const OF_CXX: &str = "execute_native_thread_routine";
    if !thread.given.is_empty() && !found.program_of(thread.process).starts_with(&thread.given) {
        return thread.given.clone();
    }
    let start = thread.start.split(['(', '<', '+']).next().unwrap_or_default().trim();
    match start {
        "" | OF_CXX => "thread".to_string(),
        start => start.chars().take(LONGEST).collect(),
    }
}

fn thread_names(found: &Finding, processes: &[String]) -> Vec<String> {
    let several = processes.len() > 1;
    let firsts: BTreeSet<Tid> =
        (0..processes.len()).filter_map(|p| found.first_thread(p as Pid)).map(|(t, _)| t).collect();
    let mut names = vec![String::new(); found.threads.len()];
    let mut processes_of = BTreeMap::<String, BTreeSet<Pid>>::new();
    for p in 0..processes.len() as Pid {
        let members: Vec<usize> = (0..found.threads.len()).filter(|&t| found.threads[t].process == p).collect();
        let (first, others): (Vec<usize>, Vec<usize>) = members.iter().partition(|&&t| firsts.contains(&(t as Tid)));
        let own: Vec<String> = others.iter().map(|&t| own_name(found, &found.threads[t])).collect();
        for name in &own {
            processes_of.entry(name.clone()).or_default().insert(p);
        }
        for (&t, name) in others.iter().zip(numbered(own, |_| false)) {
            names[t] = name;
        }
        for &t in &first {
            names[t] = match several {
                true => processes[p as usize].clone(),
                false if found.threads[t].given.is_empty() => "main".to_string(),
                false => own_name(found, &found.threads[t]),
            };
        }
    }
    // Threads of several processes that are called the same.
    for (t, thread) in (0..).zip(&found.threads) {
        let own = own_name(found, thread);
        if !firsts.contains(&t) && processes_of.get(&own).is_some_and(|of| of.len() > 1) {
            names[t as usize] = format!("{}/{}", processes[thread.process as usize], names[t as usize]);
        }
    }
    names
}

/// Objects in private memory whose names need not tell of which process.
fn private_objects(found: &Finding) -> BTreeMap<ObjId, String> {
    let plain = |name: &str| {
        let (plain, of) = name.rsplit_once('@')?;
        Uid::parse(of).map(|_| plain.to_string())
    };
    let names: Vec<Option<String>> = found.objects.iter().map(|object| plain(&object.name)).collect();
    let alone = |name: &String| names.iter().flatten().filter(|other| *other == name).count() == 1;
    let named = (0..).zip(&names).filter_map(|(id, name)| Some((id, name.clone().filter(&alone)?)));
    named.collect()
}

/// What is called by who has made it and a number, `pipe 0.1:2`, by the name of that thread: `pipe of worker`, or `pipe#2 of worker` where it
/// has made several.
fn made_by(found: &Finding, people: &People) -> BTreeMap<ObjId, String> {
    let parts = |name: &str| {
        let (what, rest) = name.rsplit_once(' ')?;
        let (maker, number) = rest.split_once(':')?;
        let t = found.threads.iter().rposition(|thread| Uid::parse(maker) == Some(thread.uid))?;
        Some((what.to_string(), t as Tid, number.parse::<u32>().ok()?))
    };
    let channels = (0..).zip(&found.objects).filter(|(_, object)| object.kind == ObjKind::CHANNEL);
    let all: BTreeMap<ObjId, (String, Tid, u32)> =
        channels.filter_map(|(id, object)| Some((id, parts(&object.name)?))).collect();
    let name = |(id, (what, t, number)): (&ObjId, &(String, Tid, u32))| {
        let alike = || all.values().filter(|other| (&other.0, other.1) == (what, *t));
        let nth = alike().filter(|other| other.2 <= *number).count();
        let nth = if alike().count() > 1 { format!("#{nth}") } else { String::new() };
        (*id, format!("{what}{nth} of {}", people.name(*t)))
    };
    all.iter().map(name).collect()
}

/// Who reads from a channel, and who writes to it, as far as the steps and pending operations tell.
#[derive(Default)]
struct Ends {
    readers: BTreeSet<Pid>,
    writers: BTreeSet<Pid>,
}

/// `tcp A -> B` as `tcp`, A, B.
fn addresses(name: &str) -> Option<(&str, &str, &str)> {
    let (near, far) = name.split_once(" -> ")?;
    let (protocol, near) = near.rsplit_once(' ')?;
    Some((protocol, near, far))
}

/// Channels between two processes, by what these are called: `tcp child#1 -> server`.
fn channels(found: &Finding, people: &People) -> BTreeMap<ObjId, String> {
    let mut all = BTreeMap::<ObjId, Ends>::new();
    let process_of: BTreeMap<Uid, Pid> = found.threads.iter().map(|thread| (thread.uid, thread.process)).collect();
    let steps = found.steps.iter().filter_map(|step| Some((step.op, *process_of.get(&step.thread)?)));
    let pending = found.threads.iter().filter_map(|thread| Some((thread.pending.as_ref()?.op, thread.process)));
    for (op, process) in steps.chain(pending) {
        let is_channel = found.objects.get(op.obj as usize).is_some_and(|object| object.kind == ObjKind::CHANNEL);
        let ends = all.entry(op.obj);
        match op.kind {
            _ if !is_channel => {}
            Kind::FD_READ | Kind::FD_CONNECT => drop(ends.or_default().readers.insert(process)),
            Kind::FD_WRITE | Kind::FD_SEND => drop(ends.or_default().writers.insert(process)),
            _ => {}
        }
    }
    let of_channel = |id: ObjId| found.objects.get(id as usize).map_or("", |object| object.name.as_str());
    // Who reads one way of a connection writes the other way.
    let ways: Vec<ObjId> =
        (0..found.objects.len() as ObjId).filter(|&id| addresses(of_channel(id)).is_some()).collect();
    for &id in &ways {
        let Some((protocol, near, far)) = addresses(of_channel(id)) else { continue };
        let back = ways.iter().find(|&&other| addresses(of_channel(other)) == Some((protocol, far, near)));
        if let Some(&back) = back {
            let (readers, writers) =
                all.get(&back).map_or_else(Default::default, |e| (e.readers.clone(), e.writers.clone()));
            let ends = all.entry(id).or_default();
            ends.readers.extend(writers);
            ends.writers.extend(readers);
        }
    }
    // Of what nobody has used in one way those count who could, if that is one process.
    for (id, object) in (0..).zip(&found.objects).filter(|(_, object)| object.kind == ObjKind::CHANNEL) {
        let ends = all.entry(id).or_default();
        for (seen, could) in [(&mut ends.readers, &object.readers), (&mut ends.writers, &object.writers)] {
            if let ([only], true) = (could.as_slice(), seen.is_empty()) {
                seen.insert(*only);
            }
        }
    }
    let one = |(id, ends): (&ObjId, &Ends)| {
        let (&reader, &writer) = (ends.readers.first()?, ends.writers.first()?);
        let two = ends.readers.len() == 1 && ends.writers.len() == 1 && reader != writer;
        let name = of_channel(*id);
        // What a thread has made is told by its name and a number.
        let what =
            addresses(name).map_or_else(|| name.rsplit_once(' ').map_or(name, |(what, _)| what), |(what, ..)| what);
        two.then(|| (*id, format!("{what} {} -> {}", people.process_name(writer), people.process_name(reader))))
    };
    let (ids, names): (Vec<ObjId>, Vec<String>) = all.iter().filter_map(one).unzip();
    ids.into_iter().zip(numbered(names, |_| false)).collect()
}
