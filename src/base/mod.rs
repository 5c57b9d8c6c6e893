//! What every other part may use: text from outside made safe to print, hashes, how values stand in JSON files, control groups.

pub mod cgroup;
pub mod files;
pub mod hash;
pub mod print;
pub(crate) mod serial;
pub mod surroundings;
#[cfg(test)]
pub(crate) mod testing;
pub mod text;
