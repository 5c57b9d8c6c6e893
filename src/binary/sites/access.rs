//! What memory one instruction accesses.

use iced_x86::{Instruction, InstructionInfo, MemorySize, Mnemonic, OpAccess, OpKind, Register, UsedMemory};
use vsrun_model::watch::{Operand, NO_REGISTER};

use super::{Choice, Counts, Reason};

/// Where an instruction stands.
pub struct Around<'a> {
    /// What counts as a site.
    pub choice: Choice,
    /// The function has its frame pointer in rbp.
    pub frame: bool,
    /// Nobody else can know where its frame is.
    pub private: bool,
    /// What lies at that address never changes while the program runs.
    pub is_constant: &'a dyn Fn(u64) -> bool,
}

/// The number of a general register.
pub fn number(register: Register) -> u8 {
    if register.is_gpr() {
        register.full_register().number() as u8
    } else {
        NO_REGISTER
    }
}

/// What `i` accesses of what others may reach, or why that is not known.
pub fn operands(
    i: &Instruction,
    info: &InstructionInfo,
    around: &Around,
    counts: &mut Counts,
) -> Result<Vec<Operand>, Reason> {
    if i.is_string_instruction() {
        return string(i);
    }
    let mut found = in_memory(i, info, around, counts)?;
    if is_fence(i) {
        found.push(Operand::OF_FENCE);
    }
    Ok(found)
}

/// No later load comes before what the instruction's thread has stored until then (Intel SDM 3A, 9.2.3.9, 9.2.5 and 9.3).
fn is_fence(i: &Instruction) -> bool {
    use Mnemonic as M;
    let memory = (0..i.op_count()).any(|n| i.op_kind(n) == OpKind::Memory);
    i.has_lock_prefix()
        || matches!(i.mnemonic(), M::Mfence | M::Cpuid | M::Serialize)
        || i.mnemonic() == M::Xchg && memory
}

/// What it accesses, but for strings.
fn in_memory(
    i: &Instruction,
    info: &InstructionInfo,
    around: &Around,
    counts: &mut Counts,
) -> Result<Vec<Operand>, Reason> {
    let mut found: Vec<Operand> = Vec::new();
    for used in info.used_memory() {
        let write = match used.access() {
            OpAccess::Read | OpAccess::CondRead => false,
            OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite => true,
            _ => continue,
        };
        if is_elsewhere(i, used, around, write, counts) {
            continue;
        }
        let mut operand = plain(i, used)?;
        operand.flags |= if write { Operand::WRITE } else { 0 };
        if write && (i.has_lock_prefix() || i.mnemonic() == Mnemonic::Xchg) {
            operand.flags |= Operand::LOCK;
            operand.flags |= if i.mnemonic() == Mnemonic::Cmpxchg { Operand::COMPARES } else { 0 };
        } else if matches!(used.access(), OpAccess::ReadWrite | OpAccess::ReadCondWrite) {
            operand.flags |= Operand::READS;
        }
        let place =
            |o: &Operand| (o.base, o.index, o.scale, o.displacement, o.size, o.bit, o.flags & Operand::OF_THREAD);
        match found.iter_mut().find(|o| place(o) == place(&operand)) {
            Some(same) => same.flags |= operand.flags,
            None => found.push(operand),
        }
    }
    Ok(found)
}

/// Memory that is the thread's own, or constant, or of no interest.
fn is_elsewhere(i: &Instruction, used: &UsedMemory, around: &Around, write: bool, counts: &mut Counts) -> bool {
    if used.segment() == Register::GS {
        counts.local += 1;
        return true;
    }
    if used.segment() == Register::FS {
        // Variables lie below the base, and others may have been given their addresses. What lies above is libc's (System V ABI for x86-64, 3.4.2).
        let of_libc =
            used.base() == Register::None && used.index() == Register::None && used.displacement() as i64 >= 0;
        counts.local += u32::from(of_libc);
        return of_libc;
    }
    let on_stack = used.base() == Register::RSP || around.frame && used.base() == Register::RBP;
    if on_stack {
        counts.stack += 1;
        // What is pushed and popped, and where rsp changes meanwhile, is no operand of its own.
        let plain = is_explicit(i, used) && !i.is_stack_instruction() && !i.is_call_near_indirect();
        return !(around.choice.stack && plain && !around.private);
    }
    let fixed = matches!(used.base(), Register::None | Register::RIP) && used.index() == Register::None;
    if fixed && !write && (around.is_constant)(absolute(i, used)) {
        counts.constant += 1;
        return true;
    }
    false
}

