//! The report for people: what happened, who waits for whom, where everybody is, how it came about, how to see it
//! again, and what was and was not explored.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use vsrun_model::Tid;

use super::terminal::{circle, replay_lines, shell_path, shell_word, Paint};
use super::{apart, legend, outcomes, steps, story, uses};
use crate::base::text::{count, escape, one_line};
use crate::finding::{
    Bug, BugKind, CycleLink, FewRun, Finding, GoneView, Names, OriginView, Outcomes, People, PlaceView, ProgramStatus,
    RaceView, SignalView, Summary, ThreadStatus, ThreadView, Verdict, Words,
};
use crate::incomplete::{self, undoing};

/// Most threads shown one by one.
const MAX_THREADS: usize = 64;
/// Most frames shown of a thread.
const MAX_FRAMES: usize = 24;

/// What is held where nothing is.
const NO_LOCK: &str = "no lock that several threads use";

/// What an instruction does not tell.
const PLAIN: &str = "A read or write may be a C11 atomic load or store: on x86 these are the same instructions. If both are meant, say so with --annotations.";

/// What `complete` stands on.
const ASSUMPTION: &str = "This assumes that code between visible operations touches shared data only under locks.";

/// The same where memory is watched.
const WATCHED: &str = "Memory was watched, but for what 'vsrun doctor PROGRAM' lists: it is used in an order that visible operations keep, or each use was explored (see the notes).";

/// The first line of whatever is said of executions in which calls of these kinds went to the kernel; nothing if there are none.
pub fn uncontrolled(kinds: u32) -> String {
    match incomplete::uncontrolled(kinds) {
        Some(line) => line + "\n",
        None => String::new(),
    }
}

/// The whole report: every bug, then what was explored.
pub fn report(summary: &Summary, colours: bool) -> String {
    let mut out = uncontrolled(summary.uncontrolled);
    for bug in &summary.bugs {
        out.push_str(&self::bug(bug, colours));
        out.push('\n');
    }
    if let Some(unfinished) = &summary.unfinished {
        out.push_str(&self::bug(unfinished, colours));
        out.push('\n');
    }
    out + &closing(summary, colours) + &last_line(summary)
}

/// The scenario of what is shown, where those who look for it find it: at the very end.
fn last_line(summary: &Summary) -> String {
    let of_outcomes =
        summary.outcomes.iter().flat_map(|outcomes| &outcomes.table).find_map(|row| row.scenario.as_ref());
    let first = summary.bugs.iter().chain(&summary.unfinished).find_map(|bug| bug.scenario.as_ref());
    first.or(of_outcomes).map_or_else(String::new, |path| format!("scenario: {}\n", shell_path(path)))
}

/// The report on one bug.
pub fn bug(bug: &Bug, colours: bool) -> String {
    let paint = Paint(colours);
    let mut out = seen_only(bug, colours);
    if bug.kind.is_of_program() || matches!(bug.kind, BugKind::Cut | BugKind::Outcome) {
        section(&mut out, paint, "See it again", &replay_lines(bug.scenario.as_deref(), runs_alone(bug), paint));
    }
    out
}

/// The same without how to see it again.
fn seen_only(bug: &Bug, colours: bool) -> String {
    let paint = Paint(colours);
    let mut out = format!("{}: {}\n", paint.bad(&heading(bug.kind)), one_line(&bug.summary));
    let _ = writeln!(out, "  in execution {}, after {}", bug.execution, count(bug.transitions, "transition"));
    if let Some(how) = &bug.shortened {
        let _ = writeln!(out, "  shortened: {}", how.line());
    }
    if let Some(found) = &bug.finding {
        seen(&mut out, bug, found, paint);
    }
    out
}

/// It comes again without a supervisor.
fn runs_alone(bug: &Bug) -> bool {
    bug.finding.as_ref().is_none_or(|found| !found.tosses)
}

/// The report on a replay that came to the bug that its scenario records, with calls of these kinds let through.
pub fn replayed(bug: &Bug, kinds: u32, colours: bool) -> String {
    let same = match bug.kind {
        BugKind::Cut => "the replay came to where the execution was cut off",
        BugKind::Outcome => "the replay came to the same end as the scenario records, by the same steps; it is no bug",
        _ => "the replay came to the same end as the scenario records: the same bug, by the same steps",
    };
    format!("{}{}\n{}: {same}\n", uncontrolled(kinds), self::bug(bug, colours), Paint(colours).head("Replay"))
}

