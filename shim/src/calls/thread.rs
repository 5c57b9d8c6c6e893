//! Threads: created, joined, detached, cancelled; once controls. Threads themselves are glibc's; they become fibers at
//! the clone call. And the functions of libc that the shim calls for this.

use core::cell::UnsafeCell;

use vsrun_model::calls::{SETCANCELSTATE, SETCANCELTYPE, TESTCANCEL};
use vsrun_model::world::KEY_DELETED;
use vsrun_model::{inject as fault, Kind, Op, Tid, CANCEL_ANYWHERE, CANCEL_DISABLED, CANCEL_REQUESTED, NONE};

use super::sync;
use crate::gate::{self, end, inject, local, me, mirror, model, turn, world};
use crate::sys::elf::{self, libc_image, Auxv, Image};
use crate::sys::{load, store_if};

const PTHREAD_CANCEL_DISABLE: i32 = 1;
const PTHREAD_CANCEL_ASYNCHRONOUS: i32 = 1;

type Fn0 = extern "C" fn();
type Fn1 = extern "C" fn(u64) -> i32;
type Fn2 = extern "C" fn(u64, u64) -> i32;
type Long1 = extern "C" fn(u64) -> u64;
type Long2 = extern "C" fn(u64, u64) -> u64;
type Long3 = extern "C" fn(u64, u64, u64) -> u64;
type Fn3 = extern "C" fn(u64, u64, u64) -> i32;
type Fn4 = extern "C" fn(u64, u64, u64, u64) -> i32;

/// Calls libc's function at that address.
pub fn call0(function: u64) {
    // SAFETY: the address is that of glibc's function of this type (see [`Functions`]).
    unsafe { core::mem::transmute::<u64, Fn0>(function)() }
}

/// The same with one argument.
pub fn call1(function: u64, a: u64) -> i32 {
    // SAFETY: as for `call0`.
    unsafe { core::mem::transmute::<u64, Fn1>(function)(a) }
}

pub fn call2(function: u64, a: u64, b: u64) -> i32 {
    // SAFETY: as for `call0`.
    unsafe { core::mem::transmute::<u64, Fn2>(function)(a, b) }
}

/// Calls libc's function at that address, which gives 64 bits or fewer.
pub fn call1_long(function: u64, a: u64) -> u64 {
    // SAFETY: as for `call0`; what is passed beyond what the function takes it does not look at.
    unsafe { core::mem::transmute::<u64, Long1>(function)(a) }
}

/// The same with two arguments.
pub fn call2_long(function: u64, a: u64, b: u64) -> u64 {
    // SAFETY: as for `call0`.
    unsafe { core::mem::transmute::<u64, Long2>(function)(a, b) }
}

/// The same with three.
pub fn call3_long(function: u64, a: u64, b: u64, c: u64) -> u64 {
    // SAFETY: as for `call0`.
    unsafe { core::mem::transmute::<u64, Long3>(function)(a, b, c) }
}

pub fn call3(function: u64, a: u64, b: u64, c: u64) -> i32 {
    // SAFETY: as for `call0`.
    unsafe { core::mem::transmute::<u64, Fn3>(function)(a, b, c) }
}

pub fn call4(function: u64, a: u64, b: u64, c: u64, d: u64) -> i32 {
    // SAFETY: as for `call0`.
    unsafe { core::mem::transmute::<u64, Fn4>(function)(a, b, c, d) }
}

/// Ends the thread here if it has been asked to; glibc decides, and unwinds through this frame.
pub fn cancellation_point() {
    if me().cancel & (CANCEL_REQUESTED | CANCEL_DISABLED) == CANCEL_REQUESTED {
        // The call that is left here does not return.
        local().returns = false;
        call0(libc_functions().pthread_testcancel);
        // Still here: cancellation is switched off behind our back; do not ask again until it is switched on.
        model().allow_cancel(local().cur, false);
    }
}

/// The thread of this process that libc knows as `pthread`, or `NONE`.
pub fn thread_of(pthread: u64) -> Tid {
    world().thread_by_fs(local().pid, pthread).unwrap_or(NONE)
}

