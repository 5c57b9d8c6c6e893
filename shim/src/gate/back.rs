//! Going back. A process that has been asked to stops before the first choice of its execution; at the end it undoes what it has done since, and stands
//! there again for the next execution, which costs no fork and no page fault.
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
use vsrun_model::back::{Hinders, Span, Stand, MAX_BACK_PAGES, MAX_MARKS, MAX_SPANS};
use vsrun_model::ProcState;

use super::{arena, fiber_of, local, machine, stacks, world};
use crate::gate::fiber as fibers;
use crate::sys::bare::{bare, copy_page};
use crate::sys::track::{track, AtMark};
use crate::sys::written::{self, Piece};
use crate::sys::{die, load, store};

const PAGE: u64 = 4096;
/// The stack of the fiber that goes back.
const STACK: u64 = 64 << 10;
/// Pieces that the kernel tells at a time.
const PIECES: usize = 256;
/// Where marks are, and how far from each other.
const MARKS: u64 = BACK_ADDR + (1 << 36);
const MARK: u64 = 1 << 30;
/// Bytes of the spare stack.
const SPARE: usize = 64 << 10;
/// Most descriptors of files whose places are known.
const MAX_PLACES: usize = 64;
/// Most pages of a mark in memory that was mapped since the first choice.
const MAX_MORE: usize = 4096;

/// What is not put back.
#[repr(C)]
struct Apart {
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
    /// It is to make a mark, and the execution goes on.
    marks: bool,
    /// Bit N: there is room for marks at place N.
    rooms: u32,
    /// Pages that they take, each.
    held: [u64; MAX_MARKS],
    n_spans: usize,
    n_pages: usize,
    spans: [Span; MAX_SPANS],
    pages: [u64; MAX_BACK_PAGES],
    told: [Piece; PIECES],
    /// How often it was asked what was written.
    asked: u32,
    /// See [`places`].
    n_places: usize,
    places: [u64; MAX_PLACES],
    /// See [`spare_stack`].
    spare: Spare,
}

/// See [`spare_stack`].
#[repr(C, align(64))]
struct Spare {
    _memory: [u8; SPARE],
}

/// What a mark begins with; behind it are copies: of the pages that are kept, then of more.
#[repr(C)]
struct Mark {
    /// Where the program's fiber goes on.
    program: u64,
    fs: u64,
    mask: u64,
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

fn apart() -> &'static mut Apart {
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

/// A mark is made, and this returns once for each execution that goes on from there.
#[cold]
#[inline(never)]
fn mark() {
    if !track().armed {
        return machine().marks_no_more();
    }
    let fs = fiber_of(local().cur).fs;
    (apart().fs, apart().marks) = (fs, true);
    // SAFETY: the other fiber has left itself there, and comes back here.
    unsafe { fibers::switch_context(&raw mut apart().program, apart().own, fs) };
}

#[cold]
#[inline(never)]
fn stand() {
    if let Err(why) = prepare() {
        machine().does_not_go_back(why);
        return;
    }
    stacks::forget_the_dead();
    // Everything from here on is as it is kept.
    let frame = first_frame();
    let fs = fiber_of(local().cur).fs;
    apart().fs = fs;
    track().arm(bare(libc::SYS_brk, [0; 6]) as u64, stacks::is_gone);
    // SAFETY: the frame has been laid out for it, on a stack that nobody uses.
    unsafe { fibers::switch_context(&raw mut apart().program, frame, fs) };
}

/// Whether the execution can go back, with room for that.
fn prepare() -> Result<(), Hinders> {
    if world().procs.len != 1 || local().borrowed {
        return Err(Hinders::PROCESSES);
    }
    let files = &arena().files;
    let used = files.used != 0 || files.listings != 0 || files.shadows.len + files.copies.len > 0;
    if used || arena().control.shm_used != 0 || local().n_ranges > 0 {
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
    match bare(libc::SYS_mmap, a) == at as i64 {
        true => Ok(()),
        false => Err(Hinders::ROOM),
    }
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
    if track().armed {
        // SAFETY: the fiber has left itself there; nobody comes back here, since what is on this stack is not kept.
        unsafe { fibers::switch_context(&mut 0, apart().own, apart().fs) };
    }
}

/// What the fiber does that goes back.
extern "C" fn goes_back() -> ! {
    let blocked = [libc::SIG_SETMASK as u64, 0, &raw mut apart().mask as u64, 8, 0, 0];
    bare(libc::SYS_rt_sigprocmask, blocked);
    apart().first = (apart().program, apart().fs);
    say(Stand::STOPPED);
    await_vsrun();
    if let Err(why) = keep() {
        machine().does_not_go_back(why);
        track().armed = false;
    }
    loop {
        // SAFETY: the program's fiber has left itself there, and what is on its stack has been put back.
        unsafe { fibers::switch_context(&raw mut apart().own, apart().program, apart().fs) };
        if core::mem::take(&mut apart().marks) {
            make_mark();
            continue;
        }
        may_go_back().unwrap_or_else(|why| gives_up(why));
        if apart().rooms == 0 {
            // There is but one place to go to.
            undo().and_then(|()| all_is_kept()).unwrap_or_else(|why| gives_up(why));
            put_back();
        }
        say(Stand::BACK);
        await_vsrun();
        if apart().rooms != 0 {
            let undone = match arena().back.to {
                0 => undo().map(|()| put_back()),
                slot => undo_to(slot - 1),
            };
            undone.unwrap_or_else(|why| gives_up(why));
        }
    }
}

fn gives_up(why: Hinders) -> ! {
    machine().does_not_go_back(why);
    wake();
    die(0)
}

/// The program's fiber has left itself at a state that is to be a mark.
fn make_mark() {
    let slot = arena().back.slot;
    let marked = slot < MAX_MARKS as u32 && (local().n_ranges == 0) && take(slot);
    if !marked {
        return machine().marks_no_more();
    }
    machine().has_marked();
    say(Stand::MARKED);
    await_vsrun();
}

fn take(slot: u32) -> bool {
    let control = &arena().control;
    let shares = arena().files.used != 0 || control.shm_used != 0 || world().procs.len != 1;
    let ends = world().procs[local().pid].state != ProcState::LIVE || local().borrowed;
    let Some(at) = track().at_mark().filter(|_| !shares && !ends) else { return false };
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
        if bare(libc::SYS_mmap, a) != place as i64 {
            return false;
        }
        apart().rooms |= 1 << slot;
    }
    let mark = mark_in(slot);
    (mark.program, mark.fs, mark.at, mark.n_more) = (apart().program, apart().fs, at, 0);
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
    (apart().program, apart().fs) = (mark.program, mark.fs);
    bare(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as u64, &raw const mark.mask as u64, 0, 8, 0, 0]);
    if altstacks || local().altstacks {
        fibers::install_altstack(local().cur);
    }
    Ok(())
}

