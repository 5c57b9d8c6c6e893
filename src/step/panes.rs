//! What the parts of the screen hold: lines of text, cut to their width.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::view::View;
use crate::base::text::one_line;
use crate::explore::{At, Path, Source, State, Step};
use crate::report::brief;

/// Threads that have a letter.
const LETTERS: usize = 26;
/// Threads that have a lane.
const LANES: usize = 40;
/// Columns of a name.
const NAME: usize = 24;

/// How things look.
#[derive(Clone, Copy)]
pub struct Look {
    /// With colours.
    pub colours: bool,
}

impl Look {
    fn coloured(self, colour: Color, style: Style) -> Style {
        if self.colours {
            style.fg(colour)
        } else {
            style
        }
    }

    /// Something bad.
    pub fn bad(self) -> Style {
        self.coloured(Color::Red, Style::new().add_modifier(Modifier::BOLD))
    }

    /// Something that can go on.
    pub fn good(self) -> Style {
        self.coloured(Color::Green, Style::new())
    }

    /// Something that waits.
    pub fn waits(self) -> Style {
        self.coloured(Color::Yellow, Style::new())
    }

    /// A title.
    pub fn title(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What one stands at.
    pub fn here(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// What has still to come.
    pub fn later(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }
}

/// Text on one line of that width; what is cut off is marked.
pub fn cut(text: &str, width: usize) -> String {
    let text = one_line(text);
    let line = Span::raw(&text);
    if line.width() <= width {
        return text;
    }
    let mut cut = String::new();
    for c in text.chars() {
        if Span::raw(format!("{cut}{c}..")).width() > width {
            break;
        }
        cut.push(c);
    }
    if width >= 2 {
        cut.push_str("..");
    }
    cut
}

/// The same, filled with spaces.
fn column(text: &str, width: usize) -> String {
    let text = cut(text, width);
    let fill = width.saturating_sub(Span::raw(&text).width());
    text + &" ".repeat(fill)
}

/// The letter of a thread, by its place among those of the path.
fn letter(n: usize) -> char {
    if n < LETTERS {
        (b'a' + n as u8) as char
    } else {
        '+'
    }
}

/// A name without the path of creation.
fn short(name: &str) -> &str {
    name.rsplit_once(" (").map_or(name, |(short, _)| short)
}

/// Where a step is made, in so many columns at most: with the function, or the file and line alone.
fn place_of(step: &Step, most: usize) -> Option<String> {
    let place = step.place.as_ref()?;
    let line = place.source().map(|at| format!("{}:{}", at.name.rsplit('/').next().unwrap_or_default(), at.line));
    [brief(place), line].into_iter().flatten().find(|place| place.chars().count() <= most)
}

/// The steps around where one stands, in `height` lines: the one that is made next is marked, and the last line of all is the end.
pub fn steps(path: &Path, view: &View, look: Look, (width, height): (usize, usize)) -> Vec<Line<'static>> {
    let number = path.steps.len().to_string().len().max(2);
    let lanes = path.threads.len().min(LANES).min(width / 4);
    let letters: String = (0..lanes).map(letter).collect();
    let mut lines = vec![Line::styled(cut(&format!("{:>number$} {letters} steps", ""), width), look.title())];
    let rows = height.saturating_sub(1);
    let first = view.at.saturating_sub(rows / 2).min((path.steps.len() + 1).saturating_sub(rows));
    for n in (first..=path.steps.len()).take(rows) {
        let style = match n.cmp(&view.at) {
            std::cmp::Ordering::Equal => look.here(),
            std::cmp::Ordering::Greater => look.later(),
            std::cmp::Ordering::Less => Style::new(),
        };
        let text = match path.steps.get(n) {
            Some(step) => row(path, step, (number, lanes), width),
            None => format!("{:>number$} {} {}: {}", "", " ".repeat(lanes), path.end.name, path.end.line),
        };
        lines.push(Line::styled(column(&text, width), style));
    }
    lines
}

fn row(path: &Path, step: &Step, (number, lanes): (usize, usize), width: usize) -> String {
    let lane = path.threads.iter().position(|(id, _)| *id == step.thread);
    let marks: String = (0..lanes).map(|n| if Some(n) == lane { '*' } else { '|' }).collect();
    let note = if step.note.is_empty() { String::new() } else { format!(" ({})", step.note) };
    let matters = if step.matters { ' ' } else { '.' };
    let names = path.threads.iter().map(|(_, name)| short(name).chars().count()).max().unwrap_or(0).min(NAME);
    let name = if width >= 50 { column(short(&step.name), names) + " " } else { String::new() };
    let left = format!("{:>number$}{matters}{marks} {name}{}{note}", step.n, step.text);
    match place_of(step, if width >= 70 { width / 3 } else { 0 }) {
        Some(place) => {
            let room = width - place.chars().count() - 1;
            format!("{} {place}", column(&left, room))
        }
        None => left,
    }
}

/// The threads: who they are, what they are at, what they wait for and hold; shorter where there is no room for all of that.
pub fn threads(path: &Path, state: &State, look: Look, (width, height): (usize, usize)) -> Vec<Line<'static>> {
    let next = path.steps.get(state.at).map(|step| step.thread.as_str());
    let letter_of = |at: &At| path.threads.iter().position(|(id, _)| *id == at.lane.id).map_or('+', letter);
    let mark = |at: &At| if Some(at.lane.id.as_str()) == next { '>' } else { ' ' };
    let style = |at: &At| match at.can_move() {
        true => look.good(),
        false if at.lane.status == "waiting" => look.waits(),
        false => Style::new(),
    };
    let head = |at: &At| format!("{}{} {}: {}", mark(at), letter_of(at), at.lane.name, status(at));
    let mut lines = Vec::new();
    for at in &state.threads {
        lines.push(Line::styled(cut(&head(at), width), style(at)));
        let mut more = |what: &str, text: &str| {
            if !text.is_empty() {
                lines.push(Line::raw(cut(&format!("     {what}{text}"), width)));
            }
        };
        more("", &at.lane.at);
        more("at ", &at.place.as_ref().and_then(brief).unwrap_or_default());
        more("waits for ", &at.lane.waits_for.join("; "));
        more("holds ", &at.lane.holds.join(", "));
    }
    if lines.len() <= height {
        return lines;
    }
    // Those that are over say least.
    let (over, alive): (Vec<&At>, Vec<&At>) = state.threads.iter().partition(|at| at.lane.status == "over");
    let line = |at: &&At| {
        let holds =
            if at.lane.holds.is_empty() { String::new() } else { format!(", holds {}", at.lane.holds.join(", ")) };
        let what = match at.lane.waits_for.first() {
            Some(what) => format!("waits for {what}"),
            None if at.lane.at.is_empty() => status(at),
            None => at.lane.at.clone(),
        };
        let text = format!("{}{} {}: {what}{holds}", mark(at), letter_of(at), short(&at.lane.name));
        Line::styled(cut(&text, width), style(at))
    };
    let mut lines: Vec<Line> = alive.iter().chain(&over).map(line).collect();
    if lines.len() > height {
        let left = lines.len() - height.saturating_sub(1);
        lines.truncate(height.saturating_sub(1));
        lines.push(Line::raw(cut(&format!("   and {left} more"), width)));
    }
    lines
}

