//! What the kernel does to the program's memory for a call, where memory is watched: recorded like accesses of instructions. What is read
//! comes before the call, what is written after it, in the transition that it belongs to.
//!
//! NOTE [Aside] Memory that is an object is written in turn: the call writes elsewhere, and from there each word is copied by an operation
//! of its own. Where there is no room for that, or the address is in memory itself, it is one step, which is told.

use core::cell::UnsafeCell;

use vsrun_model::buffers::{buffers, Buffer, Size, Way, MAX_BUFFERS};
use vsrun_model::calls::name;
use vsrun_model::watch::Entry;

use crate::gate::{local, machine, Phase};
use crate::sys::errno::EINTR;
use crate::sys::{bytes, copy_out, load, raw, readable};
use crate::watch;

/// Bytes of the number that `struct msgbuf` begins with.
const TYPE: u64 = 8;
/// Longest text, in bytes, and most of them.
const MAX_TEXT: u64 = 1 << 20;
const MAX_TEXTS: u64 = 1 << 16;
/// Most elements of what `iovec` and `mmsghdr` stand in.
const MAX_VECTORS: u64 = 1024;
/// Bytes of a place to write to instead, and how many there are.
const ROOM: u64 = 64 << 10;
const PLACES: u64 = 32;
/// Where they are.
const ASIDE: u64 = 0x2310_0000_0000;

/// Bit n: place n is taken; `None`: they are not mapped.
struct Cell(UnsafeCell<Option<u32>>);
// SAFETY: a process of a world has one kernel thread, and no borrow is kept across a switch of fibers.
unsafe impl Sync for Cell {}
static TAKEN: Cell = Cell(UnsafeCell::new(None));

fn taken() -> &'static mut Option<u32> {
    // SAFETY: see `Cell`; callers use the borrow for one statement.
    unsafe { &mut *TAKEN.0.get() }
}

/// Performs call `nr` by `call`, with what it does to memory.
#[inline]
pub fn around(nr: i64, a: [u64; 6], call: impl FnOnce([u64; 6]) -> i64) -> i64 {
    if !watch::is_recording() || local().phase != Phase::Running || local().borrowed {
        return call(a);
    }
    let mut watched = Call::begin(nr, a);
    let result = call(watched.arguments);
    watched.end(result);
    result
}

/// A system call or a function of libc has written `size` bytes to `at`, in one step.
pub fn wrote(at: u64, size: u64, site: u32) {
    if watch::has_object(at, size) {
        machine().note_wide_use();
        watch::call_wrote_at_once(at, size, site);
    } else {
        watch::call_wrote(at, size, site);
    }
}

/// A call that is watched.
struct Call {
    site: u32,
    buffers: &'static [Buffer],
    /// As the program made it.
    asked: [u64; 6],
    /// As it is performed.
    arguments: [u64; 6],
    /// Of each buffer, bytes at most.
    most: [u64; MAX_BUFFERS],
    /// The same: where it writes instead, or 0.
    aside: [u64; MAX_BUFFERS],
}

impl Call {
    #[cold]
    #[inline(never)]
    fn begin(nr: i64, a: [u64; 6]) -> Call {
        watch::begins();
        let site = Entry::FUNCTION | Entry::CALL | nr as u32;
        let buffers = buffers(nr, &a).unwrap_or_else(|| {
            note_unknown(name(nr).unwrap_or("of that number"));
            &[]
        });
        let mut call = Call { site, buffers, asked: a, arguments: a, most: [0; MAX_BUFFERS], aside: [0; MAX_BUFFERS] };
        for (n, what) in buffers.iter().enumerate() {
            call.most[n] = call.longest(what);
        }
        for (n, what) in buffers.iter().enumerate().filter(|(_, what)| matches!(what.way, Way::Reads | Way::Changes)) {
            call.reads(what, call.most[n]);
        }
        for what in buffers.iter().filter(|what| what.way == Way::Writes) {
            call.reads_addresses(what);
        }
        for (n, what) in buffers.iter().enumerate().filter(|(_, what)| what.way != Way::Reads) {
            let at = a[usize::from(what.argument)];
            if call.most[n] > 0 && watch::has_object(at, call.most[n]) {
                call.put_aside(n, at);
            }
        }
        call
    }

