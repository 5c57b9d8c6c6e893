//! The report for people: what happened, who waits for whom, where everybody is, how it came about, how to see it
//! again, and what was and was not explored.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::paint::Paint;
use super::{
    steps, Bug, BugKind, CycleLink, Incomplete, ProgramStatus, SignalView, Summary, ThreadStatus, ThreadView, Verdict,
    REPLAY,
};
use crate::binary::text::{escape, escape_bytes};

/// Most threads shown one by one.
const MAX_THREADS: usize = 64;
/// Most frames shown of a thread.
const MAX_FRAMES: usize = 24;

/// What `complete` stands on.
const ASSUMPTION: &str = "This assumes that code between visible operations touches shared data only under locks.";

/// The whole report: every bug, then what was explored.
pub fn report(summary: &Summary, colours: bool) -> String {
    let mut out = String::new();
    for bug in &summary.bugs {
        out.push_str(&self::bug(bug, colours));
        out.push('\n');
    }
    out + &closing(summary, colours)
}

/// The report on one bug.
pub fn bug(bug: &Bug, colours: bool) -> String {
    let paint = Paint(colours);
    let mut out = format!("{}: {}\n", paint.bad(heading(bug.kind)), one_line(&bug.summary));
    let _ = writeln!(out, "  in execution {}, after {}", bug.execution, count(bug.transitions, "transition"));
    let details = &bug.details;
    if let Some(cycle) = details.cycle.as_ref().filter(|cycle| !cycle.is_empty()) {
        section(&mut out, paint, "Who waits for whom", &ring(cycle));
    }
    if let Some(signal) = &details.signal {
        section(&mut out, paint, "Signal", &signal_lines(signal));
    }
    if !details.threads.is_empty() {
        section(&mut out, paint, "Threads", &threads(&details.threads));
    }
    if !details.steps.is_empty() {
        section(&mut out, paint, "How it came about", &recent_steps(bug));
    }
    if bug.kind != BugKind::Error {
        section(&mut out, paint, "See it again", &replay_lines(bug.scenario.as_deref(), paint));
    }
    out
}

/// The end of the report: verdict, what was explored, what it stands on.
pub fn closing(summary: &Summary, colours: bool) -> String {
    let paint = Paint(colours);
    let program: Vec<_> = summary.program.iter().map(|arg| shell_word(arg.as_bytes())).collect();
    let verdict = match summary.verdict {
        Verdict::Ok => paint.good("no bug found"),
        Verdict::Found(kind) => paint.bad(&format!("{} ({})", kind.name(), count(summary.bugs.len() as u64, "bug"))),
    };
    let mut out = format!("{}: {verdict} in {}\n", paint.head("Verdict"), program.join(" "));
    if summary.bugs.len() > 1 {
        for bug in &summary.bugs {
            let file = bug.scenario.as_ref().map_or_else(String::new, |path| format!(" [{}]", escape(path)));
            let _ = writeln!(out, "    {}: {}{file}", bug.kind.name(), one_line(&bug.summary));
        }
    }
    let _ = writeln!(out, "  {}", explored(summary));
    let _ = writeln!(out, "  {}", counts(summary));
    if let Some(status) = summary.program_status.filter(|_| summary.executions == 1) {
        let _ = match status {
            ProgramStatus::Exit(code) => writeln!(out, "  the program exited with status {code}"),
            ProgramStatus::Signal(signal) => writeln!(out, "  the program was ended by signal {signal}"),
        };
    }
    for note in &summary.notes {
        let _ = writeln!(out, "  note: {}", one_line(note));
    }
    if !summary.passed_calls.is_empty() {
        let calls: Vec<_> = summary.passed_calls.iter().map(|(call, n)| format!("{} ({n})", one_line(call))).collect();
        let _ = writeln!(
            out,
            "  system calls that went to the kernel and could block or communicate, unexplored: {}",
            calls.join(", ")
        );
    }
    out
}

fn heading(kind: BugKind) -> &'static str {
    match kind {
        BugKind::Deadlock => "DEADLOCK",
        BugKind::Assert => "ASSERTION",
        BugKind::Crash => "CRASH",
        BugKind::Race => "RACE",
        BugKind::Divergence => "DIVERGENCE",
        BugKind::Livelock => "LIVELOCK",
        BugKind::Error => "ERROR",
    }
}

