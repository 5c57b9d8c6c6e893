//! The check before an access: is it recorded already?

use iced_x86::{MemoryOperand, Register};
use vsrun_model::watch::{Operand, NO_REGISTER, READ_BIT, SLOW_OTHER, SLOW_PATHS, WRITE_BIT};

use super::super::sites::{Site, FLAGS};
use super::emit::{general, Buffer, Forward, Impossible};

const RAX: u8 = 0;
const RSP: u8 = 4;
/// Bytes below the stack pointer that are the function's own.
const RED_ZONE: u64 = 128;
const LOWER: &[u8] = &[0x48, 0x8d, 0x64, 0x24, 0x80]; // lea rsp, [rsp - 128]
const PUSH: u8 = 0x50;
const POP: u8 = 0x58;
/// Registers to take for an address where several are free: those first that need no prefix and no saving by convention.
const ORDER: [u8; 15] = [2, 1, 6, 7, 8, 9, 10, 11, 3, 12, 13, 14, 15, 5, 0];

/// What is executed where an access is not recorded yet, behind the unit.
pub struct Slow {
    /// The jump that leads there, and more for wide accesses.
    from: Vec<Forward>,
    /// Where the check goes on.
    back: u64,
    /// The register with the address of the shadow.
    address: u8,
    /// The stack pointer is below the red zone.
    lowered: bool,
    site: u32,
    path: usize,
}

/// The index of the slow path for an operand that the fast path can do.
fn path(operand: &Operand) -> Option<usize> {
    let plain = !operand.is(Operand::STRING) && !operand.is(Operand::ADDRESS_32) && operand.bit == NO_REGISTER;
    let reaches = operand.base != NO_REGISTER
        || operand.index != NO_REGISTER
        || operand.is(Operand::OF_MODULE)
        || i32::try_from(operand.displacement as i64).is_ok();
    let size = operand.size;
    (plain && reaches && size.is_power_of_two() && size <= 64)
        .then(|| size.trailing_zeros() as usize + if operand.is(Operand::WRITE) { 7 } else { 0 })
}

/// Emits the checks of a site. `table`: where the addresses of the slow paths lie; `bias`: where the module lies.
pub fn emit(buffer: &mut Buffer, site: &Site, id: u32, table: u64, bias: u64) -> Result<Vec<Slow>, Impossible> {
    let (claims, operands) = match site.operands.split_last() {
        Some((last, rest)) if last.is(Operand::CLAIMS) => (true, rest),
        _ => (false, &site.operands[..]),
    };
    let paths: Option<Vec<usize>> = operands.iter().map(path).collect();
    let Some(paths) = paths else {
        other(buffer, id, table)?;
        return Ok(Vec::new());
    };
    if claims {
        other(buffer, id | LOCKED, table)?;
    }
    let checks = operands.iter().zip(paths);
    checks.map(|(operand, path)| fast(buffer, operand, path, site.alive, id, bias)).collect()
}

/// Operands that the shim computes, all of a site at once.
fn other(buffer: &mut Buffer, id: u32, table: u64) -> Result<(), Impossible> {
    buffer.raw(LOWER);
    buffer.raw(&[0x68]); // push id
    buffer.raw(&id.to_le_bytes());
    buffer.relative(&[0xff, 0x15], table + 8 * SLOW_OTHER as u64)?; // call [table]
    raise(buffer, RED_ZONE + 8);
    Ok(())
}

/// lea rsp, [rsp + bytes]
fn raise(buffer: &mut Buffer, bytes: u64) {
    buffer.raw(&[0x48, 0x8d, 0xa4, 0x24]);
    buffer.raw(&(bytes as u32).to_le_bytes());
}

