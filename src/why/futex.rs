//! Waits in glibc: which lock, condition variable, semaphore, .. a futex word belongs to, and who could wake the thread.
//! It is told by the functions on the call stack, by the call's arguments and by what lies in memory, where that agrees.

use super::layout::{self, Glibc, Mutex, RwLock};
use super::look::{Process, Thread};
use super::proc::{self, Call};
use super::wait::{Enders, Party, Surroundings, Wait};

const COMMAND: u64 = 0x7f;
const WAIT: u64 = 0;
const LOCK_PI: u64 = 6;
const LOCK_PI2: u64 = 13;
const PRIVATE: u64 = 128;
/// No thread has a larger id (`PID_MAX_LIMIT` of the kernel).
const LARGEST_ID: u32 = 1 << 22;

/// A wait in futex(2) with these arguments.
pub(super) fn wait(process: &Process, thread: &Thread, args: &[u64; 6], around: &Surroundings) -> Wait {
    let at = Futex { process, thread, around, address: args[0], command: args[1] & COMMAND, args };
    let limited = args[3] != 0;
    let wait = at.wait().until(limited);
    match &thread.interrupted {
        Some(function) => wait.with(format!(
            "in a signal handler that has interrupted {function}, which may hold it: then nobody gives it back"
        )),
        None => wait,
    }
}

struct Futex<'a> {
    process: &'a Process,
    thread: &'a Thread,
    around: &'a Surroundings<'a>,
    address: u64,
    command: u64,
    args: &'a [u64; 6],
}

