//! A use of memory that was freed, which ended an execution, and where blocks of the heap come from.

use serde::{Deserialize, Serialize};
use vsrun_model::Tid;

use super::place::PlaceView;
use super::words::{words, Thing, Words};

/// A use of memory that was freed, or of the stack of a thread that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoneView {
    /// What is done: `read of 8 bytes`, `free`.
    pub what: String,
    /// The instruction, or the function of libc or the system call; with who called that.
    pub at: PlaceView,
    /// By whom.
    pub thread: Tid,
    /// The thread that it belonged to, of a stack or a thread-local variable: then there is no block.
    #[serde(default)]
    pub owner: Option<Tid>,
    /// Bytes of the block.
    pub size: u64,
    /// The first byte that is used, from the start of the block.
    pub offset: u64,
    /// Where it was freed, if that is still known.
    pub freed: Option<OriginView>,
    /// Where it was given out, if that is still known.
    pub allocated: Option<OriginView>,
}

/// Where a block of the heap was given out, or freed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginView {
    /// By whom.
    pub thread: Tid,
    /// The call stack, innermost first, as far as it is known.
    pub frames: Vec<PlaceView>,
}

impl OriginView {
    /// The function that wanted it: the first that is none of a library which gives out memory for others.
    pub fn function(&self) -> Option<&str> {
        let frame = self.wanted()?;
        Some(frame.symbol.rsplit_once("+0x").map_or(frame.symbol.as_str(), |(function, _)| function))
    }

    /// The frame of that function.
    fn wanted(&self) -> Option<&PlaceView> {
        let own = |frame: &&PlaceView| {
            let name = &frame.symbol;
            let allocates = name.starts_with("operator new") || name.starts_with("operator delete");
            !allocates && !frame.is_of_libc()
        };
        self.frames.iter().find(own).or(self.frames.first())
    }

    /// ` in f`, with the source line if that is known.
    pub fn within(&self) -> String {
        let line = self.wanted().and_then(|frame| frame.lines.last());
        match (line, self.function()) {
            (Some(line), _) => format!(" in {line}"),
            (None, Some(function)) => format!(" in {function}"),
            (None, None) => String::new(),
        }
    }

    /// ` by thread 0.1 in f`.
    pub fn place(&self) -> Words {
        let function = self.within();
        words![" by thread ", Thing::Thread(self.thread), function]
    }
}

impl GoneView {
    /// The line about it, behind `line`, which says what was used.
    pub fn behind(&self, line: &Words) -> Words {
        let GoneView { what, at, thread, freed, allocated, .. } = self;
        let place = |verb: &str, origin: &Option<OriginView>| match origin {
            Some(origin) => words!["; ", verb, origin.place()],
            None => Words::default(),
        };
        let all = (place("freed", freed), place("allocated", allocated));
        words![line.clone(), format!(": {what} at {at} by thread "), Thing::Thread(*thread), all.0, all.1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wanted_a_block() {
        let of = |frames: &[&str]| {
            let frames = frames.iter().map(|&frame| frame.into()).collect();
            OriginView { thread: 1, frames }.function().map(String::from)
        };
        let new = "operator new(unsigned long)+0x1c (libstdc++.so.6)";
        assert_eq!(
            of(&[new, "std::string::_M_create+0x3 (libstdc++.so.6)", "f(int)+0x20 (prog)"]),
            Some("f(int)".into())
        );
        assert_eq!(
            of(&["operator new(unsigned long)+0x1c (prog)", "V::operator+(V)+0x8 (prog)"]),
            Some("V::operator+(V)".into())
        );
        assert_eq!(of(&["strdup+0x1f (libc.so.6)"]), Some("strdup".into()));
        assert_eq!(of(&[]), None);
    }
}
