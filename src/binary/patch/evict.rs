//! Eviction of the successor (E9Patch, Duck et al., PLDI 2020, tactic T2): where no punned jump leads to a free place, the instruction behind goes to
//! a trampoline, too. What stands in its place then is a jump, most bytes of which can be chosen, and with them where the first jump leads.
//!
//! The instruction behind is moved by itself and its place is still one where an instruction begins, so what jumps there finds it. It has to be one
//! that nothing has been written over, or one where a jump stands already, which gets other bytes and leads to where it led. Puns are made from the
//! end backwards, so nobody but the jump that is being made shares bytes with it.

use iced_x86::{FlowControl, Instruction};

use super::super::sites::{Unit, JUMP};
use super::emit::distance;
use super::plan::{Module, Planner, FAR, JMP, PREFIX};

/// What the highest byte of a distance is tried as: down from 16 MiB below on, then up.
const HIGHEST: std::ops::Range<i32> = -60..60;
/// What other bytes are that can be chosen, where nothing depends on them.
const ANY: u8 = 0x5a;
/// Places for the second jump that are tried for each place of the first one.
const TRIES: u64 = 256;
/// So many slots that the second jump did not fit to are left unused, at most.
const MOST_WASTED: usize = 16;

/// A jump of which some bytes are others' or chosen already.
struct Partly {
    at: u64,
    prefixes: usize,
    /// Bytes of its distance that are written with it, and of these how many are chosen.
    own: usize,
    chosen: usize,
    /// The distance, zero where it can be chosen.
    bytes: [u8; 4],
}

impl Partly {
    fn behind(&self) -> u64 {
        self.at + (self.prefixes + JUMP) as u64
    }

    /// The places that it can lead to, in the order of their addresses: how many, and each.
    fn places(&self) -> (u64, impl Fn(u64) -> u64) {
        let free = self.own - self.chosen;
        let (behind, fixed, shift) = (self.behind(), u32::from_le_bytes(self.bytes), 8 * self.chosen as u32);
        let many = 1u64 << (8 * free);
        let place = move |n: u64| {
            let distance = (u64::from(fixed) + (n << shift)) as u32 as i32;
            behind.wrapping_add_signed(distance.into())
        };
        (many, place)
    }

    /// What is written for it where it leads to `slot`.
    fn written(&self, slot: u64) -> Option<Vec<u8>> {
        let mut bytes = vec![PREFIX; self.prefixes];
        bytes.push(JMP);
        bytes.extend(&distance(self.behind(), slot)?.to_le_bytes()[..self.own]);
        Some(bytes)
    }
}

