//! Going back. A process that has been asked to stops before the first choice of its execution; at the end it undoes what it has done since, and stands
//! there again for the next execution, which costs no fork and no page fault. Of several processes each does: see NOTE \[Several\] of `vsrun_model::back`.
//!
//! What it undoes: pages of its own memory that were written (the kernel says which), mappings, the end of its heap, descriptors that were opened,
//! actions and mask of signals. What vsrun undoes: the arena, places in files, what was printed. Whatever else a call may have left `sys::track` sees; then the process
//! ends as any other, and the next execution is forked.
//!
//! NOTE \[Pages\] Of pages that executions write a copy is kept from before the first choice. Which these are is learnt: where one was written of which
//! there is none, the process says so and ends, and the next one keeps it too. So nothing is copied that is not written, and the memory that is looked
//! at need not be copied by a fork.
//!
//! NOTE \[Apart\] All this is done by a fiber of its own, on a stack that lies with the copies, apart from what is put back.
//!
//! NOTE \[Marks\] A mark is a state within an execution that it can come back to. It has a copy of all pages that are kept, as they stand there, and of those that
//! are there in memory that was mapped since the first choice. To come back, what was mapped since the mark is taken away, and all of these are put back.

use core::mem::offset_of;

use vsrun_model::arena::{ASIDE_ADDR, BACK_ADDR, FIRST_FD, LAST_FD};
use vsrun_model::back::{Hinders, Order, Span, Stand, Turn, MAX_BACK_PAGES, MAX_MARKS, MAX_SPANS};
use vsrun_model::{Pid, ProcState};

use super::said::{answer, await_word, say, wake};
use super::{arena, copies, fiber_of, local, machine, process_of, stacks, world};
use crate::gate::fiber as fibers;
use crate::sys::bare::{bare, copy_page};
use crate::sys::track::{track, AtMark};
use crate::sys::written::{self, Piece};
use crate::sys::{die, load, store, store_over};

pub(super) const PAGE: u64 = 4096;
/// The stack of the fiber that goes back.
const STACK: u64 = 64 << 10;
/// Pieces that the kernel tells at a time.
const PIECES: usize = 256;
/// Where marks are, and how far from each other.
const MARKS: u64 = BACK_ADDR + (1 << 36);
const MARK: u64 = 1 << 30;
/// Bytes of the spare stack.
pub(super) const SPARE: usize = 64 << 10;
/// Most descriptors of files whose places are known.
const MAX_PLACES: usize = 64;
/// Most pages of a mark in memory that was mapped since the first choice.
const MAX_MORE: usize = 4096;

/// What is not put back.
#[repr(C)]
pub(super) struct Apart {
    /// Where the program's fiber goes on.
    program: u64,
    /// Its thread pointer.
    fs: u64,
    /// The same at the first choice.
    first: (u64, u64),
    /// Where the fiber that goes back goes on.
    own: u64,
    /// The mask of signals.
    mask: u64,
    /// Why the program's fiber has left itself.
    comes: Comes,
    /// What the process does when it is given the turn.
    stands: Stands,
    /// It had the turn when it stopped first.
    leads: bool,
    /// Where it stopped first, as [`vsrun_model::back::Back::to`]; or [`NOWHERE`]: what stood there has been given up.
    base: u32,
    /// The name of the state that it is in, those of the first one and of the last that had one: one that has not had the turn since is where it was.
    state: u64,
    first_state: u64,
    states: u64,
    /// Bit N: there is room for marks at place N.
    rooms: u32,
    /// Pages that they take, each.
    held: [u64; MAX_MARKS],
    pub(super) n_spans: usize,
    pub(super) n_pages: usize,
    pub(super) spans: [Span; MAX_SPANS],
    pub(super) pages: [u64; MAX_BACK_PAGES],
    pub(super) told: [Piece; PIECES],
    /// How often it was asked what was written.
    asked: u32,
    /// See [`places`].
    pub(super) n_places: usize,
    pub(super) places: [u64; MAX_PLACES],
    /// See [`spare_stack`].
    pub(super) spare: Spare,
}

