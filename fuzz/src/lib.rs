//! The fuzz targets of vsrun: [`targets`], within the memory that an input may take.

mod memory;
pub mod targets;
