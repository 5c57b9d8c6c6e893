//! The screen, from plain data: steps with lanes of threads, what is to be seen where one stands, and what is asked.
//!
//! Up to 99 columns: the steps above, one pane below. Wider: the steps on the left, the panes on the right, all four of them where there is
//! room.

use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Clear, Paragraph};
use ratatui::Frame;

use super::panes::{cut, objects, output, source, steps, threads, Look};
use super::view::{Mode, Pane, View, KEYS};
use crate::explore::{Path, Source, State};

/// Columns from which the panes are beside the steps.
const WIDE: u16 = 100;
/// Rows from which all panes are shown.
const TALL: u16 = 40;
/// The least that anything can be shown in.
const LEAST: (u16, u16) = (20, 6);

/// What is drawn.
pub struct Shown<'a> {
    /// What is on the screen beside the execution.
    pub view: &'a View,
    /// The execution.
    pub path: &'a Path,
    /// Where one stands.
    pub state: &'a State,
    /// The source there,
    pub source: Option<&'a Source>,
    /// and whose it is.
    pub whose: &'a str,
}

/// Draws all of it.
pub fn draw(frame: &mut Frame, shown: &Shown) {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        frame.render_widget(Paragraph::new(cut("too small", area.width.into())), area);
        return;
    }
    let [title, body, status, keys] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1), Constraint::Length(1)])
            .areas(area);
    let look = Look { colours: shown.view.colours };
    let Shown { view, path, .. } = shown;
    let end = if path.end.is_bug { look.bad() } else { look.title() };
    let left = path.left.map_or_else(String::new, |n| format!(" [another way after step {n}]"));
    let head = format!("{}{left}  {}: {}", path.program, path.end.name, path.end.line);
    put(frame, title, vec![Line::styled(cut(&head, title.width.into()), end)]);
    if area.width >= WIDE {
        let [left, bar, right] =
            Layout::horizontal([Constraint::Fill(1), Constraint::Length(1), Constraint::Fill(1)]).areas(body);
        put(frame, left, steps(path, view, look, size(left)));
        put(frame, bar, vec![Line::raw("|"); bar.height.into()]);
        beside(frame, right, shown, look);
    } else {
        let [above, below] = Layout::vertical([Constraint::Fill(1), Constraint::Fill(1)]).areas(body);
        put(frame, above, steps(path, view, look, size(above)));
        pane(frame, below, view.pane, shown, look);
    }
    put(frame, status, vec![told(shown, look, status.width.into())]);
    let names = "arrows step  home/end  g goto  c choose  s save  tab pane  ? keys  q quit";
    put(frame, keys, vec![Line::styled(cut(names, keys.width.into()), look.later())]);
    match &view.mode {
        Mode::Choose(n) => choices(frame, area, *n, shown, look),
        Mode::Help => help(frame, area, look),
        _ => {}
    }
}

/// The panes beside the steps: the threads, and the one that was asked for below them; all, where there is room.
fn beside(frame: &mut Frame, area: Rect, shown: &Shown, look: Look) {
    if area.height >= TALL {
        let parts = [Constraint::Fill(4), Constraint::Fill(2), Constraint::Fill(4), Constraint::Fill(2)];
        let areas: [Rect; 4] = Layout::vertical(parts).areas(area);
        for (one, area) in Pane::ALL.into_iter().zip(areas) {
            pane(frame, area, one, shown, look);
        }
        return;
    }
    let [above, below] = Layout::vertical([Constraint::Fill(1), Constraint::Fill(1)]).areas(area);
    pane(frame, above, Pane::Threads, shown, look);
    let other = if shown.view.pane == Pane::Threads { Pane::Source } else { shown.view.pane };
    pane(frame, below, other, shown, look);
}

fn size(area: Rect) -> (usize, usize) {
    (area.width.into(), area.height.into())
}

fn put(frame: &mut Frame, area: Rect, lines: Vec<Line>) {
    frame.render_widget(Paragraph::new(lines), area);
}

