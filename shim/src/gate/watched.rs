//! Watched memory at the gate: when it is recorded, where transitions end, who gets what they have accessed.
//!
//! NOTE [Consumer] `consume` is the one place to which what a thread has accessed in a transition goes: entry by entry, in the order of
//! the accesses, each byte at most once for reading and once for writing (but for ranges that overlap in part). It is called by the
//! thread that made them, when it publishes its next visible operation, before the model knows of that, or when the log is full; the
//! arena is open then. It must not allocate or pass the turn.

use vsrun_model::arena::{MAX_PATH, POOL_ADDR, POOL_SIZE};
use vsrun_model::library::number;
use vsrun_model::object::NONE;
use vsrun_model::watch::{state, Entry, Record, FENCE, LATE_PATH, LEFT_OUT};
use vsrun_model::{Kind, ObjKind, ThreadState, Tid};

use super::local::{
    arena, fiber, fiber_of, forget_reads, local, machine, model, ranges, space_of, world, Phase, NAME, POOL_REGION,
};
use super::{freed, origins, own, shield, stacks, stale, view};
use crate::sys::{decimal, load, raw, readable};
use crate::watch::{self, Claimed, Touch};

/// The root: says where the slow paths are, and what stands for functions of libc, if the tool wants to watch.
pub fn announce(stand_ins: fn() -> u64) {
    if arena().control.watching.state == state::ASKED {
        let mut told = watch::announce(&arena().control.watching, stand_ins());
        (told.origins, told.ranges) = (origins::table(), ranges());
        machine().watching_is(told);
    }
}

/// The root: maps what the tool has made of that; `touch` is for memory that is an object, `claims` for predicates that change. True: from now
/// on there are traps.
pub fn map(touch: fn(Touch) -> bool, claims: fn(Claimed)) -> bool {
    let mut path = arena().control.shim_path;
    name_beside(&mut path, b"watch\0");
    let error = watch::map(&path, watch::Hooks { full, touch, dropped: mark_all, claims });
    let mut told = arena().control.watching;
    told.state = if error == 0 { state::ON } else { error as i32 };
    machine().watching_is(told);
    error == 0
}

/// Puts `name` in the place of the file's name in `path`.
fn name_beside(path: &mut [u8; MAX_PATH], name: &[u8]) {
    let end = path.iter().position(|&b| b == 0).unwrap_or(MAX_PATH);
    let from = path[..end].iter().rposition(|&b| b == b'/').map_or(0, |slash| slash + 1);
    for (n, byte) in name.iter().enumerate().filter(|(n, _)| from + n < MAX_PATH) {
        path[from + n] = *byte;
    }
}

/// From now on memory is recorded if there is a second thread in the world.
#[inline]
pub fn look() {
    if watch::is_mapped() {
        begin();
    }
}

#[cold]
#[inline(never)]
fn begin() {
    if !watch::is_recording() && world().concurrent && local().phase == Phase::Running {
        let merges = arena().plan.merges;
        watch::begin([merges, merges && world().procs[local().pid].creator == NONE]);
        own::begin();
        mark_objects();
    }
}

/// The shadow is empty.
#[cold]
#[inline(never)]
fn mark_all() {
    freed::mark();
    stale::mark();
    mark_objects();
}

/// Each use of the words that the tool has named is an operation.
#[cold]
#[inline(never)]
pub fn mark_objects() {
    let l = local();
    if !watch::is_recording() {
        return;
    }
    // An execution without such memory reads no page of the table.
    let words = if arena().plan.has_words { arena().words.as_slice() } else { &[] };
    for word in words {
        if word.space == 0 {
            watch::is_object(word.address);
            continue;
        }
        for range in l.ranges[..l.n_ranges].iter().filter(|range| range.space == word.space) {
            let at = word.address.wrapping_sub(range.offset);
            if at < range.end - range.start {
                watch::is_object(range.start + at);
            }
        }
        if word.space == POOL_REGION {
            watch::is_object(POOL_ADDR + word.address);
        }
    }
}

/// The transition of the running thread ends here.
#[inline]
pub fn transition_ends() {
    // Where nothing is watched this is one comparison.
    if watch::is_mapped() {
        hand_over();
    }
}

#[cold]
#[inline(never)]
fn hand_over() {
    view::settle();
    let touches = core::mem::take(&mut local().touches);
    if local().phase == Phase::Running && !touches {
        forget_reads();
        fiber().update.size = 0;
    }
    settle_words();
    if !touches {
        local().to_write = (0, 0);
    }
    match () {
        () if !watch::is_recording() => begin(),
        () if watch::appends_to().is_some() => append(true),
        () if own::is_on() => watch::end_of_transition_keeping(own::is_own, consume),
        () => watch::end_of_transition(consume),
    }
    // Of a use of memory the operation tells it.
    if core::mem::take(&mut local().has_fenced) && !touches && local().phase == Phase::Running {
        fiber().fenced = true;
    }
}

