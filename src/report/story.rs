//! The story of a bug in a few sentences, made from what is known of its end and of the steps: who took what and when, who came to it too
//! late, and why nobody can give it back. Sentences that the facts do not support are left out.

use std::collections::BTreeSet;

use vsrun_model::kind::{Channels, Operands, Outcome, Role};
use vsrun_model::{Kind, ObjId, Op, Pid, Tid, Uid, NONE};

use crate::finding::{
    signal_name, BugKind, CycleLink, Finding, Names, People, PlaceView, ThreadStatus, ThreadView, Words,
};

/// Threads of which it is told one by one.
const MOST: usize = 4;

/// The sentences, and the steps that they name, by index.
#[derive(Default)]
pub struct Story {
    pub sentences: Vec<String>,
    pub steps: BTreeSet<usize>,
}

/// The story of what was found; empty where there is none to tell.
pub fn of(found: &Finding, people: &People) -> Story {
    let mut teller = Teller { found, people, story: Story::default() };
    match &found.cycle {
        Some(cycle) if cycle.len() == 1 => teller.own_circle(cycle[0]),
        Some(cycle) if !cycle.is_empty() => teller.circle(cycle),
        _ if found.race.is_some() || found.gone.is_some() => {}
        _ => match found.kind {
            Some(BugKind::Deadlock) => teller.standstill(),
            Some(BugKind::Crash | BugKind::Assert | BugKind::Divergence) => teller.last_steps(),
            _ => {}
        },
    }
    teller.replaced();
    teller.story
}

fn is_on_objects(op: &Op) -> bool {
    matches!(op.kind.row().operands, Operands::One | Operands::Objects)
}

struct Teller<'a> {
    found: &'a Finding,
    people: &'a People<'a>,
    story: Story,
}

