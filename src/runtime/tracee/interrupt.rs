//! Requests to end vsrun, and what makes waiting for tracees end now and then.
//!
//! NOTE [Waiting]. A worker waits for its children in `waitpid`, which has no time limit. SIGCHLD cannot wake it instead:
//! that signal is for the process, and any thread may take it. So each worker has a timer that sends a signal to its
//! thread alone; the handler does nothing, but `waitpid` ends with EINTR. One that comes before the thread is in
//! `waitpid` is lost, and the next one serves.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::signal::{sigaction, SaFlags, SigAction, SigEvent, SigHandler, SigSet, SigevNotify, Signal};
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};

/// The signal of the timers.
const TICK: Signal = Signal::SIGALRM;
/// Signals that ask vsrun to end.
const REQUESTS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

extern "C" fn note_request(_: libc::c_int) {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

extern "C" fn do_nothing(_: libc::c_int) {}

/// True once a request to end has come.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Forgets the request to end that has come, so that another one is noticed.
pub fn forget_requests() {
    INTERRUPTED.store(false, Ordering::Relaxed);
}

/// Notes requests to end instead of ending at once. Those that vsrun was started to ignore (nohup) stay ignored.
pub fn catch_requests() -> io::Result<()> {
    for signal in REQUESTS {
        let old = handle(signal, SigHandler::Handler(note_request))?;
        if old.handler() == SigHandler::SigIgn {
            handle(signal, SigHandler::SigIgn)?;
        }
    }
    handle(TICK, SigHandler::Handler(do_nothing))?;
    // If it is ignored, the kernel collects children by itself and nobody learns how they ended.
    handle(Signal::SIGCHLD, SigHandler::SigDfl)?;
    let mut mask = SigSet::empty();
    REQUESTS.iter().chain([&TICK, &Signal::SIGCHLD]).for_each(|&s| mask.add(s));
    mask.thread_unblock().map_err(io::Error::from)
}

/// No SA_RESTART: a wait is to end when a signal has come.
fn handle(signal: Signal, handler: SigHandler) -> io::Result<SigAction> {
    let action = SigAction::new(handler, SaFlags::empty(), SigSet::empty());
    // SAFETY: the handlers are functions of this file that at most store to an atomic, which is async-signal-safe.
    unsafe { sigaction(signal, &action) }.map_err(io::Error::from)
}

/// Ends the waits of the thread that made it, at regular intervals, until it is dropped.
#[derive(Debug)]
pub struct Ticks {
    _timer: Timer,
}

impl Ticks {
    /// Starts; see NOTE "Waiting".
    pub fn start(interval: Duration) -> io::Result<Ticks> {
        let thread_id = nix::unistd::gettid().as_raw();
        let event = SigEvent::new(SigevNotify::SigevThreadId { signal: TICK, thread_id, si_value: 0 });
        let mut timer = Timer::new(nix::time::ClockId::CLOCK_MONOTONIC, event).map_err(io::Error::from)?;
        timer.set(Expiration::Interval(interval.into()), TimerSetTimeFlags::empty()).map_err(io::Error::from)?;
        Ok(Ticks { _timer: timer })
    }
}
