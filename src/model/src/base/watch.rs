//! Watched memory: the contract between the tool, which finds and patches the instructions that use memory, and the shim, which
//! records what they use. The tool writes it all into one file, which the shim maps; see docs/WATCHING.md.

use crate::base::library::NAME;
use crate::base::Tid;

/// How the names of modules begin that are not watched: libc, of which stand-ins tell what it uses, and what is below it. libc loads
/// libgcc_s late, when a thread is cancelled or ends by pthread_exit.
pub const LEFT_OUT: [&str; 3] = ["libc.so", "ld-linux", "libgcc_s.so"];

/// Where every process of a watched world maps the file's tables.
pub const WATCH_ADDR: u64 = 0x2200_0000_0000;
/// "vsrwat" and a version: changes with anything in this file.
pub const WATCH_MAGIC: u64 = 0x7673_7277_6174_000a;
/// The shadow of a byte for reading is at its address with this bit flipped,
pub const READ_BIT: u32 = 44;
/// and its shadow for writing at its address with this one flipped. 0: not recorded in this transition; 0xff: recorded.
pub const WRITE_BIT: u32 = 43;
/// What traps are in a process that makes its patches itself: an instruction of one byte that there is none of in 64-bit code (PUSH ES), so it gives
/// SIGILL. A debugger takes each SIGTRAP for its own; others have the usual instruction.
pub const TRAP_ALONE: u8 = 0x06;
/// Memory that is watched: what programs without address randomization have, and the pool. These, and their shadows, do not overlap.
pub const MEMORY: [[u64; 2]; 4] = [
    [0, 1 << 40],
    [0x2100_0000_0000, 0x2104_0000_0000],
    [0x5500_0000_0000, 0x5700_0000_0000],
    [0x7e00_0000_0000, 0x7fff_ffff_f000],
];
/// Where a fence is recorded, as a read of one byte: nothing is ever mapped there.
pub const FENCE: u64 = 0xfff;
/// No register.
pub const NO_REGISTER: u8 = 0xff;

/// An access of an instruction to memory: how its address and length come about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(C)]
pub struct Operand {
    /// What is added; of an address relative to the instruction pointer, or absolute, all of it.
    pub displacement: u64,
    /// Number of a general register, or [`NO_REGISTER`].
    pub base: u8,
    /// The same.
    pub index: u8,
    /// What the index is multiplied by.
    pub scale: u8,
    /// The register with the number of a bit, which may lie beyond the operand, or [`NO_REGISTER`].
    pub bit: u8,
    /// Bytes; of a string instruction those of an element.
    pub size: u16,
    /// Bits of the constants below.
    pub flags: u16,
}

impl Operand {
    /// It writes (and may read too).
    pub const WRITE: u16 = 1;
    /// It is locked.
    pub const LOCK: u16 = 2;
    /// An element of a string instruction: in the direction of the direction flag.
    pub const STRING: u16 = 4;
    /// As often as rcx says,
    pub const REPEATED: u16 = 8;
    /// and only while elements are equal,
    pub const WHILE_EQUAL: u16 = 16;
    /// or unequal.
    pub const WHILE_UNEQUAL: u16 = 32;
    /// The address is one of 32 bits.
    pub const ADDRESS_32: u16 = 64;
    /// The displacement is to be added to where the module lies.
    pub const OF_MODULE: u16 = 128;
    /// It writes, reads before it does, and is not locked.
    pub const READS: u16 = 256;
    /// It is read in a loop that counts its rounds, of which nobody can tell how many it has made.
    pub const UNTOLD: u16 = 512;
    /// It is thread-local: the thread's own base (fs) is to be added.
    pub const OF_THREAD: u16 = 1024;
    /// It is compared with rax, and written if it is the same (CMPXCHG with LOCK).
    pub const COMPARES: u16 = 2048;
    /// No access: before the instruction is executed [`Predicate`]s change, `size` of them from number `displacement` on. It is the last operand
    /// of its site.
    pub const CLAIMS: u16 = 4096;

    /// What an instruction reads that lets no later load overtake an earlier store.
    pub const OF_FENCE: Operand = Operand {
        displacement: FENCE,
        base: NO_REGISTER,
        index: NO_REGISTER,
        scale: 1,
        bit: NO_REGISTER,
        size: 1,
        flags: 0,
    };