fn say(stand: Stand) {
    store(machine().stand_word(), stand);
    wake();
}

fn wake() {
    bare(libc::SYS_futex, [machine().stand_word(), libc::FUTEX_WAKE as u64, 1, 0, 0, 0]);
}

fn await_vsrun() {
    let word = machine().stand_word();
    loop {
        let stand: Stand = load(word);
        if stand == Stand::RUNS {
            return;
        }
        bare(libc::SYS_futex, [word, libc::FUTEX_WAIT as u64, stand.0.into(), 0, 0, 0]);
    }
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
    Ok(())
}

fn copy_of(page: usize) -> u64 {
    COPIES + page as u64 * PAGE
}

/// Whether the process can go back; to which marks it can is told.
fn may_go_back() -> Result<(), Hinders> {
    if track().why == Hinders::PAGES {
        track().missed().iter().all(|&page| machine().misses(page));
    }
    if track().why != Hinders::NONE {
        return Err(track().why);
    }
    if arena().files.used != 0 || arena().control.shm_used != 0 {
        return Err(Hinders::SHARED);
    }
    if apart().rooms == 0 {
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
}

/// The lowest address of the first thread's stack, if it has its stack pointer there.
pub fn first_stack(sp: u64) -> Option<u64> {
    let spans = &apart().spans[..apart().n_spans];
    let is_it = |span: &&Span| span.start <= sp && sp <= local().stack && local().stack < span.end;
    spans.iter().find(is_it).map(|span| span.start)
}

/// Where a stack ends that is no part of what is put back, and that nobody is on. `None`: the process does not go back.
pub fn spare_stack() -> Option<u64> {
    track().armed.then(|| &raw const apart().spare as u64 + SPARE as u64)
}

/// Descriptors of files with places in them that were open at the first choice.
pub fn places() -> impl Iterator<Item = u64> {
    (0..apart().n_places).map(|n| apart().places[n])
}

/// Shows each page that may have something else than at the first choice, or was not there then, and the copy of it that is kept. False: the kernel does not
/// know them all, or one cannot be read.
pub fn each_page(each: &mut dyn FnMut(u64, Option<u64>)) -> bool {
    let n_pages = apart().n_pages;
    for i in 0..n_pages {
        let page = apart().pages[i];
        if !track().has_gone(page) && !show(page, Some(copy_of(i)), each) {
            return false;
        }
    }
    let kept = |page: &u64| apart().pages[..n_pages].binary_search(page).is_ok();
    let shows = each_written(&mut |page| kept(&page) || track().has_gone(page) || show(page, None, each));
    if !shows {
        return false;
    }
    let heap = (track().heap().next_multiple_of(PAGE), (bare(libc::SYS_brk, [0; 6]) as u64).next_multiple_of(PAGE));
    let mut fresh = track().fresh().iter().copied().chain([heap]).filter(|(from, to)| from < to);
    fresh.all(|(from, to)| {
        written::there(from, to, &mut apart().told, &mut |from, to| {
            (from..to).step_by(PAGE as usize).all(|page| show(page, None, each))
        })
    })
}

/// Shows a page, where something stands in it. False: that cannot be read.
fn show(page: u64, copy: Option<u64>, each: &mut dyn FnMut(u64, Option<u64>)) -> bool {
    match track().is_readable(page) {
        Some(true) => each(page, copy),
        Some(false) => return false,
        None => {}
    }
    true
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
fn each_written(each: &mut dyn FnMut(u64) -> bool) -> bool {
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
