//! Executions without a supervisor: where a debugger is to look, every fiber becomes a real kernel thread, on its own stack and thread
//! pointer, so that a debugger shows them all: before a step that it asks for, at a crash, and at the end.
//!
//! NOTE [Threads] Such a thread waits in a frame below the last one of its fiber, in registers alone: it never touches the stack. So nothing
//! happens to the fiber, and once the thread is told to leave, the fiber goes on where it was.

use core::sync::atomic::{AtomicU32, Ordering};

use vsrun_model::arena::{Mode, Shows};
use vsrun_model::{End, ProcState, Tid};

use super::{arena, fiber_of, local, machine, others, process_of, shield, word, world, Phase};
use crate::sys::{complain, decimal, die, dispatch, raw};

const THREAD_FLAGS: u64 = 0x100 | 0x200 | 0x400 | 0x800 | 0x10000 | 0x40000 | 0x80000;

core::arch::global_asm!(
    // vs_materialize(flags, stack, fs, crew): a thread whose stack is a parked fiber's. It counts itself in at crew[0], waits until crew[1]
    // is not 0, and counts itself out.
    ".hidden vs_materialize",
    ".globl vs_materialize",
    ".type vs_materialize,@function",
    "vs_materialize:",
    ".cfi_startproc",
    " mov r9, rcx",
    " mov r8, rdx",
    " xor edx, edx",
    " xor r10d, r10d",
    " mov eax, 56",
    " syscall",
    " test rax, rax",
    " jz 1f",
    " ret",
    // The fiber's saved frame lies at rsp: 64 bytes, then its return address is what `vs_switch` would return to.
    "1:",
    ".cfi_def_cfa rsp, 64",
    ".cfi_offset rip, -8",
    ".cfi_offset rbp, -16",
    ".cfi_offset rbx, -24",
    ".cfi_offset r12, -32",
    ".cfi_offset r13, -40",
    ".cfi_offset r14, -48",
    ".cfi_offset r15, -56",
    " lock inc dword ptr [r9]",
    "2: cmp dword ptr [r9 + 4], 0",
    " jne 3f",
    // futex(crew + 1, FUTEX_WAIT, 0, NULL)
    " lea rdi, [r9 + 4]",
    " xor esi, esi",
    " xor edx, edx",
    " xor r10d, r10d",
    " mov eax, 202",
    " syscall",
    " jmp 2b",
    "3: lock dec dword ptr [r9]",
    " xor edi, edi",
    " mov eax, 60",
    " syscall",
    " ud2",
    ".cfi_endproc",
    ".size vs_materialize, .-vs_materialize",
);

// Where a debugger stops, by a breakpoint of ours; and what it may call, to see the threads where it has stopped otherwise.
core::arch::global_asm!(
    ".hidden vsrun_end_of_scenario",
    ".globl vsrun_end_of_scenario",
    ".type vsrun_end_of_scenario,@function",
    "vsrun_end_of_scenario:",
    ".cfi_startproc",
    " int3",
    " nop",
    " ret",
    ".cfi_endproc",
    ".size vsrun_end_of_scenario, .-vsrun_end_of_scenario",
    ".hidden vsrun_at_step",
    ".globl vsrun_at_step",
    ".type vsrun_at_step,@function",
    "vsrun_at_step:",
    ".cfi_startproc",
    " int3",
    " nop",
    " ret",
    ".cfi_endproc",
    ".size vsrun_at_step, .-vsrun_at_step",
    ".hidden vsrun_show_threads",
    ".globl vsrun_show_threads",
    ".type vsrun_show_threads,@function",
    "vsrun_show_threads:",
    ".cfi_startproc",
    " jmp {shows}",
    ".cfi_endproc",
    ".size vsrun_show_threads, .-vsrun_show_threads",
    shows = sym show_threads,
);

extern "C" {
    fn vsrun_end_of_scenario();
    fn vsrun_at_step();
    fn vs_materialize(flags: u64, stack: u64, fs: u64, crew: *const [AtomicU32; 2]) -> i64;
}

/// The kernel threads of this process that stand for its fibers: how many there are, and whether they are to leave.
static CREW: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];
/// The process that made them: in a fork of it there are none.
static CREW_OF: AtomicU32 = AtomicU32::new(0);

const FUTEX_WAKE: i32 = 1;
/// How long others are waited for, in milliseconds: a debugger stops all of them for each thread that comes.
const PATIENCE: u32 = 5000;

/// Looks each millisecond whether it is so. False: it did not come to it.
fn comes_to(is_so: impl Fn() -> bool) -> bool {
    let moment: [i64; 2] = [0, 1_000_000];
    for _ in 0..PATIENCE {
        if is_so() {
            return true;
        }
        raw!(libc::SYS_nanosleep, moment.as_ptr(), 0);
    }
    false
}

