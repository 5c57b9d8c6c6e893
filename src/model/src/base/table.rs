//! A table of plain records with a used length: the arena's only container.

/// What stands in front of the records since the table was last cleared or copied. Whoever writes over the end of what is in front of
/// the table writes here.
const SEAL: u32 = 0x5ea1_ed01;

/// At most `N` records, the first `len` in use. Copying the used part copies the table.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Table<T: Copy, const N: usize> {
    /// Records in use. Invariant: `len <= N`.
    pub len: u32,
    seal: u32,
    items: [T; N],
}

#[cfg(test)]
impl<T: Copy, const N: usize> Table<T, N> {
    /// An empty one that has not been cleared.
    pub(crate) fn of(items: [T; N]) -> Self {
        Table { len: 0, seal: 0, items }
    }
}

impl<T: Copy, const N: usize> Table<T, N> {
    /// Appends a record and returns its index, or `None` when the table is full.
    pub fn push(&mut self, item: T) -> Option<u32> {
        let at = self.len as usize;
        if at >= N {
            return None;
        }
        self.items[at] = item;
        self.len += 1;
        Some(at as u32)
    }

    /// Puts a record at `index`, before those from there on. False: the table is full.
    pub fn insert(&mut self, index: u32, item: T) -> bool {
        if self.push(item).is_none() {
            return false;
        }
        self.as_mut_slice()[index as usize..].rotate_right(1);
        true
    }

    /// Takes the record at `index` out; those behind it move up.
    pub fn remove(&mut self, index: u32) {
        self.as_mut_slice()[index as usize..].rotate_left(1);
        self.len -= 1;
    }

    /// The records in use.
    pub fn as_slice(&self) -> &[T] {
        &self.items[..(self.len as usize).min(N)]
    }

    /// The records in use, writable.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.items[..(self.len as usize).min(N)]
    }

    /// The record at `index`, if it is in use.
    pub fn get(&self, index: u32) -> Option<&T> {
        self.as_slice().get(index as usize)
    }

    /// Makes this table equal to `other`.
    pub fn copy_from(&mut self, other: &Self) {
        let used = other.as_slice();
        self.items[..used.len()].copy_from_slice(used);
        self.len = used.len() as u32;
        self.seal = SEAL;
    }

    /// The first `len` records are what they were, in the memory of a table that was cleared since.
    pub(crate) fn has_again(&mut self, len: u32) {
        self.len = len.min(N as u32);
    }

    /// Forgets all records.
    pub fn clear(&mut self) {
        self.len = 0;
        self.seal = SEAL;
    }

    /// False: somebody who is not to has written to a table that was cleared or copied.
    pub fn is_sealed(&self) -> bool {
        self.seal == SEAL && self.len as usize <= N
    }

    /// True if `index` names a record in use.
    pub fn contains(&self, index: u32) -> bool {
        // Not of `NONE`: there is no larger number.
        index < self.len
    }
}

impl<T: Copy + core::hash::Hash, const N: usize> core::hash::Hash for Table<T, N> {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl<T: Copy, const N: usize> core::ops::Index<u32> for Table<T, N> {
    type Output = T;
    fn index(&self, index: u32) -> &T {
        &self.items[index as usize]
    }
}

impl<T: Copy, const N: usize> core::ops::IndexMut<u32> for Table<T, N> {
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.items[index as usize]
    }
}
