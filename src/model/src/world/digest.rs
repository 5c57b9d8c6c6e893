//! What tells states of a world apart: a hash of all that the future depends on. Two states with the same one go on alike, but for a
//! collision ([`Mixer`]).
//!
//! Everything counts that is not shown here not to: a field that comes later has to be named below, or this does not compile. What does not count:
//!
//! * *Numbers by the order of creation.* An object is known by where it lives, not by how many have lived there before.
//! * *What is noted for the search and for reports*: recorded effects, progress, counts of transitions. How late something was is kept where it
//!   decides something.
//! * *What follows from the rest*: chains of queues (ordered by thread), of buckets, heads of free lists.
//! * *Who made an object free last* (`objects::lost`), where nobody who waits has left so far: with states told apart that is anybody.
//! * *The time*, as long as nobody has looked at the clock: deadlines count from now.
//!
//! Where there is something of which this does not know how it goes on (signals, timers, waiters that have gone) states are not told apart at all,
//! see [`World::digest`].

use core::hash::Hash;

use crate::base::mixer::{together, Mixer, Purpose};
use crate::base::{Kind, ObjId, Op, Tid, NONE, TIMED};
use crate::state::pieces::kind;
use crate::state::{ObjKind, Object, Order, ProcState, Process, Sharing, Thread, ThreadState, World, DESTROYED, TICKS};

impl World {
    /// The hash of the state, between two transitions, where operations take no time and nobody gives way ([`World::timeless`]). `None`: states are not told
    /// apart here.
    pub fn digest(&self) -> Option<[u64; 2]> {
        if !self.tells_states() {
            return None;
        }
        let mut mixer = self.digest_of_rest();
        let h = &mut mixer;
        (0..self.threads.len).for_each(|t| self.digest_of_thread(t, h));
        let all = (0..self.objects.len).map(|id| self.digest_of_object(id));
        h.pair(all.fold([0; 2], together));
        Some(mixer.digest())
    }

    /// Shows a hash of each piece of that, under a number of [`kind`].
    pub fn each_piece(&self, each: &mut dyn FnMut(u64, [u64; 2])) {
        each(kind::MODEL, self.digest_of_rest().digest());
        for t in 0..self.threads.len {
            let mut mixer = Mixer::new(Purpose::ANY);
            self.digest_of_thread(t, &mut mixer);
            each(kind::THREAD | u64::from(t), mixer.digest());
        }
        (0..self.objects.len).for_each(|id| each(self.piece_of_object(id), self.digest_of_object(id)));
    }

    /// The number under which object `id` is shown there.
    pub fn piece_of_object(&self, id: ObjId) -> u64 {
        kind::OBJECT | self.name(id)[0] & !kind::MASK
    }

    /// What no thread has, and no object is.
    fn digest_of_rest(&self) -> Mixer {
        #[rustfmt::skip]
        let World {
            // What the user has chosen, and what has been noted of the past.
            inject: _, uncontrolled: _, allow_misuse: _, livelock: _, awaited_len: _, awaited: _, past_cycles: _, timeless: _, pad: _, urgent: _, ticks_held: _,
            ticks_apart: _, held_back: _, kept_apart: _, stops_late: _, never_come: _, beyond: _, moves: _, progress: _, ops: _, did: _, passed: _, passed_last: _,
            passed_run: _, long_runs: _, cycle_at: _, later_cycles: _, cycle: _,
            // Of a transition, or of the end.
            current: _, value: _, end: _, end_thread: _, end_obj: _, end_code: _, message_len: _, message: _, delivered: _, received: _,
            // What follows from the rest.
            buckets: _, live: _,
            // Nothing is in these where states are told apart (`knows_not`).
            sent: _, sent_lost: _, kills: _, stirred: _, untold: _, any_ghosts: _, n_cycle: _, n_awaited: _, n_watches: _, n_timers: _, watches: _, free_watch: _,
            signals: _, timers: _,
            timeouts_any, concurrent, flocks_used, any_robust, any_inherits, any_copied_beside, reuses, told_time, now, fired, ids, free_hold, free_queued, free_chunk,
            free_desc, free_channel, free_fd_page, free_socket, free_message, free_right, last_place, clients, stop_signal, restarts, idle_jumps, threads: _, procs,
            objects: _, holds: _, stream_pairs, semvals, undos, semsets, names, file_locks, locked_files, descriptions, queues, queued, chunks, fd_pages,
            flags_change, libc_is_quiet, listened, met, matched, libc_made, looked_up, descs, channels, free_rings, fifos, sockets, messages, rights, mails,
            socket_serial,
        } = self;
        let mut mixer = Mixer::new(Purpose::WORLD);
        let h = &mut mixer;
        (timeouts_any, concurrent, flocks_used, any_robust, any_inherits, any_copied_beside, reuses).hash(h);
        if *told_time {
            (now, fired).hash(h);
        }
        (ids, clients, stop_signal, restarts, idle_jumps, last_place).hash(h);
        procs.as_slice().iter().for_each(|process| self.digest_of_process(process, h));
        (semvals, undos, semsets, names, file_locks, locked_files, descriptions, queues, queued).hash(h);
        (chunks, fd_pages, descs, channels, free_rings, fifos, sockets, messages, rights, stream_pairs).hash(h);
        (flags_change, libc_is_quiet, listened, met, matched, mails, socket_serial, libc_made, looked_up).hash(h);
        (free_hold, free_queued, free_chunk, free_desc, free_channel, free_fd_page).hash(h);
        (free_socket, free_message, free_right).hash(h);
        mixer
    }

