//! The numbers of a process's descriptors as communication objects: what each number stands for, which are free, and the file status flags of
//! a description.
//!
//! Each of these is an object of its own from the moment at which one thread has changed it and another has used it in an order that neither
//! creation nor join decides, as files are (see [`crate::file`], by which the uses are noted). Until then a use is no operation at all, in
//! every search; when one turns out to be shared, the search starts over with each use of it an operation. Of processes with one thread
//! nothing is noted. So what a program costs whose threads each have descriptors of their own, or have them from their creator, is to compare
//! one word in each call.
//!
//! libc takes and gives back descriptors of its own with locks of its own held (syslog, time zones, users and hosts), which are no objects.
//! A thread that meets such a lock taken shows that there was a place to switch where there may be none: the search starts over, and what
//! libc does by itself is no operation from then on. Where others could tell, this depends on everything, and is said to be not explored.
//!
//! Which numbers are free is told by whoever gets one: two that open, or one that opens and one that closes, do not commute; two that close
//! do. What a number stands for is told by whoever looks it up, in any call.

use crate::arena::Arena;
use crate::base::{ObjId, Pid, Tid, NONE};
use crate::state::{DescId, Use, Verdict, FD_NUMBER, LOOKED_UP};

/// In place of a number: which numbers are free.
pub const FREE: u64 = 0xffff;
/// The same: the file status flags of a description.
pub const FLAGS: u64 = 0xfffe;
/// The name of: flags are changed while others may look at them.
const FLAGS_CHANGE: u64 = 0x666c_6167_735f_6368;
/// The name of: somebody has met a lock of libc's own that was held at a place to switch.
const LIBC_LOCKS: u64 = 0x6c69_6263_5f6c_636b;
/// [`World::flags_change`](crate::World), [`World::libc_is_quiet`](crate::World): not looked up yet, no, yes.
const UNASKED: u8 = 0;
const NO: u8 = 1;
const YES: u8 = 2;

impl Arena {
    /// What names a number of process `p`, or which numbers are free, in every execution: by the process's first thread.
    fn number_name(&self, p: Pid, which: u64) -> u64 {
        let main = self.world.procs[p].main_thread;
        let uid = self.world.threads.get(main).map_or(0, |thread| thread.uid.0);
        uid.wrapping_mul(0x9e37_79b9_7f4a_7c15) << 16 | which & 0xffff
    }

    /// Where it is kept that thread `t` of process `p` has looked up `fd` and nothing was to be made of it, and how. The number of threads
    /// belongs to it: those that are created later are ordered after what was looked up before.
    #[inline]
    fn looked_up(&self, p: Pid, t: Tid, fd: i32) -> (usize, u64) {
        let who = u64::from(p & 0xffff) << 48 | u64::from(fd as u16) << 32 | u64::from(t & 0xffff) << 16;
        ((fd as usize ^ (p as usize) << 3) % LOOKED_UP, who | u64::from(self.world.threads.len & 0xffff))
    }

    /// True if that is so, as is usual.
    #[inline]
    pub fn has_looked_up(&self, p: Pid, t: Tid, fd: i32) -> bool {
        let (place, name) = self.looked_up(p, t, fd);
        self.world.looked_up[place] == name
    }

    /// Thread `t` looks up what descriptor `fd` of its process stands for (`Use::Read`) or changes it (`Use::Write`), now or when its next
    /// operation is performed. The object, if that is visible.
    pub fn use_number(&mut self, t: Tid, fd: i32, what: Use) -> Option<ObjId> {
        let p = self.world.threads[t].pid;
        if what == Use::Read && self.has_looked_up(p, t, fd) {
            return None;
        }
        let obj = self.use_cell(t, self.number_name(p, fd as u64), what);
        let (place, name) = self.looked_up(p, t, fd);
        self.world.looked_up[place] = if obj.is_none() { name } else { 0 };
        obj
    }

    /// Thread `t` takes the lowest free number of its process (`Use::Write`) or gives one back (`Use::Read`).
    pub fn use_free_numbers(&mut self, t: Tid, what: Use) -> Option<ObjId> {
        let p = self.world.threads[t].pid;
        self.use_cell(t, self.number_name(p, FREE), what)
    }

