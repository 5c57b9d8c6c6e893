//! Loops that read memory and count their rounds, of which nobody can tell how many they have made: they leave with what they have read, and what
//! is different from round to round is not alive any more. Spin loops of libraries are like that, where code is optimized.
//!
//! What one round hands on to the next, and what is computed from that, is *carried*. It may decide that the loop ends by itself, and nothing else:
//! where a loop is left for another reason, nothing that is carried is alive, and no address comes from it. What is carried may not be held against what
//! is read: then it would matter in which round that changes. Such a loop goes round in the same way for as long as it reads the same, whatever its count,
//! but for its end.

use std::collections::BTreeSet;

use iced_x86::{FlowControl, Instruction, InstructionInfo, InstructionInfoFactory, Mnemonic, OpAccess, RflagsBits};

use super::live::{alive_by_convention, Effect, ARITHMETIC};
use super::FLAGS;

/// Longest loop, in instructions.
const LONGEST: usize = 32;

/// The carry flag by itself, which inc and dec leave alone; [`FLAGS`] stands for the others here.
const CARRY: u32 = FLAGS << 1;

/// Arithmetic flags as bits.
fn flags(of: u32) -> u32 {
    let carry = if of & RflagsBits::CF != 0 { CARRY } else { 0 };
    carry | if of & ARITHMETIC & !RflagsBits::CF != 0 { FLAGS } else { 0 }
}

/// What an instruction does to registers, by number, and to flags.
#[derive(Clone, Copy)]
struct Uses {
    /// It may depend on these.
    reads: u32,
    /// It may change these,
    writes: u32,
    /// and of these nothing is left.
    replaces: u32,
    /// It reads memory.
    looks: bool,
}

impl Uses {
    /// `None`: it does something that is not followed here.
    fn of(i: &Instruction, info: &InstructionInfo) -> Option<Uses> {
        use FlowControl as F;
        let goes_on = matches!(i.flow_control(), F::Next | F::ConditionalBranch | F::UnconditionalBranch);
        let only_reads = info.used_memory().iter().all(|m| m.access() == OpAccess::Read);
        if !goes_on || !only_reads || i.is_string_instruction() || asks_the_processor(i) {
            return None;
        }
        let effect = Effect::of(i, info);
        let looks = !info.used_memory().is_empty();
        let (reads, replaces) = (effect.reads & !FLAGS | flags(i.rflags_read()), effect.writes & !FLAGS);
        let mut uses = Uses { reads, writes: replaces, replaces, looks };
        for used in info.used_registers() {
            let register = used.register();
            if register.is_segment_register() {
                continue;
            }
            if !register.is_gpr() {
                return None;
            }
            let writes =
                !matches!(used.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess | OpAccess::None);
            uses.writes |= if writes { 1 << register.full_register().number() } else { 0 };
        }
        let (changed, others) = (i.rflags_modified() & ARITHMETIC, ARITHMETIC & !RflagsBits::CF);
        uses.writes |= flags(changed);
        // A count of 0 leaves them as they are: then none is said to be written for certain.
        let certain = effect.writes & FLAGS != 0 || matches!(i.mnemonic(), Mnemonic::Inc | Mnemonic::Dec);
        uses.replaces |= if certain { flags(if changed & others == others { changed } else { 0 }) } else { 0 };
        Some(uses)
    }
}

/// It gives something else each time.
fn asks_the_processor(i: &Instruction) -> bool {
    use Mnemonic as M;
    matches!(i.mnemonic(), M::Rdtsc | M::Rdtscp | M::Rdrand | M::Rdseed | M::Rdpid | M::Rdpmc | M::Cpuid | M::Xgetbv)
}

