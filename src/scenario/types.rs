//! What a scenario holds.

use std::collections::BTreeMap;
use std::ffi::OsString;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use vsrun_model::aims::Wish;
use vsrun_model::arena::{Choice, Policy};
use vsrun_model::{Kind, Uid};

use super::predicate::Predicate;
use crate::base::serial;
use crate::finding::{BugKind, Names, PlaceView, Shortened, StepView};
use crate::objects::Objects;
use crate::schedule::Schedule;

/// A scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// What is run.
    pub program: Program,
    /// What the program's file contained, as the caller knows it: `binary::BinaryId`.
    pub fingerprint: Value,
    /// Options that the execution depends on.
    pub options: Options,
    /// What the scenario shows.
    pub bug: Shown,
    /// How it was found.
    pub found: Found,
    /// What was known of the sharing of objects: it decides which operations are transitions.
    #[serde(default)]
    pub objects: Objects,
    /// What the threads are called, by their paths of creation. For people; a replay does not look at it.
    #[serde(default)]
    pub people: BTreeMap<String, String>,
    /// The transitions, from the first.
    pub steps: Vec<ScenarioStep>,
    /// What comes after `steps` when there were too many to record; else they are all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<Then>,
}

impl Scenario {
    /// The choices that lead to the bug.
    pub fn prefix(&self) -> Vec<Choice> {
        self.steps.iter().map(ScenarioStep::choice).collect()
    }

    /// Memory is among its objects, or its bug is only seen where memory is watched.
    pub fn is_about_memory(&self) -> bool {
        !self.objects.words.is_empty() || self.options.watches
    }
}

/// A program as it is started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Absolute path of the file that is executed.
    #[serde(with = "serial::bytes")]
    pub exe: OsString,
    /// The script that `exe` interprets, if that is what was asked for; empty if not.
    #[serde(with = "serial::bytes")]
    pub script: OsString,
    /// Its arguments, the name first.
    #[serde(with = "serial::byte_list")]
    pub argv: Vec<OsString>,
    /// Working directory.
    #[serde(with = "serial::bytes")]
    pub cwd: OsString,
    /// Environment, `NAME=value`, in order.
    #[serde(with = "serial::byte_list")]
    pub env: Vec<OsString>,
}

/// A further root process (`--with`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    /// Absolute path of the file that is executed.
    #[serde(with = "serial::bytes")]
    pub exe: OsString,
    /// Its arguments, the name first.
    #[serde(with = "serial::byte_list")]
    pub argv: Vec<OsString>,
}

/// What further root processes wait for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Awaited {
    /// A file: its absolute path, with no symbolic link on the way.
    File(#[serde(with = "serial::bytes")] OsString),
    /// What the program prints.
    Output(#[serde(with = "serial::bytes")] OsString),
}

impl Awaited {
    /// The value of `--clients` that asks for it.
    pub fn option(&self) -> OsString {
        let (name, what) = match self {
            Awaited::File(path) => ("file:", path),
            Awaited::Output(text) => ("output:", text),
        };
        let mut option = OsString::from(name);
        option.push(what);
        option
    }
}

/// A function of the program that returns a choice (`--toss`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toss {
    /// Its name, as a file has it or demangled.
    pub function: String,
    /// It returns each of 0 to this.
    pub most: u32,
}

impl Toss {
    /// Each alternative is explored, and kept in memory.
    pub const LARGEST: u32 = 65_535;
}

/// The processor that a program sees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// One of x86-64-v2, whatever is there (`--cpu baseline`), as far as libc and, where it was trapped, `cpuid` tell.
    pub baseline: bool,
    /// The one that was there.
    pub model: String,
    /// `cpuid` was trapped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trapped: bool,
}

