//! The vsrun binary, from end to end, one file for each side of it; they compile their programs themselves. Files, ports and names carry the name of the
//! test and the number of this process: all tests of this binary run at the same time.

mod back;
mod book;
mod checks;
mod conformance;
mod container;
mod copies;
mod cpu;
mod debugger;
mod files;
mod first;
mod formats;
mod honest;
mod hunt;
mod library;
mod limits;
mod lock_free;
mod long;
mod odd_code;
mod outcomes;
mod pack;
mod pack_cluster;
mod pack_image;
mod pages;
mod pieces;
mod places;
mod predicates;
mod recipes;
mod reports;
mod resume;
mod shorten;
mod stateful;
mod step;
mod streams;
mod swarm;
mod timeline;
mod together;
mod tossing;
mod watching;
mod watchlist;
mod why;

use std::path::Path;
use std::process::Command;

/// Copies a program, by another one: what this process has open for writing its children have, too, until they are another program, and as long
/// as one of them has it the copy does not run (ETXTBSY).
fn copy_program(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg(from).arg(to).status().expect("cp").success());
}
