//! What executions that ran to their end came to, told apart by what all processes of the program printed (standard output and error,
//! in the order in which it was written: the first 4 MiB, and how many bytes there were) and by how the first process ended. Files that the
//! program wrote, and how other processes ended, are not looked at.
//!
//! The table does not depend on the order in which executions end: of an outcome the same execution stands for it as would for a bug
//! ([`Candidate::compare`]), and where there are more outcomes than there is room for, which are kept depends on what they are. Executions that
//! a search has run ahead of their turns count when it is known that they are part of it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;

use super::found::Candidate;
use crate::base::hash::fnv1a;
use crate::base::text::escape_bytes;
use crate::finding::{self, OutcomeView, Printed, ProgramStatus};
use crate::runtime::Worker;

/// So many outcomes are kept with what shows them.
const MOST_KEPT: usize = 20;
/// So many are told apart.
const MOST_COUNTED: usize = 1 << 16;
/// Bytes kept of what one prints.
pub(super) const KEPT_BYTES: usize = 16 << 10;
/// Characters shown of a line, and how many of them before the first difference, at most.
const WIDTH: usize = 60;
const BEFORE: usize = 20;

/// What an execution came to that ran to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ended {
    /// Tells outputs apart.
    pub text: u64,
    /// The wait status of the first process; -1: it is not over.
    pub status: i32,
    /// Bytes printed,
    pub bytes: u64,
    /// and the first [`KEPT_BYTES`] of them.
    pub output: Vec<u8>,
}

impl Ended {
    /// Of the execution that `worker` has run last.
    pub fn of(worker: &Worker) -> io::Result<Ended> {
        let status = worker.status().unwrap_or(-1);
        let (mut output, bytes) = (worker.output.start()?, worker.output.bytes()?);
        let text = fnv1a(output.iter().copied().chain(bytes.to_le_bytes()));
        output.truncate(KEPT_BYTES);
        Ok(Ended { text, status, bytes, output })
    }

    /// Tells outcomes apart.
    pub fn identity(&self) -> u64 {
        fnv1a(self.text.to_le_bytes().into_iter().chain(self.status.to_le_bytes()))
    }

    /// How it ended, in words.
    pub fn line(&self) -> String {
        match self.status() {
            Some(ProgramStatus::Exit(code)) => format!("exits with {code}, {} bytes printed", self.bytes),
            Some(ProgramStatus::Signal(signal)) => format!("ended by signal {signal}, {} bytes printed", self.bytes),
            None => format!("{} bytes printed", self.bytes),
        }
    }

    fn status(&self) -> Option<ProgramStatus> {
        (self.status >= 0).then(|| ProgramStatus::from_wait(self.status))
    }
}

/// An outcome, and the execution that stands for it.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub ended: Ended,
    pub best: Candidate,
}

/// The outcomes so far.
#[derive(Clone, Debug)]
pub(super) struct Outcomes {
    /// Executions with each, by hash: of more than there is room for those with the least hashes.
    pub times: BTreeMap<u64, u64>,
    /// There were more.
    pub overflow: bool,
    /// Executions that ran to their end.
    pub executions: u64,
    /// By hash.
    pub kept: BTreeMap<u64, Kept>,
    /// By ticket: executions of which it is not known yet whether they count.
    waiting: BTreeMap<u64, Kept>,
    most: (usize, usize),
}

impl Default for Outcomes {
    fn default() -> Outcomes {
        let (times, kept, waiting) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Outcomes { times, overflow: false, executions: 0, kept, waiting, most: (MOST_KEPT, MOST_COUNTED) }
    }
}

impl Outcomes {
    /// Goes on from what was saved.
    pub fn going_on(executions: u64, overflow: bool, times: BTreeMap<u64, u64>, kept: BTreeMap<u64, Kept>) -> Outcomes {
        Outcomes { times, overflow, executions, kept, ..Outcomes::default() }
    }

    /// The execution with that ticket is over.
    pub fn note(&mut self, ticket: u64, ended: Ended, best: Candidate) {
        self.waiting.insert(ticket, Kept { ended, best });
    }

    /// What has become of executions, as the search says ([`crate::search::Search::settled`]).
    pub fn settle(&mut self, settled: Option<Vec<(u64, bool)>>) {
        match settled {
            None => std::mem::take(&mut self.waiting).into_values().for_each(|one| self.count(one)),
            Some(all) => {
                for (ticket, counts) in all {
                    let one = self.waiting.remove(&ticket);
                    one.into_iter().filter(|_| counts).for_each(|one| self.count(one));
                }
            }
        }
    }