    /// States are told apart here: who goes round comes back to one. Where they are not, who goes round gives way.
    pub(crate) fn tells_states(&self) -> bool {
        self.timeless && !self.untold && !self.knows_not()
    }

    /// There is something that comes about in ways that the rest does not tell.
    pub(super) fn knows_not(&self) -> bool {
        let signals = self.stirred || self.signals.len > 0 || self.timers.len > 0 || self.kills;
        let waits = self.any_ghosts || self.n_timers > 0 || self.n_watches > 0 || self.n_awaited > 0;
        signals || waits || self.procs.len > 1 || self.n_cycle > 0 || self.closes()
    }

    /// The end is being brought about by vsrun.
    fn closes(&self) -> bool {
        self.procs.as_slice().iter().any(|p| p.dying != 0 || p.stopped != 0)
    }

    /// What object `id` is known by.
    fn name(&self, id: ObjId) -> [u64; 2] {
        match self.objects.get(id) {
            Some(object) => {
                // What has been destroyed there is something else.
                Mixer::of(Purpose::NAME, &(object.key, object.flags & DESTROYED))
            }
            None => [0, id.into()],
        }
    }

    fn digest_of_op(&self, t: Tid, op: &Op, h: &mut Mixer) {
        let Op { kind, flags, signals: _, obj, obj2, mask, arg, deadline } = *op;
        // Which round of a barrier it is decides nothing.
        let arg = if kind == Kind::BARRIER_WAKE { i64::from(arg > 0) } else { arg };
        (kind, flags, mask, arg).hash(h);
        let operands = op.operands();
        for (at, n) in [obj, obj2].into_iter().enumerate() {
            match operands[at] {
                NONE => h.word(n.into()),
                id => h.pair(self.name(id)),
            }
        }
        if op.has(TIMED) {
            // How long it still waits, by its own time.
            deadline.saturating_sub(self.time_of(t)).hash(h);
        } else {
            deadline.hash(h);
        }
    }

