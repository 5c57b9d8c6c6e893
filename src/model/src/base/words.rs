//! What the model says of its things. It has no memory to put text into: it writes into what the caller has, where things stand by their
//! numbers until they get the names that a report gives them.

use core::fmt::{Display, Write};

use super::ids::{ObjId, Pid, Tid, NONE};

/// A thing that has a name in a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum Thing {
    /// An object; [`NONE`]: nothing is said.
    Object(ObjId),
    /// The memory of an object from this byte of its word on (0..8).
    Memory(ObjId, u8),
    /// A thread.
    Thread(Tid),
    /// A process.
    Process(Pid),
    /// A signal.
    Signal(u32),
}

/// Takes sentences: text, and things by number.
pub trait Words: Write {
    /// The name of a thing.
    fn thing(&mut self, thing: Thing);
    /// Ends a sentence of a list; nothing if there is none yet.
    fn next(&mut self);
}

/// A part of a sentence: a thing, or whatever has a text.
pub trait Part {
    /// Puts it into words.
    fn say(&self, words: &mut dyn Words);
}

impl<T: Display + ?Sized> Part for T {
    fn say(&self, words: &mut dyn Words) {
        // Words are collected in memory, which does not fail.
        let _ = write!(words, "{self}");
    }
}

impl Part for Thing {
    fn say(&self, words: &mut dyn Words) {
        if *self != Thing::Object(NONE) {
            words.thing(*self);
        }
    }
}

/// The parts, with `between` between them; after `most` of them "..." stands for the others.
pub fn list<P: Part>(parts: impl Iterator<Item = P>, between: &str, most: usize, words: &mut dyn Words) {
    for (i, part) in parts.enumerate().take(most.saturating_add(1)) {
        say![words, if i == 0 { "" } else { between }];
        if i == most {
            say![words, "..."];
        } else {
            part.say(words);
        }
    }
}

/// Puts parts into words, one after the other.
macro_rules! say {
    ($words:expr, $($part:expr),+ $(,)?) => {{ $($crate::base::words::Part::say(&$part, $words);)+ }};
}
pub(crate) use say;
