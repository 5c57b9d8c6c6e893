//! The slow paths: an access that is not recorded yet. A trampoline calls them with, from the stack pointer up: its return
//! address, the number of the site, the address of the shadow (not for `vs_watch_other`). Nothing is changed but the flags, which the
//! trampoline has kept if they matter; `vs_watch_other` keeps them too.

use core::cell::UnsafeCell;
use core::mem::offset_of;

use vsrun_model::watch::{Entry, Header, Operand, Predicate, READ_BIT, SLOW_PATHS, WATCH_ADDR, WRITE_BIT};

use super::log::{self, Claimed, Touch, LOG};
use crate::sys::{fs_base, load, readable};

/// What runs in Rust has a stack of its own: that of the program may be small.
const STACK: usize = 64 << 10;

#[repr(align(64))]
struct Stack(#[allow(dead_code)] UnsafeCell<[u8; STACK]>);
// SAFETY: one kernel thread uses it, and a slow path is not entered within one.
unsafe impl Sync for Stack {}

static OWN_STACK: Stack = Stack(UnsafeCell::new([0; STACK]));

core::arch::global_asm!(
    // Marks \\size bytes at \\register as recorded.
    ".macro VS_MARK register, size",
    ".if \\size == 1",
    " mov byte ptr [\\register], -1",
    ".elseif \\size == 2",
    " mov word ptr [\\register], -1",
    ".elseif \\size == 4",
    " mov dword ptr [\\register], -1",
    ".else",
    " mov qword ptr [\\register], -1",
    ".if \\size >= 16",
    " mov qword ptr [\\register + 8], -1",
    ".endif",
    ".if \\size >= 32",
    " mov qword ptr [\\register + 16], -1",
    " mov qword ptr [\\register + 24], -1",
    ".endif",
    ".if \\size >= 64",
    " mov qword ptr [\\register + 32], -1",
    " mov qword ptr [\\register + 40], -1",
    " mov qword ptr [\\register + 48], -1",
    " mov qword ptr [\\register + 56], -1",
    ".endif",
    ".endif",
    ".endm",
    // Goes to where the turn is passed if the memory whose shadow is at rax is an object.
    ".macro VS_OBJECT size, write",
    " cmp byte ptr [rax], {object}",
    " je 8f",
    ".if \\size > 1",
    " cmp byte ptr [rax + \\size - 1], {object}",
    " je 8f",
    ".endif",
    ".if \\size >= 16",
    " cmp byte ptr [rax + 8], {object}",
    " je 8f",
    ".endif",
    ".if \\size >= 32",
    " cmp byte ptr [rax + 16], {object}",
    " je 8f",
    " cmp byte ptr [rax + 24], {object}",
    " je 8f",
    ".endif",
    ".if \\size >= 64",
    " cmp byte ptr [rax + 32], {object}",
    " je 8f",
    " cmp byte ptr [rax + 40], {object}",
    " je 8f",
    " cmp byte ptr [rax + 48], {object}",
    " je 8f",
    " cmp byte ptr [rax + 56], {object}",
    " je 8f",
    ".endif",
    ".endm",
    // Where `Entry::what` has the size of all accesses that it stands for; and what it is for one.
    ".set VS_BYTES, (1 << {unit}) - 4",
    ".macro VS_SLOW name, size, write, logarithm",
    ".set VS_WHAT, (\\logarithm + 1) << {unit} | \\size * 4 | \\write",
    "\\name:",
    " push rax",
    " push rcx",
    " push rdx",
    " push rsi",
    " mov rax, [rsp + 48]",
    " VS_OBJECT \\size, \\write",
    " VS_MARK rax, \\size",
    ".if \\write",
    " btc rax, {write_bit}",
    " mov rcx, rax",
    " btc rcx, {read_bit}",
    " VS_MARK rcx, \\size",
    ".else",
    " btc rax, {read_bit}",
    ".endif",
    // rax: the address. Does it come next to what the last entry of its site stands for?
    " mov ecx, [rsp + 40]",
    " mov esi, ecx",
    " and ecx, {last} - 1",
    " shl ecx, {last_size}",
    " lea rdx, [rip + {log} + {last_at}]",
    " add rdx, rcx",
    " cmp byte ptr [rip + {log} + {merges} + \\write], 0",
    " je 5f",
    " mov rcx, [rdx]",
    " cmp rcx, [rip + {log}]",
    " jae 5f",
    " xor esi, [rcx + 8]",
    " jnz 3f",
    // Right behind it, or before?
    " mov esi, [rcx + 12]",
    " xor esi, VS_WHAT & ~VS_BYTES",
    " test esi, ~VS_BYTES",
    " jnz 5f",
    " shr esi, 2",
    " cmp esi, {max_size}",
    " jae 5f",
    " add rsi, [rcx]",
    " cmp rsi, rax",
    " je 4f",
    " lea rsi, [rax + \\size]",
    " cmp rsi, [rcx]",
    " jne 2f",
    " mov [rcx], rax",
    "4: add dword ptr [rcx + 12], \\size * 4",
    "7: pop rsi",
    " pop rdx",
    " pop rcx",
    " pop rax",
    " ret",
    // It is a single one: the two have a distance, in units of their size, for which there is room.
    "2: cmp dword ptr [rcx + 12], VS_WHAT",
    " jne 5f",
    " mov rsi, rax",
    " sub rsi, [rcx]",
    ".if \\size > 1",
    " test esi, \\size - 1",
    " jnz 5f",
    ".endif",
    " mov [rdx + {last_stride}], rsi",
    " add rsi, 1 << ({unit} - {stride} - 1 + \\logarithm)",
    " shr rsi, {unit} - {stride} + \\logarithm",
    " jnz 5f",
    " mov rsi, [rdx + {last_stride}]",
    " add rax, rsi",
    " mov [rdx + {last_next}], rax",
    " sar rsi, \\logarithm",
    " shl esi, {stride}",
    " and esi, VS_BYTES",
    " or esi, (VS_WHAT & ~VS_BYTES) | 2 * 4",
    " mov [rcx + 12], esi",
    " or dword ptr [rcx + 8], {strided}",
    " jmp 7b",
    // In the same distance again?
    "3: cmp esi, {strided}",
    " jne 5f",
    " cmp rax, [rdx + {last_next}]",
    " jne 5f",
    " mov esi, [rcx + 12]",
    " xor esi, VS_WHAT & ~VS_BYTES",
    " test esi, ~VS_BYTES",
    " jnz 5f",
    " and esi, {most} * 4",
    " cmp esi, {most} * 4",
    " je 5f",
    " add dword ptr [rcx + 12], 4",
    " add rax, [rdx + {last_stride}]",
    " mov [rdx + {last_next}], rax",
    " jmp 7b",
    // A new entry.
    "5: mov rcx, [rip + {log}]",
    " mov esi, [rsp + 40]",
    " mov [rcx], rax",
    " mov [rcx + 8], esi",
    " mov dword ptr [rcx + 12], VS_WHAT",
    " mov [rdx], rcx",
    " add rcx, 16",
    " mov [rip + {log}], rcx",
    " cmp rcx, [rip + {log} + 8]",
    " pop rsi",
    " pop rdx",
    " pop rcx",
    " pop rax",
    " jae vs_watch_full",
    " ret",
    "8: pop rsi",
    " pop rdx",
    " pop rcx",
    " pop rax",
    " push \\size * 4 + \\write",
    " jmp vs_watch_object",
    ".endm",
    // The flags and all registers, so that rax is what the stack pointer is at; and the way back, from rbp.
    ".macro VS_PUSH",
    " pushfq",
    " push r15",
    " push r14",
    " push r13",
    " push r12",
    " push r11",
    " push r10",
    " push r9",
    " push r8",
    " push rdi",
    " push rsi",
    " push rbp",
    " push rsp",
    " push rbx",
    " push rdx",
    " push rcx",
    " push rax",
    ".endm",
    ".macro VS_POP",
    " mov rsp, rbp",
    " pop rax",
    " pop rcx",
    " pop rdx",
    " pop rbx",
    " lea rsp, [rsp + 8]",
    " pop rbp",
    " pop rsi",
    " pop rdi",
    " pop r8",
    " pop r9",
    " pop r10",
    " pop r11",
    " pop r12",
    " pop r13",
    " pop r14",
    " pop r15",
    " popfq",
    ".endm",
    // Calls \\function with where the registers are kept: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15, flags.
    ".macro VS_KEEPING function",
    " VS_PUSH",
    " mov rdi, rsp",
    " mov rbp, rsp",
    " lea rsp, [rip + {stack} + {size}]",
    " sub rsp, 512",
    " fxsave64 [rsp]",
    " cld",
    " call \\function",
    " fxrstor64 [rsp]",
    " VS_POP",
    " ret",
    ".endm",
    // The same on the program's stack, with all that the processor has: \\function may pass the turn.
    ".macro VS_PASSING function",
    " VS_PUSH",
    " mov rdi, rsp",
    " mov rbp, rsp",
    " sub rsp, [rip + {log} + 24]",
    " and rsp, -64",
    // The header of the area.
    " xor eax, eax",
    " mov [rsp + 512], rax",
    " mov [rsp + 520], rax",
    " mov [rsp + 528], rax",
    " mov [rsp + 536], rax",
    " mov [rsp + 544], rax",
    " mov [rsp + 552], rax",
    " mov [rsp + 560], rax",
    " mov [rsp + 568], rax",
    " mov eax, -1",
    " mov edx, -1",
    " xsave64 [rsp]",
    " cld",
    " call \\function",
    " mov eax, -1",
    " mov edx, -1",
    " xrstor64 [rsp]",
    " VS_POP",
    ".endm",
    ".text",
    "vs_watch_full: VS_KEEPING {full}",
    "vs_watch_other:",
    " pushfq",
    " cmp qword ptr [rip + {log} + 16], 0",
    " jne 1f",
    " popfq",
    " VS_KEEPING {other}",
    "1: popfq",
    " VS_PASSING {other}",
    " ret",
    "vs_watch_object: VS_PASSING {touched}",
    " lea rsp, [rsp + 8]",
    " ret",
    "VS_SLOW vs_watch_r1, 1, 0, 0",
    "VS_SLOW vs_watch_r2, 2, 0, 1",
    "VS_SLOW vs_watch_r4, 4, 0, 2",
    "VS_SLOW vs_watch_r8, 8, 0, 3",
    "VS_SLOW vs_watch_r16, 16, 0, 4",
    "VS_SLOW vs_watch_r32, 32, 0, 5",
    "VS_SLOW vs_watch_r64, 64, 0, 6",
    "VS_SLOW vs_watch_w1, 1, 1, 0",
    "VS_SLOW vs_watch_w2, 2, 1, 1",
    "VS_SLOW vs_watch_w4, 4, 1, 2",
    "VS_SLOW vs_watch_w8, 8, 1, 3",
    "VS_SLOW vs_watch_w16, 16, 1, 4",
    "VS_SLOW vs_watch_w32, 32, 1, 5",
    "VS_SLOW vs_watch_w64, 64, 1, 6",
    ".pushsection .data.rel.ro, \"aw\"",
    ".balign 8",
    ".hidden vs_watch_slow",
    ".globl vs_watch_slow",
    "vs_watch_slow:",
    ".quad vs_watch_r1, vs_watch_r2, vs_watch_r4, vs_watch_r8, vs_watch_r16, vs_watch_r32, vs_watch_r64",
    ".quad vs_watch_w1, vs_watch_w2, vs_watch_w4, vs_watch_w8, vs_watch_w16, vs_watch_w32, vs_watch_w64",
    ".quad vs_watch_other",
    ".popsection",
    log = sym LOG,
    stack = sym OWN_STACK,
    size = const STACK,
    read_bit = const vsrun_model::watch::READ_BIT,
    write_bit = const vsrun_model::watch::WRITE_BIT,
    full = sym full,
    other = sym other,
    touched = sym touched,
    object = const log::OBJECT,
    merges = const log::MERGES,
    last = const log::LAST,
    last_at = const log::LAST_AT,
    last_size = const log::LAST_SIZE,
    last_next = const log::LAST_NEXT,
    last_stride = const log::LAST_STRIDE,
    strided = const Entry::STRIDED,
    stride = const Entry::STRIDE,
    most = const Entry::MOST,
    unit = const Entry::UNIT,
    max_size = const Entry::MAX_SIZE,
);

extern "C" {
    static vs_watch_slow: [u64; SLOW_PATHS];
}

/// Where the slow paths are.
pub fn paths() -> [u64; SLOW_PATHS] {
    // SAFETY: the table above, filled by the loader.
    unsafe { vs_watch_slow }
}

extern "C" fn full(_registers: u64) {
    log::is_full();
}

/// What `touched` finds behind registers and flags: size and way, return address, number of the site, address of the shadow.
const WHAT_AT: u64 = 17 * 8;

/// An access to what is an object, at least in part.
extern "C" fn touched(frame: u64) {
    let [what, _, site, shadow]: [u64; 4] = load(frame + WHAT_AT);
    let (what, site) = (what as u32, site as u32);
    let (writes, locked) = (what & 1 != 0, site & log::LOCKED != 0);
    let address = shadow ^ 1 << if writes { WRITE_BIT } else { READ_BIT };
    let reads = site & log::READS != 0;
    let size = u64::from(what >> 2);
    let number = site & !(log::LOCKED | log::READS);
    // Registers lie there as in `VS_PUSH`, rax first.
    let compares = (locked && operand_of(number).is_some_and(|o| o.is(Operand::COMPARES))).then(|| load(frame));
    log::begins();
    log::pieces(
        Touch {
            address,
            size,
            whole: (address, address.wrapping_add(size)),
            site: number,
            writes,
            reads,
            locked,
            compares,
            wide: false,
            frame,
            in_call: false,
        },
        true,
    );
    wipe();
}

/// Leaves zeros where the library has used the program's stack: what a loop finds there is then no matter of who else has run meanwhile
/// (see `state`).
#[inline(never)]
fn wipe() {
    const USED: usize = 3 << 10;
    core::hint::black_box(&mut [0u8; USED]);
}

// What `other` finds behind the registers.
const FLAGS_AT: u64 = 16 * 8;
const SITE_AT: u64 = 18 * 8;
/// From there to the stack pointer of the program: flags, return address, number, red zone.
const STACK_AT: u64 = 19 * 8 + 128;
const DIRECTION: u64 = 0x400;

/// It is in a loop of which nobody can tell how many rounds it has made.
pub fn is_untold(site: u32) -> bool {
    operand_of(site).is_some_and(|o| o.is(Operand::UNTOLD))
}

/// The first operand of a site that is an instruction.
fn operand_of(site: u32) -> Option<Operand> {
    let of = |field: usize| load::<u64>(WATCH_ADDR + field as u64);
    if site & Entry::FUNCTION != 0 || u64::from(site) >= of(offset_of!(Header, sites) + 8) {
        return None;
    }
    let first: u32 = load(WATCH_ADDR + of(offset_of!(Header, sites)) + 4 * u64::from(site));
    let at = of(offset_of!(Header, operands)) + size_of::<Operand>() as u64 * u64::from(first);
    Some(load(WATCH_ADDR + at))
}

/// Operands that have to be computed, and predicates that change.
extern "C" fn other(frame: u64) {
    let mut registers: [u64; 16] = load(frame);
    registers[4] = frame + STACK_AT;
    let number: u32 = load(frame + SITE_AT);
    // A plain operand is checked by code of its own, behind this.
    let (site, only_claims) = (number & !log::LOCKED, number & log::LOCKED != 0);
    let down = load::<u64>(frame + FLAGS_AT) & DIRECTION != 0;
    let header: Header = load(WATCH_ADDR);
    if u64::from(site) >= header.sites[1] {
        return;
    }
    let [first, mut end]: [u32; 2] = load(WATCH_ADDR + header.sites[0] + 4 * u64::from(site));
    let operand =
        |n: u32| load::<Operand>(WATCH_ADDR + header.operands[0] + size_of::<Operand>() as u64 * u64::from(n));
    if first < end && operand(end - 1).is(Operand::CLAIMS) {
        end -= 1;
        let claims = operand(end);
        for n in (0..u64::from(claims.size)).map(|n| claims.displacement + n) {
            let predicate: Predicate = load(WATCH_ADDR + header.predicates[0] + size_of::<Predicate>() as u64 * n);
            if let Some((at, size, to)) = predicate.of(&registers) {
                log::claims(Claimed { what: predicate.what, at, size, to, site });
            }
        }
    }
    if only_claims {
        return wipe();
    }
    let steps = if first < end { steps(&operand(first), &operand(end - 1), &registers, down) } else { 0 };
    // What it reads comes first.
    let of = |writes: bool| (first..end).map(operand).filter(move |o| o.is(Operand::WRITE) == writes);
    for o in of(false).chain(of(true)) {
        let (writes, locked) = (o.is(Operand::WRITE), o.is(Operand::LOCK));
        let (address, size) = (o.address_of_bit(&registers, fs_base()), u64::from(o.size));
        if !o.is(Operand::STRING) {
            log::range(address, size, site, writes, locked);
        } else if steps > 0 {
            let length = size.saturating_mul(steps);
            let lowest = if down { address.wrapping_sub(length - size) } else { address };
            log::range(lowest, length, site, writes, locked);
        }
    }
    wipe();
}

/// How many elements a string instruction handles, whose operands are `a` and `b` (or both the same one).
fn steps(a: &Operand, b: &Operand, registers: &[u64; 16], down: bool) -> u64 {
    let count = if a.is(Operand::REPEATED) { registers[1] } else { 1 };
    if !a.is(Operand::WHILE_EQUAL) && !a.is(Operand::WHILE_UNEQUAL) {
        return count;
    }
    let size = u64::from(a.size);
    let step = if down { size.wrapping_neg() } else { size };
    let element = |operand: &Operand, n: u64| {
        let at = operand.address(registers, 0).wrapping_add(step.wrapping_mul(n));
        // Where nothing is, the instruction faults.
        (readable(at, size) == size).then(|| match size {
            1 => u64::from(load::<u8>(at)),
            2 => u64::from(load::<u16>(at)),
            4 => u64::from(load::<u32>(at)),
            _ => load::<u64>(at),
        })
    };
    let compares_register = a.base == b.base;
    let bits = if size == 8 { u64::MAX } else { (1 << (8 * size)) - 1 };
    for n in 0..count {
        let left = if compares_register { Some(registers[0] & bits) } else { element(a, n) };
        let (Some(left), Some(right)) = (left, element(b, n)) else { return n };
        if (left == right) != a.is(Operand::WHILE_EQUAL) {
            return n + 1;
        }
    }
    count
}