/// What is in memory that is an object is known to the model before anybody else moves: what the running thread has written, and what
/// others of this process wait for, which may have been written in ways that are not seen.
fn settle_words() {
    if !arena().plan.has_words {
        return;
    }
    // It may have taken the memory away since.
    let is_there = |at: u64| readable(at, 8) == 8;
    let (first, end) = local().to_write;
    for at in (first & !7..end).step_by(8).filter(|at| watch::has_object(*at, 8) && is_there(*at)) {
        let (space, place) = space_of(at);
        if let Some(object) = model().object_at(space, ObjKind::MEMORY, place, 0) {
            model().content_is(object, load(at));
        }
    }
    for &t in world().live.as_slice() {
        let thread = &world().threads[t];
        let waits = thread.state == ThreadState::PARKED && thread.pending.kind == Kind::MEM_WAIT;
        if waits && thread.pid == local().pid {
            for (object, found) in [thread.pending.obj, thread.pending.obj2].into_iter().zip(thread.awaits) {
                if object != NONE {
                    // Who waits for memory that is gone goes on, and meets that.
                    let there = is_there(found.address);
                    model().content_is(object, if there { load(found.address) } else { !found.value });
                }
            }
        }
    }
}

/// The running thread is about to create thread `t`: what it has done until now is before that.
pub fn creates(t: Tid) {
    own::creates();
    transition_ends();
    machine().note_begin(t, local().cur);
}

/// This process is about to be copied, or (`lends`) to lend its memory to a child: what it has done until now is before that.
pub fn forks(lends: bool) {
    if lends {
        own::ends();
    } else {
        own::forks();
    }
    transition_ends();
}

/// This process is a copy of another one, see NOTE [Runs] in `watch::log`.
pub fn is_copy() {
    watch::keeps_writes_apart();
    own::is_copy();
}

/// The running thread has come to its end by itself.
pub fn ends() {
    transition_ends();
    machine().note_memory(Record { thread: local().cur, what: Record::ENDS, ..Record::default() });
}

/// The running thread is about to end, and its stack with it: that is a write to it, as of a block that is freed, and who uses it from now on is told.
pub fn stack_ends() {
    const ENDS: u32 = Entry::FUNCTION | number("pthread_exit") as u32;
    let cur = local().cur;
    if !watch::is_recording() || !fiber_of(cur).of_libc || local().borrowed {
        return;
    }
    let [low, high] = stale::range(cur);
    own::gives_up(low, high);
    let mut any = false;
    stale::each_page_of_others(cur, |at, size| {
        any = true;
        watch::renews(at, size, ENDS);
    });
    if any {
        transition_ends();
        fiber_of(cur).stack_over = true;
        stale::each_page_of_others(cur, watch::is_special);
    }
}

/// What lay from `start` to `end` is not there any more, or something else is: no thread has its stack there.
pub fn stack_is_gone(start: u64, end: u64) {
    if stale::forget(start, end) {
        mark_objects();
    }
    stacks::is_gone(start, end);
}

/// Memory of this process is given out anew: what was done to it before is nothing to who has it now.
pub fn anew(address: u64, size: u64) {
    if watch::is_recording() {
        // What is in the log of this memory is from before.
        transition_ends();
    } else if !local().claims {
        return;
    }
    let (space, address) = space_of(address);
    let thread = local().cur;
    let record = Record { address, size, thread, space, what: Record::ANEW, ..Record::default() };
    machine().note_memory(record);
    machine().claims(record);
}

/// The running thread says something of who may use memory of this process: a constant of [`Record`], to whom it goes, and the instruction if that
/// is one of ours. What it has done until now is before that.
pub fn claims(what: u32, address: u64, size: u64, to: Tid, site: Option<u32>) {
    if !watch::is_mapped() || size == 0 || local().phase != Phase::Running || local().borrowed {
        return;
    }
    local().claims = true;
    own::ends();
    if watch::is_recording() {
        transition_ends();
    }
    let (space, address) = space_of(address);
    let stride = site.map_or(0, |site| i64::from(site) + 1);
    let record = Record { address, size, stride, site: to, thread: local().cur, space, what };
    machine().note_memory(record);
    machine().claims(record);
}

