//! What an exploration came to: bugs, counts, and whether it is complete.

use std::ffi::OsString;
use std::path::PathBuf;

use super::apart::Apart;
use super::ending::{BugKind, Verdict};
use super::outcomes::Outcomes;
use super::seen::Finding;
use super::shortened::Shortened;
use super::status::ProgramStatus;
use super::touched::Uses;
use crate::base::hash::fnv1a;
use crate::incomplete::{undoing, Reason, Reasons};

/// One bug.
#[derive(Clone, Debug)]
pub struct Bug {
    /// Its kind.
    pub kind: BugKind,
    /// One line about it.
    pub summary: String,
    /// The scenario that replays it, if one could be written.
    pub scenario: Option<PathBuf>,
    /// The execution that showed it, counted from 1.
    pub execution: u64,
    /// Transitions up to it.
    pub transitions: u64,
    /// What was seen, from which all of this comes. `None`: nobody has looked at it.
    pub finding: Option<Box<Finding>>,
    /// How far the schedule that is shown was shortened, if it was.
    pub shortened: Option<Shortened>,
}

impl Bug {
    /// What was seen in execution number `execution`. A bug of which no kind is known is an error.
    pub fn new(finding: Finding, execution: u64) -> Bug {
        Bug {
            kind: finding.kind.unwrap_or(BugKind::Error),
            summary: finding.line(),
            scenario: None,
            execution,
            transitions: finding.transitions(),
            finding: Some(Box::new(finding)),
            shortened: None,
        }
    }

    /// Equal for equal bugs of one kind.
    pub fn told_apart(&self) -> u64 {
        let identity = self.finding.as_ref().map_or(0, |found| found.identity);
        if identity == 0 {
            fnv1a(self.summary.bytes())
        } else {
            identity
        }
    }

    /// An error of which only a line is known.
    pub fn error(summary: impl Into<String>, execution: u64, transitions: u64) -> Bug {
        let (kind, summary) = (BugKind::Error, summary.into());
        Bug { kind, summary, scenario: None, execution, transitions, finding: None, shortened: None }
    }

    /// What an exploration failed of, as `line` says: by vsrun's own fault, or by that of what is around it.
    pub fn failure(line: &str, own: bool) -> Bug {
        Bug { kind: if own { BugKind::Fault } else { BugKind::Environment }, ..Bug::error(line, 0, 0) }
    }

    /// An execution was disturbed from outside, as `line` says.
    pub fn environment(line: &str, execution: u64, transitions: u64) -> Bug {
        Bug { kind: BugKind::Environment, ..Bug::error(format!("environment: {line}"), execution, transitions) }
    }
}

/// All that so many preemptions can bring about was run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FewRun {
    /// Preemptions, at most: switches away from a thread that could have gone on.
    pub preemptions: u32,
    /// Executions of those with few preemptions, all that were run.
    pub executions: u64,
}

