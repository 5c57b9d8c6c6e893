//! Memory that is an object: each use of it is an operation, which comes before the instruction.
//!
//! NOTE [Round] A loop that waits for another thread to write is told by its thread coming back to an instruction with all that it has of its
//! own as it was (`watch::state_of`), with nothing done in between but reading such memory. It goes round in the same way for as long as it
//! reads the same; so it waits until something else is there (`MEM_WAIT`), which leaves out nothing but rounds that nobody can tell. That it
//! waits is decided by what its thread has seen, not by what is there now: the order of steps that are independent is no matter.
//!
//! A loop that changes something in each round, a counter mostly, may end by itself, and how many rounds it has made may be told. `EXACT` of
//! them are operations each. What others could do between further ones is left out, and said: if all that it reads is one or two words it goes
//! round in one step from there, until it ends, does something else, or has gone round `MOST_ROUNDS` times; so what comes after a bounded loop is
//! explored. A loop of which the tool has found that nobody can tell its rounds does so from its second one on, and nothing is left out. After that, and where it is an atomic update that changes nothing, an instruction that finds what it has found before counts as a
//! poll in vain, see `MEM_READ` in the model, and gives way as yields do.

use vsrun_model::carrier::{ReadWord, MAX_READS};
use vsrun_model::memory::{Found, ATOMIC, COMPARES, FENCED, LATE};
use vsrun_model::object::NONE;
use vsrun_model::op::TRY;
use vsrun_model::sharing::Word;
use vsrun_model::watch::{Entry, Record};
use vsrun_model::{Kind, ObjId, ObjKind, Op};

use super::late::{self, Then};
use super::local::{arena, fiber, forget_reads, local, machine, model, space_of, world, Phase};
use super::{end, freed, shield, turn, view};
use crate::sys::{load, readable, store};
use crate::watch::{self, Touch};

/// So often an instruction finds the same before its loop goes round in one step.
const EXACT: u32 = 16;
/// So many uses of memory that a thread owns are no operations, in one transition.
const OWN_USES: u32 = 1000;
/// So often it goes round at most. Loops of libraries that spin before they wait do so some ten to a thousand times.
const MOST_ROUNDS: u32 = 1024;

/// Memory that is an object is about to be used: that is an operation, or two where an instruction reads and writes and is not atomic
/// (then it does so with what it has read, whatever others have written meanwhile). False: it is no object any more. What the child of a
/// vfork does is no operation, and is not recorded either.
pub fn touch(touch: Touch) -> bool {
    if view::is_on() {
        let entered = shield::enter();
        view::settle();
        shield::leave(entered);
    }
    if !watch::is_recording() || local().phase != Phase::Running || local().borrowed {
        return true;
    }
    if fiber().rounds != 0 && goes_round(&touch) {
        return true;
    }
    // A function's own frame is on the stack.
    fiber().place = if touch.site & Entry::FUNCTION == 0 { touch.site + 1 } else { 0 };
    freed::look(touch.address, touch.size, touch.site, touch.writes);
    let (space, at) = space_of(touch.address & !7);
    if !arena().words.as_slice().contains(&Word::at(space, at)) {
        // What was mapped there is gone.
        return false;
    }
    if arena().owned.len > 0 && is_own(&touch, space, at) {
        return true;
    }
    // Calls and operations, also those that are no place to switch, may have done something that another round would not.
    let undisturbed = local().acts == local().quiet_since;
    let mut then = Then::Nothing;
    let mut use_it = || {
        let Some(id) = model().object_at(space, ObjKind::MEMORY, at, (touch.address & 7) as u32) else { no_room() };
        if touch.wide {
            machine().note_wide_use();
        }
        // As it stands for all who come to it. What the thread finds where stores go through buffers may be in its own.
        if !view::is_on() {
            model().content_is(id, word_at(touch.address));
        }
        settle_update();
        if !undisturbed {
            forget_states();
        }
        fiber().fenced |= watch::has_fenced();
        if view::is_on() {
            then = through_buffer(id, &touch);
        } else if touch.writes && !touch.locked {
            writes(id, &touch);
        } else {
            reads(id, &touch);
        }
        fiber().fenced = false;
        local().to_write = if touch.writes && !matches!(then, Then::Stores(..)) { touch.whole } else { (0, 0) };
    };
    // Of a call that is under way the end is still to come.
    if touch.in_call {
        use_it();
    } else {
        turn::returning(use_it);
    }
    local().quiet_since = local().acts;
    // Another thread may have freed it while this one waited for its turn.
    freed::look(touch.address, touch.size, touch.site, touch.writes);
    if view::is_on() {
        let entered = shield::enter();
        late::leave(&touch, then);
        shield::leave(entered);
    }
    fiber().place = 0;
    true
}

