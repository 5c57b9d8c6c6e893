//! From where in the program each transition is made, in an execution that is looked at: whoever makes one stops itself just before
//! (`Control::told_from`), and its call stack is kept. What lies at these addresses is found when the execution is over. Functions that are
//! called from several places of these stacks are told with the call by which they were reached.
//!
//! NOTE [Cost] Executions that are not looked at make one comparison more for each transition that was decided on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vsrun_model::Arena;

use super::inspect::{frames, Inspector};
use super::memory::ProcessMemory;
use super::stands::{Numbers, Origins};
use super::tracee::Stopped;
use super::unwind::{Regs, Unwinder};
use crate::binary::{Mapping, Modules};
use crate::finding::{Finding, LineView, PlaceView};
use crate::schedule::Schedule;

/// Transitions of an execution that are told, the last ones. A stop and a call stack take some 0.1 ms.
const MOST: u64 = 2000;
/// Frames of a call stack that are kept: the outer ones are not needed.
const FRAMES: usize = 24;

/// The memory map of a process at one time.
type Map = Arc<(Vec<u8>, Vec<Mapping>)>;

/// What is known of one transition.
pub(super) struct Made {
    map: Map,
    /// Return addresses, from the innermost; the first is where the process stood.
    stack: Vec<u64>,
    /// Of a use of memory that is an operation: one more than the number of its site; 0 of others.
    site: u32,
    /// Of an operation on numbers of descriptors.
    numbers: Option<Numbers>,
}

/// What was seen of an execution.
#[derive(Default)]
pub(super) struct Seen {
    /// By the index of the step.
    steps: BTreeMap<usize, Made>,
    origins: Origins,
}

/// What is seen of the execution that runs.
#[derive(Default)]
pub(super) struct Told {
    from: u64,
    /// So many are told; `None`: [`MOST`].
    most: Option<u64>,
    seen: Seen,
    /// The last map of all.
    last: Option<Map>,
    unwinder: Unwinder,
}

impl Told {
    /// So many of the last transitions are told from the next execution on; 0: none is. `None`: as many as usual.
    pub fn tell_last(&mut self, most: Option<u64>) {
        self.most = most;
    }

    /// An execution begins.
    pub fn begin(&mut self, schedule: &Schedule) {
        self.seen = Seen::default();
        self.from = match self.most.unwrap_or(MOST) {
            0 => 0,
            most => (schedule.prefix.len() as u64).saturating_sub(most) + 1,
        };
    }

    /// The first transition that is told, from 1; 0: none is.
    pub fn from(&self) -> u64 {
        self.from
    }

    /// What was seen.
    pub fn take(&mut self) -> Seen {
        self.from = 0;
        std::mem::take(&mut self.seen)
    }

    /// A process of the execution has stopped before the transition that was decided on last. False: no more of them are needed.
    pub fn sees(&mut self, stopped: &Stopped, arena: &Arena) -> bool {
        let world = &arena.world;
        let thread = world.threads.get(world.current);
        let last = arena.trace().last().zip(thread).filter(|(step, thread)| step.act.uid == thread.uid);
        if let (Some((step, thread)), Some((map, stack))) = (last, self.stack(stopped)) {
            let numbers = Numbers::of(step, world, stopped);
            let made = Made { map, stack, site: thread.fiber.place, numbers };
            let n = arena.trace().len() - 1;
            let first = self.seen.steps.is_empty();
            self.seen.origins.see(world, n as u64, first);
            self.seen.steps.insert(n, made);
        }
        (self.seen.steps.len() as u64) < self.most.unwrap_or(MOST).saturating_mul(2)
    }

    fn stack(&mut self, stopped: &Stopped) -> Option<(Map, Vec<u64>)> {
        let regs = stopped.regs().ok()?;
        let memory = ProcessMemory::open(stopped.pid()).ok()?;
        let text = std::fs::read(format!("/proc/{}/maps", stopped.pid())).ok()?;
        let map = match self.last.take().filter(|last| last.0 == text) {
            Some(last) => last,
            None => {
                let mappings = Mapping::parse_all(&text);
                Arc::new((text, mappings))
            }
        };
        let stack = self.unwinder.backtrace(&map.1, &memory, Regs::from(&regs), FRAMES);
        self.last = Some(Arc::clone(&map));
        Some((map, stack))
    }
}

/// Which functions are called from where in an execution, by the lines of call stacks.
#[derive(Default)]
struct Callers(BTreeMap<(String, String), BTreeSet<(String, u32)>>);

impl Callers {
    /// Takes account of a stack, from the inside out.
    fn learn(&mut self, calls: &[LineView]) {
        for pair in calls.windows(2) {
            let function = (pair[0].function.clone(), pair[0].file.clone());
            self.0.entry(function).or_default().insert((pair[1].file.clone(), pair[1].line));
        }
    }