fn pane(frame: &mut Frame, area: Rect, pane: Pane, shown: &Shown, look: Look) {
    let [title, inside] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    let width = usize::from(title.width);
    let head = format!("-- {} ", pane.title());
    let rule = "-".repeat(width.saturating_sub(head.len()));
    put(frame, title, vec![Line::styled(cut(&(head + &rule), width), look.title())]);
    let (width, height) = size(inside);
    let lines = match pane {
        Pane::Threads => threads(shown.path, shown.state, look, (width, height)),
        Pane::Objects => objects(shown.state, width),
        Pane::Source => source(shown.source, shown.whose, look, (width, height)),
        Pane::Output => output(shown.state, (width, height)),
    };
    put(frame, inside, lines);
}

/// What is typed or told; else where one stands.
fn told(shown: &Shown, look: Look, width: usize) -> Line<'static> {
    let Shown { view, path, .. } = shown;
    let (text, style) = match (&view.mode, &view.message) {
        (Mode::Goto(typed), _) => (format!("go to step (0 to {}): {typed}_", path.steps.len()), look.here()),
        (Mode::Save(typed), _) => (format!("save as (empty: the next free name): {typed}_"), look.here()),
        (_, Some((message, true))) => (message.clone(), look.bad()),
        (_, Some((message, false))) => (message.clone(), look.title()),
        _ => {
            let note = path.notes.first().map_or_else(String::new, |note| format!("  ({note})"));
            let next = match path.steps.get(view.at) {
                Some(step) => format!("next: {} {}", step.name, step.text),
                None => format!("the end: {}", path.end.line),
            };
            (format!("after step {} of {}; {next}{note}", view.at, path.steps.len()), look.title())
        }
    };
    Line::styled(cut(&text, width), style)
}

/// A box in the middle.
fn popup(frame: &mut Frame, area: Rect, title: &str, lines: Vec<Line>, look: Look) {
    let widest = lines.iter().map(Line::width).max().unwrap_or(0).max(title.len()) as u16 + 2;
    let (width, height) = (widest.min(area.width), (lines.len() as u16 + 1).min(area.height));
    let place = Rect { x: (area.width - width) / 2, y: (area.height - height) / 2, width, height };
    frame.render_widget(Clear, place);
    let head = format!("{title:<wide$}", wide = usize::from(width));
    let mut all = vec![Line::styled(cut(&head, width.into()), look.here())];
    all.extend(lines);
    put(frame, place, all);
}

fn choices(frame: &mut Frame, area: Rect, selected: usize, shown: &Shown, look: Look) {
    let rows = usize::from(area.height).saturating_sub(3).max(1);
    let all = shown.state.choices();
    let first = selected.saturating_sub(rows / 2).min(all.len().saturating_sub(rows));
    let next = shown.path.steps.get(shown.state.at);
    let line = |(n, &(thread, value)): (usize, &(usize, u32))| {
        let at = &shown.state.threads[thread];
        let same = next.is_some_and(|step| step.thread == at.lane.id && step.value == value);
        let mark = if same { "  [as it is]" } else { "" };
        let text = format!(" {}  {}{mark} ", at.lane.name, at.way(value));
        let style = if n == selected { look.here() } else { look.title() };
        Line::styled(cut(&text, area.width.saturating_sub(2).into()), style)
    };
    let lines = all.iter().enumerate().skip(first).take(rows).map(line).collect();
    popup(frame, area, " who makes the next step? (enter, esc) ", lines, look);
}

fn help(frame: &mut Frame, area: Rect, look: Look) {
    let line = |(keys, what): &(&str, &str)| {
        Line::raw(cut(&format!(" {keys:<19} {what} "), area.width.saturating_sub(2).into()))
    };
    popup(frame, area, " keys ", KEYS.iter().map(line).collect(), look);
}

#[cfg(test)]
mod tests {
    use ratatui::backend::TestBackend;
    use ratatui::style::{Color, Modifier};
    use ratatui::Terminal;

    use super::super::testing::{path, state};
    use super::*;

    fn drawn((width, height): (u16, u16), view: &View, path: &Path) -> Terminal<TestBackend> {
        let lines = vec![(19, "before".to_string()), (20, "lock(a);".to_string()), (21, "after".to_string())];
        let source = Source { name: "accounts.c".into(), line: 20, lines };
        let state = state(view.at);
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let shown = Shown { view, path, state: &state, source: Some(&source), whose: "worker#2 (0.2)" };
        terminal.draw(|frame| draw(frame, &shown)).unwrap();
        terminal
    }

