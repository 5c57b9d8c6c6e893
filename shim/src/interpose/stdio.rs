//! Streams: what asks for a lock by name, what makes or closes a stream that is in no list of libc's, what tells where a stream is. All
//! else of stdio is seen by the locks that it takes: see `calls::stream`.

use vsrun_model::op::TRY;
use vsrun_model::stream::Kept;

use crate::calls::stream::{asked, begins_exit, closed, lock, opened, unlock, uses};
use crate::calls::thread::{call1, call1_long, call2_long, call3_long, libc_functions};

// Locks by name.
symbols! {
    fn flockfile(file: u64) = { lock(file, 0); };
    fn _IO_flockfile(file: u64) = { lock(file, 0); };
    fn ftrylockfile(file: u64) -> i32 = lock(file, TRY);
    fn _IO_ftrylockfile(file: u64) -> i32 = lock(file, TRY);
    fn funlockfile(file: u64) = unlock(file);
    fn _IO_funlockfile(file: u64) = unlock(file);
}

fn made(file: u64) -> u64 {
    opened(file);
    file
}

fn close(file: u64) -> i32 {
    let result = call1(libc_functions().fclose, file);
    closed(file);
    result
}

// Streams in memory.
symbols! {
    fn open_memstream(at: u64, size: u64) -> u64 = made(call2_long(libc_functions().open_memstream, at, size));
    fn open_wmemstream(at: u64, size: u64) -> u64 = made(call2_long(libc_functions().open_wmemstream, at, size));
    fn fclose(file: u64) -> i32 = close(file);
    fn _IO_fclose(file: u64) -> i32 = close(file);
}

// Where a stream is.
symbols! {
    fn ftell(file: u64) -> i64 = { asked(file); call1_long(libc_functions().ftell, file) as i64 };
    fn ftello(file: u64) -> i64 = ftell(file);
    fn ftello64(file: u64) -> i64 = ftell(file);
    fn _IO_ftell(file: u64) -> i64 = ftell(file);
    fn fgetpos(file: u64, at: u64) -> i32 = { asked(file); call2_long(libc_functions().fgetpos, file, at) as i32 };
    fn fgetpos64(file: u64, at: u64) -> i32 = fgetpos(file, at);
    fn _IO_fgetpos(file: u64, at: u64) -> i32 = fgetpos(file, at);
    fn __fpending(file: u64) -> u64 = { asked(file); call1_long(libc_functions().__fpending, file) };
}

// Random numbers: which one a thread gets depends on who came first.
symbols! {
    fn rand() -> i32 = { uses(Kept::RANDOM, "random"); call1(libc_functions().rand, 0) };
    fn random() -> i64 = { uses(Kept::RANDOM, "random"); call1_long(libc_functions().random, 0) as i64 };
    fn srand(seed: u32) = { uses(Kept::RANDOM, "srandom"); call1(libc_functions().srand, seed.into()); };
    fn srandom(seed: u32) = { uses(Kept::RANDOM, "srandom"); call1(libc_functions().srand, seed.into()); };
    fn initstate(seed: u32, state: u64, size: u64) -> u64 =
        { uses(Kept::RANDOM, "initstate"); call3_long(libc_functions().initstate, seed.into(), state, size) };
    fn setstate(state: u64) -> u64 = { uses(Kept::RANDOM, "setstate"); call1_long(libc_functions().setstate, state) };
}

// Exit handlers run in the reverse of the order in which they came.
symbols! {
    fn __cxa_atexit(function: u64, argument: u64, object: u64) -> i32 = {
        uses(Kept::EXIT_HANDLERS, "__cxa_atexit");
        call3_long(libc_functions().__cxa_atexit, function, argument, object) as i32
    };
    fn on_exit(function: u64, argument: u64) -> i32 = {
        uses(Kept::EXIT_HANDLERS, "on_exit");
        call2_long(libc_functions().on_exit, function, argument) as i32
    };
    fn __cxa_at_quick_exit(function: u64, object: u64) -> i32 = {
        uses(Kept::EXIT_HANDLERS, "__cxa_at_quick_exit");
        call2_long(libc_functions().__cxa_at_quick_exit, function, object) as i32
    };
    fn exit(status: i32) = { begins_exit("exit"); call1(libc_functions().exit, status as u64); };
    fn quick_exit(status: i32) = { begins_exit("quick_exit"); call1(libc_functions().quick_exit, status as u64); };
}
