//! Who is who: the processes, who made them, which threads they have, and how those that are over have ended.

use std::fmt::Write;

use vsrun_model::{Kind, ObjId, Pid};

use crate::base::text::one_line;
use crate::finding::{signal_name, Finding, Names, People, ProgramStatus, ThreadStatus};

/// Most processes, and threads of one, that are told one by one.
const MOST: usize = 12;

/// A line for each process: number, name, what it is.
pub fn lines(found: &Finding, people: &People) -> String {
    let several = found.processes.len() > 1;
    let shown = 0..(found.processes.len().min(MOST) as Pid);
    let rows: Vec<[String; 3]> = shown
        .map(|p| {
            let first = found.first_thread(p).map_or("?".to_string(), |(t, _)| people.thread(t));
            let name = if several { first } else { found.program_of(p).to_string() };
            [found.process(p), name, what(found, people, p)]
        })
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (number, name) = (width(0), width(1));
    let mut out = String::new();
    for row in &rows {
        let _ = writeln!(out, "  {:number$}  {:name$}  {}", row[0], one_line(&row[1]), one_line(&row[2]));
    }
    if found.processes.len() > MOST {
        let _ = writeln!(out, "  and {} more", found.processes.len() - MOST);
    }
    for (id, name, address) in people.connections().take(MOST) {
        let made =
            |(_, step): &(usize, &crate::finding::StepView)| step.op.kind == Kind::FD_CONNECT && step.op.obj == id;
        let step = found
            .steps
            .iter()
            .enumerate()
            .find(made)
            .map_or_else(String::new, |(n, _)| format!(", connected at step {}", n + 1));
        let _ = writeln!(out, "  {}: {}{step}{}", one_line(name), one_line(&address), accepted(found, id));
    }
    for (name, step) in people.made_later().take(MOST) {
        let _ = writeln!(out, "  {}: made at step {step}", one_line(name));
    }
    out
}

/// `, accepted at step 12`, of what a server reads from, if that is known.
fn accepted(found: &Finding, id: ObjId) -> String {
    match found.made(id) {
        Some(step) if found.comes_from_accept(step) => format!(", accepted at step {step}"),
        _ => String::new(),
    }
}

/// What a process is, whom it has, and how it ended.
fn what(found: &Finding, people: &People, p: Pid) -> String {
    let process = &found.processes[p as usize];
    let several = found.processes.len() > 1;
    let mut parts = Vec::new();
    if several {
        let became = if process.execs > 0 { ", then became another program" } else { "" };
        parts.push(match found.forker(p) {
            _ if is_restart(found, p) => "the program, started again".to_string(),
            Some(t) => format!("forked by {}{became}", people.thread(t)),
            None if p == 0 => "the program".to_string(),
            None => "started beside it".to_string(),
        });
    }
    let first = found.first_thread(p).map(|(t, _)| t).filter(|_| several);
    let members = || (0..).zip(&found.threads).filter(|(t, thread)| thread.process == p && Some(*t) != first);
    let list = |over: bool| {
        let of = members().filter(|(_, thread)| (thread.status == ThreadStatus::Exited) == over);
        let names: Vec<String> = of.map(|(t, _)| people.thread(t)).collect();
        let more = names.len().saturating_sub(MOST);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!names.is_empty()).then(|| names[..names.len().min(MOST)].join(", ") + &more)
    };
    if process.over.is_none() {
        let title = if several { "threads " } else { "" };
        parts.extend(list(false).map(|names| format!("{title}{names}")));
        parts.extend(list(true).map(|names| format!("over: {names}")));
    }
    parts.extend(process.over.map(|status| ended(found, people, p, status)));
    parts.join("; ")
}

/// It has started the program again (`--restart`).
fn is_restart(found: &Finding, p: Pid) -> bool {
    let own = |uid| found.threads.iter().any(|thread| thread.uid == uid && thread.process == p);
    found.steps.iter().any(|step| step.op.kind == Kind::RESTART && own(step.thread))
}

