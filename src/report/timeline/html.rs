//! The picture as one HTML file that needs nothing else: no network, and no script either, which only adds comfort.
//!
//! Time goes down. On the left each thread has a line, and each step a dot on the line of its thread; arrows go from dot to dot. Rows have one
//! height, so where a dot lies follows from its number. They stand in chunks that browsers lay out when they come into sight.

use std::fmt::{self, Write};

use super::picture::{Lane, Link, Picture, Row};
use crate::base::text::one_line;
use crate::finding::PlaceView;
use crate::report::places::brief;

/// Height of a row, as in the style sheet.
const ROW: usize = 38;
/// Rows of a chunk.
const CHUNK: usize = 64;
/// Most rows: those at the end of a longer execution.
const MOST: usize = 20_000;
/// An arrow over more chunks than these is drawn where it begins and where it ends.
const FAR: usize = 40;
/// Frames of a call stack that are shown.
const FRAMES: usize = 6;

/// What the classes of arrows are, and what they mean.
const KINDS: [(&str, &str, &str); 8] = [
    ("creates", "creates", "creates the thread"),
    ("wakes", "wakes", "wakes it"),
    ("signal", "signal", "signal"),
    ("end", "end-of", "end that is awaited"),
    ("lock", "lock", "lock handed over"),
    ("message", "message", "message, data, connection"),
    ("memory", "memory", "same memory"),
    ("object", "object", "same object"),
];

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Text that comes from outside, as text or attribute of HTML, on one line.
struct Text<'a>(&'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        escaped(f, &one_line(self.0))
    }
}

/// The same with its line ends.
struct Lines<'a>(&'a str);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for line in self.0.split_inclusive('\n') {
            escaped(f, &one_line(line.trim_end_matches('\n')))?;
            if line.ends_with('\n') {
                f.write_char('\n')?;
            }
        }
        Ok(())
    }
}

fn escaped(f: &mut fmt::Formatter, text: &str) -> fmt::Result {
    for c in text.chars() {
        match c {
            '&' => f.write_str("&amp;")?,
            '<' => f.write_str("&lt;")?,
            '>' => f.write_str("&gt;")?,
            '"' => f.write_str("&quot;")?,
            '\'' => f.write_str("&#39;")?,
            c => f.write_char(c)?,
        }
    }
    Ok(())
}

/// The page.
pub fn html(picture: &Picture) -> String {
    let mut out = String::new();
    let rail = Rail::new(picture.lanes.len());
    let verdict = picture.kind.map_or("no bug", |kind| kind.name());
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{verdict}: {}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
        Text(&picture.program)
    );
    if let Some(line) = &picture.uncontrolled {
        let _ = writeln!(out, "<p class=\"verdict bad\">{}</p>", Text(line));
    }
    let bad = if picture.kind.is_some() { " bad" } else { "" };
    let _ =
        write!(out, "<header>\n<p class=\"verdict{bad}\">{verdict}</p>\n<h1>{}</h1>\n<dl>\n", Text(&picture.summary));
    let _ = writeln!(out, "<dt>program</dt><dd>{}</dd>", Text(&picture.program));
    if !picture.scenario.is_empty() {
        let _ = writeln!(out, "<dt>scenario</dt><dd>{}</dd>", Text(&picture.scenario));
    }
    let counted = format!(
        "{}, by {} of {}",
        picture.steps,
        count(picture.lanes.len(), "thread", "threads"),
        count(picture.processes.len(), "process", "processes")
    );
    let _ = writeln!(out, "<dt>steps</dt><dd>{counted}</dd>\n</dl>\n</header>");
    if !picture.story.is_empty() {
        let sentences: String = picture.story.iter().map(|line| format!("<p>{}</p>\n", Text(line))).collect();
        let _ = writeln!(out, "<section class=\"story\">\n<h2>What happened</h2>\n{sentences}</section>");
    }
    waits(&mut out, picture);
    threads(&mut out, picture);
    steps(&mut out, picture, &rail);
    if !picture.printed.is_empty() {
        let _ = writeln!(out, "<h2>What the program printed</h2>\n<pre>{}</pre>", Lines(&picture.printed));
    }
    let _ = write!(
        out,
        "<footer>vsrun {}. Step numbers are those of the report and of <code>vsrun show</code>.</footer>\n\
         <div id=\"panel\" aria-live=\"polite\" hidden></div>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    );
    out
}

fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// The hue of a lane, degrees: neighbours are far from each other.
fn hue(lane: usize) -> usize {
    (210 + lane * 137) % 360
}

/// The name of a lane in its colour.
fn named(lane: usize, name: &str) -> String {
    format!("<span class=\"thread\" style=\"--h:{}\">{}</span>", hue(lane), Text(name))
}

/// The graph of waiting, threads on the left, and what they wait for on the right; and the same in sentences.
fn waits(out: &mut String, picture: &Picture) {
    let graph = &picture.graph;
    if graph.edges.is_empty() {
        return;
    }
    const WIDTH: usize = 460;
    const BOX: (usize, usize) = (176, 28);
    const STEP: usize = 46;
    const LETTERS: usize = 20;
    let mut places = Vec::new();
    let (mut left, mut right) = (0, 0);
    for node in &graph.nodes {
        let (column, x) = if node.lane.is_some() { (&mut left, 2) } else { (&mut right, WIDTH - BOX.0 - 2) };
        places.push((x, 4 + *column * STEP));
        *column += 1;
    }
    let height = left.max(right) * STEP;
    let _ = write!(
        out,
        "<section>\n<h2>Who waits for whom</h2>\n<div class=\"waits\">\n\
         <svg class=\"graph\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\" aria-label=\"who waits for whom; the sentences beside it say the same\">\n\
         <defs><marker id=\"g\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"9\" markerHeight=\"9\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\"/></marker></defs>\n"
    );
    for edge in &graph.edges {
        let ((x, y), (to_x, to_y)) = (places[edge.from], places[edge.to]);
        let middle = |y: usize, by: usize| y + BOX.1 / 2 + by;
        let round = graph.nodes[edge.from].in_circle && graph.nodes[edge.to].in_circle;
        let class =
            format!("{}{}", if round { "circle" } else { "" }, if edge.label == "held by" { " held" } else { "" });
        let line = if x == to_x {
            let (at, bow) = (x + BOX.0, x + BOX.0 + 44);
            format!("M{at} {}C{bow} {} {bow} {} {at} {}", middle(y, 0), middle(y, 0), middle(to_y, 0), middle(to_y, 0))
        } else if x < to_x {
            format!("M{} {}L{to_x} {}", x + BOX.0, y + BOX.1 / 2 - 4, to_y + BOX.1 / 2 - 4)
        } else {
            format!("M{x} {}L{} {}", middle(y, 5), to_x + BOX.0, middle(to_y, 5))
        };
        let _ = writeln!(out, "<path class=\"{class}\" d=\"{line}\" marker-end=\"url(#g)\"/>");
    }
    for (node, (x, y)) in graph.nodes.iter().zip(&places) {
        let class = if node.in_circle { " class=\"circle\"" } else { "" };
        let short: String = node.label.chars().take(LETTERS).collect();
        let short = if short == node.label { short } else { format!("{short}…") };
        let _ = writeln!(
            out,
            "<g{class}><title>{}</title><rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" rx=\"{}\"/><text x=\"{}\" y=\"{}\">{}</text></g>",
            Text(&node.label),
            BOX.0,
            BOX.1,
            if node.lane.is_some() { 14 } else { 2 },
            x + 10,
            y + 19,
            Text(&short)
        );
    }
    out.push_str("</svg>\n<ul>\n");
    for (lane, i) in picture.lanes.iter().zip(0..) {
        for sentence in &lane.waits_for {
            let _ = writeln!(out, "<li>{} waits for {}</li>", named(i, &lane.name), Text(sentence));
        }
    }
    out.push_str("</ul>\n</div>\n</section>\n");
}