impl Module<'_> {
    /// A punned jump at `at`, over an instruction of `length` bytes, to a slot that leads to `to`, with the instruction behind it moved, too.
    pub(super) fn evict(&mut self, at: u64, length: usize, to: u64, planner: &mut Planner) -> Option<()> {
        let next = at + length as u64;
        let before = self.mark();
        let (room, second_to) = match self.jumps.get(&next) {
            Some(known) => *known,
            None => self.move_behind(at, next)?,
        };
        let found = self.two_jumps((at, length, to), (next, room, second_to), planner);
        if found.is_none() {
            self.forget(before);
        }
        for ((at, bytes), known) in found?.into_iter().zip([(length, to), (room, second_to)]) {
            self.text.write(at, &bytes);
            self.jumps.insert(at, known);
        }
        Some(())
    }

    /// Moves the instruction at `next`, behind the one at `at`, if that can be: its bytes, and where it is then.
    fn move_behind(&mut self, at: u64, next: u64) -> Option<(usize, u64)> {
        let unit = |at: u64, room: usize| Unit { at: at.wrapping_sub(self.input.bias), count: 1, room: room as u8 };
        let one = |at: u64| self.decode(&unit(at, 0)).and_then(|code| code.first().copied());
        let (first, second) = (one(at)?, one(next)?);
        let room = second.len();
        let is_there = self.input.text.iter().any(|(start, bytes)| {
            let from = next.wrapping_sub(*start) as usize;
            bytes.get(from..from.saturating_add(room)).is_some_and(|bytes| self.text.at(next, room) == Some(bytes))
        });
        if first.flow_control() != FlowControl::Next || !is_moved_alone(&second) || !is_there {
            return None;
        }
        let (to, _) = self.move_unit(&unit(next, room)).ok()?;
        Some((room, to))
    }

    /// What is written for a jump over each of two instructions, place, bytes and where it leads to, of which the second is right behind the first.
    fn two_jumps(
        &self,
        (at, length, to): (u64, usize, u64),
        (next, room, second_to): (u64, usize, u64),
        planner: &mut Planner,
    ) -> Option<[(u64, Vec<u8>); 2]> {
        let mut wasted = 0;
        for (prefixes, own) in jumps_over(length) {
            for (second_prefixes, second_own) in jumps_over(room) {
                // The first one's distance ends with bytes of the second one: prefixes, the jump, and so many of its distance.
                let shared = 4 - own;
                let chosen = shared.saturating_sub(second_prefixes + 1).min(second_own);
                let tops = if chosen > 0 && shared == second_prefixes + 1 + chosen { HIGHEST } else { 0..1 };
                for top in tops {
                    let mut second =
                        Partly { at: next, prefixes: second_prefixes, own: second_own, chosen, bytes: [0; 4] };
                    second.bytes[..chosen].fill(ANY);
                    if chosen > 0 {
                        second.bytes[chosen - 1] = top as u8;
                    }
                    let others = self.text.at(next + room as u64, 4 - second_own)?;
                    second.bytes[second_own..].copy_from_slice(others);
                    let mut stands = vec![PREFIX; second_prefixes];
                    stands.push(JMP);
                    stands.extend(second.bytes);
                    let mut first = Partly { at, prefixes, own, chosen: 0, bytes: [0; 4] };
                    first.bytes[own..].copy_from_slice(&stands[..shared]);
                    let Some(slot) = slot_for(&first, to, planner) else { continue };
                    let written = slot_for(&second, second_to, planner).and_then(|second_slot| {
                        Some([(at, first.written(slot)?), (next, second.written(second_slot)?)])
                    });
                    wasted += 1;
                    if written.is_some() || wasted == MOST_WASTED {
                        return written;
                    }
                }
            }
        }
        None
    }
}

/// Prefixes and own bytes of the distance of the jumps that can stand over an instruction of `length` bytes.
fn jumps_over(length: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..length.min(JUMP)).map(move |prefixes| (prefixes, (length - 1 - prefixes).min(4)))
}

/// A free place to which `jump` can lead, with a slot there that leads to `to`.
fn slot_for(jump: &Partly, to: u64, planner: &mut Planner) -> Option<u64> {
    let (many, place) = jump.places();
    let mut add = |within| planner.slots.add(&mut planner.space, within, to);
    match () {
        // The sign is one of its bytes.
        () if jump.own == 4 && jump.chosen == 0 => add(jump.at.saturating_sub(FAR)..jump.at + FAR),
        () if jump.chosen == 0 => add(place(0)..place(0).wrapping_add(many)),
        () => (0..many.min(TRIES)).map(|n| place(n * many.div_ceil(TRIES))).find_map(|at| add(at..at.wrapping_add(1))),
    }
}

/// It does the same elsewhere, and whatever comes after it there.
fn is_moved_alone(i: &Instruction) -> bool {
    use FlowControl as F;
    i.len() > 1 && matches!(i.flow_control(), F::Next | F::ConditionalBranch | F::UnconditionalBranch | F::Return)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_jump_with_chosen_bytes_leads() {
        let jump = Partly { at: 0x5555_0000_0000, prefixes: 1, own: 3, chosen: 1, bytes: [0x5a, 0, 0, 0xff] };
        let (many, place) = jump.places();
        assert_eq!(
            (many, place(0), place(1)),
            (1 << 16, 0x5555_0000_0006 - 0x100_0000 + 0x5a, 0x5555_0000_0006 - 0x100_0000 + 0x15a)
        );
        assert_eq!(jump.written(place(3)).unwrap(), [PREFIX, JMP, 0x5a, 3, 0]);
        // All of it is others'.
        let jump = Partly { at: 0x5555_0000_0000, prefixes: 0, own: 1, chosen: 1, bytes: [1, 2, 3, 0x80] };
        assert_eq!((jump.places().0, jump.places().1(0)), (1, 0x5555_0000_0005 - 0x8000_0000 + 0x3_0201));
    }
}
