//! Which registers, and whether arithmetic flags, are read before they are written again: what a check between two instructions has
//! to keep. What leaves the function, and what is not understood, keeps everything.

use iced_x86::{FlowControl, Instruction, InstructionInfo, Mnemonic, OpAccess, RflagsBits};

use super::{ALL_ALIVE, FLAGS};

/// All general registers.
const REGISTERS: u32 = 0xffff;
/// The stack pointer is always needed.
const STACK: u32 = 1 << 4;

/// What an instruction reads, and what it writes for certain.
#[derive(Clone, Copy, Default)]
pub struct Effect {
    pub reads: u32,
    pub writes: u32,
}

/// Flags that arithmetic changes.
pub const ARITHMETIC: u32 =
    RflagsBits::CF | RflagsBits::PF | RflagsBits::AF | RflagsBits::ZF | RflagsBits::SF | RflagsBits::OF;

impl Effect {
    /// Of an instruction. Flags are one thing: they are written where all of them are.
    pub fn of(i: &Instruction, info: &InstructionInfo) -> Effect {
        let mut effect = Effect::default();
        if i.rflags_read() & ARITHMETIC != 0 {
            effect.reads |= FLAGS;
        }
        if i.rflags_modified() & ARITHMETIC == ARITHMETIC && !may_do_nothing(i) {
            effect.writes |= FLAGS;
        }
        for used in info.used_registers() {
            let register = used.register();
            if !register.is_gpr() {
                continue;
            }
            let bit = 1 << register.full_register().number();
            match used.access() {
                OpAccess::Write if register.size() >= 4 => effect.writes |= bit,
                OpAccess::NoMemAccess | OpAccess::None => {}
                _ => effect.reads |= bit,
            }
        }
        effect
    }
}

/// A count of 0 leaves the flags as they are.
fn may_do_nothing(i: &Instruction) -> bool {
    use Mnemonic as M;
    let shift = matches!(
        i.mnemonic(),
        M::Shl | M::Sal | M::Shr | M::Sar | M::Rol | M::Ror | M::Rcl | M::Rcr | M::Shld | M::Shrd
    );
    shift || i.is_string_instruction()
}

/// What is alive before each instruction. `entry(address)` is the index of the instruction there.
pub fn alive(code: &[Instruction], effects: &[Effect], entry: impl Fn(u64) -> Option<usize>) -> Vec<u32> {
    // Flags are nobody's across calls and returns.
    alive_beyond(code, effects, entry, [REGISTERS; 2])
}

/// The same where functions are called and give back by the calling convention: arguments do not come in rax, r10 and r11 (there the number of vector registers is
/// set for a call, never left over); behind a return there are rax, rdx, and what has to be kept.
pub fn alive_by_convention(code: &[Instruction], effects: &[Effect], entry: impl Fn(u64) -> Option<usize>) -> Vec<u32> {
    const RAX: u32 = 1;
    const R10_R11: u32 = 0xc00;
    const RAX_RDX_RBX_RSP_RBP: u32 = RAX | 1 << 2 | 1 << 3 | STACK | 1 << 5;
    const R12_TO_R15: u32 = 0xf000;
    alive_beyond(code, effects, entry, [REGISTERS & !(RAX | R10_R11), RAX_RDX_RBX_RSP_RBP | R12_TO_R15])
}

/// The same, with what is alive at calls, and behind returns.
fn alive_beyond(
    code: &[Instruction],
    effects: &[Effect],
    entry: impl Fn(u64) -> Option<usize>,
    [called, returned]: [u32; 2],
) -> Vec<u32> {
    let target = |i: &Instruction| entry(i.near_branch_target());
    let targets: Vec<Option<usize>> = code.iter().map(|i| if is_branch(i) { target(i) } else { None }).collect();
    let mut alive = vec![0; code.len()];
    loop {
        let mut changed = false;
        for n in (0..code.len()).rev() {
            let next = alive.get(n + 1).copied().unwrap_or(ALL_ALIVE);
            let there = targets[n].map_or(ALL_ALIVE, |at| alive[at]);
            let after = match code[n].flow_control() {
                FlowControl::Next => next,
                FlowControl::ConditionalBranch => next | there,
                FlowControl::UnconditionalBranch => there,
                FlowControl::Return => returned,
                FlowControl::IndirectCall => called,
                FlowControl::Call if code[n].mnemonic() == Mnemonic::Call => called,
                _ => ALL_ALIVE,
            };
            let before = after & !effects[n].writes | effects[n].reads | STACK;
            changed |= before != alive[n];
            alive[n] = before;
        }
        if !changed {
            return alive;
        }
    }
}

fn is_branch(i: &Instruction) -> bool {
    matches!(i.flow_control(), FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch)
}
