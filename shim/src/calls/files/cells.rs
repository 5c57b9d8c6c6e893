//! State that threads and processes share beside files: which call reads and writes what of it. One table says it ([`of_call`]); what a use
//! means, and when it is a visible operation, is the model's: `sched::cells`. What only threads of one process can change is noted where the
//! process has several.
//!
//! What is read on the way to something else (the directory at which a path begins, the umask of a new file) belongs to the operation that
//! looks the names up, see `names`.

use vsrun_model::fd::{DescId, DescKind};
use vsrun_model::file::{Use, LOOKS_FOR};
use vsrun_model::op::TRY;
use vsrun_model::{Kind, Op, Pid, ProcState, ThreadState, Tid, NONE};

use super::descriptors::{each_written, file_of, only_reads};
use super::layer::watches;
use super::path::{mix, Stat};
use super::sorts::*;
use super::states::{decides, goes_by, uses_program, Cell, Uses};
use super::uses::{all_names, name_of_file, unexplored};
use crate::gate::{self, arena, fiber, is_threaded, local, machine, model, world};
use crate::sys::any_of;

/// The table: what calls go by that neither set it nor ask for it.
fn decided_by(nr: i64, a: &[u64; 6], uses: &mut Uses) {
    let own = local().pid;
    if moves_data(nr) {
        goes_by(Cell::Options, uses, |uses| {
            if let Some(desc) = find(a[0], DescKind::SOCKET) {
                uses.channel(Cell::Options, desc, a[0], Use::Read);
            }
            if let Some(desc) = find(a[2], DescKind::SOCKET).filter(|_| nr == libc::SYS_splice) {
                uses.channel(Cell::Options, desc, a[2], Use::Read);
            }
        });
    }
    if writes_pipe(nr) {
        goes_by(Cell::PipeSize, uses, |uses| {
            if let Some(desc) = find(a[0], DescKind::PIPE) {
                uses.channel(Cell::PipeSize, desc, a[0], Use::Read);
                if uses.set != 0 {
                    // It decides at any moment whether a write waits, not only when that begins.
                    unexplored(|| Err(0));
                }
            }
        });
    }
    if makes_number(nr) {
        goes_by(Cell::Limit, uses, |uses| limit(own, libc::RLIMIT_NOFILE as i32, Use::Read, uses));
    }
    if needs_permission(nr) {
        uses.permitted();
    }
    if !writes_file(nr) {
        return;
    }
    let fd = if nr == libc::SYS_mmap { a[4] } else { a[0] };
    let is_file = !(nr == libc::SYS_mmap && a[3] as i32 & libc::MAP_ANONYMOUS != 0) && model_has_not(fd);
    if !is_file {
        return;
    }
    goes_by(Cell::Seals, uses, |uses| {
        if is_unnamed(fd) {
            uses.global(Cell::Seals, 0, Use::Read);
        }
    });
    goes_by(Cell::Flags, uses, |uses| uses.description(Cell::Flags, fd, Use::Read));
    goes_by(Cell::Limit, uses, |uses| limit(own, libc::RLIMIT_FSIZE as i32, Use::Read, uses));
}

/// The model does not have it: a file.
fn model_has_not(fd: u64) -> bool {
    world().has_fds(local().pid).then(|| world().fd(local().pid, fd as i32)).flatten().is_none()
}

