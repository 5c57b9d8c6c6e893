//! Random model programs.

use proptest::prelude::*;

use super::contents::Uses;
use super::events::{Fd, On, Watching};
use super::numbers::Num;
use super::signals::{ALARM, CONT, FATAL, LOCKS, POSTS, STOP};
use super::sockets::{Does, Sock};
use super::{File, How, Ins, Program, VARIABLES};
use vsrun_model::errno::EEXIST;
use vsrun_model::lock::LAST;
use vsrun_model::signal::bit;

/// What a program is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Mutex,
    Cond,
    Sem,
    Sysv,
    Msg,
    Files,
    Contents,
    Numbers,
    Rw,
    Barrier,
    Stream,
    Futex,
    Life,
    Process,
    Timed,
    Event,
    Mqueue,
    Socket,
    Signal,
    Memory,
    All,
}

impl Family {
    pub const ALL: [Family; 21] = [
        Family::Mutex,
        Family::Cond,
        Family::Sem,
        Family::Sysv,
        Family::Msg,
        Family::Files,
        Family::Contents,
        Family::Numbers,
        Family::Rw,
        Family::Barrier,
        Family::Stream,
        Family::Futex,
        Family::Life,
        Family::Process,
        Family::Timed,
        Family::Event,
        Family::Mqueue,
        Family::Socket,
        Family::Signal,
        Family::Memory,
        Family::All,
    ];
}

type Block = BoxedStrategy<Vec<Ins>>;

fn how() -> impl Strategy<Value = How> {
    prop_oneof![4 => Just(How::Block), 1 => Just(How::Try)]
}

fn how_timed() -> impl Strategy<Value = How> {
    prop_oneof![2 => Just(How::Block), 1 => Just(How::Try), 3 => (1u8..4).prop_map(How::Timed)]
}

fn one(ins: impl Strategy<Value = Ins> + 'static) -> Block {
    ins.prop_map(|i| vec![i]).boxed()
}

/// A critical section around `inner`.
fn section(m: u32, how: How, inner: Vec<Ins>) -> Vec<Ins> {
    let mut code = vec![Ins::Lock(m, how), Ins::Count(m)];
    code.extend(inner);
    code.push(Ins::Unlock(m));
    code
}

fn mutex() -> Block {
    let simple = (0u32..5, how()).prop_map(|(m, how)| section(m, how, vec![]));
    let checked = (0u32..2, 1i64..3).prop_map(|(m, v)| section(m, How::Block, vec![Ins::AssertNot(m, v)]));
    let nested = (0u32..3, 0u32..3, how()).prop_map(|(m, n, how)| section(m, How::Block, section(n, how, vec![])));
    let left = (0u32..5).prop_map(|m| vec![Ins::Lock(m, How::Block), Ins::Count(m)]);
    prop_oneof![
        6 => simple,
        2 => checked,
        3 => nested,
        1 => left,
        1 => one((0u32..5).prop_map(Ins::RawUnlock)),
        1 => toss(),
    ]
    .boxed()
}

/// Accesses to variables that nothing protects, and loops that wait for others to change them.
fn memory() -> Block {
    let variable = || 0..VARIABLES as u32;
    let awaits = (variable(), proptest::option::of(variable()), prop::bool::weighted(0.3));
    let awaits = awaits.prop_map(|(v, w, update)| Ins::Await(v, w.filter(|w| *w != v), update));
    prop_oneof![
        3 => one(variable().prop_map(Ins::Load)),
        4 => one((variable(), 0i64..3).prop_map(|(v, value)| Ins::Store(v, value))),
        1 => one(variable().prop_map(Ins::Update)),
        3 => one((variable(), 0i64..3, 0i64..3).prop_map(|(v, expected, new)| Ins::Swap(v, expected, new))),
        3 => one(awaits),
        1 => (0u32..2, how()).prop_map(|(m, how)| section(m, how, vec![])),
    ]
    .boxed()
}

fn toss() -> Block {
    (1u32..3, 0i64..2).prop_map(|(n, v)| vec![Ins::Toss(n), Ins::SkipIf(v), Ins::Post(0)]).boxed()
}

