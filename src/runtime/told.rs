//! From where in the program each transition is made, in an execution that is looked at: whoever makes one stops itself just before
//! (`Control::told_from`), and its call stack is kept. What lies at these addresses is found when the execution is over.
//!
//! NOTE [Cost] Executions that are not looked at make one comparison more for each transition that was decided on.

use std::collections::BTreeMap;
use std::sync::Arc;

use vsrun_model::Arena;

use super::inspect::{frames, Inspector};
use super::memory::ProcessMemory;
use super::tracee::Stopped;
use super::unwind::{Regs, Unwinder};
use crate::binary::{Mapping, Modules};
use crate::finding::{Finding, PlaceView};
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
}

/// What is seen of the execution that runs.
#[derive(Default)]
pub(super) struct Told {
    from: u64,
    /// So many are told; `None`: [`MOST`].
    most: Option<u64>,
    seen: BTreeMap<usize, Made>,
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
        self.seen.clear();
        self.from = match self.most.unwrap_or(MOST) {
            0 => 0,
            most => (schedule.prefix.len() as u64).saturating_sub(most) + 1,
        };
    }

    /// The first transition that is told, from 1; 0: none is.
    pub fn from(&self) -> u64 {
        self.from
    }

    /// What was seen, by the index of the step.
    pub fn take(&mut self) -> BTreeMap<usize, Made> {
        self.from = 0;
        std::mem::take(&mut self.seen)
    }

    /// A process of the execution has stopped before the transition that was decided on last. False: no more of them are needed.
    pub fn sees(&mut self, stopped: &Stopped, arena: &Arena) -> bool {
        let world = &arena.world;
        let thread = world.threads.get(world.current);
        let last = arena.trace().last().zip(thread).filter(|(step, thread)| step.act.uid == thread.uid);
        if let (Some((_, thread)), Some((map, stack))) = (last, self.stack(stopped)) {
            let made = Made { map, stack, site: thread.fiber.place };
            self.seen.insert(arena.trace().len() - 1, made);
        }
        (self.seen.len() as u64) < self.most.unwrap_or(MOST).saturating_mul(2)
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

impl Inspector {
    /// The steps of an execution get the places that they were made from.
    pub(super) fn show_steps(&mut self, seen: BTreeMap<usize, Made>, found: &mut Finding) {
        let mut maps: Vec<(Map, Modules)> = Vec::new();
        let mut known: BTreeMap<(usize, Vec<u64>), Option<PlaceView>> = BTreeMap::new();
        for (n, made) in seen {
            let Some(step) = found.steps.get_mut(n) else { continue };
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
            let place = known.entry((map, stack)).or_insert_with_key(|(_, stack)| {
                let frames = frames(stack, modules);
                PlaceView::of_program(&frames).cloned()
            });
            step.at.clone_from(place);
        }
    }
}
