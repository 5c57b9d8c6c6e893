//! The program's memory in calls that move bytes, and what moves them between a channel and memory.

use vsrun_model::arena::POOL_ADDR;
use vsrun_model::channel::ChanId;

use crate::gate::{end, machine, world};
use crate::sys::errno::*;
use crate::sys::{bytes, bytes_mut, load};

/// Memory that bytes are moved to or from: one piece or an array of `iovec`.
#[derive(Clone, Copy)]
pub struct Memory {
    /// Address of the piece, or of the array.
    at: u64,
    /// Bytes of the piece, or pieces of the array.
    n: u64,
    vector: bool,
}

impl Memory {
    /// One piece.
    pub fn one(at: u64, n: u64) -> Memory {
        Memory { at, n: n.min(0x7fff_f000), vector: false }
    }

    /// An array of `n` iovecs.
    pub fn many(at: u64, n: u64) -> Memory {
        Memory { at, n, vector: true }
    }

    /// Address and length of the `i`-th piece.
    pub fn piece(&self, i: u64) -> (u64, u64) {
        if self.vector {
            (load(self.at + 16 * i), load(self.at + 16 * i + 8))
        } else {
            (self.at, self.n)
        }
    }

    /// How many pieces there are.
    pub fn pieces(&self) -> u64 {
        if self.vector {
            self.n
        } else {
            1
        }
    }

    /// Bytes in all.
    pub fn len(&self) -> u64 {
        (0..self.pieces()).map(|i| self.piece(i).1).sum::<u64>().min(0x7fff_f000)
    }

    /// Calls `each` with (address, length, bytes before it) for the stretches that make up `n` bytes from byte `skip` on.
    pub fn stretches(&self, mut skip: u64, n: u64, mut each: impl FnMut(u64, u64, u64)) {
        let mut done = 0;
        for i in 0..self.pieces() {
            let (at, len) = self.piece(i);
            let from = skip.min(len);
            skip -= from;
            let part = (len - from).min(n - done);
            if part > 0 {
                each(at + from, part, done);
                done += part;
            }
            if done == n {
                return;
            }
        }
    }
}

impl Memory {
    /// Writes `source` from the first byte on.
    pub fn put(&self, source: &[u8]) {
        self.put_at(0, source);
    }

    /// Writes `source` from byte `skip` on.
    pub fn put_at(&self, skip: u64, source: &[u8]) {
        self.stretches(skip, source.len() as u64, |at, n, before| {
            let from = before as usize;
            bytes_mut(at, n as usize).copy_from_slice(&source[from..from + n as usize]);
        });
    }

    /// Reads the first bytes.
    pub fn get(&self, target: &mut [u8]) {
        self.stretches(0, target.len() as u64, |at, n, before| {
            let from = before as usize;
            target[from..from + n as usize].copy_from_slice(bytes(at, n as usize));
        });
    }
}

/// readv and its like: checks the array.
pub fn vector(at: u64, n: u64, transfer: impl FnOnce(Memory) -> i64) -> i64 {
    if n > 1024 {
        return EINVAL;
    }
    let memory = Memory::many(at, n);
    if (0..n).any(|i| memory.piece(i).1 > i64::MAX as u64) {
        return EINVAL;
    }
    transfer(memory)
}

/// Copies `n` bytes between a channel's ring, from position `from` on, and memory from byte `skip` on.
pub fn copy(channel: ChanId, from: u64, memory: &Memory, skip: u64, n: u64, to_ring: bool) {
    let Some(ring) = machine().ring(channel) else {
        end::unsupported(&[b"the program keeps more in pipes and sockets than vsrun can hold"])
    };
    let room = world().channels[channel].room;
    memory.stretches(skip, n, |at, len, before| {
        let mut done = 0;
        while done < len {
            let place = (from + before + done) % room;
            let part = (len - done).min(room - place);
            let (inside, outside) = (POOL_ADDR + ring + place, at + done);
            let (source, target) = if to_ring { (outside, inside) } else { (inside, outside) };
            bytes_mut(target, part as usize).copy_from_slice(bytes(source, part as usize));
            done += part;
        }
    });
}