fn cond() -> Block {
    let wait = (0u32..2, 0u32..2)
        .prop_map(|(c, m)| section(m, How::Block, vec![Ins::CondWait(c, m, How::Block), Ins::Count(m)]));
    prop_oneof![
        4 => wait,
        3 => one((0u32..2).prop_map(Ins::Signal)),
        2 => one((0u32..2).prop_map(Ins::Broadcast)),
        2 => (0u32..2, 0u32..2).prop_map(|(c, m)| section(m, How::Block, vec![Ins::Signal(c)])),
        1 => (0u32..2).prop_map(|m| section(m, How::Block, vec![])),
    ]
    .boxed()
}

fn sem() -> Block {
    prop_oneof![
        4 => one((0u32..4, how()).prop_map(|(s, how)| Ins::SemWait(s, how))),
        4 => one((0u32..4).prop_map(Ins::Post)),
        1 => one((0u32..4).prop_map(Ins::SemGet)),
        1 => toss(),
        2 => (0u32..2).prop_map(|m| section(m, How::Block, vec![])),
    ]
    .boxed()
}

fn semop() -> impl Strategy<Value = Ins> {
    let amount = prop_oneof![3 => Just(-1i16), 3 => Just(1i16), 1 => Just(0i16), 1 => Just(-2i16), 1 => Just(2i16)];
    let ops = proptest::collection::vec((2u16..6, amount), 1..3);
    (ops, proptest::bool::weighted(0.15), how()).prop_map(|(ops, undo, how)| Ins::Sysv(ops, undo, how))
}

fn sysv() -> Block {
    prop_oneof![
        8 => one(semop()),
        1 => one((0u32..3, 0i32..3).prop_map(|(n, v)| Ins::SysvSet(n, v))),
        1 => (0u32..2).prop_map(|m| section(m, How::Block, vec![])),
    ]
    .boxed()
}

fn msg() -> Block {
    let mtype = || prop_oneof![3 => 1i64..4, 1 => Just(40i64)];
    let wanted = prop_oneof![4 => Just(0i64), 3 => 1i64..4, 1 => Just(40i64), 2 => -3i64..0];
    let receive = (0u32..2, wanted, 0u32..3, proptest::bool::weighted(0.2), how())
        .prop_map(|(q, mtype, size, except, how)| Ins::MsgReceive(q, mtype, size + 1, except, how));
    prop_oneof![
        8 => one((0u32..2, mtype(), 0u32..3, how()).prop_map(|(q, t, n, how)| Ins::MsgSend(q, t, n, how))),
        7 => one(receive),
        1 => one((0u32..2, 0i64..6).prop_map(|(q, n)| Ins::MsgControl(q, if n == 1 { 0 } else { n }))),
        1 => (0u32..2).prop_map(|m| section(m, How::Block, vec![])),
    ]
    .boxed()
}

fn part() -> impl Strategy<Value = File> {
    let range = prop_oneof![3 => Just((0i64, LAST)), 2 => Just((0, 3)), 2 => Just((4, 7)), 1 => Just((2, 5))];
    (0u32..2, range, prop_oneof![4 => Just(None), 1 => (1u32..3).prop_map(Some)])
        .prop_map(|(file, (first, last), description)| File { file, first, last, description })
}

fn files() -> Block {
    let write = || proptest::bool::weighted(0.7);
    let section = (part(), write(), how()).prop_map(|(f, w, how)| vec![Ins::Record(f, w, how), Ins::RecordUnlock(f)]);
    let nested = (part(), part(), how()).prop_map(|(f, g, how)| {
        vec![Ins::Record(f, true, How::Block), Ins::Record(g, true, how), Ins::RecordUnlock(g), Ins::RecordUnlock(f)]
    });
    let lock = prop_oneof![2 => Just(Some(true)), 2 => Just(Some(false)), 2 => Just(None)];
    prop_oneof![
        4 => section,
        3 => nested,
        2 => one((part(), write(), how()).prop_map(|(f, w, how)| Ins::Record(f, w, how))),
        1 => one(part().prop_map(Ins::RecordUnlock)),
        1 => one((part(), write()).prop_map(|(f, w)| Ins::RecordTest(f, w))),
        4 => one((0u32..2, 1u32..4, lock, how()).prop_map(|(f, d, w, how)| Ins::Flock(f, d, w, how))),
    ]
    .boxed()
}

