//! What makes the states of a program differ (`--states=why`).

/// Over the states that an exploration has told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Apart {
    /// So many were looked at.
    pub states: u64,
    /// There were more.
    pub more: bool,
    /// What makes most of the difference first.
    pub without: Vec<Without>,
    /// The two of them that differ in the fewest bytes.
    pub nearest: Option<Nearest>,
}

/// How many states there would be if this did not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Without {
    /// A variable, the stack of a thread, an object, or the like.
    pub what: String,
    /// So many.
    pub states: u64,
}

/// Two states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// Of each, the execution that has met it first, counted from 1, and the transitions before it.
    pub at: [(u64, u64); 2],
    /// Bytes of memory in which they differ.
    pub bytes: u64,
    /// Other things than memory in which they do.
    pub others: u64,
    /// What they differ in, not all if that is much.
    pub words: Vec<Differing>,
    /// So much is left out.
    pub left_out: u64,
}

/// A word of memory, or something else of which a hash is known only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differing {
    /// Its name.
    pub what: String,
    /// What is there in each, `None`: what was there at the first choice. Of what is no memory it is not told.
    pub is: Option<[Option<u64>; 2]>,
}
