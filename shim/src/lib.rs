//! The library that vsrun preloads into a program under test.
//!
//! It makes the program's synchronization and communication visible operations of the model, carries the threads of a
//! process as fibers of one kernel thread, and catches every system call. It never allocates, never takes a lock, and
//! calls nothing of libc that could be interposed. Interposed symbols (`interpose`) and caught calls (`net`) are tables
//! that lead to the same handlers. What lies on which floor is in `FLOORS`.
#![no_std]

mod calls;
mod gate;
mod init;
mod interpose;
mod net;
mod rewrite;
mod sys;
mod watch;

vsrun_model::panic_handler!(panicked);

fn panicked(info: &core::panic::PanicInfo<'_>) -> ! {
    let (file, line) = info.location().map_or(("?", 0), |l| (l.file(), l.line()));
    sys::complain(&[b"vsrun bug: ", file.as_bytes(), b":", &sys::decimal(line)]);
    gate::end::bug(file.as_bytes())
}