fn numbers() -> Block {
    let which = || prop_oneof![3 => Just(0u32), 3 => Just(1), 2 => Just(2), 1 => Just(3)];
    let opens = || vec![Ins::Num(Num::Reserve), Ins::Num(Num::Put)];
    let use_of = prop_oneof![
        4 => which().prop_map(Num::Look),
        1 => (which(), which()).prop_map(|(a, b)| Num::Both(a, b)),
        4 => which().prop_map(Num::Close),
        2 => (0u32..4, 1u32..4).prop_map(|(a, b)| Num::Dup2(a, (a + b) % 4)),
    ];
    let locked = (0u32..2, which()).prop_map(move |(m, n)| {
        let inside = vec![Ins::Num(Num::Close(n)), Ins::Num(Num::Reserve), Ins::Num(Num::Put)];
        section(m, How::Block, inside)
    });
    prop_oneof![
        8 => one(use_of.prop_map(Ins::Num)),
        4 => Just(opens()),
        1 => locked,
        1 => (which(), 0u32..2).prop_map(|(n, s)| vec![Ins::Num(Num::Look(n)), Ins::Post(s)]),
        1 => one((0u32..2, how()).prop_map(|(s, how)| Ins::SemWait(s, how))),
        1 => one((0usize..4).prop_map(|n| Ins::Join(n, How::Block))),
    ]
    .boxed()
}

fn contents() -> Block {
    let bump = (0u32..2).prop_map(|f| vec![Ins::Use(Uses::Read(f)), Ins::Use(Uses::Bump(f))]);
    let locked = (0u32..2, 0u32..2)
        .prop_map(|(m, f)| section(m, How::Block, vec![Ins::Use(Uses::Read(f)), Ins::Use(Uses::Bump(f))]));
    let guarded = (0u32..3, 0u32..2)
        .prop_map(|(n, f)| vec![Ins::Use(Uses::Make(n)), Ins::SkipIf(EEXIST), Ins::Use(Uses::Append(f, 5))]);
    let uses = prop_oneof![
        4 => (0u32..2).prop_map(Uses::Read),
        1 => (0u32..2, 0u32..2).prop_map(|(f, n)| Uses::Take(f, n)),
        3 => (0u32..2, 1i64..4).prop_map(|(f, v)| Uses::Write(f, v)),
        2 => (0u32..2, 1i64..4).prop_map(|(f, v)| Uses::Append(f, v)),
        1 => (0u32..2).prop_map(|f| Uses::Copy(f, 1 - f)),
        3 => (0u32..3).prop_map(Uses::Make),
        3 => (0u32..3).prop_map(Uses::Unlink),
        2 => (0u32..3, 1u32..3).prop_map(|(a, b)| Uses::Rename(a, (a + b) % 3)),
        3 => (0u32..3).prop_map(Uses::Look),
        1 => (0u32..3, 0u32..3).prop_map(|(a, b)| Uses::Both(a, b)),
        1 => (0u32..3, 0u32..2).prop_map(|(n, f)| Uses::Truncate(n, f)),
    ];
    prop_oneof![
        6 => one(uses.prop_map(Ins::Use)),
        3 => bump,
        1 => locked,
        1 => guarded,
        1 => one((0u32..2).prop_map(Ins::Post)),
        1 => one((0u32..2, how()).prop_map(|(s, how)| Ins::SemWait(s, how))),
        1 => one((1usize..4).prop_map(|n| Ins::Wait(Some(n), How::Block))),
        1 => one((0usize..4).prop_map(|n| Ins::Join(n, How::Block))),
    ]
    .boxed()
}

fn rw() -> Block {
    let read = (0u32..2, how()).prop_map(|(l, how)| vec![Ins::Read(l, how), Ins::RwUnlock(l)]);
    let write = (0u32..2, how()).prop_map(|(l, how)| vec![Ins::Write(l, how), Ins::RwUnlock(l)]);
    let twice = (0u32..2, 0u32..2).prop_map(|(l, k)| {
        vec![Ins::Read(l, How::Block), Ins::Read(k, How::Block), Ins::RwUnlock(l), Ins::RwUnlock(k)]
    });
    let inside = (0u32..2, 0u32..2).prop_map(|(l, m)| {
        let mut code = vec![Ins::Read(l, How::Block)];
        code.extend(section(m, How::Block, vec![]));
        code.push(Ins::RwUnlock(l));
        code
    });
    prop_oneof![4 => read, 4 => write, 1 => twice, 1 => inside].boxed()
}

