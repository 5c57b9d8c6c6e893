//! vsrun: a systematic concurrency checker for unmodified multi-process, multi-threaded x86-64 Linux programs.
//!
//! `schedule -> world runs -> trace -> search -> next schedules`. The search ([`search`]) never touches a process; the
//! runtime never decides what to explore.

pub mod args;
pub mod binary;
pub mod codec;
pub mod doctor;
pub mod explore;
pub mod replay;
pub mod report;
pub mod runtime;
pub mod scenario;
pub mod schedule;
pub mod search;
pub mod sharing;
pub mod syscalls;
pub mod trace;
