//! Frames of a call stack: registers, and the memory that the others lie in.

pub(super) const RBP: usize = 6;
pub(super) const RSP: usize = 7;
/// DWARF's number for the return address, the column after the 16 general registers.
const RIP: u16 = 16;

/// Reads the memory of the process whose stack is walked.
pub trait ReadMemory {
    /// The little-endian 64-bit word at `addr`, which need not be aligned; None if it cannot be read.
    fn read_u64(&self, addr: u64) -> Option<u64>;
}

/// The registers that a call stack is found from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Regs {
    /// By DWARF number: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15.
    pub general: [u64; 16],
    /// The program counter.
    pub rip: u64,
}

impl Regs {
    pub(super) fn get(&self, number: u16) -> Option<u64> {
        match number {
            RIP => Some(self.rip),
            _ => self.general.get(usize::from(number)).copied(),
        }
    }

    pub(super) fn rsp(&self) -> u64 {
        self.general[RSP]
    }
}

impl From<&libc::user_regs_struct> for Regs {
    fn from(r: &libc::user_regs_struct) -> Regs {
        let low = [r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp];
        let high = [r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15];
        let mut general = [0; 16];
        general[..8].copy_from_slice(&low);
        general[8..].copy_from_slice(&high);
        Regs { general, rip: r.rip }
    }
}

/// A function that is being executed.
pub(super) struct Frame {
    pub regs: Regs,
    /// The program counter is not a return address: see NOTE [Return addresses] of the module.
    pub exact: bool,
}

impl Frame {
    /// An address inside of the instruction that is being executed.
    pub fn address(&self) -> u64 {
        self.regs.rip.wrapping_sub(u64::from(!self.exact))
    }
}