/// How a process that is over has ended.
fn ended(found: &Finding, people: &People, p: Pid, status: i32) -> String {
    let member = |uid| found.threads.iter().any(|thread| thread.uid == uid && thread.process == p);
    let last = found.steps.iter().rposition(|step| member(step.thread));
    let after = last.map_or_else(String::new, |n| format!(", its last step was {}", n + 1));
    match ProgramStatus::from_wait(status) {
        ProgramStatus::Exit(code) => format!("over: exited with status {code}{after}"),
        ProgramStatus::Signal(signal) => {
            let kills = |step: &crate::finding::StepView| {
                step.op.kind == Kind::KILL && step.op.obj == p && step.op.arg == i64::from(signal)
            };
            let by = found.steps.iter().rposition(kills);
            let by = by.map_or_else(String::new, |n| {
                format!(" from {} at step {}", people.mover(found.steps[n].thread), n + 1)
            });
            format!("over: killed by {}{by}{after}", signal_name(signal as u32))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{deadlock, finding, step, waiting, LOCK_A};
    use super::*;
    use crate::finding::{BugKind, ProcessView, ThreadView};
    use vsrun_model::{Op, Uid};

    #[test]
    fn one_process() {
        let bug = deadlock();
        let found = bug.finding.as_deref().unwrap();
        let expected = "  1001  prog  main (0), worker#1 (0.1), worker#2 (0.2); over: worker#3 (0.3)\n";
        assert_eq!(lines(found, &People::of(found)), expected);
    }

    #[test]
    fn who_made_whom_and_who_killed_whom() {
        let mut found = finding(BugKind::Deadlock);
        let process = |n: i32, over| ProcessView { vpid: 1001 + n, over, ..ProcessView::default() };
        found.processes = vec![
            ProcessView { program: "daemon".into(), ..process(0, None) },
            process(1, Some(9)),
            process(2, Some(3 << 8)),
        ];
        let first = |n: u32, given: &str| ThreadView {
            process: n,
            creator: (n > 0).then_some(0),
            start: "main".into(),
            given: given.into(),
            ..waiting(if n == 0 { Uid::MAIN } else { Uid::MAIN.child(n) }, LOCK_A, 0, LOCK_A)
        };
        found.threads = vec![first(0, ""), first(1, ""), first(2, "logger")];
        found.threads.push(ThreadView { creator: Some(0), ..waiting(Uid::MAIN.child(3), LOCK_A, 0, LOCK_A) });
        found.steps = vec![step(Uid::MAIN.child(1), "x"), step(Uid::MAIN, "kill(1002, SIGKILL)")];
        found.steps[1].op = Op::on(Kind::KILL, 1).arg(9);
        let expected = "  1001  daemon (0)     the program; threads worker (0.3)
  1002  child#1 (0.1)  forked by daemon (0); over: killed by SIGKILL from daemon (0) at step 2, its last step was 1
  1003  logger (0.2)   forked by daemon (0); over: exited with status 3
";
        assert_eq!(lines(&found, &People::of(&found)), expected);
    }

    #[test]
    fn channels_are_called_by_who_made_them_or_uses_them() {
        use crate::finding::ObjectView;
        let mut found = finding(BugKind::Deadlock);
        let process = |n: i32| ProcessView { vpid: 1001 + n, program: "daemon".into(), ..ProcessView::default() };
        found.processes = vec![process(0), process(1)];
        let first = |n: u32| ThreadView {
            process: n,
            creator: (n > 0).then_some(0),
            start: "main".into(),
            ..waiting(if n == 0 { Uid::MAIN } else { Uid::MAIN.child(n) }, LOCK_A, 0, LOCK_A)
        };
        found.threads = vec![first(0), first(1)];
        let channel = |name: &str, made, readers: &[Pid], writers: &[Pid]| ObjectView {
            kind: vsrun_model::ObjKind::CHANNEL,
            name: name.into(),
            bytes: Vec::new(),
            made,
            readers: readers.to_vec(),
            writers: writers.to_vec(),
        };
        found.objects = vec![
            channel("pipe 0:1", Some(0), &[0, 1], &[0, 1]),
            channel("pipe 0:2", Some(3), &[0], &[0]),
            channel("eventfd 0.1:1", None, &[1], &[1]),
            channel("unix socket 0:3", Some(0), &[1], &[0]),
        ];
        let people = People::of(&found);
        let names: Vec<String> = (0..4).map(|id| people.object(id)).collect();
        assert_eq!(
            names,
            ["pipe#1 of daemon", "pipe#2 of daemon", "eventfd of child#1", "unix socket daemon -> child#1"]
        );
        let told = lines(&found, &people);
        assert!(
            told.ends_with("\n  unix socket daemon -> child#1: unix socket 0:3\n  pipe#2 of daemon: made at step 3\n"),
            "{told}"
        );
    }
}
