//! Accesses to memory that several threads use without an order that other operations keep: such a piece of memory is an object, and
//! each access to it an operation. It is performed by the program's own instruction; here is only that it has its turn.

use super::question::Did;
use super::row::*;
use crate::base::{errno, ObjId, Op, Tid, NONE, RESUMED, SEVERAL, TELLS_LAST, TRY};
pub use crate::state::object::Found;
use crate::state::{Act, Applied, Object, World, ROUNDS};

kinds! {
    /// Read memory; in a loop that goes round in one step, what it reads of `obj` and `obj2`.
    MEM_READ = 118, "mem_read" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: |w, t, op, _| w.use_memory(t, op),
        records: Records::NOTHING, cells: uses_bytes, follows: NOBODY, blocks: GIVES,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: YES, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown::passes(Call::By(|op| if op.has(ATOMIC) { "atomic load" } else { "load" }), USED),
    }
    /// Write memory, or read and write it in one step; or, with [`COMPARES`], read it and write it only if a certain value is there.
    MEM_WRITE = 119, "mem_write" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: |w, t, op, _| w.use_memory(t, op),
        records: BEFORE, cells: uses_bytes, follows: NOBODY, blocks: changes_back,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: YES, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown::passes(Call::By(|op| if op.has(ATOMIC) { "atomic update" } else { "store" }), USED),
    }
    /// The same in a loop that has come back to where it was with nothing done and nothing changed: it goes round again once there is
    /// something else in `obj` or `obj2` than the loop has found there (`Thread::awaits`). Kokologiannakis, Ren, Vafeiadis (Dynamic partial
    /// order reductions for spinloops, FMCAD 2021).
    MEM_WAIT = 127, "mem_wait" {
        operands: Operands::Objects, enabled: blocks(|w, t, op| u32::from(w.changed(t, op) != 0), |q| q.memory_has_changed()),
        perform: |w, t, op, _| w.use_memory(t, op),
        records: CHANGED, cells: uses_bytes, follows: NOBODY, blocks: |a, p| a.op.writes_memory() && changes_back(a, p),
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: YES, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::By(|op| if op.has(ATOMIC) { "atomic update" } else { "load" }), arguments: USED, outcome: Outcome::Nothing,
            waits: Some(|world, t, op, words| {
                let [first, second] = op.bytes();
                say![words, "another thread to write ", used(op.obj, first)];
                if op.obj2 != NONE {
                    say![words, " or ", used(op.obj2, second)];
                }
                say![words, hopeless(world, t)];
            }), identity: BY_OBJECTS },
    }
}

/// Flag of these operations: the instruction is atomic (a LOCK prefix, or xchg).
pub const ATOMIC: u8 = VARIANT;

/// Flag of these operations: since the last one of its thread there was a fence, a locked instruction or another that lets no load overtake
/// an earlier store.
pub const FENCED: u8 = SEVERAL;

/// Flag of [`Kind::MEM_WRITE`]: the store was in a buffer, and came out of it at a moment that was explored. Of [`Kind::TOSS`]: how many stores
/// come out of it now.
pub const LATE: u8 = TELLS_LAST;

/// Flag of [`Kind::MEM_WRITE`]: it writes only if its bytes of the word are those of [`Op::deadline`]. Where they are not, nobody can tell it from a
/// read: two that fail commute, and one that fails commutes with a read.
pub const COMPARES: u8 = RESUMED;

/// The operation that decides how many stores come out of the buffer of a thread: at most `most`.
pub fn comes_out(most: u32) -> Op {
    Op::new(Kind::TOSS).arg(most.into()).with(LATE)
}

/// Flag of operations on several futexes, or that change a word: the memory of a word that they compare or change is an object. It is not named
/// then; they depend on everything.
pub const OF_WORDS: u8 = VARIANT;

/// See [`OF_WORDS`].
pub(super) fn touches_word(act: &Act, cells: &mut Footprint) {
    if act.op.has(OF_WORDS) {
        cells.touch(Cell::World, How::Writes);
    }
}

/// What a wait finds changed: a bit for each of its two words; and a digest of what it finds in the first.
const CHANGED: Records = Records {
    there: |q| q.changed().unwrap_or(q.act.state),
    ..Records::number(|w, t, op| w.changed(t, op) | digest(op, w.content_of(op)))
};

/// Differs only where the bytes that `op` uses of `content` do.
fn digest(op: &Op, content: u64) -> i64 {
    ((content & op.bits()).wrapping_mul(0x9e37_79b9_7f4a_7c15) & !0b11) as i64
}

/// Of one that compares ([`COMPARES`]), whether that is in vain: 1 then, and it only looks. Of others, what is in the word before.
const BEFORE: Records = Records::number(|w, _, op| w.before(op)).looking(|q| q.before(), WRITES);
const IN_VAIN: i64 = 1;
const WRITES: i64 = 0;

/// See [`BEFORE`], of one that compares.
fn compared(op: &Op, content: u64) -> i64 {
    if op.bits() & (content ^ op.deadline) != 0 {
        IN_VAIN
    } else {
        WRITES
    }
}

impl Op {
    /// The bytes that an operation on memory uses of its first word and of its second one, a bit for each; with no mask, all of them.
    pub fn bytes(&self) -> [u8; 2] {
        match self.mask {
            0 => [u8::MAX; 2],
            mask => [mask as u8, (mask >> 8) as u8],
        }
    }

    /// The bits of its first word that it uses.
    fn bits(&self) -> u64 {
        let [first, _] = self.bytes();
        (0..8).filter(|n| first >> n & 1 == 1).map(|n| 0xff << (8 * n)).sum()
    }
}

