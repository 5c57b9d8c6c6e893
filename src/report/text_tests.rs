use vsrun_model::Uid;

use super::super::testing::{bug as empty, deadlock, finding, step, summary, waiting, LOCK_A, LOCK_B};
use super::*;
use crate::finding::{GoneView, ObjectView, OriginView};
use crate::incomplete::Reason;

/// What was seen of a bug, to be changed.
fn seen(bug: &mut Bug) -> &mut Finding {
    bug.finding.as_mut().unwrap()
}

const DEADLOCK: &str = "\
DEADLOCK: 2 threads wait for each other
  in execution 3, after 2 transitions

Who is who
  1001  prog  main (0), worker#1 (0.1), worker#2 (0.2); over: worker#3 (0.3)

What happened
  worker#1 (0.1) has lock_a, and now waits for lock_b.
  worker#2 (0.2) has lock_b, and now waits for lock_a.
  Each has what the other waits for, and would give it back only after it has got what it waits for itself: so neither can go on.
  Beside them main (0) waits for the end of thread worker#1 (0.1).

Who waits for whom
  .-> worker#1 (0.1) --waits for--> lock_b --held by--> worker#2 (0.2)
  |   worker#2 (0.2) --waits for--> lock_a --held by--> worker#1 (0.1) --.
  '----------------------------------------------------------------------'

Threads
  main (0) waits: process 1001 (prog)
    at         pthread_join(0.1)
    waits for  the end of thread worker#1 (0.1)
    stack      main+0x40 (prog)
  worker#1 (0.1) waits: process 1001 (prog), started in worker
    at         pthread_mutex_lock(lock_b)
    waits for  lock_b, held by thread worker#2 (0.2)
    holds      lock_a
    stack      worker+0x2d (prog)
               start_thread+0x304 (libc.so.6)
  worker#2 (0.2) waits: process 1001 (prog), started in worker
    at         pthread_mutex_lock(lock_a)
    waits for  lock_a, held by thread worker#1 (0.1)
    holds      lock_b
    stack      worker+0x2d (prog)
               start_thread+0x304 (libc.so.6)
  over: worker#3 (0.3)

How it came about
      worker#1 (0.1)              worker#2 (0.2)
   1  pthread_mutex_lock(lock_a)
   2                              pthread_mutex_lock(lock_b)

See it again
  vsrun replay prog-deadlock-1.vsrun.json
  vsrun debug prog-deadlock-1.vsrun.json
  gdb -ex 'handle all nostop noprint pass' -ex run --args vsrun replay --no-supervisor prog-deadlock-1.vsrun.json
";

#[test]
fn a_deadlock() {
    assert_eq!(bug(&deadlock(), false), DEADLOCK);
}

#[test]
fn what_needs_the_supervisor_is_for_no_debugger() {
    let mut tossed = deadlock();
    tossed.finding.as_mut().unwrap().tosses = true;
    let text = bug(&tossed, false);
    assert!(!text.contains("gdb") && !text.contains("vsrun debug") && text.contains("  (in no debugger: "), "{text}");
}

#[test]
fn freed_memory() {
    let mut freed = deadlock();
    let found = freed.finding.as_mut().unwrap();
    let origin = |frame: &str| OriginView { thread: 0, frames: vec![frame.into(), "main+0x40 (prog)".into()] };
    let gone = GoneView {
        what: "read of 4 bytes".into(),
        at: "consume+0x1f (prog)".into(),
        thread: 2,
        owner: None,
        size: 40,
        offset: 8,
        freed: Some(origin("operator delete(void*)+0x1 (libstdc++.so.6)")),
        allocated: None,
    };
    assert_eq!(
        gone.behind(&"use after free".into()).render(&**found),
        "use after free: read of 4 bytes at consume+0x1f (prog) by thread 0.2; freed by thread 0 in main"
    );
    found.gone = Some(gone);
    let section = "\
The freed memory
  read of 4 bytes by thread worker#2 (0.2)
    at         consume+0x1f (prog)
    memory     offset 8 of a block of 40 bytes
  freed by thread main (0)
    stack      operator delete(void*)+0x1 (libstdc++.so.6)
               main+0x40 (prog)
  where it was allocated is not known any more
";
    assert!(bug(&freed, false).contains(section), "{}", bug(&freed, false));
}