/// The table: what a call reads and writes.
fn of_call(nr: i64, a: &[u64; 6], uses: &mut Uses) {
    let (cur, own, id) = (local().cur, local().pid, a[0] as i32);
    let process = |id: i32| if id == 0 { Some(own) } else { world().process_named(id) };
    decided_by(nr, a, uses);
    match nr {
        libc::SYS_close => written_no_more(id, uses),
        libc::SYS_dup2 | libc::SYS_dup3 => written_no_more(a[1] as i32, uses),
        libc::SYS_umask => {
            uses.own(Cell::Umask, Use::Read);
            uses.own(Cell::Umask, Use::Write);
            uses.own(Cell::QueueMask, Use::Write);
        }
        libc::SYS_fchdir => uses.own(Cell::Directory, Use::Write),
        libc::SYS_rt_sigaction if is_threaded() && (1..=64).contains(&id) => {
            let name = action(id);
            if a[2] != 0 {
                uses.named(Cell::Actions, name, id.into(), Use::Read);
            }
            if a[1] != 0 {
                uses.named(Cell::Actions, name, id.into(), Use::Write);
                uses.named(Cell::Actions, action(ANY), ANY.into(), Use::Write);
            }
        }
        _ if is_of_ids(nr) => {
            let sets = matches!(
                nr,
                any_of!(SYS_setuid SYS_setgid SYS_setreuid SYS_setregid SYS_setresuid SYS_setresgid SYS_setgroups)
            );
            if sets {
                model().sets_ids(own);
            }
            if sets && is_threaded() {
                decides(Cell::Ids);
            }
            uses.own(Cell::Ids, if sets { Use::Write } else { Use::Read });
        }
        libc::SYS_getpgid | libc::SYS_getsid => {
            uses.look_for(id, false);
            if let Some(p) = process(id) {
                uses.process(Cell::Group, p, Use::Read);
            }
        }
        libc::SYS_getpgrp => uses.process(Cell::Group, own, Use::Read),
        libc::SYS_setpgid => {
            uses.look_for(id, true);
            uses.process(Cell::Group, own, Use::Read);
            uses.global(Cell::Members, 0, Use::Write);
            let Some(p) = process(id) else { return };
            uses.process(Cell::Group, p, Use::Read);
            uses.process(Cell::Group, p, Use::Write);
            if p != own {
                uses.process(Cell::Program, p, Use::Read);
            }
            let pgid = a[1] as i32;
            if pgid != 0 && pgid != world().procs[p].vpid {
                uses.global(Cell::Members, 0, Use::Read);
                uses.look_for_group(pgid, p);
            }
        }
        libc::SYS_setsid => {
            uses.process(Cell::Group, own, Use::Read);
            uses.process(Cell::Group, own, Use::Write);
            uses.global(Cell::Members, 0, Use::Read);
            uses.global(Cell::Members, 0, Use::Write);
            // It fails where others are in a group with its number.
            let id = world().procs[own].vpid;
            if world().procs[own].pgid != id {
                uses.look_for_group(id, own);
            }
        }
        libc::SYS_getpriority | libc::SYS_setpriority => nice(a, nr == libc::SYS_setpriority, uses),
        libc::SYS_sched_getscheduler | libc::SYS_sched_getparam | libc::SYS_sched_rr_get_interval => {
            with_thread((id, false), uses, |uses, t| uses.thread(Cell::Policy, t, Use::Read));
        }
        // What it sets is set by a step of its own, see [`policy_changes`].
        libc::SYS_sched_setscheduler | libc::SYS_sched_setparam => {
            with_thread((id, false), uses, |uses, t| uses.thread(Cell::Nice, t, Use::Read));
        }
        libc::SYS_sched_getattr => with_thread((id, false), uses, |uses, t| {
            uses.thread(Cell::Policy, t, Use::Read);
            uses.thread(Cell::Nice, t, Use::Read);
        }),
        libc::SYS_sched_setattr => with_thread((id, true), uses, |uses, t| {
            for cell in [Cell::Policy, Cell::Nice] {
                uses.thread(cell, t, Use::Read);
                uses.thread(cell, t, Use::Write);
            }
        }),
        libc::SYS_sched_getaffinity => {
            with_thread((id, false), uses, |uses, t| uses.thread(Cell::Affinity, t, Use::Read))
        }
        libc::SYS_sched_setaffinity => {
            with_thread((id, true), uses, |uses, t| uses.thread(Cell::Affinity, t, Use::Write))
        }
        libc::SYS_ioprio_get => {
            with_thread((if id == 1 { a[1] as i32 } else { 0 }, false), uses, |uses, t| {
                uses.thread(Cell::DiskPriority, t, Use::Read)
            });
        }
        libc::SYS_ioprio_set => {
            with_thread((if id == 1 { a[1] as i32 } else { 0 }, true), uses, |uses, t| {
                uses.thread(Cell::DiskPriority, t, Use::Write)
            });
        }
        libc::SYS_getrlimit => limit(own, id, Use::Read, uses),
        libc::SYS_setrlimit => {
            limit(own, id, Use::Read, uses);
            limit(own, id, Use::Write, uses);
        }
        libc::SYS_prlimit64 => with_thread((id, a[2] != 0), uses, |uses, t| {
            let p = world().threads[t].pid;
            limit(p, a[1] as i32, Use::Read, uses);
            if a[2] != 0 {
                limit(p, a[1] as i32, Use::Write, uses);
            }
        }),
        libc::SYS_prctl => match id {
            libc::PR_SET_NAME => uses.thread(Cell::Name, cur, Use::Write),
            libc::PR_GET_NAME => uses.thread(Cell::Name, cur, Use::Read),
            libc::PR_SET_DUMPABLE => uses.own(Cell::Dumpable, Use::Write),
            libc::PR_GET_DUMPABLE => uses.own(Cell::Dumpable, Use::Read),
            libc::PR_SET_CHILD_SUBREAPER => uses.own(Cell::Subreaper, Use::Write),
            libc::PR_GET_CHILD_SUBREAPER => uses.own(Cell::Subreaper, Use::Read),
            _ => {}
        },
        libc::SYS_membarrier => {
            /// MEMBARRIER_CMD_REGISTER_..; those that want it, and MEMBARRIER_CMD_GET_REGISTRATIONS.
            const REGISTER: i32 = 1 << 2 | 1 << 4 | 1 << 6 | 1 << 8;
            const REGISTERED: i32 = 1 << 3 | 1 << 5 | 1 << 7 | 1 << 9;
            match id {
                _ if id & REGISTER != 0 => uses.own(Cell::Barriers, Use::Write),
                _ if id & REGISTERED != 0 => uses.own(Cell::Barriers, Use::Read),
                _ => {}
            }
        }
        libc::SYS_fcntl => descriptor(a, uses),
        libc::SYS_setsockopt | libc::SYS_getsockopt | libc::SYS_listen => {
            let Some(desc) = find(a[0], DescKind::SOCKET) else { return };
            // That one is an operation by itself.
            let error = (a[1] as i32, a[2] as i32) == (libc::SOL_SOCKET, libc::SO_ERROR);
            match nr {
                libc::SYS_getsockopt if error => {}
                libc::SYS_getsockopt => uses.channel(Cell::Options, desc, a[0], Use::Read),
                _ => {
                    if nr == libc::SYS_setsockopt && (is_threaded() || world().descs[desc].refs > 1) {
                        decides(Cell::Options);
                    }
                    uses.channel(Cell::Options, desc, a[0], Use::Write);
                    if uses.set != 0 && nr == libc::SYS_setsockopt && sets_buffer(a) {
                        // It decides at any moment whether a transfer waits, not only when that begins.
                        unexplored(|| Err(0));
                    }
                }
            }
        }
        libc::SYS_shmget => ids(Cell::SegmentKeys, id, a[2] as i32, uses),
        libc::SYS_semget => named_ids(Cell::SetIds, id, a[2] as i32, uses),
        // It is counted by a step of its own.
        libc::SYS_shmat => uses.named(Cell::Segment, segment(id), id.into(), Use::Read),
        libc::SYS_shmdt => {
            let ranges = &local().ranges[..local().n_ranges];
            let range = ranges.iter().find(|r| r.start == a[0] && r.segment != 0);
            if let Some(id) = range.map(|r| arena().segments[r.segment - 1].id) {
                uses.named(Cell::Segment, segment(id), id.into(), Use::Write);
            }
        }
        libc::SYS_shmctl => match a[1] as i32 & !0x100 {
            libc::IPC_RMID => {
                uses.replaces(Cell::Segment, segment(id), id.into());
                uses.global(Cell::SegmentKeys, 0, Use::Write);
            }
            libc::IPC_SET => uses.replaces(Cell::Segment, segment(id), id.into()),
            _ => uses.named(Cell::Segment, segment(id), id.into(), Use::Read),
        },
        _ => {}
    }
}