/// The memory of `word` that an operation with these bytes uses: several variables may lie in one word. Of all of it, its object.
fn used(word: ObjId, bytes: u8) -> Thing {
    match bytes {
        0 | u8::MAX => Thing::Object(word),
        part => Thing::Memory(word, part.trailing_zeros() as u8),
    }
}

/// What an operation uses of its first word.
const USED: Arguments = |op, _, words| say![words, used(op.obj, op.bytes()[0])];

fn uses_bytes(act: &Act, _: Effects, cells: &mut Footprint) {
    let [first, second] = act.op.bytes();
    cells.touch_object(act.op.obj, How::Bytes { bytes: first, writes: act.writes_memory() });
    cells.touch_object(act.op.obj2, How::Bytes { bytes: second, writes: false });
}

/// Writing may put back what somebody waits to see changed.
fn changes_back(_: &Act, waits: &Act) -> bool {
    waits.op.kind == Kind::MEM_WAIT
}

impl Op {
    /// It writes memory that is an object, or may: see [`Act::writes_memory`].
    pub fn writes_memory(&self) -> bool {
        self.kind == Kind::MEM_WRITE || self.kind == Kind::MEM_WAIT && self.has(ATOMIC)
    }
}

impl Act {
    /// It writes memory that is an object, in the state recorded.
    pub fn writes_memory(&self) -> bool {
        self.op.writes_memory() && !(self.compares() && self.state == IN_VAIN)
    }

    fn compares(&self) -> bool {
        self.op.kind == Kind::MEM_WRITE && self.op.has(COMPARES)
    }
}

impl Question<'_> {
    /// See [`CHANGED`]; `None`: the recorded states do not tell. Its thread has looked at each word before, so that it stands
    /// as the first dropped one that wrote it found it.
    fn changed(&self) -> Option<i64> {
        let mine = self.act.op.bytes();
        let of = |n: usize, word: ObjId| {
            let state = match self.first_write(word, mine[n]) {
                Some(d) => d.found.map(|(before, _)| before),
                None => Some(self.act.state),
            };
            state.map(|state| state & 1 << n)
        };
        Some(of(0, self.act.op.obj)? | of(1, self.act.op.obj2)?)
    }

    /// The first dropped transition that wrote some of these bytes of `word`.
    fn first_write(&self, word: ObjId, bytes: u8) -> Option<&Did<'_>> {
        let writes = |a: &Act| a.writes_memory() && word != NONE && a.op.obj == word && a.op.bytes()[0] & bytes != 0;
        self.dropped.iter().find(|d| writes(d.act))
    }

    /// See [`BEFORE`]. All writes of the same bytes depend on each other, so that these stand as the first dropped one found them. Where it
    /// is not recorded how that was, it is taken to write.
    fn before(&self) -> i64 {
        let op = &self.act.op;
        if !self.act.compares() {
            return self.act.state;
        }
        if self.dropped.iter().any(|d| d.act.op.kind.row().memory == Memory::Changes) {
            return WRITES;
        }
        let Some(first) = self.first_write(op.obj, op.bytes()[0]) else { return self.act.state };
        let by = first.act;
        match () {
            () if op.bits() & !by.op.bits() != 0 => first.found.map_or(WRITES, |(before, _)| before),
            // Equal digests may be of what differs; then it is taken to write.
            () if by.op.kind == Kind::MEM_WAIT && op.bits() == by.op.bits() => {
                i64::from(by.state & !0b11 != digest(op, op.deadline))
            }
            () if by.op.kind == Kind::MEM_WAIT => first.found.map_or(WRITES, |(before, _)| before),
            () if by.compares() => compared(op, by.op.deadline),
            () => compared(op, by.state as u64),
        }
    }

    fn memory_has_changed(&self) -> Answer {
        self.changed().map_or(Answer::Unknown, |changed| Answer::from(changed != 0))
    }
}

impl World {
    /// See [`Object::content`].
    pub fn content_is(&mut self, word: ObjId, content: u64) {
        self.objects[word].set_content(content);
    }

    /// A loop goes round in one step, or gives way, where it may end by itself.
    pub fn leaves_out_rounds(&mut self) {
        self.never_comes(ROUNDS);
    }

    /// What thread `t` has found in the words that its next [`Kind::MEM_WAIT`] names.
    pub fn awaits(&mut self, t: Tid, found: [Found; 2]) {
        self.threads[t].awaits = found;
    }

    fn content_of(&self, op: &Op) -> u64 {
        self.objects.get(op.obj).map_or(0, Object::content)
    }

    /// Of one that compares ([`COMPARES`]), 1 if that is in vain, else 0. Of others, what is in the word before.
    pub fn before(&self, op: &Op) -> i64 {
        let content = self.content_of(op);
        if op.has(COMPARES) {
            compared(op, content)
        } else {
            content as i64
        }
    }

    /// See [`CHANGED`].
    fn changed(&self, t: Tid, op: &Op) -> i64 {
        let awaits = &self.threads[t].awaits;
        let changed = |n: usize, word: ObjId| {
            let differs = |o: &Object| (o.content() ^ awaits[n].value) & awaits[n].mask != 0;
            i64::from(self.objects.get(word).is_some_and(differs)) << n
        };
        changed(0, op.obj) | changed(1, op.obj2)
    }

    /// With [`TRY`]: the instruction found the same there when it was executed last, and its thread has done nothing else meanwhile. That
    /// counts as a poll in vain, so that a loop which waits for another thread to write gives way.
    fn use_memory(&mut self, t: Tid, op: &Op) -> Applied {
        if op.has(TRY) {
            return Applied::Done(errno::EAGAIN);
        }
        self.threads[t].polls = 0;
        Applied::Done(0)
    }
}
