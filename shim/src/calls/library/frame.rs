//! A call of a function: what it was called with, and what is recorded of it before and after.

use core::cell::UnsafeCell;

use vsrun_model::library::{
    number, At, Function, Size, Success, Use, Way, FUNCTIONS, MAX_USES, NAME, NO_LIMIT, OTHERS, STRIDE,
};
use vsrun_model::watch::Entry;

use super::texts::{self, Until, LONGEST};
use crate::calls::buffers;
use crate::calls::taken::taken;
use crate::gate::{arena, is_threaded, machine};
use crate::sys::{elf, load, store};
use crate::watch;

/// Stand-ins: of functions that are known, then of others.
pub const COUNT: usize = FUNCTIONS.len() + OTHERS;

#[repr(transparent)]
pub struct Real(UnsafeCell<[u64; COUNT]>);
// SAFETY: written once, before the program's main; read by the stand-ins.
unsafe impl Sync for Real {}

/// The functions; 0: there is none of that name.
pub static REAL: Real = Real(UnsafeCell::new([0; COUNT]));

/// Function `number` is there; before the program's main.
pub fn is_at(number: usize, at: u64) {
    // SAFETY: see `Real`.
    unsafe { (*REAL.0.get())[number] = at }
}

/// Where function `number` is; 0: there is none.
pub fn real(number: usize) -> u64 {
    // SAFETY: see `Real`.
    unsafe { (*REAL.0.get()).get(number).copied().unwrap_or(0) }
}

extern "C" {
    static vs_stand_ins: u8;
}

/// What stands for function `n`.
pub fn stand_in(n: usize) -> u64 {
    &raw const vs_stand_ins as u64 + STRIDE * n as u64
}

/// The function of that name that the modules call: one of the shim's, or libc's.
pub fn find_function(name: &[u8]) -> u64 {
    let own = elf::own_base();
    let mut found = 0;
    elf::find_map(|map| {
        let is_own = load::<u64>(map) == own;
        if is_own || elf::is_named(map, b"/libc.so.6") {
            found = elf::Image::of_map(map).function(name).unwrap_or(0);
        }
        found != 0
    });
    found
}

/// `va_list` (System V ABI for x86-64, 3.5.7).
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct List {
    /// Bytes of general registers that are used up,
    pub general: u32,
    /// and of vector registers, behind those.
    pub vector: u32,
    /// The next argument on the stack.
    pub overflow: u64,
    /// Where the registers were saved.
    pub save: u64,
}

pub const GENERAL: u32 = 48;
const VECTOR: u32 = 176;

impl List {
    /// The next argument that is a number or an address.
    pub fn next(&mut self) -> u64 {
        if self.general < GENERAL {
            let at = self.save + u64::from(self.general);
            self.general += 8;
            return load(at);
        }
        self.on_stack(8, 8)
    }

    fn on_stack(&mut self, size: u64, align: u64) -> u64 {
        let at = self.overflow.next_multiple_of(align);
        self.overflow = at + size;
        load(at)
    }

    /// The next one is a `double`, or a `long double`.
    pub fn skip_float(&mut self, long: bool) {
        if long {
            self.on_stack(16, 16);
        } else if self.vector < VECTOR {
            self.vector += 16;
        } else {
            self.on_stack(8, 8);
        }
    }
}

/// What a function was called with, and what is to be recorded when it is done. The assembly in `library` makes it on the stack.
#[repr(C, align(16))]
pub struct Frame {
    /// rdi, rsi, rdx, rcx, r8, r9, as the caller has them: a `va_list` finds them here, and the vector registers behind them.
    pub asked: [u64; 6],
    /// xmm0 to xmm7.
    pub vectors: [u128; 8],
    /// Those that the function gets.
    pub arguments: [u64; 6],
    pub list: List,
    pub number: u64,
    pub rax: u64,
    pub rdx: u64,
    pub xmm0: u128,
    pub call: Call,
}

/// See [`Frame`]. Anything until `before` has set it.
#[repr(C)]
pub struct Call {
    /// Of each use that is a write: where, bytes at most, and where it writes instead, or 0.
    pub writes: [Aside; MAX_USES],
    /// The arguments that a format is about.
    pub list: List,
    own: Own,
}

/// What stands in memory of libc's own that is an object, before the call of a function that tells only by its result where it writes.
#[repr(C)]
struct Own {
    n: usize,
    words: [(u64, u64); OWN],
}