    /// True if it has this flag.
    pub const fn is(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Its address with these general registers and this base of thread-local storage, for an operand that is no string and has no bit number.
    pub fn address(&self, registers: &[u64; 16], thread: u64) -> u64 {
        let of = |register: u8| registers.get(register as usize).copied().unwrap_or(0);
        let index = of(self.index).wrapping_mul(self.scale as u64);
        let address = of(self.base).wrapping_add(index).wrapping_add(self.displacement);
        let address = if self.is(Operand::ADDRESS_32) { address & 0xffff_ffff } else { address };
        address.wrapping_add(if self.is(Operand::OF_THREAD) { thread } else { 0 })
    }

    /// The same with the number of a bit: where the bit lies.
    pub fn address_of_bit(&self, registers: &[u64; 16], thread: u64) -> u64 {
        let address = self.address(registers, thread);
        let Some(&number) = registers.get(self.bit as usize) else { return address };
        let number = match self.size {
            2 => number as i16 as i64,
            4 => number as i32 as i64,
            _ => number as i64,
        };
        let size = self.size as i64;
        address.wrapping_add((number.div_euclid(size * 8) * size) as u64)
    }
}

/// What is said at an instruction of who may use memory, as a call of `vs.h` there would: which memory, by the registers that the thread
/// has then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Predicate {
    /// [`Record::OWNS`], [`Record::DISOWNS`] or [`Record::HANDS_OVER`].
    pub what: u32,
    /// Number of the general register with the address, or [`NO_REGISTER`].
    pub base: u8,
    /// That with the number of bytes, or [`NO_REGISTER`].
    pub length: u8,
    /// That with the thread (`pthread_t`) to which it goes, or [`NO_REGISTER`].
    pub to: u8,
    /// 0.
    pub reserved: u8,
    /// What is added to the address.
    pub offset: u64,
    /// What is added to the number of bytes.
    pub size: u64,
}

impl Predicate {
    /// Address and bytes, and the thread to which it goes (0: none), with these general registers. `None`: the pointer is null.
    pub fn of(&self, registers: &[u64; 16]) -> Option<(u64, u64, u64)> {
        let of = |register: u8| registers.get(register as usize).copied();
        let base = of(self.base);
        let (at, size) = (base.unwrap_or(0).wrapping_add(self.offset), of(self.length).unwrap_or(0));
        (base != Some(0)).then_some((at, size.wrapping_add(self.size), of(self.to).unwrap_or(0)))
    }
}

/// What stands at the start of the file.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Header {
    /// [`WATCH_MAGIC`].
    pub magic: u64,
    /// Bytes of the file up to the end of the tables, which are mapped at [`WATCH_ADDR`].
    pub tables: u64,
    /// Offset and number of [`Mapping`]s,
    pub mappings: [u64; 2],
    /// of [`Place`]s of traps and where they lead, ascending,
    pub traps: [u64; 2],
    /// of [`Place`]s of instructions that were moved and where they were, ascending,
    pub moves: [u64; 2],
    /// of sites: for each the index of its first operand (`u32`), and one more,
    pub sites: [u64; 2],
    /// of [`Operand`]s,
    pub operands: [u64; 2],
    /// of [`Predicate`]s,
    pub predicates: [u64; 2],
    /// of [`Other`]s,
    pub others: [u64; 2],
    /// of [`Original`]s, ascending.
    pub originals: [u64; 2],
    /// Bytes below its thread pointer that are a thread's own, at most.
    pub thread_local: u64,
    /// Offset and number of [`Change`]s, where the process makes them itself; else none.
    pub changes: [u64; 2],
    /// Offset and number of [`Part`]s.
    pub parts: [u64; 2],
    /// File to which what is recorded is appended, NUL-terminated; empty: none.
    pub log: [u8; 256],
}

/// A function of libc's that the program may call, and of which it is not known what memory it uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Other {
    /// Its name, with NULs behind it.
    pub name: [u8; NAME],
}

/// A part of the file that is mapped, executable, at an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Mapping {
    /// The address.
    pub at: u64,
    /// Bytes, whole pages.
    pub length: u64,
    /// Where it begins in the file.
    pub offset: u64,
}