impl Futex<'_> {
    fn wait(&self) -> Wait {
        if self.process.memory.is_none() || self.process.libc.is_none() {
            return self.word("its C library is no glibc that is known here");
        }
        if let Some(wait) = self.join() {
            return wait;
        }
        if self.is_refused() {
            return Wait::new("pthread_mutex_lock", "a mutex that would close a circle", "", Enders::Only(Vec::new()))
                .with("the kernel has refused it (a circle, or an owner that is over), and glibc waits for ever then");
        }
        if self.is_lock() {
            return self.lock();
        }
        match self.function() {
            Some(name) if name.contains("cond_") || name.starts_with("cnd_") => self.condition(name),
            Some(name) if name.contains("sem_") => self.semaphore("sem_wait"),
            Some(name) if name.contains("rwlock") => self.rwlock(name),
            Some(name) if name.contains("barrier") => self.barrier(name),
            Some(name) if name.contains("once") => self.once(name),
            _ if self.looks_like_semaphore() => self.semaphore("sem_wait"),
            _ => self.word(""),
        }
    }

    fn memory(&self) -> Option<&crate::runtime::memory::ProcessMemory> {
        self.process.memory.as_ref()
    }

    /// The innermost function of glibc's threads that is on the stack.
    fn function(&self) -> Option<&str> {
        let known = |name: &&String| {
            let name = name.trim_start_matches('_');
            let known = ["pthread_", "sem_", "new_sem_", "mtx_", "cnd_", "thrd_", "call_once"];
            known.iter().any(|start| name.starts_with(start)) && !name.starts_with("pthread_create")
        };
        self.thread.functions.iter().take(8).find(known).map(|name| name.trim_start_matches('_'))
    }

    fn named(&self, address: u64) -> String {
        self.process.name_of(address)
    }

    /// Everybody who may reach the word: the other threads of the process, or the processes that share the memory.
    fn anybody(&self) -> Enders {
        let sharers = if self.args[1] & PRIVATE != 0 { None } else { sharers(self.process.pid, self.address) };
        match sharers {
            Some(pids) => Enders::Anybody(pids.into_iter().map(Party::Process).collect()),
            None => Enders::Anybody(vec![Party::Process(self.process.pid)]),
        }
    }

    fn word(&self, why: &str) -> Wait {
        let name = self.named(self.address);
        let wait = Wait::new(format!("futex({name})"), format!("the futex word {name}"), "woken by", self.anybody());
        if why.is_empty() {
            wait
        } else {
            wait.with(format!("what it belongs to is not known: {why}"))
        }
    }

    // ------------------------------------------------------------------------------------------------------ join

    /// The kernel clears the id of a thread that ends, and wakes who waits there; that is never private.
    fn join(&self) -> Option<Wait> {
        if self.args[1] & PRIVATE != 0 {
            return None;
        }
        let id = layout::thread_with_id_at(self.memory()?, self.address)?;
        let other = self.process.threads.iter().find(|t| t.own_tid == id)?;
        Some(Wait::new("pthread_join", "the end of", "", Enders::Only(vec![Party::Thread(other.tid)])))
    }

    // ----------------------------------------------------------------------------------------------------- locks

    /// It waits for a lock to be released: glibc's low-level lock is 2 while somebody waits; of robust mutexes and those that inherit
    /// priorities the word is the owner's id.
    fn is_lock(&self) -> bool {
        const WAITERS: u64 = 0x8000_0000;
        match self.command {
            LOCK_PI | LOCK_PI2 => true,
            WAIT => self.args[2] == 2 || self.args[2] & WAITERS != 0,
            _ => self.function().is_some_and(|name| name.contains("mutex") || name.starts_with("mtx_")),
        }
    }

    /// The kernel finds circles of mutexes that inherit priorities, and refuses the last one with EDEADLK; glibc then waits on a word of
    /// its own, 0, for ever (`__pthread_mutex_lock_full`).
    fn is_refused(&self) -> bool {
        let waits = !matches!(self.command, LOCK_PI | LOCK_PI2) && self.args[2] == 0 && self.args[3] == 0;
        waits && self.function().is_some_and(|name| name.starts_with("pthread_mutex_lock"))
    }

    fn lock(&self) -> Wait {
        let function = self.function();
        let of_mutex = function.is_some_and(|f| f.contains("mutex") || f.starts_with("mtx_") || f.contains("cond_"));
        let mutex = self.memory().and_then(|memory| Mutex::read(memory, self.address));
        let name = self.named(self.address);
        match mutex {
            Some(mutex) if of_mutex || self.looks_like(&mutex) => {
                let again = function.is_some_and(|f| f.contains("cond_"));
                let call = match function {
                    Some(function) if again => format!("{function}, woken, takes {name} again"),
                    Some(function) if of_mutex => format!("{function}({name})"),
                    _ => format!("pthread_mutex_lock({name})"),
                };
                let wait = |enders| Wait::new(call, format!("{} {name}", mutex.attributes()), "held by", enders);
                match self.holder(mutex.holder()) {
                    Holder::Thread(tid) => wait(Enders::Only(vec![Party::Thread(tid)])),
                    Holder::Over(id) => wait(Enders::Only(Vec::new()))
                        .with(format!("held by thread {id}, which is over: it ended without releasing it")),
                    Holder::None => wait(Enders::Unknown("it names no owner".into())),
                    Holder::Damaged(id) => wait(Enders::Unknown(format!(
                        "as its owner it has {id}, which is no thread: its memory is damaged, or it is no mutex"
                    ))),
                }
            }
            _ => self.internal_lock(&name),
        }
    }

    /// Memory that could be a mutex that the thread waits for.
    fn looks_like(&self, mutex: &Mutex) -> bool {
        mutex.lock != 0 && mutex.kind < 1024 && matches!(self.holder(mutex.holder()), Holder::Thread(_))
    }

    /// The owner, which a lock has by its id in the namespace of its process.
    fn holder(&self, id: u32) -> Holder {
        if id == 0 {
            return Holder::None;
        }
        if id > LARGEST_ID {
            return Holder::Damaged(id);
        }
        if let Some(own) = self.process.threads.iter().find(|thread| thread.own_tid == id) {
            return Holder::Thread(own.tid);
        }
        // It may have begun after the first look.
        if let Some(new) =
            proc::threads(self.process.pid).into_iter().find(|&tid| proc::own_id(self.process.pid, tid) == id)
        {
            return Holder::Thread(new);
        }
        let Some(sharers) = sharers(self.process.pid, self.address).filter(|_| self.args[1] & PRIVATE == 0) else {
            return Holder::Over(id);
        };
        let of_other = |pid: &i32| *pid != self.process.pid && proc::threads(*pid).contains(&(id as i32));
        if self.process.same_pids {
            return if sharers.iter().any(of_other) { Holder::Thread(id as i32) } else { Holder::Over(id) };
        }
        let others = self.around.processes.iter().filter(|p| sharers.contains(&p.pid)).flat_map(|p| &p.threads);
        others.into_iter().find(|t| t.own_tid == id).map_or(Holder::Over(id), |t| Holder::Thread(t.tid))
    }

    /// A lock that belongs to libc itself: a stream's, which has its owner, or another, which has none.
    fn internal_lock(&self, name: &str) -> Wait {
        let call = self.thread.functions.first().cloned().unwrap_or_else(|| "futex".into());
        let owner = self.memory().and_then(|memory| layout::owner_of_stream(memory, self.address));
        if let Some(Holder::Thread(tid)) = owner.map(|id| self.holder(id)) {
            let object = format!("the lock of a stream, {name}");
            return Wait::new(call, object, "held by", Enders::Only(vec![Party::Thread(tid)]));
        }
        if !self.in_libc() {
            return self.word("");
        }
        let wait = Wait::new(call, format!("a lock inside of libc, {name}"), "held by", self.anybody());
        wait.with("who has it is not known: such locks have no owner")
    }

    /// libc itself waits: not the program, by the function `syscall`.
    fn in_libc(&self) -> bool {
        let Call::Blocked { pc, .. } = self.thread.mark.call else { return false };
        let at = self.process.modules.locate(pc);
        (at.module.starts_with("libc.so.6") || self.process.libc == Some(Glibc::Static))
            && at.function.as_deref() != Some("syscall")
    }

    // ------------------------------------------------------------------------------------------------ the others

    fn condition(&self, function: &str) -> Wait {
        let version = self.process.libc.unwrap_or(Glibc::Static);
        let names: Vec<String> =
            layout::conditions_of(self.address, version).into_iter().map(|start| self.named(start)).collect();
        // One at which a variable begins.
        let name = names.iter().find(|name| !name.contains("+0x")).or(names.first()).cloned().unwrap_or_default();
        let wait = Wait::new(
            format!("{function}({name})"),
            format!("a signal on condition variable {name}"),
            "to be signalled by",
            self.anybody(),
        );
        wait.with("who is to signal it cannot be known")
    }

    fn semaphore(&self, function: &str) -> Wait {
        let name = self.named(self.address);
        let value = self.memory().and_then(|memory| layout::semaphore(memory, self.address));
        // A handler may post it, which only the process's own signals tell of.
        let enders = match proc::catches_signals(self.process.pid) {
            true => Enders::Unknown("which thread or signal handler is to post it cannot be known".into()),
            false => self.anybody(),
        };
        let wait = Wait::new(format!("{function}({name})"), format!("semaphore {name}"), "to be posted by", enders);
        match value {
            Some(value) => wait.with(format!("value {value}; who is to post it cannot be known")),
            None => wait,
        }
    }

    /// A `sem_t` of value 0 that somebody waits for: value, waiters, and whether it is shared (0, or FUTEX_PRIVATE_FLAG).
    fn looks_like_semaphore(&self) -> bool {
        const MOST_WAITERS: u32 = 1 << 16;
        let word = |at: u64| self.memory().and_then(|memory| layout::word(memory, self.address.wrapping_add(at)));
        let values = [word(0), word(4), word(8)];
        matches!(values, [Some(0), Some(1..MOST_WAITERS), Some(0 | 128)]) && self.args[2] == 0
    }

    fn rwlock(&self, function: &str) -> Wait {
        let [readers, phase, writers] = RwLock::WORDS;
        let behind = match (self.address.is_multiple_of(8), self.args[2]) {
            (false, _) => writers,
            (true, ..=3) => phase,
            (true, _) => readers,
        };
        let start = self.address.wrapping_sub(behind);
        let name = self.named(start);
        let wait = |enders| Wait::new(format!("{function}({name})"), format!("rwlock {name}"), "held by", enders);
        let Some(lock) = self.memory().and_then(|memory| RwLock::read(memory, start)) else {
            return wait(Enders::Unknown("it cannot be read".into()));
        };
        match self.holder(lock.writer) {
            Holder::Thread(tid) => wait(Enders::Only(vec![Party::Thread(tid)])).with("held for writing"),
            Holder::Over(id) => wait(Enders::Only(Vec::new()))
                .with(format!("held for writing by thread {id}, which is over: it ended without releasing it")),
            Holder::Damaged(id) => wait(Enders::Unknown(format!("as its writer it has {id}, which is no thread"))),
            Holder::None => {
                let readers = if lock.readers == 1 { "1 reader".into() } else { format!("{} readers", lock.readers) };
                wait(self.anybody()).with(format!("{readers}; who reads is not known"))
            }
        }
    }

    fn barrier(&self, function: &str) -> Wait {
        let found = self.memory().and_then(|memory| layout::barrier(memory, self.address));
        let Some((start, count, come)) = found else { return self.word("it is no barrier that makes sense") };
        let name = self.named(start);
        let wait =
            Wait::new(format!("{function}({name})"), format!("barrier {name}"), "to be reached by", self.anybody());
        wait.with(format!("{come} of {count} threads are there"))
    }

    fn once(&self, function: &str) -> Wait {
        let name = self.named(self.address);
        let runs = |t: &&Thread| {
            t.tid != self.thread.tid
                && t.functions.iter().skip(3).any(|f| f.contains("pthread_once") || f.contains("call_once"))
        };
        let enders = match self.process.threads.iter().find(runs) {
            Some(other) => Enders::Only(vec![Party::Thread(other.tid)]),
            None => self.anybody(),
        };
        Wait::new(format!("{function}({name})"), format!("the initialization {name}"), "run by", enders)
    }
}