/// The same where what is recorded goes to a file; not `over`: the log is full.
#[cold]
#[inline(never)]
fn append(over: bool) {
    let mut sink = Sink::new();
    let add = |entry: &Entry| {
        consume(entry);
        if entry.address != FENCE {
            entry.parts().for_each(|part| sink.add(&part));
        }
    };
    if over {
        watch::end_of_transition(add);
    } else {
        watch::hand_over(add);
    }
    sink.flush();
}

/// Memory has become executable by call `nr` with these arguments, which gave `result`: what is in it is not watched, but libraries that the tool
/// knows.
#[inline]
pub fn code_comes(nr: i64, a: [u64; 6], result: u64) {
    if nr != libc::SYS_mmap && a[2] as i32 & libc::PROT_WRITE != 0 && watch::holds_patches(a[0], a[1]) {
        code_changes(nr, a);
        return;
    }
    if a[2] as i32 & libc::PROT_EXEC == 0 {
        return;
    }
    let file = nr == libc::SYS_mmap && a[3] as i32 & libc::MAP_ANONYMOUS == 0;
    if watch::is_mapped() {
        let can_be_written = a[2] as i32 & libc::PROT_WRITE != 0;
        if !file || can_be_written || !watch::patch(result, a[1], a[4] as i32, a[5]) {
            note_code(if file { Some(a[4] as i32) } else { None });
        }
    } else if local().phase == Phase::BeforeRoot && !file {
        // What has a file the tool sees at the root. This is told when others can reach this process.
        remember(b"anonymous memory");
    }
}

/// The program may write to its own code from now on: it is as it was, and not watched.
#[cold]
#[inline(never)]
fn code_changes(nr: i64, a: [u64; 6]) {
    watch::undo();
    // Pages that it has asked to write to are as it wants them.
    raw!(nr, a[0], a[1], a[2], a[3]);
    late_code(b"code that the program may change");
}

/// A program that was executed in a watched world is not watched.
pub fn program_comes() {
    if arena().control.watching.state == state::ON && !watch::is_mapped() {
        let mut name = [0; NAME];
        let n = raw!(libc::SYS_readlink, c"/proc/self/exe".as_ptr(), name.as_mut_ptr(), NAME);
        late_code(&name[..n.clamp(0, NAME as i64) as usize]);
    }
}

/// Code that came after the patches is not watched. That is nothing to others while no other thread and no other process reach the memory of
/// this one; see [`shares`] and [`is_reached`].
fn late_code(name: &[u8]) {
    let first = remember(name);
    let l = local();
    // What had been mapped before that others can reach was taken for watched.
    if l.shares || first && l.n_ranges > 0 || world().procs[l.pid].live_threads > 1 {
        l.late_told = true;
        machine().note_later_code(name);
    }
}

/// The memory of a process is a file that is open (`/proc/PID/mem`): what is done to it, or to its code, through that is not seen.
pub fn memory_is_open() {
    if arena().control.watching.state == state::ON {
        machine().note_later_code(b"/proc/PID/mem");
    }
}

/// Notes the first code that came after the patches, or before them and has no file. True: this is it.
fn remember(name: &[u8]) -> bool {
    let l = local();
    let first = l.late_code.1 == 0;
    if first {
        l.late_code.0[..name.len()].copy_from_slice(name);
        l.late_code.1 = name.len();
    }
    first
}

/// This process has mapped memory that others may reach.
pub fn shares(region: Option<u32>, writable: bool) {
    local().shares |= writable;
    let unwatched = local().late_code.1 > 0;
    let both = region.is_some_and(|region| machine().region_mapped(region, writable, unwatched));
    if both && !unwatched {
        machine().note_later_code(b"a program that maps the same file");
    }
    if both || writable {
        is_reached();
    }
}

/// Another thread or process is about to reach the memory of this process.
#[inline]
pub fn is_reached() {
    let l = local();
    if l.late_code.1 > 0 && !l.late_told {
        l.late_told = true;
        machine().note_later_code(&l.late_code.0[..l.late_code.1]);
    }
}

/// `file`: the descriptor of what was mapped.
#[cold]
fn note_code(file: Option<i32>) {
    let Some(file) = file else { return late_code(b"anonymous memory") };
    let (mut path, mut name) = ([0; 40], [0; LATE_PATH]);
    let digits = decimal(file);
    let parts = [b"/proc/self/fd/".as_slice(), &digits];
    for (to, byte) in path.iter_mut().zip(parts.into_iter().flatten()) {
        *to = *byte;
    }
    let n = raw!(libc::SYS_readlink, path.as_ptr(), name.as_mut_ptr(), LATE_PATH).clamp(0, LATE_PATH as i64) as usize;
    let file = name[..n].rsplit(|&b| b == b'/').next().unwrap_or(&[]);
    if LEFT_OUT.iter().any(|start| file.starts_with(start.as_bytes())) {
        return;
    }
    // A longer path is not whole.
    if n < LATE_PATH {
        machine().note_late_file(&name);
    }
    late_code(&name[..n.min(NAME)]);
}

