//! FNV-1a, 64 bits: for names and checksums, not against anybody who means harm.

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// The hash of `bytes`.
pub fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    fold(OFFSET, bytes)
}

/// The hash of what had the hash `hash` and these `bytes`.
pub fn fold(hash: u64, bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// A hash over numbers and byte strings, each with its length.
pub struct Hash(u64);

impl Hash {
    /// Nothing yet; values of different domains differ.
    pub fn new(domain: &str) -> Hash {
        Hash(fnv1a(domain.bytes()))
    }

    /// Adds a number.
    pub fn number(&mut self, n: u64) {
        self.0 = fold(self.0, n.to_le_bytes());
    }

    /// Adds a byte string.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.number(fnv1a(bytes.iter().copied()));
    }

    /// The hash of what was added.
    pub fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(fnv1a([]), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(*b"foobar"), 0x8594_4171_f739_67e8);
    }
}
