//! Hand-made traces, and drawn ones against all pairs.

use super::*;
use vsrun_model::Op;

fn step(tid: Tid, kind: Kind, obj: ObjId, obj_kind: ObjKind, state: i64) -> Step {
    Step {
        act: Act { tid, pid: 0, op: Op::on(kind, obj), obj_kind, state, ..Act::NOTHING },
        choices: 1,
        ..Step::default()
    }
}

fn lock(tid: Tid, mutex: ObjId) -> Step {
    step(tid, Kind::MUTEX_LOCK, mutex, ObjKind::MUTEX, 0)
}

fn unlock(tid: Tid, mutex: ObjId) -> Step {
    step(tid, Kind::MUTEX_UNLOCK, mutex, ObjKind::MUTEX, i64::from(tid) + 1)
}

/// A trace in whose states these threads are pending, with these fates.
fn trace(steps: Vec<Step>, seen: &[&[(Tid, u8)]]) -> Trace {
    let pending = |&(tid, fate): &(Tid, u8)| Seen { act: Act { tid, fate, ..Act::NOTHING }, ..Seen::default() };
    let mut seen: Vec<Vec<Seen>> = seen.iter().map(|state| state.iter().map(pending).collect()).collect();
    seen.resize(steps.len(), Vec::new());
    Trace { steps, seen, ..Trace::default() }
}

/// (from, to, why) of a trace.
fn found(trace: &Trace) -> Vec<(usize, usize, Tie)> {
    arrows(trace).iter().map(|arrow| (arrow.from, arrow.to, arrow.tie)).collect()
}

#[test]
fn a_lock_goes_from_hand_to_hand() {
    let all = [lock(1, 7), unlock(1, 7), lock(2, 7), lock(2, 8), unlock(2, 7), lock(3, 7), lock(3, 9)];
    assert_eq!(found(&trace(all.to_vec(), &[])), [(1, 2, Tie::Lock(7)), (4, 5, Tie::Lock(7))]);
}

#[test]
fn who_creates_whom_and_whose_end_is_awaited() {
    let join = step(0, Kind::JOIN, 1, ObjKind::MUTEX, 1);
    let mut end = step(1, Kind::END, 0, ObjKind::MUTEX, 0);
    end.did = Effects::ENDS;
    let all = vec![lock(0, 7), lock(1, 8), end, join];
    let at_first: &[(Tid, u8)] = &[(0, 0)];
    let both: &[(Tid, u8)] = &[(0, 0), (1, 0)];
    assert_eq!(
        found(&trace(all.clone(), &[at_first, both, both, at_first])),
        [(0, 1, Tie::Creates), (2, 3, Tie::Ends)]
    );
    // What was not recorded is not known.
    assert_eq!(found(&trace(all.clone(), &[])), [(2, 3, Tie::Ends)]);
    assert_eq!(found(&trace(all, &[both, both, both, both])), [(2, 3, Tie::Ends)]);
}

#[test]
fn who_wakes_whom() {
    let wait = step(1, Kind::COND_WAIT, 5, ObjKind::COND, 0);
    let mut woken = step(1, Kind::COND_WAKE, 5, ObjKind::COND, 0);
    woken.act.fate = WOKEN;
    let signal = step(2, Kind::COND_SIGNAL, 5, ObjKind::COND, 1);
    let asleep: &[(Tid, u8)] = &[(1, 0), (2, 0)];
    let awake: &[(Tid, u8)] = &[(1, WOKEN), (2, 0)];
    let all = vec![wait, lock(2, 9), signal, unlock(2, 9), woken];
    let found = found(&trace(all, &[asleep, asleep, asleep, awake, awake]));
    assert!(found.contains(&(2, 4, Tie::Wakes)), "{found:?}");
    assert!(found.iter().all(|arrow| arrow.1 != 4 || arrow.2 == Tie::Wakes), "{found:?}");
}

