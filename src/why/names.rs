//! Names of threads for people.

use std::collections::BTreeMap;

use super::look::{Process, Thread};
use super::wait::Party;
use crate::base::text::escape;
use crate::finding::PlaceView;

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
    let own = thread.frames.iter().rev().filter(|place| !place.is_of_libc());
    own.filter_map(started_in).next().unwrap_or_else(|| "thread".to_string())
}

/// The function of a frame without its arguments, also if it was inlined into one of a library; a lambda by its line.
fn started_in(place: &PlaceView) -> Option<String> {
    let named = |name: &str| {
        let name = name.split('(').next().unwrap_or_default();
        (!name.is_empty() && !name.contains("std::")).then(|| escape(name))
    };
    if let Some(line) = place.lines.iter().rev().find(|line| !line.is_of_library() && !line.function.is_empty()) {
        return match line.function.as_str() {
            "operator()" => Some(format!("lambda {}:{}", escape(&line.name), line.line)),
            function => named(function),
        };
    }
    let (function, rest) = place.symbol.rsplit_once('+')?;
    rest.contains('(').then(|| named(function))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::LineView;

    #[test]
    fn threads_are_called_by_the_function_that_they_begin_in() {
        let line = |function: &str, file: &str| LineView {
            function: function.into(),
            file: file.into(),
            name: "a.cc".into(),
            line: 8,
            text: None,
        };
        let place = |symbol: &str, lines: &[LineView]| PlaceView { lines: lines.to_vec(), ..symbol.into() };
        let run = "std::thread::_State_impl<void>::_M_run()+0x12 (prog)";
        let header = line("__invoke", "/usr/include/c++/12/bits/invoke.h");
        assert_eq!(started_in(&place("worker+0x2d (prog)", &[])).as_deref(), Some("worker"));
        assert_eq!(started_in(&place("Pool::run(Pool&)+0x2d (prog)", &[])).as_deref(), Some("Pool::run"));
        assert_eq!(started_in(&place(run, &[])), None);
        assert_eq!(started_in(&place("prog+0x123", &[])), None);
        let inlined = [line("Pool::run(Pool&)", "/a.cc"), header.clone()];
        assert_eq!(started_in(&place(run, &inlined)).as_deref(), Some("Pool::run"));
        let lambda = [line("operator()", "/a.cc"), header];
        assert_eq!(started_in(&place(run, &lambda)).as_deref(), Some("lambda a.cc:8"));
    }
}