/// The state after so many steps of a scenario, `of` so many if that is known.
pub fn until(found: &Finding, of: Option<usize>, file: &Path, colours: bool) -> String {
    let paint = Paint(colours);
    let people = &People::of(found);
    let step = found.transitions();
    let of = of.map_or_else(String::new, |of| format!(" of {of}"));
    let mut out =
        format!("{}: {}\n", paint.head("State"), format_args!("after step {step}{of} of {}", shell_path(file)));
    section(&mut out, paint, "Who is who", &legend::lines(found, people));
    section(&mut out, paint, "Threads", &threads(found, people));
    if !found.steps.is_empty() {
        let (shown, left_out, _) = steps::recent(steps::of_finding(found, people, &BTreeSet::new()));
        let mut body = String::new();
        if left_out > 0 {
            let all = format!("'vsrun show {}' prints all", shell_path(file));
            let _ = writeln!(body, "  ({} left out; {all})", count(left_out as u64, "earlier transition"));
        }
        section(&mut out, paint, "How it came there", &(body + &steps::folded_lines(&shown)));
    }
    if !found.touches.is_empty() {
        section(&mut out, paint, "Uses of watched variables", &uses::of_execution(found));
    }
    out
}

/// The report on a scenario that a changed program has followed: the bug that came, if one did, and the line about it.
pub fn followed(bug: Option<&Bug>, line: &str, colours: bool) -> String {
    let bug = bug.map_or_else(String::new, |bug| self::seen_only(bug, colours) + "\n");
    format!("{bug}{}: {}\n", Paint(colours).head("Replay"), one_line(line))
}

/// What was seen, a section each.
fn seen(out: &mut String, bug: &Bug, found: &Finding, paint: Paint) {
    let people = &People::of(found);
    if !found.threads.is_empty() {
        section(out, paint, "Who is who", &legend::lines(found, people));
    }
    let story = story::of(found, people);
    if !story.sentences.is_empty() {
        let told: String = story.sentences.iter().map(|sentence| format!("  {}\n", one_line(sentence))).collect();
        section(out, paint, "What happened", &told);
    }
    if let Some(cycle) = found.cycle.as_ref().filter(|cycle| !cycle.is_empty()) {
        section(out, paint, "Who waits for whom", &ring(cycle, people));
    }
    if let Some(race) = &found.race {
        section(out, paint, "The two uses", &race_lines(race, found, people));
    }
    if let Some(gone) = &found.gone {
        section(out, paint, "The freed memory", &gone_lines(gone, people));
    }
    if let Some(signal) = &found.signal {
        section(out, paint, "Signal", &signal_lines(signal, people));
    }
    if !found.rounds.is_empty() {
        let lines: Vec<String> = found.rounds.iter().map(|line| format!("  {}\n", one_line(line))).collect();
        section(out, paint, "What goes on there", &lines.concat());
    }
    if !found.threads.is_empty() {
        section(out, paint, "Threads", &threads(found, people));
    }
    if !found.steps.is_empty() {
        section(out, paint, "How it came about", &recent_steps(bug, found, people, &story.steps));
    }
    if !found.touches.is_empty() {
        section(out, paint, "Uses of watched variables", &uses::of_execution(found));
    }
}

/// Of what did not come again it is said that vsrun is likely to be wrong.
fn blames_vsrun(summary: &Summary) -> bool {
    summary.bugs.iter().any(|bug| bug.summary.starts_with("vsrun bug"))
}

/// A program that fails in its only execution, most often before it has begun its work.
fn failure(summary: &Summary) -> Option<String> {
    let status = summary.program_status.filter(|_| summary.executions == 1)?;
    let hint = "'vsrun --once' shows what it prints, and --fail-on-exit makes a bug of it";
    match status {
        ProgramStatus::Exit(0) => None,
        ProgramStatus::Exit(code) => Some(format!("it fails: it exits with status {code} ({hint})")),
        ProgramStatus::Signal(signal) => Some(format!("signal {signal} ends it")),
    }
}

