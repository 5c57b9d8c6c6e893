//! The locks of stdio streams: when to take and to give one back is a place to switch. The same of what else libc keeps for all threads
//! (random numbers, exit handlers), the order of whose uses can always be told.
//!
//! Every function of stdio takes the lock of its stream and gives it back. Were each of these a transition, N threads that print a
//! line would cost N! executions, of which nobody can tell one from another: what goes to a terminal or to a file that nobody reads
//! has no order for the program. So an operation on the lock of a stream passes, as a part of the transition under way, until it shows that it
//! matters who comes first. It does
//! * where somebody asks for the lock by name (flockfile): then it guards whatever he does meanwhile;
//! * where the order of uses can be told (the caller says so: what is read, memory, pipes, files that somebody reads, a stream whose
//!   position somebody asks for, what a forked child writes out of its copy), or somebody tries whether the lock is free;
//! * where it is held at a place to switch, or by a thread that ends, so that another thread may meet it taken and has to wait. To take the lock of a second
//!   stream counts as such a place if it belongs to a circle: one that holds the second takes the first, at once or by way of others.
//!
//! In each case only if two threads use the stream in an order that neither creation nor join decides. Both is known from what threads
//! do, not from how they are interleaved; so it shows in some execution of the system in which these operations are free, if it does in one
//! of the real one: what is argued in `sharing` for objects that one thread alone uses holds here too. The stream is noted then, and the
//! search starts over with each operation on its lock a transition.
//!
//! That a thread may be hit by a signal, a request to end, or the end of its process (`Thread::exposed`) does not make these operations
//! visible: the lock is its thread's own in a handler too, and nobody else can tell whether it is held.

use crate::arena::Arena;
use crate::base::{ObjId, Op, Tid, TRY};
use crate::objects::row::Role;
use crate::objects::stream::EXPLICIT;
use crate::sched::sharing::name_of;
use crate::state::{Applied, Key, Sharing, STREAM_COPIED, STREAM_HELD, STREAM_MIXED, STREAM_TOLD};

impl Arena {
    /// Thread `t` has reached `op`, on the lock of a stream or on something like it: performs it unless it is to be published.
    pub(crate) fn pass_of_libc(&mut self, t: Tid, op: &Op) -> Option<Applied> {
        let s = op.obj;
        if !self.world.objects.contains(s) || self.is_stream_shared(s) {
            return None;
        }
        self.use_stream(t, s, op.has(EXPLICIT) || op.arg != 0);
        if op.has(TRY) && op.has(EXPLICIT) {
            // It tells whether another thread is just printing. (Who exits does not tell.)
            self.mark_stream(s, STREAM_TOLD);
        }
        if !self.world.stream_ready(t, s) && matches!(op.kind.row().role, Role::Acquires(_)) {
            self.mark_stream(s, STREAM_HELD);
            return None;
        }
        if matches!(op.kind.row().role, Role::Acquires(_)) && self.world.threads[t].streams > 0 {
            self.order_streams(t, s);
        }
        if self.is_stream_shared(s) {
            return None;
        }
        if op.has(EXPLICIT) {
            return if self.ends_long_run(t) { None } else { Some(self.world.perform_at_once(t, op)) };
        }
        // Neither counted nor a sign of life, and it takes no time: it is like any code between two operations.
        Some(match op.kind.row().role {
            Role::Acquires(_) => Applied::Done(self.world.stream_lock(t, s)),
            _ => {
                self.world.stream_unlock(t, s);
                Applied::Done(0)
            }
        })
    }

    /// True if `t` uses stream `s` after another thread that nothing orders before it: whether that can be told is to be found out
    /// then.
    pub fn stream_changes_hands(&self, t: Tid, s: ObjId) -> bool {
        let stream = &self.world.objects[s];
        stream.sharing != Sharing::SHARED && stream.user != t && !self.world.in_order(t, s)
    }

    /// What others do to stream `s` is told, now or later, by what it is asked.
    pub fn stream_tells(&mut self, s: ObjId) {
        if !self.is_stream_shared(s) {
            self.mark_stream(s, STREAM_TOLD);
        }
    }

    /// `t` forks, and the child gets a copy of stream `s`: how far other threads had come with it then is told where the child writes it out.
    pub fn stream_is_copied(&mut self, t: Tid, s: ObjId) {
        self.world.objects[s].flags |= STREAM_COPIED;
        if !self.is_stream_shared(s) {
            self.use_stream(t, s, false);
        }
    }

