//! What single parts cost: `cargo bench`. `cargo bench -- WORD` measures those whose names have it, `cargo bench -- --test` runs each once.
//!
//! | | one iteration |
//! |---|---|
//! | `gate` | 1,000,000 visible operations of a thread that keeps the turn |
//! | `switch` | 1,000,000 operations each of which passes the turn to another thread of the process |
//! | `hand-off` | 20,000 times the turn passed to another process (a post and a wait) |
//! | `execution` | 100 or 400 executions of four threads that lock, write to pages, count and unlock, by how they begin (`fork`, `rollback`) and how many pages each thread writes |
//! | `marks` | 100 executions of `optimal`, with a mark after each transition, and without |
//! | `search` | what `optimal` does with the traces of all executions of five threads that lock, count and unlock; no program is run |
//!
//! Where a program is run it is CPU time, of vsrun and of all that it has started, so that what runs beside does not count, and the difference
//! of two runs of different size, so that the start of the program does not. `scripts/bench.sh` measures whole runs against native ones,
//! `scripts/experiment.sh` ways to begin over the sizes of programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{criterion_group, criterion_main, BenchmarkGroup, BenchmarkId, Criterion, SamplingMode, Throughput};
use nix::sys::resource::{getrusage, UsageWho};
use nix::sys::time::TimeVal;

#[path = "../tests/search/interp/mod.rs"]
mod interp;

use interp::{How, Ins, Machine};
use vsrun::search::{InOrder, Search};

/// Programs, removed at the end.
struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-bench-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a temporary directory");
        Place(dir)
    }

    fn compile(&self, source: &str) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
        let program = self.0.join(source.file_stem().expect("a name"));
        let mut cc = Command::new("cc");
        cc.args(["-O2", "-pthread", "-o"]).arg(&program).arg(source);
        assert!(cc.status().expect("cc").success());
        program
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn duration(time: TimeVal) -> Duration {
    Duration::new(time.tv_sec() as u64, time.tv_usec() as u32 * 1000)
}

/// CPU time of a run of vsrun.
fn cpu(options: &str, program: &Path, args: &str) -> Duration {
    let used = || {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("usage of children");
        duration(usage.user_time()) + duration(usage.system_time())
    };
    let before = used();
    let status = Command::new(env!("CARGO_BIN_EXE_vsrun"))
        .args(["--race", "off", "--progress", "never", "--output", "/dev/null"])
        .args(options.split_whitespace())
        .arg(program)
        .args(args.split_whitespace())
        .current_dir(program.parent().expect("a directory"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("vsrun");
    // 3: there would be more to explore.
    assert!(matches!(status.code(), Some(0 | 3)), "{options} {program:?} {args}: {status}");
    used() - before
}

fn short<'a>(c: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = c.benchmark_group(name);
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(2));
    group
}

/// Operations in a run that is taken off.
const FEW: u64 = 20_000;

fn operations(c: &mut Criterion) {
    let place = Place::new();
    let program = place.compile("scripts/bench/operation.c");
    // A pair of lock and unlock is two.
    for (name, kind, each, operations) in
        [("gate", "stay", 2, 1_000_000), ("switch", "yield", 1, 1_000_000), ("hand-off", "process", 1, 20_000)]
    {
        let mut group = short(c, name);
        group.throughput(Throughput::Elements(operations));
        group.bench_function(kind, |b| {
            b.iter_custom(|iterations| {
                let run = |n: u64| cpu("--once", &program, &format!("{kind} {}", n / each));
                let few = run(FEW);
                beyond(run(FEW + iterations * operations), few)
            });
        });
        group.finish();
    }
}

/// What one takes longer than the other; something, if that is less than can be measured.
fn beyond(whole: Duration, few: Duration) -> Duration {
    whole.saturating_sub(few).max(Duration::from_micros(1))
}

/// Executions in a run that is taken off: behind those processes go back.
const FIRST: u64 = 60;

/// `executions`: in an iteration.
fn begin(
    c: &mut Criterion,
    (name, id): (&str, BenchmarkId),
    executions: u64,
    options: &str,
    program: &Path,
    args: &str,
) {
    let mut group = short(c, name);
    group.throughput(Throughput::Elements(executions));
    group.bench_function(id, |b| {
        b.iter_custom(|iterations| {
            let run = |n: u64| cpu(&format!("-j 1 --keep-going {options} --max-executions {n}"), program, args);
            let first = run(FIRST);
            beyond(run(FIRST + iterations * executions), first)
        });
    });
    group.finish();
}

fn executions(c: &mut Criterion) {
    let place = Place::new();
    let program = place.compile("scripts/checkpoints/work.c");
    for how in ["fork", "rollback"] {
        for pages in [0, 16, 256] {
            let options = format!("--search random --checkpoint {how}");
            let executions = if how == "fork" || pages > 16 { 100 } else { 400 };
            begin(
                c,
                ("execution", BenchmarkId::new(how, pages)),
                executions,
                &options,
                &program,
                &format!("0 {pages} 4 1"),
            );
        }
    }
    for (name, every) in [("after each transition", "1"), ("none", "1000000000000")] {
        for pages in [0, 16, 256] {
            let options = format!("--search optimal --checkpoint rollback --marks {every}");
            begin(c, ("marks", BenchmarkId::new(name, pages)), 100, &options, &program, &format!("0 {pages} 4 10"));
        }
    }
}

/// Five threads: 120 executions.
fn search(c: &mut Criterion) {
    const THREADS: usize = 5;
    let mut program = vec![(1..=THREADS).map(Ins::Create).collect::<Vec<_>>()];
    program.extend(vec![vec![Ins::Lock(0, How::Block), Ins::Count(0), Ins::Unlock(0)]; THREADS]);
    let (mut machine, mut search, mut traces) = (Machine::new(), InOrder::optimal(), Vec::new());
    while let Some(schedule) = search.next() {
        let (trace, _) = machine.run(&program, &schedule, u64::MAX);
        search.done(schedule.ticket, &trace);
        traces.push(trace);
    }
    assert!(search.exhaustive() && traces.len() == 120, "{} executions", traces.len());
    let mut group = short(c, "search");
    group.throughput(Throughput::Elements(traces.len() as u64));
    group.bench_function("done", |b| {
        b.iter_custom(|iterations| (0..iterations).map(|_| all_done(&traces)).sum());
    });
    group.finish();
}

/// What `done` takes for all of them.
fn all_done(traces: &[vsrun::trace::Trace]) -> Duration {
    let mut search = InOrder::optimal();
    let mut sum = Duration::ZERO;
    for trace in traces {
        let schedule = search.next().expect("as many as before");
        let since = Instant::now();
        search.done(schedule.ticket, trace);
        sum += since.elapsed();
    }
    assert!(search.next().is_none());
    sum
}

criterion_group!(costs, operations, executions, search);
criterion_main!(costs);
