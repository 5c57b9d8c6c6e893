//! What vsrun must know of the files it runs: can a program be run at all ([`preflight`]), is it still the same
//! ([`fingerprint`]), and what lies at an address ([`symbols`], [`modules`]). Nothing here touches a process.

pub mod allowed;
pub(crate) mod elf;
pub(crate) mod entries;
pub mod fingerprint;
#[doc(hidden)]
pub mod fuzz;
pub(crate) mod ignored;
pub mod ldcache;
mod libraries;
pub mod modules;
pub mod patch;
pub mod preflight;
pub mod refusal;
pub mod sites;
pub mod symbols;

pub use fingerprint::BinaryId;
pub use modules::{Location, Mapping, Modules};
pub use preflight::{resolve, Launch};
pub use refusal::Refusal;
pub use symbols::SymbolCache;
