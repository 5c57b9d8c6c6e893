//! Coming into charge of a process: the constructor (run before those of other libraries), main of the first
//! process (the root), and the first moments of a program that was exec'd.

use core::cell::UnsafeCell;

use vsrun_model::arena::{Arena, Command, Mode, ARENA_ADDR, ARENA_FD, MAGIC, POOL_ADDR, POOL_FD, POOL_SIZE, VERSION};
use vsrun_model::watch::state;
use vsrun_model::{ThreadState, NONE};

use crate::calls::{
    claims, clients, descriptors, env, files, library, locks, mail, priority, process, stream, thread, toss,
};
use crate::gate::local::{arena, fiber, local, machine, me, model, process_of, world, Hooks, Phase};
use crate::gate::{birth, copies, cpuid, end, inject, late, pages, shield, signal, touch, tsc, watched};
use crate::sys::{bind, complain, die, elf, fs_base, load, names, origin, raw, store};
use crate::{net, rewrite};

struct Cell<T>(UnsafeCell<T>);
// SAFETY: written once by `__libc_start_main`, before the program has a second fiber.
unsafe impl<T> Sync for Cell<T> {}

static MAIN: Cell<u64> = Cell(UnsafeCell::new(0));

#[used]
#[link_section = ".init_array"]
static CONSTRUCTOR: extern "C" fn(i32, *const *const u8, *const *const u8) = constructor;

#[used]
#[link_section = ".fini_array"]
static DESTRUCTOR: extern "C" fn() = destructor;

/// Run by exit, after the handlers of the program.
extern "C" fn destructor() {
    let entered = shield::enter();
    stream::exits();
    shield::leave(entered);
}

extern "C" fn constructor(_argc: i32, argv: *const *const u8, envp: *const *const u8) {
    map_arena();
    descriptors::make_place();
    mail::make_pair();
    local().stack = argv as u64;
    let envp = envp as u64;
    // Hiding leaves a gap before the auxiliary vector, so that is read first.
    let auxv = elf::auxv(envp);
    env::hide(envp);
    elf::disarm_vdso(auxv.vdso);
    local().hooks = Hooks {
        deliver: signal::deliver_due,
        run_taken: signal::run_taken,
        close_locked: locks::close_all_locked,
        drain: late::drain,
    };
    if let Err(reason) = thread::find_libc(&auxv) {
        fail(reason);
    }
    if let Some(libc) = elf::libc_image(&auxv) {
        stream::find(&libc);
    }
    process::register_handlers();
    local().text = elf::text_of(elf::own_base());
    enter_world();
    fixed_random(auxv.random);
    set_tid();
    signal::read_dispositions();
    origin::find(&auxv);
    if local().phase == Phase::BeforeRoot {
        rewrite::libc_sites(&auxv);
        rewrite::keep_page_tables(&auxv);
        bind::calls(&auxv);
    }
    #[cfg(feature = "heap")]
    crate::interpose::heap::find_functions();
    names::lead_here();
    signal::install_net(net::on_sigsys as *const () as u64);
    signal::install_faults();
    birth::arm();
    tsc::arm();
    cpuid::arm();
    if local().phase == Phase::Running {
        descriptors::after_exec();
        watched::program_comes();
        toss::program_comes();
        shield::close();
    }
}

fn fail(text: &[u8]) -> ! {
    complain(&[b"vsrun: ", text]);
    die(2)
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
    // A core that the program asks for would hold all of it, and take minutes.
    raw!(libc::SYS_madvise, ARENA_ADDR, size, libc::MADV_DONTDUMP);
    raw!(libc::SYS_madvise, POOL_ADDR, POOL_SIZE, libc::MADV_DONTDUMP);
}

/// The first process makes itself known to the model; a program that was exec'd takes over its process.
fn enter_world() {
    let l = local();
    if world().procs.len == 0 {
        let Some((p, t)) = model().create_process(NONE) else { fail(b"the arena is damaged") };
        model().give_turn(t);
        l.pid = p;
        l.cur = t;
        process_of(p).real_pid = raw!(libc::SYS_getpid) as i32;
        priority::begin();
        l.phase = Phase::BeforeRoot;
    } else {
        let t = world().current;
        l.cur = t;
        l.pid = world().threads[t].pid;
        machine().segments_left(l.pid);
        model().exec(t);
        fiber().name = [0; 16];
        copies::follows();
        l.phase = Phase::Running;
    }
    fiber().fs = fs_base();
    fiber().clear_tid = 0;
    birth::tell_faults();
}

