//! The sentences of a picture.

use super::picture::{CircleView, Picture, ThreadView, Verdict, WaitView};

/// What it comes to, in a sentence.
pub(super) fn summary(picture: &Picture) -> String {
    match picture.verdict {
        Verdict::Deadlock { .. } => match picture.circles.first() {
            Some(circle) => of_circle(picture, circle),
            None => of_nobody(picture),
        },
        Verdict::Unknown => match picture.possible.first() {
            Some(circle) => {
                let helpers = circle.helpers.join(", ");
                format!("{}, unless {helpers} helps", of_circle(picture, circle))
            }
            None => open_waits(picture),
        },
        Verdict::Ok => format!("nothing hangs that could be seen ({})", counts(picture)),
    }
}

fn of_circle(picture: &Picture, circle: &CircleView) -> String {
    let threads: Vec<&ThreadView> = circle.threads.iter().map(|&t| &picture.threads[t]).collect();
    let part = |thread: &&ThreadView| {
        let object = thread.wait.as_ref().map_or(String::new(), object);
        format!("{} for {object}", thread.name)
    };
    if let [only] = threads[..] {
        return format!("{} waits for itself: for {}", only.name, only.wait.as_ref().map_or(String::new(), object));
    }
    let parts: Vec<String> = threads.iter().map(part).collect();
    format!("{} threads wait for each other: {}", threads.len(), parts.join(", "))
}

/// Threads that cannot go on, in no circle: the one that nobody could help, or all of them.
fn of_nobody(picture: &Picture) -> String {
    let stuck: Vec<&ThreadView> = picture.threads.iter().filter(|thread| thread.stuck).collect();
    let alone = |thread: &&&ThreadView| {
        let known = thread.wait.as_ref().is_some_and(|wait| wait.who.is_empty() && wait.unknown.is_none());
        known || stuck.len() == 1
    };
    if let Some(thread) = stuck.iter().find(alone) {
        let wait = thread.wait.as_ref().map_or(String::new(), object);
        let fact = thread.wait.as_ref().and_then(|wait| wait.facts.first());
        let fact = fact.map_or(String::new(), |fact| format!(" ({fact})"));
        return format!("{} waits for {wait}, and nobody is left who could end that{fact}", thread.name);
    }
    format!("{} threads wait, and nobody is left who could let one go on: {}", stuck.len(), some(&stuck))
}

/// The first of some threads, with what they wait for.
fn some(threads: &[&ThreadView]) -> String {
    const SHOWN: usize = 3;
    let part = |thread: &&ThreadView| {
        let object = thread.wait.as_ref().map_or(String::new(), object);
        format!("{} for {object}", thread.name)
    };
    let shown: Vec<String> = threads.iter().take(SHOWN).map(part).collect();
    let more = if threads.len() > SHOWN { format!(", and {} more", threads.len() - SHOWN) } else { String::new() };
    shown.join(", ") + &more
}

/// The first waits of which it is not known who ends them.
fn open_waits(picture: &Picture) -> String {
    let open = |thread: &&ThreadView| thread.wait.as_ref().is_some_and(|wait| wait.unknown.is_some());
    let all: Vec<&ThreadView> = picture.threads.iter().filter(open).collect();
    format!("no circle of waits was found; who is to end these is not known: {} ({})", some(&all), counts(picture))
}

/// What is waited for; where that is somebody's end, whose.
fn object(wait: &WaitView) -> String {
    if wait.via.is_empty() && !wait.who.is_empty() {
        return format!("{} {}", wait.object, wait.who.join(" or "));
    }
    wait.object.clone()
}

fn counts(picture: &Picture) -> String {
    let count = |what: &dyn Fn(&ThreadView) -> bool| picture.threads.iter().filter(|t| what(t)).count();
    let parts = [
        (count(&|t| t.wait.is_none()), "moving or computing"),
        (
            count(&|t| t.wait.as_ref().is_some_and(|w| w.limited || w.outside.is_some())),
            "waiting for the clock or somebody outside",
        ),
        (
            count(&|t| t.wait.as_ref().is_some_and(|w| !w.limited && w.outside.is_none() && w.unknown.is_none())),
            "waiting for other threads",
        ),
        (count(&|t| t.wait.as_ref().is_some_and(|w| w.unknown.is_some())), "waiting for what nobody can be named for"),
    ];
    let parts: Vec<String> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    format!("threads: {}", parts.join(", "))
}

/// What a thread waits for and who could end that, in a line.
pub(super) fn waits_for(wait: &WaitView) -> String {
    let mut line = object(wait);
    if !wait.who.is_empty() && !wait.via.is_empty() {
        line += &format!(", {} {}", wait.via, wait.who.join(", "));
    }
    if let Some(who) = &wait.outside {
        if !line.contains(who.as_str()) {
            line += &format!(", which is up to {who}");
        }
    }
    if wait.limited {
        line += ", with a time limit";
    }
    line
}

/// A link of a circle: `a --waits for--> x --held by--> b`.
pub(super) fn link(from: &ThreadView, to: &ThreadView) -> String {
    let Some(wait) = &from.wait else { return from.name.clone() };
    if wait.via.is_empty() {
        return format!("{} --waits for {}--> {}", from.name, wait.object, to.name);
    }
    format!("{} --waits for--> {} --{}--> {}", from.name, wait.object, wait.via, to.name)
}
