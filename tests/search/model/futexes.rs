//! Futexes, one and several at once.

use super::*;

#[test]
fn a_futex_moves_its_waiters() {
    world(4, |w| {
        let (f, g) = (make(w, ObjKind::FUTEX, 0), make(w, ObjKind::FUTEX, 0));
        let mut wait = Op::on(Kind::FUTEX_WAIT, f);
        wait.mask = u32::MAX;
        assert_eq!(does(w, 1, wait), Some(EAGAIN), "memory holds another value");
        for t in 1..4 {
            w.threads[t].compare = true;
            assert_eq!(does(w, t, wait), None);
        }
        let mut requeue = both(Kind::FUTEX_REQUEUE, f, g).arg(1 << 32 | 1);
        requeue.mask = u32::MAX;
        w.threads[0].compare = true;
        w.publish(0, requeue);
        assert_eq!(w.choices(0), 3, "each may be the one that wakes");
        assert_eq!(go_on(w, 0, 1), Some(0));
        assert_eq!((w.threads[0].out[0], w.threads[2].woken), (2, true));
        assert_eq!((w.objects[f].n_waiters, w.objects[g].n_waiters), (1, 1));
        let mut wake = Op::on(Kind::FUTEX_WAKE, g).arg(5);
        wake.mask = u32::MAX;
        assert_eq!(does(w, 0, wake), Some(0));
        assert_eq!(w.threads[0].out[0], 1);
        assert_eq!(go_on(w, 2, 0), Some(0));
        assert_eq!(w.choices(1) + w.choices(3), 1);
    });
}

#[test]
fn a_futex_moved_onto_itself_is_no_endless_loop() {
    world(2, |w| {
        let f = make(w, ObjKind::FUTEX, 0);
        let mut wait = Op::on(Kind::FUTEX_WAIT, f);
        wait.mask = u32::MAX;
        w.threads[1].compare = true;
        assert_eq!(does(w, 1, wait), None);
        w.threads[0].compare = true;
        let mut requeue = both(Kind::FUTEX_REQUEUE, f, f).arg((i32::MAX as i64) << 32);
        requeue.mask = u32::MAX;
        assert_eq!(does(w, 0, requeue), Some(0));
        assert_eq!(w.objects[f].n_waiters, 1);
    });
}

#[test]
fn a_futex_wakes_by_bits() {
    world(3, |w| {
        let f = make(w, ObjKind::FUTEX, 0);
        for t in 1..3 {
            let mut wait = Op::on(Kind::FUTEX_WAIT, f);
            wait.mask = 1 << t;
            w.threads[t].compare = true;
            assert_eq!(does(w, t, wait), None);
        }
        let mut wake = Op::on(Kind::FUTEX_WAKE, f).arg(2);
        wake.mask = 1 << 2;
        assert_eq!(does(w, 0, wake), Some(0));
        assert_eq!((w.threads[0].out[0], w.choices(1), w.choices(2)), (1, 0, 1));
    });
}

/// Thread 1 of four begins to wait for `words` at once, until `deadline` if it is not 0, and sleeps.
fn waits_for_several(w: &mut World, words: &[u32], deadline: u64) {
    let several = Several { n: words.len() as u8, timed: deadline != 0, ..Several::default() };
    let mut wait = Op::on(Kind::FUTEX_WAITV, words[0]).arg(several.pack());
    (wait.mask, wait.deadline) = (u32::MAX, deadline);
    w.set_words(1, words);
    w.threads[1].compare = true;
    assert_eq!(does(w, 1, wait), None);
    for _ in 1..words.len() {
        assert_eq!(w.threads[1].pending.kind, Kind::FUTEX_WAITV_NEXT);
        assert_eq!(go_on(w, 1, 0), None);
    }
    assert_eq!(w.threads[1].pending.kind, Kind::FUTEX_WAITV_SLEEP);
}

/// Thread 0 wakes so many; how many it has woken.
fn wakes(w: &mut World, futex: u32, n: i64) -> i64 {
    let mut wake = Op::on(Kind::FUTEX_WAKE, futex).arg(n);
    wake.mask = u32::MAX;
    assert_eq!(does(w, 0, wake), Some(0));
    w.threads[0].out[0]
}

#[test]
fn a_wait_for_several_futexes_leaves_them_one_after_another() {
    world(4, |w| {
        let [f, g, h] = [0; 3].map(|_| make(w, ObjKind::FUTEX, 0));
        waits_for_several(w, &[f, g, h], 0);
        assert_eq!(w.choices(1), 0);
        assert_eq!(wakes(w, g, 5), 1);
        assert_eq!((w.choices(1), wakes(w, g, 5)), (1, 0));
        assert_eq!(go_on(w, 1, 0), None);
        assert_eq!(go_on(w, 1, 0), None, "it has left the first");
        assert_eq!((wakes(w, f, 1), wakes(w, h, 1)), (0, 1));
        assert_eq!(go_on(w, 1, 0), None);
        assert_eq!(go_on(w, 1, 0), Some(2), "the last that was woken");
        assert_eq!([f, g, h].map(|o| w.objects[o].n_waiters), [0; 3]);
    });
}

#[test]
fn a_wait_for_several_futexes_is_moved_and_gives_up() {
    world(4, |w| {
        let [f, g] = [0; 2].map(|_| make(w, ObjKind::FUTEX, 0));
        waits_for_several(w, &[f, f], 0);
        let mut requeue = both(Kind::FUTEX_REQUEUE, f, g).arg(1 << 32);
        requeue.mask = u32::MAX;
        w.threads[0].compare = true;
        assert_eq!(does(w, 0, requeue), Some(0));
        assert_eq!([f, g].map(|o| w.objects[o].n_waiters), [1, 1]);
        assert_eq!(wakes(w, g, 1), 1);
        assert_eq!([0; 3].map(|_| go_on(w, 1, 0)), [None, None, Some(0)]);

        let deadline = w.now + 1_000_000;
        waits_for_several(w, &[f, g], deadline);
        assert_eq!(w.choices(1), 0);
        w.fired = deadline;
        assert_eq!([0; 3].map(|_| go_on(w, 1, 0)), [None, None, Some(ETIMEDOUT)]);
        assert_eq!([f, g].map(|o| w.objects[o].n_waiters), [0; 2]);
    });
}

#[test]
fn a_word_that_differs_ends_a_wait_for_several() {
    world(4, |w| {
        let [f, g] = [0; 2].map(|_| make(w, ObjKind::FUTEX, 0));
        for woken in [false, true] {
            let mut wait = Op::on(Kind::FUTEX_WAITV, f).arg(Several { n: 2, ..Several::default() }.pack());
            wait.mask = u32::MAX;
            w.set_words(1, &[f, g]);
            w.threads[1].compare = true;
            assert_eq!(does(w, 1, wait), None);
            if woken {
                assert_eq!(wakes(w, f, 1), 1);
            }
            w.threads[1].compare = false;
            assert_eq!(go_on(w, 1, 0), None);
            assert_eq!(go_on(w, 1, 0), Some(if woken { 0 } else { EAGAIN }));
            assert_eq!([f, g].map(|o| w.objects[o].n_waiters), [0; 2]);
        }
    });
}