fn barrier() -> Block {
    let spin = how().prop_map(|how| vec![Ins::Spin(0, how), Ins::SpinUnlock(0)]);
    let once = (0u32..2).prop_map(|s| vec![Ins::Once(0), Ins::Post(s), Ins::OnceEnd(0)]);
    prop_oneof![
        3 => one((0u32..2).prop_map(Ins::Barrier)),
        3 => spin,
        2 => once,
        2 => one((0u32..2, how()).prop_map(|(s, how)| Ins::SemWait(s, how))),
    ]
    .boxed()
}

fn stream() -> Block {
    let held = |s: u32, named: bool, inner: Vec<Ins>| {
        let mut code = vec![Ins::Stream(s, named, How::Block)];
        code.extend(inner);
        code.push(Ins::StreamUnlock(s, named));
        code
    };
    // Where its owner counts, the order of those who hold it by name can be told.
    let counts = (0u32..2, how())
        .prop_map(|(s, how)| vec![Ins::Stream(s, true, how), Ins::CountStream(s), Ins::StreamUnlock(s, true)]);
    let prints = (0u32..3).prop_map(move |s| held(s, false, vec![]));
    let nested = (0u32..3, 0u32..3, proptest::bool::ANY, proptest::bool::ANY)
        .prop_map(move |(s, r, named, also)| held(s, named, held(r, also, vec![])));
    let within = (0u32..3, 0u32..2, proptest::bool::ANY)
        .prop_map(move |(s, m, named)| held(s, named, section(m, How::Block, vec![])));
    let around = (0u32..3, 0u32..2, proptest::bool::ANY)
        .prop_map(move |(s, m, named)| section(m, How::Block, held(s, named, vec![])));
    let left = (0u32..3, proptest::bool::ANY).prop_map(|(s, named)| vec![Ins::Stream(s, named, How::Block)]);
    prop_oneof![
        3 => counts,
        4 => prints,
        4 => nested,
        3 => within,
        3 => around,
        1 => left,
        1 => one(Just(Ins::Draw)),
        1 => one((0u32..2).prop_map(Ins::Post)),
        1 => one((0u32..2).prop_map(|s| Ins::SemWait(s, How::Block))),
    ]
    .boxed()
}

/// A wait for two words at once, or twice for the same.
fn waitv(how: BoxedStrategy<How>) -> impl Strategy<Value = Ins> {
    let words = prop_oneof![3 => Just([0, 1]), 2 => Just([1, 0]), 1 => Just([1, 1])];
    let equal = [proptest::bool::weighted(0.9), proptest::bool::weighted(0.8)];
    (words, equal, how).prop_map(|(words, equal, how)| Ins::FutexWaitv(words, equal, how))
}

fn futex() -> Block {
    prop_oneof![
        5 => one((0u32..2, proptest::bool::weighted(0.8)).prop_map(|(f, c)| Ins::FutexWait(f, c, How::Block))),
        2 => one(waitv(Just(How::Block).boxed())),
        4 => one((0u32..2, 0u32..3).prop_map(|(f, n)| Ins::FutexWake(f, n))),
        2 => one((0u32..2, 0u32..2, 0u32..2).prop_map(|(f, w, m)| Ins::FutexRequeue(f, 1 - f, w, m))),
        2 => (0u32..2).prop_map(|m| section(m, How::Block, vec![])),
    ]
    .boxed()
}

fn life() -> Block {
    let join = prop_oneof![2 => Just(How::Block), 1 => Just(How::Try), 2 => Just(How::Cancel)];
    let cancellable = (0u32..2, 0u32..2)
        .prop_map(|(c, m)| section(m, How::Block, vec![Ins::CondWait(c, m, How::Cancel), Ins::Count(m)]));
    prop_oneof![
        4 => one((0usize..4, join).prop_map(|(n, how)| Ins::Join(n, how))),
        1 => one((0usize..4).prop_map(Ins::Cancel)),
        1 => one(Just(Ins::Exit)),
        1 => one(Just(Ins::SemWait(0, How::Cancel))),
        1 => cancellable,
        1 => one((0u32..2).prop_map(Ins::Signal)),
        3 => (prop_oneof![Just(0u32), Just(1), Just(4)]).prop_map(|m| section(m, How::Block, vec![])),
        1 => Just(vec![Ins::Lock(4, How::Block)]),
        2 => one((0u32..2).prop_map(Ins::Post)),
    ]
    .boxed()
}