/// See [`Apart::comes`].
#[derive(Clone, Copy, PartialEq)]
#[repr(u8)]
enum Comes {
    /// It is told to do something.
    Obeys = 0,
    /// A mark is to be made where it is, and the execution goes on.
    Marks,
    /// The execution is over.
    Over,
    /// The process is, and others go on.
    Parks,
    /// It has the turn, and goes back before it takes it.
    Late,
}

/// See [`Apart::stands`].
#[derive(Clone, Copy, PartialEq)]
#[repr(u8)]
enum Stands {
    /// It keeps what it is told to, and goes on.
    First = 0,
    /// It goes back, and on from there.
    Over,
    /// It goes on.
    There,
}

/// The last place of a mark, as [`vsrun_model::back::Back::to`].
const MAX_MARKS_TO: u32 = MAX_MARKS as u32;
/// See [`Apart::base`].
const NOWHERE: u32 = u32::MAX;

/// See [`spare_stack`].
#[repr(C, align(64))]
pub(super) struct Spare {
    _memory: [u8; SPARE],
}

/// What a mark begins with; behind it are copies: of the pages that are kept, then of more.
#[repr(C)]
struct Mark {
    /// Where the program's fiber goes on.
    program: u64,
    fs: u64,
    mask: u64,
    /// See [`Apart::state`].
    state: u64,
    at: AtMark,
    n_more: usize,
    /// Addresses of the pages of which more copies are, ascending in each piece of memory.
    more: [u64; MAX_MORE],
}

const MARK_COPIES: u64 = (size_of::<Mark>() as u64 + PAGE - 1) & !(PAGE - 1);
const MARK_SIZE: u64 = MARK_COPIES + (MAX_BACK_PAGES + MAX_MORE) as u64 * PAGE;
const _: () = assert!(MARK_SIZE <= MARK && MARKS + MARK * MAX_MARKS as u64 <= ASIDE_ADDR);

fn mark_in(slot: u32) -> &'static mut Mark {
    // SAFETY: its place has been mapped by `make_mark` (bit of `rooms`); zeroed memory is a valid one; as for `apart`.
    unsafe { &mut *((MARKS + u64::from(slot) * MARK) as *mut Mark) }
}

fn mark_copy(slot: u32, page: usize) -> u64 {
    MARKS + u64::from(slot) * MARK + MARK_COPIES + page as u64 * PAGE
}

const COPIES: u64 = (BACK_ADDR + STACK + size_of::<Apart>() as u64 + PAGE - 1) & !(PAGE - 1);

pub(super) fn apart() -> &'static mut Apart {
    // SAFETY: mapped by `make_room` before anything else here; zeroed memory is a valid one; one kernel thread, and callers use the borrow for one
    // statement or pass on parts that nothing else names.
    unsafe { &mut *((BACK_ADDR + STACK) as *mut Apart) }
}

/// The scheduler is about to decide: where vsrun has asked for it, this returns once for each execution that begins here.
#[inline]
pub fn begin() {
    if machine().is_to_mark() {
        mark();
    } else if machine().is_to_stand() {
        stand();
    }
}

/// The process has been given the turn.
#[inline]
pub fn moves() {
    if track().armed {
        apart().states += 1;
        apart().state = apart().states;
    }
    if track().armed || machine().copies() {
        machine().has_moved(local().pid);
    }
}

/// A mark is made, and this returns once for each execution that goes on from there.
#[cold]
#[inline(never)]
fn mark() {
    if world().procs[local().pid].state != ProcState::LIVE {
        // At the next choice, which another process takes.
        return;
    }
    if machine().copies() {
        return copies::mark();
    }
    if track().armed {
        return leave(Comes::Marks);
    }
    let slot = arena().back.slot;
    if !machine().holds_processes() || slot >= MAX_MARKS as u32 || prepare().is_err() {
        return machine().marks_no_more();
    }
    // It joins the others here.
    machine().has_marked();
    begins_at(slot + 1, true);
}