/// So many words of such memory. Where there are more, uses of them may be one step, which is said.
const OWN: usize = 64;

impl Own {
    fn keep(&mut self) {
        self.n = 0;
        let words = arena().words.as_slice().iter().filter(|word| word.space == 0);
        for word in words.filter(|word| elf::is_data_of(b"/libc.so.6", word.address)).take(OWN) {
            self.words[self.n] = (word.address, load(word.address));
            self.n += 1;
        }
    }

    /// `size` bytes have been written to `at`: they are moved elsewhere, so that the words which are objects are written one by one from there.
    fn put_aside(&self, at: u64, size: u64) -> Aside {
        let is_written = |word: u64| word < at + size && at < word + 8;
        let kept = || self.words[..self.n].iter().filter(|(word, _)| is_written(*word));
        if kept().next().is_none() || size == 0 {
            return Aside::default();
        }
        let Some(place) = buffers::copy_of(at, size) else { return Aside::default() };
        for &(word, before) in kept() {
            store(word, before);
        }
        Aside { most: size, place }
    }
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Aside {
    pub most: u64,
    pub place: u64,
}

fn site(number: usize) -> u32 {
    Entry::FUNCTION | number as u32
}

fn succeeded(function: &Function, result: u64) -> bool {
    match function.success {
        Success::Any => true,
        Success::Zero => result as i32 == 0,
        Success::Positive => result as i32 >= 0,
        Success::NotZero => result != 0,
    }
}

impl Frame {
    pub fn asked(&self, n: u8) -> u64 {
        self.asked.get(usize::from(n)).copied().unwrap_or(0)
    }

    pub fn site(&self) -> u32 {
        site(self.number as usize)
    }

    /// It is recorded when the function is done.
    fn is_after(one: &Use) -> bool {
        matches!(one.way, Way::Writes | Way::Changes | Way::Finds)
    }

    /// Records what is used before the call.
    pub fn uses(&mut self, uses: &[Use]) -> u64 {
        let site = self.site();
        for one in uses {
            let at = match one.at {
                At::Argument(n) => self.asked(n),
                At::Behind(n) => self.asked(n) + 8,
                // It is where that function is.
                At::State(name) => real(number(name)) & !7,
                // What a function has found is read after it.
                At::Pointed(_) | At::Result | At::Own => continue,
            };
            if at == 0 {
                continue;
            }
            let (writes, locked) = match one.way {
                Way::Reads | Way::Changes => (false, false),
                Way::Sets => (true, false),
                Way::Updates => (true, true),
                Way::Hides => {
                    if is_threaded() {
                        note_name(FUNCTIONS[self.number as usize].name.as_bytes());
                    }
                    continue;
                }
                // Of these it is recorded when the function is done.
                Way::Writes | Way::Finds => continue,
            };
            let until = match one.size {
                Size::Text => Some((Until::Nul, LONGEST)),
                Size::TextUpTo(n) => Some((Until::Nul, self.asked(n))),
                Size::Wide => Some((Until::WideNul, 4 * LONGEST)),
                Size::Number => Some((Until::NoNumber, texts::NUMBER)),
                _ => None,
            };
            match until.filter(|_| !writes) {
                Some((until, most)) => _ = texts::read(&[at], site, &until, most),
                None => watch::range(at, self.most(one.size), site, writes, locked),
            }
        }
        let mut writes = false;
        self.call.own.n = 0;
        for (n, one) in uses.iter().enumerate().filter(|(_, one)| Self::is_after(one)) {
            writes = true;
            match one.at {
                At::Argument(argument) => self.put_aside(n, argument, self.most(one.size)),
                At::Own => self.call.own.keep(),
                _ => {}
            }
        }
        match writes {
            true => real(self.number as usize),
            false => 0,
        }
    }

    /// The memory at an argument is written elsewhere if it is an object.
    pub fn put_aside(&mut self, n: usize, argument: u8, most: u64) {
        let at = self.asked(argument);
        self.call.writes[n] = Aside { most, place: 0 };
        if at == 0 || most == 0 || !watch::has_object(at, most) {
            return;
        }
        match buffers::copy_of(at, most) {
            Some(place) => {
                self.call.writes[n].place = place;
                self.arguments[usize::from(argument)] = place;
            }
            None => machine().note_wide_use(),
        }
    }