/// Descriptor `fd` is about to be closed: its file is not open for writing by it any more.
fn written_no_more(fd: i32, uses: &mut Uses) {
    if fd < 0 || !model_has_not(fd as u64) {
        return;
    }
    if let Some(id) = file_of(fd).filter(|_| !only_reads(fd)) {
        uses_program(id, || name_of_file(fd), Use::Write, false, uses);
    }
}

fn is_ordinary(fd: u64) -> bool {
    Stat::of_fd(fd as i32).is_ok_and(|stat| stat.kind() == libc::S_IFREG)
}

/// In the place of a signal: any.
const ANY: i32 = 0;

/// The name of what this process does about a signal.
fn action(signal: i32) -> u64 {
    mix(machine().cell_of_process(Cell::Actions as u64, local().pid), signal as u64)
}

/// What this process does about a signal, which a thread sends to itself, is changed by another one, before or after.
pub fn action_is_shared(signal: i32) -> bool {
    is_threaded() && watches() && machine().use_state(local().cur, action(signal), Use::Read)
}

/// A file that has no name: a memfd.
fn is_unnamed(fd: u64) -> bool {
    Stat::of_fd(fd as i32).is_ok_and(|stat| stat.kind() == libc::S_IFREG && stat.links() == 0)
}

fn find(fd: u64, kind: DescKind) -> Option<DescId> {
    let desc = world().has_fds(local().pid).then(|| world().fd(local().pid, fd as i32)).flatten()?;
    (world().descs[desc].kind == kind).then_some(desc)
}

