//! The state of a run in a form that does not depend on the order in which threads were created.

use std::collections::BTreeSet;
use std::fmt::Write;

use vsrun_model::{lock, AwaitedState, End, Kind, ObjKind, Tid, NONE};

use super::Run;

/// How an execution ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// For executions that ran to their end the whole state, for those cut short by a bug the bug.
    pub text: String,
    /// The whole state.
    pub state: String,
    /// A thread stands at the end of its process, with or without others that would end with it.
    pub exiting: bool,
}

/// Different outcomes.
pub type Outcomes = BTreeSet<String>;

impl Run<'_> {
    fn name(&self, t: Tid) -> i64 {
        self.fibers.get(t as usize).map_or(-1, |f| f.code as i64)
    }

    pub(super) fn outcome(&self) -> Outcome {
        let world = &self.arena.world;
        let state = self.state();
        let text = match world.end {
            End::FINISHED | End::DEADLOCK | End::WAITS_OUTSIDE => format!("{:?} {state}", world.end),
            // Which of two circles was noted first is not part of what happened.
            End::CYCLE if world.past_cycles => format!("{:?} {state}", End::DEADLOCK),
            End::CYCLE => format!("{:?} {}", world.end, self.cycle()),
            End::ASSERT => format!("{:?} {}", world.end, String::from_utf8_lossy(world.message())),
            End::MISUSE => {
                format!("{:?} {} {} {}", world.end, self.name(world.end_thread), world.end_obj, world.end_code)
            }
            end => format!("{end:?}"),
        };
        let exiting = world
            .live
            .as_slice()
            .iter()
            .any(|&t| matches!(world.threads[t].pending.kind, Kind::EXIT | Kind::FD_CLOSE_ALL));
        Outcome { text, state, exiting }
    }

    /// The circle, beginning with its first thread.
    fn cycle(&self) -> String {
        let world = &self.arena.world;
        let mut names: Vec<i64> = world.cycle[..world.n_cycle as usize].iter().map(|&t| self.name(t)).collect();
        let first = (0..names.len()).min_by_key(|&i| names[i]).unwrap_or(0);
        names.rotate_left(first);
        format!("{names:?}")
    }

    fn state(&self) -> String {
        let world = &self.arena.world;
        let mut text = String::with_capacity(512);
        for (code, t) in self.started.iter().enumerate() {
            let Some(t) = *t else { continue };
            let thread = &world.threads[t];
            let op = &thread.pending;
            let target = match op.kind {
                Kind::JOIN | Kind::CANCEL => self.name(op.obj),
                // Channels come to be in any order.
                _ if world.objects.get(op.obj).is_some_and(|o| o.key.kind == ObjKind::CHANNEL) => {
                    world.objects[op.obj].key.addr as i64
                }
                _ => op.obj as i64,
            };
            let _ = writeln!(
                text,
                "t{code}: {} {} {target} w{} c{} j{} x{} {:?} n{}",
                thread.state.0,
                op.kind.name(),
                (thread.woken && thread.state.0 == 3) as u8,
                if thread.state.0 == 3 { world.choices(t) } else { 0 },
                thread.joined as u8 + 2 * thread.n_handlers,
                thread.cancel,
                self.fibers[t as usize].log,
                self.fibers[t as usize].pc,
            );
        }
        for (i, object) in world.objects.as_slice().iter().enumerate() {
            // What is in variables that nothing protects is told below.
            if matches!(object.key.kind, ObjKind::CHANNEL | ObjKind::DESCRIPTOR | ObjKind::MEMORY) {
                continue;
            }
            let mut waiters = Vec::new();
            let mut at = object.waiters;
            while at != NONE {
                waiters.push(self.name(at));
                at = world.threads[at].queue_next;
            }
            for &t in world.live.as_slice() {
                let thread = &world.threads[t];
                let words = &thread.awaited[..thread.n_awaited as usize];
                let queued = words.iter().filter(|word| word.obj == i as u32 && word.state == AwaitedState::QUEUED);
                waiters.extend(queued.map(|_| self.name(t)));
            }
            waiters.sort_unstable();
            assert_eq!(waiters.len(), object.n_waiters as usize, "the queue of {i} is counted right");
            let mut holds: Vec<_> = world.read_holds(i as u32).map(|(t, n)| (self.name(t), n)).collect();
            holds.sort_unstable();
            if object.key.kind == ObjKind::RWLOCK {
                assert_eq!(holds.iter().map(|h| h.1).sum::<u32>(), object.count, "readers of {i} are counted right");
            }
            // What is known of a stream decides what is visible, and is nothing to the program.
            let of_libc = matches!(object.key.kind, ObjKind::STREAM | ObjKind::LIBC);
            let flags = if of_libc { 0 } else { object.flags };
            let extra = (flags, self.name(object.owner), object.count, object.value);
            let _ = writeln!(text, "o{i}: {extra:?} {waiters:?} {holds:?}");
            if matches!(object.key.kind, ObjKind::RECORDS | ObjKind::FLOCK) {
                let owner = |o| lock::owner_process(o).map_or(-(o as i64), |p| self.name(world.procs[p].main_thread));
                let locks = world.locks_on(i as u32).map(|l| (owner(l.owner), l.first, l.last, l.write));
                let _ = writeln!(text, "l{i}: {:?}", locks.collect::<BTreeSet<_>>());
            }
            if object.key.kind == ObjKind::MSGQ {
                let all: Vec<_> = world.messages_of(i as u32).map(|m| (m.mtype, m.len)).collect();
                let _ = writeln!(text, "q{i}: {all:?} of {}", world.message_queue(i as u32).limit);
            }
        }
        let values: Vec<i32> = world.semvals.as_slice().iter().map(|v| v.value).collect();
        let undos = world.undos.as_slice().iter().filter(|u| u.adjust != 0);
        let undos: BTreeSet<_> = undos.map(|u| (self.name(world.procs[u.pid].main_thread), u.num, u.adjust)).collect();
        let procs: BTreeSet<_> = world.procs.as_slice().iter().map(|p| (self.name(p.main_thread), p.state.0)).collect();
        for (code, t) in self.started.iter().enumerate() {
            let Some(t) = *t else { continue };
            let (thread, process) = (&world.threads[t], &world.procs[world.threads[t].pid]);
            let signals = (thread.sigmask, thread.sigpending, process.sigpending, process.stopped);
            let frames: Vec<i32> = self.fibers[t as usize].frames.iter().map(|f| f.signal).collect();
            let _ = writeln!(text, "g{code}: {signals:?} {frames:?}");
        }
        let _ = write!(
            text,
            "s{values:?} u{undos:?} p{procs:?} v{:?} m{:?} n{} f{}",
            self.vars,
            self.memory,
            self.numbers.text(),
            if super::sockets::uses(self.program) { self.sockets() } else { self.descriptors() }
        );
        text
    }
}

/// Whether some execution ended with something that vsrun does not support: no search claims to be exhaustive then.
pub fn refused<'a>(mut outcomes: impl Iterator<Item = &'a String>) -> bool {
    let unsupported = format!("{:?}", End::UNSUPPORTED);
    outcomes.any(|o| o.starts_with(&unsupported))
}