/// Every fiber of this process but the running one becomes a thread.
fn materialize() {
    dematerialize();
    let [present, _] = &CREW;
    CREW_OF.store(raw!(libc::SYS_getpid) as u32, Ordering::Relaxed);
    let mut made = 0;
    for i in 0..world().live.len {
        let t: Tid = world().live[i];
        let thread = &world().threads[t];
        if t != local().cur && thread.pid == local().pid && thread.alive() && thread.fiber.context != 0 {
            // SAFETY: the fiber does not run, its stack is its own, and the thread only reads registers from where it is.
            let thread = unsafe { vs_materialize(THREAD_FLAGS, fiber_of(t).context, fiber_of(t).fs, &raw const CREW) };
            made += u32::from(thread > 0);
        }
    }
    // They have yet to reach the place where they wait.
    comes_to(|| present.load(Ordering::Acquire) >= made);
}

/// They are fibers again.
fn dematerialize() {
    let [present, leave] = &CREW;
    if CREW_OF.swap(0, Ordering::Relaxed) != raw!(libc::SYS_getpid) as u32 {
        present.store(0, Ordering::Relaxed);
        return;
    }
    leave.store(1, Ordering::Release);
    raw!(libc::SYS_futex, leave.as_ptr(), FUTEX_WAKE, i32::MAX);
    comes_to(|| present.load(Ordering::Acquire) == 0);
    leave.store(0, Ordering::Release);
}

/// This process shows what is asked for.
fn follow() {
    let asked = arena().control.shows;
    if process_of(local().pid).shown == asked.0 {
        return;
    }
    match asked.kind() {
        Shows::NOTHING => dematerialize(),
        _ => materialize(),
    }
    process_of(local().pid).shown = asked.0;
}

/// All processes show that: the others wait for the turn.
fn show_all(kind: u32) {
    // The child of a vfork has the memory of its parent, which waits for it in the kernel.
    if local().borrowed {
        return;
    }
    machine().show(kind);
    follow();
    let asked = arena().control.shows.0;
    let others = || (0..world().procs.len).filter(|&p| p != local().pid && world().procs[p].state == ProcState::LIVE);
    others().for_each(word::nudge);
    let late = |p: u32| process_of(p).shown != asked && process_of(p).real_pid > 0 && alive(process_of(p).real_pid);
    if !comes_to(|| !others().any(late)) {
        complain(&[b"vsrun: not all processes of the program answer: of some, threads are missing in the debugger"]);
    }
}

/// For debuggers, which have stopped somewhere in the program.
extern "C" fn show_threads() {
    if local().phase != Phase::Running {
        return;
    }
    let entered = shield::enter();
    show_all(Shows::THREADS);
    shield::leave(entered);
}

/// The transition that a debugger has asked for has been decided on, and this process is about to make it.
pub fn stop_before_step() {
    machine().tell_no_more();
    if !traced_here() {
        if is_looked_at(0) && local().pid != 0 {
            hand_to_first();
        }
        complain(&[b"vsrun: the step is reached, and there is no debugger to stop in"]);
        end_all(3);
    }
    show_all(Shows::THREADS);
    // SAFETY: a breakpoint for the debugger that traces this process, in a function that says why.
    unsafe { vsrun_at_step() };
    show_all(Shows::NOTHING);
}

/// The running instruction, or call, is about to end this process by that signal.
pub fn crashes(signal: i32) {
    if arena().control.mode != Mode::DIRECT {
        return;
    }
    if traced_here() {
        say_crash(signal);
        show_all(Shows::THREADS);
        // SAFETY: as in `stop_before_step`.
        unsafe { vsrun_end_of_scenario() };
    } else if local().pid != 0 && is_looked_at(0) {
        say_crash(signal);
        hand_to_first();
    }
}

fn say_crash(signal: i32) {
    let process = &world().procs[local().pid];
    let (seen, real, signal) = (decimal(process.vpid), decimal(process.own.real_pid), decimal(signal));
    complain(&[
        b"vsrun: reached the end of the scenario: signal ",
        &signal,
        b" is about to end process ",
        &seen,
        b" of the program, pid ",
        &real,
    ]);
}

/// Shows the end of the world to whoever looks and ends it: in this process if a debugger has it, else in the first one. Says what
/// happened, stops in a debugger if there is one.
pub fn show() -> ! {
    if local().pid != 0 && !local().borrowed && !traced_here() {
        hand_to_first();
    }
    end_here()
}

fn end_here() -> ! {
    dispatch::disarm();
    show_all(Shows::THREADS);
    let code = say();
    if traced_here() {
        // SAFETY: as in `stop_before_step`.
        unsafe { vsrun_end_of_scenario() };
    }
    end_all(code)
}