fn process() -> Block {
    let wait = prop_oneof![3 => Just(How::Block), 1 => Just(How::Try)];
    let who = prop_oneof![1 => Just(None), 1 => (1usize..4).prop_map(Some)];
    prop_oneof![
        3 => one((who, wait).prop_map(|(n, how)| Ins::Wait(n, how))),
        3 => one(semop()),
        1 => one(Just(Ins::Exit)),
        3 => (prop_oneof![Just(0u32), Just(1), Just(4)]).prop_map(|m| section(m, How::Block, vec![])),
        1 => one((0usize..4).prop_map(|n| Ins::Join(n, How::Block))),
        2 => one((0u32..2).prop_map(Ins::Post)),
        2 => one((0u32..2, how()).prop_map(|(s, how)| Ins::SemWait(s, how))),
    ]
    .boxed()
}

fn timed() -> Block {
    let wait = (0u32..2, 0u32..2, how_timed()).prop_map(|(c, m, how)| {
        let how = if how == How::Try { How::Timed(1) } else { how };
        section(m, How::Block, vec![Ins::CondWait(c, m, how), Ins::Count(m)])
    });
    prop_oneof![
        3 => (0u32..2, how_timed()).prop_map(|(m, how)| section(m, how, vec![])),
        2 => wait,
        2 => one((0u32..2, how_timed()).prop_map(|(s, how)| Ins::SemWait(s, how))),
        2 => one((0u32..2).prop_map(Ins::Post)),
        1 => one((0u32..2).prop_map(Ins::Signal)),
        2 => one((1u8..4).prop_map(Ins::Sleep)),
        1 => one(Just(Ins::Yield)),
        1 => one((0u32..2, how_timed()).prop_map(|(f, how)| Ins::FutexWait(f, true, if how == How::Try { How::Block } else { how }))),
        1 => one(waitv(how_timed().prop_map(|how| if how == How::Try { How::Block } else { how }).boxed())),
        1 => one((0u32..2).prop_map(|f| Ins::FutexWake(f, 1))),
        1 => (0u32..2, how_timed()).prop_map(|(l, how)| vec![Ins::Write(l, how), Ins::RwUnlock(l)]),
        1 => (0u32..2, how_timed()).prop_map(|(l, how)| vec![Ins::Read(l, how), Ins::RwUnlock(l)]),
    ]
    .boxed()
}

fn event() -> Block {
    use Fd::{Counter, Inner, Outer, PipeIn, PipeOut, Plain, Semaphore, Timer};
    let counter = || prop_oneof![3 => Just(Counter), 2 => Just(Semaphore), 3 => Just(Plain)];
    let input =
        || prop_oneof![3 => Just(Counter), 2 => Just(Semaphore), 2 => Just(Plain), 2 => Just(PipeIn), 1 => Just(Timer)];
    let watched = || prop_oneof![4 => input(), 1 => Just(PipeOut), 1 => Just(Inner)];
    let instance = || prop_oneof![1 => Just(Inner), 1 => Just(Outer)];
    let watching = || {
        prop_oneof![
            2 => Just(Watching::Level),
            2 => Just(Watching::Edge),
            1 => Just(Watching::Once),
            1 => Just(Watching::Output)
        ]
    };
    let wait = prop_oneof![3 => Just(How::Block), 1 => Just(How::Try), 1 => (1u8..3).prop_map(How::Timed)];
    let asked = prop_oneof![3 => input(), 1 => instance()];
    let bytes = prop_oneof![3 => 1u16..3, 1 => Just(4096u16)];
    prop_oneof![
        4 => one((input(), 1u16..3, how()).prop_map(|(fd, n, how)| Ins::Fd(fd, On::Take(n), how))),
        5 => one((counter(), 1u16..3).prop_map(|(fd, n)| Ins::Fd(fd, On::Put(n), How::Block))),
        2 => one((bytes, how()).prop_map(|(n, how)| Ins::Fd(PipeOut, On::Put(n), how))),
        5 => one((instance(), 1u8..3, wait.clone()).prop_map(|(fd, n, how)| Ins::Fd(fd, On::Events(n), how))),
        2 => one((instance(), watched(), watching()).prop_map(|(e, fd, w)| Ins::Fd(e, On::Watch(fd, w), How::Block))),
        1 => one((instance(), watched(), watching()).prop_map(|(e, fd, w)| Ins::Fd(e, On::Change(fd, w), How::Block))),
        1 => one((instance(), watched()).prop_map(|(e, fd)| Ins::Fd(e, On::Unwatch(fd), How::Block))),
        2 => one((asked, input(), wait).prop_map(|(a, b, how)| Ins::Fd(a, On::Poll(b), how))),
        1 => one((0u8..3, 0u8..2).prop_map(|(at, period)| Ins::Fd(Timer, On::Set(at, period), How::Block))),
        1 => one(watched().prop_map(|fd| Ins::Fd(fd, On::Close, How::Block))),
    ]
    .boxed()
}

