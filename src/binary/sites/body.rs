//! The functions of a module, decoded, and what their code says about addresses in code.

use std::collections::BTreeSet;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};

use super::super::allowed::extents::Extent;
use super::super::allowed::image::Image;

/// A set of addresses in a few pieces of memory, which may lie far apart.
pub struct Addresses {
    /// Where each piece begins, and a bit for each address in it.
    pieces: Vec<(u64, Vec<u64>)>,
}

impl Addresses {
    /// None of those in pieces of these beginnings and lengths; of pieces that overlap the first counts.
    pub fn new(pieces: impl Iterator<Item = (u64, usize)>) -> Addresses {
        Addresses { pieces: pieces.map(|(start, length)| (start, vec![0; length.div_ceil(64)])).collect() }
    }

    /// The word with the bit of an address, and which bit that is.
    fn place(&self, address: u64) -> Option<(usize, usize, u64)> {
        let piece = self
            .pieces
            .iter()
            .position(|(start, bits)| address.checked_sub(*start).is_some_and(|at| at / 64 < bits.len() as u64))?;
        let at = address - self.pieces[piece].0;
        Some((piece, (at / 64) as usize, at % 64))
    }

    /// Adds one, if it is in one of the pieces.
    pub fn insert(&mut self, address: u64) {
        if let Some((piece, word, bit)) = self.place(address) {
            self.pieces[piece].1[word] |= 1 << bit;
        }
    }

    /// Whether it was added.
    pub fn contains(&self, address: u64) -> bool {
        self.place(address).is_some_and(|(piece, word, bit)| self.pieces[piece].1[word] >> bit & 1 != 0)
    }

    /// Whether any from `start` to `end` was.
    pub fn any(&self, start: u64, end: u64) -> bool {
        (start..end).any(|address| self.contains(address))
    }
}

/// A function, or a part of one.
pub struct Body {
    pub extent: Extent,
    /// Its instructions, all of them.
    pub code: Vec<Instruction>,
    /// From there on it is not taken for code; 0: all of it is not.
    pub until: u64,
}

impl Body {
    /// A jump leads out of it, or it is not known where to.
    pub fn is_left_by(&self, i: &Instruction) -> bool {
        let direct = i.is_jmp_short_or_near() || i.is_jcc_short_or_near();
        direct && self.position(i.near_branch_target()).is_none() || i.is_jmp_near_indirect()
    }

    /// Decodes a function; one that cannot be decoded to its end is no code.
    pub fn new(image: &Image, extent: Extent) -> Body {
        let bytes = image.tail(extent.start);
        let length = usize::try_from(extent.end - extent.start).unwrap_or(usize::MAX).min(bytes.len());
        let mut decoder = Decoder::with_ip(64, &bytes[..length], extent.start, DecoderOptions::NONE);
        let mut code = Vec::with_capacity(length / 4);
        while decoder.can_decode() {
            code.push(decoder.decode());
        }
        let whole = !code.is_empty() && code.iter().all(|i| !i.is_invalid());
        let until = if whole { extent.start + length as u64 } else { 0 };
        Body { extent, code, until }
    }

    /// The index of the instruction at `address`.
    pub fn position(&self, address: u64) -> Option<usize> {
        self.code.binary_search_by_key(&address, Instruction::ip).ok()
    }

    /// The instruction before the one at index `n` goes on to it.
    fn falls_into(&self, n: usize) -> bool {
        n.checked_sub(1).is_some_and(|before| !ends(&self.code[before]))
    }

    /// Whether there are jumps through registers or memory, other than those through slots that the loader fills.
    pub fn jumps_indirectly(&self, image: &Image) -> bool {
        let slot =
            |i: &Instruction| i.is_ip_rel_memory_operand() && image.dynamic.slots.contains(&i.ip_rel_memory_address());
        self.code.iter().any(|i| i.flow_control() == FlowControl::IndirectBranch && !slot(i))
    }
}

/// Control does not go on behind it.
pub fn ends(i: &Instruction) -> bool {
    use FlowControl as F;
    matches!(i.flow_control(), F::UnconditionalBranch | F::IndirectBranch | F::Return | F::Exception)
}