#[cold]
#[inline(never)]
fn stand() {
    let ends = world().procs[local().pid].state != ProcState::LIVE;
    let prepared = match (ends, machine().copies()) {
        (true, _) => Err(Hinders::PROCESSES),
        (false, true) => copies::stand(),
        (false, false) => prepare().map(|()| begins_at(0, true)),
    };
    match prepared {
        Ok(()) => {}
        Err(why) => machine().does_not_go_back(why),
    }
}

/// The process, which waits for its turn, is told to do something.
#[cold]
#[inline(never)]
pub fn obeys() {
    if !machine().takes_order(local().pid) {
        return;
    }
    if arena().back.order == Order::COPY {
        return copies::obey();
    }
    if track().armed {
        return leave(Comes::Obeys);
    }
    let slot = arena().back.slot;
    let base = if arena().taken == 0 { 0 } else { slot + 1 };
    let prepared = if arena().back.order == Order::PREPARE { prepare() } else { Err(Hinders::NONE) };
    match prepared {
        Ok(()) => begins_at(base, false),
        Err(why) => answer(Err(why)),
    }
}

/// The process has been given the turn, and goes back first: see NOTE \[Late\] of `vsrun_model::back`.
#[inline]
pub fn is_late() -> bool {
    track().armed && machine().late(local().pid).is_some()
}

/// It does. Where it waited there for the turn it still has it, and goes on from where it waited.
#[cold]
pub fn catches_up() {
    leave(Comes::Late);
}

/// The fiber that goes back takes over for the first time; this returns once for each execution that begins here.
fn begins_at(base: u32, leads: bool) {
    stacks::forget_the_dead();
    // Everything from here on is as it is kept.
    let frame = first_frame();
    let fs = fiber_of(local().cur).fs;
    (apart().fs, apart().base, apart().leads, apart().stands) = (fs, base, leads, Stands::First);
    track().arm(bare(libc::SYS_brk, [0; 6]) as u64, stacks::is_gone, !arena().plan.states);
    // SAFETY: the frame has been laid out for it, on a stack that nobody uses.
    unsafe { fibers::switch_context(&raw mut apart().program, frame, fs) };
}

/// The fiber that goes back takes over; returns once for each execution that goes on from here, or when there is nothing more to be done.
fn leave(comes: Comes) {
    let fs = fiber_of(local().cur).fs;
    (apart().fs, apart().comes) = (fs, comes);
    // SAFETY: the other fiber has left itself there, and comes back here.
    unsafe { fibers::switch_context(&raw mut apart().program, apart().own, fs) };
}

/// Whether the execution can go back, with room for that.
fn prepare() -> Result<(), Hinders> {
    if arena().plan.states && world().procs.len != 1 || local().borrowed {
        return Err(Hinders::PROCESSES);
    }
    let files = &arena().files;
    let used = files.used != 0 || files.listings != 0 || files.shadows.len + files.copies.len > 0;
    if used || arena().control.shm_used != 0 {
        return Err(Hinders::SHARED);
    }
    make_room(BACK_ADDR, COPIES - BACK_ADDR)?;
    if !written::open() {
        written::close();
        return Err(Hinders::KERNEL);
    }
    Ok(())
}

/// Which descriptors have places that count: not those that are printed to.
fn note_places() -> Result<(), Hinders> {
    const OPEN_MAX: u64 = 1024;
    let output = arena().back.printed;
    for fd in (0..OPEN_MAX).filter(|&fd| !(FIRST_FD as u64..=LAST_FD as u64).contains(&fd)) {
        let is_output = fd < 32 && output >> fd & 1 != 0;
        let has_place = !is_output && bare(libc::SYS_lseek, [fd, 0, libc::SEEK_CUR as u64, 0, 0, 0]) >= 0;
        if has_place {
            *apart().places.get_mut(apart().n_places).ok_or(Hinders::ROOM)? = fd;
            apart().n_places += 1;
        }
    }
    Ok(())
}

