//! When further root processes begin: clients once there is a server, the program once more after its end.

use super::row::*;
use super::signal::SIGKILL;
use crate::base::Pid;
use crate::state::{bit, Awaits, ProcState, ALWAYS};

kinds! {
    /// A process of `--with` begins once there is what it waits for, or has been (`--clients`): by `arg`, see [`Awaits`].
    LISTENER = 133, "listener" {
        operands: Operands::Nothing, enabled: blocks(|w, _, op| u32::from(w.clients_may_begin(op)), |_| Answer::Unknown), perform: DONE,
        records: Records::NOTHING, cells: WIDE, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle::BUSY, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::By(|op| match Awaits(op.arg as u32) {
            Awaits::FILE => "await_file",
            Awaits::OUTPUT => "await_output",
            _ => "await_listener",
        }), arguments: NO_ARGUMENTS, outcome: Outcome::Nothing, waits: Some(|world, _, op, words| match Awaits(op.arg as u32) {
            Awaits::FILE => say![words, "the file ", Text(world.awaited_text()), ", as --clients file: asks for (nobody has made it)"],
            Awaits::OUTPUT => say![words, "the program to print \"", Text(world.awaited_text()), "\", as --clients output: asks for (it has not)"],
            _ => say![words, "a socket that listens or takes datagrams under a name of its choice, as --clients listening asks for (none has)"],
        }), identity: BY_OBJECTS },
    }
    /// The program is started once more, after the end of the start before, which is process `arg` (`--restart`). [`ALWAYS`]: after any, not
    /// only after a failure. Gives 0 where that end does not ask for it.
    RESTART = 134, "restart" {
        operands: Operands::Nothing, enabled: blocks(|w, _, op| u32::from(w.start_is_over(op.arg as Pid)), |_| Answer::Unknown),
        perform: |w, t, op, _| Applied::Done(w.restart_perform(t, op)),
        records: Records::NOTHING, cells: WIDE, follows: NOBODY, blocks: MAY_BLOCK,
        role: Role::None, channels: Channels::None, signals: Signals::WAITS_ON, polls: Polls::Errors,
        alone: Alone::Visible, idle: Idle { peer: |_, _, _| true, ..Idle::BUSY }, tells: NOT, memory: Memory::Nothing, unproven: PROVEN,
        shown: Shown { call: Call::One("restart"), arguments: |op, _, words| say![words, "after ", Thing::Process(op.arg as Pid)],
            outcome: Outcome::Nothing, waits: Some(|_, _, op, words| {
            say![words, "the end of ", Thing::Process(op.arg as Pid), ", to start the program again, as --restart asks for"];
        }), identity: BY_OBJECTS },
    }
}

/// Bytes as people read them.
struct Text<'a>(&'a [u8]);

impl core::fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(&self.0.escape_ascii(), f)
    }
}

/// Signals by which a program ends as it is asked to: no failure (systemd.service(5), Restart=on-failure).
const CLEAN: [i32; 4] = [1, 2, 13, 15];
const SIGTERM: i32 = 15;
/// SIGINT, SIGQUIT, SIGTERM: programs that handle them end by a status of their own.
const ENDING: [i32; 3] = [2, 3, 15];

impl World {
    fn clients_may_begin(&self, op: &Op) -> bool {
        match Awaits(op.arg as u32) {
            Awaits::FILE | Awaits::OUTPUT => self.met != 0,
            _ => self.listened != 0,
        }
    }

    /// What clients wait for: the path of a file, or a text.
    pub fn awaited_text(&self) -> &[u8] {
        &self.awaited[..(self.awaited_len as usize).min(self.awaited.len())]
    }

    /// That is there, and from now on it counts as being there: clients may begin.
    pub fn meets_clients(&mut self) {
        self.met = 1;
    }

    /// The program has printed `bytes`. `matched` of the text were at the end of what came before; gives how many are now.
    pub fn printed(&mut self, bytes: impl Iterator<Item = u8>) {
        let len = self.awaited_text().len();
        for byte in bytes {
            if self.met != 0 {
                return;
            }
            let mut matched = self.matched as usize;
            let text = self.awaited_text();
            while matched > 0 && text[matched] != byte {
                // The longest beginning of the text that ends here.
                matched = (0..matched).rev().find(|&n| text[..n] == text[matched - n..matched]).unwrap_or(0);
            }
            matched += usize::from(text[matched] == byte);
            self.matched = matched as u32;
            self.met |= u8::from(matched == len);
        }
    }

    /// There are so many processes of `--with` and so many that start the program again. A process of `--with` may end the program by that
    /// signal, which is no crash then; where it is started again, by any.
    pub fn set_roots(&mut self, clients: u32, restarts: u32, stop_signal: i32) {
        (self.clients, self.restarts, self.stop_signal) = (clients, restarts, stop_signal);
    }

