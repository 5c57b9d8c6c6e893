//! Frames of a call stack: registers, the memory that the others lie in, and the step to the caller where no table tells it.

use crate::binary::Mapping;

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

/// The mapping around `address`, if code in it can run.
pub(super) fn executable_at(maps: &[Mapping], address: u64) -> Option<&Mapping> {
    maps.iter().find(|m| m.is_executable() && m.contains(address))
}

pub(super) fn without_table(maps: &[Mapping], mem: &dyn ReadMemory, frame: &Frame) -> Option<Frame> {
    let regs = &frame.regs;
    if executable_at(maps, frame.address()).is_none() {
        return after_wild_call(mem, regs);
    }
    if returns_from_signal(mem, regs.rip) {
        return interrupted(mem, regs.rsp()).map(|regs| Frame { regs, exact: true });
    }
    by_frame_pointer(mem, regs)
}

/// Where nothing can be executed, nothing was: a call has just pushed its return address.
fn after_wild_call(mem: &dyn ReadMemory, regs: &Regs) -> Option<Frame> {
    let mut caller = *regs;
    caller.rip = mem.read_u64(regs.rsp())?;
    caller.general[RSP] = regs.rsp().wrapping_add(8);
    Some(Frame { regs: caller, exact: false })
}

/// The code of a signal handler's return: the system call rt_sigreturn, number 15. Debuggers know it by these bytes.
pub fn returns_from_signal(mem: &dyn ReadMemory, rip: u64) -> bool {
    const MOV_RAX_15_SYSCALL: [u8; 9] = [0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05];
    const MOV_EAX_15_SYSCALL: [u8; 7] = [0xb8, 15, 0, 0, 0, 0x0f, 0x05];
    let (Some(first), Some(second)) = (mem.read_u64(rip), mem.read_u64(rip.wrapping_add(1))) else { return false };
    let mut code = [0; 9];
    code[..8].copy_from_slice(&first.to_le_bytes());
    code[8] = second.to_le_bytes()[7];
    code == MOV_RAX_15_SYSCALL || code.starts_with(&MOV_EAX_15_SYSCALL)
}

/// The registers in the `ucontext` that the kernel put on the stack, which is where the handler's return leaves rsp.
fn interrupted(mem: &dyn ReadMemory, ucontext: u64) -> Option<Regs> {
    const GREGS: u64 = 40; // uc_flags, uc_link, uc_stack
    const ORDER: [usize; 16] = [8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7];
    let word = |index: u64| mem.read_u64(ucontext.wrapping_add(GREGS + 8 * index));
    let mut regs = Regs::default();
    for (index, number) in (0..).zip(ORDER) {
        regs.general[number] = word(index)?;
    }
    regs.rip = word(16)?;
    Some(regs)
}

/// Takes rbp to point to the caller's rbp, above which is the return address. The stack grows down, so rbp must lie
/// above rsp, and the caller's frame above that.
fn by_frame_pointer(mem: &dyn ReadMemory, regs: &Regs) -> Option<Frame> {
    let rbp = regs.general[RBP];
    if rbp < regs.rsp() || !rbp.is_multiple_of(8) {
        return None;
    }
    let mut caller = *regs;
    caller.general[RBP] = mem.read_u64(rbp)?;
    caller.rip = mem.read_u64(rbp.checked_add(8)?)?;
    caller.general[RSP] = rbp.checked_add(16)?;
    Some(Frame { regs: caller, exact: false })
}