    fn count(&mut self, one: Kept) {
        let (most_kept, most_counted) = self.most;
        let hash = one.ended.identity();
        self.executions += 1;
        *self.times.entry(hash).or_default() += 1;
        if self.times.len() > most_counted {
            self.times.pop_last();
            self.overflow = true;
        }
        if let Some(known) = self.kept.get_mut(&hash) {
            if one.best.compare(&known.best).is_lt() {
                known.best = one.best;
            }
            return;
        }
        if self.kept.len() >= most_kept {
            let last = self.kept.iter().max_by(|a, b| a.1.best.compare(&b.1.best)).map(|(&hash, _)| hash);
            match last.filter(|last| one.best.compare(&self.kept[last].best).is_lt()) {
                Some(last) => self.kept.remove(&last),
                None => return,
            };
        }
        self.kept.insert(hash, one);
    }

    /// How many there are.
    pub fn different(&self) -> usize {
        self.times.len()
    }

    /// Those that are kept, in the order of the table, with how often each came.
    pub fn in_order(&self) -> Vec<(Option<u64>, &Kept)> {
        let times = |hash: &u64| self.times.get(hash).copied().filter(|_| !self.overflow);
        let mut all: Vec<_> = self.kept.iter().map(|(hash, kept)| (times(hash), kept)).collect();
        all.sort_by(|(n, a), (m, b)| Reverse(n).cmp(&Reverse(m)).then_with(|| a.best.compare(&b.best)));
        all
    }

    /// The table.
    pub fn table(&self) -> finding::Outcomes {
        let all = self.in_order();
        let first = all.first().map(|(_, kept)| &kept.ended);
        let others = || all.iter().skip(1).map(|(_, kept)| &kept.ended);
        let view = |(n, (times, kept)): (usize, &(Option<u64>, &Kept))| OutcomeView {
            times: *times,
            status: kept.ended.status(),
            printed: match first {
                Some(first) if n > 0 => beside(first, &kept.ended),
                _ => alone(&kept.ended, others()),
            },
            bytes: kept.ended.bytes,
            scenario: None,
        };
        finding::Outcomes {
            executions: self.executions,
            different: self.different() as u64,
            overflow: self.overflow,
            table: all.iter().enumerate().map(view).collect(),
        }
    }
}

/// The first byte at which what is kept of two outputs is not the same; one may end there.
fn first_difference(one: &[u8], two: &[u8]) -> Option<usize> {
    let at = one.iter().zip(two).position(|(a, b)| a != b).unwrap_or(one.len().min(two.len()));
    (at < one.len().max(two.len())).then_some(at)
}

/// What the first outcome prints, beside the others.
fn alone<'a>(first: &Ended, others: impl Iterator<Item = &'a Ended>) -> Printed {
    let at = others.filter_map(|other| first_difference(&first.output, &other.output)).min().unwrap_or(0);
    match first.bytes {
        0 => Printed::Nothing,
        _ => Printed::Line { number: line_number(&first.output, at), text: line_at(&first.output, at), first: None },
    }
}

/// What another outcome prints, beside the first.
fn beside(first: &Ended, other: &Ended) -> Printed {
    match first_difference(&first.output, &other.output) {
        Some(at) => Printed::Line {
            number: line_number(&other.output, at),
            text: line_at(&other.output, at),
            first: line_at(&first.output, at),
        },
        None if first.text != other.text => Printed::Beyond(KEPT_BYTES as u64),
        None if first.bytes == 0 => Printed::Nothing,
        None => Printed::Same,
    }
}

/// The number of the line in which byte `at` is, from 1.
fn line_number(output: &[u8], at: usize) -> u64 {
    1 + output[..at.min(output.len())].iter().filter(|&&byte| byte == b'\n').count() as u64
}

/// That line, abbreviated around the byte; `None`: the output ends before it.
fn line_at(output: &[u8], at: usize) -> Option<String> {
    let begin = output[..at.min(output.len())].iter().rposition(|&byte| byte == b'\n').map_or(0, |n| n + 1);
    if begin >= output.len() {
        return None;
    }
    let line = &output[begin..];
    let line = &line[..line.iter().position(|&byte| byte == b'\n').unwrap_or(line.len())];
    let from = if line.len() > WIDTH { (at - begin).saturating_sub(BEFORE) } else { 0 };
    // Not in the middle of a character.
    let is_inner = |n: usize| line.get(n).is_some_and(|byte| byte & 0xc0 == 0x80);
    let from = (from..line.len()).find(|&n| !is_inner(n)).unwrap_or(from);
    let to = (from + WIDTH).min(line.len());
    let to = (to..=line.len()).find(|&n| !is_inner(n)).unwrap_or(to);
    let (before, after) = (if from > 0 { ".." } else { "" }, if to < line.len() { ".." } else { "" });
    Some(format!("{before}{}{after}", escape_bytes(&line[from..to])))
}

#[cfg(test)]
#[path = "outcomes_tests.rs"]
mod tests;