/// Code over which patches have been written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Original {
    /// Its address.
    pub at: u64,
    /// Bytes.
    pub length: u64,
    /// Offset in the file of what was there.
    pub offset: u64,
}

/// Memory that is written over once the file is mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Change {
    /// The address.
    pub at: u64,
    /// Bytes.
    pub length: u64,
    /// Offset of what is there before; if something else is, the program does not lie where it did,
    pub was: u64,
    /// and of what is there afterwards.
    pub is: u64,
}

/// An executable part of a library that the program loads later. The process gives the library its place, and patches the part once it is mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Part {
    /// What fstat tells of the file: device, inode, bytes, seconds and nanoseconds of its last change.
    pub file: [u64; 5],
    /// Where the library is to lie, and bytes of all of it, whole pages; where in the file its first page is.
    pub whole: [u64; 3],
    /// Bytes that the loader takes before that, to choose a place in it by itself, where a segment is to lie at a multiple of more than a page.
    pub around: u64,
    /// As `whole`, of the part.
    pub part: [u64; 3],
    /// Offset and number of [`Change`]s.
    pub changes: [u64; 2],
}

/// Longest path of a library that came later, with the NUL behind it.
pub const LATE_PATH: usize = 256;
/// Libraries that come later in an execution, of which vsrun is told at once.
pub const MAX_LATE: usize = 64;

/// The path of a library that came later and is not watched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct LateFile {
    /// Ends with NUL.
    pub path: [u8; LATE_PATH],
}

/// An address and another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Place {
    /// That by which it is found.
    pub at: u64,
    /// What belongs to it.
    pub to: u64,
}

/// What is recorded: an access of a thread in a transition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Entry {
    /// The first byte.
    pub address: u64,
    /// The number of the site, or [`Entry::FUNCTION`] and the number of a function of libc.
    pub site: u32,
    /// Bytes, times four; plus 1: it writes; plus 2: it is locked; from [`Entry::UNIT`] on, if it may be several accesses of that site, each right
    /// behind the one before in memory, one more than the logarithm of how many bytes each of them has. With [`Entry::STRIDED`] in the number of the
    /// site, in the place of bytes: how many accesses there are, and from [`Entry::STRIDE`] on the distance from each to the next one, in units of
    /// their bytes.
    pub what: u32,
}

impl Entry {
    /// Not of a site: of a function of [`FUNCTIONS`](crate::library::FUNCTIONS), by its index.
    pub const FUNCTION: u32 = 1 << 31;
    /// With [`Entry::FUNCTION`]: of the system call with that number.
    pub const CALL: u32 = 1 << 30;
    /// With both: what is said of who may use memory; plus [`Record::OWNS`] or another one of its kind, and where that is known, from bit
    /// [`Entry::CLAIM_AT`] on, the number of its site and 1.
    pub const CLAIM: u32 = Entry::FUNCTION | Entry::CALL | 1 << 29;
    /// See [`Entry::CLAIM`].
    pub const CLAIM_AT: u32 = 3;
    /// Most bytes of one entry; longer accesses are several.
    pub const MAX_SIZE: u64 = 1 << 26;
    /// See [`Entry::what`].
    pub const UNIT: u32 = 29;
    /// In the number of a site: it is several accesses with the same distance from each to the next.
    pub const STRIDED: u32 = 1 << 28;
    /// See [`Entry::what`]. Below it lies the number of accesses, from bit 2 on.
    pub const STRIDE: u32 = 10;
    /// Most accesses that lie apart in one entry.
    pub const MOST: u32 = (1 << (Entry::STRIDE - 2)) - 1;

    /// It is several accesses that need not lie side by side.
    #[inline]
    pub const fn is_strided(&self) -> bool {
        self.site & (Entry::FUNCTION | Entry::STRIDED) == Entry::STRIDED
    }

    /// Bytes from each of its accesses to the next one.
    #[inline]
    pub const fn stride(&self) -> i64 {
        if !self.is_strided() {
            return self.unit() as i64;
        }
        let above = u32::BITS - Entry::UNIT;
        let units = (self.what << above) as i32 >> (above + Entry::STRIDE);
        units as i64 * self.unit() as i64
    }

