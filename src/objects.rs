//! What is known of objects: which are shared, and what the user declares of them. With a schedule it determines the
//! transitions of an execution. What it is good for and why nothing is lost: `vsrun_model::sharing`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use vsrun_model::sharing::{Declared, Sharing, Word, MAX_DECLARED, MAX_KNOWN, MAX_WORDS};
use vsrun_model::watch::LateFile;
use vsrun_model::Arena;

/// What is said of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// One thread alone uses it.
    Unshared,
    /// Its operations are no place to switch, whoever performs them: the order of its critical sections does not
    /// matter, and they have no other place to switch inside (Stoller, TR 536, Section 10: atomic granularity).
    Atomic,
}

impl What {
    /// The word of the command line.
    pub fn word(self) -> &'static str {
        match self {
            What::Unshared => "unshared",
            What::Atomic => "atomic",
        }
    }
}

/// What is said of the objects in a range of addresses.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Declaration {
    /// The variable.
    pub symbol: String,
    /// What is said of it.
    pub what: What,
    /// First address.
    pub start: u64,
    /// Size, bytes.
    pub size: u64,
}

impl Declaration {
    /// As it stands in the arena.
    fn written(&self) -> Declared {
        let what = match self.what {
            What::Unshared => Sharing::OWN,
            What::Atomic => Sharing::ATOMIC,
        };
        Declared::new(self.start, self.start.saturating_add(self.size), what)
    }
}

/// What an execution knows of the sharing of objects: with the schedule, it determines the transitions.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Objects {
    /// An object is taken to be one thread's own until it is known to be shared.
    pub unshared: bool,
    /// Names of what is known to be shared.
    #[serde(with = "crate::base::serial::hex64_set")]
    pub shared: BTreeSet<u64>,
    /// What the user says.
    pub declared: Vec<Declaration>,
    /// Memory of which each use is an operation, by space and address.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub words: BTreeSet<(u32, u64)>,
    /// What the program says of who may use memory does not count: it was found not to hold.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub distrusts: bool,
    /// Blocks of the heap would be given out again that are kept back: each execution decides which of the two.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reuses: bool,
    /// Paths of libraries that come while the program runs, and are to be watched then.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub late: BTreeSet<String>,
}

impl Objects {
    /// True if there is nothing to say: every object is shared.
    pub fn is_plain(&self) -> bool {
        *self == Objects::default()
    }

    /// # Errors
    /// It is more than an arena has room for.
    pub fn fits(&self) -> Result<(), &'static str> {
        let words = self.words.len() <= MAX_WORDS;
        let fits = self.shared.len() <= MAX_KNOWN && self.declared.len() <= MAX_DECLARED && words;
        fits.then_some(()).ok_or("more is known of objects than an arena has room for")
    }

    /// Puts it into the arena for the executions to come.
    ///
    /// # Errors
    /// It is more than an arena has room for.
    pub fn write(&self, arena: &mut Arena) -> Result<(), &'static str> {
        self.fits()?;
        arena.known_shared.clear();
        for &name in &self.shared {
            arena.known_shared.push(name);
        }
        arena.words.clear();
        for &(space, address) in &self.words {
            arena.words.push(Word::at(space, address));
        }
        arena.declared.clear();
        for d in &self.declared {
            arena.declared.push(d.written());
        }
        arena.distrusts = self.distrusts.into();
        Ok(())
    }

    /// It stands in the arena as [`Objects::write`] put it there.
    pub fn stands_in(&self, arena: &Arena) -> bool {
        let names = self.shared.iter().eq(arena.known_shared.as_slice());
        let words = self.words.iter().map(|&(space, address)| Word::at(space, address));
        let declared = self.declared.iter().map(Declaration::written);
        names
            && arena.distrusts == u64::from(self.distrusts)
            && words.eq(arena.words.as_slice().iter().copied())
            && declared.eq(arena.declared.as_slice().iter().copied())
    }
}

/// What one execution showed of them.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// Names of what is shared.
    pub names: BTreeSet<u64>,
    /// Names of returns of calls that signals answer. They count where nothing else is new: where too few operations were known, more comes after
    /// a step than its call.
    pub answered: BTreeSet<u64>,
    /// Memory that threads use without an order, and that was not known for that: by space and address.
    pub words: BTreeSet<(u32, u64)>,
    /// What the program says of who may use memory does not hold, and was relied on.
    pub trespass: bool,
    /// A block of the heap was kept back that would have been given out again, and that was not known to happen.
    pub kept_apart: bool,
    /// Paths of libraries that came while the program ran, and that it was not known of: what they did to memory was not seen.
    pub late: BTreeSet<String>,
    /// Declarations that do not hold, by index.
    pub refuted: BTreeSet<u32>,
    /// Operations that were no transitions.
    pub passed: u64,
    /// The object of the last of them in the transition that ended the execution.
    pub last: Option<u64>,
}

impl Shown {
    /// Looks at an execution, right after its end. Of `known` libraries it is known that they come.
    pub fn read(arena: &Arena, known: &BTreeSet<String>) -> Shown {
        let noted = arena.noted.as_slice();
        // Where nobody could tell what is done by code that comes later, it is none of anybody's business.
        let told = arena.control.watching.later > 0;
        let path = |file: &LateFile| String::from_utf8(file.path.iter().copied().take_while(|&b| b != 0).collect());
        let late = arena.late.as_slice().iter().filter(|_| told).filter_map(|file| path(file).ok());
        Shown {
            names: noted.iter().map(|n| n.name).collect(),
            answered: BTreeSet::new(),
            words: BTreeSet::new(),
            trespass: false,
            kept_apart: arena.world.kept_apart && !arena.plan.reuses,
            late: late.filter(|path| path.starts_with('/') && !known.contains(path)).collect(),
            refuted: noted.iter().filter_map(|n| n.declared.checked_sub(1)).collect(),
            passed: arena.world.passed,
            last: arena.passed_last(),
        }
    }

    /// True if it showed that the search knew too little.
    pub fn is_new(&self) -> bool {
        !self.names.is_empty() || !self.words.is_empty() || self.trespass || self.kept_apart || !self.late.is_empty()
    }
}