/// ATTR_FLAG_DETACHSTATE in the flags of pthread_attr_t (glibc).
fn is_detached(attr: u64) -> bool {
    attr != 0 && load::<i32>(attr + 8) & 1 != 0
}

/// ATTR_FLAG_STACKADDR there: the program has its own use for the stack, before and after.
fn has_own_stack(attr: u64) -> bool {
    attr != 0 && load::<i32>(attr + 8) & 8 != 0
}

/// Whether libc starts a thread with these attributes with the thread's lock held, which that takes first, and then sets its processors or its policy (glibc,
/// nptl/pthread_create.c: stopped_start).
fn sets_up(attr: u64) -> bool {
    /// ATTR_FLAG_NOTINHERITSCHED, and where what came later than the attributes is: first the set of processors.
    const OWN_POLICY: i32 = 2;
    const MORE: u64 = 40;
    if attr == 0 {
        return local().sets_up_others;
    }
    let more: u64 = load(attr + MORE);
    load::<i32>(attr + 8) & OWN_POLICY != 0 || more != 0 && load::<u64>(more) != 0
}

/// The thread that pthread_create makes begins, which libc has held back.
pub fn begin_held_back() {
    if local().sets_up == local().cur && local().held_back != NONE {
        turn::start(core::mem::replace(&mut local().held_back, NONE));
    }
}

/// pthread_setattr_default_np.
pub fn set_default(attr: u64) -> i32 {
    let sets_up = sets_up(attr);
    let result = call1(libc_functions().pthread_setattr_default_np, attr);
    if result == 0 {
        local().sets_up_others = sets_up;
    }
    result
}

/// pthread_create.
pub fn create(thread: u64, attr: u64, start: u64, arg: u64) -> i32 {
    // It fails as a whole, here: what is noted for the clone call must be this thread's when that is made.
    if inject::strikes(fault::ENOMEM) {
        return libc::EAGAIN;
    }
    local().next_start = start;
    (local().next_detached, local().next_stack) = (is_detached(attr), !has_own_stack(attr));
    if sets_up(attr) {
        local().sets_up = local().cur;
    }
    let result = inject::sparing(|| call4(libc_functions().pthread_create, thread, attr, start, arg));
    begin_held_back();
    local().next_start = 0;
    // Another thread may create one meanwhile.
    if local().sets_up == local().cur {
        local().sets_up = NONE;
    }
    (local().next_detached, local().next_stack) = (false, false);
    result
}

/// pthread_testcancel.
pub fn test_cancel() {
    gate::place(TESTCANCEL);
    call0(libc_functions().pthread_testcancel);
}

/// pthread_setcancelstate.
pub fn set_cancel_state(state: i32, old: u64) -> i32 {
    let mut before = 0i32;
    if me().cancel & CANCEL_ANYWHERE != 0 {
        gate::place(SETCANCELSTATE);
    }
    let function = libc_functions().pthread_setcancelstate;
    let result = call2(function, state as u64, &mut before as *mut i32 as u64);
    if result == 0 {
        store_if(old, before);
        model().allow_cancel(local().cur, state != PTHREAD_CANCEL_DISABLE);
    }
    result
}

/// pthread_setcanceltype. A request that has come before strikes in it, if it strikes anywhere from then on; one that did so far comes
/// before it or after.
pub fn set_cancel_type(kind: i32, old: u64) -> i32 {
    let anywhere = kind == PTHREAD_CANCEL_ASYNCHRONOUS;
    if anywhere || me().cancel & CANCEL_ANYWHERE != 0 {
        gate::place(SETCANCELTYPE);
    }
    let result = call2(libc_functions().pthread_setcanceltype, kind as u64, old);
    if result == 0 {
        model().cancel_anywhere(local().cur, anywhere);
    }
    result
}

/// pthread_key_create, as `function` of libc.
pub fn create_key(key: u64, destructor: u64, function: u64) -> i32 {
    let before = new_keys();
    let result = call2(function, key, destructor);
    let keys = if result == 0 { [Some(load(key)), before[0]] } else { before };
    local().made_keys = (keys, local().cur, me().transitions);
    result
}