    /// Records what the call has written.
    pub fn used(&mut self, function: &Function, uses: &[Use], mut result: u64) -> u64 {
        let (ok, site) = (succeeded(function, result), self.site());
        let given = result;
        for (n, one) in uses.iter().enumerate().filter(|(_, one)| Self::is_after(one)) {
            if one.at == At::Own && ok && result != 0 {
                self.call.writes[n] = self.call.own.put_aside(result, self.written(one.size, result, given));
            }
            let Aside { most, place } = self.call.writes[n];
            let at = match one.at {
                At::Argument(n) => self.asked(n),
                At::Pointed(n) if self.asked(n) != 0 => load(self.asked(n)),
                At::Result | At::Own => result,
                At::Pointed(_) | At::Behind(_) | At::State(_) => 0,
            };
            let from = if place != 0 { place } else { at };
            let size = match at {
                0 => 0,
                _ if !ok => 0,
                _ => self.written(one.size, from, given),
            };
            match (one.way, one.size) {
                (Way::Finds, _) if size > 0 => watch::call_reads(at, size, site),
                (Way::Finds, _) => {}
                (_, Size::End) if size > 0 => wrote(at + size - 1, Aside::default(), 1, site),
                _ => wrote(at, Aside { most, place }, size, site),
            }
            if place != 0 && (place..place + most).contains(&result) {
                result = at + (result - place);
            }
        }
        result
    }

    /// Bytes at most, 0 where nothing says.
    fn most(&self, size: Size) -> u64 {
        match size {
            Size::Bytes(size) => size.into(),
            Size::Of(n, size) => self.asked(n).saturating_mul(size.into()),
            Size::Product(a, b) | Size::GivenTimes(a, b) => self.asked(a).saturating_mul(self.asked(b)),
            Size::TextUpTo(n) => self.asked(n),
            Size::Given(NO_LIMIT, ..) => 0,
            Size::Given(n, size, _) => self.asked(n).saturating_mul(size.into()),
            Size::Address(n) => match self.asked(n) as i32 {
                libc::AF_INET => 4,
                libc::AF_INET6 => 16,
                _ => 0,
            },
            Size::Replaced | Size::Discarded | Size::Unmapped | Size::Moved | Size::Opened | Size::Frozen => {
                taken(size, [0, 1, 2, 3].map(|n| self.asked(n)))
            }
            Size::Text | Size::End | Size::Wide | Size::Number => 0,
        }
    }

    /// Bytes that are written, after the call: what is written is at `from`.
    fn written(&self, size: Size, from: u64, result: u64) -> u64 {
        let result = u64::from(result as u32);
        match size {
            Size::Text | Size::End => texts::text(from, texts::LONGEST),
            Size::TextUpTo(n) => texts::text(from, self.asked(n)),
            Size::Wide => texts::wide(from),
            Size::Given(NO_LIMIT, size, more) => result * u64::from(size) + u64::from(more),
            Size::Given(_, each, more) => self.most(size).min(result * u64::from(each) + u64::from(more)),
            // Of an element that was not there in full the beginning is, however much that is.
            Size::GivenTimes(n, count) if result < self.asked(count) => {
                let beginning = self.asked(n).saturating_sub(1);
                result.saturating_mul(self.asked(n)).saturating_add(beginning).min(self.most(size))
            }
            Size::GivenTimes(..) => self.most(size),
            _ => self.most(size),
        }
    }
}

/// `size` bytes have been written to `at`, or aside.
pub fn wrote(at: u64, aside: Aside, size: u64, site: u32) {
    match aside.place {
        0 if size > 0 => {
            buffers::wrote(at, size, site);
        }
        0 => {}
        place => {
            watch::call_writes(at, place, size.min(aside.most), site);
            buffers::give_back(place);
        }
    }
}

/// A function of that name is called beside other threads: what it does to memory is not known, or not all of it.
#[cold]
pub fn note_name(name: &[u8]) {
    const WHAT: &[u8] = b"what libc's function ";
    const DOES: &[u8] = b" does to memory";
    let mut text = [0; WHAT.len() + DOES.len() + NAME];
    let all = WHAT.iter().chain(name).chain(DOES);
    let n = all.clone().count().min(text.len());
    text.iter_mut().zip(all).for_each(|(to, byte)| *to = *byte);
    machine().note_later_code(&text[..n]);
}
