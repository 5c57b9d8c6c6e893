//! The kernel's ucontext, which signal handlers get: offsets of uc_stack, of registers, of the number of the trap, of uc_sigmask.

/// uc_stack: address, flags, size.
pub const STACK: u64 = 16;
pub const R8: u64 = 40;
pub const R9: u64 = 48;
pub const R10: u64 = 56;
pub const R12: u64 = 72;
pub const R13: u64 = 80;
pub const R14: u64 = 88;
pub const R15: u64 = 96;
pub const RDI: u64 = 104;
pub const RSI: u64 = 112;
pub const RBP: u64 = 120;
pub const RBX: u64 = 128;
pub const RDX: u64 = 136;
pub const RAX: u64 = 144;
pub const RCX: u64 = 152;
pub const RSP: u64 = 160;
pub const RIP: u64 = 168;
pub const TRAPNO: u64 = 200;
pub const SIGMASK: u64 = 296;
