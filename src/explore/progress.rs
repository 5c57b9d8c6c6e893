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

/// After so many executions it is estimated for the first time how many there are, and then whenever there have been twice as many.
const FIRST_SAMPLE: u64 = 100;
/// So many of these estimates say how far the next one may be off.
const SAMPLES: usize = 3;

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

/// How many executions there are, as it was estimated after some of them.
#[derive(Debug)]
struct Samples {
    /// Calls until the next one.
    calls: u64,
    next: u64,
    seen: Vec<f64>,
}

impl Samples {
    const NONE: Samples = Samples { calls: 0, next: FIRST_SAMPLE, seen: Vec::new() };

    /// True after so many executions as there is to be an estimate.
    fn is_due(&mut self) -> bool {
        self.calls += 1;
        let due = self.calls >= self.next;
        if due {
            self.next *= 2;
        }
        due
    }

    fn add(&mut self, all: f64) {
        if self.seen.len() == SAMPLES {
            self.seen.remove(0);
        }
        self.seen.push(all);
    }

    /// "about 5200 executions in all (estimates from 3100 to 6000)"; `None`: there were too few to say.
    fn words(&self, all: f64) -> Option<String> {
        let (least, most) = self.seen.iter().fold((all, all), |(a, b), &n| (a.min(n), b.max(n)));
        let known = !self.seen.is_empty() && all.is_finite() && most.is_finite();
        known.then(|| {
            format!("about {} executions in all (estimates from {} to {})", rounded(all), rounded(least), rounded(most))
        })
    }
}

/// To two digits.
fn rounded(n: f64) -> String {
    let unit = 10f64.powf((n.max(1.0).log10().floor() - 1.0).max(0.0));
    match (n / unit).round() * unit {
        n if n < 1e9 => format!("{n:.0}"),
        n => format!("{n:.1e}"),
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
    samples: Samples,
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
            samples: Samples::NONE,
        }
    }

    /// How often [`Progress::look`] is to be called, even while one execution goes on; `None`: nothing is written.
    pub fn interval(&self) -> Option<Duration> {
        self.interval
    }

    /// Called after each execution, and now and then; `figures` is asked only when something is written.
    pub fn look(&mut self, figures: impl Fn() -> Figures) {
        if self.samples.is_due() {
            let figures = figures();
            // It is also called while one goes on.
            let enough = figures.executions.saturating_sub(self.before.1) >= FIRST_SAMPLE;
            self.all(&figures).filter(|_| enough).into_iter().for_each(|all| self.samples.add(all));
        }
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
        (self.started, self.before, self.samples) = (Instant::now(), (0.0, 0), Samples::NONE);
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

    /// How many executions there are in all, if what is done says so.
    fn all(&self, figures: &Figures) -> Option<f64> {
        let gained = figures.done?.clamp(0.0, 1.0) - self.before.0;
        let executions = figures.executions.saturating_sub(self.before.1) as f64;
        (gained > 0.0)
            .then(|| figures.executions as f64 + executions * (1.0 - self.before.0 - gained).max(0.0) / gained)
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
        if let Some(words) = self.all(figures).and_then(|all| self.samples.words(all)) {
            line += &format!(", {words}");
        }
        line
    }

    /// What the summary of an exploration says that did not get to its end.
    pub fn last_words(&self, config: &Config, figures: &Figures) -> Option<String> {
        let estimate = self.estimate(figures, self.started.elapsed().as_secs_f64())?;
        let all = self.all(figures).and_then(|all| self.samples.words(all));
        let all = all.map_or_else(String::new, |words| format!("; {words}"));
        let text = format!("explored: {}; the rest would take {}{all}", estimate.part(), estimate.time());
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
    fn how_many_executions_there_are_is_told_with_what_was_estimated_before() {
        let mut samples = Samples::NONE;
        assert_eq!((1..=1000).filter(|_| samples.is_due()).count(), 4);
        assert_eq!(samples.words(5000.0), None);
        [9000.0, 3120.0, 2000.0, 61_234.0].into_iter().for_each(|all| samples.add(all));
        let said = samples.words(5249.0).unwrap_or_default();
        assert_eq!(said, "about 5200 executions in all (estimates from 2000 to 61000)");
        samples.add(4.0);
        assert_eq!(samples.words(17.4).unwrap_or_default(), "about 17 executions in all (estimates from 4 to 61000)");
        assert!(samples.words(2.34e12).is_some_and(|said| said.starts_with("about 2.3e12 executions")));
        samples.add(f64::INFINITY);
        assert_eq!(samples.words(17.4), None);
    }

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