#[test]
fn a_crash() {
    let mut crash = empty(BugKind::Crash);
    crash.summary = "SIGSEGV in thread 0.2 at consume+0x1f (prog)".into();
    let mut found = Finding { threads: seen(&mut deadlock()).threads.clone(), ..finding(BugKind::Crash) };
    found.signal = Some(SignalView {
        name: "SIGSEGV".into(),
        code: Some("SEGV_MAPERR".into()),
        address: Some(0x10),
        thread: 2,
        registers: vec![
            ("rax".into(), 0),
            ("rbx".into(), 0x7fff_ffff_e000),
            ("rcx".into(), 1),
            ("rdx".into(), 2),
            ("rip".into(), 3),
        ],
    });
    let expected = "\
CRASH: SIGSEGV in thread 0.2 at consume+0x1f (prog)
  in execution 1, after 1 transition

Who is who
  1001  prog  main (0), worker#1 (0.1), worker#2 (0.2); over: worker#3 (0.3)

What happened
  worker#2 (0.2) got SIGSEGV before it had made any step.
  It holds lock_b.

Signal
  SIGSEGV (SEGV_MAPERR) at address 0x10 in thread worker#2 (0.2)
     rax 0000000000000000    rbx 00007fffffffe000    rcx 0000000000000001    rdx 0000000000000002
     rip 0000000000000003

See it again
  no scenario was written
";
    crash.finding = Some(Box::new(found));
    let text = bug(&crash, false);
    let (before, after) = (text.find("\nThreads\n").unwrap(), text.find("\nSee it again\n").unwrap());
    assert_eq!(text[..before].to_string() + &text[after..], expected);
}

#[test]
fn two_hundred_steps() {
    let mut long = deadlock();
    seen(&mut long).steps =
        (1..=200).map(|n| step(Uid::MAIN.child(2 - u32::from(n % 3 == 0)), "sem_wait(s)")).collect();
    let text = bug(&long, false);
    assert!(
        text.contains("\n  (160 earlier transitions left out; 'vsrun show prog-deadlock-1.vsrun.json' prints all)\n"),
        "{text}"
    );
    assert!(
        !text.contains("\n  160 ")
            && text.contains("\n  161 ")
            && text.contains("\n  200                  sem_wait(s)\n"),
        "{text}"
    );
}

#[test]
fn closing_lines() {
    let mut all = summary();
    let complete = "\
Verdict: no bug found in ./prog 2
  explored completely. This assumes that code between visible operations touches shared data only under locks.
  30 executions (4 cut off as redundant), 200 transitions, deepest 9, 0.20 s, 150 executions/s; search dpor, 1 worker
  system calls that went to the kernel and could block or communicate, unexplored: read (3), poll (1)
";
    assert_eq!(closing(&all, false), complete);
    all.passed_calls.clear();
    all.notes.push("cannot write\na scenario".into());
    for (reason, word) in [
        (Reason::Time, "--time"),
        (Reason::Interrupted, "interrupted"),
        (Reason::Executions, "--max-executions"),
        (Reason::Once, "--once"),
        (Reason::Depth, "--max-depth"),
        (Reason::Idle, "--max-idle"),
        (Reason::PassedThrough, "went to the kernel"),
        (Reason::Notified, "not proven"),
        (Reason::NoSigio, "some signals"),
        (Reason::NotDeferred, "wait for their data"),
        (Reason::RetriedAtOnce, "refused connections came again"),
        (Reason::StoppedAtOnce, "processes stopped at once"),
        (Reason::WakesIgnored, "a signal which is ignored makes a wait fail"),
        (Reason::KeyDeleted, "a key is deleted"),
        (Reason::CircleInherited, "a circle of mutexes"),
        (Reason::PagesShared, "pages in a pipe change"),
        (Reason::PlaceUnlocked, "moves the place"),
        (Reason::CancelledWithin, "between two calls"),
        (Reason::NotShared, "not made for that"),
        (Reason::WokenFails, "could have gone on"),
        (Reason::DeathSignal, "parent's thread"),
        (Reason::Overruns, "number of periods"),
        (Reason::EdgeAgain, "for edges (EPOLLET)"),
        (Reason::OtherLooks, "not its own"),
        (Reason::ReadyEarly, "ready before SIGCHLD"),
        (Reason::ForkLocks, "its locks for a fork"),
        (Reason::ForkCopies, "or other state within a fork"),
        (Reason::OneStep, "between the steps of certain calls"),
        (Reason::LibcThreads, "threads of the C library"),
        (Reason::CancelsLate, "has done its work"),
        (Reason::LeavesSeveral, "several robust mutexes"),
        (Reason::GoneWaiters, "who is not there"),
        (Reason::LeavesWords, "leaves several futexes"),
        (Reason::FutexTimed, "a futex wait that gives up"),
        (Reason::Bound, "--bound"),
        (Reason::Random, "random"),
    ] {
        all.reasons = [reason].into();
        let text = closing(&all, false);
        assert!(text.contains("\n  NOT explored completely; ") && text.contains(word), "{text}");
        assert!(!text.contains("assumes"), "{text}");
        assert!(text.ends_with("  note: cannot write\\x0aa scenario\n"), "{text}");
    }
    all.reasons = [Reason::FairSchedules].into();
    assert!(closing(&all, false).contains("\n  explored completely. "));
}

