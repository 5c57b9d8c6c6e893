//! Accesses to memory that several threads use without an order that other operations keep: such a piece of memory is an object, and
//! each access to it an operation. It is performed by the program's own instruction; here is only that it has its turn.

use super::row::*;
use crate::base::{errno, ObjId, Op, Tid, NONE, SEVERAL, TELLS_LAST, TRY};
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
    /// Write memory, or read and write it in one step.
    MEM_WRITE = 119, "mem_write" {
        operands: Operands::Objects, enabled: Enabled::Always, perform: |w, t, op, _| w.use_memory(t, op),
        records: Records::NOTHING, cells: uses_bytes, follows: NOBODY, blocks: changes_back,
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

/// What a wait finds changed: a bit for each of its two words.
const CHANGED: Records =
    Records { there: |q| q.changed().unwrap_or(q.act.state), ..Records::number(|w, t, op| w.changed(t, op)) };

impl Op {
    /// The bytes that an operation on memory uses of its first word and of its second one, a bit for each; with no mask, all of them.
    pub fn bytes(&self) -> [u8; 2] {
        match self.mask {
            0 => [u8::MAX; 2],
            mask => [mask as u8, (mask >> 8) as u8],
        }
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
    cells.touch_object(act.op.obj, How::Bytes { bytes: first, writes: act.op.writes_memory() });
    cells.touch_object(act.op.obj2, How::Bytes { bytes: second, writes: false });
}

/// Writing may put back what somebody waits to see changed.
fn changes_back(_: &Act, waits: &Act) -> bool {
    waits.op.kind == Kind::MEM_WAIT
}

impl Op {
    /// It writes memory that is an object.
    pub fn writes_memory(&self) -> bool {
        self.kind == Kind::MEM_WRITE || self.kind == Kind::MEM_WAIT && self.has(ATOMIC)
    }
}

impl Question<'_> {
    /// See [`CHANGED`]; `None`: the recorded states do not tell. Its thread has looked at each word before, so that it stands
    /// as the first dropped one that wrote it found it.
    fn changed(&self) -> Option<i64> {
        let mine = self.act.op.bytes();
        let of = |n: usize, word: ObjId| {
            let writes = |op: &Op| op.writes_memory() && word != NONE && op.obj == word && op.bytes()[0] & mine[n] != 0;
            let first = self.dropped.iter().find(|d| writes(&d.act.op));
            let state = first.map_or(Some(self.act.state), |d| d.found.map(|(before, _)| before));
            state.map(|state| state & 1 << n)
        };
        Some(of(0, self.act.op.obj)? | of(1, self.act.op.obj2)?)
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
