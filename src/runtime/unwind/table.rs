//! A step from a frame to its caller by the unwind table of the code.

use gimli::{
    CfaRule, EhFrame, EndianSlice, EvaluationResult, LittleEndian, Register, RegisterRule, UnwindContext,
    UnwindExpression, UnwindSection, UnwindTableRow, Value,
};

use super::frame::{Frame, ReadMemory, Regs, RSP};
use super::module::{Covered, Module};

/// A DWARF expression of a sane unwind table has some ten operations.
const MAX_OPERATIONS: u32 = 1000;

/// The caller by the entry that covers the frame's code; None if it is the outermost or its registers are lost.
pub(super) fn caller_by_entry(
    module: &Module,
    covered: Covered,
    context: &mut UnwindContext<usize>,
    bias: u64,
    mem: &dyn ReadMemory,
    frame: &Frame,
) -> Option<Frame> {
    let section = module.eh_frame();
    let fde = section.fde_from_offset(&module.bases, covered.entry.into(), EhFrame::cie_from_offset).ok()?;
    let in_file = frame.address().wrapping_sub(bias);
    let row = fde.unwind_info_for_address(&section, &module.bases, context, in_file).ok()?;
    let step = Step { section: &section, encoding: fde.cie().encoding(), bias, mem, regs: &frame.regs };
    let regs = step.caller(row, fde.cie().return_address_register())?;
    Some(Frame { regs, exact: fde.is_signal_trampoline() })
}

/// One step from a frame to its caller by a row of the table.
struct Step<'a> {
    section: &'a EhFrame<EndianSlice<'a, LittleEndian>>,
    encoding: gimli::Encoding,
    bias: u64,
    mem: &'a dyn ReadMemory,
    regs: &'a Regs,
}

impl Step<'_> {
    /// The caller's registers. Those without a rule are taken to be kept, as the calling convention mostly has it.
    fn caller(&self, row: &UnwindTableRow<usize>, return_address: Register) -> Option<Regs> {
        let cfa = self.cfa(row.cfa())?;
        let mut caller = *self.regs;
        caller.general[RSP] = cfa;
        for (register, rule) in row.registers() {
            if let Some(place) = caller.general.get_mut(usize::from(register.0)) {
                *place = self.value(rule, *register, cfa)?;
            }
        }
        // An undefined return address marks the outermost function.
        caller.rip = self.value(&row.register(return_address), return_address, cfa)?;
        Some(caller)
    }

    fn cfa(&self, rule: &CfaRule<usize>) -> Option<u64> {
        match rule {
            CfaRule::RegisterAndOffset { register, offset } => {
                Some(self.regs.get(register.0)?.wrapping_add_signed(*offset))
            }
            CfaRule::Expression(expression) => self.evaluate(expression, None),
        }
    }

    fn value(&self, rule: &RegisterRule<usize>, register: Register, cfa: u64) -> Option<u64> {
        match rule {
            RegisterRule::SameValue => self.regs.get(register.0),
            RegisterRule::Offset(offset) => self.mem.read_u64(cfa.wrapping_add_signed(*offset)),
            RegisterRule::ValOffset(offset) => Some(cfa.wrapping_add_signed(*offset)),
            RegisterRule::Register(other) => self.regs.get(other.0),
            RegisterRule::Expression(expression) => self.mem.read_u64(self.evaluate(expression, Some(cfa))?),
            RegisterRule::ValExpression(expression) => self.evaluate(expression, Some(cfa)),
            RegisterRule::Constant(value) => Some(*value),
            _ => None,
        }
    }

    /// The value of a DWARF expression; those of registers start with the CFA on their stack.
    fn evaluate(&self, expression: &UnwindExpression<usize>, cfa: Option<u64>) -> Option<u64> {
        let mut evaluation = expression.get(self.section).ok()?.evaluation(self.encoding);
        evaluation.set_max_iterations(MAX_OPERATIONS);
        if let Some(cfa) = cfa {
            evaluation.set_initial_value(cfa);
        }
        let mut result = evaluation.evaluate().ok()?;
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresMemory { address, size, .. } => {
                    evaluation.resume_with_memory(Value::Generic(self.read(address, size)?))
                }
                EvaluationResult::RequiresRegister { register, .. } => {
                    evaluation.resume_with_register(Value::Generic(self.regs.get(register.0)?))
                }
                EvaluationResult::RequiresRelocatedAddress(address) => {
                    evaluation.resume_with_relocated_address(address.wrapping_add(self.bias))
                }
                _ => return None,
            }
            .ok()?;
        }
        evaluation.value_result()?.to_u64(u64::MAX).ok()
    }

    /// `size` bytes, at most 8, as a number.
    fn read(&self, address: u64, size: u8) -> Option<u64> {
        let unused_bits = 64u32.checked_sub(8 * u32::from(size))?;
        Some(self.mem.read_u64(address)? & u64::MAX.checked_shr(unused_bits)?)
    }
}
