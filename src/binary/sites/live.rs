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
    reads: u32,
    writes: u32,
}

const ARITHMETIC: u32 =
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
                // Flags are nobody's across calls and returns.
                FlowControl::Return | FlowControl::IndirectCall => REGISTERS,
                FlowControl::Call if code[n].mnemonic() == Mnemonic::Call => REGISTERS,
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