/// The instructions, by index, that read memory in such loops. `entry(address)` is the index of the instruction there,
/// `is_target(address)` tells whether anything outside this function may lead there.
pub fn untold(
    code: &[Instruction],
    effects: &[Effect],
    entry: impl Fn(u64) -> Option<usize>,
    is_target: impl Fn(u64) -> bool,
) -> BTreeSet<usize> {
    let mut factory = InstructionInfoFactory::new();
    let mut found = BTreeSet::new();
    let branches: Vec<(usize, Option<usize>)> =
        (0..code.len()).filter(|&n| jumps(&code[n])).map(|n| (n, entry(code[n].near_branch_target()))).collect();
    let short =
        |&(last, target): &(usize, Option<usize>)| target.is_some_and(|first| first <= last && last - first < LONGEST);
    if !branches.iter().any(short) {
        return found;
    }
    let mut alive = alive_by_convention(code, effects, entry);
    alive.iter_mut().filter(|alive| **alive & FLAGS != 0).for_each(|alive| *alive |= CARRY);
    for &(last, target) in &branches {
        let Some(first) = target.filter(|&first| first <= last && last - first < LONGEST) else { continue };
        let entered = branches.iter().any(|&(from, to)| {
            !(first..=last).contains(&from) && to.is_some_and(|to| (first + 1..=last).contains(&to))
        });
        let reached = (first + 1..=last).any(|n| is_target(code[n].ip()));
        if !entered && !reached && is_untold((first, last), code, &alive, &branches, &mut factory) {
            found.extend((first..=last).filter(|&n| !factory.info(&code[n]).used_memory().is_empty()));
        }
    }
    found
}

fn jumps(i: &Instruction) -> bool {
    matches!(i.flow_control(), FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch)
}

fn is_untold(
    (first, last): (usize, usize),
    code: &[Instruction],
    alive: &[u32],
    branches: &[(usize, Option<usize>)],
    factory: &mut InstructionInfoFactory,
) -> bool {
    let mut all = Vec::new();
    for i in &code[first..=last] {
        let Some(uses) = Uses::of(i, factory.info(i)) else { return false };
        all.push(uses);
    }
    let written = all.iter().fold(0, |written, uses| written | uses.writes);
    let inside = |at: usize| (first..=last).contains(&at);
    let ways = |n: usize| {
        let branch = branches.iter().find(|b| b.0 == n).map(|b| b.1);
        let goes_on = code[n].flow_control() != FlowControl::UnconditionalBranch;
        branch.into_iter().chain(goes_on.then_some(Some(n + 1)))
    };
    let edges = |n: usize| ways(n).flatten().filter(|&to| inside(to)).map(|to| to - first);
    let carried = spread(&all, written & alive[first], |_| false, |n| edges(n + first).filter(|&to| to != 0).collect());
    let read = spread(&all, 0, |uses| uses.looks, |n| edges(n + first).collect());
    (first..=last).all(|n| {
        let (uses, carried, read) = (all[n - first], carried[n - first], read[n - first]);
        let mut named = factory.info(&code[n]).used_memory().iter().flat_map(|m| [m.base(), m.index()]);
        if named.any(|r| r.is_gpr() && 1 << r.full_register().number() & carried != 0) {
            return false;
        }
        if !jumps(&code[n]) && n != last {
            return true;
        }
        let mut leaves = ways(n).filter(|to| !to.is_some_and(inside));
        match uses.reads & carried != 0 {
            // It decides on the end of the loop alone.
            true => uses.reads & read == 0 && leaves.count() == 1,
            false => {
                leaves.all(|to| to.map_or(u32::MAX, |to| alive.get(to).copied().unwrap_or(u32::MAX)) & carried == 0)
            }
        }
    })
}