fn status(at: &At) -> String {
    match at.ways.len() {
        0 if at.lane.status == "could go on" => "lets others go first".into(),
        0 | 1 => at.lane.status.into(),
        ways => format!("{}, in {ways} ways", at.lane.status),
    }
}

/// What is held or waited for.
pub fn objects(state: &State, width: usize) -> Vec<Line<'static>> {
    let names = |all: &[String]| all.iter().map(|name| short(name)).collect::<Vec<_>>().join(", ");
    let mut lines = Vec::new();
    for (name, held, waiting) in state.objects() {
        let held = if held.is_empty() { String::new() } else { format!(", held by {}", names(&held)) };
        let waits = if waiting.is_empty() { String::new() } else { format!(", waited for by {}", names(&waiting)) };
        lines.push(Line::raw(cut(&format!(" {name}{held}{waits}"), width)));
    }
    if lines.is_empty() {
        lines.push(Line::raw(cut(" nothing is held, and nobody waits", width)));
    }
    lines
}

/// The source around a place, that place in the middle.
pub fn source(source: Option<&Source>, whose: &str, look: Look, (width, height): (usize, usize)) -> Vec<Line<'static>> {
    let Some(source) = source else {
        return vec![Line::raw(cut(&format!(" no source line is known of {whose} here"), width))];
    };
    let mut lines = vec![Line::raw(cut(&format!(" {}:{} ({whose})", source.name, source.line), width))];
    let rows = height.saturating_sub(1);
    let at = source.lines.iter().position(|(n, _)| *n == source.line).unwrap_or(0);
    let first = at.saturating_sub(rows / 2).min(source.lines.len().saturating_sub(rows));
    for (n, text) in source.lines.iter().skip(first).take(rows) {
        let style = if *n == source.line { look.here() } else { Style::new() };
        lines.push(Line::styled(cut(&format!("{n:>5} {text}"), width), style));
    }
    lines
}

/// The end of what was printed.
pub fn output(state: &State, (width, height): (usize, usize)) -> Vec<Line<'static>> {
    let all: Vec<&str> = state.printed.lines().collect();
    if all.is_empty() {
        return vec![Line::raw(cut(" nothing was printed (what is in the buffers of stdio is not, yet)", width))];
    }
    let first = all.len().saturating_sub(height);
    all[first..].iter().map(|line| Line::raw(cut(line, width))).collect()
}
