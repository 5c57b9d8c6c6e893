//! What is on the screen beside the execution itself, and what keys make of it.

use std::path::PathBuf;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::explore::{Path, State};

/// What is shown beside the steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pane {
    /// The threads.
    Threads,
    /// What is held and waited for.
    Objects,
    /// The source around where the next step is made.
    Source,
    /// What was printed.
    Output,
}

impl Pane {
    /// All of them, in the order of the tab key.
    pub const ALL: [Pane; 4] = [Pane::Threads, Pane::Objects, Pane::Source, Pane::Output];

    /// Its title.
    pub fn title(self) -> &'static str {
        match self {
            Pane::Threads => "threads",
            Pane::Objects => "held and waited for",
            Pane::Source => "source",
            Pane::Output => "output so far",
        }
    }
}

/// What keys are for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Walking.
    Walk,
    /// A choice is made: the one that is selected, of [`State::choices`].
    Choose(usize),
    /// The number of a step is typed.
    Goto(String),
    /// The name of a file is typed.
    Save(String),
    /// The keys are shown.
    Help,
}

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Go to after that step.
    Go(usize),
    /// Let that thread (by its path of creation) make the next step in that alternative.
    Choose(String, u32),
    /// Write the path to that file, or to one with a free name.
    Save(Option<PathBuf>),
    /// End.
    Quit,
}

/// The keys, with what they do.
pub const KEYS: [(&str, &str); 12] = [
    ("right, down, n", "one step forward"),
    ("left, up, p", "one step back"),
    ("page down, page up", "ten steps"),
    ("home", "to the start"),
    ("end", "to the end"),
    ("g", "go to a step: type its number"),
    ("c", "choose who makes the next step"),
    ("t", "the source of another thread"),
    ("tab", "threads, objects, source, output"),
    ("s", "save the path as a scenario"),
    ("?", "these keys"),
    ("q, ctrl-c", "quit"),
];

/// Steps of a page key.
const PAGE: usize = 10;
/// Characters of what is typed.
const TYPED: usize = 4096;

/// What is on the screen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    /// The file of the scenario.
    pub file: String,
    /// Steps that were made where one wants to stand.
    pub at: usize,
    /// What is shown beside the steps.
    pub pane: Pane,
    /// What keys are for.
    pub mode: Mode,
    /// The thread whose source is shown, by its path of creation; `None`: who makes the next step.
    pub whose: Option<String>,
    /// What is to be told, until the next key; true: it is an error.
    pub message: Option<(String, bool)>,
    /// With colours.
    pub colours: bool,
}

impl View {
    /// At the end of a path of so many steps.
    pub fn new(file: String, at: usize, colours: bool) -> View {
        View { file, at, pane: Pane::Threads, mode: Mode::Walk, whose: None, message: None, colours }
    }

    /// The key needs to see the state where one stands; those that only walk do not.
    pub fn needs_state(&self, key: &KeyEvent) -> bool {
        self.mode != Mode::Walk || matches!(key.code, KeyCode::Char('c' | 't'))
    }

    /// A key was pressed, in a state of the path; what is to be done then.
    pub fn pressed(&mut self, key: KeyEvent, path: &Path, state: &State) -> Option<Action> {
        self.message = None;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control {
            return matches!(key.code, KeyCode::Char('c' | 'd')).then_some(Action::Quit);
        }
        match std::mem::replace(&mut self.mode, Mode::Walk) {
            Mode::Walk => self.walk(key.code, path, state),
            Mode::Help => None,
            Mode::Choose(n) => self.choose(key.code, n, state),
            Mode::Goto(typed) => self.goto(key.code, typed, path),
            Mode::Save(typed) => self.save(key.code, typed),
        }
    }