    /// Bytes of all that it stands for.
    #[inline]
    pub const fn size(&self) -> u64 {
        if self.is_strided() {
            return self.times() * self.unit();
        }
        ((self.what & ((1 << Entry::UNIT) - 1)) >> 2) as u64
    }

    /// Bytes of each of the accesses that it stands for.
    #[inline]
    pub const fn unit(&self) -> u64 {
        match self.what >> Entry::UNIT {
            0 => self.size(),
            n => 1 << (n - 1),
        }
    }

    /// How many accesses it stands for, if it is strided.
    #[inline]
    pub const fn times(&self) -> u64 {
        (self.what >> 2 & Entry::MOST) as u64
    }

    /// The accesses that it stands for, from the first address on.
    pub fn parts(self) -> impl Iterator<Item = Entry> {
        let (unit, stride) = (self.unit(), self.stride() as u64);
        let what = (unit as u32) << 2 | self.what & 3;
        let site = if self.is_strided() { self.site & !Entry::STRIDED } else { self.site };
        let of = move |n: u64| Entry { address: self.address.wrapping_add(n.wrapping_mul(stride)), what, site };
        (0..self.size() / unit.max(1)).map(of)
    }

    /// It writes.
    #[inline]
    pub const fn writes(&self) -> bool {
        self.what & 1 != 0
    }

    /// It is locked.
    #[inline]
    pub const fn is_locked(&self) -> bool {
        self.what & 2 != 0
    }
}

/// What an execution did to watched memory, one thing after the other: for the search for accesses that nothing orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Record {
    /// The first byte; in memory that processes share the place there, not the address.
    pub address: u64,
    /// Bytes, of all accesses.
    pub size: u64,
    /// Of an access that is several, bytes from each to the next one; 0: they lie side by side. Of what is said of who may use memory, the number
    /// of the site and 1; 0: there is none.
    pub stride: i64,
    /// As in [`Entry`], but for [`Entry::STRIDED`].
    pub site: u32,
    /// Who.
    pub thread: Tid,
    /// Whose memory: a process, or [`SHARED`](crate::object::SHARED) and more.
    pub space: u32,
    /// One of the constants below; an access may have flags, too.
    pub what: u32,
}

impl Record {
    /// The thread accesses memory.
    pub const TOUCHES: u32 = 0;
    /// The step with the index `address` is made.
    pub const STEP: u32 = 1;
    /// The thread begins, created by `site`, in process `space`, whose creator is `address`.
    pub const BEGINS: u32 = 2;
    /// The thread has come to its end by itself.
    pub const ENDS: u32 = 3;
    /// Memory is given out anew.
    pub const ANEW: u32 = 4;
    /// The thread says that it has memory for itself (VS_own).
    pub const OWNS: u32 = 5;
    /// It gives that up (VS_disown).
    pub const DISOWNS: u32 = 6;
    /// It gives it to thread `site`, or with `NONE` to whoever uses it next (VS_hand_over).
    pub const HANDS_OVER: u32 = 7;
    /// Flag of an access: it writes.
    pub const WRITES: u32 = 8;
    /// Flag of an access: it is locked.
    pub const LOCKED: u32 = 16;
    /// From this bit on, of an access that is several: as in [`Entry::what`]; otherwise 0.
    pub const UNIT: u32 = 5;
    /// Which of the constants it is.
    pub const KIND: u32 = 7;

    /// It says who may use memory.
    #[inline]
    pub const fn is_claim(&self) -> bool {
        matches!(self.what, Record::OWNS | Record::DISOWNS | Record::HANDS_OVER)
    }

    /// Of an access that is several, how many bytes each of them has.
    #[inline]
    pub const fn unit(&self) -> Option<u64> {
        match self.what >> Record::UNIT {
            0 => None,
            n => Some(1 << (n - 1)),
        }
    }
}

/// Words of its stack that are kept of each [`Origin`].
pub const ORIGIN_WORDS: usize = 48;
/// How many a process keeps: the last ones. A power of two.
pub const ORIGINS: usize = 1024;