fn make_room(at: u64, size: u64) -> Result<(), Hinders> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    let a = [at, size, prot as u64, flags as u64, u64::MAX, 0];
    match bare(libc::SYS_mmap, a) == at as i64 && not_in_children(at, size) {
        true => Ok(()),
        false => Err(Hinders::ROOM),
    }
}

/// A child that is forked does not have it: it goes back by itself, from somewhere else.
fn not_in_children(at: u64, size: u64) -> bool {
    bare(libc::SYS_madvise, [at, size, libc::MADV_DONTFORK as u64, 0, 0, 0]) >= 0
}

/// What `vs_switch` finds when it comes to the fiber for the first time: control words, six registers, where it goes on.
fn first_frame() -> u64 {
    let top = BACK_ADDR + STACK - 64;
    let frame = [0x0000_037f_0000_1f80u64, 0, 0, 0, 0, 0, 0, goes_back as *const () as u64, 0];
    let bottom = top - 8 * frame.len() as u64;
    for (i, word) in frame.iter().enumerate() {
        store(bottom + 8 * i as u64, *word);
    }
    bottom
}

/// The execution is over: it begins again at its first choice when vsrun wants another one. Returns where that cannot be.
#[inline]
pub fn over() {
    if !machine().holds_processes() {
        if machine().copies() && arena().back.stand == Stand::RUNS {
            say(Stand::ENDS);
        }
        return;
    }
    if track().armed {
        // Nobody comes back here, since what is on this stack is not kept.
        leave(Comes::Over);
    }
    // Others go back, and this one was not there.
    say(Stand::BACK);
    loop {
        bare(libc::SYS_pause, [0; 6]);
    }
}

/// The process is over in the model, and others go on. Returns where it ends for the kernel, too.
#[inline]
pub fn parks() {
    if machine().holds_processes() && track().armed {
        leave(Comes::Parks);
    }
}

/// The process is about to run another program. If it does nobody can go back to a state from before.
pub fn is_replaced() {
    if machine().holds_processes() && track().armed {
        machine().does_not_go_back(Hinders(libc::SYS_execve as u32));
    }
}

/// What the fiber does that goes back.
extern "C" fn goes_back() -> ! {
    let blocked = [libc::SIG_SETMASK as u64, 0, &raw mut apart().mask as u64, 8, 0, 0];
    bare(libc::SYS_rt_sigprocmask, blocked);
    apart().first = (apart().program, apart().fs);
    match (apart().leads, apart().base) {
        (true, 0) => say(Stand::STOPPED),
        (true, _) => say(Stand::MARKED),
        (false, _) => answer(Ok(())),
    }
    loop {
        match next() {
            Turn::OBEYS => obey(),
            _ => has_turn(),
        }
        let mut runs = true;
        while runs {
            // SAFETY: the program's fiber has left itself there, and what is on its stack has been put back.
            unsafe { fibers::switch_context(&raw mut apart().own, apart().program, apart().fs) };
            runs = match apart().comes {
                Comes::Obeys => {
                    obey();
                    true
                }
                Comes::Marks => {
                    apart().stands = Stands::There;
                    !make_mark()
                }
                Comes::Over => {
                    ends();
                    false
                }
                Comes::Parks => {
                    apart().stands = Stands::Over;
                    false
                }
                Comes::Late => {
                    catch_up();
                    true
                }
            };
        }
    }
}

/// There is but one place to go to: the first choice, of the only process.
fn has_one_place() -> bool {
    apart().rooms == 0 && world().procs.len == 1
}

