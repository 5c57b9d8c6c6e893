//! A buffer of code at the address where it will lie.

use iced_x86::{Code, Encoder, FlowControl, Instruction, MemoryOperand, Register};

/// The code cannot be made: something is out of reach, or cannot be encoded.
#[derive(Debug)]
pub struct Impossible;

/// Code.
pub struct Buffer {
    base: u64,
    bytes: Vec<u8>,
    encoder: Encoder,
}

/// A jump forward whose distance is not known yet: where the four bytes are.
#[derive(Clone, Copy)]
pub struct Forward(usize);

impl Buffer {
    /// Empty, at `base`.
    pub fn new(base: u64) -> Buffer {
        Buffer { base, bytes: Vec::new(), encoder: Encoder::new(64) }
    }

    /// Where the next byte goes.
    pub fn here(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// All of them.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Forgets all but the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }

    /// Adds bytes.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds an instruction; its operands and its target are those that it has by its `ip`.
    pub fn instruction(&mut self, i: &Instruction) -> Result<(), Impossible> {
        let (here, length) = (self.here(), self.bytes.len());
        self.encoder.set_buffer(std::mem::take(&mut self.bytes));
        let result = self.encoder.encode(i, here);
        self.bytes = self.encoder.take_buffer();
        result.map(drop).map_err(|_| {
            self.bytes.truncate(length);
            Impossible
        })
    }

    /// A copy of an instruction from elsewhere; a short jump becomes a long one.
    pub fn copy(&mut self, i: &Instruction) -> Result<(), Impossible> {
        let mut copy = *i;
        if matches!(i.flow_control(), FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch) {
            copy.as_near_branch();
        }
        self.instruction(&copy)
    }

    /// `opcode` and a distance of 32 bits to `target`.
    pub fn relative(&mut self, opcode: &[u8], target: u64) -> Result<(), Impossible> {
        let from = self.here() + opcode.len() as u64 + 4;
        let distance = distance(from, target).ok_or(Impossible)?;
        self.raw(opcode);
        self.raw(&distance.to_le_bytes());
        Ok(())
    }

    /// The same to a place that comes later.
    pub fn forward(&mut self, opcode: &[u8]) -> Forward {
        self.raw(opcode);
        self.raw(&[0; 4]);
        Forward(self.bytes.len() - 4)
    }

    /// That place is here.
    pub fn lands(&mut self, jump: Forward) {
        let distance = (self.bytes.len() - jump.0 - 4) as u32;
        self.bytes[jump.0..jump.0 + 4].copy_from_slice(&distance.to_le_bytes());
    }

    /// `push` or `pop` of a general register.
    pub fn push_pop(&mut self, opcode: u8, register: u8) {
        if register >= 8 {
            self.raw(&[0x41]);
        }
        self.raw(&[opcode + (register & 7)]);
    }

    /// `lea register, [operand]`.
    pub fn lea(&mut self, register: u8, operand: MemoryOperand) -> Result<(), Impossible> {
        let i = Instruction::with2(Code::Lea_r64_m, general(register), operand).map_err(|_| Impossible)?;
        self.instruction(&i)
    }
}

/// The general register of that number; none if there is none.
pub fn general(number: u8) -> Register {
    match number {
        0..=15 => Register::RAX + u32::from(number),
        _ => Register::None,
    }
}

/// The distance of 32 bits from one address to another.
pub fn distance(from: u64, to: u64) -> Option<i32> {
    i32::try_from(to.wrapping_sub(from) as i64).ok()
}
