//! What vsrun must know of the files it runs: can a program be run at all ([`preflight`]), is it still the same
//! ([`fingerprint`]), and what lies at an address ([`symbols`], [`modules`]). Nothing here touches a process.

pub mod allowed;
mod debuginfo;
pub(crate) mod demangle;
pub(crate) mod elf;
pub(crate) mod entries;
pub mod fingerprint;
#[doc(hidden)]
pub mod fuzz;
pub(crate) mod ignored;
pub mod ldcache;
pub mod libraries;
mod lines;
pub mod modules;
pub mod patch;
pub mod preflight;
pub mod refusal;
pub mod sites;
pub mod symbols;
mod variables;

pub use fingerprint::BinaryId;
pub use modules::{Location, Mapping, Modules};
pub use preflight::{resolve, Launch};
pub use refusal::Refusal;
pub use symbols::SymbolCache;