/// What all code of a module says about addresses in code.
pub struct References {
    /// Direct jumps and calls lead there, or functions start there.
    pub branched: Addresses,
    /// Of these, where jumps lead that come from another function: it may be a part of the same that the compiler has split off.
    pub entered: BTreeSet<u64>,
    /// Something holds the address.
    pub taken: BTreeSet<u64>,
    /// Of these, what data holds: nobody keeps the address of data in code there.
    pub labels: BTreeSet<u64>,
    /// What lies there is read or written.
    pub accessed: BTreeSet<u64>,
}

impl References {
    /// Of the functions `bodies`, and of code between them.
    pub fn collect(image: &Image, bodies: &[Body]) -> References {
        let branched = Addresses::new(image.code().map(|(start, bytes)| (start, bytes.len())));
        let mut all = References {
            branched,
            entered: BTreeSet::new(),
            taken: BTreeSet::new(),
            labels: BTreeSet::new(),
            accessed: BTreeSet::new(),
        };
        for body in bodies {
            all.branched.insert(body.extent.start);
            body.code.iter().for_each(|i| all.see(image, i));
            all.entered.extend(body.code.iter().filter(|i| body.is_left_by(i)).map(|i| i.near_branch_target()));
        }
        for (start, bytes) in image.code() {
            all.see_between(start, bytes, bodies);
        }
        all
    }

    fn see(&mut self, image: &Image, i: &Instruction) {
        if i.op0_kind() == OpKind::NearBranch64 {
            self.branched.insert(i.near_branch_target());
            return;
        }
        for n in 0..i.op_count() {
            match i.op_kind(n) {
                OpKind::Memory => {
                    let at = i.memory_displacement64();
                    // Of a file that lies at 0 a distance may look like an address.
                    let absolute = i.is_ip_rel_memory_operand() || !image.relocatable;
                    if !absolute || !image.is_code(at) {
                        continue;
                    }
                    if i.mnemonic() == Mnemonic::Lea {
                        self.taken.insert(at);
                    } else {
                        self.accessed.insert(at);
                    }
                }
                OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64 if !image.relocatable => {
                    let at = i.immediate(n);
                    if image.is_code(at) {
                        self.taken.insert(at);
                    }
                }
                _ => {}
            }
        }
    }

    /// Code that nothing bounds may be anything: what could be a jump, aligned or not, counts as one.
    fn see_between(&mut self, start: u64, bytes: &[u8], bodies: &[Body]) {
        let mut at = 0usize;
        let mut next = bodies.iter().map(|b| (b.extent.start, b.extent.end)).filter(|b| b.0 >= start).peekable();
        while at + 6 <= bytes.len() {
            let here = start + at as u64;
            while next.peek().is_some_and(|b| b.1 <= here) {
                next.next();
            }
            if let Some(body) = next.peek().filter(|b| b.0 <= here) {
                at = (body.1 - start) as usize;
                continue;
            }
            let long = |n: usize| {
                let four = [bytes[at + n], bytes[at + n + 1], bytes[at + n + 2], bytes[at + n + 3]];
                (here + n as u64 + 4).wrapping_add(i64::from(i32::from_le_bytes(four)) as u64)
            };
            match bytes[at] {
                0x70..=0x7f | 0xe0..=0xe3 | 0xeb => {
                    self.branched.insert((here + 2).wrapping_add(i64::from(bytes[at + 1] as i8) as u64));
                }
                0xe8 | 0xe9 => self.branched.insert(long(1)),
                0x0f if bytes[at + 1] & 0xf0 == 0x80 => self.branched.insert(long(2)),
                _ => {}
            }
            at += 1;
        }
    }

    /// Takes away what of a function is not to be taken for code: data that is read there, and what an address in code or data
    /// points to though nothing leads there.
    pub fn without_data(&self, body: &mut Body) {
        let inside = body.extent.start + 1..body.extent.end;
        if body.extent.start >= body.extent.end
            || self.accessed.range(body.extent.start..body.extent.end).next().is_some()
        {
            body.until = 0;
            return;
        }
        for &at in self.taken.range(inside) {
            match body.position(at) {
                None => body.until = 0,
                Some(n) if !body.falls_into(n) && !self.branched.contains(at) && !self.labels.contains(&at) => {
                    body.until = body.until.min(at);
                }
                Some(_) => {}
            }
        }
    }
}