/// The end of the report: verdict, what was explored, what it stands on.
pub fn closing(summary: &Summary, colours: bool) -> String {
    let paint = Paint(colours);
    let program: Vec<_> = summary.program.iter().map(|arg| shell_word(arg.as_bytes())).collect();
    let bugs = summary.bugs.iter().filter(|bug| bug.kind.is_of_program()).count();
    let verdict = match summary.verdict {
        Verdict::Ok if summary.reached_no_end() => paint.bad("no bug found, but no execution reached its end"),
        Verdict::Ok => paint.good("no bug found"),
        Verdict::Found(kind) if kind.is_of_program() => {
            paint.bad(&format!("{} ({})", kind.name(), count(bugs as u64, "bug")))
        }
        Verdict::Found(kind) => paint.bad(match kind {
            BugKind::Error => "none, unsupported",
            BugKind::Environment => "none, disturbed from outside",
            BugKind::Unconfirmed if !blames_vsrun(summary) => "none, executions of the same schedule differ",
            _ => "none, vsrun bug",
        }),
    };
    let fails = failure(summary)
        .filter(|_| summary.verdict == Verdict::Ok)
        .map_or_else(String::new, |how| format!(", but {how}"));
    let mut out = format!("{}: {verdict} in {}{fails}\n", paint.head("Verdict"), program.join(" "));
    if summary.bugs.len() > 1 {
        for bug in &summary.bugs {
            let file = bug.scenario.as_ref().map_or_else(String::new, |path| format!(" [{}]", escape(path)));
            let _ = writeln!(out, "    {}: {}{file}", bug.kind.name(), one_line(&bug.summary));
        }
    }
    if !summary.uses.is_empty() {
        let title = paint.head("Uses of watched variables");
        out = format!("{title}\n{}\n{out}", uses::of_all(&summary.uses));
    }
    let _ = writeln!(out, "  {}", explored(summary));
    for line in cut(summary) {
        let _ = writeln!(out, "  {}", paint.bad(&line));
    }
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
    for line in summary.apart.iter().flat_map(apart::lines) {
        let _ = writeln!(out, "  {}", one_line(&line));
    }
    let tells =
        |outcomes: &&Outcomes| outcomes.table.len() > 1 || outcomes.table.iter().any(|row| row.scenario.is_some());
    if let Some(outcomes) = summary.outcomes.as_ref().filter(tells) {
        out.push_str(&outcomes::lines(outcomes));
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

fn heading(kind: BugKind) -> String {
    match kind {
        BugKind::Assert => "ASSERTION".to_string(),
        BugKind::Cut => "CUT OFF".to_string(),
        BugKind::Outcome => "OUTCOME".to_string(),
        kind if !kind.is_of_program() => "ERROR".to_string(),
        kind => kind.name().to_uppercase(),
    }
}

fn section(out: &mut String, paint: Paint, title: &str, body: &str) {
    let _ = write!(out, "\n{}\n{body}", paint.head(title));
}

/// The circle, one link a line, with a line at the side that closes it.
pub(crate) fn ring(cycle: &[CycleLink], names: &dyn Names) -> String {
    let thread = |i: usize| one_line(&names.thread(cycle[i % cycle.len()].thread));
    let link = |(i, link): (usize, &CycleLink)| match link.object {
        Some(object) => {
            let object = one_line(&names.object(object));
            format!("{} --waits for--> {object} --held by--> {}", thread(i), thread(i + 1))
        }
        None => format!("{} --waits for the end of--> {}", thread(i), thread(i + 1)),
    };
    circle(&cycle.iter().enumerate().map(link).collect::<Vec<_>>())
}

/// Two uses of memory, each with what its thread holds and where it is; and what to make of them.
fn race_lines(race: &RaceView, found: &Finding, people: &People) -> String {
    let mut out = String::new();
    for access in &race.uses {
        let what = format!("{} by thread {}", access.what, people.thread(access.thread));
        let _ = writeln!(out, "  {}", one_line(&what));
        let gone_on = ", behind which the thread has gone on to its next operation";
        let place = format!("{}{}", access.at, if access.pending { "" } else { gone_on });
        labelled(&mut out, "at", &with_source(place, &access.at));
        let after = match access.step.and_then(|n| Some((n, found.steps.get(n)?))) {
            Some((n, step)) => format!("step {}, {}", n + 1, step.text.render(people)),
            None => "the start of the thread".to_string(),
        };
        labelled(&mut out, "after", &[after]);
        let mut holds: Vec<String> = access.holds.iter().map(|lock| lock.render(people)).collect();
        if holds.is_empty() {
            holds.push(NO_LOCK.to_string());
        }
        labelled(&mut out, "holds", &holds);
        stack_lines(&mut out, &access.frames, access.at.text().is_some());
    }
    let is_part = |place: &str| place.contains(['.', '[', '+']);
    if race.allocated.is_some() || is_part(&race.place) {
        let _ = writeln!(out, "  both use {}", one_line(&race.place));
    }
    if race.allocated.is_some() {
        origin_lines(&mut out, "allocated", race.allocated.as_ref(), people);
    }
    let both = race.uses.iter().all(|access| access.pending);
    let why = match race.unordered {
        false if race.trespass => "The second is made by a thread that does not own the memory there, or nothing orders it behind the claim (exclusive access predicates, docs/PREDICATES.md).",
        true if both => "Both are enabled at once, here: either may come first.",
        true => "Nothing orders them: there is an execution in which both are enabled at once.",
        false => "No lock is held at all uses of this memory by several threads, which violates the locking discipline (MLD').",
    };
    let _ = writeln!(out, "  {why}\n  {PLAIN}");
    out
}

/// A use of freed memory, and where the block comes from.
fn gone_lines(gone: &GoneView, people: &People) -> String {
    let what = format!("{} by thread {}", gone.what, people.thread(gone.thread));
    let mut out = format!("  {}\n", one_line(&what));
    labelled(&mut out, "at", &with_source(gone.at.to_string(), &gone.at));
    if let Some(owner) = gone.owner {
        labelled(
            &mut out,
            "memory",
            &[format!("the stack of thread {}, or its thread-local variables", people.thread(owner))],
        );
        return out;
    }
    labelled(&mut out, "memory", &[format!("offset {} of a block of {} bytes", gone.offset, gone.size)]);
    origin_lines(&mut out, "freed", gone.freed.as_ref(), people);
    origin_lines(&mut out, "allocated", gone.allocated.as_ref(), people);
    out
}

/// By whom and where a block was given out or freed.
fn origin_lines(out: &mut String, verb: &str, origin: Option<&OriginView>, people: &People) {
    let Some(origin) = origin else {
        let _ = writeln!(out, "  where it was {verb} is not known any more");
        return;
    };
    let _ = writeln!(out, "  {verb} by thread {}", people.thread(origin.thread));
    stack_lines(out, &origin.frames, false);
}

fn signal_lines(signal: &SignalView, names: &dyn Names) -> String {
    let code = signal.code.as_ref().map_or_else(String::new, |code| format!(" ({code})"));
    let address = signal.address.map_or_else(String::new, |a| format!(" at address {a:#x}"));
    let head = format!("{}{code}{address} in thread {}", signal.name, names.thread(signal.thread));
    let mut out = format!("  {}\n", one_line(&head));
    for row in signal.registers.chunks(4) {
        let row: Vec<_> = row.iter().map(|(name, value)| format!("{name:>6} {value:016x}")).collect();
        let _ = writeln!(out, "  {}", one_line(&row.join(" ")));
    }
    out
}

fn threads(found: &Finding, people: &People) -> String {
    let mut out = String::new();
    let all = (0..).zip(&found.threads);
    let (over, alive): (Vec<_>, Vec<_>) = all.partition(|(_, thread)| thread.status == ThreadStatus::Exited);
    for (t, thread) in alive.iter().take(MAX_THREADS) {
        out.push_str(&thread_lines((*t, thread), found, people));
    }
    if alive.len() > MAX_THREADS {
        let _ = writeln!(out, "  and {} more", alive.len() - MAX_THREADS);
    }
    if !over.is_empty() {
        let names: Vec<_> = over.iter().take(12).map(|(t, _)| people.thread(*t)).collect();
        let more = if over.len() > 12 { format!(" and {} more", over.len() - 12) } else { String::new() };
        let _ = writeln!(out, "  over: {}{more}", one_line(&names.join(", ")));
    }
    out
}

fn thread_lines((t, thread): (Tid, &ThreadView), found: &Finding, people: &People) -> String {
    let doing = match thread.status {
        ThreadStatus::Running => "runs",
        ThreadStatus::Ready => "could go on",
        ThreadStatus::Waiting => "waits",
        ThreadStatus::InCall => "is in a system call",
        ThreadStatus::Exited => "is over",
    };
    let process = found.process_of(thread);
    let program = process.filter(|p| !p.program.is_empty()).map_or(String::new(), |p| format!(" ({})", p.program));
    let vpid = process.map_or(0, |p| p.vpid);
    let line = thread.begins.as_ref().map_or_else(String::new, |line| format!(" {}:{}", line.name, line.line));
    let start = if thread.start.is_empty() { String::new() } else { format!(", started in {}{line}", thread.start) };
    let head = format!("{} {doing}: process {vpid}{program}{start}", people.thread(t));
    let mut out = format!("  {}\n", one_line(&head));
    let text = |all: &[Words]| all.iter().map(|words| words.render(people)).collect::<Vec<_>>();
    let at = thread.pending.as_ref().map(|pending| pending.text.render(people));
    labelled(&mut out, "at", at.as_slice());
    labelled(&mut out, "waits for", &text(&thread.waits_for));
    labelled(&mut out, "holds", &text(&thread.holds));
    stack_lines(&mut out, &thread.frames, false);
    out
}

/// A call stack; what stands in the source at the first place of which that is known, unless it was `shown` before.
fn stack_lines(out: &mut String, frames: &[PlaceView], shown: bool) {
    let first = frames.iter().position(|frame| frame.text().is_some()).filter(|_| !shown);
    let text = |(i, frame): (usize, &PlaceView)| match first {
        Some(first) if first == i => with_source(frame.to_string(), frame),
        _ => vec![frame.to_string()],
    };
    labelled(out, "stack", &frames.iter().take(MAX_FRAMES).enumerate().flat_map(text).collect::<Vec<_>>());
    if frames.len() > MAX_FRAMES {
        let _ = writeln!(out, "               and {} more", frames.len() - MAX_FRAMES);
    }
}

/// A place, and below it what stands there in the source.
fn with_source(place: String, at: &PlaceView) -> Vec<String> {
    [place].into_iter().chain(at.text().map(|text| format!("  {text}"))).collect()
}

/// The label before the first line only.
fn labelled(out: &mut String, label: &str, lines: &[String]) {
    for (i, line) in lines.iter().enumerate() {
        let label = if i == 0 { label } else { "" };
        let _ = writeln!(out, "    {label:<9}  {}", one_line(line));
    }
}

fn recent_steps(bug: &Bug, found: &Finding, people: &People, named: &BTreeSet<usize>) -> String {
    let all = steps::of_finding(found, people, named);
    let (shown, left_out, beside) = steps::recent(all);
    let mut out = String::new();
    let file = bug.scenario.as_ref().map_or("FILE".to_string(), |path| shell_path(path));
    let all = match found.is_repeated_by_its_steps() {
        true => format!("'vsrun show {file}' prints all"),
        false => "too many for a scenario, which repeats them by the seed that made them".to_string(),
    };
    if beside > 0 {
        let those = format!("{} on which the end does not depend left out; {all}", count(beside as u64, "transition"));
        let _ = writeln!(out, "  ({those})");
    }
    if left_out > 0 {
        let _ = writeln!(out, "  ({} left out; {all})", count(left_out as u64, "earlier transition"));
    }
    if !named.is_empty() {
        out.push_str("  (> marks the steps that are named above)\n");
    }
    out + &steps::folded_lines(&shown)
}

fn explored(summary: &Summary) -> String {
    match undoing(&summary.reasons).next() {
        None if summary.watched => format!("explored completely. {WATCHED}"),
        None => format!("explored completely. {ASSUMPTION}"),
        Some(reason) => format!("NOT explored completely; {}", reason.sentence()),
    }
}

/// How many executions did not reach their end, and where that leaves the reader.
fn cut(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(FewRun { preemptions, executions }) = summary.covered {
        let (most, took) = (count(preemptions.into(), "preemption"), count(executions, "execution"));
        lines.push(match preemptions {
            0 => format!("all that happens without a preemption was run ({took})"),
            _ => format!("all that {most} or fewer can bring about was run ({took})"),
        });
    }
    let n = summary.cut;
    if n > 0 {
        let all = count(summary.executions, "execution");
        lines.push(match summary.reached_no_end() && n == summary.executions {
            true => format!("{n} of {all} cut off: none reached its end, so what comes behind the cut was not checked"),
            false => format!("{n} of {all} cut off, {} reached their end", summary.ended),
        });
    }
    if let Some(transitions) = summary.broken_off {
        let done = count(transitions, "transition");
        lines.push(match summary.executions {
            0 => format!("the first execution was broken off after {done}: none reached its end, so what comes behind that was not checked"),
            _ => format!("one execution more was broken off after {done}, which is not counted"),
        });
    }
    lines
}

fn counts(summary: &Summary) -> String {
    let rate = if summary.seconds > 0.0 { summary.executions as f64 / summary.seconds } else { 0.0 };
    let cut = match summary.sleep_blocked {
        0 => String::new(),
        n => format!(" ({n} cut off as redundant)"),
    };
    let (executions, transitions) = (count(summary.executions, "execution"), count(summary.transitions, "transition"));
    let (search, workers) = (one_line(&summary.search), count(summary.workers.into(), "worker"));
    let earlier = match summary.earlier {
        0 => String::new(),
        n => format!(" (and {n} before the search started over)"),
    };
    let drawn = match summary.drawn {
        0 => String::new(),
        n => format!(" (and {n} beside it, to find bugs soon)"),
    };
    format!(
        "{executions}{cut}{earlier}{drawn}, {transitions}, deepest {}, {:.2} s, {rate:.0} executions/s; search {search}, {workers}",
        summary.max_depth, summary.seconds
    )
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