    /// Who comes first at what libc keeps of a thread, under that key, is told.
    pub fn thread_is_told(&mut self, key: Key) -> bool {
        self.is_known(name_of(key))
    }

    /// It is from the next execution on.
    pub fn tell_thread(&mut self, key: Key) {
        self.note(name_of(key), 0);
    }

    /// A child writes out its copy of the stream at `key`.
    pub fn copied_stream_tells(&mut self, key: Key) {
        if let Some(s) = self.world.find(key).filter(|&s| self.world.objects[s].flags & STREAM_COPIED != 0) {
            self.stream_tells(s);
        }
    }

    /// `t` has reached a place to switch, or its end: the streams that it holds are held there.
    #[inline]
    pub fn hold_streams(&mut self, t: Tid) {
        if self.world.threads[t].streams > 0 {
            self.mark_held(t);
        }
    }

    #[cold]
    fn mark_held(&mut self, t: Tid) {
        let last = self.world.threads[t].stream;
        if self.world.threads[t].streams == 1 && self.world.holds_stream(t, last) {
            return self.mark_stream(last, STREAM_HELD);
        }
        for s in 0..self.world.objects.len {
            if self.world.holds_stream(t, s) {
                self.mark_stream(s, STREAM_HELD);
            }
        }
    }

    /// `t` takes stream `s` while it holds others: who takes them the other way round may wait, and so may `t`.
    #[cold]
    fn order_streams(&mut self, t: Tid, s: ObjId) {
        for first in 0..self.world.objects.len {
            if first == s || !self.world.holds_stream(t, first) {
                continue;
            }
            let pairs = &mut self.world.stream_pairs;
            let known = pairs.as_slice().contains(&[first, s]);
            let fits = known || pairs.push([first, s]).is_some();
            if !fits || !known && self.closes_circle(first, s) {
                self.mark_stream(first, STREAM_HELD);
                self.mark_stream(s, STREAM_HELD);
            }
        }
    }

    /// True if whoever holds stream `s` takes `first`, at once or by way of others, which are marked then.
    fn closes_circle(&mut self, first: ObjId, s: ObjId) -> bool {
        const MOST: usize = 64;
        let mut reached = [s; MOST];
        let mut n = 1;
        let mut i = 0;
        while i < n {
            for at in 0..self.world.stream_pairs.len {
                let [from, to] = self.world.stream_pairs[at];
                if from != reached[i] || reached[..n].contains(&to) {
                    continue;
                }
                if n == MOST {
                    return true;
                }
                reached[n] = to;
                n += 1;
            }
            i += 1;
        }
        let circle = reached[..n].contains(&first);
        // Some of these are not on the way; that costs executions, and loses nothing.
        for &on in reached[..n].iter().filter(|_| circle) {
            self.mark_stream(on, STREAM_HELD);
        }
        circle
    }

    fn is_stream_shared(&mut self, s: ObjId) -> bool {
        if self.world.objects[s].sharing == Sharing::UNKNOWN {
            let known = self.is_known(name_of(self.world.objects[s].key));
            self.world.objects[s].sharing = if known { Sharing::SHARED } else { Sharing::OWN };
        }
        self.world.objects[s].sharing == Sharing::SHARED
    }

    /// `t` uses stream `s`, in a way that can be told or not.
    fn use_stream(&mut self, t: Tid, s: ObjId, told: bool) {
        let mixes = self.stream_changes_hands(t, s);
        let at = self.world.ops + 1;
        let stream = &mut self.world.objects[s];
        (stream.user, stream.used_at) = (t, at);
        let mixed = stream.flags & STREAM_MIXED != 0;
        if mixes || mixed && told {
            self.mark_stream(s, STREAM_MIXED | if told { STREAM_TOLD } else { 0 });
        }
    }

    /// It is shared once it is mixed, and held or told.
    fn mark_stream(&mut self, s: ObjId, what: u32) {
        let flags = &mut self.world.objects[s].flags;
        *flags |= what;
        if *flags & STREAM_MIXED != 0 && *flags & (STREAM_HELD | STREAM_TOLD) != 0 && !self.is_stream_shared(s) {
            self.note_object(s);
        }
    }
}