fn fast(
    buffer: &mut Buffer,
    operand: &Operand,
    path: usize,
    alive: u32,
    site: u32,
    bias: u64,
) -> Result<Slow, Impossible> {
    // One that compares with rax leaves none of the flags as they are, and the slow path has to find rax.
    let flags = alive & FLAGS != 0 && !operand.is(Operand::COMPARES);
    let is_alive = |register: u8| alive & 1 << register != 0;
    let free = ORDER.into_iter().find(|&r| !(is_alive(r) || flags && r == RAX));
    let used = |r: u8| operand.base == r || operand.index == r;
    // One of the address itself would do, but not rax, which the flags may need.
    let address = free.or_else(|| ORDER.into_iter().find(|&r| !used(r) && r != RAX)).ok_or(Impossible)?;
    let (spill, keep_rax) = (free.is_none(), flags && is_alive(RAX));
    let lowered = spill || keep_rax;
    if lowered {
        buffer.raw(LOWER);
    }
    if spill {
        buffer.push_pop(PUSH, address);
    }
    let below = if lowered { RED_ZONE } else { 0 } + if spill { 8 } else { 0 };
    let mut place = memory(operand, bias, below);
    if operand.is(Operand::OF_THREAD) {
        // What stands at the base is its own address. `lea` adds no segment, and leaves the flags as they are.
        buffer.raw(&[0x64, 0x48 | address >> 3 << 2, 0x8b, 0x04 | (address & 7) << 3, 0x25, 0, 0, 0, 0]); // mov address, fs:[0]
        if place.base != Register::None {
            buffer.lea(address, MemoryOperand::with_base_index(general(address), place.base))?;
        }
        place.base = general(address);
        place.displ_size = 8;
    }
    buffer.lea(address, place)?;
    if keep_rax {
        buffer.push_pop(PUSH, RAX);
    }
    if flags {
        buffer.raw(&[0x0f, 0x90, 0xc0, 0x9f]); // seto al; lahf
    }
    let bit = if operand.is(Operand::WRITE) { WRITE_BIT } else { READ_BIT };
    buffer.raw(&[0x48 | address >> 3, 0x0f, 0xba, 0xf8 | address & 7, bit as u8]); // btc address, bit
    let from = compare(buffer, address, operand.size);
    let back = buffer.here();
    if flags {
        buffer.raw(&[0x04, 0x7f, 0x9e]); // add al, 0x7f; sahf
    }
    if keep_rax {
        buffer.push_pop(POP, RAX);
    }
    if spill {
        buffer.push_pop(POP, address);
    }
    if lowered {
        raise(buffer, RED_ZONE);
    }
    let flag = |is: u16, flag: u32| if operand.is(is) { flag } else { 0 };
    let site = site | flag(Operand::LOCK, LOCKED) | flag(Operand::READS, READS);
    Ok(Slow { from, back, address, lowered, site, path })
}

/// In the number of the site that a slow path gets: the access is locked. Where operands are computed: only what is said of who may use memory
/// is to be done.
pub const LOCKED: u32 = 1 << 30;
/// The same: it reads before it writes, and is not locked.
pub const READS: u32 = 1 << 29;

/// The operand for `lea`, with the stack pointer lowered by `below`.
fn memory(operand: &Operand, bias: u64, below: u64) -> MemoryOperand {
    let (base, index) = (general(operand.base), general(operand.index));
    if operand.is(Operand::OF_MODULE) {
        return MemoryOperand::with_base_displ(Register::RIP, bias.wrapping_add(operand.displacement) as i64);
    }
    let raised = if operand.base == RSP { below } else { 0 };
    let displacement = operand.displacement.wrapping_add(raised) as i64;
    let size = if base == Register::None || displacement != 0 { 8 } else { 0 };
    let scale = if index == Register::None { 1 } else { u32::from(operand.scale) };
    MemoryOperand::new(base, index, scale, displacement, size, false, Register::None)
}

/// Compares `size` bytes of shadow with "recorded": the jumps to the slow path.
fn compare(buffer: &mut Buffer, address: u8, size: u16) -> Vec<Forward> {
    let mut jumps = Vec::new();
    let wide = size.min(8);
    for offset in (0..size).step_by(usize::from(wide)) {
        let high = address >> 3;
        match wide {
            1 => buffer.raw(&[0x40 | high, 0x80]),
            2 => buffer.raw(&[0x66, 0x40 | high, 0x83]),
            4 => buffer.raw(&[0x40 | high, 0x83]),
            _ => buffer.raw(&[0x48 | high, 0x83]),
        }
        buffer.raw(&[0x78 | address & 7]); // cmp [address + offset], -1
        if address & 7 == RSP {
            buffer.raw(&[0x24]);
        }
        buffer.raw(&[offset as u8, 0xff]);
        jumps.push(buffer.forward(&[0x0f, 0x85])); // jne
    }
    jumps
}

impl Slow {
    /// Emits it: hands the address of the shadow and the number of the site to the slow path.
    pub fn emit(&self, buffer: &mut Buffer, table: u64) -> Result<(), Impossible> {
        self.from.iter().for_each(|jump| buffer.lands(*jump));
        if !self.lowered {
            buffer.raw(LOWER);
        }
        buffer.push_pop(PUSH, self.address);
        buffer.raw(&[0x68]);
        buffer.raw(&self.site.to_le_bytes());
        debug_assert!(self.path < SLOW_PATHS);
        buffer.relative(&[0xff, 0x15], table + 8 * self.path as u64)?;
        raise(buffer, 16 + if self.lowered { 0 } else { RED_ZONE });
        buffer.relative(&[0xe9], self.back)
    }
}