/// Options that an execution depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Timeouts fire whenever they could, not only when nothing else can run.
    pub timeouts_any: bool,
    /// Faults that may strike, bits of [`vsrun_model::inject`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub inject: u32,
    /// Calls that went to the kernel by the user's wish, bits of [`vsrun_model::calls::KINDS`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncontrolled: u32,
    /// Stores go through buffers, as on x86.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub store_buffers: bool,
    /// Misuse of objects does what glibc does.
    pub allow_misuse: bool,
    /// States in a row without anything enabled that are a livelock; 0 = off.
    pub livelock: u32,
    /// An exit status other than 0 is a bug.
    pub fail_on_exit: bool,
    /// What the program wrote went to the real files.
    #[serde(default)]
    pub real_files: bool,
    /// Further root processes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<Client>,
    /// They begin once a socket listens.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clients_wait: bool,
    /// They begin once there is that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients_for: Option<Awaited>,
    /// The program is started again so often.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarts: u32,
    /// Whatever its end was like, not only after a failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restart_always: bool,
    /// Signal for what is left over at the end; 0: none.
    #[serde(default)]
    pub stop_signal: i32,
    /// CPU time without a visible operation that is a divergence, ms.
    pub divergence_timeout_ms: u64,
    /// Depth bound of the execution, if there was one.
    pub max_depth: Option<u64>,
    /// Operations took no time, and nobody was made to give way to others (`--search stateful`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timeless: bool,
    /// Of a livelock: after so many steps the others lead back to where the threads were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loops: Option<u32>,
    /// Transitions without progress after which executions were cut, if that was asked for. A replay has no such bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_idle: Option<u64>,
    /// Seed of the exploration.
    pub seed: u64,
    /// What the program's standard input was, in the caller's words (`null`, `inherit`, ...).
    pub stdin: String,
    /// Bytes of freed blocks of the heap that each process keeps back, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<u64>,
    /// Functions that return a choice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tosses: Vec<Toss>,
    /// What is said at functions of who may use memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predicates: Vec<Predicate>,
    /// The bug shows where memory is watched only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub watches: bool,
    /// The processor; nothing in files of older versions: the machine's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// Memory was watched when it was found. Where libraries lie depends on that, and with it the names of objects.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub watched: bool,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// What a scenario shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// The kind of bug.
    pub kind: BugKind,
    /// The report's line about it.
    pub summary: String,
    /// Tells bugs apart: `words::identity`. A replay must come to the same. 0: not known, in a file of an older version.
    #[serde(with = "serial::hex64")]
    pub identity: u64,
}

/// How a bug was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Name of the search.
    pub search: String,
    /// Number of the execution, from 1.
    pub execution: u64,
    /// How far it was shortened after that, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortened: Option<Shortened>,
}

/// What comes after the recorded steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Then {
    /// `stay`, `likely`, `random`, `pct` or `walk`.
    pub policy: String,
    /// Seed of one that draws lots.
    pub seed: u64,
    /// Depth and length of `pct`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pct: Option<(u32, u32)>,
    /// Transitions after which `pct` becomes fair; it never did in files of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pct_fair: Option<u64>,
    /// Of `walk` and `surw`: (thread, the transitions it is expected to make).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<(String, u32)>,
    /// Of `surw`: the objects of interest, by hexadecimal names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interest: Vec<String>,
    /// Of `rff`: object, who writes it, who reads that (hexadecimal names), and whether that is wanted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wishes: Vec<(String, String, String, bool)>,
    /// Choices that are made first, as far as that is possible: thread, alternative, kind of operation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guide: Vec<(String, u32, String)>,
}

/// Policies by name; what is not here stays on the thread.
const POLICIES: [(Policy, &str); 9] = [
    (Policy::STAY, "stay"),
    (Policy::RANDOM, "random"),
    (Policy::PCT, "pct"),
    (Policy::WALK, "walk"),
    (Policy::LIKELY, "likely"),
    (Policy::POS, "pos"),
    (Policy::SURW, "surw"),
    (Policy::RFF, "rff"),
    (Policy::NOVEL, "novel"),
];

