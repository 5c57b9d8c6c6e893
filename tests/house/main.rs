//! The rules of the house: what the compiler does not hold, read from the sources.

mod imports;
mod shim_rules;
