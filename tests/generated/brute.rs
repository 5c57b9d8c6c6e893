//! All outcomes of a program, by a search of its states that switches before every access.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::program::{How, Op, Program, Sync, Val, BYTES, OWN, TOLD};

/// Everything that an execution may go on from.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    memory: [u8; BYTES],
    threads: Vec<Thread>,
    /// Who holds the mutex.
    owner: Option<usize>,
    semaphore: u64,
    /// Who reads under the lock, bit by bit, and who writes.
    readers: u64,
    writer: Option<usize>,
    event: u64,
    pipe: u64,
    /// Who waits at the barrier of two.
    waits: Option<usize>,
}

#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct Thread {
    at: usize,
    own: [u64; OWN],
    /// Has arrived at the barrier, and may not go on.
    stands: bool,
}

/// What comes out when some wait for ever.
pub const HANG: &str = "HANG";

/// The outcomes; `None`: more than `most` states.
pub fn outcomes(program: &Program, most: usize) -> Option<BTreeSet<String>> {
    let first = State::first(program);
    let (mut seen, mut stack, mut found) = (HashSet::from([first.clone()]), vec![first], BTreeSet::new());
    while let Some(state) = stack.pop() {
        if seen.len() > most {
            return None;
        }
        let mut moved = false;
        for thread in 0..state.threads.len() {
            let mut next = state.clone();
            if next.step(program, thread) {
                moved = true;
                if seen.insert(next.clone()) {
                    stack.push(next);
                }
            }
        }
        if !moved {
            found.insert(state.outcome(program));
        }
    }
    Some(found)
}

/// A step of a thread: which, and how many it has made before.
type Event = (usize, usize);

/// The writes of a byte in their order, each with those who have read it.
type Order = Vec<(Option<Event>, BTreeSet<Event>)>;

/// A state with the trace that leads there, byte by byte.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Traced {
    state: State,
    steps: Vec<usize>,
    order: BTreeMap<usize, Order>,
}

/// What a step uses, and whether it writes; `None`: it is no use of memory of one word.
fn used(op: Op) -> Option<((usize, usize), bool)> {
    match op {
        Op::Load(_, place) => Some((place, false)),
        // Of which compilers make a load and a loop of exchanges.
        Op::Update(Some(_), _, How::Or, _) => None,
        Op::Store(place, _) | Op::Update(_, place, ..) | Op::Swap(_, _, place, ..) => Some((place, true)),
        _ => None,
    }
}

/// The number of Mazurkiewicz traces of a program of threads that do nothing but use memory; `None`: it does something else, or has more than
/// `most` states.
pub fn traces(program: &Program, most: usize) -> Option<u64> {
    let local = |op: &Op| matches!(op, Op::Set(..) | Op::Unless(..)) || used(*op).is_some();
    if program.wide || program.bodies.iter().any(|body| !body.ops.iter().all(local)) {
        return None;
    }
    let (state, steps) = (State::first(program), vec![0; program.bodies.len()]);
    let first = Traced { state, steps, order: BTreeMap::new() };
    let (mut seen, mut stack, mut found) = (HashSet::from([first.clone()]), vec![first], 0);
    while let Some(traced) = stack.pop() {
        if seen.len() > most {
            return None;
        }
        let mut moved = false;
        for thread in 0..traced.steps.len() {
            let at = traced.state.threads[thread].at;
            let Some(&op) = program.bodies[thread].ops.get(at) else { continue };
            let ((at, size), writes) = used(op).expect("a use");
            let (mut next, event) = (traced.clone(), (thread, traced.steps[thread]));
            next.state.step(program, thread);
            next.steps[thread] += 1;
            // Nobody can tell a comparison that fails from a load.
            let writes = match op {
                Op::Swap(done, ..) => next.state.threads[thread].own[done] != 0,
                _ => writes,
            };
            for byte in at..at + size {
                let order = next.order.entry(byte).or_insert_with(|| vec![(None, BTreeSet::new())]);
                match writes {
                    true => order.push((Some(event), BTreeSet::new())),
                    false => _ = order.last_mut().expect("what is there first").1.insert(event),
                }
            }
            moved = true;
            if seen.insert(next.clone()) {
                stack.push(next);
            }
        }
        found += u64::from(!moved);
    }
    Some(found)
}

impl State {
    fn first(program: &Program) -> State {
        let threads = vec![Thread::default(); program.bodies.len()];
        let mut first = State {
            memory: [0; BYTES],
            threads,
            owner: None,
            semaphore: program.posted,
            readers: 0,
            writer: None,
            event: 0,
            pipe: 0,
            waits: None,
        };
        for thread in 0..first.threads.len() {
            first.advance(program, thread);
        }
        first
    }

    fn outcome(&self, program: &Program) -> String {
        let over = |(thread, body): (&Thread, &super::program::Body)| thread.at == body.ops.len() && !thread.stands;
        if !self.threads.iter().zip(&program.bodies).all(over) {
            return HANG.into();
        }
        let bytes: String = self.memory.iter().map(|byte| format!("{byte:02x}")).collect();
        let own = self.threads.iter().flat_map(|thread| &thread.own[..TOLD]).map(|n| format!(" {n}"));
        format!("{bytes} {}{}", self.semaphore, own.collect::<String>())
    }

