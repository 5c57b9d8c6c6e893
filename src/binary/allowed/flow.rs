//! What one instruction does to what is known of the registers.

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

use super::images::{Constant, Images};
use super::value::Value;

/// What is known of the sixteen general registers, by their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State([Value; 16]);

/// In which registers a function gets its arguments.
const ARGUMENTS: [Register; 6] =
    [Register::RDI, Register::RSI, Register::RDX, Register::RCX, Register::R8, Register::R9];
/// In which registers the kernel gets them.
const KERNEL_ARGUMENTS: [Register; 6] =
    [Register::RDI, Register::RSI, Register::RDX, Register::R10, Register::R8, Register::R9];
/// What a called function may change.
const SCRATCH: [Register; 9] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
];

impl State {
    /// What is known of a register, by its size.
    pub fn get(&self, register: Register) -> Value {
        let Some(value) = index(register).map(|i| self.0[i]) else { return Value::Unknown };
        match register.size() {
            8 => value,
            4 => value.low32(),
            _ => Value::Unknown,
        }
    }

    fn set(&mut self, register: Register, value: Value) {
        let Some(i) = index(register) else { return };
        self.0[i] = match register.size() {
            8 => value,
            4 => value.low32(),
            _ => Value::Unknown,
        };
    }

    /// The arguments of a call made here.
    pub fn arguments(&self) -> [Value; 6] {
        ARGUMENTS.map(|r| self.get(r))
    }

    /// Number and arguments of a system call made here.
    pub fn kernel_arguments(&self) -> (Value, [Value; 6]) {
        (self.get(Register::RAX), KERNEL_ARGUMENTS.map(|r| self.get(r)))
    }

    /// What is known where paths meet.
    pub fn join(&self, other: &State, images: &Images) -> State {
        let mut joined = *self;
        for (mine, theirs) in joined.0.iter_mut().zip(other.0) {
            *mine = mine.join(theirs, images);
        }
        joined
    }
}

fn index(register: Register) -> Option<usize> {
    register.is_gpr().then(|| register.full_register().number())
}

/// Carries states through instructions.
pub struct Flow<'a> {
    images: &'a Images,
    info: InstructionInfoFactory,
}

impl<'a> Flow<'a> {
    /// For code of `images`.
    pub fn new(images: &'a Images) -> Flow<'a> {
        Flow { images, info: InstructionInfoFactory::new() }
    }

    /// Changes `state` to what holds after `i`.
    pub fn step(&mut self, i: &Instruction, state: &mut State) {
        use Mnemonic as M;
        let images = self.images;
        let to = if i.op_count() > 0 && i.op0_kind() == OpKind::Register { i.op0_register() } else { Register::None };
        match i.mnemonic() {
            M::Cmp | M::Test | M::Nop | M::Push | M::Endbr64 | M::Jmp | M::Je | M::Jne => {}
            M::Call | M::Syscall => SCRATCH.iter().for_each(|r| state.set(*r, Value::Unknown)),
            M::Mov if to != Register::None => state.set(to, self.source(i, 1, state)),
            M::Movsxd => state.set(to, self.source(i, 1, state).sign32()),
            M::Cdqe => state.set(Register::RAX, state.get(Register::EAX).sign32()),
            M::Lea => state.set(to, self.address(i, state)),
            M::Add if to != Register::None => {
                state.set(to, state.get(to).plus(self.source(i, 1, state), images));
            }
            M::Sub | M::Xor if to != Register::None && i.op1_kind() == OpKind::Register && i.op1_register() == to => {
                state.set(to, Value::constant(0));
            }
            M::Sub if to != Register::None => state.set(to, state.get(to).minus(self.source(i, 1, state), images)),
            M::Inc if to != Register::None => state.set(to, state.get(to).plus(Value::constant(1), images)),
            M::Dec if to != Register::None => state.set(to, state.get(to).minus(Value::constant(1), images)),
            m if (M::Cmova..=M::Cmovs).contains(&m) => {
                state.set(to, state.get(to).join(self.source(i, 1, state), images));
            }
            _ => self.forget_written(i, state),
        }
    }

    fn forget_written(&mut self, i: &Instruction, state: &mut State) {
        for used in self.info.info(i).used_registers() {
            let writes = matches!(
                used.access(),
                OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
            );
            if writes {
                state.set(used.register().full_register(), Value::Unknown);
            }
        }
    }

    /// What operand `n` holds.
    pub fn source(&self, i: &Instruction, n: u32, state: &State) -> Value {
        match i.op_kind(n) {
            OpKind::Register => state.get(i.op_register(n)),
            OpKind::Memory => self.loaded(i, state),
            _ => i.try_immediate(n).map_or(Value::Unknown, Value::constant),
        }
    }

    /// What the memory operand of `i` holds.
    fn loaded(&self, i: &Instruction, state: &State) -> Value {
        let address = self.address(i, state);
        let size = i.memory_size().size();
        if let (Some(at), 8) = (address.single(), size) {
            return match self.images.constant(at) {
                Some(Constant::Address(target)) => Value::constant(target),
                Some(Constant::Slot) => Value::Slot(at),
                None => Value::Unknown,
            };
        }
        match (address.anchor(), size) {
            (Some(table), 4 | 8) if self.images.at(table).is_some_and(|image| image.is_constant(table)) => {
                Value::Entry { table, wide: size == 8 }
            }
            _ => Value::Unknown,
        }
    }

    /// The address of the memory operand of `i`.
    pub fn address(&self, i: &Instruction, state: &State) -> Value {
        if i.is_ip_rel_memory_operand() {
            return Value::constant(i.ip_rel_memory_address());
        }
        if matches!(i.memory_segment(), Register::FS | Register::GS) {
            return Value::Unknown;
        }
        let part = |register: Register| match register {
            Register::None => Value::constant(0),
            r => state.get(r),
        };
        let index = part(i.memory_index()).times(u64::from(i.memory_index_scale()));
        let distance = Value::constant(i.memory_displacement64());
        // The unknown part last: a distance that is an address by itself keeps its meaning.
        let (base, images) = (part(i.memory_base()), self.images);
        match (base, index) {
            (Value::Unknown, known) => distance.plus(known, images).plus(base, images),
            (known, index) => distance.plus(known, images).plus(index, images),
        }
    }
}