/// Where every thread is at the end.
fn threads(out: &mut String, picture: &Picture) {
    if picture.lanes.is_empty() {
        return;
    }
    out.push_str("<section>\n<h2>Threads at the end</h2>\n<ul class=\"threads\">\n");
    let over = |lane: &&Lane| lane.status == "over";
    for (lane, i) in picture.lanes.iter().zip(0..).filter(|(lane, _)| !over(lane)) {
        let _ = write!(out, "<li style=\"--h:{}\"><p>{} ", hue(i), named(i, &lane.name));
        let process = picture.processes.get(lane.process);
        if let Some((vpid, program)) = process.filter(|_| picture.processes.len() > 1) {
            let _ = write!(out, "of process {vpid} ({}) ", Text(program));
        }
        let _ = writeln!(out, "is {}</p>", lane.status);
        if !lane.at.is_empty() {
            let _ = writeln!(out, "<p class=\"at\">{}</p>", Text(&lane.at));
        }
        for frame in lane.frames.iter().filter(|frame| !frame.is_of_libc()).take(FRAMES) {
            let _ = writeln!(out, "<p class=\"frame\">{}</p>", Text(&frame.to_string()));
        }
        if !lane.holds.is_empty() {
            let _ = writeln!(out, "<p>holds {}</p>", Text(&lane.holds.join(", ")));
        }
        out.push_str("</li>\n");
    }
    out.push_str("</ul>\n");
    let gone: Vec<String> =
        picture.lanes.iter().zip(0..).filter(|(lane, _)| over(lane)).map(|(lane, i)| named(i, &lane.name)).collect();
    if !gone.is_empty() {
        let _ = writeln!(out, "<p>Over: {}</p>", gone.join(", "));
    }
    out.push_str("</section>\n");
}

/// Where the lines of the lanes are.
struct Rail {
    /// From one to the next, in tenths of a pixel.
    gap: usize,
    lanes: usize,
}

impl Rail {
    fn new(lanes: usize) -> Rail {
        let gap = match lanes {
            0..=4 => 480,
            5..=6 => 360,
            7..=12 => 200,
            _ => (1500 / lanes).max(15),
        };
        Rail { gap, lanes }
    }

    /// Pixels.
    fn width(&self) -> f64 {
        self.at(self.lanes.max(1) - 1) + 16.0
    }

    fn at(&self, lane: usize) -> f64 {
        16.0 + (self.gap * lane) as f64 / 10.0
    }
}

/// Where a row is, pixels from the first.
fn height(row: usize) -> f64 {
    (row * ROW + ROW / 2) as f64
}