/// The log is full.
fn full() {
    if !watch::is_recording() {
        return watch::discard();
    }
    let entered = shield::enter();
    if watch::appends_to().is_some() {
        append(false);
    } else if own::is_on() {
        watch::hand_over_keeping(own::is_own, consume);
    } else {
        watch::hand_over(consume);
    }
    shield::leave(entered);
}

/// See NOTE [Consumer].
#[inline]
fn consume(entry: &Entry) {
    if entry.address == FENCE {
        // See `Operand::OF_FENCE`, and `hand_over`.
        local().has_fenced = true;
        return;
    }
    let near_pool = entry.address.wrapping_sub(POOL_ADDR - REACH) < POOL_SIZE + 2 * REACH;
    if near_pool || local().n_ranges > 0 {
        return consume_shared(entry);
    }
    keep(entry, local().pid, entry.address);
}

/// Bytes from the first address of an entry to any other one of it are less.
const REACH: u64 = 1 << 33;
const _: () = assert!((Entry::MOST as u64) << (Entry::UNIT - Entry::STRIDE - 1 + 6) < REACH && Entry::MAX_SIZE < REACH);

/// The same where memory may be one that processes share.
#[cold]
#[inline(never)]
fn consume_shared(entry: &Entry) {
    let (space, address) = space_of(entry.address);
    let is_there =
        |further: u64| space_of(entry.address.wrapping_add(further)) == (space, address.wrapping_add(further));
    let whole = match entry.is_strided() {
        true => {
            let of = |part: Entry| part.address.wrapping_sub(entry.address);
            entry.parts().all(|part| is_there(of(part)) && is_there(of(part).wrapping_add(part.size() - 1)))
        }
        // Of one that reaches into a mapping of another kind, where it begins counts.
        false => entry.unit() == entry.size() || is_there(entry.size() - 1),
    };
    if whole {
        keep(entry, space, address);
    } else {
        for part in entry.parts() {
            let (space, address) = space_of(part.address);
            keep(&part, space, address);
        }
    }
}

/// Records it as one of these memories.
#[inline]
fn keep(entry: &Entry, space: u32, address: u64) {
    machine().note_access(entry, local().cur, space, address);
    if arena().records.kept() % PREPARED == PREPARED - 1 {
        prepare();
    }
}

/// So many records are made room for at once: where there are many, each page of them would be a fault otherwise.
const PREPARED: u32 = 1 << 13;

#[cold]
#[inline(never)]
fn prepare() {
    const POPULATE_WRITE: i32 = 23;
    const PAGE: u64 = 4096;
    let (start, size) = arena().records.room(PREPARED);
    let first = start.next_multiple_of(PAGE);
    // A kernel before 5.14 knows nothing of this, and then they are faults.
    raw!(libc::SYS_madvise, first, (start + size).saturating_sub(first), POPULATE_WRITE);
}

/// What is recorded, in a file: for each entry its 16 bytes, the index of the thread, and the number of transitions so far.
struct Sink {
    path: Option<u64>,
    kept: [Kept; Sink::ROOM],
    n: usize,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Kept {
    entry: Entry,
    thread: u32,
    transition: u32,
}

impl Sink {
    const ROOM: usize = 128;

    fn new() -> Sink {
        let empty = Kept { entry: Entry { address: 0, site: 0, what: 0 }, thread: 0, transition: 0 };
        Sink { path: watch::appends_to(), kept: [empty; Sink::ROOM], n: 0 }
    }

    #[inline]
    fn add(&mut self, entry: &Entry) {
        if self.path.is_none() {
            return;
        }
        self.kept[self.n] = Kept { entry: *entry, thread: local().cur, transition: world().ops as u32 };
        self.n += 1;
        if self.n == Sink::ROOM {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let Some(path) = self.path.filter(|_| self.n > 0) else { return };
        let file = raw!(libc::SYS_open, path, libc::O_WRONLY | libc::O_APPEND | libc::O_CLOEXEC, 0);
        if file >= 0 {
            raw!(libc::SYS_write, file, self.kept.as_ptr(), self.n * size_of::<Kept>());
            raw!(libc::SYS_close, file);
        }
        self.n = 0;
    }
}