/// The running thread owns what it uses, which is recorded and no operation; not where stores go through buffers. In one transition so many
/// times at most: a loop that waits for another thread would never end.
fn is_own(touch: &Touch, space: u32, word: u64) -> bool {
    let (l, ops) = (local(), world().ops);
    let start = word + (touch.address & 7);
    if view::is_on() || !arena().owns(l.cur, space, start, start + touch.size) {
        return false;
    }
    let before = if l.own_uses.1 == ops { l.own_uses.0 } else { 0 };
    if before >= OWN_USES {
        return false;
    }
    l.own_uses = (before + 1, ops);
    let flag = |is: bool, flag: u32| if is { flag } else { 0 };
    let what =
        Record::TOUCHES | flag(touch.writes, Record::WRITES) | flag(touch.writes && touch.locked, Record::LOCKED);
    let record = Record { address: start, size: touch.size, stride: 0, site: touch.site, thread: l.cur, space, what };
    let entered = shield::enter();
    machine().note_memory(record);
    shield::leave(entered);
    if touch.writes {
        forget_reads();
    }
    true
}

/// The kernel is about to compare four bytes there, in an operation of its own: the object that they are part of, and which of its bytes they are.
/// Memory that is none is recorded; what is compared is read before the operation, so that nothing that it waits for or wakes hides a race.
pub fn compared(address: u64, site: u32) -> Option<(ObjId, u8)> {
    word_of(address, site, false)
}

/// The same for what it changes there in one step. What is there afterwards the model gets to know with [`changed`].
pub fn about_to_change(address: u64, site: u32) -> Option<(ObjId, u8)> {
    word_of(address, site, true)
}

/// What [`about_to_change`] has told of has come to pass.
pub fn changed(address: u64) {
    local().to_write = (address, address + 4);
}

fn word_of(address: u64, site: u32, writes: bool) -> Option<(ObjId, u8)> {
    if !watch::is_recording() || local().phase != Phase::Running || local().borrowed {
        return None;
    }
    freed::look(address, 4, site, writes);
    let (space, at) = space_of(address & !7);
    if !arena().words.as_slice().contains(&Word::at(space, at)) {
        watch::kernel_uses(address, 4, site, writes);
        return None;
    }
    if local().claims {
        // What is said of who may use it is checked by what is recorded, and this is none of the operations that tell it.
        let what = Record::TOUCHES | if writes { Record::WRITES } else { 0 };
        let place = at + (address & 7);
        machine().note_memory(Record { address: place, size: 4, stride: 0, site, thread: local().cur, space, what });
    }
    let Some(id) = model().object_at(space, ObjKind::MEMORY, at, (address & 7) as u32) else { no_room() };
    Some((id, 0xf << (address & 7)))
}

fn no_room() -> ! {
    end::no_room(&[b"more memory is used without an order than vsrun can hold"])
}

/// An operation of the running fiber that is a use of memory.
fn pass(op: Op) {
    local().touches = true;
    turn::pass(op);
}

/// The same where stores go through buffers.
fn through_buffer(id: ObjId, touch: &Touch) -> Then {
    let atomic = touch.writes && touch.locked;
    let one = touch.whole == (touch.address, touch.address + touch.size)
        && touch.site & Entry::FUNCTION == 0
        && !touch.in_call;
    if fiber().fenced || atomic || !one {
        late::come_out(fiber().n_late, fiber().fenced || atomic);
    }
    if atomic || !one {
        match touch.writes && !touch.locked {
            true => writes(id, touch),
            false => reads(id, touch),
        }
        return Then::Nothing;
    }
    let loads = !touch.writes || touch.reads;
    let found = match if loads { late::forwarded(touch) } else { None } {
        None if loads => {
            match touch.writes {
                true => pass(op(Kind::MEM_READ, id, touch)),
                false => reads(id, touch),
            }
            fiber().fenced = false;
            late::loaded(value_at(touch))
        }
        None => Then::Nothing,
        Some(found) => Then::Loads(found),
    };
    if !touch.writes {
        return found;
    }
    forget_reads();
    let found = if let Then::Loads(found) = found { Some(found) } else { None };
    if late::goes_in() {
        return Then::Stores(id, found);
    }
    pass(op(Kind::MEM_WRITE, id, touch).with(LATE));
    if let Some(found) = found {
        put(touch, found);
    }
    Then::Nothing
}

/// An instruction that writes and is not atomic: that is no waiting.
fn writes(id: ObjId, touch: &Touch) {
    forget_reads();
    if touch.reads {
        pass(op(Kind::MEM_READ, id, touch));
    }
    let read = value_at(touch);
    pass(op(Kind::MEM_WRITE, id, touch));
    if touch.reads && value_at(touch) != read {
        put(touch, read);
    }
}

