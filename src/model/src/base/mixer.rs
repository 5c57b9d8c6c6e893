//! A hash of 128 bits over plain data. Two lanes of 64 bits, each folded over the whole product of what it has and what comes, with
//! constants of its own: of N different states two have the same hash with a chance of some N^2 / 2^129.

use core::hash::{Hash, Hasher};

use super::ids::numbers;

numbers! {
    /// What a hash is for: what is hashed for different purposes has different hashes, though it may be made of the same words. A transparent integer.
    Purpose(u64):
    /// No other hash is compared with it.
    ANY = 0,
    STATE = 1,
    WORLD = 2,
    OBJECT = 3,
    NAME = 4,
    READER = 5,
    PROCESS = 6,
    FIBER = 7,
    LOCAL = 8,
    PAGE = 9,
    POOL = 10,
    MAPPED = 11,
    UNMAPPED = 12,
    PROTECTED = 13,
    USER = 14,
    USED = 15,
    USES = 16,
}

/// Words without a pattern: fractional digits of the square roots of 2, 3, 5 and 7, made odd.
const WORDS: [u64; 4] = [0x6a09_e667_f3bc_c909, 0xbb67_ae85_84ca_a73b, 0x3c6e_f372_fe94_f82b, 0xa54f_f53a_5f1d_36f1];

/// The product of two words, with its upper half put over the lower one.
#[inline]
fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a).wrapping_mul(u128::from(b));
    product as u64 ^ (product >> 64) as u64
}

/// What has been hashed so far.
#[derive(Clone, Copy, Debug)]
pub struct Mixer([u64; 2]);

impl Default for Mixer {
    fn default() -> Mixer {
        Mixer::new(Purpose::ANY)
    }
}

impl Mixer {
    /// Nothing yet.
    pub const fn new(purpose: Purpose) -> Mixer {
        Mixer([WORDS[0] ^ purpose.0, WORDS[2].wrapping_add(purpose.0)])
    }

    /// The hash of one thing.
    pub fn of(purpose: Purpose, thing: &impl Hash) -> [u64; 2] {
        let mut mixer = Mixer::new(purpose);
        thing.hash(&mut mixer);
        mixer.digest()
    }

    /// A word comes.
    #[inline]
    pub fn word(&mut self, word: u64) {
        self.0[0] = folded(self.0[0] ^ word, WORDS[1] ^ word.rotate_left(32)).wrapping_add(WORDS[0]);
        self.0[1] = folded(self.0[1].rotate_left(29) ^ word, WORDS[3]).wrapping_add(word ^ WORDS[2]);
    }

    /// Two words come, as those of a hash.
    pub fn pair(&mut self, pair: [u64; 2]) {
        pair.into_iter().for_each(|word| self.word(word));
    }

    /// The hash. Never zero.
    pub fn digest(&self) -> [u64; 2] {
        let [a, b] = self.0;
        let [a, b] = [folded(a ^ WORDS[2], b ^ WORDS[1]), folded(b ^ WORDS[0], a.rotate_left(17) ^ WORDS[3])];
        if a | b == 0 {
            WORDS_OF_ZERO
        } else {
            [a, b]
        }
    }
}

const WORDS_OF_ZERO: [u64; 2] = [WORDS[0], WORDS[1]];

/// The hash of things in no order, of each of which there is one.
pub fn together(sum: [u64; 2], one: [u64; 2]) -> [u64; 2] {
    [sum[0].wrapping_add(one[0]), sum[1].wrapping_add(one[1])]
}

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.digest()[0]
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.word(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.word(u64::from_le_bytes(last));
        }
        self.word(bytes.len() as u64);
    }

    fn write_u8(&mut self, n: u8) {
        self.word(n.into());
    }

    fn write_u16(&mut self, n: u16) {
        self.word(n.into());
    }

    fn write_u32(&mut self, n: u32) {
        self.word(n.into());
    }

    fn write_u64(&mut self, n: u64) {
        self.word(n);
    }

    fn write_usize(&mut self, n: usize) {
        self.word(n as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn few_words_in_any_order_have_different_hashes() {
        let mut seen = BTreeSet::new();
        for a in 0..64u64 {
            for b in 0..64u64 {
                for c in [0, 1, 1 << 63] {
                    let mut mixer = Mixer::default();
                    [a, b << 40, c].hash(&mut mixer);
                    assert!(seen.insert(mixer.digest()), "{a} {b} {c}");
                }
            }
        }
        // Each half tells them apart by itself.
        for half in [0, 1] {
            assert_eq!(seen.iter().map(|digest| digest[half]).collect::<BTreeSet<_>>().len(), seen.len());
        }
    }

    #[test]
    fn bytes_count_to_their_end() {
        let digest = |bytes: &[u8]| {
            let mut mixer = Mixer::default();
            mixer.write(bytes);
            mixer.digest()
        };
        assert_ne!(digest(&[0; 8]), digest(&[0; 9]));
        assert_ne!(digest(&[0; 3]), digest(&[0; 4]));
        assert_ne!(digest(&[1, 2, 3]), digest(&[1, 2, 4]));
        assert_ne!(digest(&[]), digest(&[0]));
    }

    #[test]
    fn each_bit_of_a_word_changes_about_half_of_the_hash() {
        for purpose in [Purpose::ANY, Purpose::FIBER] {
            let digest = |word: u64| {
                let mut mixer = Mixer::new(purpose);
                [word, 5].hash(&mut mixer);
                mixer.digest()
            };
            for word in [0, 0x1234_5678_9abc_def0, u64::MAX] {
                let changed = |bit: u32| {
                    let (one, other) = (digest(word), digest(word ^ 1 << bit));
                    (one[0] ^ other[0]).count_ones() + (one[1] ^ other[1]).count_ones()
                };
                let all: u32 = (0..64).map(changed).sum();
                assert!((56..=72).contains(&(all / 64)), "{word:x}: {} of 128 bits", all / 64);
                assert!((0..64).all(|bit| changed(bit) > 30), "{word:x}");
            }
        }
    }
}