/// Where a block of the heap was given out or freed, in the memory of its process.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Origin {
    /// Its number, from 1, in the process; 0: there is none. Number n lies at n modulo [`ORIGINS`].
    pub number: u64,
    /// The block.
    pub block: u64,
    /// Bytes of it.
    pub size: u64,
    /// By whom.
    pub thread: Tid,
    /// 1: it was freed; 0: given out.
    pub freed: u16,
    /// How many words of the stack there are.
    pub words: u16,
    /// Registers of the thread: rbx, rbp, rsp, r12 to r15, rip.
    pub registers: [u64; 8],
    /// What lay on its stack from rsp on.
    pub stack: [u64; ORIGIN_WORDS],
}

impl Origin {
    /// None.
    pub const NONE: Origin = Origin {
        number: 0,
        block: 0,
        size: 0,
        thread: crate::base::NONE,
        freed: 0,
        words: 0,
        registers: [0; 8],
        stack: [0; ORIGIN_WORDS],
    };
    /// Bytes.
    pub const SIZE: usize = size_of::<Origin>();
}

/// A shared mapping, in the memory of its process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Range {
    /// First address.
    pub start: u64,
    /// One past the last.
    pub end: u64,
    /// Offset of `start` in what is mapped.
    pub offset: u64,
    /// The space of keys for objects in it.
    pub space: u32,
    /// Index of the SysV segment + 1, or 0.
    pub segment: u32,
}

impl Range {
    /// None.
    pub const NONE: Range = Range { start: 0, end: 0, offset: 0, space: 0, segment: 0 };
}

/// Shared mappings of one process that can be told apart.
pub const MAX_RANGES: usize = 1024;

/// The use of freed memory that has ended an execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Gone {
    /// The block, or the thread whose stack it was,
    pub block: u64,
    /// and bytes of the block; 0: of a stack.
    pub size: u64,
    /// The first byte that is used.
    pub address: u64,
    /// Who does that, as in [`Entry`], and what: bytes, and whether it writes.
    pub entry: [u32; 2],
}

/// How far watching is, in [`Watching::state`].
pub mod state {
    /// Nothing is watched.
    pub const OFF: i32 = 0;
    /// The tool wants to watch: the shim says where its functions are.
    pub const ASKED: i32 = 1;
    /// The file is mapped. Negative: the error number with which that failed.
    pub const ON: i32 = 2;
}

/// Slow paths by size: 1, 2, 4, .. 64 bytes; for reads, then the same for writes; then that for all other operands.
pub const SLOW_PATHS: usize = 15;
/// Index of the last of them.
pub const SLOW_OTHER: usize = 14;

/// The part of the arena that is about watching.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Watching {
    /// A constant of [`state`], or an error number.
    pub state: i32,
    /// Code that came later and is not watched, and calls of which the memory is not known: how often.
    pub later: u32,
    /// Address of the state of the log, in each process: five words, of which the first is where the next entry goes, the last where the
    /// first one is.
    pub log: u64,
    /// Uses of several words that are objects by one instruction or function, which were made in one step.
    pub wide: u64,
    /// Addresses of the slow paths.
    pub slow: [u64; SLOW_PATHS],
    /// Address of what stands for the first of [`FUNCTIONS`](crate::library::FUNCTIONS); the others follow it, then come those for
    /// functions of which nothing is known.
    pub functions: u64,
    /// Address of the [`ORIGINS`] [`Origin`]s of each process; 0: nothing is known of them.
    pub origins: u64,
    /// In each process: address of the number of its shared mappings, and of the first [`Range`].
    pub ranges: [u64; 2],
    /// How the execution ended, if that is by a use of freed memory.
    pub gone: Gone,
    /// The first of what came later, a name that ends with NUL.
    pub name: [u8; 128],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_memory_at_an_instruction() {
        let mut registers = [0; 16];
        (registers[7], registers[6], registers[2]) = (0x1000, 24, 0x77);
        let said = Predicate { what: Record::OWNS, base: 7, length: 6, to: 2, reserved: 0, offset: 8, size: 0 };
        assert_eq!(said.of(&registers), Some((0x1008, 24, 0x77)));
        let named = Predicate { base: NO_REGISTER, length: NO_REGISTER, to: NO_REGISTER, size: 4, ..said };
        assert_eq!(named.of(&registers), Some((8, 4, 0)));
        // A null pointer points to nothing, whatever is added.
        assert_eq!(Predicate { base: 0, ..said }.of(&registers), None);
    }
}