fn end_all(code: i32) -> ! {
    for process in world().procs.as_slice() {
        if process.own.real_pid > 0 && process.own.real_pid as i64 != raw!(libc::SYS_getpid) {
            others::end_process(process.own.real_pid);
        }
    }
    die(code)
}

/// The first process, which is looked at, is to show the end; this one stays as it is.
fn hand_to_first() -> ! {
    machine().show(Shows::END);
    word::nudge(0);
    loop {
        follow();
        if !alive(process_of(0).real_pid) {
            end_here();
        }
        let moment: [i64; 2] = [0, 20_000_000];
        raw!(libc::SYS_nanosleep, moment.as_ptr(), 0);
    }
}

/// This process is over or has nothing more to do, but its children live as long as it does.
pub fn park() -> ! {
    loop {
        wait();
    }
}

/// Waits until this process is given the turn, and shows the end if that is what there is to be seen.
pub fn wait() {
    word::wait(local().pid, Some(look));
    if world().end != End::RUNNING {
        show();
    }
}

/// While this process waits for its turn.
fn look() {
    if arena().control.shows.kind() == Shows::END && local().pid == 0 {
        end_here();
    }
    follow();
    check_holder();
}

/// Says that the last step of the scenario is being taken: what follows may be a loop without end.
#[inline(never)]
pub fn last_step(t: Tid) {
    let process = &world().procs[world().threads[t].pid];
    let (seen, real) = (decimal(process.vpid), decimal(process.own.real_pid));
    complain(&[b"vsrun: the last step of the scenario is taken by process ", &seen, b" of the program, pid ", &real]);
}

/// Says how the world ended; the exit code of the replay.
fn say() -> i32 {
    let w = world();
    let text: &[u8] = match w.end {
        End::DEADLOCK => b"deadlock: nothing can move",
        End::CYCLE => b"deadlock: threads wait for each other in a circle",
        End::MISUSE => b"misuse of a synchronization object",
        End::LIVELOCK => b"livelock",
        End::LOOP => b"livelock: threads have gone round and are where they were",
        End::STATUS => b"exit status",
        End::KILLED => b"the first process is killed by a signal",
        End::FINISHED => b"everything finished, without the bug",
        End::MISMATCH => b"the replay diverged: the program did not follow the scenario",
        End::RUNNING => b"what another process has come to",
        _ => w.message(),
    };
    complain(&[b"vsrun: reached the end of the scenario: ", text]);
    for process in w.procs.as_slice() {
        let real = process.own.real_pid;
        if process.state == ProcState::LIVE && real as i64 != raw!(libc::SYS_getpid) && real > 0 && tracer(real) == 0 {
            let (seen, real) = (decimal(process.vpid), decimal(real));
            complain(&[b"vsrun: process ", &seen, b" of the program can be looked at with: gdb -p ", &real]);
        }
    }
    match w.end {
        End::FINISHED | End::MISMATCH | End::BUG => 4,
        End::UNSUPPORTED | End::ROOM => 2,
        _ => 1,
    }
}

/// While this process waits for its turn: the process that has it may have been killed, and nobody else would notice.
fn check_holder() {
    let w = world();
    let Some(thread) = w.threads.get(w.current) else { return };
    let real = w.procs[thread.pid].own.real_pid;
    if w.end != End::RUNNING || real <= 0 || alive(real) {
        return;
    }
    let seen = decimal(w.procs[thread.pid].vpid);
    complain(&[b"vsrun: process ", &seen, b" of the program was killed by a signal"]);
    die(1);
}

/// True if the process exists and is not a zombie.
fn alive(pid: i32) -> bool {
    let mut text = [0u8; 512];
    let n = others::read_of(pid, b"stat", &mut text);
    n > 0 && !text[..n].windows(4).any(|w| w == b") Z " || w == b") X ")
}

/// Who traces that process; 0: nobody.
fn tracer(pid: i32) -> u32 {
    let mut text = [0u8; 4096];
    let n = others::read_of(pid, b"status", &mut text);
    let key = b"TracerPid:\t";
    let Some(at) = text[..n].windows(key.len()).position(|w| w == key) else { return 0 };
    let digits = text[at + key.len()..n].iter().take_while(|c| c.is_ascii_digit());
    digits.fold(0, |number, digit| 10 * number + u32::from(digit - b'0'))
}

fn traced_here() -> bool {
    tracer(raw!(libc::SYS_getpid) as i32) != 0
}

/// A debugger has that process of the world.
fn is_looked_at(p: u32) -> bool {
    process_of(p).real_pid > 0 && tracer(process_of(p).real_pid) != 0
}