fn sets_buffer(a: &[u64; 6]) -> bool {
    a[1] as i32 == libc::SOL_SOCKET
        && matches!(a[2] as i32, libc::SO_SNDBUF | libc::SO_RCVBUF | libc::SO_SNDBUFFORCE | libc::SO_RCVBUFFORCE)
}

fn segment(id: i32) -> u64 {
    machine().cell_of(Cell::Segment as u64, id as u64)
}

/// shmget and the like: what is made gets the next number, what is there is found.
fn ids(cell: Cell, key: i32, flags: i32, uses: &mut Uses) {
    uses.global(cell, 0, Use::Read);
    if key == libc::IPC_PRIVATE || flags & libc::IPC_CREAT != 0 {
        uses.global(cell, 0, Use::Write);
    }
}

/// The same of what a key is looked up for by an operation of its own: with that one, the number is taken. One without a key depends on it.
fn named_ids(cell: Cell, key: i32, flags: i32, uses: &mut Uses) {
    let mut noted = Uses::NOTHING;
    ids(cell, key, flags, &mut noted);
    if key == libc::IPC_PRIVATE {
        *uses = noted;
        uses.names = true;
    }
}

fn limit(p: Pid, resource: i32, what: Use, uses: &mut Uses) {
    // Of a process with one thread, which nobody changes, nobody else can tell.
    if p != local().pid && what == Use::Write {
        machine().note_others_change();
    }
    if what == Use::Write && (p != local().pid || is_threaded()) {
        match resource as u32 {
            libc::RLIMIT_NOFILE | libc::RLIMIT_FSIZE => decides(Cell::Limit),
            libc::RLIMIT_CORE => {}
            // What else it strikes is not followed.
            _ => unexplored(|| Err(0)),
        }
    }
    let name = mix(machine().cell_of_process(Cell::Limit as u64, p), resource as u64);
    uses.named(Cell::Limit, name, world().procs[p].vpid.into(), what);
}