fn mqueue() -> Block {
    use Fd::{Counter, Inner, Narrow, Outer, Queue};
    let queue = || prop_oneof![3 => Just(Queue), 2 => Just(Narrow)];
    let instance = || prop_oneof![1 => Just(Inner), 1 => Just(Outer)];
    let watching = || prop_oneof![Just(Watching::Level), Just(Watching::Edge), Just(Watching::Output)];
    let waits = || prop_oneof![6 => Just(How::Block), 2 => Just(How::Try), 1 => (1u8..3).prop_map(How::Timed)];
    let other = prop_oneof![2 => queue(), 1 => Just(Counter)];
    let send = (queue(), 0u16..3, 0u16..3, waits()).prop_map(|(fd, p, n, how)| Ins::Fd(fd, On::Send(p, n), how));
    prop_oneof![
        10 => one(send),
        10 => one((queue(), waits()).prop_map(|(fd, how)| Ins::Fd(fd, On::Receive, how))),
        2 => one((queue(), other, waits()).prop_map(|(a, b, how)| Ins::Fd(a, On::Poll(b), how))),
        2 => one((instance(), 1u8..3, waits()).prop_map(|(fd, n, how)| Ins::Fd(fd, On::Events(n), how))),
        2 => one((instance(), queue(), watching()).prop_map(|(e, fd, w)| Ins::Fd(e, On::Watch(fd, w), How::Block))),
        1 => one(queue().prop_map(|fd| Ins::Fd(fd, On::Close, How::Block))),
        1 => one(queue().prop_map(|fd| Ins::Fd(fd, On::Notify, How::Block))),
        1 => one(Just(Ins::Fd(Counter, On::Put(1), How::Block))),
        1 => (0u32..2).prop_map(|m| section(m, How::Block, vec![])),
    ]
    .boxed()
}

fn socket() -> Block {
    use Sock::{Dgram, Egram, First, Left, Listener, One, Right, Second, Two, Udp, Vdp};
    let stream = || prop_oneof![3 => Just(Left), 3 => Just(Right), 1 => Just(One), 1 => Just(First), 1 => Just(Second)];
    // What is not connected yet is sent to by those alone who connect it: whether it is decides which operation it is.
    let sender = || prop_oneof![3 => Just(Left), 3 => Just(Right), 1 => Just(First), 1 => Just(Second)];
    let dgram = || prop_oneof![1 => Just(Udp), 1 => Just(Vdp), 1 => Just(Dgram), 1 => Just(Egram)];
    let client = || prop_oneof![2 => Just(One), 1 => Just(Two)];
    let any = || prop_oneof![3 => stream(), 2 => dgram(), 1 => client(), 1 => Just(Listener)];
    let wait = prop_oneof![3 => Just(How::Block), 1 => Just(How::Try), 1 => (1u8..3).prop_map(How::Timed)];
    let does = |sock: BoxedStrategy<Sock>, what: BoxedStrategy<Does>, how: BoxedStrategy<How>| {
        one((sock, what, how).prop_map(|(sock, does, how)| Ins::Sock(sock, does, how)))
    };
    let bytes = || prop_oneof![2 => 1u16..4, 1 => Just(700u16)];
    let connection = (client(), 1u16..3).prop_map(|(sock, n)| {
        vec![Ins::Sock(sock, Does::Connect, How::Block), Ins::Sock(sock, Does::Send(n), How::Block)]
    });
    let served = how().prop_map(|how| {
        vec![
            Ins::Sock(Listener, Does::Accept, how),
            Ins::Sock(First, Does::Receive(2), How::Block),
            Ins::Sock(First, Does::ShutSend, How::Block),
        ]
    });
    prop_oneof![
        4 => does(stream().boxed(), (1u16..4).prop_map(Does::Receive).boxed(), how().boxed()),
        4 => does(sender().boxed(), bytes().prop_map(Does::Send).boxed(), how().boxed()),
        3 => does(dgram().boxed(), (1u16..4).prop_map(Does::Receive).boxed(), how().boxed()),
        4 => does(dgram().boxed(), bytes().prop_map(Does::Send).boxed(), how().boxed()),
        2 => does(client().boxed(), Just(Does::Connect).boxed(), wait.clone().boxed()),
        2 => does(Just(Listener).boxed(), Just(Does::Accept).boxed(), wait.clone().boxed()),
        2 => connection,
        2 => served,
        1 => does(any().boxed(), Just(Does::Peek).boxed(), how().boxed()),
        1 => does(any().boxed(), prop_oneof![Just(Does::ShutReceive), Just(Does::ShutSend)].boxed(), Just(How::Block).boxed()),
        2 => does(any().boxed(), any().prop_map(Does::Poll).boxed(), wait.boxed()),
        2 => does(any().boxed(), Just(Does::Close).boxed(), Just(How::Block).boxed()),
    ]
    .boxed()
}