/// It is the operand that the instruction names.
fn is_explicit(i: &Instruction, used: &UsedMemory) -> bool {
    let named = (0..i.op_count()).any(|n| i.op_kind(n) == OpKind::Memory);
    if i.is_ip_rel_memory_operand() {
        return matches!(used.base(), Register::None | Register::RIP | Register::EIP) && used.index() == Register::None;
    }
    named && i.memory_base() == used.base() && i.memory_index() == used.index()
}

fn absolute(i: &Instruction, used: &UsedMemory) -> u64 {
    if i.is_ip_rel_memory_operand() {
        i.ip_rel_memory_address()
    } else {
        used.displacement()
    }
}

/// An operand in memory that is none of a string instruction.
fn plain(i: &Instruction, used: &UsedMemory) -> Result<Operand, Reason> {
    use Mnemonic as M;
    if used.index().is_vector_register() {
        return Err(Reason::Gather);
    }
    if i.has_op_mask() || is_masked(i.mnemonic()) {
        return Err(Reason::Masked);
    }
    if !is_explicit(i, used) || used.base().size() == 2 || used.index().size() == 1 {
        return Err(Reason::Operand);
    }
    if is_state(i.mnemonic()) {
        return Err(Reason::State);
    }
    let size = match used.memory_size().size() {
        0 => i.memory_size().size(),
        size => size,
    };
    if size == 0 || size > 512 || i.memory_size() == MemorySize::Unknown {
        return Err(Reason::Operand);
    }
    let relative = i.is_ip_rel_memory_operand();
    let short = used.base().is_gpr32() || used.index().is_gpr32();
    let bit = match i.mnemonic() {
        M::Bt | M::Bts | M::Btr | M::Btc if i.op1_kind() == OpKind::Register => number(i.op1_register()),
        _ => NO_REGISTER,
    };
    Ok(Operand {
        displacement: if relative { i.ip_rel_memory_address() } else { used.displacement() },
        base: if relative { NO_REGISTER } else { number(used.base()) },
        index: number(used.index()),
        scale: used.scale() as u8,
        bit,
        size: size as u16,
        flags: if relative { Operand::OF_MODULE } else { 0 }
            | if short { Operand::ADDRESS_32 } else { 0 }
            | if used.segment() == Register::FS { Operand::OF_THREAD } else { 0 },
    })
}

fn is_masked(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Vmaskmovps | M::Vmaskmovpd | M::Vpmaskmovd | M::Vpmaskmovq | M::Maskmovq | M::Maskmovdqu | M::Vmaskmovdqu
    )
}

/// How much these access depends on the processor.
fn is_state(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Xsave
            | M::Xsave64
            | M::Xsavec
            | M::Xsavec64
            | M::Xsaveopt
            | M::Xsaveopt64
            | M::Xsaves
            | M::Xsaves64
            | M::Xrstor
            | M::Xrstor64
            | M::Xrstors
            | M::Xrstors64
    )
}

/// The operands of a string instruction: from rsi, then to or at rdi.
fn string(i: &Instruction) -> Result<Vec<Operand>, Reason> {
    use Mnemonic as M;
    let (from, to, writes) = match i.mnemonic() {
        M::Movsb | M::Movsw | M::Movsd | M::Movsq => (true, true, true),
        M::Cmpsb | M::Cmpsw | M::Cmpsd | M::Cmpsq => (true, true, false),
        M::Stosb | M::Stosw | M::Stosd | M::Stosq => (false, true, true),
        M::Scasb | M::Scasw | M::Scasd | M::Scasq => (false, true, false),
        M::Lodsb | M::Lodsw | M::Lodsd | M::Lodsq => (true, false, false),
        // Ports: not for programs.
        _ => return Ok(Vec::new()),
    };
    let compares = to && !writes;
    let repeated = i.has_rep_prefix() || i.has_repne_prefix();
    let flags = Operand::STRING
        | if repeated { Operand::REPEATED } else { 0 }
        | if compares && i.has_repe_prefix() { Operand::WHILE_EQUAL } else { 0 }
        | if compares && i.has_repne_prefix() { Operand::WHILE_UNEQUAL } else { 0 };
    let short = (0..i.op_count()).any(|n| {
        matches!(i.op_kind(n), OpKind::MemoryESEDI | OpKind::MemorySegESI | OpKind::MemoryESDI | OpKind::MemorySegSI)
    });
    if short || from && matches!(i.memory_segment(), Register::FS | Register::GS) {
        return Err(Reason::Operand);
    }
    let size = i.memory_size().size() as u16;
    let operand = |base: Register, flags: u16| Operand {
        displacement: 0,
        base: number(base),
        index: NO_REGISTER,
        scale: 1,
        bit: NO_REGISTER,
        size,
        flags,
    };
    let write = if writes { Operand::WRITE } else { 0 };
    let sides = [from.then(|| operand(Register::RSI, flags)), to.then(|| operand(Register::RDI, flags | write))];
    Ok(sides.into_iter().flatten().collect())
}
