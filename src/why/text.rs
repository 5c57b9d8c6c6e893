//! The picture for people.

use std::fmt::Write;
use std::time::Duration;

use super::picture::{CircleView, Picture, ThreadView, Verdict};
use super::words::{link, waits_for};
use crate::base::text::one_line;
use crate::report::{circle as drawn, Paint};

/// Frames of a call stack that are shown.
const MAX_FRAMES: usize = 16;
/// Threads that are shown.
const MAX_THREADS: usize = 100;

/// All of it.
pub fn text(picture: &Picture, colours: bool) -> String {
    let paint = Paint(colours);
    let head = match picture.verdict {
        Verdict::Deadlock { certain: true } => paint.bad("DEADLOCK"),
        Verdict::Deadlock { certain: false } => paint.bad("PROBABLE DEADLOCK"),
        Verdict::Unknown if !picture.possible.is_empty() => paint.bad("POSSIBLE DEADLOCK"),
        Verdict::Unknown => paint.head("NOT KNOWN"),
        Verdict::Ok => paint.good("NO DEADLOCK"),
    };
    let mut out = format!("{head}: {}\n", one_line(&picture.summary));
    let program = picture.processes.iter().find(|p| p.pid == picture.pid).map_or("", |p| p.program.as_str());
    let _ = writeln!(out, "  process {} ({}), seen from outside; it goes on as before", picture.pid, one_line(program));
    let all: Vec<&CircleView> = picture.circles.iter().chain(&picture.possible).collect();
    if !all.is_empty() {
        let _ = write!(out, "\n{}\n", paint.head("Who waits for whom"));
        for circle in all {
            out.push_str(&ring(picture, circle));
        }
    }
    let _ = write!(out, "\n{}\n", paint.head("Threads"));
    let order = |thread: &&ThreadView| (!thread.stuck, thread.wait.is_none());
    let mut threads: Vec<&ThreadView> = picture.threads.iter().collect();
    threads.sort_by_key(order);
    threads.iter().take(MAX_THREADS).for_each(|thread| out.push_str(&thread_lines(picture, thread)));
    if threads.len() > MAX_THREADS {
        let _ = writeln!(out, "  and {} more", threads.len() - MAX_THREADS);
    }
    let _ = write!(out, "\n{}\n", paint.head("What could not be found out"));
    for line in not_known(picture) {
        let _ = writeln!(out, "  {}", one_line(&line));
    }
    let _ = write!(out, "\n{}\n  {}\n", paint.head("How it was looked at"), how(picture));
    if let Some(command) = &picture.explore {
        let _ = write!(out, "\n{}\n  {}\n", paint.head("Explore this program"), paint.copy(&one_line(command)));
    }
    out
}

/// The circle, one link a line, with a line at the side that closes it; and what is not certain about it.
fn ring(picture: &Picture, circle: &CircleView) -> String {
    let thread = |i: usize| &picture.threads[circle.threads[i % circle.threads.len()]];
    let links: Vec<String> = (0..circle.threads.len()).map(|i| one_line(&link(thread(i), thread(i + 1)))).collect();
    let mut out = drawn(&links);
    if !circle.helpers.is_empty() {
        let _ = writeln!(
            out,
            "  Of the same processes, these could still break it: {}",
            one_line(&circle.helpers.join(", "))
        );
    } else if !circle.certain {
        let _ = writeln!(
            out,
            "  As far as can be told: who has what is told by who used it last, or not all processes could be seen."
        );
    }
    out
}

fn thread_lines(picture: &Picture, thread: &ThreadView) -> String {
    let program = picture.processes.iter().find(|p| p.pid == thread.pid).map_or("", |p| p.program.as_str());
    let stuck = if thread.stuck { ", and cannot go on" } else { "" };
    let head = format!("{} {}{stuck}: process {} ({program})", thread.name, thread.doing, thread.pid);
    let mut out = format!("  {}\n", one_line(&head));
    if let Some(wait) = &thread.wait {
        labelled(&mut out, "at", std::slice::from_ref(&wait.call));
        labelled(&mut out, "waits for", &[waits_for(wait)]);
        labelled(&mut out, "", &wait.facts);
        if wait.facts.is_empty() {
            labelled(&mut out, "", wait.unknown.as_slice());
        }
    }
    labelled(&mut out, "holds", &thread.holds);
    let first = thread.frames.iter().position(|frame| frame.text().is_some());
    let line = |(i, frame): (usize, &crate::finding::PlaceView)| {
        let source = frame.text().filter(|_| first == Some(i)).map(|text| format!("  {text}"));
        [frame.to_string()].into_iter().chain(source)
    };
    let label = if thread.exact { "stack" } else { "stack, ~" };
    let frames: Vec<String> = thread.frames.iter().take(MAX_FRAMES).enumerate().flat_map(line).collect();
    labelled(&mut out, label, &frames);
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

/// What is not known, of threads and of the whole.
fn not_known(picture: &Picture) -> Vec<String> {
    let mut all =
        vec!["where a lock was taken: a process does not record that; where its owner is now is shown".to_string()];
    let of = |thread: &ThreadView| {
        let why = thread.wait.as_ref()?.unknown.as_ref()?;
        Some(format!("who ends the wait of {}: {why}", thread.name))
    };
    all.extend(picture.threads.iter().filter_map(of).take(20));
    if picture.threads.iter().any(|thread| !thread.exact && !thread.frames.is_empty()) {
        all.push(
            "stacks marked ~ are found without registers, from what lies on them; a frame may be missing".to_string(),
        );
    }
    all.extend(picture.unknown.iter().cloned());
    all
}

fn how(picture: &Picture) -> String {
    let looked = &picture.looked;
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let (stops, longest, all) = looked.stops;
    let mut line = format!(
        "{} and {}, each looked at twice within {} ms; ",
        count(picture.processes.len(), "process").replace("processs", "processes"),
        count(picture.threads.len(), "thread"),
        looked.between.as_millis()
    );
    line += &match stops {
        0 => "none was stopped".to_string(),
        1 => format!("1 thread was stopped, for {}", micros(all)),
        n => format!(
            "{n} threads were stopped, one after the other, for {} at most, {} together",
            micros(longest),
            micros(all)
        ),
    };
    if looked.spared > 0 {
        line += &format!("; {} not stopped, since the program could notice", looked.spared);
    }
    line
}

fn micros(time: Duration) -> String {
    match time.as_micros() {
        us @ ..=999 => format!("{us} us"),
        us => format!("{:.1} ms", us as f64 / 1000.0),
    }
}
