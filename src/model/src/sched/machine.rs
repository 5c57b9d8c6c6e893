//! What the processes of a world share beside the modelled objects, as the shim changes it: memory, the private layer over the file
//! system, what is counted.

use crate::arena::{Arena, Attached, Segment, LIBC_NUMBERS, MAX_SYSCALLS, POOL_SIZE, SHARED_FILES};
use crate::base::back::{Answer, Hinders, Stand};
use crate::base::Pid;
use crate::state::Copied;

const PAGE: u64 = 4096;

impl Arena {
    /// Counts a system call that went through to the kernel, or about which the model does not know everything: nothing
    /// is claimed to be complete then.
    pub fn count_call(&mut self, nr: i64) {
        if let Some(n) = usize::try_from(nr).ok().and_then(|nr| self.control.passed.get_mut(nr)) {
            *n += 1;
        }
    }

    /// Addresses of the words by which vsrun and the root talk: `Control::command`, `ready`, `forked`.
    pub fn root_words(&mut self) -> [u64; 3] {
        let control = &mut self.control;
        [&raw mut control.command as u64, &raw mut control.ready as u64, &raw mut control.forked as u64]
    }

    /// Process `p`, which has the turn, says how far it is: the address of [`Back::stand`](crate::back::Back), a futex word.
    pub fn stand_word(&mut self, p: Pid) -> u64 {
        self.back.speaker = p;
        &raw mut self.back.stand as u64
    }

    /// The execution is to stop now, before its first choice.
    #[inline]
    pub fn is_to_stand(&self) -> bool {
        self.taken == 0 && self.back.stand == Stand::ASKED
    }

    /// A mark is to be made before the transition that is decided on now.
    #[inline]
    pub fn is_to_mark(&self) -> bool {
        let back = &self.back;
        if back.stand != Stand::RUNS || back.every == 0 && back.n_wanted == 0 {
            return false;
        }
        match back.wanted.get((back.n_wanted as usize).wrapping_sub(1)) {
            Some(&at) => self.taken >= at,
            None => back.every > 0 && self.taken >= back.marked_at + back.every,
        }
    }

    /// One has been made, or could not be.
    pub fn has_marked(&mut self) {
        let back = &mut self.back;
        back.n_wanted = back.n_wanted.saturating_sub(1);
        back.marked_at = self.taken;
    }

    /// None is made any more in this execution.
    pub fn marks_no_more(&mut self) {
        (self.back.n_wanted, self.back.every) = (0, 0);
    }

    /// Those of a process take so many pages together, and the largest of them so many.
    pub fn marks_take(&mut self, all: u64, largest: u64) {
        (self.back.held, self.back.largest) = (self.back.held.max(all), self.back.largest.max(largest));
    }

    /// There is no room for the mark that was to be made.
    pub fn has_no_room_for_mark(&mut self) {
        self.back.no_room += 1;
    }

    /// Bit N: the process can come back to the mark in place N.
    pub fn can_come_to(&mut self, marks: u32) {
        self.back.usable = marks;
    }

    /// The process does not go back, so that no other one does.
    pub fn does_not_go_back(&mut self, why: Hinders) {
        self.back.why = why;
        self.back.holds = 0;
        self.back.stand = Stand::GIVEN_UP;
    }

    /// Processes go back, so that none of them ends for the kernel.
    #[inline]
    pub fn holds_processes(&self) -> bool {
        self.back.holds != 0
    }

    /// Originals of processes stand still where others would go back to: see NOTE \[Copies\] of [`crate::back`].
    #[inline]
    pub fn copies(&self) -> bool {
        self.back.copies != 0
    }

    /// The place of the original that stands for process `p`. `None`: the process is there itself.
    #[inline]
    pub fn original_of(&self, p: Pid) -> Option<u32> {
        if !self.copies() {
            return None;
        }
        self.back.stands.get(p as usize)?.checked_sub(1)
    }

    /// Process `p` is there itself from now on, or never.
    pub fn stands_for_none(&mut self, p: Pid) {
        if let Some(stands) = self.back.stands.get_mut(p as usize) {
            *stands = 0;
        }
    }

    /// Address of the word at which the original in that place waits. `None`: there is no such place.
    pub fn original_word(&mut self, place: u32) -> Option<u64> {
        self.back.at.get_mut(place as usize).map(|word| &raw mut *word as u64)
    }

    /// The process with that real pid is about to be copied.
    pub fn is_original(&mut self, pid: i32) {
        self.back.original = pid;
    }

    /// Address of the word at which process `p` waits when it goes back; see [`Back::words`](crate::back::Back). `None`: it does not.
    pub fn back_word(&mut self, p: Pid) -> Option<u64> {
        self.back.words.get_mut(p as usize).map(|word| &raw mut *word as u64)
    }

    /// Process `p` has been told to do something, and takes that order. False: it has taken it at its other word.
    pub fn takes_order(&mut self, p: Pid) -> bool {
        let back = &mut self.back;
        match (back.taken.get_mut(p as usize), back.given.get(p as usize)) {
            (Some(taken), Some(&given)) => core::mem::replace(taken, given) != given,
            _ => false,
        }
    }

