//! Numbers that mean the same in every execution. Traces name threads, processes and objects by their places in the tables
//! of one execution, which depend on the order of creation and of first use. A search that compares operations of
//! different executions goes by names: threads by their paths of creation, processes by their first threads, objects by
//! where they live.

use std::collections::BTreeMap;

use vsrun_model::kind::Renaming;
use vsrun_model::object::SHARED;
use vsrun_model::{Act, Uid, NONE};

use crate::trace::Trace;

/// Numbers by name, given out as they come.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub(super) threads: BTreeMap<Uid, u32>,
    /// (space, kind, address)
    pub(super) objects: BTreeMap<(u32, u8, u64), u32>,
}

/// What the numbers of one trace mean.
#[derive(Debug)]
pub struct Canon {
    threads: Vec<u32>,
    processes: Vec<u32>,
    objects: Vec<u32>,
}

impl Names {
    /// The number of a thread.
    fn thread(&mut self, uid: Uid) -> u32 {
        let next = self.threads.len() as u32;
        *self.threads.entry(uid).or_insert(next)
    }

    /// The translation for a trace.
    pub fn of(&mut self, trace: &Trace) -> Canon {
        let threads: Vec<u32> = trace.threads.iter().map(|&uid| self.thread(uid)).collect();
        let process = |p: u32| {
            let main = trace.processes.get(p as usize).copied().unwrap_or(NONE);
            threads.get(main as usize).copied().unwrap_or(NONE)
        };
        let processes: Vec<u32> = (0..trace.processes.len() as u32).map(process).collect();
        let names = &mut self.objects;
        let object = |key: &vsrun_model::Key| {
            let space = if key.space & SHARED != 0 { key.space } else { process(key.space) };
            let next = names.len() as u32;
            *names.entry((space, key.kind.0, key.addr)).or_insert(next)
        };
        let objects = trace.objects.iter().map(object).collect();
        Canon { threads, processes, objects }
    }
}

impl Canon {
    /// The operation with numbers that mean the same in every execution.
    pub fn act(&self, act: &Act) -> Act {
        let from = |table: &[u32], i: u32| table.get(i as usize).copied().unwrap_or(i);
        act.renamed(&Renaming {
            thread: &|t| from(&self.threads, t),
            process: &|p| from(&self.processes, p),
            object: &|o| from(&self.objects, o),
        })
    }
}