    /// The call that tells how its innermost line was reached: outside all functions that have several callers or stand in a header. `None`: it
    /// is in none.
    fn told<'a>(&self, calls: &'a [LineView]) -> Option<&'a LineView> {
        let several = |line: &LineView| {
            let function = (line.function.clone(), line.file.clone());
            line.name.ends_with(".h") || self.0.get(&function).is_some_and(|callers| callers.len() > 1)
        };
        let outside = calls.iter().position(|line| !several(line)).unwrap_or(calls.len().saturating_sub(1));
        calls.get(outside).filter(|_| outside > 0)
    }
}

/// A place in the program, and the calls that led there.
type PlaceAndCalls = (PlaceView, Vec<LineView>);

/// The place in the program's own code of a call stack, and the lines of its calls from there.
fn own_place(frames: &[PlaceView]) -> Option<(usize, Vec<LineView>)> {
    let place = PlaceView::of_program(frames)?;
    let at = frames.iter().position(|frame| std::ptr::eq(frame, place))?;
    Some((at, place.calls(&frames[at + 1..]).cloned().collect()))
}

impl Inspector {
    /// The steps of an execution get the places that they were made from, and what the descriptors stand for that they use.
    pub(super) fn show_steps(&mut self, seen: Seen, found: &mut Finding) {
        let Seen { steps, origins } = seen;
        let mut maps: Vec<(Map, Modules)> = Vec::new();
        let mut known: BTreeMap<(usize, Vec<u64>), Option<PlaceAndCalls>> = BTreeMap::new();
        let mut stacks = Vec::new();
        for (n, made) in steps {
            let Some(step) = found.steps.get(n) else { continue };
            if let Some(numbers) = &made.numbers {
                let text = numbers.tell((step.text.clone(), &step.op), &origins, found);
                found.steps[n].text = text;
            }
            let map = match maps.iter().position(|(map, _)| Arc::ptr_eq(map, &made.map)) {
                Some(map) => map,
                None => {
                    let modules = Modules::parse(&made.map.0, &mut self.symbols);
                    maps.push((made.map, modules));
                    maps.len() - 1
                }
            };
            let modules = &maps[map].1;
            let site = (made.site as usize).checked_sub(1).and_then(|site| self.sites.get(site));
            let stack = site.map_or(made.stack, |&site| vec![site]);
            known.entry((map, stack.clone())).or_insert_with_key(|(_, stack)| {
                let frames = frames(stack, modules);
                own_place(&frames).map(|(at, calls)| (frames[at].clone(), calls))
            });
            stacks.push((n, (map, stack)));
        }
        let standing: Vec<_> = found.threads.iter().map(|thread| own_place(&thread.frames)).collect();
        let mut callers = Callers::default();
        let calls = known.values().flatten().map(|(_, calls)| calls);
        calls.chain(standing.iter().flatten().map(|(_, calls)| calls)).for_each(|calls| callers.learn(calls));
        known.values_mut().flatten().for_each(|(place, calls)| place.from = callers.told(calls).cloned());
        for (n, stack) in stacks {
            found.steps[n].at = known[&stack].as_ref().map(|(place, _)| place.clone());
        }
        for (thread, place) in found.threads.iter_mut().zip(&standing) {
            if let Some((at, calls)) = place {
                thread.frames[*at].from = callers.told(calls).cloned();
            }
        }
        origins.show(found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_with_several_callers_is_told_with_the_call_outside_of_it() {
        let line = |function: &str, line| LineView { function: function.into(), line, ..LineView::default() };
        let stacks = [
            vec![line("change", 3), line("wait", 7), line("enter", 9), line("picker", 20), line("main", 30)],
            vec![line("change", 3), line("wait", 7), line("sensors", 21), line("main", 31)],
            vec![line("change", 3), line("signal", 8), line("belt", 22), line("main", 32)],
            vec![line("round", 5), line("main", 30)],
            vec![line("round", 5), line("round", 6), line("main", 30)],
        ];
        let mut callers = Callers::default();
        stacks.iter().for_each(|stack| callers.learn(stack));
        let told = |stack: &[LineView]| callers.told(stack).map(|line| (line.function.clone(), line.line));
        let expected =
            [Some(("enter", 9)), Some(("sensors", 21)), Some(("signal", 8)), Some(("main", 30)), Some(("main", 30))];
        for (stack, expected) in stacks.iter().zip(expected) {
            assert_eq!(told(stack), expected.map(|(function, line)| (function.to_string(), line)));
        }
        assert_eq!(told(&stacks[0][3..]), None, "picker has one caller");
        let in_header = LineView { name: "vs.h".into(), ..line("toss", 9) };
        assert_eq!(told(&[in_header, line("picker", 20)]), Some(("picker".to_string(), 20)));
        assert_eq!(told(&[]), None);
    }
}