/// The execution is over.
fn ends() {
    may_go_back().unwrap_or_else(|why| gives_up(why));
    apart().stands = Stands::Over;
    if has_one_place() {
        undo().and_then(|()| all_is_kept()).unwrap_or_else(|why| gives_up(why));
        put_back();
        apart().stands = Stands::There;
    }
    say(Stand::BACK);
}

/// The process has the turn, where it has stopped; the program's fiber goes on.
fn has_turn() {
    if machine().late(local().pid).is_some() {
        return catch_up();
    }
    match core::mem::replace(&mut apart().stands, Stands::There) {
        Stands::First => {
            if let Err(why) = keep() {
                machine().does_not_go_back(why);
                track().armed = false;
            }
        }
        Stands::Over => undo_all(arena().back.to).unwrap_or_else(|why| gives_up(why)),
        Stands::There => {}
    }
    moves();
}

/// The process goes back to where it is in the execution that is under way.
fn catch_up() {
    let p = local().pid;
    let Some(to) = machine().late(p) else { return };
    is_to_go_back().and_then(|()| come_to(to)).unwrap_or_else(|why| {
        machine().goes_astray();
        gives_up(why)
    });
    apart().stands = Stands::There;
    machine().is_not_late(p);
    // Where it has read the turn at the other one this was set before: see `word::wake`.
    store(machine().back_word(p).unwrap_or_else(|| die(0)), Turn::NONE);
    if machine().leads(p) {
        // It is not waiting for the turn there.
        let own = &raw mut process_of(p).turn as u64;
        while load::<Turn>(own) != Turn::TAKES {
            await_word(own);
        }
        store(own, Turn::NONE);
        moves();
    }
}

/// Does what the process is told to; the program's fiber goes on, which waits for its turn.
fn obey() {
    // It is there only then.
    catch_up();
    let slot = arena().back.slot;
    let order = arena().back.order;
    let done = match order {
        Order::KEEP => keep(),
        Order::MARK if slot < MAX_MARKS as u32 && take(slot) => Ok(()),
        _ => Err(Hinders::NONE),
    };
    if order == Order::KEEP && done.is_err() {
        track().armed = false;
    }
    answer(done);
}

/// Where it has not been since.
fn come_to(to: u32) -> Result<(), Hinders> {
    let state = match to {
        to if to == apart().base => apart().first_state,
        1..=MAX_MARKS_TO if apart().rooms >> (to - 1) & 1 != 0 => mark_in(to - 1).state,
        _ => return Err(Hinders::NONE),
    };
    if state == apart().state {
        return Ok(());
    }
    all_is_kept()?;
    if to != apart().base && !track().can_come_to(&mark_in(to - 1).at) {
        return Err(Hinders::MAPPINGS);
    }
    undo_all(to)
}

fn undo_all(to: u32) -> Result<(), Hinders> {
    match to {
        to if to == apart().base => undo().map(|()| put_back()),
        0 => Err(Hinders::NONE),
        to => undo_to(to - 1),
    }
}

fn gives_up(why: Hinders) -> ! {
    machine().does_not_go_back(why);
    wake();
    die(0)
}

/// The program's fiber has left itself at a state that is to be a mark. False: it is none, and the execution goes on.
fn make_mark() -> bool {
    let slot = arena().back.slot;
    let marked = slot < MAX_MARKS as u32 && take(slot);
    if !marked {
        machine().marks_no_more();
        return false;
    }
    machine().has_marked();
    say(Stand::MARKED);
    true
}