    /// Where process `p` goes back to before it does anything else, as `Back::to`; see [`Back::late`](crate::back::Back).
    #[inline]
    pub fn late(&self, p: Pid) -> Option<u32> {
        self.back.late.get(p as usize)?.checked_sub(1)
    }

    /// It has.
    pub fn is_not_late(&mut self, p: Pid) {
        if let Some(late) = self.back.late.get_mut(p as usize) {
            *late = 0;
        }
    }

    /// It had the turn there.
    pub fn leads(&self, p: Pid) -> bool {
        self.back.leader == p
    }

    /// It cannot, so that the execution counts for nothing.
    pub fn goes_astray(&mut self) {
        self.back.astray = 1;
    }

    /// What has become of the order of process `p`.
    pub fn answers(&mut self, p: Pid, done: Result<(), Hinders>) {
        if let Err(why) = done {
            self.back.why = why;
        }
        if let Some(answer) = self.back.answers.get_mut(p as usize) {
            *answer = if done.is_ok() { Answer::DONE } else { Answer::FAILED };
        }
    }

    /// Address of its answer, a futex word; see [`Back::answers`](crate::back::Back).
    pub fn answer_word(&mut self, p: Pid) -> u64 {
        self.back.answers.get_mut(p as usize).map_or(0, |answer| &raw mut *answer as u64)
    }

    /// Process `p`, which goes back, has the turn.
    #[inline]
    pub fn has_moved(&mut self, p: Pid) {
        if let Some(moved) = self.back.moved.get_mut(p as usize) {
            *moved = 1;
        }
    }

    /// The page at this address was written, and nothing of it is kept. False: no more of them can be told.
    pub fn misses(&mut self, page: u64) -> bool {
        let back = &mut self.back;
        match back.missed.get_mut(back.n_missed as usize) {
            Some(place) => {
                *place = page;
                back.n_missed += 1;
                true
            }
            None => false,
        }
    }

    /// Whether vsrun is to see from where the transition is made that has just been decided on, see `Control::told_from`.
    pub fn is_told(&self) -> bool {
        let from = self.control.told_from;
        from != 0 && self.taken >= from
    }

    /// The process of who makes it is about to stop itself for that.
    pub fn tell(&mut self) {
        self.control.tells = 1;
    }

    /// Nobody is to be told from now on.
    pub fn tell_no_more(&mut self) {
        self.control.told_from = 0;
    }

    /// Processes are to show something else, see [`Shows`](crate::arena::Shows).
    pub fn show(&mut self, kind: u32) {
        self.control.shows = self.control.shows.next(kind);
    }

    /// The process has used page `n` of [`Pages`](crate::arena::Pages).
    pub fn page_is_used(&mut self, n: usize) {
        self.control.pages.set_used(n);
    }

    /// `len` bytes of the pool; offset in it. `None`: no room.
    pub fn take_pool(&mut self, len: u64) -> Option<u64> {
        let at = self.control.pool_used.max(PAGE);
        self.control.pool_used = at.checked_add(len).filter(|&end| end <= POOL_SIZE)?;
        Some(at)
    }

    /// A region of its own for anonymous memory that is mapped shared. `None`: no room.
    pub fn new_region(&mut self) -> Option<u32> {
        self.control.regions += 1;
        self.region(0, self.control.regions.into())
    }

    /// A new SysV segment of that size, key and mode, made by the process with virtual id `creator`; its id. `None`: no room.
    pub fn segment_make(&mut self, key: i32, size: u64, offset: u64, mode: u32, creator: i32) -> Option<i32> {
        let id = self.segments.len as i32 + 1;
        let dates = [0, 0, self.world.now.max(1)];
        self.segments.push(Segment { key, id, offset, size, mode, creator, dates, ..Segment::default() })?;
        Some(id)
    }

    /// Process `p` has attached segment `index` once more. False: no room.
    pub fn segment_attach(&mut self, p: Pid, index: u32) -> bool {
        let Some(at) = self.attached_at(p, index) else { return false };
        self.attached[at].times += 1;
        let (pid, now) = (self.world.procs[p].vpid, self.world.now.max(1));
        let segment = &mut self.segments[index];
        (segment.attached, segment.last, segment.dates[0]) = (segment.attached + 1, pid, now);
        true
    }

    /// What process `p` has of segment `index`. `None`: no room.
    fn attached_at(&mut self, p: Pid, index: u32) -> Option<u32> {
        let all = self.attached.as_slice();
        let used = |a: &Attached| a.times + a.entering > 0;
        let same = all.iter().position(|a| a.process == p && a.segment == index && used(a));
        if let Some(at) = same {
            return Some(at as u32);
        }
        let free = all.iter().position(|a| !used(a)).map(|at| at as u32);
        let at = free.or_else(|| self.attached.push(Attached::default()))?;
        self.attached[at] = Attached { process: p, segment: index, ..Attached::default() };
        Some(at)
    }