/// A row: a step, or where a thread is at the end.
enum Line<'a> {
    Step(&'a Row),
    End(usize, &'a Lane),
}

fn steps(out: &mut String, picture: &Picture, rail: &Rail) {
    let left_out = picture.rows.len().saturating_sub(MOST);
    let ends = picture.lanes.iter().enumerate().filter(|(_, lane)| !lane.at.is_empty());
    let lines: Vec<Line> =
        picture.rows[left_out..].iter().map(Line::Step).chain(ends.map(|(i, lane)| Line::End(i, lane))).collect();
    if lines.is_empty() {
        return;
    }
    let links: Vec<&Link> = picture.links.iter().filter(|link| link.from >= left_out).collect();
    let _ = writeln!(out, "<section>\n<h2>Step by step</h2>\n<p class=\"key\">");
    for (_, class, meaning) in KINDS.iter().filter(|(kind, ..)| links.iter().any(|link| link.kind == *kind)) {
        let _ = writeln!(out, "<span><i class=\"{class}\"></i>{meaning}</span>");
    }
    let _ = writeln!(out, "</p>\n<div class=\"steps\" style=\"--wide:{}px\">\n<div class=\"heads\">", rail.width());
    if rail.gap >= 200 {
        for (lane, i) in picture.lanes.iter().zip(0..) {
            let _ = writeln!(
                out,
                "<span class=\"thread\" style=\"left:calc(var(--rail) * {:.4});--h:{}\">{}</span>",
                rail.at(i) / rail.width(),
                hue(i),
                Text(&lane.id)
            );
        }
    }
    out.push_str("<b>time goes down; a dot is a step of its thread; move over a row, or ↑ ↓</b></div>\n");
    if left_out > 0 {
        let _ = writeln!(out, "<p class=\"out\">the first {left_out} rows are left out; --format json has all</p>");
    }
    let drawn = Drawn { picture, rail, lives: lives(picture, &lines), lines: &lines, left_out };
    let chunks = lines.len().div_ceil(CHUNK);
    let mut in_chunk: Vec<Vec<&Link>> = vec![Vec::new(); chunks];
    for link in &links {
        let (from, to) = ((link.from - left_out) / CHUNK, (link.to - left_out) / CHUNK);
        let far = to - from > FAR;
        (from..=to).filter(|&c| !far || c == from || c == to).for_each(|c| in_chunk[c].push(link));
    }
    in_chunk.iter().enumerate().for_each(|(c, links)| drawn.chunk(out, c, links));
    out.push_str("</div>\n</section>\n");
}

/// The first and the last line of each lane.
fn lives(picture: &Picture, lines: &[Line]) -> Vec<Option<(usize, usize)>> {
    let mut all: Vec<Option<(usize, usize)>> = vec![None; picture.lanes.len()];
    for (line, i) in lines.iter().zip(0..) {
        let lane = match line {
            Line::Step(row) => row.lane,
            Line::End(lane, _) => *lane,
        };
        if let Some(life) = all.get_mut(lane) {
            *life = Some((life.map_or(i, |(first, _)| first), i));
        }
    }
    all
}

struct Drawn<'a> {
    picture: &'a Picture,
    rail: &'a Rail,
    lines: &'a [Line<'a>],
    lives: Vec<Option<(usize, usize)>>,
    left_out: usize,
}