fn take(slot: u32) -> bool {
    let control = &arena().control;
    let shares = arena().files.used != 0 || control.shm_used != 0;
    let Some(at) = track().at_mark().filter(|_| !shares && !local().borrowed) else { return false };
    let n_pages = apart().n_pages;
    let least = MARK_COPIES / PAGE + n_pages as u64;
    let held = apart().held[slot as usize];
    let most = arena().back.room.saturating_sub(apart().held.iter().sum::<u64>() - held);
    let Some(most_more) = most.checked_sub(least) else {
        machine().has_no_room_for_mark();
        return false;
    };
    if apart().rooms >> slot & 1 == 0 {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE | libc::MAP_NORESERVE;
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let place = MARKS + u64::from(slot) * MARK;
        let a = [place, MARK_SIZE, prot as u64, flags as u64, u64::MAX, 0];
        if bare(libc::SYS_mmap, a) != place as i64 || !not_in_children(place, MARK_SIZE) {
            return false;
        }
        apart().rooms |= 1 << slot;
    }
    if apart().base == slot + 1 {
        apart().base = NOWHERE;
    }
    let mark = mark_in(slot);
    (mark.program, mark.fs, mark.at, mark.n_more) = (apart().program, apart().fs, at, 0);
    mark.state = apart().state;
    bare(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as u64, 0, &raw mut mark.mask as u64, 8, 0, 0]);
    for (i, &page) in apart().pages[..n_pages].iter().enumerate().filter(|(_, page)| !mark.at.has_lost(**page)) {
        copy_page(page, mark_copy(slot, i));
    }
    let heap = [heap_since(mark.at.brk)];
    let told = &mut apart().told;
    let (more, n_more) = (&mut mark.more, &mut mark.n_more);
    let mut pieces = mark.at.pieces().iter().chain(&heap).filter(|(from, to)| from < to);
    let well = pieces.all(|&(from, to)| {
        written::there(from, to, told, &mut |from, to| {
            (from..to).step_by(PAGE as usize).all(|page| {
                if *n_more as u64 >= most_more {
                    machine().has_no_room_for_mark();
                    return false;
                }
                let Some(place) = more.get_mut(*n_more) else { return false };
                *place = page;
                copy_page(page, mark_copy(slot, n_pages + *n_more));
                *n_more += 1;
                true
            })
        })
    });
    // What a place has once taken it keeps.
    apart().held[slot as usize] = held.max(least + mark.n_more as u64);
    let held = apart().held;
    machine().marks_take(held.iter().sum(), held.iter().fold(0, |most, &pages| most.max(pages)));
    well
}

/// The pages of the heap that were not there at the first choice, where it ends at `brk`.
fn heap_since(brk: u64) -> (u64, u64) {
    (track().heap().next_multiple_of(PAGE), brk.next_multiple_of(PAGE))
}

/// Puts all back as it stood at a mark.
fn undo_to(slot: u32) -> Result<(), Hinders> {
    let mark = mark_in(slot);
    track().undo_to(&mark.at).ok_or(Hinders::MAPPINGS)?;
    let brk = mark.at.brk;
    if bare(libc::SYS_brk, [0; 6]) as u64 != brk && bare(libc::SYS_brk, [brk, 0, 0, 0, 0, 0]) as u64 != brk {
        return Err(Hinders::MAPPINGS);
    }
    let heap = [heap_since(brk)];
    let altstacks = local().altstacks;
    let n_pages = apart().n_pages;
    let more = &mark.more[..mark.n_more];
    let told = &mut apart().told;
    // What has come since goes. The pages of the mark come in the same order.
    let mut pieces = mark.at.pieces().iter().chain(&heap).filter(|(from, to)| from < to);
    let mut next = 0;
    let emptied = pieces.all(|&(begin, end)| {
        let well = written::there(begin, end, told, &mut |from, to| {
            (from..to).step_by(PAGE as usize).all(|page| {
                while more.get(next).is_some_and(|&known| begin <= known && known < page) {
                    next += 1;
                }
                let is_known = more.get(next) == Some(&page);
                let a = [page, PAGE, libc::MADV_DONTNEED as u64, 0, 0, 0];
                is_known || bare(libc::SYS_madvise, a) >= 0
            })
        });
        while more.get(next).is_some_and(|known| (begin..end).contains(known)) {
            next += 1;
        }
        well
    });
    if !emptied {
        return Err(Hinders::ROOM);
    }
    for (i, &page) in apart().pages[..n_pages].iter().enumerate().filter(|(_, page)| !mark.at.has_lost(**page)) {
        copy_page(mark_copy(slot, i), page);
    }
    for (i, &page) in more.iter().enumerate() {
        copy_page(mark_copy(slot, n_pages + i), page);
    }
    (apart().program, apart().fs, apart().state) = (mark.program, mark.fs, mark.state);
    bare(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as u64, &raw const mark.mask as u64, 0, 8, 0, 0]);
    if altstacks || local().altstacks {
        fibers::install_altstack(local().cur);
    }
    Ok(())
}

