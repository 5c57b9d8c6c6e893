//! State that several threads or processes share and that is no object of its own: umask and directory of a process, its group and session,
//! limits, priorities, sizes, options, who has what attached. Which call reads and writes which of it is one table, the shim's; here is what
//! names it and when a use is visible.
//!
//! A cell becomes visible as a file does (see [`crate::file`], by which the uses are noted): when one thread has written it and another has read
//! it in an order that neither creation nor join nor wait decides. Two that only write it in any order do not make it so; whoever reads it
//! later does. Visible cells are kept as names of files are: an operation concerns a set of them, and a call that looks a name up and reads a
//! cell is one operation.

use crate::arena::Arena;
use crate::base::{Pid, Tid, NONE};
use crate::state::{DescId, Use, Verdict, CELL};

/// The name of: a thread or process changes what another one has (nice value, policy, limits, ..).
const OTHERS_CHANGE: u64 = 0x6f74_6865_7273_5f63;
/// The name of: a cell that decides what calls do which neither set it nor ask for it is changed beside other threads.
const DECIDES: u64 = 0x6465_6369_6465_735f;

impl Arena {
    /// What names cell `what` of process `p` in every execution: by its first thread.
    pub fn cell_of_process(&self, what: u64, p: Pid) -> u64 {
        let main = self.world.procs.get(p).map_or(NONE, |process| process.main_thread);
        self.cell_of_thread(what, main)
    }

    /// The same of thread `t`.
    pub fn cell_of_thread(&self, what: u64, t: Tid) -> u64 {
        named(what, self.world.threads.get(t).map_or(0, |thread| thread.uid.0))
    }

    /// The same of what `desc` stands for: by who made its channel. The two ends of a pipe have one.
    pub fn cell_of_channel(&self, what: u64, desc: DescId) -> u64 {
        let desc = self.world.descs[desc];
        let channel = if desc.input != NONE { desc.input } else { desc.output };
        let made =
            self.world.channels.get(channel).map_or(0, |c| c.maker.0.wrapping_mul(31) ^ u64::from(c.number) << 1);
        named(what, made)
    }

    /// The same of anything else that has a number of its own.
    pub fn cell_of(&self, what: u64, which: u64) -> u64 {
        named(what, which)
    }

    /// Thread `t` uses the cell of that name, now or when its next operation is performed. True: it is visible.
    pub fn use_state(&mut self, t: Tid, name: u64, what: Use) -> bool {
        match self.used_file((CELL, name)).or_else(|| self.add_used_file((CELL, name), name)) {
            Some(row) => self.use_file(t, row, what) == Verdict::Visible,
            None => {
                // No room: who comes first is not explored.
                self.note_unexplored();
                false
            }
        }
    }

    /// Thread `t` goes on using the cell of that name so until its process ends.
    pub fn keep_state(&mut self, t: Tid, name: u64, what: Use) {
        if let Some(row) = self.used_file((CELL, name)) {
            self.keep_using_as(t, row, what);
        }
    }

    /// Whether somebody changes what another one has: only then it is noted who passes it on to what it makes.
    pub fn others_change(&self) -> bool {
        self.is_known(OTHERS_CHANGE)
    }

    /// Somebody does.
    pub fn note_others_change(&mut self) {
        self.note(OTHERS_CHANGE, 0);
    }

    /// Whether state of that kind is changed beside other threads: only then it is noted whose calls go by it.
    pub fn decides(&self, what: u64) -> bool {
        self.is_known(DECIDES ^ what << 8)
    }

    /// It is.
    pub fn note_decides(&mut self, what: u64) {
        self.note(DECIDES ^ what << 8, 0);
    }
}

fn named(what: u64, whose: u64) -> u64 {
    let mut z = whose.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ what.wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(31);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