/// The sixteen bytes of AT_RANDOM are the same in every run.
fn fixed_random(at: u64) {
    if at != 0 {
        store(at, [0x76u8, 0x73, 0x72, 0x75, 0x6e, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    }
}

/// glibc keeps the thread id that the kernel told it; it gets the virtual one. The word is cleared at the end of the thread: who joins
/// the first one waits for that.
fn set_tid() {
    let mut word = 0u64;
    if raw!(libc::SYS_prctl, libc::PR_GET_TID_ADDRESS, &mut word as *mut u64) == 0 && word != 0 {
        store(word, me().vtid);
        fiber().clear_tid = word;
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
        core::mem::transmute::<u64, StartMain>(thread::libc_functions().__libc_start_main)
    };
    start(root_main, argc, argv, init, fini, rtld_fini, stack)
}

/// Stands where main stands: the first process becomes the root here, or goes straight on.
extern "C" fn root_main(argc: i32, argv: *const *const u8, envp: *const *const u8) -> i32 {
    shield::enter();
    if local().phase == Phase::BeforeRoot {
        match arena().control.mode {
            Mode::ROOT => serve(),
            _ => watch_alone(),
        }
        local().phase = Phase::Running;
        inject::main_begins();
        clients::start(envp as u64);
    }
    #[cfg(feature = "heap")]
    crate::interpose::heap::main_begins();
    // SAFETY: see `Cell`; this is the program's main.
    let main: Main = unsafe { core::mem::transmute::<u64, Main>(*MAIN.0.get()) };
    shield::close();
    let status = main(argc, argv, envp);
    // libc calls exit by itself next.
    crate::gate::returning(|| stream::begins_exit("exit"));
    status
}

/// Without a supervisor the process makes the patches itself, if memory is to be watched.
fn watch_alone() {
    watched::announce(library::stand_ins);
    if arena().control.watching.state != state::ASKED {
        return;
    }
    if !watched::map(touch::touch, claims::at_place) {
        fail(b"memory cannot be watched: the code is not what it was (a breakpoint?), or there is no room for the shadow (ulimit -v)");
    }
    library::lead_here();
    signal::install_traps();
}

/// The root: forks executions until it is killed. Returns in each execution.
fn serve() {
    let [command, ready, forked] = machine().root_words();
    raw!(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &u64::MAX as *const u64, 0, 8);
    watched::announce(library::stand_ins);
    toss::announce();
    files::know_streams();
    loop {
        store(ready, load::<u32>(ready) + 1);
        raw!(libc::SYS_futex, ready, libc::FUTEX_WAKE, 1);
        while load::<u32>(command) == 0 {
            raw!(libc::SYS_futex, command, libc::FUTEX_WAIT, 0);
        }
        let order = Command(load::<u32>(command));
        store(command, 0u32);
        if order == Command::WATCH {
            if watched::map(touch::touch, claims::at_place) {
                library::lead_here();
                signal::install_traps();
                // The root itself allocates nothing. Done here, it is no page that each execution has to copy.
                #[cfg(feature = "heap")]
                crate::interpose::heap::main_begins();
            }
            continue;
        }
        if order == Command::ROOM {
            toss::map_room();
            continue;
        }
        if order == Command::TRAPS {
            local().toss_traps = true;
            signal::install_traps();
            continue;
        }
        if order == Command::KEEP {
            pages::keep();
            continue;
        }
        // A program that overwrites the arena may have written this.
        if !matches!(order, Command::RUN | Command::RUN_TRACED | Command::RUN_TELLING) {
            continue;
        }
        let child = birth::brother();
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
    birth::live_with_vsrun();
    raw!(libc::SYS_setsid);
    if order == Command::RUN_TRACED {
        raw!(libc::SYS_ptrace, 0, 0, 0, 0);
        raw!(libc::SYS_kill, raw!(libc::SYS_getpid), libc::SIGSTOP);
    }
    if order == Command::RUN_TELLING {
        pages::begin();
    }
    process_of(local().pid).real_pid = raw!(libc::SYS_getpid) as i32;
    if me().state != ThreadState::RUNNING || world().current != local().cur {
        end::bug(b"the root was not the thread that has the turn");
    }
    mail::clear();
    birth::arm();
}