    /// Buffer `n` is written elsewhere, if there is room.
    fn put_aside(&mut self, n: usize, at: u64) {
        let size = self.most[n];
        match take(size) {
            Some(place) if copy_out(place, bytes(at, size as usize)) => {
                self.aside[n] = place;
                self.arguments[usize::from(self.buffers[n].argument)] = place;
            }
            _ => machine().note_wide_use(),
        }
    }

    #[cold]
    #[inline(never)]
    fn end(&mut self, result: i64) {
        for (n, what) in self.buffers.iter().enumerate() {
            let wrote = match what.way {
                Way::Reads => false,
                Way::Writes | Way::Changes => result >= 0,
                Way::WritesIfAny => result > 0,
                Way::WritesInterrupted => result == EINTR,
            };
            let at = self.asked[usize::from(what.argument)];
            let size = if wrote && at != 0 { self.written(what, self.most[n], result) } else { 0 };
            match self.aside[n] {
                0 if wrote => self.wrote(what, at, size, result),
                0 => {}
                place => {
                    watch::call_writes(at, place, size, self.site);
                    give_back(place);
                }
            }
        }
    }

    fn argument(&self, n: u8) -> u64 {
        self.asked[usize::from(n)]
    }

    /// Bytes that a buffer has at most; 0 for what has addresses in it, texts, and nulls.
    fn longest(&self, what: &Buffer) -> u64 {
        let at = self.argument(what.argument);
        let size = match what.size {
            Size::Bytes(size) => size.into(),
            Size::Of(n, size) | Size::Given(n, size) => self.argument(n).saturating_mul(size.into()),
            Size::Typed(n) | Size::TypedGiven(n) => self.argument(n).saturating_add(TYPE),
            Size::Told(n) => number(self.argument(n)).into(),
            Size::Bits(n) => (self.argument(n) as u32).div_ceil(64) as u64 * 8,
            Size::Pages(n) => self.argument(n).div_ceil(4096),
            Size::Text | Size::Texts | Size::Vectors(_) | Size::Message | Size::Messages(_) => 0,
        };
        if at == 0 {
            return 0;
        }
        readable(at, size)
    }

    /// Bytes of a buffer that the call has written.
    fn written(&self, what: &Buffer, most: u64, result: i64) -> u64 {
        match what.size {
            Size::Given(_, size) => most.min((result as u64).saturating_mul(size.into())),
            Size::TypedGiven(_) => most.min((result as u64).saturating_add(TYPE)),
            // The number is there by now, aside if it is an object.
            Size::Told(n) => most.min(number(self.arguments[usize::from(n)]).into()),
            _ => most,
        }
    }

    /// What is read before the call.
    fn reads(&self, what: &Buffer, most: u64) {
        let at = self.argument(what.argument);
        let reads = |at: u64, size: u64| watch::call_reads(at, readable(at, size), self.site);
        if at == 0 {
            return;
        }
        match what.size {
            Size::Text => reads(at, text(at)),
            Size::Texts => texts(at, reads),
            Size::Vectors(n) => vectors(at, self.argument(n), u64::MAX, reads, reads),
            Size::Message => message(at, u64::MAX, reads, reads),
            Size::Messages(n) => each_message(at, self.argument(n), |at| message(at, u64::MAX, reads, reads)),
            _ => reads(at, most),
        }
    }

    /// Where the addresses that a call writes to are in memory, it reads them before.
    fn reads_addresses(&self, what: &Buffer) {
        let at = self.argument(what.argument);
        let reads = |at: u64, size: u64| watch::call_reads(at, readable(at, size), self.site);
        match what.size {
            _ if at == 0 => {}
            Size::Vectors(n) => vectors(at, self.argument(n), 0, reads, nothing),
            Size::Message => message(at, 0, reads, nothing),
            Size::Messages(n) => each_message(at, self.argument(n), |at| message(at, 0, reads, nothing)),
            _ => {}
        }
    }

