//! Ordinary files as communication objects: their contents, and their names.
//!
//! What a file holds and which names there are is in the file system; here is which uses of them are visible operations and
//! which of these depend on each other. A file is an object of its own from the moment at which one thread has changed it and
//! another has read it in an order that neither creation nor join nor wait decides; so is a name that one thread has made or
//! taken away and another has used. Until then a use is no operation at all, in every search. As with objects that one
//! thread alone uses (see [`crate::sharing`], where it is argued why nothing is lost) the search starts over when one turns out to be
//! shared, and each use of it is an operation from the first one on.
//!
//! What several threads write and nobody reads (a log) is not shared: the order of the lines makes no difference to the
//! program. It is once anybody reads it, however late. Who asks for the size of a file that he may not read, as `fopen(.., "a")` does, does
//! not share it; where that may find one size or another it is noted that the orders are not explored.
//!
//! All names are one object, [`ObjKind::PATHS`], of which an operation concerns a set ([`path_bit`]): those on the way, the one at its end, and
//! for what changes a name the listing of its directory.

use crate::arena::Arena;
use crate::base::{ObjId, Tid, NONE};
use crate::sched::sharing::name_of;
use crate::state::{
    Key, ObjKind, Thread, Use, Used, User, Verdict, World, CELL, FD_NUMBER, FILE_BUCKETS, GONE, LISTING, MAX_USERS,
    NAME, NO_FILE, PLACE, SHARED, SOCKET,
};

/// In [`User`]: from some time on, until its process ends.
const ALWAYS: u32 = u32::MAX;

/// A bit of the set of names for the path with that hash.
pub fn path_bit(hash: u64) -> i64 {
    1i64 << (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58)
}

