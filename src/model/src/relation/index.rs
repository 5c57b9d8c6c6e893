//! Where to look for the operations that one depends on, so that not all have to be asked; and a quick test for independence. Both
//! follow from what transitions touch.
//!
//! A step is kept under [`Place`]s ([`found_at`]); what depends on an operation is among the steps kept under the places
//! that it looks at ([`looks_at`]). If [`dependent_after`](crate::dependent_after) says so in any state, there is such a
//! place. The reverse does not hold: who finds a step asks `dependent_after` as well.

use super::before::tells_by_signals;
use super::depend::is_far_from_limit;
use crate::base::{Tid, NONE};
use crate::objects::row::{Channels, Role};
use crate::state::{Act, By, Cell, Effects, Footprint, How, SEMVMX};

/// What steps are kept under.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place(Tag, Cell);

/// Ways to touch a cell, as far as it tells which others they commute with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Tag {
    Moves,
    Ends,
    Awaits,
    Writes,
    Looks,
    Changes,
    /// Names its channels.
    Named,
    /// Concerns more channels than it names.
    Many,
    /// Is in the queue of those who wait.
    Waits,
    Shares,
    /// Adds to a number that is far from its limit.
    Adds,
    /// Changes semaphores of a set.
    Semop,
    /// The same, for each of them.
    SemopOn(u8),
    /// Adds a little to this semaphore of a set.
    AddsTo(u8),
    Other,
    /// Does not touch it, and tells something of it all the same.
    Tells,
}

/// Ways to touch an object.
const OF_OBJECTS: [Tag; 6] = [Tag::Waits, Tag::Shares, Tag::Looks, Tag::Adds, Tag::Semop, Tag::Other];

/// Ways to touch what has no object.
const OF_NONE: [Tag; 5] = [Tag::Writes, Tag::Looks, Tag::Changes, Tag::Named, Tag::Many];

impl Place {
    /// From the first to the last place under which the steps of threads are kept: all steps, each once.
    pub const ALL: (Place, Place) = (Place(Tag::Moves, Cell::Thread(0)), Place(Tag::Moves, Cell::Thread(Tid::MAX)));
}

/// True if every operation may depend on one that touches this: what is read here, everybody reads.
fn is_wide(&(cell, how): &(Cell, How)) -> bool {
    matches!(cell, Cell::World | Cell::Process(_)) && how == How::Writes
}

/// Calls `keep` with each place that a step is kept under.
pub fn found_at(act: &Act, did: Effects, mut keep: impl FnMut(Place)) {
    let footprint = Footprint::of(act, did);
    keep(Place(Tag::Moves, Cell::Thread(act.tid)));
    if did.has(Effects::ENDS) || tells_by_signals(act) || act.op.kind.row().channels == Channels::Ends {
        keep(Place(Tag::Tells, Cell::World));
    }
    for cell in named(act) {
        if !footprint.cells().iter().any(|touched| touched.0 == cell) {
            keep(Place(Tag::Tells, cell));
        }
    }
    if footprint.cells().iter().any(is_wide) {
        return keep(Place(Tag::Writes, Cell::World));
    }
    for &(cell, how) in footprint.cells() {
        tags(how, |tag| keep(Place(tag, cell)));
    }
}

/// Calls `look` with each place where there may be steps that an operation depends on; [`Place::ALL`] is all it looks at if every
/// operation may depend on it: then this is true.
pub fn looks_at(act: &Act, did: Effects, mut look: impl FnMut(Place)) -> bool {
    let footprint = Footprint::of(act, did);
    look(Place(Tag::Writes, Cell::World));
    for &(cell, how) in footprint.cells() {
        against(cell, how, |tag| look(Place(tag, cell)));
    }
    footprint.cells().iter().any(is_wide)
}

/// Calls `ask` with each place where there may be steps by which [`Question::answer`](crate::before::Question::answer) tells whether `act` could have come
/// earlier: those that it depends on whatever it comes to do, those on what it names or touches in whatever way, and those that tell of all. True: any may.
pub fn asked_of(act: &Act, mut ask: impl FnMut(Place)) -> bool {
    let all = looks_at(act, Effects::ANY, &mut ask);
    ask(Place(Tag::Tells, Cell::World));
    let footprint = Footprint::of(act, Effects::ANY);
    let touched = footprint.cells().iter().map(|touched| touched.0);
    for cell in touched.chain(named(act)) {
        match cell {
            Cell::Object(_) => OF_OBJECTS.iter().chain(&[Tag::Tells]).for_each(|&tag| ask(Place(tag, cell))),
            Cell::Channels | Cell::Initializers | Cell::Removals => {
                OF_NONE.iter().for_each(|&tag| ask(Place(tag, cell)));
            }
            _ => {}
        }
    }
    // Locks of files go with descriptors, processes, and what others wait for.
    all || matches!(act.op.kind.row().role, Role::FileLock(_))
}

