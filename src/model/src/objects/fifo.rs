//! FIFOs: pipes with a name in the file system. Which one a path names is told by device and inode.
//!
//! An open waits until the other end has been opened since, even if it has been closed again by then (fs/pipe.c,
//! fifo_open): so each end counts how often it has been opened.

use super::row::*;
use crate::objects::channel::name_hash;
use crate::state::{
    ChanId, ChanKind, DescId, DescKind, Fifo, Key, ObjKind, ACCESS, NONBLOCK, PIPE_RING, READ_ONLY, WRITE_ONLY,
};

kinds! {
    /// Open one end of a FIFO.
    FD_OPEN = 74, "open" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: DONE,
        records: Records::number(World::channel_states), cells: ON_CHANNELS, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::Opens, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN, shown: Shown::passes(Call::Row, OBJECT),
    }
    /// Second half of `Kind::FD_OPEN`: until the other end has been opened since.
    FD_OPENED = 75, "open (waiting)" {
        operands: Operands::Objects,
        enabled: blocks(|w, t, op| u32::from(w.fifo_opened(op) || w.cancelled(t, op)), |q| q.as_found()),
        perform: |w, _, op, _| Applied::Done(if w.fifo_opened(op) { 0 } else { errno::EINTR }),
        records: Records::number(|w, _, op| i64::from(w.fifo_opened(op))), cells: ON_CHANNELS, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::Opens, signals: Signals::RESTARTS, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::Row, arguments: OBJECT, outcome: Outcome::Nothing, waits: Some(|world, t, op, words| {
            let other = if op.has(VARIANT) { "writing" } else { "reading" };
            say![words, Thing::Object(op.obj), " to be opened for ", other, hopeless(world, t)];
        }), identity: BY_OBJECTS },
    }
}

impl World {
    /// The object of a FIFO; `name`: the last part of its path, which names it in every execution. `None`: no room.
    pub fn fifo(&mut self, dev: u64, ino: u64, name: &[u8]) -> Option<ObjId> {
        let same = |f: &&Fifo| f.dev == dev && f.ino == ino && f.gone == 0;
        if let Some(known) = self.fifos.as_slice().iter().find(same) {
            return Some(known.obj);
        }
        let mut addr = name_hash(name);
        while self.find(key(addr)).is_some() {
            addr = addr.wrapping_add(1);
        }
        let obj = self.make(key(addr), |object| object.flags = u32::from(ChanKind::FIFO.0))?;
        self.fifos.push(Fifo { dev, ino, obj, gone: 0 })?;
        // For reports.
        self.name_add(&name[..name.len().min(crate::state::sem::MAX_NAME)], obj);
        Some(obj)
    }

    /// A file has been made, with that inode: one that had the number before is another one, though somebody may have it open still. Natively
    /// the number would not be free then; here who has a FIFO open does not have its inode.
    pub fn inode_is_new(&mut self, dev: u64, ino: u64) {
        for fifo in self.fifos.as_mut_slice().iter_mut().filter(|f| f.dev == dev && f.ino == ino) {
            fifo.gone = 1;
        }
    }

    /// The FIFO that channel `id` belongs to.
    pub fn fifo_of(&self, id: ChanId) -> Option<&Fifo> {
        let obj = self.channel_obj(id);
        self.fifos.as_slice().iter().find(|f| f.obj == obj && obj != NONE)
    }

    /// Opens a FIFO by thread `t` with O_* `flags`; gives the description, or minus an error number. `None`: no room.
    pub fn fifo_open(&mut self, t: Tid, obj: ObjId, flags: u32) -> Option<Result<DescId, i64>> {
        let id = match self.channel_of(obj) {
            Some(id) => id,
            None => self.channel_on(t, obj, ChanKind::FIFO, PIPE_RING)?,
        };
        let (access, nonblock) = (flags & ACCESS, flags & NONBLOCK != 0);
        let before = self.channels[id];
        if access == WRITE_ONLY && nonblock && before.readers == 0 {
            self.channel_free(id);
            return Some(Err(errno::ENXIO));
        }
        let input = if access == WRITE_ONLY { NONE } else { id };
        let output = if access == READ_ONLY { NONE } else { id };
        let desc = self.desc_new(DescKind::PIPE, flags, input, output)?;
        self.channels[id].value += u64::from(output != NONE);
        self.channels[id].period += u64::from(input != NONE);
        if access == READ_ONLY && nonblock {
            // That nobody has it open for writing is no end of the file until somebody has had.
            self.descs[desc].extra = before.value as u32;
        }
        if input != NONE && before.readers == 0 || output != NONE && before.writers == 0 {
            self.woke(id, 0);
        }
        Some(Ok(desc))
    }

    /// What an open of `desc` waits for: how often the other end has been opened so far. `None`: it does not wait.
    pub fn fifo_wait(&self, desc: DescId) -> Option<Op> {
        let d = &self.descs[desc];
        let (id, reads) = if d.input == NONE { (d.output, false) } else { (d.input, true) };
        let channel = &self.channels[id];
        if d.input != NONE && d.output != NONE || d.flags & NONBLOCK != 0 {
            return None;
        }
        let (there, times) = if reads { (channel.writers, channel.value) } else { (channel.readers, channel.period) };
        let op = self.channel_op(crate::base::op::Kind::FD_OPENED, id, times as i64);
        (there == 0).then_some(if reads { op.with(VARIANT) } else { op })
    }

    /// The other end has been opened.
    pub(crate) fn fifo_opened(&self, op: &Op) -> bool {
        let Some(id) = self.channel_of(op.obj) else { return true };
        let channel = &self.channels[id];
        op.arg != if op.has(VARIANT) { channel.value } else { channel.period } as i64
    }

    /// The operation that opens a FIFO.
    pub fn fifo_op(&self, obj: ObjId) -> Op {
        let mut op = Op::on(crate::base::op::Kind::FD_OPEN, obj);
        op.mask = 1 << (self.objects[obj].key.addr % 32);
        op
    }
}

fn key(addr: u64) -> Key {
    Key::new(crate::state::channel::FIFO_SPACE, ObjKind::CHANNEL, addr)
}
