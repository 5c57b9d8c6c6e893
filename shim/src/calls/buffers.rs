//! What the kernel does to the program's memory for a call, where memory is watched: recorded like accesses of instructions. What is read
//! comes before the call, what is written after it, in the transition that it belongs to.
//!
//! NOTE [Aside] Memory that is an object is written in turn: the call writes elsewhere, and from there each word is copied by an operation
//! of its own. Where there is no room for that, or the address is in memory itself, it is one step, which is told.
//!
//! NOTE [Copies] What a call reads of such memory it reads at the operations that come before it. By the time that the call is performed others may have
//! written there: so it gets a copy of what was there, as the kernel makes one for messages before it waits for room (`load_msg`, ipc/msgutil.c), and for
//! sockets of the Unix family before they queue (net/unix/af_unix.c). The bytes of a pipe, of TCP and of files the kernel copies under a lock. For them nothing
//! is left out, since the operation may come right after the reads; but orders are explored in which another thread changes the memory and then uses the same
//! pipe in between, and those are not possible natively.
//! Of a write that is moved in parts each part is read when its turn comes ([`goes_on`]).

use core::cell::{Cell, UnsafeCell};

use vsrun_model::arena::ASIDE_ADDR;
use vsrun_model::buffers::{buffers, Buffer, Size, Way, MAX_BUFFERS};
use vsrun_model::calls::name;
use vsrun_model::watch::Entry;

use crate::gate::{fiber, local, machine, Phase};
use crate::sys::errno::EINTR;
use crate::sys::{bytes, copy_out, load, raw, readable, store};
use crate::watch;

/// Bytes of the number that `struct msgbuf` begins with.
const TYPE: u64 = 8;
/// Longest text, in bytes, and most of them.
const MAX_TEXT: u64 = 1 << 20;
const MAX_TEXTS: u64 = 1 << 16;
/// Most elements of what `iovec` and `mmsghdr` stand in.
const MAX_VECTORS: u64 = 1024;
/// Bytes of a place to write to instead, 64 KiB and what says where they were; and how many there are.
const ROOM: u64 = (64 << 10) + 4096;
const PLACES: u64 = 32;

/// Bit n: place n is taken; `None`: they are not mapped.
struct Places(UnsafeCell<Option<u32>>);
// SAFETY: a process of a world has one kernel thread, and no borrow is kept across a switch of fibers.
unsafe impl Sync for Places {}
static TAKEN: Places = Places(UnsafeCell::new(None));

fn taken() -> &'static mut Option<u32> {
    // SAFETY: see `Places`; callers use the borrow for one statement.
    unsafe { &mut *TAKEN.0.get() }
}

/// Performs call `nr` by `call`, with what it does to memory.
#[inline]
pub fn around(nr: i64, a: [u64; 6], call: impl FnOnce([u64; 6]) -> i64) -> i64 {
    if !watch::is_recording() || local().phase != Phase::Running || local().borrowed {
        return unwatched(|| call(a));
    }
    let mut watched = Call::begin(nr, a);
    let result = call(watched.arguments);
    watched.end(result);
    result
}

