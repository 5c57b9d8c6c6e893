//! `vsrun pack`: a program with its loader, libraries, files and vsrun itself in a directory, from which it runs on any machine with the same names, the
//! same contents, and so the same addresses. `manifest` says what is in it, `gather` finds that, [`make()`] writes it, [`enter()`] makes a root file
//! system of it and runs vsrun there, and [`inside()`] tells that vsrun what it is to run. [`image()`] writes one for engines of containers.
//!
//! The root file system is a copy in memory: every file is compared while it is copied, so that what runs is what was looked at; who runs it owns it; and
//! what is written there is gone at the end.

mod check;
mod enter;
mod gather;
mod image;
mod inside;
mod make;
mod manifest;
mod outside;
mod tree;

pub use check::{check, Checked};
pub use enter::enter;
pub use image::{image, Image};
pub use inside::{inside, to_node, Inside};
pub use make::{make, Made};
pub use outside::{is_there, Driven};
