//! What `c-tests/lock_free.expect` pins are the numbers of Mazurkiewicz traces of these structures: counted here by brute force over the same
//! algorithms as small models, which know nothing of vsrun. An execution is a total order of uses of memory; two are one trace if each place
//! in memory is used in the same order, but for reads between two writes.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

type At = u64;

/// What a thread does next.
#[derive(Clone, Copy)]
enum Use {
    Load(At),
    Store(At, u64),
    Add(At, u64),
    /// Expected and new.
    Swap(At, u64, u64),
    /// A load, once there is something else.
    Differs(At, u64),
    Lock(At),
    Unlock(At),
}

/// A thread, followed again and again: with what its uses of memory have found so far, up to the next one.
struct Run<'a> {
    found: &'a [u64],
    at: usize,
    next: Option<Use>,
}

impl Run<'_> {
    fn go(&mut self, next: Use) -> Option<u64> {
        let found = self.found.get(self.at).copied();
        self.at += 1;
        if found.is_none() {
            self.next = Some(next);
        }
        found
    }

    fn load(&mut self, at: At) -> Option<u64> {
        self.go(Use::Load(at))
    }

    fn store(&mut self, at: At, value: u64) -> Option<u64> {
        self.go(Use::Store(at, value))
    }

    /// Whether it was done, and what was there.
    fn swap(&mut self, at: At, expected: u64, new: u64) -> Option<(bool, u64)> {
        self.go(Use::Swap(at, expected, new)).map(|found| (found == expected, found))
    }

    /// A loop that waits: so many rounds that find what it does not want are seen, then it waits until there is something else.
    fn until(&mut self, at: At, rounds: u32, wanted: impl Fn(u64) -> bool) -> Option<u64> {
        let mut found = self.load(at)?;
        for _ in 1..rounds {
            if !wanted(found) {
                found = self.load(at)?;
            }
        }
        while !wanted(found) {
            found = self.go(Use::Differs(at, found))?;
        }
        Some(found)
    }
}

/// A thread's code, by its number.
type Code = fn(&mut Run, u64) -> Option<()>;

/// A step of a thread: which, and how many it has made before.
type Event = (usize, usize);
/// Of a place: who wrote it, and who has read that, in the order in which they were.
type Order = BTreeMap<At, Vec<(Option<Event>, BTreeSet<Event>)>>;

/// One state of one trace.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    found: Vec<Vec<u64>>,
    memory: BTreeMap<At, u64>,
    order: Order,
}

impl State {
    /// The state behind the next step of a thread; `None`: there is none, or it has to wait.
    fn after(&self, code: Code, thread: usize) -> Option<State> {
        let mut run = Run { found: &self.found[thread], at: 0, next: None };
        let _ = code(&mut run, thread as u64);
        let next = run.next?;
        let mut state = self.clone();
        let there = |at: At| self.memory.get(&at).copied().unwrap_or(0);
        let (at, found, new) = match next {
            Use::Load(at) => (at, there(at), None),
            Use::Differs(at, old) if there(at) == old => return None,
            Use::Differs(at, _) => (at, there(at), None),
            Use::Store(at, value) => (at, 0, Some(value)),
            Use::Add(at, by) => (at, there(at), Some(there(at) + by)),
            // Nobody can tell one that fails from a load.
            Use::Swap(at, expected, new) => (at, there(at), Some(new).filter(|_| there(at) == expected)),
            Use::Lock(at) if there(at) != 0 => return None,
            Use::Lock(at) => (at, 0, Some(1)),
            Use::Unlock(at) => (at, 0, Some(0)),
        };
        let event = (thread, self.found[thread].len());
        let order = state.order.entry(at).or_insert_with(|| vec![(None, BTreeSet::new())]);
        match new {
            Some(value) => {
                order.push((Some(event), BTreeSet::new()));
                state.memory.insert(at, value);
            }
            None => _ = order.last_mut().expect("its first contents").1.insert(event),
        }
        state.found[thread].push(found);
        Some(state)
    }
}

