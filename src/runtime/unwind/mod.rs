//! Call stacks of stopped threads, by the call frame information in `.eh_frame`.
//!
//! Nothing is asked of the program: x86-64 code is compiled with unwind tables unless someone forbids it. Where there
//! are none (hand-written code, trampolines), signal frames are known by their code, jumps to nowhere by the return
//! address on top of the stack, and everything else is taken to keep its frame in rbp.
//!
//! NOTE [Return addresses]. A return address may be the first byte of the next function, if the call is the last thing
//! in its own. So the caller is looked up one byte before. Where a thread stopped, and where a signal interrupted it,
//! the address is exact and is looked up as it is.

mod frame;
mod module;
mod table;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use gimli::UnwindContext;

use frame::{executable_at, without_table, Frame};
use module::Module;
use table::caller_by_entry;

use crate::binary::Mapping;

pub use frame::{returns_from_signal, ReadMemory, Regs};

/// Finds call stacks; keeps the unwind tables it has read, by the path of the file.
#[derive(Default)]
pub struct Unwinder {
    modules: BTreeMap<PathBuf, Option<Module>>,
    context: Box<UnwindContext<usize>>,
}

/// What the unwind tables say about a frame.
enum Tabled {
    Caller(Frame),
    /// It has no caller, or the way to it is destroyed.
    End,
    /// There are no tables for this code.
    Unknown,
}

impl Unwinder {
    /// An unwinder that has read nothing yet.
    pub fn new() -> Unwinder {
        Unwinder::default()
    }

    /// The program counters of a stopped thread's frames, at most `max`, from where it is (`regs.rip`, whatever that
    /// is) to its outermost caller. All but the first and those interrupted by a signal are return addresses: to name
    /// the function, look one byte before them.
    ///
    /// `maps` are the mappings of its process now. A stack that is damaged gives the frames up to the damage.
    pub fn backtrace(&mut self, maps: &[Mapping], mem: &dyn ReadMemory, regs: Regs, max: usize) -> Vec<u64> {
        let mut frame = Frame { regs, exact: true };
        let mut counters = Vec::new();
        let mut seen = BTreeSet::new();
        while counters.len() < max && seen.insert((frame.regs.rip, frame.regs.rsp())) {
            counters.push(frame.regs.rip);
            match self.caller(maps, mem, &frame) {
                Some(caller) => frame = caller,
                None => break,
            }
        }
        counters
    }

    /// The frame that called, or was interrupted by, this one.
    fn caller(&mut self, maps: &[Mapping], mem: &dyn ReadMemory, frame: &Frame) -> Option<Frame> {
        let caller = match self.by_table(maps, mem, frame) {
            Tabled::Caller(caller) => caller,
            Tabled::End => return None,
            Tabled::Unknown => without_table(maps, mem, frame)?,
        };
        let plausible = caller.exact || executable_at(maps, caller.address()).is_some();
        (caller.regs.rip != 0 && plausible).then_some(caller)
    }

    fn by_table(&mut self, maps: &[Mapping], mem: &dyn ReadMemory, frame: &Frame) -> Tabled {
        let Unwinder { modules, context } = self;
        let address = frame.address();
        let Some(mapping) = executable_at(maps, address) else { return Tabled::Unknown };
        let Some(path) = mapping.file() else { return Tabled::Unknown };
        let module = modules.entry(path.to_path_buf()).or_insert_with(|| Module::open(path));
        let Some(module) = module else { return Tabled::Unknown };
        let Some(bias) = module.bias(mapping, address) else { return Tabled::Unknown };
        let Some(covered) = module.covering(address.wrapping_sub(bias)) else { return Tabled::Unknown };
        // The table is that of the code before, if what is returned to is a signal handler's return without a table.
        let returns_behind = frame.regs.rip.wrapping_sub(bias) == covered.end;
        if returns_behind && returns_from_signal(mem, frame.regs.rip) {
            return Tabled::Unknown;
        }
        match caller_by_entry(module, covered, context, bias, mem, frame) {
            Some(caller) => Tabled::Caller(caller),
            None => Tabled::End,
        }
    }
}
