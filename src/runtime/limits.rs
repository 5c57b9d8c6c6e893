//! Limits of the process that vsrun cannot work below: what it maps and how large its files in memory are does not depend on the program.

use std::mem::size_of;

use nix::sys::resource::{getrlimit, Resource};
use vsrun_model::arena::{Arena, LAST_FD, POOL_SIZE};

/// What vsrun needs of one resource.
pub struct Need {
    /// What it is called in reports.
    pub name: &'static str,
    /// The limit.
    pub resource: Resource,
    /// The least that it works with, bytes or numbers.
    pub least: u64,
    /// What to do where there is less.
    pub fix: &'static str,
}

/// What the program itself, its libraries and stacks need at least.
const PROGRAM: u64 = 1 << 30;

/// Descriptors of vsrun, and of its library while it takes its places.
const OWN_FDS: u64 = 46;

/// All of them.
pub fn needs() -> [Need; 3] {
    [
        Need {
            name: "file size",
            resource: Resource::RLIMIT_FSIZE,
            // Files in memory count.
            least: POOL_SIZE,
            fix: "ulimit -f unlimited in the calling shell",
        },
        Need {
            name: "address space",
            resource: Resource::RLIMIT_AS,
            least: POOL_SIZE + size_of::<Arena>() as u64 + PROGRAM,
            fix: "ulimit -v unlimited in the calling shell",
        },
        Need {
            name: "open files",
            resource: Resource::RLIMIT_NOFILE,
            least: LAST_FD as u64 + OWN_FDS,
            fix: "ulimit -n 1024 (or more) in the calling shell",
        },
    ]
}

/// The first limit that is too low, in a sentence.
pub fn too_low() -> Option<String> {
    needs().into_iter().find_map(|need| {
        let (limit, _) = getrlimit(need.resource).ok()?;
        let Need { name, least, fix, .. } = need;
        (limit < least).then(|| format!("environment: the limit on {name} is {limit}, vsrun needs {least}; {fix}"))
    })
}

/// As much of `size` bytes as a file may have.
pub fn of_file(size: u64) -> u64 {
    getrlimit(Resource::RLIMIT_FSIZE).map_or(size, |(limit, _)| size.min(limit))
}