/// Waits until the process is given the turn, or told to do something.
fn next() -> Turn {
    let p = local().pid;
    let Some(at) = machine().back_word(p) else { die(0) };
    loop {
        match load::<Turn>(at) {
            Turn::NONE => await_word(at),
            Turn::OBEYS => {
                store_over(at, Turn::OBEYS.0, Turn::NONE.0);
                if machine().takes_order(p) {
                    return Turn::OBEYS;
                }
            }
            turn => {
                store(at, Turn::NONE);
                return turn;
            }
        }
    }
}

/// The word at which process `p`, or the original that stands for it, may wait to be told that it has the turn, beside that of the world. `None`: it waits at that
/// one only.
#[inline]
pub fn other_word(p: Pid) -> Option<u64> {
    if let Some(place) = machine().original_of(p) {
        return machine().original_word(place);
    }
    machine().late(p).and_then(|_| machine().back_word(p))
}

/// Keeps what vsrun has said is to be put back, and lets the kernel watch for writes.
fn keep() -> Result<(), Hinders> {
    let back = &arena().back;
    let (n_spans, n_pages) = (back.n_spans as usize, back.n_pages as usize);
    if n_spans > MAX_SPANS || n_pages > MAX_BACK_PAGES {
        return Err(Hinders::ROOM);
    }
    // What the program may overwrite is not relied on later.
    apart().spans[..n_spans].copy_from_slice(&back.spans[..n_spans]);
    apart().pages[..n_pages].copy_from_slice(&back.pages[..n_pages]);
    (apart().n_spans, apart().n_pages) = (n_spans, n_pages);
    let at = |field: usize| BACK_ADDR + STACK + field as u64;
    let (spans, pages) = (at(offset_of!(Apart, spans)), at(offset_of!(Apart, pages)));
    track().told(back.printed, (spans, n_spans), (pages, n_pages));
    if arena().plan.states {
        note_places()?;
    }
    if n_pages > 0 {
        make_room(COPIES, n_pages as u64 * PAGE)?;
    }
    let spans = &apart().spans[..n_spans];
    let told = &mut apart().told;
    for span in spans {
        if !written::watch(span.start, span.end) || !written::protect(span.start, span.end, told) {
            return Err(Hinders::KERNEL);
        }
    }
    // Guards of stacks have nothing in them.
    for span in apart().spans[..n_spans].iter_mut().filter(|span| span.comes_back() && !span.is_writable()) {
        let mut empty = true;
        let known = written::present(span.start, span.end, &mut |_, _| {
            empty = false;
            true
        });
        if !known {
            return Err(Hinders::KERNEL);
        }
        if empty {
            span.kind = Span::EMPTY;
        }
    }
    for (i, &page) in apart().pages[..n_pages].iter().enumerate() {
        copy_page(page, copy_of(i));
        // It is written in each execution: the fault that the first write would be is over here.
        copy_page(copy_of(i), page);
    }
    apart().states += 1;
    (apart().state, apart().first_state) = (apart().states, apart().states);
    Ok(())
}