/// How many traces there are.
fn traces(code: Code, threads: usize, memory: &[(At, u64)]) -> usize {
    let first =
        State { found: vec![Vec::new(); threads], memory: memory.iter().copied().collect(), order: Order::new() };
    let (mut seen, mut stack, mut ends) = (HashSet::from([first.clone()]), vec![first], 0);
    while let Some(state) = stack.pop() {
        let next: Vec<_> = (0..threads).filter_map(|thread| state.after(code, thread)).collect();
        ends += usize::from(next.is_empty());
        stack.extend(next.into_iter().filter(|next| seen.insert(next.clone())));
    }
    ends
}

// Places in memory. Nodes are at 100, 110, ..: what follows them, and what they hold.
const A: At = 1;
const B: At = 2;
const C: At = 3;
const D: At = 4;
const fn node(n: u64) -> At {
    100 + 10 * n
}

fn ticket(t: &mut Run, _: u64) -> Option<()> {
    let mine = t.go(Use::Add(A, 1))?;
    t.until(B, 1, |served| served == mine)?;
    for at in [C, D] {
        let work = t.load(at)?;
        t.store(at, work + 1)?;
    }
    t.store(B, mine + 1)?;
    Some(())
}

fn seqlock(t: &mut Run, me: u64) -> Option<()> {
    if me == 0 {
        let n = t.load(A)?;
        t.store(A, n + 1)?;
        t.store(B, 1)?;
        t.store(C, 1)?;
        t.store(A, n + 2)?;
        return Some(());
    }
    loop {
        // What the registers hold when it comes there first, it has not later: one more round goes by until it is back where it was.
        let n = t.until(A, 2, |n| n & 1 == 0)?;
        t.load(B)?;
        t.load(C)?;
        if t.load(A)? == n {
            return Some(());
        }
    }
}

fn push_one(t: &mut Run, node: At) -> Option<()> {
    let mut first = t.load(A)?;
    loop {
        t.store(node, first)?;
        let (done, found) = t.swap(A, first, node)?;
        if done {
            return Some(());
        }
        first = found;
    }
}

fn pop_one(t: &mut Run) -> Option<u64> {
    let mut first = t.load(A)?;
    while first != 0 {
        let next = t.load(first)?;
        let (done, found) = t.swap(A, first, next)?;
        if done {
            break;
        }
        first = found;
    }
    Some(first)
}

fn push(t: &mut Run, me: u64) -> Option<()> {
    push_one(t, node(me))
}

fn stack(t: &mut Run, me: u64) -> Option<()> {
    match me {
        0 => push_one(t, node(0)),
        _ => pop_one(t).map(|_| ()),
    }
}

fn reuse(t: &mut Run, me: u64) -> Option<()> {
    let one = pop_one(t)?;
    if me == 0 {
        pop_one(t)?;
        if one != 0 {
            push_one(t, one)?;
        }
    }
    Some(())
}

fn put(t: &mut Run, link: At) -> Option<()> {
    loop {
        let last = t.load(B)?;
        let next = t.load(last)?;
        if next != 0 {
            t.swap(B, last, next)?;
        } else if t.swap(last, 0, link)?.0 {
            t.swap(B, last, link)?;
            return Some(());
        }
    }
}

fn take(t: &mut Run) -> Option<()> {
    loop {
        let (first, last) = (t.load(A)?, t.load(B)?);
        let next = t.load(first)?;
        if next == 0 {
            return Some(());
        }
        if first == last {
            t.swap(B, last, next)?;
        } else if t.swap(A, first, next)?.0 {
            return Some(());
        }
    }
}

fn queue(t: &mut Run, me: u64) -> Option<()> {
    put(t, node(1 + me))
}

fn queue_take(t: &mut Run, me: u64) -> Option<()> {
    if me == 0 {
        put(t, node(1))?;
        put(t, node(2))
    } else {
        take(t)?;
        take(t)
    }
}

fn queue_three(t: &mut Run, me: u64) -> Option<()> {
    match me {
        2 => take(t),
        _ => put(t, node(1 + me)),
    }
}

