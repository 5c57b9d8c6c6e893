//! What one function calls, with which arguments, and whose addresses it takes: its instructions as basic blocks, the
//! constants that reach them, and what its calls and jumps to other places are.
//!
//! NOTE [Whole functions] All bytes of a function count, whether a path to them is known or not: landing pads, cases of
//! a switch and labels whose addresses are taken need no care for what may be called. They do for the constants: where
//! a path that is not known may arrive, nothing is known of the registers.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};

use super::extents::Extent;
use super::flow::{Flow, State};
use super::image::Image;
use super::images::{Callee, Images};
use super::tables::Table;
use super::unwind;
use super::value::Value;

/// After so many visits a block is taken to know nothing.
const MAX_VISITS: u32 = 64;
/// How often new targets of jump tables may split blocks.
const MAX_ROUNDS: u32 = 16;

/// A call, or a jump out of the function.
#[derive(Clone, Debug)]
pub struct Call {
    /// Code address, or the address of the slot that holds one.
    pub callee: Destination,
    /// What is known of the argument registers; None where nobody needs it: the code that is called is analysed.
    pub arguments: Option<Box<[Value; 6]>>,
}

/// Where a call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// To code.
    Code(u64),
    /// To where the word at this address says, which the loader fills in.
    Slot(u64),
}

/// What a function does that others need to know.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Calls, and jumps to other functions.
    pub calls: Vec<Call>,
    /// Code whose address it takes.
    pub taken: BTreeSet<u64>,
    /// Slots from which it takes the address of a function.
    pub taken_slots: BTreeSet<u64>,
    /// Calls through pointers that could not be followed.
    pub indirect: bool,
    /// System call instructions: number and arguments.
    pub system_calls: Vec<(Value, [Value; 6])>,
    /// A jump into the middle of an instruction, or code that cannot be decoded: it is not what it seems.
    pub unreadable: bool,
}

struct Block {
    /// Indices of instructions, first and one past the last.
    start: usize,
    end: usize,
}

struct Body<'a> {
    images: &'a Images,
    image: &'a Image,
    start: u64,
    code: Vec<Instruction>,
    blocks: Vec<Block>,
    /// Where jump tables lead, by the index of the jump.
    tables: BTreeMap<usize, Vec<u64>>,
    /// Jump tables do not lead there.
    but: Option<u64>,
    /// What has been read of each table.
    read: RefCell<BTreeMap<Table, Option<Rc<Vec<u64>>>>>,
    summary: Summary,
}

/// What the code of `extent` does, entered at its start and at `entries`; `labelled`: addresses inside of it are kept
/// somewhere, so that jumps through pointers may go there.
pub fn analyse(images: &Images, image: &Image, extent: &Extent, entries: &BTreeSet<u64>, labelled: bool) -> Summary {
    let bytes = image.tail(extent.start);
    let len = bytes.len().min(usize::try_from(extent.end - extent.start).unwrap_or(usize::MAX));
    let decoder = Decoder::with_ip(64, &bytes[..len], extent.start, DecoderOptions::NONE);
    let code: Vec<Instruction> = decoder.into_iter().collect();
    let summary = Summary::default();
    let mut body = Body {
        images,
        image,
        start: extent.start,
        code,
        blocks: Vec::new(),
        tables: BTreeMap::new(),
        but: Some(extent.start),
        read: RefCell::default(),
        summary,
    };
    body.run(extent, entries, labelled);
    body.summary
}

/// How control moves inside of a function, as far as jumps through registers and memory are concerned.
#[derive(Clone, Debug, Default)]
pub struct Jumps {
    /// Where they may lead, also outside of it.
    pub targets: BTreeSet<u64>,
    /// Where the tables lie that they go through.
    pub tables: BTreeSet<u64>,
    /// All of them are understood: nothing leads anywhere else.
    pub understood: bool,
}