fn bucket(dev: u64, ino: u64) -> usize {
    ((ino ^ dev.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize % FILE_BUCKETS
}

impl Arena {
    /// The row of `files.used_files` of a file, if there is one.
    pub fn used_file(&self, (dev, ino): (u64, u64)) -> Option<u32> {
        if self.files.used_files.len == 0 {
            return None;
        }
        let mut at = self.files.buckets[bucket(dev, ino)];
        while let Some(used) = at.checked_sub(1).and_then(|row| self.files.used_files.get(row)) {
            if used.dev == dev && used.ino == ino {
                return Some(at - 1);
            }
            at = used.next;
        }
        None
    }

    /// A new row for it. `number` is the same in every execution: from its path; another one is taken where it is taken. `None`: no
    /// room.
    pub fn add_used_file(&mut self, (dev, ino): (u64, u64), mut number: u64) -> Option<u32> {
        let taken = |f: &Used, number| f.number == number && f.dev < NO_FILE;
        while dev < NO_FILE && self.files.used_files.as_slice().iter().any(|f| taken(f, number)) {
            number = number.wrapping_add(1);
        }
        let nobody = User { thread: NONE, read: 0, wrote: 0, sized: 0 };
        let place = bucket(dev, ino);
        let next = self.files.buckets[place];
        let users = [nobody; MAX_USERS];
        let row = self.files.used_files.push(Used { dev, ino, number, obj: NONE, next, state: 0, len: 0, users })?;
        self.files.buckets[place] = row + 1;
        Some(row)
    }

    /// The last name of a file was taken away. Who has it open still uses it.
    pub fn file_removed(&mut self, id: (u64, u64)) {
        if let Some(row) = self.used_file(id) {
            self.files.used_files[row].state |= Used::REMOVED;
        }
    }

    /// There is a file with these numbers that has a name: what is known of one that lost its last is not about it.
    pub fn file_has_name(&mut self, id: (u64, u64)) {
        if let Some(row) = self.used_file(id) {
            let used = &mut self.files.used_files[row];
            if used.state & Used::REMOVED != 0 {
                used.dev = GONE;
            }
        }
    }

    /// What names it among what is known to be shared.
    fn key_of_file(&self, row: u32) -> Key {
        let used = &self.files.used_files[row];
        let kind = match used.dev {
            NAME | LISTING | CELL => ObjKind::PATHS,
            FD_NUMBER => ObjKind::DESCRIPTOR,
            _ => ObjKind::FILE,
        };
        let salt = match used.dev {
            LISTING => 1 << 63,
            PLACE => 1 << 62,
            SOCKET => 3 << 62,
            CELL => 5 << 61,
            _ => 0,
        };
        Key::new(SHARED, kind, used.number ^ salt)
    }

    /// True if each use of the file of that row is visible, as far as is known by now.
    pub fn is_file_shared(&mut self, row: u32) -> bool {
        if self.files.used_files[row].state & Used::ASKED == 0 {
            let known = self.is_known(name_of(self.key_of_file(row)));
            self.files.used_files[row].state |= Used::ASKED | if known { Used::SHARED } else { 0 };
        }
        self.files.used_files[row].state & Used::SHARED != 0
    }

    /// Thread `t` uses the file of that row, now or when its next operation is performed.
    pub fn use_file(&mut self, t: Tid, row: u32, what: Use) -> Verdict {
        let shared = self.is_file_shared(row);
        let is_name = self.files.used_files[row].dev == NAME;
        if what == Use::Write && self.files.used_files[row].dev >= LISTING {
            let state = &mut self.files.used_files[row].state;
            self.files.names_changed += u32::from(is_name && *state & Used::CHANGED == 0);
            *state |= Used::CHANGED;
        }
        if shared {
            return Verdict::Visible;
        }
        let (shares, sizes, logs) = self.conflicts(t, row, what);
        let used = &mut self.files.used_files[row];
        // Which of two makes a name, moves a place or changes a descriptor is told to both; which writes first, only to readers.
        if shares
            || logs && (is_name || matches!(used.dev, PLACE | FD_NUMBER))
            || what == Use::Read && used.state & Used::LOGGED != 0
        {
            used.state |= Used::SHARED;
            let name = name_of(self.key_of_file(row));
            self.note(name, 0);
            return Verdict::Visible;
        }
        let first = |state: &mut u32, bit: u32| core::mem::replace(state, *state | bit) & bit == 0;
        let (noted, logged) =
            (sizes && first(&mut used.state, Used::NOTED), logs && first(&mut used.state, Used::LOGGED));
        match () {
            () if noted => Verdict::Unexplored,
            () if logged && used.dev < NO_FILE => Verdict::Logged,
            () => Verdict::Passes,
        }
    }

    /// Whether a use is in no order with a read or write of another thread that makes the file shared; with one of which is
    /// the size; with a write where it is one too. Notes the use.
    fn conflicts(&mut self, t: Tid, row: u32, what: Use) -> (bool, bool, bool) {
        let now = self.world.threads.len;
        let file = &self.files.used_files[row];
        let others = file.users[..file.len as usize].iter().filter(|u| u.thread != t || u.read == ALWAYS);
        let unordered = |u: Tid, at: u32| u == NONE || !ordered(&self.world, u, at, t);
        let open = |at: u32, u: &User| at > 0 && (u.thread != t || at == ALWAYS) && unordered(u.thread, at);
        let (mut shares, mut sizes, mut logs) = (false, false, false);
        for u in others {
            match what {
                Use::Read => shares |= open(u.wrote, u),
                Use::Size => sizes |= open(u.wrote, u),
                Use::Write => {
                    shares |= open(u.read, u);
                    sizes |= open(u.sized, u);
                    logs |= open(u.wrote, u);
                }
            }
        }
        let users = &file.users[..file.len as usize];
        let known = users.iter().position(|u| u.thread == t);
        let several = || {
            let reads = |u: &User| u.wrote == 0;
            let merged = users.iter().position(|u| u.thread == NONE).or_else(|| users.iter().rposition(reads));
            merged.filter(|_| what != Use::Write)
        };
        let free = (file.len < MAX_USERS as u32).then_some(file.len as usize);
        let Some(place) = known.or(free).or_else(several) else { return (true, sizes, logs) };
        let file = &mut self.files.used_files[row];
        let merges = known.is_none() && free.is_none();
        file.len = file.len.max(place as u32 + 1);
        let user = &mut file.users[place];
        user.thread = if merges { NONE } else { t };
        if merges && (user.read > 0 || what == Use::Read) {
            user.read = ALWAYS;
        }
        match what {
            Use::Read => user.read = user.read.max(now),
            Use::Size => user.sized = now,
            Use::Write => user.wrote = user.wrote.max(now),
        }
        (shares, sizes, logs)
    }

    /// Several threads write the file of that row in an order that nothing decides, though not by calls of their own. True: each use of it is
    /// visible. Who reads it later makes it shared.
    pub fn log_file(&mut self, row: u32) -> bool {
        self.files.used_files[row].state |= Used::LOGGED;
        self.is_file_shared(row)
    }

    /// Thread `t` may go on reading the file of that row, and writing it, without being seen until its process ends: it is mapped.
    pub fn keep_using(&mut self, t: Tid, row: u32, writes: bool) {
        let file = &mut self.files.used_files[row];
        let Some(user) = file.users[..file.len as usize].iter_mut().find(|u| u.thread == t) else { return };
        user.read = ALWAYS;
        if writes {
            user.wrote = ALWAYS;
        }
    }

    /// The same where it does so in one way.
    pub(crate) fn keep_using_as(&mut self, t: Tid, row: u32, what: Use) {
        let file = &mut self.files.used_files[row];
        let Some(user) = file.users[..file.len as usize].iter_mut().find(|u| u.thread == t) else { return };
        match what {
            Use::Write => user.wrote = ALWAYS,
            _ => user.read = ALWAYS,
        }
    }

    /// The object of a file that is shared, or of all names. `Some((object, true))`: it is new and has no name yet.
    pub fn file_object(&mut self, row: u32) -> Option<(ObjId, bool)> {
        let mut key = self.key_of_file(row);
        if key.kind == ObjKind::PATHS {
            key.addr = 0;
        }
        let known = self.world.find(key);
        let obj = match known {
            Some(obj) => obj,
            None => self.world.make(key, |_| {})?,
        };
        self.files.used_files[row].obj = obj;
        Some((obj, known.is_none()))
    }
}

/// True if what thread `u` did when there were `at` threads comes before what thread `t` does now in every order of
/// independent steps: by the creation of `t` or of one that created it, by a join, or by a wait for `u`'s process.
fn ordered(world: &World, u: Tid, at: u32, t: Tid) -> bool {
    if at == ALWAYS {
        // Its mappings are also those of its other threads and of the processes that it made.
        let of = world.threads[u].pid;
        let inherits = |x: &Thread| {
            let waited = world.procs.get(x.pid).is_some_and(|p| p.waited > 0 && p.waiter == t);
            let mut above = world.threads.get(x.creator);
            while let Some(thread) = above.filter(|thread| thread.pid != of) {
                above = world.threads.get(thread.creator);
            }
            x.pid != of && above.is_some() && !waited
        };
        if world.threads.as_slice().iter().any(inherits) {
            return false;
        }
    }
    if u == t || created_by(world, t, u, at) {
        return true;
    }
    if at != ALWAYS && world.joined_before(u, t) {
        return true;
    }
    // Waited for by the thread that goes on, or by one that then created it. How far one got that was killed is open, and how far a thread
    // got in whose process another one called exit.
    let killed = |status: i32| status & 0x7f != 0;
    let (mut last, mut since) = (u, at);
    while let Some(ended) = world.procs.get(world.threads[last].pid).filter(|p| p.waited > 0 && !killed(p.status)) {
        if !comes_before(world, last, since, ended.ender) {
            return false;
        }
        if ended.waiter == t || created_by(world, t, ended.waiter, ended.waited) {
            return true;
        }
        (last, since) = (ended.waiter, ended.waited);
    }
    false
}

/// True if what `u` did when there were `at` threads comes before `ender` ended the process of both, which may be none: then each of its
/// threads ended by itself.
fn comes_before(world: &World, u: Tid, at: u32, ender: Tid) -> bool {
    ender == NONE || u == ender || at != ALWAYS && (world.joined_before(u, ender) || created_by(world, ender, u, at))
}

/// True if `t`, or one that created it, was created by `by` when there were `since` threads, or later.
fn created_by(world: &World, t: Tid, by: Tid, since: u32) -> bool {
    let mut child = t;
    while let Some(thread) = world.threads.get(child).filter(|thread| thread.creator != NONE) {
        if child >= since && thread.creator == by {
            return true;
        }
        child = thread.creator;
    }
    false
}