/// The whole exploration.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The program and its arguments.
    pub program: Vec<OsString>,
    /// The outcome.
    pub verdict: Verdict,
    /// The bugs, in order of finding.
    pub bugs: Vec<Bug>,
    /// Why not everything was explored; what else the result stands on.
    pub reasons: Reasons,
    /// What threads do to memory was watched.
    pub watched: bool,
    /// Name of the search.
    pub search: String,
    /// Executions, those that were cut off included.
    pub executions: u64,
    /// Executions before the search started over, which are not among them.
    pub earlier: u64,
    /// Executions that were run beside the search, drawn by lot or with few preemptions, which are not among them.
    pub drawn: u64,
    /// What few preemptions can bring about, as far as all of it was run beside a search that is not complete.
    pub covered: Option<FewRun>,
    /// Transitions, re-executed prefixes not counted again.
    pub transitions: u64,
    /// Executions cut off because everything enabled was asleep.
    pub sleep_blocked: u64,
    /// Mazurkiewicz traces, where they were counted.
    pub traces: Option<u64>,
    /// A hash of the transitions of a single execution: the same for the same execution.
    pub trace: Option<u64>,
    /// Transitions of the longest execution.
    pub max_depth: u64,
    /// Executions that were cut, at the depth bound or for want of room: what comes behind that was not checked.
    pub cut: u64,
    /// Executions that reached an end of the program's.
    pub ended: u64,
    /// Transitions of the longest execution that was broken off when the time was over or vsrun was asked to end; it is not among
    /// `executions`. `None`: none was.
    pub broken_off: Option<u64>,
    /// One that was cut or broken off.
    pub unfinished: Option<Bug>,
    /// What executions that ran to their end came to, if any did.
    pub outcomes: Option<Outcomes>,
    /// Workers.
    pub workers: u32,
    /// Executions of this run that began where the one before had gone back to.
    pub rolled_back: u64,
    /// Executions of copies of processes that stand still.
    pub copied: u64,
    /// Of these, executions that went on from a state within the one before.
    pub from_marks: u64,
    /// Executions without room for a state that the next one could have gone on from.
    pub marks_without_room: u64,
    /// Why an execution could not go back, the last one.
    pub not_rolled_back: Option<String>,
    /// What makes states differ, where that was asked for.
    pub apart: Option<Apart>,
    /// Wall-clock time, seconds.
    pub seconds: f64,
    /// How the program ended, where an execution was shown.
    pub program_status: Option<ProgramStatus>,
    /// Lines for the reader: what could not be done, what was assumed.
    pub notes: Vec<String>,
    /// System calls that went to the kernel and could block or communicate, with how often.
    pub passed_calls: Vec<(String, u64)>,
    /// Kinds of calls that went to the kernel by the user's wish, bits of [`vsrun_model::calls::KINDS`].
    pub uncontrolled: u32,
    /// Uses of variables that are watched (`--watch`), in the order of the first of each; those alike are one.
    pub uses: Vec<Uses>,
    /// Further root processes: their arguments, the name first.
    pub with: Vec<Vec<OsString>>,
}

impl Summary {
    /// What is said of a run that did not take place, or came to nothing.
    pub fn failed(program: &[OsString], message: &str) -> Summary {
        let bug = Bug::error(message, 0, 0);
        Summary {
            program: program.to_vec(),
            verdict: Verdict::Found(BugKind::Error),
            bugs: vec![bug],
            reasons: [Reason::Failed].into(),
            ..Summary::default()
        }
    }

    /// There were executions, and none got to its end: that no bug was found means nothing.
    pub fn reached_no_end(&self) -> bool {
        self.ended == 0 && (self.cut > 0 || self.broken_off.is_some())
    }

    /// Whether everything was explored.
    pub fn is_complete(&self) -> bool {
        undoing(&self.reasons).next().is_none()
    }

    /// The exit code of the contract.
    pub fn exit_code(&self) -> i32 {
        match self.verdict {
            Verdict::Found(BugKind::Unconfirmed | BugKind::Fault) => 4,
            Verdict::Found(kind) if kind.is_of_program() => 1,
            Verdict::Found(_) => 2,
            Verdict::Ok if self.is_complete() => 0,
            Verdict::Ok => 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdict_and_exit_code() {
        let mut all = Summary::failed(&[], "x");
        assert_eq!((all.verdict.name(), all.exit_code(), all.is_complete()), ("error", 2, false));
        (all.verdict, all.reasons) = (Verdict::Ok, Reasons::default());
        assert_eq!((all.verdict.name(), all.exit_code()), ("ok", 0));
        all.reasons.insert(Reason::FairSchedules);
        assert_eq!(all.exit_code(), 0);
        all.reasons.insert(Reason::Depth);
        assert_eq!(all.exit_code(), 3);
        let kinds = [BugKind::Error, BugKind::Crash, BugKind::Deadlock];
        let of = |kinds: &[BugKind]| Verdict::of(kinds.iter().copied());
        assert_eq!(of(&kinds), Verdict::Found(BugKind::Crash));
        assert_eq!(of(&kinds[..1]), Verdict::Found(BugKind::Error));
        assert_eq!(of(&[]), Verdict::Ok);
        all.verdict = of(&kinds);
        assert_eq!(all.exit_code(), 1);
        all.verdict = of(&[BugKind::Environment, BugKind::Unconfirmed]);
        assert_eq!((all.verdict.name(), all.exit_code()), ("error", 4));
        all.verdict = of(&[BugKind::Environment]);
        assert_eq!((all.verdict.name(), all.exit_code()), ("error", 2));
    }
}
