//! The fuzz targets of vsrun: [`targets`], within the memory that an input may take.

#[path = "../../tests/search/interp/mod.rs"]
mod interp;
mod memory;
pub mod targets;