fn section(out: &mut String, paint: Paint, title: &str, body: &str) {
    let _ = write!(out, "\n{}\n{body}", paint.head(title));
}

/// The circle, one link a line, with a line at the side that closes it.
fn ring(cycle: &[CycleLink]) -> String {
    let next = |i: usize| one_line(&cycle[(i + 1) % cycle.len()].thread);
    let link = |(i, link): (usize, &CycleLink)| match &link.object {
        Some(object) => {
            format!("{} --waits for--> {} --held by--> {}", one_line(&link.thread), one_line(object), next(i))
        }
        None => format!("{} --waits for the end of--> {}", one_line(&link.thread), next(i)),
    };
    let links: Vec<String> = cycle.iter().enumerate().map(link).collect();
    let width = links.iter().map(|l| l.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for (i, link) in links.iter().enumerate() {
        let arrow = if i == 0 { ".->" } else { "|  " };
        let corner = if i + 1 == links.len() { " --." } else { "" };
        let pad = if corner.is_empty() { 0 } else { width };
        let _ = writeln!(out, "  {arrow} {link:pad$}{corner}");
    }
    let _ = writeln!(out, "  '{}'", "-".repeat(width + 6));
    out
}

fn signal_lines(signal: &SignalView) -> String {
    let code = signal.code.as_ref().map_or_else(String::new, |code| format!(" ({code})"));
    let address = signal.address.map_or_else(String::new, |a| format!(" at address {a:#x}"));
    let head = format!("{}{code}{address} in thread {}", signal.name, signal.thread);
    let mut out = format!("  {}\n", one_line(&head));
    for row in signal.registers.chunks(4) {
        let row: Vec<_> = row.iter().map(|(name, value)| format!("{name:>6} {value:016x}")).collect();
        let _ = writeln!(out, "  {}", one_line(&row.join(" ")));
    }
    out
}

fn threads(all: &[ThreadView]) -> String {
    let mut out = String::new();
    let (over, alive): (Vec<_>, Vec<_>) = all.iter().partition(|t| t.status == ThreadStatus::Exited);
    for thread in alive.iter().take(MAX_THREADS) {
        out.push_str(&thread_lines(thread));
    }
    if alive.len() > MAX_THREADS {
        let _ = writeln!(out, "  and {} more", alive.len() - MAX_THREADS);
    }
    if !over.is_empty() {
        let names: Vec<_> = over.iter().take(12).map(|t| t.thread.as_str()).collect();
        let more = if over.len() > 12 { format!(" and {} more", over.len() - 12) } else { String::new() };
        let _ = writeln!(out, "  over: {}{more}", one_line(&names.join(", ")));
    }
    out
}

fn thread_lines(thread: &ThreadView) -> String {
    let doing = match thread.status {
        ThreadStatus::Running => "runs",
        ThreadStatus::Ready => "could go on",
        ThreadStatus::Waiting => "waits",
        ThreadStatus::InCall => "is in a system call",
        ThreadStatus::Exited => "is over",
    };
    let program = if thread.program.is_empty() { String::new() } else { format!(" ({})", thread.program) };
    let start = if thread.start.is_empty() { String::new() } else { format!(", started in {}", thread.start) };
    let head = format!("{} {doing}: process {}{program}{start}", thread.thread, thread.vpid);
    let mut out = format!("  {}\n", one_line(&head));
    labelled(&mut out, "at", thread.pending.as_slice());
    labelled(&mut out, "waits for", &thread.waits_for);
    labelled(&mut out, "holds", &thread.holds);
    labelled(&mut out, "stack", &thread.frames[..thread.frames.len().min(MAX_FRAMES)]);
    if thread.frames.len() > MAX_FRAMES {
        let _ = writeln!(out, "               and {} more", thread.frames.len() - MAX_FRAMES);
    }
    out
}

/// The label before the first line only.
fn labelled(out: &mut String, label: &str, lines: &[String]) {
    for (i, line) in lines.iter().enumerate() {
        let label = if i == 0 { label } else { "" };
        let _ = writeln!(out, "    {label:<9}  {}", one_line(line));
    }
}

fn recent_steps(bug: &Bug) -> String {
    let (shown, left_out) = steps::recent(&bug.details.steps);
    let mut out = String::new();
    if left_out > 0 {
        let file = bug.scenario.as_ref().map_or("FILE".to_string(), |path| shell_path(path));
        let _ = writeln!(
            out,
            "  ({} left out; 'vsrun show {file}' prints all)",
            count(left_out as u64, "earlier transition")
        );
    }
    out + &steps::lines(shown)
}

pub(super) fn replay_lines(scenario: Option<&Path>, paint: Paint) -> String {
    let Some(path) = scenario else { return "  no scenario was written\n".to_string() };
    let file = shell_path(path);
    let plain = paint.copy(&format!("vsrun replay {file}"));
    let gdb = paint.copy(&format!(
        "gdb -ex 'handle SIGSYS nostop noprint pass' -ex run --args vsrun replay --no-supervisor {file}"
    ));
    format!("  {plain}\n  {gdb}\n")
}

fn explored(summary: &Summary) -> String {
    let why = match summary.incomplete_reason {
        _ if summary.complete => return format!("explored completely. {ASSUMPTION}"),
        _ if summary.search == REPLAY => return "a scenario was replayed, nothing was explored".to_string(),
        Some(Incomplete::Time) => "budget spent: the time is over (--time)",
        Some(Incomplete::Interrupted) => "interrupted before the end",
        Some(Incomplete::Executions) => "budget spent: the number of executions is reached (--max-executions, --once)",
        Some(Incomplete::Depth) => "bounded: executions were cut at the depth bound (--max-depth)",
        Some(Incomplete::Bound) if !summary.passed_calls.is_empty() => {
            "all schedules of what is modelled were run, but system calls that could communicate went to the kernel"
        }
        Some(Incomplete::Bound) if summary.notes.iter().any(|n| n.ends_with(super::NOT_PROVEN)) => {
            "the search took schedules to be equivalent, which is not proven for what the program does (see the notes)"
        }
        Some(Incomplete::Bound) if summary.notes.iter().any(|n| n.ends_with(super::NEVER_CAME)) => {
            "all schedules of what is modelled were run, but some signals are not (see the notes)"
        }
        Some(Incomplete::Bound) => {
            "bounded: all that schedules within the bound can do was explored, those beyond it were left out (--bound)"
        }
        Some(Incomplete::Random) => "a random search never is complete",
        None if !summary.bugs.is_empty() => "stopped at the first bug; --keep-going explores on",
        None => "stopped early",
    };
    format!("NOT explored completely; {why}")
}

fn counts(summary: &Summary) -> String {
    let rate = if summary.seconds > 0.0 { summary.executions as f64 / summary.seconds } else { 0.0 };
    let cut = match summary.sleep_blocked {
        0 => String::new(),
        n => format!(" ({n} cut off as redundant)"),
    };
    let (executions, transitions) = (count(summary.executions, "execution"), count(summary.transitions, "transition"));
    let (search, workers) = (one_line(&summary.search), count(summary.workers.into(), "worker"));
    format!(
        "{executions}{cut}, {transitions}, deepest {}, {:.2} s, {rate:.0} executions/s; search {search}, {workers}",
        summary.max_depth, summary.seconds
    )
}

fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Text from outside on one line; control characters and the like are shown by number.
pub fn one_line(text: &str) -> String {
    text.split('\\').map(|part| escape_bytes(part.as_bytes())).collect::<Vec<_>>().join("\\")
}

/// A path as a word for the shell that no command takes for an option.
pub(super) fn shell_path(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    if bytes.starts_with(b"-") {
        return shell_word(&[b"./", bytes].concat());
    }
    shell_word(bytes)
}

/// Bytes as one word for the shell, quoted where needed.
pub(super) fn shell_word(bytes: &[u8]) -> String {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"_-./+,:=@%".contains(b);
    if !bytes.is_empty() && bytes.iter().all(plain) {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let shown = escape_bytes(bytes);
    if shown.as_bytes() == bytes {
        return format!("'{}'", shown.replace('\'', "'\\''"));
    }
    format!("$'{}'", shown.replace('\'', "\\'"))
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