fn signal() -> Block {
    let number = || prop_oneof![6 => Just(POSTS), 6 => Just(LOCKS), 1 => Just(FATAL), 1 => Just(STOP), 2 => Just(CONT)];
    let caught = || prop_oneof![Just(POSTS), Just(LOCKS)];
    let guarded = caught().prop_map(|s| vec![Ins::Mask(s, true), Ins::Suspend(Some(0)), Ins::Mask(s, false)]);
    let critical = (0u32..2, caught()).prop_map(|(m, s)| {
        [vec![Ins::Mask(s, true)], section(m, How::Block, vec![]), vec![Ins::Mask(s, false)]].concat()
    });
    let waits = (caught(), prop_oneof![3 => Just(How::Block), 1 => Just(How::Try), 1 => Just(How::Timed(2))])
        .prop_map(|(s, how)| vec![Ins::Mask(s, true), Ins::Sigwait(bit(s), how)]);
    let wait = (0u32..2, 0u32..2)
        .prop_map(|(c, m)| section(m, How::Block, vec![Ins::CondWait(c, m, How::Block), Ins::Count(m)]));
    prop_oneof![
        6 => one((0usize..4, number()).prop_map(|(n, s)| Ins::Kill(n, s))),
        3 => one((0usize..4, caught()).prop_map(|(n, s)| Ins::Tkill(n, s))),
        2 => guarded,
        1 => critical,
        2 => waits,
        1 => one(Just(Ins::Suspend(None))),
        1 => one((1u8..4).prop_map(Ins::Alarm)),
        1 => one(Just(Ins::Mask(ALARM, true))),
        2 => (0u32..2).prop_map(|m| section(m, How::Block, vec![])),
        2 => one((0u32..4, how_timed()).prop_map(|(s, how)| Ins::SemWait(s, how))),
        2 => one((0u32..4).prop_map(Ins::Post)),
        1 => one((1u8..4).prop_map(Ins::Sleep)),
        1 => one(semop()),
        1 => wait,
        1 => one((0u32..2).prop_map(Ins::Signal)),
        1 => one((0u32..2).prop_map(|f| Ins::FutexWait(f, true, How::Block))),
        1 => one(waitv(Just(How::Block).boxed())),
        1 => one((0u32..2).prop_map(|f| Ins::FutexWake(f, 1))),
        1 => one((1usize..4).prop_map(|n| Ins::Wait(Some(n), How::Block))),
    ]
    .boxed()
}

fn block(family: Family) -> Block {
    match family {
        Family::Mutex => mutex(),
        Family::Cond => cond(),
        Family::Sem => sem(),
        Family::Sysv => sysv(),
        Family::Msg => msg(),
        Family::Files => files(),
        Family::Contents => contents(),
        Family::Numbers => numbers(),
        Family::Rw => rw(),
        Family::Barrier => barrier(),
        Family::Stream => stream(),
        Family::Futex => futex(),
        Family::Life => life(),
        Family::Process => process(),
        Family::Timed => timed(),
        Family::Event => event(),
        Family::Mqueue => mqueue(),
        Family::Socket => socket(),
        Family::Signal => signal(),
        Family::Memory => memory(),
        Family::All => prop_oneof![
            mutex(),
            memory(),
            cond(),
            sem(),
            sysv(),
            msg(),
            files(),
            rw(),
            barrier(),
            stream(),
            futex(),
            life(),
            process(),
            timed(),
            signal()
        ]
        .boxed(),
    }
}