/// Where something has come before each instruction: it is in the registers `start` before the first, comes from instructions that are a `source`, and goes
/// on with all that is computed from it. `ways`: to which instructions one leads.
fn spread(all: &[Uses], start: u32, source: impl Fn(&Uses) -> bool, ways: impl Fn(usize) -> Vec<usize>) -> Vec<u32> {
    let mut before = vec![0; all.len()];
    before[0] = start;
    loop {
        let mut changed = false;
        for (n, uses) in all.iter().enumerate() {
            let touched = uses.reads & before[n] != 0 || source(uses);
            let after = if touched { before[n] | uses.writes } else { before[n] & !uses.replaces };
            for to in ways(n) {
                changed |= after & !before[to] != 0;
                before[to] |= after;
            }
        }
        if !changed {
            return before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    /// Of code at address 0x1000: the instructions, by index, that [`untold`] finds.
    fn found(bytes: &[u8]) -> Vec<usize> {
        let code: Vec<Instruction> = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).into_iter().collect();
        let mut factory = InstructionInfoFactory::new();
        let effects: Vec<Effect> = code.iter().map(|i| Effect::of(i, factory.info(i))).collect();
        let entry = |at: u64| code.binary_search_by_key(&at, Instruction::ip).ok();
        untold(&code, &effects, entry, |_| false).into_iter().collect()
    }

    #[test]
    fn a_count_that_nobody_looks_at() {
        // mov ecx, 100; loop: mov eax, [rdi]; test eax, eax; jne out; pause; dec ecx; jne loop; out: xor ecx, ecx; ret
        let dead = b"\xb9\x64\0\0\0\x8b\x07\x85\xc0\x75\x06\xf3\x90\xff\xc9\x75\xf4\x31\xc9\xc3";
        assert_eq!(found(dead), [1]);
        // The same, but out: mov eax, ecx; ret.
        let told = b"\xb9\x64\0\0\0\x8b\x07\x85\xc0\x75\x06\xf3\x90\xff\xc9\x75\xf4\x89\xc8\xc3";
        assert!(found(told).is_empty());
        // Of a return nobody expects rcx: out: ret. What another function gets, is: out: jmp elsewhere.
        assert_eq!(found(b"\xb9\x64\0\0\0\x8b\x07\x85\xc0\x75\x06\xf3\x90\xff\xc9\x75\xf4\xc3"), [1]);
        assert!(found(b"\xb9\x64\0\0\0\x8b\x07\x85\xc0\x75\x06\xf3\x90\xff\xc9\x75\xf4\xeb\x70").is_empty());
    }

    #[test]
    fn what_a_round_does_with_its_count() {
        // loop: mov eax, [rdi+rcx*4]; test eax, eax; jne out; dec ecx; jne loop; out: xor ecx, ecx; ret
        let address = b"\x8b\x04\x8f\x85\xc0\x75\x04\xff\xc9\x75\xf5\x31\xc9\xc3";
        assert!(found(address).is_empty());
        // loop: mov eax, [rdi]; test eax, eax; jne out; mov [rsi], ecx; dec ecx; jne loop; out: xor ecx, ecx; ret
        let stores = b"\x8b\x07\x85\xc0\x75\x06\x89\x0e\xff\xc9\x75\xf4\x31\xc9\xc3";
        assert!(found(stores).is_empty());
        // loop: test cl, 1; jne over; pause; over: mov eax, [rdi]; test eax, eax; jne out; dec ecx; jne loop; out: xor ecx, ecx; ret
        let path = b"\xf6\xc1\x01\x75\x02\xf3\x90\x8b\x07\x85\xc0\x75\x04\xff\xc9\x75\xef\x31\xc9\xc3";
        assert!(found(path).is_empty());
        // loop: mov eax, [rdi]; cmp eax, ecx; je out; inc ecx; jmp loop; out: xor ecx, ecx; ret
        let held_against = b"\x8b\x07\x39\xc8\x74\x04\xff\xc1\xeb\xf6\x31\xc9\xc3";
        assert!(found(held_against).is_empty());
        // loop: rdtsc; cmp eax, esi; ja out; mov ecx, [rdi]; test ecx, ecx; je loop; out: ret
        let time = b"\x0f\x31\x39\xf0\x77\x06\x8b\x0f\x85\xc9\x74\xf4\xc3";
        assert!(found(time).is_empty());
    }
}