    /// The object of a number that thread `t` changes together with others that are visible.
    pub fn number_object(&mut self, t: Tid, fd: i32) -> Option<ObjId> {
        let p = self.world.threads[t].pid;
        let row = self.used_file((FD_NUMBER, self.number_name(p, fd as u64)))?;
        self.file_object(row).map(|(obj, _)| obj)
    }

    /// Whether flags of descriptions are changed while others may look at them: only then who looks at them is noted.
    #[inline]
    pub fn flags_change(&mut self) -> bool {
        if self.world.flags_change == UNASKED {
            self.world.flags_change = if self.is_known(FLAGS_CHANGE) { YES } else { NO };
        }
        self.world.flags_change == YES
    }

    /// A thread has to wait for a lock of libc's own that is no object.
    pub fn meets_libc_lock(&mut self) {
        self.note(LIBC_LOCKS, 0);
    }

    /// Whether that has been seen.
    #[inline]
    pub fn libc_is_quiet(&mut self) -> bool {
        if self.world.libc_is_quiet == UNASKED {
            self.world.libc_is_quiet = if self.is_known(LIBC_LOCKS) { YES } else { NO };
        }
        self.world.libc_is_quiet == YES
    }

    /// libc has made descriptor `fd` of process `p`: nobody can tell, if it closes it within the transition. `told`: else somebody can.
    pub fn libc_made(&mut self, p: Pid, fd: i32, told: bool) {
        match self.world.libc_made.iter_mut().find(|made| **made == 0) {
            Some(place) => *place = made_name(p, fd) | u64::from(told),
            None if told => self.libc_used_numbers(),
            None => {}
        }
    }

    /// Whether that is so of this one.
    pub fn is_made_by_libc(&self, p: Pid, fd: i32) -> bool {
        self.world.libc_made.iter().any(|made| made & !1 == made_name(p, fd))
    }

    /// It is closed.
    pub fn libc_closed(&mut self, p: Pid, fd: i32) {
        let name = made_name(p, fd);
        self.world.libc_made.iter_mut().filter(|made| **made & !1 == name).for_each(|made| *made = 0);
    }

    /// The transition is over: what is still there stays.
    pub(crate) fn keep_what_libc_made(&mut self) {
        if self.world.libc_made != [0; 4] && core::mem::take(&mut self.world.libc_made).iter().any(|made| made & 1 != 0)
        {
            self.libc_used_numbers();
        }
    }

    /// libc has used, by itself, numbers that others may tell.
    pub fn libc_used_numbers(&mut self) {
        self.world.reaches_far();
        self.note_unexplored_number();
    }

    /// Thread `t` looks at the file status flags of `desc` (`Use::Read`) or changes them (`Use::Write`). The object, if that is visible.
    pub fn use_flags(&mut self, t: Tid, desc: DescId, what: Use) -> Option<ObjId> {
        if !self.flags_change() {
            if what == Use::Write {
                self.note(FLAGS_CHANGE, 0);
            }
            return None;
        }
        let desc = self.world.descs[desc];
        let (channel, end) = if desc.input != NONE { (desc.input, 0) } else { (desc.output, 1) };
        let made =
            self.world.channels.get(channel).map_or(0, |c| c.maker.0.wrapping_mul(31) ^ u64::from(c.number) << 1 ^ end);
        self.use_cell(t, made.wrapping_mul(0x9e37_79b9_7f4a_7c15) << 16 | FLAGS, what)
    }

    fn use_cell(&mut self, t: Tid, name: u64, what: Use) -> Option<ObjId> {
        let cell = (FD_NUMBER, name);
        let row = self.used_file(cell).or_else(|| self.add_used_file(cell, name));
        let obj = match row.map(|row| (row, self.use_file(t, row, what))) {
            Some((row, Verdict::Visible)) => self.file_object(row).map(|(obj, _)| obj),
            Some(_) => return None,
            None => None,
        };
        if obj.is_none() {
            // No room: who comes first is not explored.
            self.note_unexplored();
        }
        obj
    }

    /// The number whose object this is has been reserved, and nothing is there yet; or something is.
    pub fn number_stands(&mut self, obj: ObjId, stands: bool) {
        self.world.objects[obj].value = i32::from(!stands);
    }
}

/// Never 0; bit 0 is free.
fn made_name(p: Pid, fd: i32) -> u64 {
    ((u64::from(p) << 16 | u64::from(fd as u16)) + 1) << 1
}
