//! What a thread waits for, and who could end that.

use super::descriptors::Descriptors;
use super::look::Process;

/// A thread, or any thread of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Party {
    Thread(i32),
    Process(i32),
}

/// Who could end a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Enders {
    /// Each of these, and nobody else: they have what is waited for. None at all: nobody can.
    Only(Vec<Party>),
    /// Each of these, and nobody else, but which of them is to do it cannot be known.
    Anybody(Vec<Party>),
    /// The same as far as can be told.
    Likely(Vec<Party>),
    /// The clock.
    Time,
    /// Somebody who is not looked at: the network, a user, a signal.
    Outside(String),
    /// That is not known: why.
    Unknown(String),
}

/// What a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    /// The call, as in a program: `pthread_mutex_lock(bank[1].lock)`.
    pub call: String,
    /// What for: `mutex bank[1].lock`.
    pub object: String,
    /// How those who can end it stand to it: `held by`; empty: it is their end.
    pub via: &'static str,
    pub enders: Enders,
    /// What else is known of it.
    pub facts: Vec<String>,
    /// The call ends at a time limit, too.
    pub limited: bool,
}

impl Wait {
    pub(super) fn new(call: impl Into<String>, object: impl Into<String>, via: &'static str, enders: Enders) -> Wait {
        Wait { call: call.into(), object: object.into(), via, enders, facts: Vec::new(), limited: false }
    }

    pub(super) fn with(mut self, fact: impl Into<String>) -> Wait {
        self.facts.push(fact.into());
        self
    }

    pub(super) fn until(mut self, limited: bool) -> Wait {
        self.limited |= limited;
        self
    }
}

/// What all waits are asked of.
pub(super) struct Surroundings<'a> {
    pub processes: &'a [Process],
    pub descriptors: &'a Descriptors,
}

/// The name of a system call.
pub(super) fn name(nr: i64) -> String {
    crate::words::syscalls::name(nr)
}
