//! Originals that stand still at the first choice and at marks, and are copied for each execution that goes on from there: see NOTE \[Copies\] of
//! `vsrun_model::back`, and `gate::copies` in the shim.
//!
//! They are the members of [`super::stood::Stood`], in the order in which they were copied first: those of a mark come behind those of the marks before it.

use std::collections::BTreeSet;

use nix::unistd::Pid;
use vsrun_model::back::{Hinders, Order, MAX_ORIGINALS};

use super::processes::reap;
use super::room;
use super::stood::{Member, Stood, Together};
use super::worker::Worker;

const PAGE: u64 = 4096;
/// What stands still at the first choice may take one of so many parts of the memory that is free.
const SHARE: u64 = 4;

impl Worker {
    /// The program has come to its first choice: the process that has the turn has been copied, and the others are now.
    ///
    /// # Errors
    /// What they share cannot be put back, or one cannot be copied.
    pub(super) fn stand_still(&mut self) -> Result<Stood, Hinders> {
        let mut members = Vec::new();
        self.back.copied.clear();
        let first = self.originals(&mut members).filter(|_| self.kept.has_no_names()).ok_or(Hinders::SHARED);
        let pids: Vec<i32> = members.iter().map(|member| member.pid.as_raw()).collect();
        let pages: u64 = pids.iter().map(|&pid| room::own_pages(pid)).sum();
        // Copies may write to all of it.
        let first =
            first.and_then(|first| if pages * PAGE > room::free() / SHARE { Err(Hinders::ROOM) } else { Ok(first) });
        let stood = first.and_then(|first| self.stood(first, members));
        if stood.is_err() {
            reap(pids, &self.dir);
        }
        stood
    }

    /// The process that has the turn has been copied before a choice; the others are that have had it since they were copied last. `None`: one cannot be, or there is
    /// no room, and nothing stands still there.
    pub(super) fn all_copied(&mut self) -> Option<Together> {
        let mut stood = self.back.stood.take()?;
        let before = stood.members.len();
        let together = self.originals(&mut stood.members);
        self.back.stood = Some(stood);
        let together = together.filter(|_| self.is_room_for_copies(before));
        if together.is_none() {
            self.only_members(before);
        }
        together
    }

    fn originals(&mut self, members: &mut Vec<Member>) -> Option<Together> {
        self.add_original(members)?;
        let together = self.together(0)?;
        let leader = together.leader;
        let mut at = vec![(leader, members.len() - 1)];
        for &p in &together.others {
            let known = self.original_of(p);
            if known.is_none() {
                self.arena.back.place = members.len() as u32;
                self.commands(p, Order::COPY).ok()?;
                self.add_original(members)?;
            }
            at.push((p, known.unwrap_or(members.len() - 1)));
        }
        // Where it goes on from here it has the turn.
        for &(p, place) in &at[1..] {
            let p = p as usize;
            if self.back.copied.len() <= p {
                self.back.copied.resize(p + 1, None);
            }
            self.back.copied[p] = Some(place);
            *self.arena.back.moved.get_mut(p)? = 0;
        }
        Some(Together { members: members.len(), at, ..together })
    }

    /// The original of a process that waits for its turn, if it has not had that since.
    fn original_of(&self, p: u32) -> Option<usize> {
        let back = &self.arena.back;
        let p = p as usize;
        let copied = || self.back.copied.get(p).copied().flatten().filter(|_| back.moved.get(p) == Some(&0));
        back.stands.get(p)?.checked_sub(1).map(|place| place as usize).or_else(copied)
    }

    /// The process that has been copied last stands still. `None`: what it shares cannot be put back.
    fn add_original(&mut self, members: &mut Vec<Member>) -> Option<()> {
        let pid = Pid::from_raw(self.arena.back.original);
        let kept = self.keep_for(pid, members);
        if kept.is_err() {
            reap([pid.as_raw()], &self.dir);
        }
        members.push(Member { pid, kept: kept.ok()?, state: None });
        Some(())
    }

    /// Whether there is room for a mark that has added the members behind the first `before`: standing still, an original does not come to take more than it has.
    fn is_room_for_copies(&mut self, before: usize) -> bool {
        let members = self.back.stood.iter().flat_map(|stood| &stood.members).skip(before);
        let pages: u64 = members.map(|member| room::own_pages(member.pid.as_raw())).sum();
        self.arena.back.largest = self.arena.back.largest.max(pages);
        let used = self.arena.control.pool_used;
        let most = self.back.marks.most(self.spec.marks_memory, &self.arena.back, used, 1);
        self.arena.back.no_room += u32::from(most == 0);
        most > 0
    }

    /// The place of the next original is told.
    pub(super) fn next_original(&mut self) {
        let n = self.back.stood.as_ref().map_or(0, |stood| stood.members.len());
        // Each process may have to be copied.
        if n + self.arena.world.procs.len as usize > MAX_ORIGINALS {
            self.arena.marks_no_more();
        }
        self.arena.back.place = n as u32;
    }

    /// An execution goes on from where these stand still.
    pub(super) fn copies_go_on(&mut self, together: &Together) {
        self.back.copied.clear();
        self.arena.back.stands.fill(0);
        self.arena.back.late.fill(0);
        let members = self.back.stood.iter().flat_map(|stood| &stood.members);
        let pids: Vec<i32> = members.map(|member| member.pid.as_raw()).collect();
        for &(p, place) in &together.at {
            if let Some(stands) = self.arena.back.stands.get_mut(p as usize) {
                *stands = place as u32 + 1;
            }
            // Until it is copied.
            self.arena.world.procs[p].own.real_pid = pids.get(place).copied().unwrap_or(0);
        }
        if let Some(&(_, place)) = together.at.first() {
            self.arena.go_on_from(place);
        }
    }

    /// That process has ended, and the execution that is under way still needs a copy of it.
    pub(super) fn stood_for_one(&self, gone: Pid) -> bool {
        let mut members = self.back.stood.iter().flat_map(|stood| &stood.members);
        let place = members.position(|member| member.pid == gone);
        place.is_some_and(|place| self.arena.back.stands.contains(&(place as u32 + 1)))
    }

    /// Ends originals that stand still where nobody goes on from any more; what they share is put back all the same.
    pub(super) fn end_unused(&mut self) {
        let Some(stood) = &mut self.back.stood else { return };
        let marks = self.back.marks.all.iter().map(|mark| &mark.together);
        let all = std::iter::once(&stood.first).chain(marks).flat_map(|together| &together.at);
        let mut used: BTreeSet<usize> = all.map(|&(_, place)| place).collect();
        // Those stand for processes of the execution that is under way.
        used.extend(
            self.arena.back.stands.iter().filter_map(|stands| stands.checked_sub(1)).map(|place| place as usize),
        );
        let mut ended = Vec::new();
        for (place, member) in stood.members.iter_mut().enumerate() {
            // Memory that is shared is reached through a process.
            if member.pid.as_raw() > 0 && !used.contains(&place) && !member.kept.has_memory() {
                ended.push(std::mem::replace(&mut member.pid, Pid::from_raw(0)).as_raw());
            }
        }
        reap(ended, &self.dir);
    }
}
