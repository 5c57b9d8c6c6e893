//! What is watched in a world: modules, their sites, where things were moved.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use vsrun_model::watch::Place;

use super::tracee::{Signal, Stopped};
use crate::binary::patch::{Form, Statistics};
use crate::binary::sites::{Choice, Reason, Sites, Unwatched};
use crate::binary::Modules;

/// How memory is watched.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    /// What counts as a site.
    pub choice: Choice,
    /// Which patches are made.
    pub form: Form,
    /// File to which what is recorded is appended, an absolute path.
    pub log: Option<PathBuf>,
    /// Traces tell what each transition did to memory.
    pub by_step: bool,
    /// The process makes the patches itself, so they are only prepared: see [`Worker::patches_of`](super::Worker::patches_of).
    pub by_itself: bool,
}

/// A module whose memory accesses are watched.
pub struct WatchedModule {
    /// File name without directories.
    pub name: String,
    /// What is added to the file's addresses.
    pub bias: u64,
    /// Its sites.
    pub sites: Arc<Sites>,
    /// The number of the first of them.
    pub first_site: usize,
    /// How they are patched.
    pub statistics: Statistics,
    /// What of it is not watched.
    pub unwatched: Vec<Unwatched>,
}

/// What is watched in a world.
pub struct Watched {
    /// By their place in memory.
    pub modules: Vec<WatchedModule>,
    /// The first of the code at the root that is not watched as a whole, though it is not left out by choice, if there is any.
    pub left_alone: Option<String>,
    /// Names of modules that are not watched, by choice.
    pub left_out: Vec<String>,
    /// Where moved instructions are, and where they were; ascending.
    pub moves: Arc<Vec<Place>>,
    /// Pages of slots for punned jumps.
    pub slot_pages: usize,
    /// What is to be said of how it is watched, a line each.
    pub notes: Vec<String>,
    /// What lies where.
    pub(super) places: Modules,
    /// Where traps are, ascending.
    pub(super) traps: Vec<Place>,
    /// Memory with trampolines and slots.
    pub(super) trampolines: Vec<Range<u64>>,
}

impl Watched {
    /// Module and address in its file of the site with that number.
    pub fn site(&self, number: usize) -> Option<(&WatchedModule, u64)> {
        let after = self.modules.partition_point(|m| m.first_site <= number);
        let module = self.modules[..after].last()?;
        Some((module, module.sites.sites.get(number - module.first_site)?.at))
    }

    /// Code of the program that is not watched, and may use memory of others: the module, the first place, and how many there are.
    pub fn unwatched(&self) -> Option<(&WatchedModule, &Unwatched, usize)> {
        let counts = |part: &&Unwatched| part.reason != Reason::Startup;
        let all = || self.modules.iter().flat_map(|m| m.unwatched.iter().filter(counts).map(move |part| (m, part)));
        all().next().map(|(module, part)| (module, part, all().count()))
    }

    /// Where all sites are, by their numbers.
    pub(super) fn addresses(&self) -> Vec<u64> {
        let of = |m: &WatchedModule| m.sites.sites.iter().map(|site| site.at.wrapping_add(m.bias)).collect::<Vec<_>>();
        self.modules.iter().flat_map(of).collect()
    }

    /// True if `signal` is that of a patch, or of a check of memory that is not watched: the library answers it.
    pub(super) fn answers(&self, stopped: &Stopped, signal: Signal) -> bool {
        let Ok(regs) = stopped.regs() else { return false };
        let is_at = |table: &[Place], at: u64| table.binary_search_by_key(&at, |place| place.at).is_ok();
        if signal.number() == libc::SIGTRAP {
            return is_at(&self.traps, regs.rip.wrapping_sub(1));
        }
        self.trampolines.iter().any(|range| range.contains(&regs.rip)) && !is_at(&self.moves, regs.rip)
    }
}