/// The thread with that id, of any process of the program.
pub fn thread_with_id(id: i32) -> Option<Tid> {
    if id == 0 {
        return Some(local().cur);
    }
    (0..world().threads.len).find(|&t| world().threads[t].vtid == id && is_there(t))
}

/// The first thread of a process is there as long as that has not been waited for.
pub fn is_there(t: Tid) -> bool {
    let process = &world().procs[world().threads[t].pid];
    world().threads[t].state != ThreadState::EXITED || process.main_thread == t && process.state != ProcState::REAPED
}

/// What it uses of the thread with that id, whether it is there still or not; that is asked too.
fn with_thread((id, sets): (i32, bool), uses: &mut Uses, then: impl FnOnce(&mut Uses, Tid)) {
    uses.look_for(id, sets);
    if let Some(t) = if id == 0 { Some(local().cur) } else { world().thread_named(id) } {
        then(uses, t);
    }
}

fn nice(a: &[u64; 6], sets: bool, uses: &mut Uses) {
    let (which, who) = (a[0] as u32, a[1] as i32);
    let one = |uses: &mut Uses, t: Tid| {
        uses.thread(Cell::Nice, t, Use::Read);
        if sets {
            uses.thread(Cell::Nice, t, Use::Write);
        }
    };
    if which == libc::PRIO_PROCESS {
        return with_thread((who, sets), uses, one);
    }
    let group = if who == 0 { world().procs[local().pid].pgid } else { who };
    for t in (0..world().threads.len).filter(|&t| is_there(t)) {
        if which != libc::PRIO_PGRP || world().procs[world().threads[t].pid].pgid == group {
            one(uses, t);
        }
    }
    if which == libc::PRIO_PGRP {
        uses.global(Cell::Members, 0, Use::Read);
    }
}

fn descriptor(a: &[u64; 6], uses: &mut Uses) {
    const F_SETSIG: i32 = 10;
    const F_GETSIG: i32 = 11;
    const F_SETOWN_EX: i32 = 15;
    const F_GETOWN_EX: i32 = 16;
    let desc = world().has_fds(local().pid).then(|| world().fd(local().pid, a[0] as i32)).flatten();
    let command = a[1] as i32;
    let owner = |uses: &mut Uses, what| match desc {
        Some(desc) => uses.channel(Cell::Owner, desc, a[0], what),
        None => uses.description(Cell::Owner, a[0], what),
    };
    match command {
        libc::F_GETPIPE_SZ | libc::F_SETPIPE_SZ => {
            let Some(desc) = find(a[0], DescKind::PIPE) else { return };
            uses.channel(Cell::PipeSize, desc, a[0], Use::Read);
            if command == libc::F_SETPIPE_SZ {
                decides(Cell::PipeSize);
                uses.channel(Cell::PipeSize, desc, a[0], Use::Write);
            }
        }
        libc::F_ADD_SEALS | libc::F_GET_SEALS if desc.is_none() => {
            if command == libc::F_ADD_SEALS {
                decides(Cell::Seals);
                uses.global(Cell::Seals, 0, Use::Write);
            }
            uses.global(Cell::Seals, 0, Use::Read);
        }
        libc::F_GETFL | libc::F_SETFL if desc.is_none() => {
            let what = if command == libc::F_SETFL { Use::Write } else { Use::Read };
            if what == Use::Write && is_ordinary(a[0]) {
                decides(Cell::Flags);
            }
            uses.description(Cell::Flags, a[0], what);
        }
        libc::F_GETOWN | F_GETOWN_EX | F_GETSIG => {
            owner(uses, Use::Read);
        }
        libc::F_SETOWN | F_SETOWN_EX | F_SETSIG => {
            owner(uses, Use::Write);
        }
        _ => {}
    }
}

