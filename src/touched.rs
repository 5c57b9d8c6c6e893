//! What transitions did to plain memory, for the searches that leave orders out by it.

use std::collections::BTreeMap;

/// Bytes of a word.
pub const WORD: u64 = 8;
/// So many words of one transition are kept apart; one that touches more counts as touching everything.
const MAX_WORDS: usize = 1 << 14;

/// The bytes of memory that a transition read and wrote: words of eight bytes by space and number, with a bit for each
/// byte.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Touched {
    words: BTreeMap<(u32, u64), Bytes>,
    everything: bool,
}

/// Bytes of a word, a bit for each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Bytes {
    read: u8,
    written: u8,
}

impl Bytes {
    fn meets(self, other: Bytes) -> bool {
        self.written & (other.read | other.written) != 0 || self.read & other.written != 0
    }
}

impl Touched {
    /// Adds an access to `size` bytes from `address` on, of memory `space` (a process's, or one that processes share).
    pub fn add(&mut self, space: u32, address: u64, size: u64, write: bool) {
        let end = address.saturating_add(size);
        let words = address / WORD..end.div_ceil(WORD);
        if self.everything || (words.end - words.start) as usize + self.words.len() > MAX_WORDS {
            *self = Touched { words: BTreeMap::new(), everything: true };
            return;
        }
        for word in words {
            let bytes = bytes_of(word, address, end);
            let known = self.words.entry((space, word)).or_default();
            *(if write { &mut known.written } else { &mut known.read }) |= bytes;
        }
    }

    /// Adds all that `other` holds.
    pub fn join(&mut self, other: &Touched) {
        self.everything |= other.everything;
        for (word, bytes) in &other.words {
            let known = self.words.entry(*word).or_default();
            known.read |= bytes.read;
            known.written |= bytes.written;
        }
    }

    /// Whether the order of the two can matter: they have a byte in common that one of them writes.
    pub fn meets(&self, other: &Touched) -> bool {
        let nothing = |t: &Touched| t.words.is_empty() && !t.everything;
        if self.everything || other.everything {
            return !nothing(self) && !nothing(other);
        }
        let (few, many) = if self.words.len() <= other.words.len() { (self, other) } else { (other, self) };
        few.words.iter().any(|(word, bytes)| many.words.get(word).is_some_and(|b| b.meets(*bytes)))
    }
}

/// The bytes of `word` that are in `address..end`, a bit for each.
pub fn bytes_of(word: u64, address: u64, end: u64) -> u8 {
    let low = address.saturating_sub(word * WORD).min(WORD) as u32;
    let high = end.saturating_sub(word * WORD).min(WORD) as u32;
    let up_to = |n: u32| ((1u16 << n) - 1) as u8;
    up_to(high) & !up_to(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(accesses: &[(u64, u64, bool)]) -> Touched {
        let mut all = Touched::default();
        accesses.iter().for_each(|&(address, size, write)| all.add(0, address, size, write));
        all
    }

    #[test]
    fn bytes_meet_where_one_is_written() {
        let (read, write) = (touched(&[(100, 4, false)]), touched(&[(96, 16, true)]));
        assert!(read.meets(&write) && write.meets(&read) && write.meets(&write) && !read.meets(&read));
        assert!(!touched(&[(104, 8, false)]).meets(&touched(&[(96, 8, true)])));
        assert!(!touched(&[(100, 2, true)]).meets(&touched(&[(102, 2, true)])));
        let mut other = Touched::default();
        other.add(1, 100, 4, true);
        assert!(!other.meets(&read));
        other.join(&write);
        assert!(other.meets(&read));
    }

    #[test]
    fn what_is_too_much_touches_everything() {
        let all = touched(&[(0, 1 << 20, false)]);
        assert!(all.meets(&touched(&[(1 << 40, 1, false)])) && !all.meets(&Touched::default()));
    }
}