    fn text(terminal: &Terminal<TestBackend>) -> Vec<String> {
        let buffer = terminal.backend().buffer();
        let row =
            |y| (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_string();
        (0..buffer.area.height).map(row).collect()
    }

    fn view(at: usize) -> View {
        View::new("s".into(), at, false)
    }

    #[test]
    fn the_smallest_screen() {
        let expected = "\
./accounts 2  deadlock: two wait for each other
   abc steps
 1 |*| worker#1 pthread_mutex_lock(lock_a)
 2 ||* worker#2 pthread_mutex_lock(lock_b)
 3 ||* worker#2 pthread_mutex_lock(lock_a)
       deadlock: two wait for each other




-- threads -------------------------------------------------
 a main: pthread_join(0.1)
 b worker#1: waits for lock_b, held by worker#2 (0.2), hol..
>c worker#2: pthread_mutex_lock(lock_a), holds lock_b




after step 2 of 3; next: worker#2 (0.2) pthread_mutex_lock..
arrows step  home/end  g goto  c choose  s save  tab pane ..";
        assert_eq!(text(&drawn((60, 20), &view(2), &path())).join("\n"), expected);
    }

    #[test]
    fn a_wide_screen_has_all_panes() {
        let all = text(&drawn((200, 60), &view(2), &path())).join("\n");
        for part in [
            " 1 |*| worker#1 pthread_mutex_lock(lock_a)",
            "worker accounts.c:11",
            ">c worker#2 (0.2): could go on",
            "     waits for lock_b, held by worker#2 (0.2)",
            " lock_a, held by worker#1",
            " lock_b, held by worker#2, waited for by worker#1",
            "   20 lock(a);",
            "-- output so far",
            "hello",
        ] {
            assert!(all.contains(part), "{part}\n{all}");
        }
    }

    #[test]
    fn no_size_is_too_much() {
        for width in [2, 19, 20, 40, 99, 100, 101, 300] {
            for height in [1, 5, 6, 7, 20, 39, 44, 90] {
                for mode in [Mode::Walk, Mode::Choose(0), Mode::Help, Mode::Goto("1".into()), Mode::Save("x".into())] {
                    let one = View { mode, ..view(3) };
                    let lines = text(&drawn((width, height), &one, &path()));
                    assert!(lines.iter().any(|line| !line.is_empty()), "{width}x{height}");
                }
            }
        }
    }

    #[test]
    fn where_one_stands_is_seen_without_colours() {
        let terminal = drawn((80, 24), &view(1), &path());
        let buffer = terminal.backend().buffer();
        assert!(
            buffer[(0, 3)].modifier.contains(Modifier::REVERSED)
                && !buffer[(0, 2)].modifier.contains(Modifier::REVERSED)
        );
        assert!(buffer.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
        let coloured = View { colours: true, ..view(1) };
        let terminal = drawn((80, 24), &coloured, &path());
        assert!(terminal.backend().buffer().content.iter().any(|cell| cell.fg == Color::Red));
    }

    #[test]
    fn choices_and_what_is_typed() {
        let choosing = View { mode: Mode::Choose(0), ..view(2) };
        let all = text(&drawn((60, 20), &choosing, &path())).join("\n");
        assert!(all.contains("worker#2 (0.2)  pthread_mutex_lock(lock_a)  [as it is]"), "{all}");
        let typing = View { mode: Mode::Goto("12".into()), ..view(2) };
        let all = text(&drawn((60, 20), &typing, &path()));
        assert_eq!(all[18], "go to step (0 to 3): 12_");
        let told = View { message: Some(("saved as a.json".into(), false)), ..view(2) };
        assert_eq!(text(&drawn((60, 20), &told, &path()))[18], "saved as a.json");
    }

    #[test]
    fn of_a_long_path_the_steps_around_are_shown() {
        let mut long = path();
        let step = long.steps[0].clone();
        long.steps = (1..=10_000).map(|n| crate::explore::Step { n, ..step.clone() }).collect();
        let lines = text(&drawn((60, 20), &view(5000), &long));
        assert!(lines.iter().any(|line| line.starts_with(" 5001 ")), "{lines:?}");
        let lines = text(&drawn((60, 20), &view(10_000), &long));
        assert!(lines[1..].iter().any(|line| line.contains("deadlock: two wait")), "{lines:?}");
    }
}
