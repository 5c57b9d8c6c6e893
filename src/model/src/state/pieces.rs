//! What tells the states of an execution apart, piece by piece, where it is asked for (`--states why`): words of memory that are not as they were at the first
//! choice, and hashes of all else.

/// Most pieces of an execution.
pub const MOST: usize = 1 << 19;

/// A piece: of memory its address, of all else a number of those below, which no address is; and what is there, or a hash of it.
pub type Piece = [u64; 2];

/// Kinds of what is not memory of the program's: the upper half of [`Piece`]'s first word; the lower half says which of them.
pub mod kind {
    /// A state begins: after so many transitions.
    pub const STATE: u64 = 0xff00 << 48;
    /// What the kernel keeps for the process: mappings, descriptors, actions of signals.
    pub const KERNEL: u64 = 0xff01 << 48;
    /// The model's state of the process beside its threads and objects.
    pub const MODEL: u64 = 0xff02 << 48;
    /// Registers of a thread, and where its calls are, by its index.
    pub const REGISTERS: u64 = 0xff03 << 48;
    /// What the model knows of a thread, by its index.
    pub const THREAD: u64 = 0xff04 << 48;
    /// An object, by some bits of a hash of its key.
    pub const OBJECT: u64 = 0xff05 << 48;
    /// What is in pipes, sockets and the like.
    pub const POOL: u64 = 0xff06 << 48;
    /// A descriptor of the kernel's: its place in the file, its flags, which file it is of.
    pub const DESCRIPTOR: u64 = 0xff07 << 48;
    /// Who has used which files.
    pub const USES: u64 = 0xff08 << 48;
    /// The bits that are these.
    pub const MASK: u64 = 0xffff << 48;
}

/// The pieces of the states of an execution.
pub type Pieces = Listed<MOST>;

/// See [`Pieces`]; so many at the most.
#[derive(Debug)]
#[repr(C)]
pub struct Listed<const N: usize> {
    len: u64,
    /// Not 0: there were more.
    full: u64,
    all: [Piece; N],
}

impl<const N: usize> Listed<N> {
    /// There are none.
    pub fn clear(&mut self) {
        (self.len, self.full) = (0, 0);
    }

    /// One more.
    pub fn add(&mut self, piece: Piece) {
        match self.all.get_mut(self.len as usize) {
            Some(place) => {
                *place = piece;
                self.len += 1;
            }
            None => self.full = 1,
        }
    }

    /// There were more.
    pub fn is_full(&self) -> bool {
        self.full != 0
    }

    /// All states that are there as a whole, each with the transitions before it.
    pub fn states(&self) -> impl Iterator<Item = (u64, &[Piece])> {
        let all = &self.all[..(self.len as usize).min(N)];
        let last = all.iter().rposition(|piece| piece[0] == kind::STATE).filter(|_| self.full != 0);
        let all = &all[..last.unwrap_or(all.len())];
        all.chunk_by(|_, next| next[0] != kind::STATE).filter_map(|state| {
            let (first, rest) = state.split_first()?;
            (first[0] == kind::STATE).then_some((first[1], rest))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn a_state_that_is_not_there_as_a_whole_is_none() {
        let mut pieces = Listed { len: 0, full: 0, all: [[0; 2]; 6] };
        let shown = |pieces: &Listed<6>| pieces.states().map(|(at, all)| (at, all.len())).collect::<Vec<_>>();
        assert_eq!(shown(&pieces), []);
        for piece in [[kind::STATE, 3], [0x1000, 7], [0x1008, 8], [kind::STATE, 4], [kind::MODEL, 1], [kind::USES, 2]] {
            pieces.add(piece);
        }
        assert_eq!(shown(&pieces), [(3, 2), (4, 2)]);
        assert!(!pieces.is_full());
        pieces.add([kind::POOL, 1]);
        assert_eq!((shown(&pieces), pieces.is_full()), (vec![(3, 2)], true));
        pieces.clear();
        assert_eq!((shown(&pieces), pieces.is_full()), (vec![], false));
        (0..8).for_each(|n| pieces.add([if n == 0 { kind::STATE } else { n }, n]));
        assert_eq!(shown(&pieces), vec![]);
    }
}
