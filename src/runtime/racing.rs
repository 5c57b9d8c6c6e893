//! What is said of accesses to watched memory that nothing orders, and of what was not seen of an execution.

use vsrun_model::library::FUNCTIONS;
use vsrun_model::object::SHARED;
use vsrun_model::watch::Entry;
use vsrun_model::{Kind, Op};

use super::outcome::Outcome;
use super::watched::Watched;
use super::worker::Worker;
use crate::race::{Access, Overtaking, Race, Touch};

impl Worker {
    /// The races of an execution, a line each.
    pub fn races(&self, outcome: &Outcome) -> Vec<String> {
        let Some(watched) = &self.watched else { return Vec::new() };
        outcome.races.iter().map(|race| watched.race(race)).collect()
    }

    /// A line about a load that x86 may let come before a store, the same for the same instructions.
    pub fn overtaking(&self, pair: &Overtaking) -> Option<String> {
        let watched = self.watched.as_ref()?;
        let of = |op: &Op| match op.kind {
            Kind::MEM_READ | Kind::MEM_WRITE | Kind::MEM_WAIT => watched.instruction(op.arg as u32),
            kind => kind.row().name.to_string(),
        };
        let (store, load) = (of(&pair.store), of(&pair.load));
        Some(format!(
            "no fence: the load at {load} may come before what was stored at {store} is visible to others; a fence between the two \
             (mfence, atomic_thread_fence(memory_order_seq_cst)) or a locked store (xchg, memory_order_seq_cst) forbids that"
        ))
    }

    /// What of the execution last run was not seen though memory is watched, if anything.
    pub fn unseen_memory(&self) -> Option<String> {
        self.watched.as_ref()?;
        if self.arena.records_lost > 0 {
            return Some("more was done to memory than vsrun can record: the rest is not looked at".into());
        }
        if self.arena.control.watching.wide > 0 {
            return Some(
                "one instruction, function of libc or system call used several words of memory that others use meanwhile, or one whose address is in memory itself: that was one step, \
                 others coming in between was not explored"
                    .into(),
            );
        }
        let (times, first) = self.later_code()?;
        Some(format!("not watched: {first} (and what is like it, {times} times in one execution; docs/WATCHING.md says what is not watched)"))
    }
}

impl Watched {
    /// The place of a site, or the function of libc, with that number.
    fn instruction(&self, number: u32) -> String {
        if number & Entry::FUNCTION != 0 && number & Entry::CALL != 0 {
            let name = vsrun_model::calls::name(i64::from(number & !(Entry::FUNCTION | Entry::CALL)));
            return format!("the system call {}", name.unwrap_or("?"));
        }
        if number & Entry::FUNCTION != 0 {
            let function = FUNCTIONS.get((number & !Entry::FUNCTION) as usize);
            return function.map_or("a function of libc", |function| function.name).to_string();
        }
        let site = self.site(number as usize);
        site.map_or("?".to_string(), |(module, at)| self.places.describe(at.wrapping_add(module.bias)))
    }

    /// One line about two accesses that nothing orders, the same for the same instructions and variable.
    fn race(&self, race: &Race) -> String {
        let verb = |access: &Access| match (access.write, access.locked) {
            (true, true) => "atomic update",
            (true, false) => "write",
            (false, _) => "read",
        };
        let access = |touch: &Touch| {
            let a = &touch.access;
            let bytes = if a.size == 1 { "byte" } else { "bytes" };
            format!("{} of {} {bytes} at {}", verb(a), a.size, self.instruction(a.site))
        };
        let mut both = [access(&race.first), access(&race.second)];
        both.sort();
        let at = race.second.access;
        let place = match at.space & SHARED {
            // What the program has mapped since its root is of no module.
            0 if self.places.mapping(at.address).is_none() => "memory that the program has allocated".to_string(),
            0 => self.places.object_name(at.address).unwrap_or_else(|| self.places.region(at.address)),
            _ => "shared memory".to_string(),
        };
        format!("race on {place}: {} and {}", both[0], both[1])
    }
}
