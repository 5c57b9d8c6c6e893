//! Traced processes as types; how they are launched ([`launch()`]) and probed for ([`probe_ptrace`]).
//!
//! A tracee is a [`Stopped`] or a [`Running`], and only the first has operations that need it to stand still: to touch
//! a running tracee does not compile. Waiting yields an [`Event`].
//!
//! NOTE [Death is data]. A stopped tracee can be killed by anyone at any moment; then every request says ESRCH. That is
//! [`TraceError::Died`], apart from what really failed, and [`Stopped::resume`] does not even mention it: the tracee
//! runs to its end, and the end arrives by [`Running::wait`], as [`Event::Signaled`].
//!
//! NOTE [One thread]. The kernel lets only the thread that attached (here: that called [`launch()`]) use a tracee, and
//! says ESRCH to all others. So these types are not `Send`. That thread's end also kills the tracees: the parent-death
//! signal and PTRACE_O_EXITKILL follow the thread, not the process. CLONE_PARENT keeps to this: what a tracee forks so
//! has the thread as its parent that forked the tracee. So a worker is a thread, and its world dies with it.
//!
//! NOTE [Real-time signals]. nix knows the signals up to 31 only, and its `waitpid` fails on the others, which a tracee
//! does get (32 and 33 are glibc's own, for pthread_cancel and setuid). So statuses and signals are decoded here.

mod asked;
mod glimpse;
mod interrupt;
mod launch;
mod numbers;
mod probe;
mod state;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;

pub use asked::{semaphore, unix_peers, Semaphore};
pub use glimpse::{glimpse, Glimpse};
pub use interrupt::{catch_requests, forget_requests, interrupted, Ticks};
pub use launch::{fix_auxv, launch, launch_untraced, LaunchError, LaunchSpec, LaunchStep, STACK_LIMIT};
pub use numbers::{is_ours, send};
pub use probe::{probe_ptrace, probe_syscall_user_dispatch};
pub use state::{
    fault_address, sender, wait_any, wait_for, Event, Reason, Running, Signal, Stopped, TraceError, WaitStatus, Waited,
};