#[test]
fn who_sent_a_signal() {
    let mut kill = step(1, Kind::KILL, 0, ObjKind::MUTEX, 0);
    (kill.act.op.arg, kill.did) = (10, Effects::SIGNALS);
    let mut taken = lock(2, 7);
    (taken.act.op.signals, taken.choices, taken.value) = (10 | vsrun_model::signal::BEFORE, 2, 1);
    let other = Step { act: Act { op: Op { arg: 12, ..kill.act.op }, ..kill.act }, ..kill };
    let all = |value| vec![kill, other, Step { value, ..taken }];
    assert_eq!(found(&trace(all(1), &[])), [(0, 2, Tie::Signals(10))]);
    // It goes on with its operation instead.
    assert_eq!(found(&trace(all(0), &[])), []);
}

#[test]
fn what_concerns_everything_is_not_drawn() {
    let mut late = lock(1, 7);
    late.act.fate = vsrun_model::depend::TIMED_OUT;
    assert_eq!(found(&trace(vec![lock(2, 8), late, lock(3, 9)], &[])), []);
}

#[test]
fn data_goes_through_channels() {
    let write = step(1, Kind::FD_WRITE, 3, ObjKind::CHANNEL, 0);
    let read = step(2, Kind::FD_READ, 3, ObjKind::CHANNEL, 1);
    assert_eq!(found(&trace(vec![write, read, write], &[]))[..1], [(0, 1, Tie::Message(3))]);
    // Of memory the bytes count.
    let uses = |written: u32, read: u32| {
        let mut set = step(1, Kind::MEM_WRITE, 4, ObjKind::MEMORY, 0);
        let mut get = step(2, Kind::MEM_READ, 4, ObjKind::MEMORY, 0);
        (set.act.op.mask, get.act.op.mask) = (written, read);
        found(&trace(vec![set, get], &[]))
    };
    assert_eq!(uses(0xff, 0x0f), [(0, 1, Tie::Memory(4))]);
    assert_eq!(uses(0xf0, 0x0f), []);
}

/// Everything that is before each step, by all pairs.
fn before(trace: &Trace, edges: impl Fn(usize, usize) -> bool) -> Vec<Vec<bool>> {
    let n = trace.steps.len();
    let mut all = vec![vec![false; n]; n];
    for to in 0..n {
        for from in (0..to).rev() {
            let same = trace.steps[from].act.tid == trace.steps[to].act.tid;
            if same || edges(from, to) {
                all[to][from] = true;
                (0..from).for_each(|k| all[to][k] |= all[from][k]);
            }
        }
    }
    all
}

#[test]
fn the_arrows_say_all_and_none_of_them_twice() {
    let mut random = 0x1234_5678_9abc_def1_u64;
    let mut draw = |n: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % n
    };
    for _ in 0..300 {
        let steps: Vec<Step> = (0..24)
            .map(|_| {
                let (tid, object, state) = (draw(4) as Tid, draw(3) as ObjId, draw(3) as i64);
                match draw(7) {
                    0 | 1 => lock(tid, object),
                    2 => unlock(tid, object),
                    3 => step(tid, Kind::SEM_POST, 10 + object, ObjKind::SEM, state),
                    4 => step(tid, Kind::SEM_WAIT, 10 + object, ObjKind::SEM, 1 + state),
                    5 => step(tid, Kind::FD_WRITE, 20 + object, ObjKind::CHANNEL, state),
                    _ => step(tid, Kind::FD_READ, 20 + object, ObjKind::CHANNEL, state),
                }
            })
            .collect();
        let trace = trace(steps, &[]);
        let drawn = arrows(&trace);
        let has = |without: Option<usize>| {
            let kept: Vec<_> =
                drawn.iter().enumerate().filter(|(i, _)| Some(*i) != without).map(|(_, a)| (a.from, a.to)).collect();
            before(&trace, |from, to| kept.contains(&(from, to)))
        };
        let steps = &trace.steps;
        let all = before(&trace, |from, to| tie(&steps[from], &steps[to].act).is_some());
        assert!(has(None) == all, "{drawn:?}");
        (0..drawn.len()).for_each(|i| assert!(has(Some(i)) != all, "{:?} is said by others", drawn[i]));
    }
}