/// Who starts whom: by the first thread in a row, or each by the one before; as threads or as processes.
#[derive(Clone, Copy, Debug)]
struct Shape {
    chain: bool,
    forks: [bool; 4],
    late: bool,
}

fn shape(family: Family) -> impl Strategy<Value = Shape> {
    let forks = match family {
        Family::Process | Family::Files | Family::Contents => 0.6,
        Family::Event | Family::Mqueue | Family::Socket => 0.4,
        Family::Sysv | Family::Msg | Family::Signal | Family::All => 0.3,
        _ => 0.0,
    };
    let chain = if matches!(family, Family::Life | Family::Process | Family::All) { 0.25 } else { 0.05 };
    (
        proptest::bool::weighted(chain),
        proptest::array::uniform4(proptest::bool::weighted(forks)),
        proptest::bool::weighted(0.2),
    )
        .prop_map(move |(chain, forks, late)| {
            // Threads or processes: where a process of several threads has descriptors beside another process, `optimal`
            // loses traces (docs/STATUS.md).
            let forks = if family == Family::Mqueue { [forks[0]; 4] } else { forks };
            Shape { chain, forks, late }
        })
}

/// A join or wait is only about a thread whose number the waiting one knows without a race: one that its creator
/// started before it, or that it started itself.
fn knows(ins: &Ins, by: usize, shape: Shape, n: usize) -> bool {
    let target = match *ins {
        Ins::Join(t, _) | Ins::Cancel(t) | Ins::Kill(t, _) | Ins::Tkill(t, _) => t,
        Ins::Wait(Some(t), _) => t,
        _ => return true,
    };
    let join = !matches!(ins, Ins::Wait(..) | Ins::Kill(..) | Ins::Tkill(..));
    target < n
        && !(join && target > 0 && shape.forks[target])
        && if shape.chain { target <= by || target == by + 1 } else { by == 0 || target <= by }
}

/// Programs of 2 to 4 threads.
pub fn program(family: Family) -> impl Strategy<Value = Program> {
    let threads = (2usize..5).prop_flat_map(move |n| {
        let blocks = [0, 0, 3, 2, 2][n];
        proptest::collection::vec(proptest::collection::vec(block(family), 1..=blocks), n)
    });
    (threads, shape(family)).prop_map(|(threads, shape)| assemble(threads, shape))
}

fn assemble(threads: Vec<Vec<Vec<Ins>>>, shape: Shape) -> Program {
    let n = threads.len();
    let mut program = Vec::new();
    for (by, blocks) in threads.into_iter().enumerate() {
        let starts: Vec<Ins> = (1..n)
            .filter(|&t| if shape.chain { t == by + 1 } else { by == 0 })
            .map(|t| if shape.forks[t] { Ins::Fork(t) } else { Ins::Create(t) })
            .collect();
        let mut body: Vec<Ins> = blocks.concat();
        body.retain(|ins| knows(ins, by, shape, n));
        let code = match starts.split_last() {
            // The last is started later, by a transition.
            Some((last, first)) if shape.late && !body.is_empty() => {
                let mut code = first.to_vec();
                let rest = body.split_off(1);
                code.extend(body);
                code.push(last.clone());
                code.extend(rest);
                code
            }
            _ => starts.into_iter().chain(body).collect(),
        };
        program.push(code);
    }
    program
}

/// Draws the programs of a test: the same ones each time, so that a failure is one of the change that was made; other ones
/// each time where `VSRUN_ORACLE_CASES` asks for a larger run.
pub fn runner(config: proptest::test_runner::Config) -> proptest::test_runner::TestRunner {
    use proptest::test_runner::{TestRng, TestRunner};
    if std::env::var_os("VSRUN_ORACLE_CASES").is_some() {
        return TestRunner::new(config);
    }
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    TestRunner::new_with_rng(config, rng)
}