impl Teller<'_> {
    fn say(&mut self, sentence: String) {
        self.story.sentences.push(sentence);
    }

    /// ` (transfer accounts.c:19)`, where a thread stands.
    fn stands(&self, t: Tid) -> String {
        let frames = self.found.threads.get(t as usize).map_or(&[][..], |thread| &thread.frames);
        let line = PlaceView::of_program(frames).and_then(PlaceView::brief);
        line.map_or_else(String::new, |line| format!(" ({line})"))
    }

    /// `step 7 (transfer accounts.c:19)`; the story names it.
    fn step(&mut self, n: usize) -> String {
        self.story.steps.insert(n);
        let line = self.found.steps[n].at.as_ref().and_then(PlaceView::brief);
        format!("step {}{}", n + 1, line.map_or_else(String::new, |line| format!(" ({line})")))
    }

    /// The last step of `t` that fits.
    fn last_of(&self, t: Tid, fits: impl Fn(&Op) -> bool) -> Option<usize> {
        let uid = self.found.threads.get(t as usize)?.uid;
        self.found.steps.iter().rposition(|step| step.thread == uid && fits(&step.op))
    }

    /// When `t` took `object` last.
    fn taken(&self, t: Tid, object: ObjId) -> Option<usize> {
        self.last_of(t, |op| match op.kind.row().role {
            Role::Acquires(_) | Role::AwaitsOwner => op.obj == object,
            Role::Reacquires => op.obj2 == object,
            _ => false,
        })
    }

    /// `took lock_a at step 3 (..)`, or `has lock_a`.
    fn has(&mut self, t: Tid, object: ObjId) -> String {
        let name = self.people.object(object);
        match self.taken(t, object) {
            Some(n) => format!("took {name} at {}", self.step(n)),
            None => format!("has {name}"),
        }
    }

    fn wants(&self, link: &CycleLink, next: Tid) -> String {
        let what = match link.object {
            Some(object) => self.people.object(object),
            None => format!("the end of {}", self.people.thread(next)),
        };
        format!("waits for {what}{}", self.stands(link.thread))
    }

    /// Threads that wait for each other.
    fn circle(&mut self, cycle: &[CycleLink]) {
        let n = cycle.len();
        for (i, link) in cycle.iter().enumerate().take(MOST) {
            let who = self.people.thread(link.thread);
            // The one before waits for what this one has.
            let has = cycle[(i + n - 1) % n].object.map(|object| self.has(link.thread, object));
            let wants = self.wants(link, cycle[(i + 1) % n].thread);
            self.say(match has {
                Some(has) => format!("{who} {has}, and now {wants}."),
                None => format!("{who} {wants}."),
            });
        }
        if n > MOST {
            self.say(format!("So it goes on through {} more threads, back to the first.", n - MOST));
        }
        self.too_late(cycle);
        let all_locks = cycle.iter().all(|link| link.object.is_some());
        let end = if n == 2 { "so neither can go on" } else { "so none of them can go on" };
        let each = if n == 2 { "what the other waits for" } else { "what another waits for" };
        self.say(match all_locks {
            true => format!(
                "Each has {each}, and would give it back only after it has got what it waits for itself: {end}."
            ),
            false => format!("Each waits for another of them, {end}."),
        });
        let members: BTreeSet<Tid> = cycle.iter().map(|link| link.thread).collect();
        self.others(&members);
    }

    /// Of two: who was where when the lock was needed.
    fn too_late(&mut self, cycle: &[CycleLink]) {
        let [a, b] = cycle else { return };
        let taken = |link: &CycleLink, t: Tid| link.object.and_then(|object| self.taken(t, object));
        let (Some(first), Some(second)) = (taken(b, a.thread), taken(a, b.thread)) else { return };
        let (earlier, later) = if first < second { (a, b) } else { (b, a) };
        let (one, other) = (self.people.thread(earlier.thread), self.people.thread(later.thread));
        self.say(format!("{other} came between the two locks of {one}."));
    }

    /// A thread that waits for itself.
    fn own_circle(&mut self, link: CycleLink) {
        let who = self.people.thread(link.thread);
        let Some(object) = link.object else {
            return self.say(format!("{who} waits for its own end, which does not come while it waits."));
        };
        let name = self.people.object(object);
        let taken = self.taken(link.thread, object);
        let has = self.has(link.thread, object);
        self.say(format!("{who} {has}."));
        let uid = self.found.threads[link.thread as usize].uid;
        let from = taken.map_or(0, |n| n + 1);
        let steps = self.found.steps.iter().enumerate().skip(from);
        let mut notes = steps.filter(|(_, step)| step.thread == uid).filter_map(|(n, step)| {
            let note = step.note.as_ref()?.render(self.people);
            let came = note.strip_suffix(" comes first").or_else(|| note.strip_prefix("interrupted by "))?;
            Some((n, came.to_string(), step.text.render(self.people)))
        });
        let handler = notes.next_back();
        drop(notes);
        // One that came behind its last step is told by what it waits for.
        let pending = self.found.threads[link.thread as usize].pending.as_ref();
        let waits = pending.map_or_else(String::new, |pending| pending.text.render(self.people));
        let inside = waits.split_once(", in the handler of ").map(|(_, rest)| rest.split(',').next().unwrap_or(rest));
        let came = match (handler, inside) {
            (Some((n, signal, text)), _) => {
                let by = self.cause(link.thread, n, &signal);
                let at = self.step(n);
                Some(format!("{signal}{by} came before its {text}, at {at}"))
            }
            (None, Some(signal)) => {
                let by = self.cause(link.thread, self.found.steps.len(), signal);
                Some(format!("{signal}{by} came behind that"))
            }
            (None, None) => None,
        };
        match came {
            Some(came) => {
                self.say(format!("{came}: its handler waits for {name}{}.", self.stands(link.thread)));
                self.say(format!("{who} would give {name} back only when the handler is over, and the handler waits for that: it never ends."));
            }
            None => {
                self.say(format!(
                    "It waits for the same lock again{}, and nobody but itself could give it back.",
                    self.stands(link.thread)
                ));
            }
        }
        self.others(&[link.thread].into());
    }

    /// Who waits beside those of a circle.
    fn others(&mut self, members: &BTreeSet<Tid>) {
        let all: Vec<String> =
            self.waiting().filter(|(t, _)| !members.contains(t)).map(|(t, _)| self.waits(t)).collect();
        let shown = all.iter().take(MOST).cloned().collect::<Vec<_>>().join("; ");
        let more = all.len().saturating_sub(MOST);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        if !all.is_empty() {
            self.say(format!("Beside them {shown}{more}."));
        }
    }

    /// Threads that wait for something.
    fn waiting(&self) -> impl Iterator<Item = (Tid, &ThreadView)> {
        (0..).zip(&self.found.threads).filter(|(_, thread)| thread.status == ThreadStatus::Waiting)
    }

    /// `worker#1 (0.1) waits for data from pipe ..`.
    fn waits(&self, t: Tid) -> String {
        let thread = &self.found.threads[t as usize];
        let what: Vec<String> =
            thread.waits_for.iter().take(2).map(|words: &Words| words.render(self.people)).collect();
        match (what.is_empty(), &thread.pending) {
            (true, Some(pending)) => format!("{} waits in {}", self.people.thread(t), pending.text.render(self.people)),
            (true, None) => format!("{} waits", self.people.thread(t)),
            (false, _) => format!("{} waits for {}", self.people.thread(t), what.join(" or ")),
        }
    }

    /// Nothing can move.
    fn standstill(&mut self) {
        // Those that wait for the end of others are no reason.
        let follows = |thread: &ThreadView| {
            let kind = thread.pending.as_ref().map_or(Kind::NONE, |pending| pending.op.kind);
            matches!(kind, Kind::JOIN | Kind::WAIT | Kind::WAIT_SLEEP)
        };
        let (followers, leaders): (Vec<_>, Vec<_>) =
            self.waiting().map(|(t, thread)| (t, follows(thread))).partition(|(_, follows)| *follows);
        for &(t, _) in leaders.iter().take(MOST) {
            let sentence = format!("{}{}.", self.waits(t), self.stands(t));
            self.say(sentence);
            self.since(t);
        }
        if leaders.len() > MOST {
            self.say(format!("{} more threads wait like that.", leaders.len() - MOST));
        }
        for &(t, _) in followers.iter().take(MOST) {
            let sentence = format!("{}{}.", self.waits(t), self.stands(t));
            self.say(sentence);
        }
        if !leaders.is_empty() || !followers.is_empty() {
            self.say("Nobody else is left who could run, so nothing can move.".to_string());
        }
    }

    /// A signal that was handled just before the wait began: what its handler did came too early to end that.
    fn signalled_before(&mut self, t: Tid) {
        let kind = self.found.threads[t as usize].pending.as_ref().map(|pending| pending.op.kind);
        let Some(n) = self.last_of(t, |_| true).filter(|&n| Some(self.found.steps[n].op.kind) == kind) else { return };
        let Some(note) = self.found.steps[n].note.as_ref().map(|note| note.render(self.people)) else { return };
        let Some(signal) = note.strip_suffix(" comes first") else { return };
        let sender = self.cause(t, n, signal);
        let at = self.step(n);
        self.say(format!(
            "{signal}{sender} was handled at {at}, before the wait had begun: the handler could not end what began behind it."
        ));
    }

    /// `, sent by daemon (0) at step 3 (..),`, or `, for the end of child#2 (0.2) at step 10 (..),`.
    fn cause(&mut self, t: Tid, n: usize, signal: &str) -> String {
        let sent = self.sender(n, signal);
        match self.child_ended(t, n).filter(|_| sent.is_empty() && signal == "SIGCHLD") {
            Some(end) => {
                let who = self.people.mover(self.found.steps[end].thread);
                format!(", for the end of {who} at {},", self.step(end))
            }
            None => sent,
        }
    }

    /// The last step of the child of `t`'s process that was over last before step `n`.
    fn child_ended(&self, t: Tid, n: usize) -> Option<usize> {
        let (steps, threads) = (&self.found.steps, &self.found.threads);
        let process = |uid: Uid| threads.iter().rev().find(|thread| thread.uid == uid).map(|thread| thread.process);
        let own = threads.get(t as usize)?.process;
        let forker = |p: Pid| self.found.forker(p).and_then(|t| Some(threads.get(t as usize)?.process));
        let ends = |m: usize| {
            let kind = steps[m].op.kind;
            matches!(kind, Kind::END | Kind::EXIT | Kind::THREAD_EXIT) || self.killed_before(m).is_some()
        };
        let is_over = |m: &usize| {
            let Some(p) = process(steps[*m].thread).filter(|&p| p != own && forker(p) == Some(own)) else {
                return false;
            };
            ends(*m) && !steps[m + 1..].iter().any(|step| process(step.thread) == Some(p))
        };
        (0..n.min(steps.len())).rev().find(is_over)
    }

    /// What was done last to what a thread waits for.
    fn since(&mut self, t: Tid) {
        self.signalled_before(t);
        let Some(op) = self.found.threads[t as usize].pending.as_ref().map(|pending| pending.op) else { return };
        let (object, uid) = (op.obj, self.found.threads[t as usize].uid);
        if object == NONE || !is_on_objects(&op) {
            return;
        }
        let name = self.people.object(object);
        let wakes = |n: &usize| {
            let step = &self.found.steps[*n];
            step.op.obj == object && matches!(step.op.kind.row().shown.outcome, Outcome::Wakes(_))
        };
        if op.kind == Kind::COND_WAKE {
            let Some(began) = self.last_of(t, |op| op.kind == Kind::COND_WAIT && op.obj == object) else { return };
            let began_at = self.step(began);
            let last = (0..self.found.steps.len()).rev().find(wakes);
            let sentence = match last {
                None => format!("It has waited since {began_at}, and nobody has ever signalled {name}."),
                Some(n) => {
                    let by = self.people.mover(self.found.steps[n].thread);
                    let at = self.step(n);
                    match n < began {
                        true => format!("It has waited since {began_at}; {by} signalled {name} last at {at}, before it waited: that wake-up was lost."),
                        false => format!("It has waited since {began_at}; {by} signalled {name} last at {at}, and that woke another."),
                    }
                }
            };
            return self.say(sentence);
        }
        let on_it = |n: usize| {
            let step = &self.found.steps[n];
            let on_object = is_on_objects(&step.op) && (step.op.obj == object || step.op.obj2 == object);
            let gives_up =
                matches!(step.op.kind.row().channels, Channels::Closes | Channels::ClosesAll | Channels::Ends);
            step.thread != uid && on_object && !gives_up && self.killed_before(n).is_none()
        };
        let Some(last) = (0..self.found.steps.len()).rev().find(|&n| on_it(n)) else { return };
        let (by, text) = (self.people.mover(self.found.steps[last].thread), self.text(last));
        let at = self.step(last);
        let fate = self.fate(last);
        self.say(format!("The last other one at {name} was {by}: {text}, {at}{fate}."));
    }

    fn text(&self, n: usize) -> String {
        self.found.steps[n].text.render(self.people)
    }

    /// The signal that ended a process in the place of a step.
    fn killed_before(&self, n: usize) -> Option<String> {
        let note = self.found.steps[n].note.as_ref()?.render(self.people);
        note.strip_suffix(" ends the process").map(String::from)
    }

    /// What became of the thread of a step, if it is over.
    fn fate(&mut self, n: usize) -> String {
        let uid = self.found.steps[n].thread;
        let of_it = |m: &usize| self.found.steps[*m].thread == uid;
        let killed = (n + 1..self.found.steps.len()).filter(of_it).find_map(|m| Some((m, self.killed_before(m)?)));
        if let Some((m, signal)) = killed {
            let text = self.text(m);
            let sender = self.sender(m, &signal);
            let at = self.step(m);
            return format!("; {signal}{sender} ended it before its {text}, {at}");
        }
        let over = self.found.threads.iter().rev().find(|thread| thread.uid == uid);
        over.filter(|thread| thread.status == ThreadStatus::Exited).map_or("", |_| ", and it is over now").to_string()
    }

    /// `, sent by daemon (0) at step 3 (..),`: who sent a signal that came in the place of step `n`, if a step tells.
    fn sender(&mut self, n: usize, signal: &str) -> String {
        let kills = |op: &Op| op.kind == Kind::KILL && signal_name(op.arg as u32) == signal;
        let sent = self.found.steps.iter().take(n).rposition(|step| kills(&step.op));
        sent.map_or_else(String::new, |sent| {
            let who = self.people.mover(self.found.steps[sent].thread);
            format!(", sent by {who} at {},", self.step(sent))
        })
    }

    /// What led to a crash or a failed assertion: the last step of its thread, and that of another thread before it.
    fn last_steps(&mut self) {
        let of_signal = self.found.signal.as_ref().map(|signal| signal.thread);
        let running = (0..).zip(&self.found.threads).find(|(_, thread)| thread.status == ThreadStatus::Running);
        let Some(t) = of_signal.or(running.map(|(t, _)| t)) else { return };
        let Some(uid) = self.found.threads.get(t as usize).map(|thread| thread.uid) else { return };
        let who = self.people.thread(t);
        let came = match &self.found.signal {
            Some(signal) => format!("{who} got {}", signal.name),
            None if self.found.kind == Some(BugKind::Divergence) => format!("{who} runs on without an operation"),
            None => format!("{who} failed"),
        };
        let own = self.last_of(t, |_| true);
        let text = |n: usize| self.found.steps[n].text.render(self.people);
        let sentence = match own {
            Some(n) => (text(n), n),
            None => {
                self.say(format!("{came}{} before it had made any step.", self.stands(t)));
                return self.held(t);
            }
        };
        let at = self.step(sentence.1);
        self.say(format!("{came}{} after {at}: {}.", self.stands(t), sentence.0));
        let other = self.found.steps.iter().rposition(|step| step.thread != uid && step.matters);
        if let Some(n) = other {
            let (by, text) =
                (self.people.mover(self.found.steps[n].thread), self.found.steps[n].text.render(self.people));
            let order = if n < sentence.1 { "before that" } else { "after that" };
            let at = self.step(n);
            self.say(format!("The last step of another thread that it depends on came {order}: {by} at {at}: {text}."));
        }
        self.held(t);
    }

    /// Locks of files that are no longer what their names stand for.
    fn replaced(&mut self) {
        let all: Vec<(usize, usize)> =
            self.found.steps.iter().enumerate().filter_map(|(n, step)| Some((n, step.replaced?))).collect();
        for &(n, by) in all.iter().take(MOST) {
            let (who, other) = (self.mover(n), self.mover(by));
            let name = self.people.object(self.found.steps[n].op.obj);
            let (at, before) = (self.step(n), self.step(by));
            self.say(format!(
                "{who} took the lock of {name} at {at}, but of the old file: {other} had put another one in its place at {before}, and who opens it now locks that one."
            ));
        }
    }

    fn mover(&self, n: usize) -> String {
        self.people.mover(self.found.steps[n].thread)
    }

    fn held(&mut self, t: Tid) {
        let held: Vec<String> =
            self.found.threads[t as usize].holds.iter().map(|words| words.render(self.people)).collect();
        if !held.is_empty() {
            self.say(format!("It holds {}.", held.join(", ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{deadlock, finding, step, LOCK_A, LOCK_B};
    use super::*;
    use crate::finding::{words, LineView, Pending, SignalView, StepView, Thing};

    fn told(found: &Finding) -> (Vec<String>, Vec<usize>) {
        let story = of(found, &People::of(found));
        (story.sentences, story.steps.into_iter().collect())
    }

    fn made(thread: u32, op: Op, text: &'static str, line: u32) -> StepView {
        let line = LineView { function: "f".into(), file: "a.c".into(), name: "a.c".into(), line, text: None };
        let uid = if thread == 0 { Uid::MAIN } else { Uid::MAIN.child(thread) };
        StepView { op, at: Some(PlaceView { lines: vec![line], ..PlaceView::default() }), ..step(uid, text) }
    }

    #[test]
    fn who_took_what_and_who_came_between() {
        let mut found = deadlock().finding.expect("it was looked at");
        let lock = |thread, object, line| made(thread, Op::on(Kind::MUTEX_LOCK, object), "lock", line);
        let unlock = made(1, Op::on(Kind::MUTEX_UNLOCK, LOCK_A), "unlock", 3);
        found.steps = vec![lock(1, LOCK_A, 1), unlock, lock(1, LOCK_A, 4), lock(2, LOCK_B, 7)];
        let (sentences, steps) = told(&found);
        assert_eq!(
            sentences[..3],
            [
                "worker#1 (0.1) took lock_a at step 3 (f a.c:4), and now waits for lock_b.",
                "worker#2 (0.2) took lock_b at step 4 (f a.c:7), and now waits for lock_a.",
                "worker#2 (0.2) came between the two locks of worker#1 (0.1).",
            ]
        );
        assert_eq!(steps, [2, 3]);
    }

    #[test]
    fn a_handler_that_wants_what_its_thread_has() {
        let mut found = deadlock().finding.expect("it was looked at");
        found.cycle = Some(vec![CycleLink { thread: 1, object: Some(LOCK_A) }]);
        let mut last = made(1, Op::on(Kind::MUTEX_UNLOCK, LOCK_A), "unlock", 9);
        last.note = Some(words![Thing::Signal(1), " comes first"]);
        let kill = made(2, Op::on(Kind::KILL, 0).arg(1), "kill", 5);
        found.steps = vec![made(1, Op::on(Kind::MUTEX_LOCK, LOCK_A), "lock", 8), kill, last];
        let (sentences, steps) = told(&found);
        assert_eq!(sentences[..2], [
            "worker#1 (0.1) took lock_a at step 1 (f a.c:8).",
            "SIGHUP, sent by worker#2 (0.2) at step 2 (f a.c:5), came before its unlock, at step 3 (f a.c:9): its handler waits for lock_a.",
        ]);
        assert!(sentences[2].ends_with("it never ends."), "{}", sentences[2]);
        assert_eq!(steps, [0, 1, 2]);
        // It came behind the last step of its thread.
        found.steps = vec![
            made(2, Op::on(Kind::KILL, 0).arg(1), "kill", 5),
            made(1, Op::on(Kind::MUTEX_LOCK, LOCK_A), "lock", 8),
        ];
        let pending = found.threads[1].pending.as_mut().expect("it waits");
        pending.text = words!["lock", ", in the handler of ", Thing::Signal(1), ", which interrupted lock"];
        let (sentences, steps) = told(&found);
        assert_eq!(
            sentences[1],
            "SIGHUP, sent by worker#2 (0.2) at step 1 (f a.c:5), came behind that: its handler waits for lock_a."
        );
        assert!(sentences[2].ends_with("it never ends."), "{}", sentences[2]);
        assert_eq!(steps, [0, 1]);
    }

    #[test]
    fn a_wake_up_that_came_too_early() {
        let mut found = deadlock().finding.expect("it was looked at");
        found.cycle = None;
        let mut wake = Op::on(Kind::COND_WAKE, LOCK_B);
        wake.obj2 = LOCK_A;
        found.threads[1].pending = Some(Pending { op: wake, alternatives: 0, text: "wait".into() });
        found.threads[1].waits_for = vec!["c to be signalled".into()];
        found.threads.truncate(2);
        found.steps = vec![
            made(0, Op::on(Kind::COND_SIGNAL, LOCK_B), "signal", 5),
            made(1, Op::on(Kind::COND_WAIT, LOCK_B), "wait", 8),
        ];
        let (sentences, steps) = told(&found);
        assert_eq!(sentences, [
            "worker (0.1) waits for c to be signalled.",
            "It has waited since step 2 (f a.c:8); main (0) signalled lock_b last at step 1 (f a.c:5), before it waited: that wake-up was lost.",
            "main (0) waits for the end of thread worker (0.1).",
            "Nobody else is left who could run, so nothing can move.",
        ]);
        assert_eq!(steps, [0, 1]);
        found.steps.swap(0, 1);
        assert!(told(&found).0[1].ends_with("and that woke another."));
        found.steps.truncate(1);
        assert!(told(&found).0[1].ends_with("nobody has ever signalled lock_b."));
    }

    #[test]
    fn a_signal_that_was_handled_just_before_the_wait() {
        let mut found = deadlock().finding.expect("it was looked at");
        found.cycle = None;
        let poll = Op::on(Kind::FD_POLL, LOCK_B);
        found.threads[1].pending = Some(Pending { op: poll, alternatives: 0, text: "poll".into() });
        found.threads[1].waits_for = vec!["input".into()];
        found.threads.truncate(3);
        let mut last = made(1, poll, "poll", 9);
        last.note = Some(words![Thing::Signal(17), " comes first"]);
        (found.threads[2].process, found.threads[2].creator) = (1, Some(0));
        found.processes.push(found.processes[0].clone());
        let end = |kind| made(2, Op::new(kind), "ends", 5);
        found.steps = vec![end(Kind::EXIT), last];
        let (sentences, steps) = told(&found);
        assert_eq!(
            sentences[1],
            "SIGCHLD, for the end of child#1 (0.2) at step 1 (f a.c:5), was handled at step 2 (f a.c:9), before the wait had begun: the handler \
             could not end what began behind it."
        );
        assert_eq!(steps, [0, 1]);
        let ends = found.steps.clone();
        found.steps[0] = end(Kind::END);
        assert_eq!(told(&found), (sentences, steps));
        let tells = |found: &Finding| told(found).0.iter().any(|sentence| sentence.contains(", for the end of"));
        // It goes on, and it is no child.
        found.steps.push(end(Kind::END));
        assert!(!tells(&found));
        found.steps.pop();
        found.threads[2].creator = None;
        assert!(!tells(&found));
        found.steps = ends;
        found.steps[1].op = Op::on(Kind::FD_READ, LOCK_B);
        assert!(!told(&found).0.iter().any(|sentence| sentence.contains("SIGCHLD")), "that was another call");
    }

    #[test]
    fn a_lock_of_a_file_that_is_gone() {
        let mut found = deadlock().finding.expect("it was looked at");
        let lock = StepView { replaced: Some(0), ..made(2, Op::on(Kind::FLOCK, LOCK_B), "flock", 7) };
        found.steps = vec![made(1, Op::on(Kind::PATH_CHANGE, LOCK_A), "rename", 5), lock];
        let (sentences, steps) = told(&found);
        assert_eq!(
            sentences.last().map(String::as_str),
            Some(
                "worker#2 (0.2) took the lock of lock_b at step 2 (f a.c:7), but of the old file: worker#1 (0.1) had put another one in its place \
                 at step 1 (f a.c:5), and who opens it now locks that one."
            )
        );
        assert_eq!(steps, [0, 1]);
    }

    #[test]
    fn who_was_killed_with_what_others_wait_for() {
        let mut found = deadlock().finding.expect("it was looked at");
        found.cycle = None;
        let semop = |arg| Op::on(Kind::SYSV_OP, LOCK_B).arg(arg);
        found.threads[1].pending = Some(Pending { op: semop(-1), alternatives: 0, text: "semop".into() });
        found.threads[1].waits_for = vec!["the set".into()];
        found.threads.truncate(3);
        found.threads[2].status = ThreadStatus::Exited;
        let mut last = made(2, semop(1), "up", 9);
        last.note = Some(words![Thing::Signal(9), " ends the process"]);
        let kill = made(0, Op::on(Kind::KILL, 0).arg(9), "kill", 5);
        found.steps = vec![kill, made(2, semop(-1), "down", 8), last];
        let (sentences, steps) = told(&found);
        assert_eq!(
            sentences[1],
            "The last other one at lock_b was worker#2 (0.2): down, step 2 (f a.c:8); SIGKILL, sent by main (0) at step 1 (f a.c:5), ended it \
             before its up, step 3 (f a.c:9)."
        );
        assert_eq!(steps, [0, 1, 2]);
        found.steps.pop();
        assert!(told(&found).0[1].ends_with(", and it is over now."));
    }

    #[test]
    fn what_came_before_a_crash() {
        let threads = deadlock().finding.expect("it was looked at").threads;
        let mut found = Finding { threads, ..finding(BugKind::Crash) };
        found.signal = Some(SignalView { thread: 2, name: "SIGSEGV".into(), ..SignalView::default() });
        let lock = |thread, line| made(thread, Op::on(Kind::MUTEX_LOCK, LOCK_A), "lock", line);
        found.steps = vec![lock(1, 1), lock(2, 2), StepView { matters: false, ..lock(1, 3) }];
        assert_eq!(told(&found).0, [
            "worker#2 (0.2) got SIGSEGV after step 2 (f a.c:2): lock.",
            "The last step of another thread that it depends on came before that: worker#1 (0.1) at step 1 (f a.c:1): lock.",
            "It holds lock_b.",
        ]);
    }
}