impl Then {
    /// What a schedule says of what comes after its prefix.
    pub fn new(schedule: &Schedule) -> Then {
        let known = POLICIES.iter().find(|(policy, _)| *policy == schedule.policy).unwrap_or(&POLICIES[0]);
        let pct = (schedule.policy == Policy::PCT).then_some((schedule.pct_depth, schedule.pct_length));
        let pct_fair = (pct.is_some() || schedule.policy.aims()).then_some(schedule.pct_fair);
        let expected = schedule.expected.iter().map(|(uid, n)| (uid.to_string(), *n)).collect();
        let hex = |name: u64| format!("{name:x}");
        let interest = schedule.interest.iter().map(|&name| hex(name)).collect();
        let wish = |w: &Wish| (hex(w.object), hex(w.writer), hex(w.reader), w.wanted != 0);
        let wishes = schedule.wishes.iter().map(wish).collect();
        let guide = schedule.guide.iter().map(|c| (c.uid.to_string(), c.value, c.kind.name().to_string())).collect();
        Then { policy: known.1.to_string(), seed: schedule.seed, pct, pct_fair, expected, interest, wishes, guide }
    }

    /// The schedule that begins with `prefix` and goes on like this; unknown names are left out.
    pub fn schedule(&self, prefix: Vec<Choice>) -> Schedule {
        let (pct_depth, pct_length) = self.pct.unwrap_or_default();
        let thread = |(name, n): &(String, u32)| Uid::parse(name).map(|uid| (uid, *n));
        let mut expected: Vec<(Uid, u32)> = self.expected.iter().filter_map(thread).collect();
        expected.sort_unstable();
        let pct_fair = self.pct_fair.unwrap_or(u64::MAX);
        let policy = self.policy().unwrap_or(Policy::STAY);
        let number = |text: &String| u64::from_str_radix(text, 16).ok();
        let mut interest: Vec<u64> = self.interest.iter().filter_map(number).collect();
        interest.sort_unstable();
        let wish = |(object, writer, reader, wanted): &(String, String, String, bool)| {
            Some(Wish::new(number(object)?, number(writer)?, number(reader)?, *wanted))
        };
        let wishes = self.wishes.iter().filter_map(wish).collect();
        let choice = |(thread, value, kind): &(String, u32, String)| {
            Some(Choice::new(Uid::parse(thread)?, *value, Kind::from_name(kind)?))
        };
        let guide = self.guide.iter().filter_map(choice).collect();
        let seed = self.seed;
        Schedule {
            prefix,
            policy,
            seed,
            pct_depth,
            pct_length,
            pct_fair,
            expected,
            interest,
            wishes,
            guide,
            ..Schedule::default()
        }
    }

    /// The policy, if the name is known.
    pub fn policy(&self) -> Option<Policy> {
        POLICIES.iter().find(|(_, name)| *name == self.policy).map(|(policy, _)| *policy)
    }
}

/// One transition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScenarioStep {
    /// The thread that moves.
    #[serde(with = "serial::uid")]
    pub thread: Uid,
    /// The kind of its operation.
    #[serde(with = "serial::kind")]
    pub op: Kind,
    /// The alternative taken.
    pub value: u32,
    /// How many there were.
    pub alternatives: u32,
    /// The operation as reports print it, objects by name. For people; a replay does not look at it.
    pub text: String,
    /// More to say of it, as reports do. For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The source line that made it, if that is known. For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

impl ScenarioStep {
    /// A step of an execution that was looked at.
    pub fn new(step: &StepView, names: &dyn Names) -> ScenarioStep {
        let (thread, op) = (step.thread, step.op.kind);
        let text = step.text.render(names);
        let at = step.at.as_ref().and_then(PlaceView::brief);
        let note = step.note.as_ref().map(|note| note.render(names));
        ScenarioStep { thread, op, value: step.value, alternatives: step.alternatives, text, note, at }
    }

    /// The choice that takes it again.
    pub fn choice(&self) -> Choice {
        Choice::new(self.thread, self.value, self.op)
    }
}