impl Drawn<'_> {
    fn chunk(&self, out: &mut String, c: usize, links: &[&Link]) {
        let first = c * CHUNK;
        let lines = &self.lines[first..self.lines.len().min(first + CHUNK)];
        let _ = writeln!(out, "<div class=\"chunk\" style=\"--rows:{}\">", lines.len());
        self.drawing(out, (first, lines), links);
        out.push_str("<ol>\n");
        lines.iter().zip(first..).for_each(|(line, i)| self.line(out, line, i));
        out.push_str("</ol>\n</div>\n");
    }

    /// The lines of the lanes, the dots and the arrows.
    fn drawing(&self, out: &mut String, (first, lines): (usize, &[Line]), links: &[&Link]) {
        let (width, tall) = (self.rail.width(), lines.len() * ROW);
        let _ = writeln!(
            out,
            "<svg class=\"rail\" viewBox=\"0 0 {width} {tall}\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><defs><marker id=\"m{first}\" viewBox=\"0 0 8 8\" refX=\"11\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\"/></marker></defs>"
        );
        let (top, bottom) = ((first * ROW) as f64, (first * ROW + tall) as f64);
        for (life, lane) in self.lives.iter().zip(0..) {
            let Some((begin, end)) = life else { continue };
            let (from, to) = (height(*begin).max(top), height(*end).min(bottom));
            if from < to {
                let x = self.rail.at(lane);
                let _ = writeln!(
                    out,
                    "<line class=\"life\" style=\"--h:{}\" x1=\"{x}\" x2=\"{x}\" y1=\"{}\" y2=\"{}\"/>",
                    hue(lane),
                    from - top,
                    to - top
                );
            }
        }
        for link in links {
            self.arrow(out, link, (top, bottom, first));
        }
        for (line, i) in lines.iter().zip(first..) {
            let y = height(i) - top;
            let _ = match line {
                Line::Step(row) => writeln!(
                    out,
                    "<ellipse style=\"--h:{}\" cx=\"{}\" cy=\"{y}\"/>",
                    hue(row.lane),
                    self.rail.at(row.lane)
                ),
                Line::End(lane, _) => {
                    let x = self.rail.at(*lane);
                    writeln!(out, "<path class=\"stop\" d=\"M{} {}l10 10m0 -10l-10 10\"/>", x - 5.0, y - 5.0)
                }
            };
        }
        out.push_str("</svg>\n");
    }

    /// The part of an arrow between `top` and `bottom`.
    fn arrow(&self, out: &mut String, link: &Link, (top, bottom, first): (f64, f64, usize)) {
        let (from, to) = (link.from - self.left_out, link.to - self.left_out);
        let rows = &self.picture.rows;
        let (x, y) = (self.rail.at(rows[link.from].lane), height(from));
        let (to_x, to_y) = (self.rail.at(rows[link.to].lane), height(to));
        let at = |h: f64| x + (to_x - x) * (h - y) / (to_y - y);
        let (y1, y2) = (y.max(top), to_y.min(bottom));
        let class = KINDS.iter().find(|(kind, ..)| *kind == link.kind).map_or("object", |(_, class, _)| class);
        let head = if to_y <= bottom { format!(" marker-end=\"url(#m{first})\"") } else { String::new() };
        let _ = writeln!(
            out,
            "<line class=\"a {class}\" data-f=\"s{}\" data-t=\"s{}\" data-why=\"{}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"{head}/>",
            rows[link.from].n,
            rows[link.to].n,
            Text(&why(link)),
            at(y1),
            y1 - top,
            at(y2),
            y2 - top
        );
    }

    fn line(&self, out: &mut String, line: &Line, i: usize) {
        let focus = if i == 0 { 0 } else { -1 };
        match line {
            Line::Step(row) => {
                let name = self.picture.lanes.get(row.lane).map_or("?", |lane| &lane.name);
                let _ = write!(
                    out,
                    "<li id=\"s{}\" data-n=\"{}\" tabindex=\"{focus}\"{}>",
                    row.n,
                    row.n,
                    source(row.place.as_ref())
                );
                let _ = write!(
                    out,
                    "<p class=\"op\">{}</p><p class=\"more\">{} · {}",
                    Text(&row.text),
                    row.n,
                    named(row.lane, name)
                );
                if let Some(place) = row.place.as_ref().and_then(brief) {
                    let _ = write!(out, " · {}", Text(&place));
                }
                if !row.note.is_empty() {
                    let _ = write!(out, " · {}", Text(&row.note));
                }
            }
            Line::End(lane, at) => {
                let place = place_of(at);
                let _ = write!(
                    out,
                    "<li id=\"e{lane}\" class=\"end\" data-n=\"end\" tabindex=\"{focus}\"{}>",
                    source(place)
                );
                let _ = write!(
                    out,
                    "<p class=\"op\">{}</p><p class=\"more\">end · {} is {}",
                    Text(&at.at),
                    named(*lane, &at.name),
                    at.status
                );
                if let Some(place) = place.and_then(brief) {
                    let _ = write!(out, " · {}", Text(&place));
                }
                if !at.waits_for.is_empty() {
                    let _ = write!(out, " · waits for {}", Text(&at.waits_for.join("; ")));
                }
            }
        }
        out.push_str("</p></li>\n");
    }
}

/// Why an arrow is there.
fn why(link: &Link) -> String {
    match link.kind {
        "creates" | "wakes" | "end" => link.why.clone(),
        kind => format!("{kind} {}", link.why),
    }
}

/// The place in the program's own code where a thread is.
fn place_of(lane: &Lane) -> Option<&PlaceView> {
    PlaceView::of_program(&lane.frames)
}

/// Where it is in full, if the row does not say all of it, and what stands in the source there, as attributes.
fn source(place: Option<&PlaceView>) -> String {
    let Some((place, short)) = place.and_then(|place| Some((place, brief(place)?))) else { return String::new() };
    let mut out = String::new();
    let full = place.to_string();
    if full != short {
        let _ = write!(out, " data-place=\"{}\"", Text(&full));
    }
    if let Some(text) = place.text() {
        let _ = write!(out, " data-source=\"{}\"", Text(text.trim()));
    }
    out
}