/// An instruction that reads, or reads and writes in one step. See NOTE [Round].
fn reads(id: ObjId, touch: &Touch) {
    let state = match touch.frame {
        0 => 0,
        frame => watch::state_of(frame, fiber().fs, local().stack).unwrap_or(0),
    };
    let all = &fiber().reads[..usize::from(fiber().n_reads)];
    let known = all.iter().find(|r| r.site == touch.site && r.address == touch.address).copied();
    let since = known.filter(|_| state != 0).and_then(|k| {
        let again = [[k.state, k.before], k.earlier].into_iter().find(|at| at[0] == state);
        again.map(|[_, before]| before)
    });
    let round = since.and_then(words_since);
    let goes_on = known.is_some_and(|k| k.times + 1 >= EXACT || watch::is_untold(touch.site));
    if fiber().n_late > 0 && (round.is_some() || goes_on) {
        // What the loop has found in the buffer is no part of what is known of it.
        late::come_out(fiber().n_late, true);
        forget_reads();
        return reads(id, touch);
    }
    if let Some(words) = round {
        // The instruction is about the first, which it may have read last.
        let [first, second] = if words[1].is_some_and(|word| word.0 == id) { [words[1], words[0]] } else { words };
        let awaits = [first, second].map(|word| word.map_or(Found::default(), |w| w.1));
        model().awaits(local().cur, awaits);
        let bytes = |found: Found| (0..8).filter(|n| found.mask >> (8 * n) & 0xff != 0).map(|n| 1 << n).sum::<u32>();
        let op = op(Kind::MEM_WAIT, id, touch);
        let mask = op.mask | bytes(awaits[0]) | bytes(awaits[1]) << 8;
        pass(Op { obj2: second.map_or(NONE, |(word, _)| word), mask, ..op });
    } else {
        let kind = if touch.writes { Kind::MEM_WRITE } else { Kind::MEM_READ };
        let times = known.map_or(0, |k| k.times + 1);
        let in_one = times >= EXACT || times > 0 && watch::is_untold(touch.site);
        let op = compares(op(kind, id, touch), touch);
        match in_one.then(|| words_of_loop(id, touch)).flatten() {
            Some(op) => pass(op),
            None if times < EXACT => pass(op),
            None => {
                model().leaves_out_rounds();
                pass(op.with(TRY));
            }
        }
        has_compared(&op, touch);
    }
    fiber().all_reads += 1;
    let (value, before) = (value_at(touch), fiber().all_reads);
    let (site, size, address) = (touch.site, touch.size as u32, touch.address);
    let found = ReadWord {
        site,
        size,
        address,
        value,
        times: 0,
        word: id,
        state,
        before,
        last: before,
        earlier: [state, before],
    };
    model().content_is(id, word_at(address));
    if touch.writes {
        fiber().update = found;
    } else {
        note_read(found);
    }
}

/// `op` of an instruction that compares: it writes only if a certain value is there, which the model gets to know.
fn compares(op: Op, touch: &Touch) -> Op {
    let one = touch.whole == (touch.address, touch.address + touch.size);
    let Some(with) = touch.compares.filter(|_| one && !view::is_on()) else { return op };
    let bits = u64::MAX >> (64 - 8 * touch.size);
    Op { deadline: (with & bits) << (8 * (touch.address & 7)), ..op.with(COMPARES) }
}

/// What the running thread is about to compare is what the model took it for when it had its turn: if that was told to be in vain, and is not, a
/// write would count as a read.
fn has_compared(op: &Op, touch: &Touch) {
    let finds = value_at(touch) == op.deadline >> (8 * (touch.address & 7));
    if op.has(COMPARES) && finds && model().before(op) != 0 {
        end::unsupported(&[b"memory that threads use without an order is changed in a way that is not seen"]);
    }
}

/// The thread has done something since it came to the instructions that it has executed: that it comes back to one as it was tells nothing.
fn forget_states() {
    let f = fiber();
    f.reads[..usize::from(f.n_reads)].iter_mut().for_each(|read| (read.state, read.earlier[0]) = (0, 0));
}

/// The step in which a loop goes round from here on: a read of all that it reads. `None`: it cannot, or has done so.
fn words_of_loop(id: ObjId, touch: &Touch) -> Option<Op> {
    let f = fiber();
    if touch.writes || f.rounds == u32::MAX {
        return None;
    }
    let mut words = [(id, 0), (NONE, 0)];
    for read in &f.reads[..usize::from(f.n_reads)] {
        let word = words.iter_mut().find(|w| w.0 == read.word || w.0 == NONE)?;
        word.0 = read.word;
        word.1 |= ((1 << read.size) - 1) << (read.address & 7);
    }
    f.rounds = MOST_ROUNDS;
    Some(Op { obj2: words[1].0, mask: words[0].1 | words[1].1 << 8, ..op(Kind::MEM_READ, id, touch) })
}

