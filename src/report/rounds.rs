//! What goes round in an execution that was cut off: the steps that repeat at its end, and who else could have gone on.

use std::collections::BTreeMap;

use vsrun_model::{Kind, ObjId, Uid};

use crate::finding::{Finding, StepView, ThreadView};

/// The longest round that is looked for, steps.
const LONGEST: usize = 64;
/// So often it has to come to be one.
const TIMES: usize = 4;
/// Where there is none, so many of the last steps are told by their threads.
const LAST: usize = 1000;
/// How the first line ends where there is one.
const LOOP: &str = "are a loop:";
/// So many operations of a thread are named.
const MOST: usize = 4;

/// Lines about the end of an execution, of which the last steps are known.
pub fn rounds(found: &Finding) -> Vec<String> {
    let steps = &found.steps;
    let Some((length, times)) = round(steps) else { return by_thread(found) };
    let one = &steps[steps.len() - length..];
    let text = |step: &StepView| format!("{} {}", step.thread, step.text.render(found));
    let all: Vec<String> = one.iter().map(text).collect();
    let more = if times * length + length > steps.len() && found.unrecorded > 0 { " or more" } else { "" };
    let mut lines = vec![format!("the last {} transitions{more} {LOOP}", times * length)];
    lines.extend(all);
    let in_loop = |uid: Uid| one.iter().any(|step| step.thread == uid);
    let others: Vec<String> = able(found).filter(|t| !in_loop(t.uid)).map(|t| at(t, found)).collect();
    lines.push(match others.is_empty() {
        true => "no other thread can go on: unless the loop ends by itself, it goes on for ever (a livelock)".to_string(),
        false => format!(
            "{} could go on and did not get a turn (not a fair schedule): if the loop waits for that, a yield, a sleep or a wait in it gives way",
            others.join(", ")
        ),
    });
    lines
}

/// What [`rounds`] has found is a loop.
pub fn is_loop(lines: &[String]) -> bool {
    lines.first().is_some_and(|line| line.ends_with(LOOP))
}

/// Steps of the shortest sequence that comes again and again up to the end, and how often it has.
fn round(steps: &[StepView]) -> Option<(usize, usize)> {
    let key = |step: &StepView| -> (Uid, Kind, ObjId) { (step.thread, step.op.kind, step.op.obj) };
    let repeats = |length: usize| {
        let pairs = steps.iter().rev().zip(steps.iter().rev().skip(length));
        1 + pairs.take_while(|(later, earlier)| key(later) == key(earlier)).count() / length
    };
    (1..=LONGEST.min(steps.len())).map(|length| (length, repeats(length))).find(|&(_, times)| times >= TIMES)
}

/// Threads that could go on.
fn able(found: &Finding) -> impl Iterator<Item = &ThreadView> {
    found.threads.iter().filter(|thread| thread.pending.as_ref().is_some_and(|pending| pending.alternatives > 0))
}

fn at(thread: &ThreadView, found: &Finding) -> String {
    let pending = thread.pending.as_ref().map_or_else(String::new, |pending| pending.text.render(found));
    format!("{} at {pending}", thread.uid)
}

/// Who made the last steps, and what they were.
fn by_thread(found: &Finding) -> Vec<String> {
    let last = &found.steps[found.steps.len().saturating_sub(LAST)..];
    let mut all: BTreeMap<Uid, (usize, BTreeMap<String, usize>)> = BTreeMap::new();
    for step in last {
        let (n, ops) = all.entry(step.thread).or_default();
        *n += 1;
        *ops.entry(step.text.render(found)).or_default() += 1;
    }
    let line = |(uid, (n, ops)): (Uid, (usize, BTreeMap<String, usize>))| {
        let mut ops: Vec<(String, usize)> = ops.into_iter().collect();
        ops.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        let named: Vec<String> = ops.iter().take(MOST).map(|(op, times)| format!("{op} x{times}")).collect();
        let more = if ops.len() > MOST { ", .." } else { "" };
        format!("{uid} made {n} of the last {} transitions: {}{more}", last.len(), named.join(", "))
    };
    all.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use vsrun_model::{Op, Uid};

    use super::super::testing::deadlock;
    use super::*;
    use crate::finding::Words;

    fn step(thread: Uid, kind: Kind, obj: ObjId) -> StepView {
        let (op, text) = (Op::on(kind, obj), Words::from(kind.name()));
        StepView {
            thread,
            op,
            value: 0,
            alternatives: 1,
            text,
            note: None,
            woken: None,
            replaced: None,
            at: None,
            matters: false,
        }
    }

    fn found(steps: Vec<StepView>) -> Finding {
        Finding { steps, unrecorded: 0, threads: Vec::new(), ..*deadlock().finding.expect("one that was looked at") }
    }

    #[test]
    fn the_shortest_loop_and_how_long_it_has_gone_on() {
        let first = Uid::MAIN;
        let mut steps = vec![step(first, Kind::TOSS, 7)];
        for _ in 0..10 {
            steps.extend([step(first, Kind::MUTEX_LOCK, 1), step(first, Kind::MUTEX_UNLOCK, 1)]);
        }
        let lines = rounds(&found(steps));
        assert_eq!(lines[..3], ["the last 20 transitions are a loop:", "0 mutex_lock", "0 mutex_unlock"]);
        assert!(is_loop(&lines) && lines[3].starts_with("no other thread can go on"), "{lines:?}");
    }

    #[test]
    fn where_nothing_repeats_it_is_told_by_thread() {
        let second = Uid::MAIN.child(1);
        let objects = [1, 2, 2, 1, 1, 1, 2, 1, 2, 2, 2, 1, 2, 1, 1];
        let steps = objects.iter().map(|&n| step(if n == 1 { Uid::MAIN } else { second }, Kind::MUTEX_LOCK, n));
        let lines = rounds(&found(steps.collect()));
        assert!(lines.len() == 2 && !is_loop(&lines));
        assert_eq!(lines[0], "0 made 8 of the last 15 transitions: mutex_lock x8");
        assert!(rounds(&found(Vec::new())).is_empty());
    }
}