    fn walk(&mut self, key: KeyCode, path: &Path, state: &State) -> Option<Action> {
        let (at, end) = (self.at, path.steps.len());
        let to = match key {
            KeyCode::Right | KeyCode::Down | KeyCode::Char('n' | 'j' | 'l' | ' ') => at + 1,
            KeyCode::Left | KeyCode::Up | KeyCode::Char('p' | 'k' | 'h') | KeyCode::Backspace => at.saturating_sub(1),
            KeyCode::PageDown => at + PAGE,
            KeyCode::PageUp => at.saturating_sub(PAGE),
            KeyCode::Home => 0,
            KeyCode::End | KeyCode::Char('G') => end,
            _ => {
                self.command(key, state);
                return (key == KeyCode::Char('q')).then_some(Action::Quit);
            }
        };
        let to = to.min(end);
        self.at = to;
        (to != at).then_some(Action::Go(to))
    }

    fn command(&mut self, key: KeyCode, state: &State) {
        match key {
            KeyCode::Char('g' | ':') => self.mode = Mode::Goto(String::new()),
            KeyCode::Char(digit @ '0'..='9') => self.mode = Mode::Goto(digit.to_string()),
            KeyCode::Char('c') if state.choices().is_empty() => {
                self.message = Some(("nobody can make another step here".into(), true));
            }
            KeyCode::Char('c') => self.mode = Mode::Choose(0),
            KeyCode::Char('t') => self.whose = next_thread(self.whose.as_deref(), state),
            KeyCode::Char('s') => self.mode = Mode::Save(String::new()),
            KeyCode::Char('?') => self.mode = Mode::Help,
            KeyCode::Tab | KeyCode::BackTab => {
                let n = Pane::ALL.iter().position(|pane| *pane == self.pane).unwrap_or(0);
                let by = if key == KeyCode::Tab { 1 } else { Pane::ALL.len() - 1 };
                self.pane = Pane::ALL[(n + by) % Pane::ALL.len()];
            }
            _ => {}
        }
    }

    fn choose(&mut self, key: KeyCode, n: usize, state: &State) -> Option<Action> {
        let all = state.choices();
        let last = all.len().saturating_sub(1);
        match key {
            KeyCode::Down | KeyCode::Char('j') => self.mode = Mode::Choose((n + 1).min(last)),
            KeyCode::Up | KeyCode::Char('k') => self.mode = Mode::Choose(n.saturating_sub(1)),
            KeyCode::Home => self.mode = Mode::Choose(0),
            KeyCode::End => self.mode = Mode::Choose(last),
            KeyCode::Enter => {
                let &(thread, value) = all.get(n)?;
                return Some(Action::Choose(state.threads.get(thread)?.lane.id.clone(), value));
            }
            KeyCode::Esc | KeyCode::Char('q' | 'c') => {}
            _ => self.mode = Mode::Choose(n),
        }
        None
    }

    fn goto(&mut self, key: KeyCode, mut typed: String, path: &Path) -> Option<Action> {
        match key {
            KeyCode::Enter => {
                let end = path.steps.len();
                match typed.parse::<usize>() {
                    Ok(n) if n <= end => {
                        self.at = n;
                        return Some(Action::Go(n));
                    }
                    _ if typed.is_empty() => {}
                    _ => self.message = Some((format!("there is no step {typed}: the last one is {end}"), true)),
                }
            }
            KeyCode::Esc => {}
            _ => {
                edit(&mut typed, key, |c| c.is_ascii_digit());
                self.mode = Mode::Goto(typed);
            }
        }
        None
    }

    fn save(&mut self, key: KeyCode, mut typed: String) -> Option<Action> {
        match key {
            KeyCode::Enter => return Some(Action::Save((!typed.is_empty()).then(|| typed.into()))),
            KeyCode::Esc => {}
            _ => {
                edit(&mut typed, key, |c| !c.is_control());
                self.mode = Mode::Save(typed);
            }
        }
        None
    }
}

fn edit(typed: &mut String, key: KeyCode, fits: impl Fn(char) -> bool) {
    match key {
        KeyCode::Char(c) if fits(c) && typed.len() < TYPED => typed.push(c),
        KeyCode::Backspace => drop(typed.pop()),
        _ => {}
    }
}