#[test]
fn a_program_that_fails_at_once_is_no_success() {
    let mut all = summary();
    (all.executions, all.program_status) = (1, Some(ProgramStatus::Exit(1)));
    let start = "Verdict: no bug found in ./prog 2, but it fails: it exits with status 1 (";
    assert!(closing(&all, false).starts_with(start), "{}", closing(&all, false));
    all.program_status = Some(ProgramStatus::Exit(0));
    assert!(closing(&all, false).starts_with("Verdict: no bug found in ./prog 2\n"));
    (all.executions, all.program_status, all.earlier) = (2, Some(ProgramStatus::Exit(1)), 1);
    let text = closing(&all, false);
    assert!(text.starts_with("Verdict: no bug found in ./prog 2\n"), "{text}");
    assert!(
        text.contains("\n  2 executions (4 cut off as redundant) (and 1 before the search started over), "),
        "{text}"
    );
}

#[test]
fn the_first_bug_ends_it_and_several_are_listed() {
    let mut all = summary();
    all.bugs = vec![deadlock()];
    all.verdict = Verdict::Found(BugKind::Deadlock);
    all.reasons = [Reason::FirstBug].into();
    let text = report(&all, false);
    assert!(
        text.starts_with(&format!(
            "{DEADLOCK}\nVerdict: deadlock (1 bug) in ./prog 2\n  NOT explored completely; stopped at the first bug"
        )),
        "{text}"
    );
    all.bugs.push(empty(BugKind::Assert));
    let text = report(&all, false);
    assert!(text.contains("Verdict: deadlock (2 bugs) in ./prog 2\n    deadlock: 2 threads wait for each other [prog-deadlock-1.vsrun.json]\n    assert: x\n"), "{text}");
}

#[test]
fn what_is_no_bug_of_the_program_is_not_counted_as_one() {
    let mut all = summary();
    for (kind, said) in [
        (BugKind::Error, "none, unsupported"),
        (BugKind::Environment, "none, disturbed from outside"),
        (BugKind::Fault, "none, vsrun bug"),
        (BugKind::Unconfirmed, "none, executions of the same schedule differ"),
    ] {
        all.bugs = vec![empty(kind)];
        all.verdict = Verdict::Found(kind);
        assert!(closing(&all, false).starts_with(&format!("Verdict: {said} in ./prog 2\n")), "{kind:?}");
    }
    all.bugs = vec![Bug { summary: "vsrun bug: x".into(), ..empty(BugKind::Unconfirmed) }];
    all.verdict = Verdict::Found(BugKind::Unconfirmed);
    assert!(closing(&all, false).starts_with("Verdict: none, vsrun bug in ./prog 2\n"));
    all.bugs.push(deadlock());
    all.verdict = Verdict::Found(BugKind::Deadlock);
    assert!(closing(&all, false).starts_with("Verdict: deadlock (1 bug) in ./prog 2\n"));
}

#[test]
fn colours_only_on_request() {
    let mut all = summary();
    all.bugs = vec![deadlock()];
    assert!(!report(&all, false).contains('\x1b'));
    let coloured = report(&all, true);
    assert!(coloured.starts_with("\x1b[1m\x1b[31mDEADLOCK\x1b[0m: "));
    let plain =
        ["31", "32", "1", "36", "0"].iter().fold(coloured, |text, code| text.replace(&format!("\x1b[{code}m"), ""));
    assert_eq!(plain, report(&all, false));
}