/// The jumps of a function whose instructions are `code`; `open`: where it is entered besides its start; `labelled` as for [`analyse`].
/// More targets are given than there are, rather than fewer.
pub fn jumps(
    images: &Images,
    image: &Image,
    extent: &Extent,
    code: Vec<Instruction>,
    open: &BTreeSet<u64>,
    labelled: bool,
) -> Jumps {
    let mut body = Body {
        images,
        image,
        start: extent.start,
        code,
        blocks: Vec::new(),
        tables: BTreeMap::new(),
        but: None,
        read: RefCell::default(),
        summary: Summary::default(),
    };
    let mut open = open.clone();
    open.insert(extent.start);
    let (states, split) = body.follow(&open);
    let understood = split && !body.summary.unreadable && !body.has_unknown_jumps(&states, labelled);
    let targets = body.tables.values().flatten().copied().collect();
    let tables = body.read.borrow().keys().map(|table| table.start).collect();
    Jumps { targets, tables, understood }
}

impl Body<'_> {
    fn run(&mut self, extent: &Extent, entries: &BTreeSet<u64>, labelled: bool) {
        if self.code.is_empty() {
            self.summary.unreadable = true;
            return;
        }
        if !self.code.iter().any(|i| self.needs_constants(i)) {
            return self.collect_plain(entries);
        }
        let pads = extent.handlers.map(|at| unwind::landing_pads(self.image, extent.start, at));
        let blind = pads.as_ref().is_some_and(Option::is_none);
        // Where nothing is known: entered from elsewhere.
        let mut open: BTreeSet<u64> = pads.flatten().unwrap_or_default();
        open.extend(entries.iter().chain([&extent.start]).copied().filter(|at| self.position(*at).is_some()));
        if entries.iter().any(|at| self.position(*at).is_none()) {
            self.summary.unreadable = true;
        }
        let (states, split) = self.follow(&open);
        let blind = blind || !split || self.has_unknown_jumps(&states, labelled);
        self.collect(&states, blind);
    }

    /// What is known at the start of each block of a function that is entered at `open`, once the jump tables are found. False: there
    /// may be more of them.
    fn follow(&mut self, open: &BTreeSet<u64>) -> (Vec<State>, bool) {
        let mut leaders = open.clone();
        let mut states = Vec::new();
        for _ in 0..MAX_ROUNDS {
            self.split(&leaders);
            states = self.propagate(open);
            let before = leaders.len();
            leaders.extend(self.tables.values().flatten().copied().filter(|at| self.position(*at).is_some()));
            if leaders.len() == before {
                break;
            }
        }
        let split = self.tables.values().flatten().all(|t| self.position(*t).is_none() || leaders.contains(t));
        (states, split)
    }

    /// Whether what is known of the registers matters for what `i` does.
    fn needs_constants(&self, i: &Instruction) -> bool {
        match i.flow_control() {
            FlowControl::IndirectBranch | FlowControl::IndirectCall => {
                !i.is_ip_rel_memory_operand() || {
                    let at = i.ip_rel_memory_address();
                    self.images.callees(at).is_empty() || self.images.uses_arguments(at)
                }
            }
            FlowControl::Next | FlowControl::Return => is_system_call(i),
            _ => {
                let slot = branch_target(i).and_then(|target| self.images.stub(target));
                is_system_call(i) || slot.is_some_and(|slot| self.images.uses_arguments(slot))
            }
        }
    }

    /// The summary of a function for which constants do not matter: most are such.
    fn collect_plain(&mut self, entries: &BTreeSet<u64>) {
        let mut summary = std::mem::take(&mut self.summary);
        let (state, flow) = (State::default(), Flow::new(self.images));
        for (n, i) in self.code.iter().enumerate() {
            self.transfer(n, &state, &flow, &mut summary);
            self.addresses(i, &mut summary);
            let target = branch_target(i).filter(|t| self.inside(*t));
            summary.unreadable |= target.is_some_and(|t| self.position(t).is_none());
        }
        summary.unreadable |= entries.iter().any(|at| self.position(*at).is_none());
        self.fall_through(&mut summary);
        self.summary = summary;
    }

    /// The index of the instruction at `address`.
    fn position(&self, address: u64) -> Option<usize> {
        self.code.binary_search_by_key(&address, Instruction::ip).ok()
    }

    fn inside(&self, address: u64) -> bool {
        let end = self.code.last().map_or(self.start, Instruction::next_ip);
        (self.start..end).contains(&address)
    }

    fn split(&mut self, leaders: &BTreeSet<u64>) {
        let mut starts: BTreeSet<usize> = leaders.iter().filter_map(|at| self.position(*at)).collect();
        starts.insert(0);
        for (n, i) in self.code.iter().enumerate() {
            if let Some(target) = branch_target(i).filter(|t| self.inside(*t)) {
                match self.position(target) {
                    Some(at) => drop(starts.insert(at)),
                    None => self.summary.unreadable = true,
                }
            }
            let ends = !matches!(i.flow_control(), FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall);
            if ends || self.never_returns(i) {
                starts.insert(n + 1);
            }
        }
        let starts: Vec<usize> = starts.into_iter().filter(|s| *s < self.code.len()).collect();
        let ends = starts.iter().skip(1).copied().chain([self.code.len()]);
        self.blocks = starts.iter().copied().zip(ends).map(|(start, end)| Block { start, end }).collect();
    }

    /// A call of a function of libc that does not come back.
    fn never_returns(&self, i: &Instruction) -> bool {
        if i.mnemonic() != Mnemonic::Call {
            return false;
        }
        let slot = match i.op0_kind() {
            OpKind::NearBranch64 => self.images.stub(i.near_branch_target()),
            OpKind::Memory if i.is_ip_rel_memory_operand() => Some(i.ip_rel_memory_address()),
            _ => None,
        };
        slot.is_some_and(|slot| self.images.never_returns(slot))
    }

    fn block_at(&self, address: u64) -> Option<usize> {
        let position = self.position(address)?;
        self.blocks.binary_search_by_key(&position, |b| b.start).ok()
    }

    /// What is known at the start of each block, once nothing changes any more.
    fn propagate(&mut self, open: &BTreeSet<u64>) -> Vec<State> {
        let mut states: Vec<Option<State>> = vec![None; self.blocks.len()];
        let mut visits = vec![0; self.blocks.len()];
        let mut flow = Flow::new(self.images);
        let mut work: BTreeSet<usize> = open.iter().filter_map(|at| self.block_at(*at)).collect();
        for block in &work {
            states[*block] = Some(State::default());
        }
        loop {
            let Some(block) = work.pop_first() else {
                // Reached on paths that are not known, if at all.
                let Some(lost) = states.iter().position(Option::is_none) else { break };
                states[lost] = Some(State::default());
                if !self.is_padding(lost) {
                    work.insert(lost);
                }
                continue;
            };
            let mut state = states[block].unwrap_or_default();
            for n in self.blocks[block].start..self.blocks[block].end - 1 {
                flow.step(&self.code[n], &mut state);
            }
            let next = self.successors(block, &state, &flow);
            flow.step(&self.code[self.blocks[block].end - 1], &mut state);
            for to in next {
                visits[to] += 1;
                let joined = match &states[to] {
                    None => state,
                    Some(_) if visits[to] > MAX_VISITS => State::default(),
                    Some(old) => old.join(&state, self.images),
                };
                if states[to] != Some(joined) {
                    states[to] = Some(joined);
                    work.insert(to);
                }
            }
        }
        states.into_iter().flatten().collect()
    }

    /// A block that only fills the space before one that is aligned.
    fn is_padding(&self, block: usize) -> bool {
        let Block { start, end } = self.blocks[block];
        self.code[start..end].iter().all(|i| matches!(i.mnemonic(), Mnemonic::Nop | Mnemonic::Int3))
    }

    /// The blocks after `block`; `state` is what is known before its last instruction.
    fn successors(&mut self, block: usize, state: &State, flow: &Flow) -> Vec<usize> {
        let last = self.blocks[block].end - 1;
        let i = self.code[last];
        let following = (block + 1 < self.blocks.len()).then_some(block + 1);
        let taken = branch_target(&i).and_then(|t| self.block_at(t));
        match i.flow_control() {
            FlowControl::UnconditionalBranch => taken.into_iter().collect(),
            FlowControl::Return | FlowControl::Exception => Vec::new(),
            FlowControl::IndirectBranch => {
                let targets = self.table_targets(last, state, flow).unwrap_or_default();
                let known = self.tables.entry(last).or_default();
                if *known != *targets {
                    known.extend(targets.iter());
                    known.sort_unstable();
                    known.dedup();
                }
                self.tables[&last].iter().filter_map(|t| self.block_at(*t)).collect()
            }
            _ if i.code() == Code::INVALID || i.mnemonic() == Mnemonic::Hlt || self.never_returns(&i) => Vec::new(),
            _ => taken.into_iter().chain(following).collect(),
        }
    }

    /// Where the jump with index `n` goes, if it is one through a jump table.
    fn table_targets(&self, n: usize, state: &State, flow: &Flow) -> Option<Rc<Vec<u64>>> {
        let table = Table::of(flow.source(&self.code[n], 0, state))?;
        let read = || table.targets(self.images, self.but, |t| self.position(t).is_some()).map(Rc::new);
        self.read.borrow_mut().entry(table).or_insert_with(read).clone()
    }

    /// Whether there are jumps that could go anywhere in the function. One through a word at a fixed distance from a
    /// pointer goes to another function: a method of an object.
    fn has_unknown_jumps(&self, states: &[State], labelled: bool) -> bool {
        if !self.code.iter().any(|i| i.flow_control() == FlowControl::IndirectBranch) {
            return false;
        }
        let mut unknown = false;
        self.visit(states, |body, n, state, flow| {
            let i = &body.code[n];
            if i.flow_control() == FlowControl::IndirectBranch {
                let method = i.op0_kind() == OpKind::Memory && i.memory_index() == iced_x86::Register::None;
                let target = flow.source(i, 0, state);
                let known = matches!(target, Value::Known(few) if !few.loose) || matches!(target, Value::Slot(_));
                unknown |= !known && (labelled || !method) && body.table_targets(n, state, flow).is_none();
            }
        });
        unknown
    }

    /// Shows every instruction with what is known before it.
    fn visit(&self, states: &[State], mut see: impl FnMut(&Self, usize, &State, &Flow)) {
        let mut flow = Flow::new(self.images);
        for (block, state) in self.blocks.iter().zip(states) {
            let mut state = *state;
            for n in block.start..block.end {
                see(self, n, &state, &flow);
                flow.step(&self.code[n], &mut state);
            }
        }
    }

    /// Fills in the summary; `blind`: paths are not known, so neither are constants.
    fn collect(&mut self, states: &[State], blind: bool) {
        let mut summary = std::mem::take(&mut self.summary);
        self.visit(states, |body, n, state, flow| {
            let nothing = State::default();
            let state = if blind { &nothing } else { state };
            let i = &body.code[n];
            body.transfer(n, state, flow, &mut summary);
            body.addresses(i, &mut summary);
            if is_system_call(i) {
                let (number, arguments) = state.kernel_arguments();
                let number = if i.mnemonic() == Mnemonic::Syscall { number } else { Value::Unknown };
                summary.system_calls.push((number, arguments));
            }
        });
        self.fall_through(&mut summary);
        self.summary = summary;
    }

    /// Calls and jumps.
    fn transfer(&self, n: usize, state: &State, flow: &Flow, summary: &mut Summary) {
        let i = &self.code[n];
        let mut go = |callee| {
            let arguments = matches!(callee, Destination::Slot(_)).then(|| Box::new(state.arguments()));
            summary.calls.push(Call { callee, arguments });
        };
        match i.flow_control() {
            FlowControl::Call
            | FlowControl::UnconditionalBranch
            | FlowControl::ConditionalBranch
            | FlowControl::XbeginXabortXend => {
                let Some(target) = branch_target(i) else { return };
                let call = i.flow_control() == FlowControl::Call;
                if call || !self.inside(target) {
                    go(self.images.stub(target).map_or(Destination::Code(target), Destination::Slot));
                }
            }
            FlowControl::IndirectCall | FlowControl::IndirectBranch => {
                let target = self.pointer(i, state, flow);
                let jump = i.flow_control() == FlowControl::IndirectBranch;
                match target {
                    Value::Slot(slot) => go(Destination::Slot(slot)),
                    Value::Known(few) if !few.loose => few.all().iter().for_each(|t| go(Destination::Code(*t))),
                    _ => match jump.then(|| self.table_targets(n, state, flow)).flatten() {
                        Some(targets) => {
                            targets.iter().filter(|t| !self.inside(**t)).for_each(|t| go(Destination::Code(*t)));
                        }
                        None => summary.indirect = true,
                    },
                }
            }
            _ => {}
        }
    }

    /// What an indirect call or jump goes to.
    fn pointer(&self, i: &Instruction, state: &State, flow: &Flow) -> Value {
        let slot = i.op0_kind() == OpKind::Memory && i.is_ip_rel_memory_operand();
        let at = i.ip_rel_memory_address();
        if slot && self.image.dynamic.slots.contains(&at) && !self.images.callees(at).is_empty() {
            return Value::Slot(at);
        }
        flow.source(i, 0, state)
    }

    /// Addresses of code that the instruction holds: it may keep them.
    fn addresses(&self, i: &Instruction, summary: &mut Summary) {
        if i.is_ip_rel_memory_operand() {
            let at = i.ip_rel_memory_address();
            if i.mnemonic() == Mnemonic::Lea {
                self.take(at, summary);
            } else if i.mnemonic() != Mnemonic::Call && i.mnemonic() != Mnemonic::Jmp {
                let callees = if self.image.dynamic.slots.contains(&at) { self.images.callees(at) } else { &[] };
                if callees.iter().any(|c| !matches!(c, Callee::Code(at) if !self.images.is_code(*at))) {
                    summary.taken_slots.insert(at);
                }
            }
        } else if i.mnemonic() == Mnemonic::Lea {
            self.take(i.memory_displacement64(), summary);
        }
        for n in 0..i.op_count() {
            if matches!(i.op_kind(n), OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64) {
                self.take(i.immediate(n), summary);
            }
        }
    }

    fn take(&self, address: u64, summary: &mut Summary) {
        if self.images.is_code(address) {
            match self.images.stub(address) {
                Some(slot) => summary.taken_slots.insert(slot),
                None => summary.taken.insert(address),
            };
        }
    }

    /// Code that runs on into what follows. After a call at the very end nothing follows: compilers put one there only
    /// if it does not come back.
    fn fall_through(&self, summary: &mut Summary) {
        let Some(last) = self.code.iter().rev().find(|i| i.mnemonic() != Mnemonic::Nop) else { return };
        let on = matches!(last.flow_control(), FlowControl::Next | FlowControl::ConditionalBranch);
        let end = self.code.last().map_or(self.start, Instruction::next_ip);
        if on && last.mnemonic() != Mnemonic::Hlt && last.code() != Code::INVALID && self.images.is_code(end) {
            summary.calls.push(Call { callee: Destination::Code(end), arguments: None });
        }
    }
}

fn is_system_call(i: &Instruction) -> bool {
    matches!(i.mnemonic(), Mnemonic::Syscall | Mnemonic::Sysenter | Mnemonic::Int)
}

/// Where a direct call or jump goes.
fn branch_target(i: &Instruction) -> Option<u64> {
    (i.op_count() > 0 && i.op0_kind() == OpKind::NearBranch64).then(|| i.near_branch_target())
}