/// A use of memory is part of the step in which its loop goes round: nobody else has moved since it began. What it finds is noted, too, since
/// the loop may wait from here on, for each word that it reads in a round.
fn goes_round(touch: &Touch) -> bool {
    let f = fiber();
    let reads = &mut f.reads[..usize::from(f.n_reads)];
    let known = reads.iter_mut().find(|r| (r.site, r.address) == (touch.site, touch.address));
    let Some(known) = known.filter(|_| f.rounds != u32::MAX && !touch.writes) else { return false };
    if known.value != value_at(touch) {
        // Written before the step began.
        return false;
    }
    f.all_reads += 1;
    known.last = f.all_reads;
    if !watch::is_untold(touch.site) {
        model().leaves_out_rounds();
    }
    f.rounds -= 1;
    if f.rounds == 0 {
        f.rounds = u32::MAX;
    }
    f.rounds != u32::MAX
}

/// The operation that comes before the instruction.
fn op(kind: Kind, id: ObjId, touch: &Touch) -> Op {
    let atomic = touch.writes && touch.locked;
    let mask = ((1 << touch.size) - 1) << (touch.address & 7);
    let flags = if atomic { ATOMIC } else { 0 } | if fiber().fenced { FENCED } else { 0 };
    Op { mask, ..Op::on(kind, id).arg(touch.site.into()).with(flags) }
}

/// Whether the last instruction that was to change memory in one step has done so.
fn settle_update() {
    let update = core::mem::take(&mut fiber().update);
    if update.size == 0 {
        return;
    }
    let there = readable(update.address, update.size.into()) == u64::from(update.size);
    if there && value(update.address, update.size.into()) == update.value {
        note_read(update);
    } else {
        forget_reads();
    }
}

/// The words that the thread has read from its `before`-th read on, and what it has found there: two at most, the one that was read first
/// first. `None`: there are more, or something has changed meanwhile.
fn words_since(before: u64) -> Option<[Option<(ObjId, Found)>; 2]> {
    let f = fiber();
    let mut words: [Option<(ObjId, Found)>; 2] = [None; 2];
    let (mut next, mut at) = (before, 0);
    // In the order in which they were read.
    while let Some(read) = f.reads[..usize::from(f.n_reads)].iter().filter(|r| r.last >= next).min_by_key(|r| r.last) {
        next = read.last + 1;
        let known = words[..at].iter().position(|w| w.is_some_and(|w| w.0 == read.word));
        let empty = (read.word, Found { address: read.address & !7, ..Found::default() });
        let (_, found) = words.get_mut(known.unwrap_or(at))?.get_or_insert(empty);
        at += usize::from(known.is_none());
        let shift = 8 * (read.address & 7) as u32;
        let mask = u64::MAX >> (64 - 8 * read.size) << shift;
        let value = read.value << shift;
        if (found.value ^ value) & found.mask & mask != 0 {
            return None;
        }
        found.mask |= mask;
        found.value |= value & mask;
    }
    Some(words)
}

/// An instruction has found something.
fn note_read(found: ReadWord) {
    let f = fiber();
    let n = usize::from(f.n_reads);
    let known = f.reads[..n].iter_mut().find(|r| r.site == found.site && r.address == found.address);
    match known {
        Some(same) if same.value == found.value => {
            let times = same.times + 1;
            let earlier = if times.is_power_of_two() { found.earlier } else { same.earlier };
            *same = ReadWord { times, earlier, ..found };
        }
        // Something has changed: that is no waiting in vain.
        _ => {
            let n = if known.is_some() || n == MAX_READS { 0 } else { n };
            f.rounds = 0;
            f.reads[n] = found;
            f.n_reads = n as u8 + 1;
        }
    }
}

fn value_at(touch: &Touch) -> u64 {
    value(touch.address, touch.size)
}

/// What the whole word there holds; nothing where it cannot be read: a call that takes memory away uses guard pages, too.
fn word_at(address: u64) -> u64 {
    value(address & !7, 8)
}

/// The bytes there, at most eight of one word, as [`word_at`] tells them.
fn value(address: u64, size: u64) -> u64 {
    if readable(address, size) < size {
        return 0;
    }
    (0..size).fold(0, |all, n| all | u64::from(load::<u8>(address + n)) << (8 * n))
}

fn put(touch: &Touch, value: u64) {
    for n in 0..touch.size {
        store(touch.address + n, (value >> (8 * n)) as u8);
    }
}