/// The objects that an operation names.
fn named(act: &Act) -> impl Iterator<Item = Cell> {
    act.op.operands().into_iter().filter(|&o| o != NONE).map(Cell::Object)
}

/// What a way to touch a cell is kept under; what everybody does, nowhere.
fn tags(how: How, mut keep: impl FnMut(Tag)) {
    match how {
        How::Reads => {}
        How::Moves { ends } | How::ChildMoves { ends, .. } => {
            keep(Tag::Moves);
            if ends {
                keep(Tag::Ends);
            }
        }
        How::Joins { .. } | How::Awaits { .. } => keep(Tag::Awaits),
        How::Looks => keep(Tag::Looks),
        How::Changes => keep(Tag::Changes),
        How::Channels { by: By::Name, .. } => keep(Tag::Named),
        How::Channels { .. } => keep(Tag::Many),
        How::Semop { .. } => {
            keep(Tag::Semop);
            semaphores(how, |num, little| keep(if little { Tag::AddsTo(num) } else { Tag::SemopOn(num) }));
        }
        _ => keep(of_object(how)),
    }
}

/// What may not commute with a way to touch a cell.
fn against(cell: Cell, how: How, mut look: impl FnMut(Tag)) {
    match how {
        How::Reads => {}
        How::Moves { .. } | How::ChildMoves { .. } => {
            if let Cell::Thread(_) = cell {
                look(Tag::Moves);
            }
            look(Tag::Awaits);
        }
        How::Joins { sees } | How::Awaits { sees, .. } => {
            look(Tag::Awaits);
            look(if sees { Tag::Moves } else { Tag::Ends });
        }
        How::Looks if !matches!(cell, Cell::Object(_)) => look(Tag::Changes),
        How::Changes => look(Tag::Looks),
        How::Channels { by, .. } => {
            look(Tag::Many);
            if matches!(by, By::Mask | By::MaskLook) {
                look(Tag::Named);
            }
        }
        _ => {
            let mine = of_object(how);
            OF_OBJECTS.into_iter().filter(|&theirs| mine != theirs || mine == Tag::Other).for_each(&mut look);
            semaphores(how, |num, little| {
                look(Tag::SemopOn(num));
                if !little {
                    look(Tag::AddsTo(num));
                }
            });
        }
    }
}

/// Ways of the same tag commute, but for [`Tag::Other`], and [`Tag::Semop`] on the same semaphores.
fn of_object(how: How) -> Tag {
    match how {
        How::Waits | How::Woken { .. } => Tag::Waits,
        How::Shares => Tag::Shares,
        How::Looks => Tag::Looks,
        How::Adds { value } if is_far_from_limit(value) => Tag::Adds,
        How::Semop { .. } => Tag::Semop,
        _ => Tag::Other,
    }
}

/// Calls `each` with the semaphores of a semop; true: it commutes with others that add a little, whatever comes between.
fn semaphores(how: How, mut each: impl FnMut(u8, bool)) {
    let How::Semop { on, amount, value } = how else { return };
    let little = SEMVMX as i64 / 8;
    let adds_little = amount > 0 && amount < little && value < little;
    (0..32u8).filter(|num| on >> num & 1 != 0).for_each(|num| each(num, adds_little));
}

/// Bits such that transitions of different threads without a common one are independent in any state, as
/// [`dependent_after`](crate::dependent_after) says. Never 0; all bits for what may depend on anything.
pub fn imprint(act: &Act, did: Effects) -> u64 {
    /// Bit of operations that name no object.
    const NAMELESS: u64 = 1 << 63;
    let bit = |&(cell, how): &(Cell, How)| match (cell, how) {
        (Cell::Object(o), _) => 1 << (o % 63),
        // What everybody does is nothing to most.
        (_, How::Reads | How::Moves { .. } | How::ChildMoves { .. } | How::Channels { by: By::Name, .. }) => 0,
        (Cell::Left(_) | Cell::Ids, How::Changes) => 0,
        _ => u64::MAX,
    };
    match Footprint::of(act, did).cells().iter().map(bit).fold(0, |all, bit| all | bit) {
        0 => NAMELESS,
        bits => bits,
    }
}