/// The thread after that one of which the place is known; after the last one again who makes the next step.
fn next_thread(whose: Option<&str>, state: &State) -> Option<String> {
    let known: Vec<&str> = state.threads.iter().filter(|at| at.place.is_some()).map(|at| at.lane.id.as_str()).collect();
    let next = whose.and_then(|id| known.iter().position(|known| *known == id)).map_or(0, |n| n + 1);
    known.get(next).map(ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{path, state};
    use super::*;

    fn press(view: &mut View, keys: &[KeyCode]) -> Vec<Action> {
        let (path, state) = (path(), state(2));
        let key = |code: &KeyCode| KeyEvent::new(*code, KeyModifiers::NONE);
        keys.iter().filter_map(|code| view.pressed(key(code), &path, &state)).collect()
    }

    fn view() -> View {
        View::new("s".into(), 2, false)
    }

    fn typed(text: &str) -> Vec<KeyCode> {
        text.chars().map(|c| if c == '\n' { KeyCode::Enter } else { KeyCode::Char(c) }).collect()
    }

    #[test]
    fn walking_stays_on_the_path() {
        let go = |keys: &[KeyCode]| press(&mut view(), keys);
        assert_eq!(go(&[KeyCode::Right, KeyCode::Right]), [Action::Go(3)]);
        assert_eq!(go(&[KeyCode::Left, KeyCode::Up, KeyCode::Char('p')]), [Action::Go(1), Action::Go(0)]);
        assert_eq!(go(&[KeyCode::PageUp, KeyCode::PageDown]), [Action::Go(0), Action::Go(3)]);
        assert_eq!(
            go(&[KeyCode::Home, KeyCode::End, KeyCode::Char('q')]),
            [Action::Go(0), Action::Go(3), Action::Quit]
        );
        assert_eq!(go(&typed("g1\n")), [Action::Go(1)]);
        assert_eq!(go(&typed("12\n")), []);
        let mut far = view();
        press(&mut far, &typed("12\n"));
        assert_eq!(far.message, Some(("there is no step 12: the last one is 3".into(), true)));
        assert_eq!(far.mode, Mode::Walk);
    }

    #[test]
    fn choosing_saving_and_other_modes() {
        assert_eq!(press(&mut view(), &typed("c\n")), [Action::Choose("0.2".into(), 0)]);
        assert_eq!(press(&mut view(), &[KeyCode::Char('c'), KeyCode::Down, KeyCode::Down, KeyCode::Esc]), []);
        assert_eq!(press(&mut view(), &typed("s\n")), [Action::Save(None)]);
        assert_eq!(press(&mut view(), &typed("sa q.json\n")), [Action::Save(Some("a q.json".into()))]);
        let mut some = view();
        press(&mut some, &[KeyCode::Char('s'), KeyCode::Char('x'), KeyCode::Backspace, KeyCode::Backspace]);
        assert_eq!(some.mode, Mode::Save(String::new()));
        let quit = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(some.pressed(quit, &path(), &state(2)), Some(Action::Quit), "in every mode");
        let mut help = view();
        press(&mut help, &typed("?"));
        assert_eq!(help.mode, Mode::Help);
        assert_eq!((press(&mut help, &typed("q")), help.mode), (vec![], Mode::Walk));
        let mut panes = view();
        press(&mut panes, &[KeyCode::Tab, KeyCode::Tab, KeyCode::BackTab]);
        assert_eq!(panes.pane, Pane::Objects);
    }

    #[test]
    fn the_source_of_each_thread() {
        let mut some = view();
        let mut seen = Vec::new();
        for _ in 0..4 {
            press(&mut some, &typed("t"));
            seen.push(some.whose.clone());
        }
        assert_eq!(seen, [Some("0".to_string()), Some("0.1".into()), Some("0.2".into()), None]);
    }
}