#[test]
fn hostile_text_stays_on_its_line() {
    let mut bad = deadlock();
    let evil = "a\nb\x1b[2J\u{202e}";
    bad.summary = evil.into();
    bad.scenario = Some(evil.into());
    let found = seen(&mut bad);
    found.steps[0].text = evil.into();
    found.steps[0].note = Some(evil.into());
    found.processes[0].program = evil.into();
    found.objects[LOCK_B as usize] = ObjectView { name: evil.into(), ..found.objects[0].clone() };
    for thread in &mut found.threads {
        thread.start = evil.into();
        thread.holds = vec![evil.into()];
        thread.frames = vec![evil.into()];
        thread.pending.as_mut().unwrap().text = evil.into();
    }
    let text = bug(&bad, false);
    assert!(!text.contains(['\x1b', '\u{202e}']), "{text}");
    assert!(!text.lines().any(|line| line.starts_with('b')), "{text}");
    assert_eq!(text.matches("a\\x0ab\\x1b[2J\\xe2\\x80\\xae").count(), text.matches("[2J").count());
}

#[test]
fn rings() {
    let mut found = seen(&mut deadlock()).clone();
    found.objects[LOCK_A as usize].name = "m".into();
    found.objects[LOCK_B as usize].name = "long".into();
    let ring = |links: &[(u32, Option<u32>)]| {
        let link = |&(thread, object): &(u32, Option<u32>)| CycleLink { thread, object };
        super::ring(&links.iter().map(link).collect::<Vec<_>>(), &found)
    };
    let one = "  .-> 0.1 --waits for--> m --held by--> 0.1 --.\n  '-------------------------------------------'\n";
    assert_eq!(ring(&[(1, Some(LOCK_A))]), one);
    let joined = ring(&[(1, Some(LOCK_A)), (0, None), (2, Some(LOCK_B))]);
    let expected = "  .-> 0.1 --waits for--> m --held by--> 0
  |   0 --waits for the end of--> 0.2
  |   0.2 --waits for--> long --held by--> 0.1 --.
  '----------------------------------------------'
";
    assert_eq!(joined, expected);
}

#[test]
fn crowds_are_cut() {
    let mut crowd = deadlock();
    let threads = &mut seen(&mut crowd).threads;
    *threads = (1..=100).map(|n| waiting(Uid::MAIN.child(n), LOCK_A, 0, LOCK_B)).collect();
    threads[0].frames = vec!["f+0x1 (prog)".into(); 30];
    for thread in &mut threads[70..] {
        thread.status = ThreadStatus::Exited;
    }
    let text = bug(&crowd, false);
    assert!(text.contains("\n               and 6 more\n"), "{text}");
    assert!(
        text.contains("\n  and 6 more\n  over: worker#70 (0.71), worker#71 (0.72),")
            && text.contains("(0.82) and 18 more\n"),
        "{text}"
    );
    assert!(text.contains("worker#11 (0.12) and 58 more; over: "), "{text}");
}

#[test]
fn executions_that_did_not_reach_their_end_are_counted() {
    let mut all = summary();
    (all.cut, all.ended) = (3, 23);
    let text = closing(&all, false);
    assert!(
        text.starts_with("Verdict: no bug found in")
            && text.contains("\n  3 of 30 executions cut off, 23 reached their end\n")
    );
    (all.cut, all.ended, all.broken_off) = (30, 0, Some(7));
    let text = closing(&all, false);
    assert!(text.starts_with("Verdict: no bug found, but no execution reached its end in ./prog 2\n"), "{text}");
    assert!(text.contains(
        "\n  30 of 30 executions cut off: none reached its end, so what comes behind the cut was not checked\n"
    ));
    assert!(text.contains("\n  one execution more was broken off after 7 transitions, which is not counted\n"));
    (all.cut, all.executions) = (0, 0);
    assert!(closing(&all, false)
        .contains("\n  the first execution was broken off after 7 transitions: none reached its end"));
    // The scenario of what is shown is the last line, of a bug before that of an execution that was cut.
    all.unfinished = Some(Bug { scenario: Some("cut.json".into()), ..empty(BugKind::Cut) });
    assert!(report(&all, false).ends_with("\nscenario: cut.json\n"));
    all.bugs = vec![deadlock()];
    assert!(report(&all, false).ends_with("\nscenario: prog-deadlock-1.vsrun.json\n"));
}