    fn load(&self, (at, size): (usize, usize)) -> u64 {
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(&self.memory[at..at + size]);
        u64::from_le_bytes(bytes)
    }

    fn store(&mut self, (at, size): (usize, usize), value: u64) {
        self.memory[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
    }

    fn value(&self, thread: usize, value: Val) -> u64 {
        match value {
            Val::Is(n) => n,
            Val::Own(own, more) => self.threads[thread].own[own].wrapping_add(more),
        }
    }

    /// The next step of a thread, with what is its own behind it; whether it can go on.
    fn step(&mut self, program: &Program, thread: usize) -> bool {
        if self.threads[thread].stands {
            return false;
        }
        let Some(&op) = program.bodies[thread].ops.get(self.threads[thread].at) else { return false };
        let mask = |size: usize| if size == 8 { u64::MAX } else { (1 << (8 * size)) - 1 };
        match op {
            Op::Load(own, place) => self.threads[thread].own[own] = self.load(place),
            Op::Store(place, value) => self.store(place, self.value(thread, value)),
            Op::Update(told, place, how, value) => {
                let (was, by) = (self.load(place), self.value(thread, value));
                self.store(
                    place,
                    match how {
                        How::Add => was.wrapping_add(by),
                        How::Or => was | by,
                        How::Exchange => by,
                    },
                );
                if let Some(own) = told {
                    self.threads[thread].own[own] = was;
                }
            }
            Op::Swap(done, found, place, expected, new) => {
                let (was, new) = (self.load(place), self.value(thread, new));
                let same = was == self.value(thread, expected) & mask(place.1);
                if same {
                    self.store(place, new);
                }
                self.threads[thread].own[done] = u64::from(same);
                self.threads[thread].own[found] = was;
            }
            Op::SwapWide(done, expected, new) => {
                let same = self.load((32, 8)) == expected[0] && self.load((40, 8)) == expected[1];
                if same {
                    self.store((32, 8), new[0]);
                    self.store((40, 8), new[1]);
                }
                self.threads[thread].own[done] = u64::from(same);
            }
            Op::Await(place) if self.load(place) == 0 => return false,
            Op::Sync(sync, own) => match self.sync(sync, thread) {
                Some(result) => self.threads[thread].own[own] = result,
                None => return false,
            },
            _ => {}
        }
        self.threads[thread].at += 1;
        self.advance(program, thread);
        true
    }

    /// What only the thread itself can tell.
    fn advance(&mut self, program: &Program, thread: usize) {
        loop {
            let at = self.threads[thread].at;
            self.threads[thread].at = match program.bodies[thread].ops.get(at) {
                Some(&Op::Set(own, value, keep, more, shift)) => {
                    let value = (self.value(thread, value) & keep | more) >> shift;
                    self.threads[thread].own[own] = value;
                    at + 1
                }
                Some(&Op::Unless(own, value, to)) if self.threads[thread].own[own] != value => to,
                Some(Op::Unless(..)) => at + 1,
                _ => return,
            };
        }
    }

    /// The result, where it need not wait.
    fn sync(&mut self, sync: Sync, thread: usize) -> Option<u64> {
        let (me, own) = (1_u64 << thread, 0);
        let free = self.writer.is_none();
        match sync {
            Sync::Lock if self.owner.is_some() => return None,
            Sync::TryLock if self.owner.is_some() => return Some(1),
            Sync::Lock | Sync::TryLock => self.owner = Some(thread),
            Sync::Unlock => self.owner = None,
            Sync::Post => self.semaphore += 1,
            Sync::Wait if self.semaphore == 0 => return None,
            Sync::TryWait if self.semaphore == 0 => return Some(1),
            Sync::Wait | Sync::TryWait => self.semaphore -= 1,
            Sync::Value => return Some(self.semaphore),
            Sync::Read if !free => return None,
            Sync::TryRead if !free => return Some(1),
            Sync::Read | Sync::TryRead => self.readers |= me,
            Sync::Write if !free || self.readers != 0 => return None,
            Sync::TryWrite if !free || self.readers != 0 => return Some(1),
            Sync::Write | Sync::TryWrite => self.writer = Some(thread),
            Sync::Release if self.writer == Some(thread) => self.writer = None,
            Sync::Release => self.readers &= !me,
            Sync::EventAdd => self.event += 1,
            Sync::EventTake if self.event == 0 => return None,
            Sync::EventTake => return Some(std::mem::take(&mut self.event)),
            Sync::Send => self.pipe += 1,
            Sync::Receive if self.pipe == 0 => return None,
            Sync::Receive => self.pipe -= 1,
            Sync::Meet => match self.waits.take() {
                Some(other) => self.threads[other].stands = false,
                None => {
                    self.waits = Some(thread);
                    self.threads[thread].stands = true;
                }
            },
            Sync::Yield => {}
        }
        Some(own)
    }
}
