//! Names of threads for people.

use std::collections::BTreeMap;

use super::look::{Process, Thread};
use super::wait::Party;
use crate::base::text::escape;

/// The names of all threads and processes that were looked at.
pub(super) struct Names {
    threads: BTreeMap<i32, String>,
    processes: BTreeMap<i32, String>,
}

impl Names {
    pub(super) fn of(processes: &[Process]) -> Names {
        let several = processes.len() > 1;
        let mut threads = BTreeMap::new();
        for process in processes {
            for thread in &process.threads {
                let (name, tid) = (label(process, thread), thread.tid);
                let first = tid == process.pid;
                let name = match (several, first) {
                    (true, true) => escape(&process.comm),
                    (true, false) => format!("{}/{name}", escape(&process.comm)),
                    (false, _) => name,
                };
                threads.insert(tid, format!("{name} ({tid})"));
            }
        }
        // A process with one thread is called as that is.
        let name = |p: &Process| match &p.threads[..] {
            [only] => threads.get(&only.tid).cloned().unwrap_or_default(),
            _ => format!("process {} ({})", p.pid, escape(&p.comm)),
        };
        let processes = processes.iter().map(|p| (p.pid, name(p))).collect();
        Names { threads, processes }
    }

    pub(super) fn thread(&self, tid: i32) -> String {
        self.threads.get(&tid).cloned().unwrap_or_else(|| format!("thread {tid}"))
    }

    pub(super) fn party(&self, party: &Party) -> String {
        match party {
            Party::Thread(tid) => self.thread(*tid),
            Party::Process(pid) => self.processes.get(pid).cloned().unwrap_or_else(|| format!("process {pid}")),
        }
    }
}

/// The name that it has been given, or the function that it was started in.
fn label(process: &Process, thread: &Thread) -> String {
    if thread.tid == process.pid {
        return "main".to_string();
    }
    if thread.comm != process.comm {
        return escape(&thread.comm);
    }
    let of_library = |symbol: &str| symbol.starts_with("std::") || symbol.starts_with("void std::");
    let own = thread.frames.iter().rev().filter(|place| !place.is_of_libc() && !of_library(&place.symbol));
    let function = own.filter_map(|place| place.symbol.split_once('+').filter(|(_, rest)| rest.contains('(')));
    function.map(|(name, _)| escape(name)).next().unwrap_or_else(|| "thread".to_string())
}