    /// A call of process `p` begins to attach segment `index`: until [`Arena::segment_entered`] it is counted once more (ipc/shm.c,
    /// do_shmat), without a date. False: no room.
    pub fn segment_enters(&mut self, p: Pid, index: u32) -> bool {
        let Some(at) = self.attached_at(p, index) else { return false };
        self.attached[at].entering += 1;
        self.segments[index].attached += 1;
        true
    }

    /// That call has done so, or failed.
    pub fn segment_entered(&mut self, p: Pid, index: u32) {
        let same = |a: &&mut Attached| a.process == p && a.segment == index && a.entering > 0;
        let Some(attached) = self.attached.as_mut_slice().iter_mut().find(same) else { return };
        attached.entering -= 1;
        self.one_less(index);
    }

    /// The last one takes a removed segment along.
    fn one_less(&mut self, index: u32) {
        let segment = &mut self.segments[index];
        segment.attached = segment.attached.saturating_sub(1);
        if segment.removed == 1 && segment.attached == 0 {
            segment.removed = 2;
        }
    }

    /// It has detached it; the last one takes a removed segment along.
    pub fn segment_detach(&mut self, p: Pid, index: u32) {
        let same = |a: &&mut Attached| a.process == p && a.segment == index && a.times > 0;
        let Some(attached) = self.attached.as_mut_slice().iter_mut().find(same) else { return };
        attached.times -= 1;
        let (pid, now) = (self.world.procs[p].vpid, self.world.now.max(1));
        let segment = &mut self.segments[index];
        (segment.last, segment.dates[1]) = (pid, now);
        self.one_less(index);
    }

    /// Process `child` is a copy of `parent`, with its segments; who made it is noted as the last. False: no room.
    pub fn segments_forked(&mut self, parent: Pid, child: Pid) -> bool {
        for i in 0..self.attached.len {
            let Attached { process, segment, times, .. } = self.attached[i];
            for _ in 0..if process == parent { times } else { 0 } {
                if !self.segment_attach(child, segment) {
                    return false;
                }
                self.segments[segment].last = self.world.procs[parent].vpid;
            }
        }
        true
    }

    /// The memory of process `p` is gone.
    pub fn segments_left(&mut self, p: Pid) {
        for i in 0..self.attached.len {
            let Attached { process, segment, times, entering } = self.attached[i];
            for _ in 0..if process == p { times } else { 0 } {
                self.segment_detach(p, segment);
            }
            for _ in 0..if process == p { entering } else { 0 } {
                self.segment_entered(p, segment);
            }
        }
    }

    /// IPC_RMID.
    pub fn segment_remove(&mut self, index: u32) {
        let segment = &mut self.segments[index];
        (segment.removed, segment.key) = (if segment.attached == 0 { 2 } else { 1 }, 0);
    }

    /// IPC_SET.
    pub fn segment_mode(&mut self, index: u32, mode: u32) {
        let now = self.world.now.max(1);
        (self.segments[index].mode, self.segments[index].dates[2]) = (mode, now);
    }

    /// Something in the execution's private /dev/shm is used.
    pub fn use_shm(&mut self) {
        self.control.shm_used = 1;
    }

    /// A shadow for the directory at `path`, which may be the first. `None`: no room, or the path is too long.
    pub fn shadow_make(&mut self, dev: u64, ino: u64, path: &[u8]) -> Option<u32> {
        let row = self.files.add_shadow(dev, ino, path)?;
        self.files.used = 1;
        Some(row)
    }

    /// The private layer lies on that device.
    pub fn layer_is_on(&mut self, dev: u64) {
        self.files.dev = dev;
    }

    /// A file was copied into the layer. False: no room.
    pub fn note_copy(&mut self, copy: Copied) -> bool {
        self.files.copies.push(copy).is_some()
    }

    /// A number for a listing of a directory.
    pub fn next_listing(&mut self) -> u32 {
        self.files.listings += 1;
        self.files.listings - 1
    }

    /// A directory is about to be taken away, to get another name or other attributes.
    pub fn note_directory_change(&mut self) {
        self.files.directories_changed += 1;
    }

    /// There is an order of uses of a file that matters and is not explored. True: nobody knows the file's name yet, see
    /// [`Arena::show_unexplored`].
    pub fn note_unexplored(&mut self) -> bool {
        self.control.passed[SHARED_FILES.min(MAX_SYSCALLS - 1)] += 1;
        self.files.shown_len == 0
    }

    /// Who gets which number of a descriptor is not explored where libc takes it with a lock of its own held.
    pub fn note_unexplored_number(&mut self) {
        self.control.passed[LIBC_NUMBERS.min(MAX_SYSCALLS - 1)] += 1;
    }

    /// The name of that file.
    pub fn show_unexplored(&mut self, name: &[u8]) {
        let len = name.len().min(self.files.shown.len());
        self.files.shown[..len].copy_from_slice(&name[..len]);
        self.files.shown_len = len as u32;
    }

    /// The name of a file that several threads write in any order, if it is the first.
    pub fn show_logged(&mut self, name: &[u8]) {
        let len = name.len().min(self.files.logged.len());
        if self.files.logged_len == 0 {
            self.files.logged[..len].copy_from_slice(&name[..len]);
            self.files.logged_len = len as u32;
        }
    }
}
