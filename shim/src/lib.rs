//! The library that vsrun preloads into a program under test.
//!
//! It makes the program's synchronization and communication visible operations of the model, carries the threads of a
//! process as fibers of one kernel thread, and catches every system call. It never allocates, never takes a lock, and
//! calls nothing of libc that could be interposed. Interposed symbols (`interpose`) and caught calls (`net`) are tables
//! that lead to the same handlers.
#![no_std]

mod address;
mod closing;
mod direct;
mod elf;
mod end;
mod env;
mod epoll;
mod event;
mod fd;
mod fiber;
mod fifo;
mod files;
mod futex;
mod gate;
mod init;
mod inject;
mod interpose;
mod local;
mod locks;
mod mail;
mod message;
mod mqueue;
mod msg;
mod net;
mod pipe;
mod poll;
mod process;
mod rewrite;
mod shm;
mod signal;
mod sigwait;
mod socket;
mod sockopt;
mod sync;
mod sys;
mod sysv;
mod time;
mod timer;
mod tsc;

vsrun_model::panic_handler!(panicked);

fn panicked(info: &core::panic::PanicInfo<'_>) -> ! {
    let mut digits = [0; 24];
    let (file, line) = info.location().map_or(("?", 0), |l| (l.file(), l.line()));
    sys::complain(&[b"vsrun bug: ", file.as_bytes(), b":", sys::decimal(&mut digits, line as i64)]);
    end::bug(file.as_bytes())
}