/// The keys that this thread has made right before, without a transition or a new thread since: no other thread can have a value for one.
fn new_keys() -> [Option<u32>; 2] {
    let (keys, by, at) = local().made_keys;
    match by == local().cur && at == me().transitions {
        true => keys,
        false => [None; 2],
    }
}

/// pthread_key_delete or tss_delete, as `function` of libc. A thread that ends meanwhile may look for the destructor before or after it, but for one that
/// is new: each Rust program makes two and deletes the first, whose number is 0.
pub fn delete_key(key: u64, function: u64) -> i32 {
    let is_new = new_keys().into_iter().flatten().any(|new| u64::from(new) == key);
    if world().concurrent && !world().is_alone(local().cur) && !is_new {
        model().never_comes(KEY_DELETED);
    }
    call1(function, key)
}

/// The initializer is run by libc's own function, which does not block then and copes with exceptions and
/// cancellation; that it is over is seen at the next visible operation.
///
/// What libgcc sets up for unwinding (at the first C++ exception, or when a thread is the first to end by pthread_exit or cancellation)
/// is the same whoever does it, without a visible operation in between, and used by libgcc alone: so nobody can tell who did.
pub fn once(control: u64, routine: u64, function: u64) -> i32 {
    if elf::is_data_of(b"/libgcc_s.so.", control) {
        return mirror::while_alone(control, || call2(function, control, routine));
    }
    let id = sync::once(control);
    if gate::pass(Op::on(Kind::ONCE, id)) != 0 {
        return 0;
    }
    mirror::once_entered(id, control, mirror::ONCE_DONE);
    let result = call2(function, control, routine);
    mirror::settle_onces();
    result
}

macro_rules! functions {
    ($($name:ident)*) => {
        /// Their addresses; 0: there is none.
        #[derive(Clone, Copy)]
        // They are called what libc calls them.
        #[allow(non_snake_case)]
        pub struct Functions { $(pub $name: u64),* }

        impl Functions {
            fn of(image: &Image) -> Functions {
                Functions { $($name: image.find(stringify!($name).as_bytes()).unwrap_or(0)),* }
            }
        }
    };
}

functions! {
    __libc_start_main pthread_create pthread_join pthread_detach pthread_cancel pthread_testcancel
    pthread_setcancelstate pthread_setcanceltype pthread_key_create pthread_key_delete tss_delete backtrace pthread_exit thrd_exit pthread_once call_once thrd_join thrd_detach
    flockfile ftrylockfile funlockfile open_memstream open_wmemstream fclose ftell fgetpos __fpending
    rand random srand initstate setstate __cxa_atexit on_exit __cxa_at_quick_exit exit quick_exit mq_notify timer_create
    aio_read aio_write aio_fsync lio_listio getaddrinfo_a readdir readdir_r telldir seekdir rewinddir
    pthread_setattr_default_np pthread_getattr_default_np
    pthread_kill pthread_sigqueue pthread_getcpuclockid pthread_getschedparam pthread_setschedparam pthread_setschedprio
    pthread_getaffinity_np pthread_setaffinity_np __register_atfork dlmopen makecontext _IO_list_lock _IO_list_unlock
}

struct Cell(UnsafeCell<Option<Functions>>);
// SAFETY: written once by the constructor, before the program has a second fiber.
unsafe impl Sync for Cell {}

static FUNCTIONS: Cell = Cell(UnsafeCell::new(None));

/// libc's functions.
pub fn libc_functions() -> Functions {
    // SAFETY: see `Cell`.
    match unsafe { *FUNCTIONS.0.get() } {
        Some(functions) => functions,
        None => end::bug(b"a function of libc was called before the library was initialized"),
    }
}

/// Finds libc's functions. An error says why the program cannot be run.
pub fn find_libc(auxv: &Auxv) -> Result<(), &'static [u8]> {
    let Some(image) = libc_image(auxv) else { return Err(b"the program does not use glibc's libc.so.6") };
    let functions = Functions::of(&image);
    if functions.__libc_start_main == 0 || functions.pthread_create == 0 {
        return Err(b"the program's glibc is older than 2.34, which vsrun does not support");
    }
    // SAFETY: see `Cell`.
    unsafe { *FUNCTIONS.0.get() = Some(functions) };
    Ok(())
}
