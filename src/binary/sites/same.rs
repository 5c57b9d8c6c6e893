//! Accesses that an equal one precedes in a straight line of code: that has recorded them, or found them recorded.

use iced_x86::{FlowControl, Instruction, InstructionInfo, OpAccess};
use vsrun_model::watch::{Operand, NO_REGISTER};

use super::access::number;

/// What has been accessed since the last place where others may come in, by operands that still mean the same.
#[derive(Default)]
pub struct Seen(Vec<Operand>);

impl Seen {
    /// Others may come in here.
    pub fn forget(&mut self) {
        self.0.clear();
    }

    /// The instruction accesses `operands`: true if each has been seen.
    pub fn repeats(&mut self, operands: &[Operand]) -> bool {
        let place = |o: &Operand| {
            (o.base, o.index, o.scale, o.displacement, o.flags & (Operand::ADDRESS_32 | Operand::OF_THREAD))
        };
        let plain = |o: &Operand| !o.is(Operand::STRING) && o.bit == NO_REGISTER;
        let covers = |seen: &Operand, o: &Operand| {
            place(seen) == place(o)
                && seen.size >= o.size
                && (seen.is(Operand::WRITE) || !o.is(Operand::WRITE))
                && (seen.is(Operand::LOCK) == o.is(Operand::LOCK))
        };
        let all = operands.iter().all(|o| plain(o) && self.0.iter().any(|seen| covers(seen, o)));
        if !all {
            self.0.extend(operands.iter().filter(|o| plain(o)));
        }
        all && !operands.is_empty()
    }

    /// The instruction has been executed.
    pub fn step(&mut self, i: &Instruction, info: &InstructionInfo) {
        if !matches!(i.flow_control(), FlowControl::Next | FlowControl::ConditionalBranch) {
            self.forget();
        }
        if self.0.is_empty() {
            return;
        }
        for used in info.used_registers() {
            if matches!(used.access(), OpAccess::Read | OpAccess::CondRead) {
                continue;
            }
            let written = number(used.register());
            if written != NO_REGISTER {
                self.0.retain(|seen| seen.base != written && seen.index != written);
            }
        }
    }
}
