//! How far an exploration has got, for people: a line that is written again and again, an estimate, a hint.

use std::time::{Duration, Instant};

use super::status::StatusLine;
use crate::base::print::complain;
use crate::config::{Config, ProgressMode, ReportFormat, SearchKind};

/// How often the line is written on a terminal, and otherwise.
const INTERVALS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));
/// So long an exploration must have run for its estimate to be taken seriously.
const HINT_AFTER: f64 = 10.0;
/// Seconds that are too long to wait without a hint.
const LONG: f64 = 3600.0;

/// What is told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figures {
    pub executions: u64,
    /// Executions that were drawn by lot, which are not among them.
    pub drawn: u64,
    pub transitions: u64,
    pub max_depth: u64,
    /// Branches not started; 0 if unknown.
    pub frontier: u64,
    pub bugs: usize,
    /// Executions that were cut off.
    pub cut: u64,
    /// Estimated part that is done.
    pub done: Option<f64>,
}

/// How much is done and how long the rest may take.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Estimate {
    /// 0 to 1.
    done: f64,
    /// Seconds; infinite if nothing is known to be done.
    left: f64,
}

impl Estimate {
    /// `before` of all was done at the start, `done` is `seconds` later.
    fn new(before: f64, done: f64, seconds: f64) -> Estimate {
        let done = done.clamp(0.0, 1.0);
        let gained = (done - before).max(0.0);
        Estimate { done, left: if gained > 0.0 { seconds * (1.0 - done) / gained } else { f64::INFINITY } }
    }

    fn is_long(&self) -> bool {
        self.left > LONG
    }

    /// "about 12 % of the tree".
    fn part(&self) -> String {
        match self.done * 100.0 {
            percent if percent < 0.1 => "less than 0.1 % of the tree".into(),
            percent if percent < 10.0 => format!("about {percent:.1} % of the tree"),
            percent => format!("about {:.0} % of the tree", percent.min(99.0)),
        }
    }

    /// "3 min".
    fn time(&self) -> String {
        match self.left {
            s if s < 90.0 => format!("{s:.0} s"),
            s if s < 90.0 * 60.0 => format!("{:.0} min", s / 60.0),
            s if s < 24.0 * 3600.0 => format!("{:.0} h", s / 3600.0),
            _ => "more than a day".into(),
        }
    }
}

/// What is written while an exploration runs.
pub(super) struct Progress {
    interval: Option<Duration>,
    /// The line on the terminal, if standard error is one.
    line: Option<StatusLine>,
    hint: Option<String>,
    started: Instant,
    written: Instant,
    /// What was done and executed before this run, if it was resumed.
    before: (f64, u64),
}

impl Progress {
    /// Begins now; `before` is the part that was done already, and its executions.
    pub fn new(config: &Config, before: (f64, u64)) -> Progress {
        let wanted = match config.progress {
            ProgressMode::Always => true,
            ProgressMode::Never => false,
            ProgressMode::Auto => config.format == ReportFormat::Text && config.search != SearchKind::Once,
        };
        let line = if wanted { StatusLine::new() } else { None };
        let interval = if line.is_some() { INTERVALS.0 } else { INTERVALS.1 };
        let now = Instant::now();
        Progress {
            interval: wanted.then_some(interval),
            line,
            hint: Some(hint(config)),
            started: now,
            written: now,
            before,
        }
    }

    /// How often [`Progress::look`] is to be called, even while one execution goes on; `None`: nothing is written.
    pub fn interval(&self) -> Option<Duration> {
        self.interval
    }

    /// Called after each execution, and now and then; `figures` is asked only when something is written.
    pub fn look(&mut self, figures: impl Fn() -> Figures) {
        let Some(interval) = self.interval else { return };
        let seconds = self.started.elapsed().as_secs_f64();
        if self.written.elapsed() >= interval {
            self.written = Instant::now();
            let text = self.text(&figures(), seconds);
            match &mut self.line {
                Some(line) => line.set(&text),
                None => tell(&text),
            }
        }
        if self.hint.is_some() && seconds >= HINT_AFTER {
            let estimate = self.estimate(&figures(), seconds);
            if let (Some(hint), true) = (self.hint.take(), estimate.is_some_and(|e| e.is_long())) {
                self.clear();
                tell(&hint);
            }
        }
    }

