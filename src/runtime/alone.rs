//! Executions without a supervisor, for debuggers: what they start with, and the patches that the process makes itself.

use std::os::fd::{AsRawFd, OwnedFd};

use vsrun_model::arena::{Mode, GUARD_FD, POOL_SIZE};
use vsrun_model::watch::state;

use super::checkpoint::{memory_file, ArenaMap};
use super::processes::cpus_for;
use super::session::{self, PrivateDir};
use super::setup::{launch_spec, prepare, set_options, Spec, StartError, LOOKED_AT_CALLS};
use super::streams::Input;
use super::tracee::LaunchSpec;
use super::watched::Watch;
use super::watching::put_beside;
use super::worker::Worker;
use crate::schedule::Schedule;

/// What `direct` replay needs to be kept open across exec.
pub struct DirectParts {
    /// How to start the program.
    pub launch: LaunchSpec,
    /// Kept for its descriptors.
    pub keep: Vec<OwnedFd>,
    /// The arena, set up.
    pub arena: ArenaMap,
    /// The directory of the shim.
    pub dir: PrivateDir,
}

impl Worker {
    /// The patches by which memory of this program is watched, as a file that the library in a process of it maps, and makes them: the
    /// program is started for that once, up to its root, and lies at the same place whenever it is started.
    ///
    /// # Errors
    /// As of [`Worker::start`].
    pub fn patches_of(spec: &Spec) -> Result<Option<Vec<u8>>, StartError> {
        let by_itself = |watch: &Watch| Watch { by_itself: true, ..watch.clone() };
        let spec = Spec { watch: spec.watch.as_ref().map(by_itself), ..spec.clone() };
        Ok(Worker::start(spec, Input::null()?, None)?.patches.take())
    }
}

/// Everything for an execution without a supervisor: the caller becomes the program by exec. With `patches` it makes these first.
///
/// # Errors
/// Something around the program cannot be set up.
pub fn direct(
    spec: &Spec,
    schedule: &Schedule,
    stdio: [i32; 3],
    patches: Option<&[u8]>,
) -> Result<DirectParts, StartError> {
    let dir = PrivateDir::create(spec.sees_heap())?;
    let mut arena = ArenaMap::shared()?;
    set_options(&mut arena, spec, &dir, Mode::DIRECT)?;
    prepare(&mut arena, spec, schedule)?;
    match patches {
        // Where memory is watched the library itself faults where it is guarded, and a debugger would stop there.
        Some(patches) => {
            put_beside(&dir, patches)?;
            arena.control.watching.state = state::ASKED;
        }
        None => arena.control.guarded = LOOKED_AT_CALLS,
    }
    let pool = memory_file(c"vsrun-pool", POOL_SIZE)?;
    let random = session::random_file()?;
    let arena_fd = arena.fd().ok_or_else(|| StartError::Bug("the arena has no descriptor".into()))?;
    let fds = [arena_fd, pool.as_raw_fd(), random.as_raw_fd()];
    let mut launch = launch_spec(spec, &dir, stdio, fds, cpus_for(1).first().copied());
    // The guard cleans up when the last process of the program has let go of its pipe.
    launch.inherit.extend(dir.guard_pipe().map(|pipe| (pipe, GUARD_FD)));
    Ok(DirectParts { launch, keep: vec![pool, random], arena, dir })
}