    /// Process `p` is one that starts the program again. Nobody finds it before it does.
    pub fn will_start(&mut self, p: Pid) {
        self.procs[p].unborn = true;
    }

    /// Process `p`, which is to start the program again, will not.
    pub(crate) fn call_off(&mut self, p: Pid) {
        self.kill(p, SIGKILL);
    }

    /// Which start of the program process `p` is, from 0.
    pub fn start_of(&self, p: Pid) -> Option<u32> {
        match p {
            0 => Some(0),
            _ if p > self.clients && p <= self.clients + self.restarts => Some(p - self.clients),
            _ => None,
        }
    }

    fn start_is_over(&self, p: Pid) -> bool {
        self.procs.get(p).is_none_or(|p| p.state != ProcState::LIVE)
    }

    fn restart_perform(&mut self, t: Tid, op: &Op) -> i64 {
        let own = self.threads[t].pid;
        let Some(before) = self.procs.get(op.arg as Pid) else { return 0 };
        let (unborn, status) = (before.unborn, before.status);
        let failed = match status & 0x7f {
            0 => status != 0,
            signal => !CLEAN.contains(&signal),
        };
        // A start that was not needed, or that was called off, is followed by none.
        let again = !unborn && (failed || op.has(ALWAYS));
        self.procs[own].unborn = !again;
        again.into()
    }

    /// The program is told to end by a process that may: by process `p` being one of its starts, and `sender` one of a client.
    pub(crate) fn note_told(&mut self, sender: Tid, p: Pid, signal: i32) {
        if (signal == SIGTERM || signal == self.stop_signal)
            && self.is_of_client(sender)
            && !self.is_client(self.root_of_process(p))
        {
            self.procs[p].asked |= bit(signal);
        }
        let counts = signal == self.stop_signal || self.restarts > 0;
        if counts && self.start_of(p).is_some() && self.is_of_client(sender) {
            self.procs[p].told |= bit(signal);
        }
    }

    /// A client has told process `p` to end, by a signal that it has noticed, and it is still there.
    pub(crate) fn stays(&self, p: Pid) -> bool {
        let process = &self.procs[p];
        process.state == ProcState::LIVE && process.asked & process.noticed != 0
    }

    /// Wait status `status` of process `p` is what it was told to come to.
    pub fn ends_as_asked(&self, p: Pid, status: i32) -> bool {
        let signal = status & 0x7f;
        status & !0xff == 0 && signal > 0 && signal <= 64 && self.procs[p].told & bit(signal) != 0
    }

    /// That process `p` is ended by `signal` is not the program's crash.
    pub(crate) fn may_be_killed(&self, p: Pid, signal: i32) -> bool {
        self.start_of(p).is_none() || self.procs[p].unborn || self.ends_as_asked(p, signal)
    }

    /// Process `p` is the program as it was started again for the last time.
    pub fn is_last_start(&self, p: Pid) -> bool {
        self.restarts > 0 && self.start_of(p) == Some(self.restarts) && !self.procs[p].unborn
    }

    /// The last start of the program has ended by itself and failed, which nobody has asked it to: it does not come up.
    pub fn did_not_come_up(&self, p: Pid, status: i32) -> bool {
        self.is_last_start(p) && status & 0x7f == 0 && status != 0 && self.procs[p].told & self.ending() == 0
    }

    /// Signals that ask the program to end, by whatever status.
    fn ending(&self) -> u64 {
        let stop = if self.stop_signal > 0 { bit(self.stop_signal) } else { 0 };
        ENDING.iter().fold(stop, |all, &signal| all | bit(signal))
    }

    /// Thread `t` is of a process of `--with`, or of one that comes from it.
    pub fn is_of_client(&self, t: Tid) -> bool {
        self.is_client(self.root_of(t))
    }

    fn is_client(&self, root: Pid) -> bool {
        (1..=self.clients).contains(&root)
    }

    /// Thread `t` is of a start of the program after the first, or of a process that comes from it.
    pub fn is_of_restart(&self, t: Tid) -> bool {
        self.start_of(self.root_of(t)).is_some_and(|n| n > 0)
    }

    /// The root process that the one of thread `t` comes from.
    fn root_of(&self, t: Tid) -> Pid {
        self.threads.get(t).map_or(NONE, |thread| self.root_of_process(thread.pid))
    }

    /// The root process that process `p` comes from.
    fn root_of_process(&self, mut p: Pid) -> Pid {
        // Who creates another is there before it.
        while let Some(process) = self.procs.get(p).filter(|x| p > self.clients + self.restarts && x.creator < p) {
            p = process.creator;
        }
        p
    }
}