    fn digest_of_thread(&self, t: Tid, h: &mut Mixer) {
        #[rustfmt::skip]
        let Thread {
            uid, pid, creator, children, state, detached, joined, cancel, ref pending, woken, compare, spent, polls: _, looks: _, waits: _, time, waited, ticks, due,
            in_once, born_expired, left_woken, once, moved: _, begun: _, last: _, creates, answered: _, transitions,
            yields: _, exposed, long_run, long_runs, loads, atomic_held, streams, stream, heir, joined_at: _, born: _, queued_on, queue_next: _, out,
            fiber: _, sigmask, within, masked, stop_hit, stops_late, hushed_at: _, moved_late, sigpending, taken, ref handlers, n_handlers, held,
            held_woken, vtid, priority: _, staged, n_sembuf, sem_at, ref sembuf, made, awaits, n_awaited, ref awaited, n_polled, ref polled, holding,
            hidden, ref address, sending, ref cred, says_cred,
        } = self.threads[t];
        (uid, pid, state, detached, joined, heir, vtid).hash(h);
        if matches!(state, ThreadState::FREE | ThreadState::EXITED) {
            return;
        }
        (creator, children, cancel, woken, compare, spent).hash(h);
        self.digest_of_op(t, pending, h);
        // More than this is as much.
        ticks.min(TICKS).hash(h);
        if self.told_time {
            (time, waited, due).hash(h);
        }
        (in_once, born_expired, left_woken, creates, transitions == 0).hash(h);
        (exposed, long_run, long_runs, loads, atomic_held, streams).hash(h);
        for id in [if in_once > 0 { once } else { NONE }, if streams > 0 { stream } else { NONE }, queued_on] {
            h.pair(self.name(id));
        }
        (out, sigmask, within, masked, stop_hit, stops_late, moved_late, sigpending).hash(h);
        (n_handlers, held, held_woken, staged, made, holding, hidden, sending, says_cred).hash(h);
        if n_handlers > 0 {
            (taken, handlers).hash(h);
        }
        (n_sembuf, sem_at).hash(h);
        sembuf.iter().take(n_sembuf as usize).for_each(|op| op.hash(h));
        n_awaited.hash(h);
        awaited.iter().take(n_awaited as usize).for_each(|word| word.hash(h));
        n_polled.hash(h);
        polled.iter().take(n_polled as usize).for_each(|desc| desc.hash(h));
        (awaits, address, cred).hash(h);
    }

    fn digest_of_process(&self, process: &Process, h: &mut Mixer) {
        #[rustfmt::skip]
        let Process {
            parent, forker, place, handed_on, creator, state, no_zombies, child_signal_for, chosen, ids_set, copied_beside, signalled, lost_a_child,
            vfork_child, threaded, record_locks, has_pidfd, description_locks, execs, status, fate, vpid, pgid, sid, live_threads, own: _, main_thread,
            objects: _, sigpending, handled, ignored, ignored_sent, hushed_signals, hushed, failing_signals, failing, restarts, by_clock, noticed, told,
            asked, unborn, stopped, stop_news, no_stop_news, subreaper, stopper, starved, n_fds, fds, struck, dying, waited, waiter, ender,
        } = *process;
        (state, status, fate, vpid, main_thread, parent, creator, waited, waiter, ender).hash(h);
        if state == ProcState::FREE || state == ProcState::REAPED {
            return;
        }
        (forker, place, handed_on, no_zombies, child_signal_for, chosen, ids_set, copied_beside, signalled).hash(h);
        (lost_a_child, vfork_child, threaded, record_locks, has_pidfd, description_locks, execs).hash(h);
        (pgid, sid, live_threads, sigpending, handled, ignored, ignored_sent, hushed_signals, hushed).hash(h);
        (failing_signals, failing, restarts, by_clock, noticed, told, asked, unborn).hash(h);
        (stopped, stop_news, no_stop_news, subreaper, stopper, n_fds, struck, dying).hash(h);
        fds.hash(h);
        if self.livelock > 0 {
            starved.hash(h);
        }
    }

    fn digest_of_object(&self, id: ObjId) -> [u64; 2] {
        #[rustfmt::skip]
        let Object {
            key, generation: _, flags, owner, count, value, extra, waiters: _, n_waiters, hash_next: _, space_next: _, user, sharing, order, pad: _, waker,
            used_in: _, left_at: _, used_at, users, takes, left,
        } = self.objects[id];
        let value = if key.kind == ObjKind::BARRIER { 0 } else { value };
        let mut mixer = Mixer::new(Purpose::OBJECT);
        let h = &mut mixer;
        (key, flags, owner, count, value, n_waiters, waker != 0).hash(h);
        (sharing, order).hash(h);
        match key.kind {
            // The list of its readers.
            ObjKind::RWLOCK => {
                let readers = self.read_holds(id).map(|hold| Mixer::of(Purpose::READER, &hold));
                h.pair(readers.fold([0; 2], together));
            }
            _ => extra.hash(h),
        }
        // Of an object that is shared, or of which no order is free, these decide nothing.
        if sharing != Sharing::SHARED && sharing != Sharing::UNKNOWN {
            (user, used_at).hash(h);
        }
        if order == Order::FREE {
            (users, takes, left).hash(h);
        }
        mixer.digest()
    }
}
