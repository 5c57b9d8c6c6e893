//! Coming into charge of a process: the constructor (run before those of other libraries), main of the first
//! process (the root), and the first moments of a program that was exec'd.

use core::cell::UnsafeCell;

use vsrun_model::arena::{Arena, Command, Mode, ARENA_ADDR, ARENA_FD, MAGIC, POOL_ADDR, POOL_FD, POOL_SIZE, VERSION};
use vsrun_model::object::NONE;
use vsrun_model::ThreadState;

use crate::local::{arena, local, me, world, Phase};
use crate::sys::{complain, fs_base, load, store};
use crate::{elf, end, env, fd, mail, net, process, raw, rewrite, signal, tsc};

/// Functions of libc that the shim calls.
#[derive(Clone, Copy, Default)]
pub struct Libc {
    /// __libc_start_main.
    pub start_main: u64,
    /// pthread_create.
    pub pthread_create: u64,
    /// pthread_join.
    pub pthread_join: u64,
    /// pthread_detach.
    pub pthread_detach: u64,
    /// pthread_cancel.
    pub pthread_cancel: u64,
    /// pthread_testcancel.
    pub pthread_testcancel: u64,
    /// pthread_setcancelstate.
    pub pthread_setcancelstate: u64,
    /// pthread_once.
    pub pthread_once: u64,
    /// call_once.
    pub call_once: u64,
    /// thrd_join.
    pub thrd_join: u64,
    /// thrd_detach.
    pub thrd_detach: u64,
}

struct Cell<T>(UnsafeCell<T>);
// SAFETY: written once by the constructor, before the program has a second fiber.
unsafe impl<T> Sync for Cell<T> {}

static LIBC: Cell<Option<Libc>> = Cell(UnsafeCell::new(None));
static MAIN: Cell<u64> = Cell(UnsafeCell::new(0));

/// libc's functions.
pub fn libc_functions() -> Libc {
    // SAFETY: see `Cell`.
    match unsafe { *LIBC.0.get() } {
        Some(functions) => functions,
        None => end::bug(b"a function of libc was called before the library was initialized"),
    }
}

#[used]
#[link_section = ".init_array"]
static CONSTRUCTOR: extern "C" fn(i32, *const *const u8, *const *const u8) = constructor;

extern "C" fn constructor(_argc: i32, _argv: *const *const u8, envp: *const *const u8) {
    map_arena();
    fd::make_place();
    mail::make_pair();
    let envp = envp as u64;
    // Hiding leaves a gap before the auxiliary vector, so that is read first.
    let auxv = elf::auxv(envp);
    env::hide(envp);
    elf::disarm_vdso(auxv.vdso);
    find_libc(&auxv);
    local().text = elf::text_of(elf::own_base());
    enter_world();
    fixed_random(auxv.random);
    set_tid();
    signal::read_dispositions();
    if local().phase == Phase::BeforeRoot {
        rewrite::libc_sites(&auxv);
        rewrite::keep_page_tables(&auxv);
    }
    signal::install_net(net::on_sigsys as *const () as u64);
    signal::install_fault();
    net::arm();
    tsc::arm();
    if local().phase == Phase::Running {
        fd::after_exec();
    }
}

fn fail(text: &[u8]) -> ! {
    complain(&[b"vsrun: ", text]);
    end::die(2)
}

fn map_arena() {
    let size = core::mem::size_of::<Arena>();
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | 0x10_0000);
    let at = raw!(libc::SYS_mmap, ARENA_ADDR, size, prot, flags, ARENA_FD, 0);
    if at != ARENA_ADDR as i64 {
        fail(b"this library works only in programs that vsrun starts");
    }
    if arena().magic != MAGIC || arena().version != VERSION || arena().size != size as u64 {
        fail(b"the library and the vsrun that started the program are not of the same version");
    }
    let at = raw!(libc::SYS_mmap, POOL_ADDR, POOL_SIZE, prot, flags | libc::MAP_NORESERVE, POOL_FD, 0);
    if at != POOL_ADDR as i64 {
        fail(b"the pool for shared memory could not be mapped");
    }
}

fn find_libc(auxv: &elf::Auxv) {
    let Some(image) = elf::libc_image(auxv) else { fail(b"the program does not use glibc's libc.so.6") };
    let find = |name: &[u8]| image.find(name).unwrap_or(0);
    let functions = Libc {
        start_main: find(b"__libc_start_main"),
        pthread_create: find(b"pthread_create"),
        pthread_join: find(b"pthread_join"),
        pthread_detach: find(b"pthread_detach"),
        pthread_cancel: find(b"pthread_cancel"),
        pthread_testcancel: find(b"pthread_testcancel"),
        pthread_setcancelstate: find(b"pthread_setcancelstate"),
        pthread_once: find(b"pthread_once"),
        call_once: find(b"call_once"),
        thrd_join: find(b"thrd_join"),
        thrd_detach: find(b"thrd_detach"),
    };
    if functions.start_main == 0 || functions.pthread_create == 0 {
        fail(b"the program's glibc is older than 2.34, which vsrun does not support");
    }
    // SAFETY: see `Cell`.
    unsafe { *LIBC.0.get() = Some(functions) };
}