/// Who has a lock.
enum Holder {
    None,
    Thread(i32),
    /// A thread that is not there.
    Over(u32),
    /// Something that is no thread's id.
    Damaged(u32),
}

/// The processes that have the memory at `address` of process `pid` mapped, if it is shared; that process among them.
fn sharers(pid: i32, address: u64) -> Option<Vec<i32>> {
    let maps = |pid: i32| std::fs::read(format!("/proc/{pid}/maps")).ok();
    let text = maps(pid)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let (device, inode) = text.lines().find_map(|line| shared_at(line, address))?;
    let pattern = format!(" {device} {inode} ");
    let has = |other: &i32| *other == pid || maps(*other).is_some_and(|text| contains(&text, pattern.as_bytes()));
    Some(proc::numbers("/proc")?.into_iter().filter(has).collect())
}

fn contains(text: &[u8], pattern: &[u8]) -> bool {
    text.windows(pattern.len()).any(|window| window == pattern)
}

/// Device and inode of a line of `maps`, if `address` lies there and the memory is shared.
fn shared_at(line: &str, address: u64) -> Option<(&str, &str)> {
    let mut fields = line.split_ascii_whitespace();
    let (from, to) = fields.next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let inside = number(from)? <= address && address < number(to)?;
    let shared = fields.next()?.ends_with('s');
    (inside && shared).then_some((fields.nth(1)?, fields.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_by_its_line() {
        let line = "7f00-7f10 rw-s 00000000 00:01 1234                       /dev/zero (deleted)";
        assert_eq!(shared_at(line, 0x7f08), Some(("00:01", "1234")));
        assert_eq!(shared_at(line, 0x7f10), None);
        assert_eq!(shared_at(&line.replace("rw-s", "rw-p"), 0x7f08), None);
        assert_eq!(shared_at("", 1), None);
    }
}