pub(super) fn copy_of(page: usize) -> u64 {
    COPIES + page as u64 * PAGE
}

/// Whether the process can go back, as far as that was seen.
fn is_to_go_back() -> Result<(), Hinders> {
    if track().why == Hinders::PAGES {
        track().missed().iter().all(|&page| machine().misses(page));
    }
    match track().why {
        Hinders::NONE => Ok(()),
        why => Err(why),
    }
}

/// Whether the process can go back; to which marks it can is told.
fn may_go_back() -> Result<(), Hinders> {
    is_to_go_back()?;
    if arena().files.used != 0 || arena().control.shm_used != 0 {
        return Err(Hinders::SHARED);
    }
    if has_one_place() {
        return Ok(());
    }
    all_is_kept()?;
    let can = |slot: &u32| apart().rooms >> slot & 1 != 0 && track().can_come_to(&mark_in(*slot).at);
    machine().can_come_to((0..MAX_MARKS as u32).filter(can).fold(0, |bits, slot| bits | 1 << slot));
    Ok(())
}

/// Undoes what was done outside of memory since the first choice.
fn undo() -> Result<(), Hinders> {
    track().undo().ok_or(Hinders::MAPPINGS)?;
    let heap = track().heap();
    if bare(libc::SYS_brk, [0; 6]) as u64 != heap && bare(libc::SYS_brk, [heap, 0, 0, 0, 0, 0]) as u64 != heap {
        return Err(Hinders::MAPPINGS);
    }
    Ok(())
}

/// Puts memory back as it stood at the first choice.
fn put_back() {
    let altstacks = local().altstacks;
    let pages = &apart().pages[..apart().n_pages];
    for (i, &page) in pages.iter().enumerate() {
        copy_page(copy_of(i), page);
    }
    bare(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as u64, &raw const apart().mask as u64, 0, 8, 0, 0]);
    if altstacks || local().altstacks {
        fibers::install_altstack(local().cur);
    }
    (apart().program, apart().fs) = apart().first;
    apart().state = apart().first_state;
}

/// Of each page that was written there is a copy.
fn all_is_kept() -> Result<(), Hinders> {
    let mut missed = false;
    let pages = &apart().pages[..apart().n_pages];
    let known = each_written(&mut |page| {
        let kept = pages.binary_search(&page).is_ok();
        missed |= !kept;
        kept || machine().misses(page)
    });
    match (known, missed) {
        (false, _) => Err(Hinders::ROOM),
        (true, true) => Err(Hinders::PAGES),
        (true, false) => Ok(()),
    }
}

/// So often the kernel is asked whether all is watched, where nothing was unmapped.
const CHECKED: u32 = 64;

/// Shows each page that was there at the first choice, and was written since, also where it is hidden; where something else is now, it was looked at when that came.
/// False: the kernel does not know them, or `each` gave false.
///
/// All of that is watched: [`keep`] has seen to it, and `Track::undo` where it was unmapped and is mapped again; nothing else takes it from under watch that would
/// not be seen by `track`. What is mapped since is not watched. Where something was unmapped, and now and then, the kernel is asked whether it is so, for each piece by itself.
pub(super) fn each_written(each: &mut dyn FnMut(u64) -> bool) -> bool {
    let spans = &apart().spans[..apart().n_spans];
    let (Some(first), Some(last)) = (spans.first(), spans.last()) else { return true };
    let times = apart().asked;
    apart().asked = times.wrapping_add(1);
    if times.is_multiple_of(CHECKED) || track().has_unmapped() {
        let mut is_watched = |from, to| written::is_watched(from, to, &mut apart().told);
        if !spans.iter().all(|span| track().each_there(span.start, span.end, &mut is_watched)) {
            return false;
        }
    }
    written::each(first.start, last.end, &mut apart().told, &mut |from, to| {
        (from..to).step_by(PAGE as usize).all(&mut *each)
    })
}