/// The first process makes itself known to the model; a program that was exec'd takes over its process.
fn enter_world() {
    let l = local();
    if world().procs.len == 0 {
        let Some((p, t)) = world().create_process(NONE) else { fail(b"the arena is damaged") };
        world().current = t;
        l.pid = p;
        l.cur = t;
        world().procs[p].real_pid = raw!(libc::SYS_getpid) as i32;
        l.phase = Phase::BeforeRoot;
    } else {
        let t = world().current;
        l.cur = t;
        l.pid = world().threads[t].pid;
        world().exec(t);
        l.phase = Phase::Running;
    }
    me().fs = fs_base();
    me().clear_tid = 0;
}

/// The sixteen bytes of AT_RANDOM are the same in every run.
fn fixed_random(at: u64) {
    if at != 0 {
        store(at, [0x76u8, 0x73, 0x72, 0x75, 0x6e, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    }
}

/// glibc keeps the thread id that the kernel told it; it gets the virtual one.
fn set_tid() {
    let mut word = 0u64;
    const PR_GET_TID_ADDRESS: i32 = 40;
    if raw!(libc::SYS_prctl, PR_GET_TID_ADDRESS, &mut word as *mut u64) == 0 && word != 0 {
        store(word, me().vtid);
    }
}

type Main = extern "C" fn(i32, *const *const u8, *const *const u8) -> i32;
type StartMain = extern "C" fn(Main, i32, u64, u64, u64, u64, u64) -> i32;

/// What every program's start-up code calls.
#[no_mangle]
pub extern "C" fn __libc_start_main(
    main: Main,
    argc: i32,
    argv: u64,
    init: u64,
    fini: u64,
    rtld_fini: u64,
    stack: u64,
) -> i32 {
    // SAFETY: see `Cell`; the address found is that of glibc's function of this type.
    let start: StartMain = unsafe {
        *MAIN.0.get() = main as *const () as u64;
        core::mem::transmute::<u64, StartMain>(libc_functions().start_main)
    };
    start(root_main, argc, argv, init, fini, rtld_fini, stack)
}

/// Stands where main stands: the first process becomes the root here, or goes straight on.
extern "C" fn root_main(argc: i32, argv: *const *const u8, envp: *const *const u8) -> i32 {
    if local().phase == Phase::BeforeRoot {
        if arena().control.mode == Mode::ROOT {
            serve();
        }
        local().phase = Phase::Running;
        crate::closing::start_clients(envp as u64);
    }
    #[cfg(feature = "enomem")]
    crate::interpose::malloc::main_begins();
    // SAFETY: see `Cell`; this is the program's main.
    let main: Main = unsafe { core::mem::transmute::<u64, Main>(*MAIN.0.get()) };
    main(argc, argv, envp)
}

const CLONE_PARENT: u64 = 0x8000;

/// The root: forks executions until it is killed. Returns in each execution.
fn serve() {
    let control = &mut arena().control as *mut vsrun_model::arena::Control;
    // SAFETY: the arena is mapped for the life of the process; vsrun reads and writes these words too, hence volatile.
    let (command, ready, forked) = unsafe {
        (&raw mut (*control).command as u64, &raw mut (*control).ready as u64, &raw mut (*control).forked as u64)
    };
    raw!(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &u64::MAX as *const u64, 0, 8);
    loop {
        store(ready, load::<u32>(ready) + 1);
        raw!(libc::SYS_futex, ready, libc::FUTEX_WAKE, 1);
        while load::<u32>(command) == 0 {
            raw!(libc::SYS_futex, command, libc::FUTEX_WAIT, 0);
        }
        let order = Command(load::<u32>(command));
        store(command, 0u32);
        let child = raw!(libc::SYS_clone, CLONE_PARENT, 0, 0, 0, 0);
        if child == 0 {
            raw!(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &0u64 as *const u64, 0, 8);
            begin(order);
            return;
        }
        store(forked, child as i32);
    }
}

/// First steps of an execution.
fn begin(order: Command) {
    process::live_with_vsrun();
    raw!(libc::SYS_setsid);
    if order == Command::RUN_TRACED {
        raw!(libc::SYS_ptrace, 0, 0, 0, 0);
        raw!(libc::SYS_kill, raw!(libc::SYS_getpid), libc::SIGSTOP);
    }
    world().procs[local().pid].real_pid = raw!(libc::SYS_getpid) as i32;
    if me().state != ThreadState::RUNNING || world().current != local().cur {
        end::bug(b"the root was not the thread that has the turn");
    }
    mail::clear();
    net::arm();
}
