//! The pack that a search in pieces, or a swarm, is of.

use std::ffi::OsString;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::failure::Failure;
use crate::base::serial;
use crate::base::surroundings;
use crate::base::text::escape;

/// The pack in which a search was split, or a swarm begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfPack {
    /// Where it was then.
    #[serde(with = "serial::bytes")]
    pub dir: OsString,
    /// The hash of its `pack.json`.
    #[serde(with = "serial::hex64")]
    pub hash: u64,
}

impl OfPack {
    /// The one that vsrun runs in.
    pub fn now() -> Option<OfPack> {
        let pack = surroundings::pack()?;
        Some(OfPack { dir: pack.dir.unwrap_or_default().into_os_string(), hash: pack.hash })
    }

    /// For vsrun in a pack: an error if what is in `dir` is of another one.
    ///
    /// # Errors
    /// That.
    pub fn fits(of: Option<&OfPack>, dir: &Path) -> Result<(), Failure> {
        match (of, surroundings::pack()) {
            (Some(of), Some(pack)) if of.hash != pack.hash => Err(Failure::environment(format!(
                "{} is of another pack than this one, or this one was changed since (it was at {})",
                escape(dir),
                escape(&of.dir)
            ))),
            _ => Ok(()),
        }
    }
}