    /// What was written to `at` by the call, not aside.
    fn wrote(&self, what: &Buffer, at: u64, size: u64, result: i64) {
        let writes = |at: u64, size: u64| {
            wrote(at, readable(at, size), self.site);
        };
        if at == 0 {
            return;
        }
        let whole = |at: u64, given: u64| {
            message(at, given, nothing, writes);
            // The length of the name, that of the control data and the flags.
            writes(at.wrapping_add(8), 4);
            writes(at.wrapping_add(40), 12);
        };
        match what.size {
            Size::Vectors(n) => vectors(at, self.argument(n), result as u64, nothing, writes),
            Size::Message => whole(at, result as u64),
            Size::Messages(_) => each_message(at, result as u64, |at| {
                whole(at, number(at.wrapping_add(56)).into());
                writes(at.wrapping_add(56), 4);
            }),
            _ => writes(at, size),
        }
    }
}

/// What a call does to memory is not known.
fn note_unknown(name: &str) {
    const WHAT: &[u8] = b"what the system call ";
    const DOES: &[u8] = b" does to memory";
    let mut text = [0; 96];
    let all = WHAT.iter().chain(name.as_bytes()).chain(DOES);
    let n = all.clone().count().min(text.len());
    text.iter_mut().zip(all).for_each(|(to, byte)| *to = *byte);
    machine().note_later_code(&text[..n]);
}

fn nothing(_: u64, _: u64) {}

/// A number of 4 bytes, 0 where there is none.
fn number(at: u64) -> u32 {
    if at != 0 && readable(at, 4) == 4 {
        load(at)
    } else {
        0
    }
}

/// The same of 8.
fn long(at: u64) -> u64 {
    if at != 0 && readable(at, 8) == 8 {
        load(at)
    } else {
        0
    }
}

/// A text with its NUL.
fn text(at: u64) -> u64 {
    let ends = |n: &u64| readable(at.wrapping_add(*n), 1) == 0 || load::<u8>(at.wrapping_add(*n)) == 0;
    (0..MAX_TEXT).find(ends).map_or(MAX_TEXT, |n| n + 1)
}

fn texts(at: u64, reads: impl Fn(u64, u64)) {
    let each = (0..MAX_TEXTS).map(|n| long(at.wrapping_add(8 * n))).take_while(|&text| text != 0);
    let mut n = 0;
    for at in each {
        reads(at, text(at));
        n += 1;
    }
    reads(at, 8 * (n + 1));
}

/// `n` times `struct iovec`, of which `given` bytes are used.
fn vectors(at: u64, n: u64, mut given: u64, reads: impl Fn(u64, u64), uses: impl Fn(u64, u64)) {
    let n = n.min(MAX_VECTORS);
    reads(at, 16 * n);
    for at in (0..n).map(|n| at.wrapping_add(16 * n)) {
        let size = long(at.wrapping_add(8)).min(given);
        uses(long(at), size);
        given -= size;
    }
}

/// `struct msghdr`, of whose data `given` bytes are used.
fn message(at: u64, given: u64, reads: impl Fn(u64, u64), uses: impl Fn(u64, u64)) {
    if readable(at, 56) < 56 {
        return;
    }
    reads(at, 56);
    if long(at) != 0 {
        uses(long(at), number(at + 8).into());
    }
    vectors(long(at + 16), long(at + 24), given, reads, &uses);
    if long(at + 32) != 0 {
        uses(long(at + 32), long(at + 40));
    }
}

fn each_message(at: u64, n: u64, f: impl Fn(u64)) {
    (0..n.min(MAX_VECTORS)).for_each(|n| f(at.wrapping_add(64 * n)));
}

/// A place to write so many bytes to.
pub fn take(size: u64) -> Option<u64> {
    if size > ROOM {
        return None;
    }
    if taken().is_none() {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let mapped = raw!(libc::SYS_mmap, ASIDE, ROOM * PLACES, prot, flags, -1i64, 0);
        *taken() = (mapped == ASIDE as i64).then_some(0);
    }
    let now = (*taken())?;
    let free = now.trailing_ones();
    if u64::from(free) == PLACES {
        return None;
    }
    *taken() = Some(now | 1 << free);
    Some(ASIDE + u64::from(free) * ROOM)
}

/// It is used no more.
pub fn give_back(place: u64) {
    let n = (place - ASIDE) / ROOM;
    if let Some(now) = taken() {
        *now &= !(1 << n);
    }
}