/// Performs call `nr` by `call`, after a visible operation if what it uses is shared.
#[inline]
pub fn with_cells(nr: i64, a: [u64; 6], call: impl FnOnce() -> i64) -> i64 {
    if !world().concurrent || !has_line(nr) || !watches() || sets_new_thread_up(nr) {
        return call();
    }
    let same = turn(nr, &a);
    let result = call();
    if let Some((tries, same)) = same.filter(|(_, same)| *same != GOES_BY) {
        let vain = same != 0 && same == fiber().looked;
        model().note_use(local().cur, tries, vain);
        fiber().looked = same;
    }
    result
}

/// libc sets up the thread that it makes, with that thread's lock held: it has not begun, and whoever asks libc about it waits.
fn sets_new_thread_up(nr: i64) -> bool {
    local().held_back != NONE
        && local().sets_up == local().cur
        && matches!(nr, any_of!(SYS_sched_setaffinity SYS_sched_setscheduler))
}

/// In the place of what tells the same question again: nothing was asked, and whether the call is in vain is its own matter.
const GOES_BY: u64 = 2;

#[inline(never)]
fn turn(nr: i64, a: &[u64; 6]) -> Option<(bool, u64)> {
    let plan = || {
        let mut uses = Uses::NOTHING;
        of_call(nr, a, &mut uses);
        uses
    };
    let mut uses = plan();
    loop {
        let op = pass(nr, &uses)?;
        // Whom it concerns may be another one by now.
        let now = plan();
        if now.set & !uses.set == 0 && now.looks_for <= uses.looks_for && (uses.changes || !now.changes) {
            let same = match () {
                () if uses.changes => 0,
                () if !uses.asks => GOES_BY,
                () => mix(uses.set as u64, nr as u64) | 1,
            };
            return Some((op.tries(), same));
        }
        uses = now;
    }
}

/// Has its turn, if that is an operation.
fn pass(nr: i64, uses: &Uses) -> Option<Op> {
    if uses.set == 0 && !uses.looks_for {
        return None;
    }
    if local().borrowed {
        // The child of a vfork is part of its parent's transition.
        unexplored(|| Err(0));
        return None;
    }
    let kind = match () {
        () if uses.moves => Kind::GROUP_CHANGE,
        () if uses.changes => Kind::PATH_CHANGE,
        () => Kind::PATH_LOOK,
    };
    let mut op = Op::on(kind, all_names());
    if uses.asks && !uses.changes {
        op = op.with(TRY);
    }
    if uses.looks_for {
        op = op.with(LOOKS_FOR);
    }
    if uses.names {
        op.obj2 = crate::calls::sync::names();
    }
    op.arg = uses.set;
    op.mask = uses.shown;
    op.deadline = nr as u64;
    gate::pass(op);
    Some(op)
}

/// What the running thread makes is a copy of it, in what others may change. `process`: a process; `visible`: that is an operation on which
/// everything depends.
pub fn copied(nr: i64, process: bool, visible: bool) {
    if !watches() {
        return;
    }
    let mut uses = Uses::NOTHING;
    let (cur, own) = (local().cur, local().pid);
    if machine().others_change() {
        for cell in [Cell::Nice, Cell::Policy, Cell::Affinity] {
            uses.thread(cell, cur, Use::Read);
        }
    }
    if process {
        uses.process(Cell::Group, own, Use::Read);
        for cell in [Cell::Directory, Cell::Umask, Cell::Ids] {
            uses.own(cell, Use::Read);
        }
        if machine().others_change() || is_threaded() {
            for resource in 0..16 {
                limit(own, resource, Use::Read, &mut uses);
            }
        }
        attached(&mut uses);
        // The child has that until it ends, or executes something.
        each_written(|fd, id| uses_program(id, || name_of_file(fd), Use::Write, true, &mut uses));
    }
    if !visible {
        pass(nr, &uses);
    }
}

