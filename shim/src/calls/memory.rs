//! The program's memory in calls that move bytes, and what moves them between a channel and memory.

use vsrun_model::arena::POOL_ADDR;
use vsrun_model::channel::ChanId;
use vsrun_model::op::LACKS;
use vsrun_model::Op;

use super::buffers;
use crate::gate::{end, local, machine, model, world};
use crate::sys::errno::*;
use crate::sys::{bytes_mut, copy_in, copy_out, load, readable, writable, END_OF_ADDRESSES};

/// Bytes whose pages are tried before there is anything to put there.
const FEW: u64 = 4096;

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

    /// `done` bytes have been read from it, and the call goes on with the `n` behind them.
    pub fn goes_on(&self, done: u64, n: u64) {
        self.stretches(done, n, |at, size, _| buffers::goes_on(at, size));
    }

    /// Behind the first `done` bytes `n` have been written to it, and the call goes on.
    pub fn came(&self, done: u64, n: u64) {
        self.stretches(done, n, |at, size, _| buffers::came(at, size));
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
            copy_out(at, &source[from..from + n as usize]);
        });
    }

    /// Reads the first bytes.
    pub fn get(&self, target: &mut [u8]) {
        self.stretches(0, target.len() as u64, |at, n, before| {
            let from = before as usize;
            copy_in(&mut target[from..from + n as usize], at);
        });
    }

    /// True if it lies where programs have memory: asked before anything else of a call that moves bytes.
    pub fn is_possible(&self) -> bool {
        (0..self.pieces()).all(|i| {
            let (at, n) = self.piece(i);
            at.checked_add(n).is_some_and(|end| end <= END_OF_ADDRESSES)
        })
    }

    /// Bytes from byte `skip` on, of `n`, that can be read.
    pub fn readable(&self, skip: u64, n: u64) -> u64 {
        let (mut there, mut whole) = (0, true);
        self.stretches(skip, n, |at, n, _| {
            let part = if whole { readable(at, n) } else { 0 };
            (there, whole) = (there + part, whole && part == n);
        });
        there
    }

    /// The same for bytes to be written. Of many only the first is tried: the rest is when something is there for it.
    pub fn writable(&self, skip: u64, n: u64) -> u64 {
        let (mut there, mut whole) = (0, true);
        let tried = if n <= FEW { n } else { 1 };
        self.stretches(skip, tried, |at, n, _| {
            let part = if whole { writable(at, n) } else { 0 };
            (there, whole) = (there + part, whole && part == n);
        });
        if there == tried {
            n
        } else {
            there
        }
    }
}

/// The operation, where of `n` bytes of memory only `there` are there.
pub fn lacking(op: Op, there: u64, n: u64) -> Op {
    if there == n {
        return op;
    }
    model().set_out(local().cur, [there as i64, 0, 0]);
    op.with(LACKS)
}

/// What is lost and what stays when bytes have been taken for memory of which a part was there is not modelled.
pub fn refuse_part() -> ! {
    end::unsupported(&[b"a read of more than 4096 bytes into memory of which only a part is there"])
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
    // Nothing is moved, whatever it is (fs/read_write.c, vfs_readv).
    if memory.len() == 0 {
        return 0;
    }
    transfer(memory)
}

/// Copies `n` bytes between a channel's ring, from position `from` on, and memory from byte `skip` on.
pub fn copy(channel: ChanId, from: u64, memory: &Memory, skip: u64, n: u64, to_ring: bool) {
    let Some(ring) = machine().ring(channel) else {
        end::no_room(&[b"the program keeps more in pipes and sockets than vsrun can hold"])
    };
    let room = world().channels[channel].room;
    memory.stretches(skip, n, |at, len, before| {
        let mut done = 0;
        while done < len {
            let place = (from + before + done) % room;
            let part = (len - done).min(room - place);
            let ours = bytes_mut(POOL_ADDR + ring + place, part as usize);
            let moved = if to_ring { copy_in(ours, at + done) } else { copy_out(at + done, ours) };
            if !moved {
                return;
            }
            done += part;
        }
    });
}

/// Copies `n` bytes from one channel's ring to another's, from these positions on.
pub fn copy_between(from: ChanId, head: u64, to: ChanId, tail: u64, n: u64) {
    let mut buffer = [0u8; 4096];
    let mut done = 0;
    while done < n {
        let part = (n - done).min(buffer.len() as u64);
        let memory = Memory::one(buffer.as_mut_ptr() as u64, part);
        copy(from, head + done, &memory, 0, part, false);
        copy(to, tail + done, &memory, 0, part, true);
        done += part;
    }
}