    /// The search has started over, and with it the executions that are counted.
    pub fn start_over(&mut self) {
        (self.started, self.before) = (Instant::now(), (0.0, 0));
    }

    /// Writes a line of its own, where lines are written: on a terminal one that is long would not stay in its place.
    pub fn tell(&self, text: &str) {
        if self.interval.is_some() && self.line.is_none() {
            tell(text);
        }
    }

    /// Takes the line away.
    pub fn clear(&mut self) {
        self.line.iter_mut().for_each(StatusLine::clear);
    }

    fn estimate(&self, figures: &Figures, seconds: f64) -> Option<Estimate> {
        figures.done.map(|done| Estimate::new(self.before.0, done, seconds))
    }

    fn text(&self, figures: &Figures, seconds: f64) -> String {
        let all = figures.executions + figures.drawn;
        let rate = all.saturating_sub(self.before.1) as f64 / seconds.max(0.001);
        let mut line = format!(
            "{} {}, {rate:.0}/s, {} transitions, deepest {}, {} {}",
            figures.executions,
            if figures.executions == 1 { "execution" } else { "executions" },
            figures.transitions,
            figures.max_depth,
            figures.bugs,
            if figures.bugs == 1 { "bug" } else { "bugs" }
        );
        if figures.drawn > 0 {
            line += &format!(", {} drawn by lot", figures.drawn);
        }
        if figures.cut > 0 {
            line += &format!(", {} cut off", figures.cut);
        }
        if figures.frontier > 0 {
            line += &format!(", {} known to do", figures.frontier);
        }
        if let Some(estimate) = self.estimate(figures, seconds) {
            line += &format!("; {}, {} left", estimate.part(), estimate.time());
        }
        line
    }

    /// What the summary of an exploration says that did not get to its end.
    pub fn last_words(&self, config: &Config, figures: &Figures) -> Option<String> {
        let estimate = self.estimate(figures, self.started.elapsed().as_secs_f64())?;
        let text = format!("explored: {}; the rest would take {}", estimate.part(), estimate.time());
        Some(match estimate.is_long() {
            true => format!("{text}; {}", hint(config)),
            false => text,
        })
    }
}

/// Writes a line of its own. Whether anybody reads it does not matter.
fn tell(text: &str) {
    complain(&format!("vsrun: {text}"));
}

/// What else can be done when a search takes too long.
fn hint(config: &Config) -> String {
    let mut ways = Vec::new();
    match config.search {
        SearchKind::Bounded(bound) if bound.limit() > 0 => ways.push("a smaller --bound"),
        SearchKind::Bounded(_) => {}
        _ => ways.push("--bound preemptions=2 (few switches)"),
    }
    if config.search == SearchKind::Naive {
        ways.push("a search that reduces (leave --search naive away)");
    }
    ways.push("--search pct (random, made for rare bugs)");
    if config.bounds.time.is_none() {
        ways.push("--time SECONDS (a budget)");
    }
    format!("this search will hardly come to its end; instead: {}; or a smaller configuration", ways.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates() {
        let said = |before, done, seconds| {
            let e = Estimate::new(before, done, seconds);
            format!("{}, {} left", e.part(), e.time())
        };
        assert_eq!(said(0.0, 0.12, 24.5), "about 12 % of the tree, 3 min left");
        assert_eq!(said(0.0, 0.0005, 200.0), "less than 0.1 % of the tree, more than a day left");
        assert_eq!(said(0.0, 0.0, 1.0), "less than 0.1 % of the tree, more than a day left");
        assert_eq!(said(0.5, 0.75, 10.0), "about 75 % of the tree, 10 s left");
        assert_eq!(said(0.0, 0.999999, 10.0), "about 99 % of the tree, 0 s left");
        assert_eq!(said(0.0, 0.02, 100.0), "about 2.0 % of the tree, 82 min left");
        assert_eq!(said(0.0, 0.01, 100.0), "about 1.0 % of the tree, 3 h left");
        assert!(Estimate::new(0.0, 1e-9, 10.0).is_long() && !Estimate::new(0.0, 0.5, 10.0).is_long());
    }
}
