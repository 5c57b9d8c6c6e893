//! Which instructions are moved together, so that the bytes which they leave are enough for a jump.

use std::collections::BTreeSet;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};

use super::super::allowed::image::Image;
use super::body::{ends, Addresses};
use super::{Site, Unit, JUMP};

/// Bytes behind the end of a function that only fill the space up to the next.
pub fn padding(image: &Image, end: u64) -> usize {
    const LONGEST: u64 = 15;
    let next = image.extents.start_after(end - 1).unwrap_or(u64::MAX).min(image.code_end(end)).min(end + LONGEST);
    let room = next.saturating_sub(end) as usize;
    let Some(bytes) = image.tail(end).get(..room) else { return 0 };
    let mut filled = Decoder::with_ip(64, bytes, end, DecoderOptions::NONE).into_iter();
    match filled.all(|i| matches!(i.mnemonic(), Mnemonic::Nop | Mnemonic::Int3)) {
        true => room,
        false => 0,
    }
}

/// Does the same elsewhere, and nothing comes back behind it.
fn is_displaceable(i: &Instruction) -> bool {
    use FlowControl as F;
    use Mnemonic as M;
    let plain = matches!(i.flow_control(), F::Next | F::ConditionalBranch | F::UnconditionalBranch | F::Return);
    let short = matches!(i.mnemonic(), M::Loop | M::Loope | M::Loopne | M::Jcxz | M::Jecxz | M::Jrcxz);
    plain && !short && !matches!(i.mnemonic(), M::Endbr64 | M::Endbr32 | M::Int3 | M::Hlt)
}

/// The units by which the sites of a function are patched. `branched`, `taken`: what may be jumped to; `understood`: nothing else is;
/// `padding`: bytes behind its end.
pub fn units(
    code: &[Instruction],
    sites: &[Site],
    branched: &Addresses,
    taken: &BTreeSet<u64>,
    understood: bool,
    padding: usize,
) -> Vec<Unit> {
    let Some(end) = code.last().map(Instruction::next_ip) else { return Vec::new() };
    let padding = if branched.any(end, end + padding as u64) { 0 } else { padding };
    let mut chooser =
        Chooser { code, branched, taken, understood, padding, owner: vec![None; code.len()], units: Vec::new() };
    for site in sites.iter().filter(|site| !site.repeated) {
        if let Ok(n) = code.binary_search_by_key(&site.at, Instruction::ip) {
            chooser.choose(n);
        }
    }
    let units = chooser.units.into_iter().flatten();
    units
        .map(|(first, end, room)| Unit { at: code[first].ip(), count: (end - first) as u8, room: room as u8 })
        .collect()
}

struct Chooser<'a> {
    code: &'a [Instruction],
    branched: &'a Addresses,
    taken: &'a BTreeSet<u64>,
    understood: bool,
    padding: usize,
    /// The unit of each instruction.
    owner: Vec<Option<usize>>,
    /// First instruction, one past the last, bytes; `None`: another has taken its place.
    units: Vec<Option<(usize, usize, usize)>>,
}

impl Chooser<'_> {
    fn is_entry(&self, n: usize) -> bool {
        self.branched.contains(self.code[n].ip()) || self.taken.contains(&self.code[n].ip())
    }

    /// Bytes behind the instruction before index `end`, if that is the last.
    fn padding_at(&self, end: usize) -> usize {
        match self.code.get(end - 1) {
            Some(last) if end == self.code.len() && ends(last) => self.padding,
            _ => 0,
        }
    }

    /// No group has it: it may be by itself, without room for a jump.
    fn is_free(&self, n: usize) -> bool {
        self.owner[n]
            .is_none_or(|unit| self.units[unit].is_some_and(|(first, end, room)| end - first == 1 && room < JUMP))
    }

    /// Finds a unit for the site at index `n`.
    fn choose(&mut self, n: usize) {
        if self.owner[n].is_some() {
            return;
        }
        let (mut first, mut end, mut length) = (n, n + 1, self.code[n].len());
        if self.understood {
            // What follows, then what comes before.
            while length + self.padding_at(end) < JUMP
                && end < self.code.len()
                && self.joins(end - 1, end)
                && self.is_free(end)
            {
                length += self.code[end].len();
                end += 1;
            }
            while length + self.padding_at(end) < JUMP
                && first > 0
                && self.joins(first - 1, first)
                && self.is_free(first - 1)
            {
                first -= 1;
                length += self.code[first].len();
            }
        }
        let mut room = length + self.padding_at(end);
        if room < JUMP {
            (first, end, room) = (n, n + 1, self.code[n].len());
        }
        for index in first..end {
            if let Some(before) = self.owner[index].replace(self.units.len()) {
                self.units[before] = None;
            }
        }
        self.units.push(Some((first, end, room)));
    }

    /// Both instructions can be moved together, and nothing leads to the second but the first.
    fn joins(&self, first: usize, second: usize) -> bool {
        let (a, b) = (&self.code[first], &self.code[second]);
        !ends(a) && !self.is_entry(second) && is_displaceable(a) && is_displaceable(b)
    }
}
