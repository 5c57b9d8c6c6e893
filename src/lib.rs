//! vsrun: a systematic concurrency checker for unmodified multi-process, multi-threaded x86-64 Linux programs.
//!
//! `schedule -> world runs -> trace -> search -> next schedules`. The search ([`search`]) never touches a process; the
//! runtime never decides what to explore. Which part may use which is said in `src/FLOORS`.

pub mod args;
pub mod base;
pub mod binary;
pub mod canary;
pub mod cluster;
pub mod codec;
pub mod config;
pub mod doctor;
pub mod explore;
pub mod finding;
pub mod gdb;
pub mod held;
pub mod incomplete;
pub mod objects;
pub mod pack;
pub mod race;
pub mod report;
pub mod runtime;
pub mod scenario;
pub mod schedule;
pub mod search;
pub mod shrink;
pub mod step;
pub mod touched;
pub mod trace;
pub mod why;
pub mod words;