/// Call `nr` sets what a fork copies before it copies the memory: directory, umask, actions, limits.
pub fn sets_what_is_copied(nr: i64) -> bool {
    matches!(nr, any_of!(SYS_chdir SYS_fchdir SYS_chroot SYS_umask SYS_rt_sigaction SYS_setrlimit SYS_prlimit64))
        || matches!(
            nr,
            any_of!(SYS_setpriority SYS_sched_setscheduler SYS_sched_setparam SYS_sched_setattr SYS_sched_setaffinity)
        )
}

/// What the process does about signals goes with a copy of it, and partly with what it executes.
pub fn kept() {
    if is_threaded() && watches() {
        machine().use_state(local().cur, action(ANY), Use::Read);
    }
}

/// The segments that this process has attached get one more who has them, or one less.
fn attached(uses: &mut Uses) {
    for i in 0..arena().attached.len {
        let one = arena().attached[i];
        if one.process == local().pid && one.times > 0 {
            let id = arena().segments[one.segment].id;
            uses.named(Cell::Segment, segment(id), id.into(), Use::Write);
        }
    }
}

/// Call `nr`, which is under way, changes who has the segment of that id once more: a place to switch where others can tell.
pub fn segment_changes(nr: i64, id: i32) {
    further_step(nr, |uses| uses.named(Cell::Segment, segment(id), id.into(), Use::Write));
}

/// Call `nr`, which is under way, has looked up the segment of that id and is about to see whether it is gone meanwhile, and to change who has it (`what`)
/// or to tell that: a place to switch where others can tell.
pub fn segment_looked_up(nr: i64, id: i32, what: Use) {
    further_step(nr, |uses| uses.named(Cell::Segment, segment(id), id.into(), what));
}

/// Call `nr`, which is under way, sets the policy of thread `t`, and the nice value that it has read before.
pub fn policy_changes(nr: i64, t: Tid) {
    further_step(nr, |uses| {
        uses.thread(Cell::Policy, t, Use::Read);
        uses.thread(Cell::Policy, t, Use::Write);
        uses.thread(Cell::Nice, t, Use::Write);
    });
}

/// Call `nr`, which is under way, uses `what` in a step of its own: a place to switch where others can tell.
fn further_step(nr: i64, what: impl FnOnce(&mut Uses)) {
    if world().concurrent && watches() && !sets_new_thread_up(nr) {
        let mut uses = Uses::NOTHING;
        what(&mut uses);
        pass(nr, &uses);
    }
}

/// This process is about to replace its program.
pub fn replaced() {
    if !watches() {
        return;
    }
    let mut uses = Uses::NOTHING;
    uses.process(Cell::Program, local().pid, Use::Write);
    attached(&mut uses);
    pass(libc::SYS_execve, &uses);
}

/// This process is about to end.
pub fn ending() {
    if !watches() || arena().attached.len == 0 || local().borrowed {
        return;
    }
    let mut uses = Uses::NOTHING;
    attached(&mut uses);
    if pass(libc::SYS_exit_group, &uses).is_some() {
        machine().segments_left(local().pid);
    }
}

/// The name of thread `t` of this process is read, or written.
pub fn own_name(t: Tid, what: Use) {
    if !watches() {
        return;
    }
    let mut uses = Uses::NOTHING;
    uses.thread(Cell::Name, t, what);
    pass(libc::SYS_prctl, &uses);
}

/// Whether thread `t` is still there is told. Reports show the call that libc would make for it.
pub fn thread_told(t: Tid) {
    if watches() && world().concurrent {
        let mut uses = Uses::NOTHING;
        uses.look_for(world().threads[t].vtid, false);
        pass(libc::SYS_tkill, &uses);
    }
}

/// Who is in a group of processes is told, by an operation on which a change of that depends.
pub fn group_told() {
    if watches() {
        let mut uses = Uses::NOTHING;
        uses.global(Cell::Members, 0, Use::Read);
    }
}

/// The umask for the name of a message queue.
pub fn queue_mask() {
    if watches() {
        // Together with the operation on the names of queues.
        let mut uses = Uses::NOTHING;
        uses.own(Cell::QueueMask, Use::Read);
    }
}