fn deque(t: &mut Run, me: u64) -> Option<()> {
    let got = if me == 0 {
        let b = t.load(B)? - 1;
        t.store(B, b)?;
        let top = t.load(A)?;
        let got = top <= b && t.swap(A, top, top + 1)?.0;
        if got {
            t.go(Use::Add(C, 1))?;
        }
        t.store(B, b + 1)?;
        return Some(());
    } else {
        let top = t.load(A)?;
        top < t.load(B)? && t.swap(A, top, top + 1)?.0
    };
    if got {
        t.go(Use::Add(C, 1))?;
    }
    Some(())
}

fn once(t: &mut Run, _: u64) -> Option<()> {
    if t.load(A)? == 0 {
        t.go(Use::Lock(B))?;
        if t.load(A)? == 0 {
            t.store(C, 5)?;
            t.store(A, C)?;
        }
        t.go(Use::Unlock(B))?;
    }
    t.load(C)?;
    Some(())
}

/// Name, code, threads, what is in memory at first.
type Case<'a> = (&'a str, Code, usize, &'a [(At, u64)]);

/// What a case of the file pins.
fn pinned(text: &str, case: &str) -> usize {
    let section = text.split(&format!("[{case}]\n")).nth(1).unwrap_or_else(|| panic!("no case {case}"));
    let lines = section.lines().take_while(|line| !line.starts_with('['));
    let number = lines.filter_map(|line| line.strip_prefix("executions = ")).next();
    number.unwrap_or_else(|| panic!("{case} pins no executions")).parse().expect("a number")
}

#[test]
fn the_pinned_executions_are_the_traces() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("c-tests/lock_free.expect");
    let text = fs::read_to_string(file).expect("a file");
    let two = [(A, node(3)), (node(3), node(2))];
    let queued = [(A, node(0)), (B, node(0))];
    let all: [Case; 13] = [
        ("ticket", ticket, 2, &[]),
        ("ticket-three", ticket, 3, &[]),
        ("seqlock", seqlock, 2, &[]),
        ("push", push, 2, &[]),
        ("push-three", push, 3, &[]),
        ("stack", stack, 2, &[]),
        ("stack-reuse", reuse, 2, &two),
        ("queue", queue, 2, &queued),
        ("queue-take", queue_take, 2, &queued),
        ("queue-three", queue_three, 3, &queued),
        ("deque", deque, 2, &[(B, 1)]),
        ("once", once, 2, &[]),
        ("once-three", once, 3, &[]),
    ];
    let counted: Vec<_> =
        all.iter().map(|&(case, code, threads, memory)| (case, traces(code, threads, memory))).collect();
    let named: Vec<_> = all.iter().map(|&(case, ..)| (case, pinned(&text, case))).collect();
    assert_eq!(counted, named);
}

/// Runs the Rust program compiled with these flags; exit status and report.
fn of_rust(name: &str, flags: &[&str]) -> (Option<i32>, String) {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lock-free-{}-{name}", std::process::id()));
    fs::create_dir_all(&dir).expect("a directory");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lock_free/mutex.rs");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let built = Command::new(rustc)
        .args(["--edition", "2021", "-O", "-g", "-o"])
        .arg(dir.join(name))
        .args(flags)
        .arg(source)
        .status();
    assert!(built.expect("rustc").success());
    let output = Command::new(env!("CARGO_BIN_EXE_vsrun"))
        .args(["--search", "optimal", "--time", "60", "--scenario-dir"])
        .arg(&dir)
        .arg("--")
        .arg(dir.join(name))
        .stdin(Stdio::null())
        .output()
        .expect("vsrun");
    let _ = fs::remove_dir_all(&dir);
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn a_mutex_of_rust_is_explored_completely() {
    let (code, report) = of_rust("right", &[]);
    assert!(code == Some(0) && report.contains("explored completely. Memory was watched"), "{code:?} {report}");
    let (code, report) = of_rust("lost", &["--cfg", "lost"]);
    assert!(code == Some(1), "{code:?} {report}");
}
