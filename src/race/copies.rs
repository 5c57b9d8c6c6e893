//! What processes read of the memory that a fork has copied for them.
//!
//! A fork reads all memory of its process. That is of interest only where the child, or a child of its own, reads what was copied before it is
//! written there. So such words are read by the fork, as far as [`races`](super::races) is concerned: if another thread may write one meanwhile, it
//! is an object like other memory that nothing orders, on whose writes the operation that a fork of several threads is depends, as on all else.

use std::collections::{BTreeMap, HashMap, HashSet};

use vsrun_model::{Pid, NONE};

use super::access::{Access, Note};
use crate::touched::{bytes_of, WORD};

/// What is written of so many bytes at once is kept as one piece.
const LARGE: u64 = 256;

/// A process that a fork has made.
struct Copy {
    parent: Pid,
    /// By word: bytes that have been written, and the accesses that read others first, as far as none of them was read before.
    words: HashMap<u64, (u8, Vec<Access>)>,
    /// Memory that was given out anew: where pieces begin and end.
    anew: BTreeMap<u64, u64>,
}

impl Copy {
    /// What is there has nothing of the copy any more.
    fn has_anew(&mut self, address: u64, end: u64) {
        let known = self.anew.entry(address).or_insert(end);
        *known = end.max(*known);
    }

    fn is_anew(&self, address: u64) -> bool {
        self.anew.range(..=address).next_back().is_some_and(|(_, &end)| address < end)
    }

    fn touch(&mut self, access: Access) {
        let end = access.address.saturating_add(access.size);
        if access.write && !access.locked && access.size >= LARGE {
            let (first, last) = (access.address.div_ceil(WORD) * WORD, end / WORD * WORD);
            let edge = |address: u64, end: u64| Access { address, size: end - address, ..access };
            if access.address < first {
                self.touch(edge(access.address, first));
            }
            if last < end {
                self.touch(edge(last, end));
            }
            self.has_anew(first, last);
            return;
        }
        for word in access.address / WORD..end.div_ceil(WORD) {
            if self.is_anew(word * WORD) {
                continue;
            }
            let bytes = bytes_of(word, access.address, end);
            let (known, first) = self.words.entry(word).or_default();
            if !access.write || access.locked {
                let new = bytes & !*known;
                if new != 0 {
                    let address = word * WORD + u64::from(new.trailing_zeros());
                    let size = u64::from(8 - new.leading_zeros() - new.trailing_zeros());
                    first.push(Access { address, size, write: false, locked: false, ..access });
                }
            }
            *known |= bytes;
        }
    }
}

/// By process that a fork of a process with several threads has made: what it reads of its copy.
pub fn read(notes: impl Iterator<Item = Note>) -> HashMap<Pid, Vec<Access>> {
    let mut copies: Vec<(Pid, Copy)> = Vec::new();
    let mut places: HashMap<Pid, usize> = HashMap::new();
    // Processes that there have been, and those that have had several threads.
    let (mut known, mut threaded) = (HashSet::from([0]), HashSet::new());
    for note in notes {
        match note {
            Note::Begins { process, parent, .. } => {
                if !known.insert(process) {
                    threaded.insert(process);
                } else if parent != NONE && (threaded.contains(&parent) || places.contains_key(&parent)) {
                    places.insert(process, copies.len());
                    copies.push((process, Copy { parent, words: HashMap::new(), anew: BTreeMap::new() }));
                }
            }
            Note::Touches { access, .. } if !places.is_empty() => {
                if let Some(&at) = places.get(&access.space) {
                    copies[at].1.touch(access);
                }
            }
            Note::Runs { access, times, stride, .. } if !places.is_empty() => {
                if let Some(&at) = places.get(&access.space) {
                    access.run(times, stride).for_each(|access| copies[at].1.touch(access));
                }
            }
            Note::Anew { space, address, size, .. } if !places.is_empty() => {
                if let Some(&at) = places.get(&space) {
                    copies[at].1.has_anew(address, address.saturating_add(size));
                }
            }
            _ => {}
        }
    }
    let mut all: HashMap<Pid, Vec<Access>> = HashMap::new();
    // What a child's child reads, the child's own fork has read.
    while let Some((process, copy)) = copies.pop() {
        let mut reads: Vec<Access> = copy.words.into_values().flat_map(|(_, first)| first).collect();
        reads.extend(all.get(&process).into_iter().flatten().copied());
        if places.contains_key(&copy.parent) {
            let more = reads.iter().map(|access| Access { space: copy.parent, ..*access });
            all.entry(copy.parent).or_default().extend(more);
        }
        all.insert(process, reads);
    }
    all.retain(|_, reads| !reads.is_empty());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begins(process: Pid, parent: Pid) -> Note {
        Note::Begins { thread: 9, creator: 0, process, parent }
    }

    fn touches(space: u32, address: u64, size: u64, write: bool) -> Note {
        Note::Touches { thread: 9, access: Access { space, address, size, write, locked: false, site: 1 } }
    }

    /// By process: the bytes that are read first.
    fn bytes(notes: &[Note]) -> Vec<(Pid, Vec<(u64, u64)>)> {
        let mut all: Vec<_> = read(notes.iter().copied())
            .into_iter()
            .map(|(process, reads)| {
                let mut reads: Vec<_> = reads.iter().map(|a| (a.address, a.size)).collect();
                reads.sort_unstable();
                (process, reads)
            })
            .collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn what_a_child_reads_before_it_is_written() {
        let thread = begins(0, NONE);
        let notes = [
            thread,
            touches(0, 64, 8, true),
            begins(1, 0),
            touches(1, 64, 4, false),
            touches(1, 68, 2, true),
            touches(1, 64, 8, false),
            touches(1, 80, 8, true),
            touches(1, 80, 8, false),
            Note::Anew { thread: 0, space: 1, address: 96, size: 32 },
            touches(1, 104, 8, false),
            touches(1, 1004, 1000, true),
            touches(1, 1000, 8, false),
            touches(1, 1500, 100, false),
            touches(1, 2000, 8, false),
            touches(0, 200, 8, false),
        ];
        assert_eq!(bytes(&notes), [(1, vec![(64, 4), (70, 2), (1000, 4), (2004, 4)])]);
    }

    #[test]
    fn a_process_of_one_thread_copies_what_nobody_writes() {
        assert_eq!(bytes(&[begins(1, 0), touches(1, 64, 8, false)]), []);
    }

    #[test]
    fn what_a_childs_child_reads_its_parent_has_copied() {
        let notes = [begins(0, NONE), begins(1, 0), begins(2, 1), touches(2, 64, 8, false)];
        assert_eq!(bytes(&notes), [(1, vec![(64, 8)]), (2, vec![(64, 8)])]);
    }
}