/// Performs a call of which nothing is recorded; also after one that is, and did not come to its end.
#[inline]
pub fn unwatched(call: impl FnOnce() -> i64) -> i64 {
    if local().phase != Phase::Running {
        return call();
    }
    let outer = core::mem::take(&mut fiber().uses_for);
    let result = call();
    fiber().uses_for = outer;
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

/// A call goes on with `size` bytes that it reads at `at`, after others may have had their turn: they are read again. See NOTE [Copies].
pub fn goes_on(at: u64, size: u64) {
    let site = match fiber().uses_for {
        0 => return,
        uses_for => site_of(i64::from(uses_for) - 1),
    };
    watch::begins();
    if !is_aside(at) {
        return watch::call_reads(at, readable(at, size), site);
    }
    let Some(from) = Copied::original(at).filter(|&from| readable(from, size) == size) else {
        return machine().note_wide_use();
    };
    watch::call_reads(from, size, site);
    copy_out(at, bytes(from, size as usize));
}

/// A call that goes on, after others may have had their turn, has written `size` bytes to `at` by now.
pub fn came(at: u64, size: u64) {
    let site = match fiber().uses_for {
        0 => return,
        uses_for => site_of(i64::from(uses_for) - 1),
    };
    if !is_aside(at) {
        return wrote(at, size, site);
    }
    if let Some(to) = Copied::original(at) {
        watch::begins();
        watch::call_writes(to, at, size, site);
        Copied::has_come(at, size);
    }
}

fn is_aside(at: u64) -> bool {
    (ASIDE_ADDR..ASIDE_ADDR + ROOM * PLACES).contains(&at)
}

/// Where what is recorded of call `nr` comes from.
pub fn site_of(nr: i64) -> u32 {
    Entry::FUNCTION | Entry::CALL | nr as u32
}

/// A call that is watched.
struct Call {
    site: u32,
    /// What [`fiber`] says of the call in which a handler made this one.
    outer: u32,
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
        let site = site_of(nr);
        let outer = core::mem::replace(&mut fiber().uses_for, nr as u32 + 1);
        let buffers = buffers(nr, &a).unwrap_or_else(|| {
            note_unknown(name(nr).unwrap_or("of that number"));
            &[]
        });
        let none = [0; MAX_BUFFERS];
        let mut call = Call { site, outer, buffers, asked: a, arguments: a, most: none, aside: none };
        for (n, what) in buffers.iter().enumerate() {
            call.most[n] = call.longest(what);
        }
        for (n, what) in buffers.iter().enumerate().filter(|(_, what)| matches!(what.way, Way::Reads | Way::Changes)) {
            call.each_read(what, call.most[n], |at, size| watch::call_reads(at, readable(at, size), site));
            if what.way == Way::Reads && watch::has_objects() {
                call.take_copy(n, what);
            }
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
        match copy_of(at, self.most[n]) {
            Some(copy) => {
                self.aside[n] = copy;
                self.arguments[usize::from(self.buffers[n].argument)] = copy;
            }
            None => machine().note_wide_use(),
        }
    }

    /// Of what buffer `n` is about a copy is used, if some of it is an object. See NOTE [Copies].
    fn take_copy(&mut self, n: usize, what: &Buffer) {
        let has_object = Cell::new(false);
        self.each_read(what, self.most[n], |at, size| {
            let found = watch::has_object(at, readable(at, size));
            has_object.set(has_object.get() || found);
        });
        if !has_object.get() {
            return;
        }
        match self.copied(what) {
            Some(copy) => {
                self.aside[n] = copy;
                self.arguments[usize::from(what.argument)] = copy;
            }
            None => machine().note_wide_use(),
        }
    }

    /// Where a copy of what a buffer is about is, if there is room for one and all of it can be read.
    fn copied(&self, what: &Buffer) -> Option<u64> {
        let at = self.argument(what.argument);
        match what.size {
            Size::Text => copy_of(at, text(at)),
            Size::Vectors(n) => Copied::of(|copy| copy.put_vectors(at, self.argument(n))),
            Size::Message => Copied::of(|copy| copy.put_message(at)),
            Size::Texts | Size::Messages(_) => None,
            _ => copy_of(at, self.said(what)),
        }
    }

    #[cold]
    #[inline(never)]
    fn end(&mut self, result: i64) {
        fiber().uses_for = self.outer;
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
                copy if what.way == Way::Reads => give_back(copy),
                copy => {
                    let came = Copied::came(copy).min(size);
                    watch::call_writes(at + came, copy + came, size - came, self.site);
                    give_back(copy);
                }
            }
        }
    }

    fn argument(&self, n: u8) -> u64 {
        self.asked[usize::from(n)]
    }

    /// Bytes that a buffer has at most, as far as they can be used; 0 for what has addresses in it, texts, and nulls.
    fn longest(&self, what: &Buffer) -> u64 {
        match self.argument(what.argument) {
            0 => 0,
            at => readable(at, self.said(what)),
        }
    }

    /// Bytes that a buffer has at most, as the call says; 0 for what has addresses in it, and texts.
    fn said(&self, what: &Buffer) -> u64 {
        match what.size {
            Size::Bytes(size) => size.into(),
            Size::Of(n, size) | Size::Given(n, size) => self.argument(n).saturating_mul(size.into()),
            Size::Typed(n) | Size::TypedGiven(n) => self.argument(n).saturating_add(TYPE),
            Size::Told(n) => number(self.argument(n)).into(),
            Size::Bits(n) => (self.argument(n) as u32).div_ceil(64) as u64 * 8,
            Size::Pages(n) => self.argument(n).div_ceil(4096),
            Size::Text | Size::Texts | Size::Vectors(_) | Size::Message | Size::Messages(_) => 0,
        }
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

    /// Each stretch that is read before the call.
    fn each_read(&self, what: &Buffer, most: u64, reads: impl Fn(u64, u64)) {
        let at = self.argument(what.argument);
        if at == 0 {
            return;
        }
        match what.size {
            Size::Text => reads(at, text(at)),
            Size::Texts => texts(at, reads),
            Size::Vectors(n) => vectors(at, self.argument(n), u64::MAX, &reads, &reads),
            Size::Message => message(at, u64::MAX, &reads, &reads),
            Size::Messages(n) => each_message(at, self.argument(n), |at| message(at, u64::MAX, &reads, &reads)),
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

/// Bytes at the beginning of a place with a copy: where its table is, how many pieces that has, and how many bytes of the first have been written to where
/// it was.
const HEADER: u64 = 32;
/// Bytes of a row of the table: where a piece is, where it was, its length.
const ROW: u64 = 24;

/// A copy that is being made of what a call uses.
struct Copied {
    /// Where it begins: [`ROOM`] bytes.
    place: u64,
    used: u64,
    /// Pieces that are in the table.
    noted: u64,
}

impl Copied {
    /// Where the byte was that a copy has at `at`.
    fn original(at: u64) -> Option<u64> {
        let place = Copied::header(at);
        let (table, n) = (load::<u64>(place), load::<u64>(place + 8));
        let row = (0..n).map(|n| table + ROW * n).find(|&row| at.wrapping_sub(load(row)) < load(row + 16))?;
        Some(load::<u64>(row + 8) + (at - load::<u64>(row)))
    }

    /// A copy that `puts` makes: what that gives, an address in it. `None`: there is no room, or not all of it can be read.
    fn of(puts: impl FnOnce(&mut Copied) -> Option<u64>) -> Option<u64> {
        let place = take()?;
        store(place, [0u64; 4]);
        let copy = puts(&mut Copied { place, used: HEADER, noted: 0 });
        if copy.is_none() {
            give_back(place);
        }
        copy
    }

    /// How many bytes of the copy at `at` have been written to where it was.
    fn came(at: u64) -> u64 {
        load(Copied::header(at) + 16)
    }

    fn has_come(at: u64, size: u64) {
        store(Copied::header(at) + 16, Copied::came(at) + size);
    }

    /// Where the copy begins that has `at`.
    fn header(at: u64) -> u64 {
        ASIDE_ADDR + (at - ASIDE_ADDR) / ROOM * ROOM
    }

    fn reserve(&mut self, size: u64) -> Option<u64> {
        let at = self.place + self.used;
        let ends = self.used.checked_add(size).filter(|&ends| ends <= ROOM)?;
        self.used = ends.next_multiple_of(16);
        Some(at)
    }

    /// Adds `size` bytes at `at`: where they are now. `None`: there is no room, or not all of it can be read.
    fn put(&mut self, at: u64, size: u64) -> Option<u64> {
        let to = self.reserve(size)?;
        (readable(at, size) == size && copy_out(to, bytes(at, size as usize))).then_some(to)
    }

    /// The same; that the field at `field` of what is copied points to it. A null stays one.
    fn put_for(&mut self, field: u64, size: u64) -> Option<()> {
        match load::<u64>(field) {
            0 => Some(()),
            at => self.put(at, size).map(|to| store(field, to)),
        }
    }

    /// There will be so many pieces, each of which [`Copied::original`] knows.
    fn pieces(&mut self, n: u64) -> Option<()> {
        let table = self.reserve(n.checked_mul(ROW)?)?;
        store(self.place, table);
        Some(())
    }

    fn note(&mut self, to: u64, from: u64, size: u64) {
        let row = load::<u64>(self.place) + ROW * self.noted;
        store(row, to);
        store(row + 8, from);
        store(row + 16, size);
        self.noted += 1;
        store(self.place + 8, self.noted);
    }

    fn put_piece(&mut self, at: u64, size: u64) -> Option<u64> {
        self.pieces(1)?;
        let to = self.put(at, size)?;
        self.note(to, at, size);
        Some(to)
    }

    /// `n` times `struct iovec`, and what they are about.
    fn put_vectors(&mut self, at: u64, n: u64) -> Option<u64> {
        self.pieces(n)?;
        let array = self.put(at, n.checked_mul(16)?)?;
        for vector in (0..n).map(|n| array + 16 * n) {
            let (from, size) = (load(vector), load(vector + 8));
            self.put_for(vector, size)?;
            self.note(load(vector), from, size);
        }
        Some(array)
    }

    /// `struct msghdr`, and what it is about.
    fn put_message(&mut self, at: u64) -> Option<u64> {
        let header = self.put(at, 56)?;
        let length: u32 = load(header + 8);
        self.put_for(header, length.into())?;
        if load::<u64>(header + 16) != 0 {
            let array = self.put_vectors(load(header + 16), load(header + 24))?;
            store(header + 16, array);
        }
        self.put_for(header + 32, load(header + 40))?;
        Some(header)
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

/// A copy of `size` bytes at `at`, which is used in their place until it is given back: where it is. `None`: there is no room, or not all of it can be read.
pub fn copy_of(at: u64, size: u64) -> Option<u64> {
    Copied::of(|copy| copy.put_piece(at, size))
}

/// A place of [`ROOM`] bytes.
fn take() -> Option<u64> {
    if taken().is_none() {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let mapped = raw!(libc::SYS_mmap, ASIDE_ADDR, ROOM * PLACES, prot, flags, -1i64, 0);
        *taken() = (mapped == ASIDE_ADDR as i64).then_some(0);
    }
    let now = (*taken())?;
    let free = now.trailing_ones();
    if u64::from(free) == PLACES {
        return None;
    }
    *taken() = Some(now | 1 << free);
    Some(ASIDE_ADDR + u64::from(free) * ROOM)
}

/// The copy that has `at` in it is used no more.
pub fn give_back(at: u64) {
    let n = (at - ASIDE_ADDR) / ROOM;
    if let Some(now) = taken() {
        *now &= !(1 << n);
    }
}
