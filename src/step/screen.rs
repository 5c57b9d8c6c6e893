//! `vsrun step FILE`: the terminal. It is put back as it was however vsrun ends: a key, a signal, a failure, a panic.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use ratatui::DefaultTerminal;

use super::draw::{draw, Shown};
use super::view::{Action, View};
use crate::config::Step;
use crate::explore::{Failure, Source, Stand, State};
use crate::report::colours_for;
use crate::runtime::tracee;

/// After so long without a key it is looked whether vsrun is to end.
const LOOK: Duration = Duration::from_millis(100);
/// Source lines on either side.
const AROUND: u32 = 60;

/// Shows the scenario of a file, until one has seen enough.
///
/// # Errors
/// Standard output is no terminal; the scenario cannot be read or run; vsrun was asked to end.
pub fn run(args: &Step) -> Result<(), Failure> {
    if !io::stdout().is_terminal() {
        return Err(Failure::environment(
            "vsrun step needs a terminal, and standard output is none; 'vsrun show' prints the steps, 'vsrun debug --format json' is for programs",
        ));
    }
    let stand = Stand::open(&args.file, args.trust, args.input.as_deref())?;
    let view = View::new(args.file.to_string_lossy().into_owned(), stand.at(), colours_for(&io::stdout()));
    // Puts the terminal back before a panic is told.
    let terminal =
        ratatui::try_init().map_err(|e| Failure::environment(format!("the terminal cannot be used: {e}")))?;
    let done = Session { stand, view, terminal }.run();
    ratatui::restore();
    done
}

/// What there is of the terminal, after so long at most; nothing where the wait was interrupted.
fn terminal_says(wait: Duration) -> PollFlags {
    let stdin = io::stdin();
    let mut terminal = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    let wait = PollTimeout::try_from(wait).unwrap_or(PollTimeout::ZERO);
    match poll(&mut terminal, wait) {
        Ok(_) => terminal[0].revents().unwrap_or(PollFlags::empty()),
        Err(_) => PollFlags::empty(),
    }
}

/// The terminal has been closed. Who asks for keys then (crossterm) reads nothing, without end.
fn is_gone() -> bool {
    terminal_says(Duration::ZERO).intersects(PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL)
}

struct Session {
    stand: Stand,
    view: View,
    terminal: DefaultTerminal,
}

impl Session {
    fn run(mut self) -> Result<(), Failure> {
        let mut state = self.stand.state()?;
        loop {
            state = self.arrive(state)?;
            self.draw(&state)?;
            let Some(key) = self.key()? else { return Err(Failure::interrupted("interrupted")) };
            if state.at != self.view.at && self.view.needs_state(&key) {
                state = self.arrive(state)?;
            }
            match self.view.pressed(key, self.stand.path(), &state) {
                None | Some(Action::Go(_)) => {}
                Some(Action::Quit) => return Ok(()),
                Some(Action::Choose(thread, value)) => {
                    let chosen = self.stand.choose(&thread, value);
                    self.view.at = self.stand.at();
                    self.view.message = match chosen {
                        Ok(true) => {
                            let notes = self.stand.path().notes.join("; ");
                            let told = if notes.is_empty() { "another way from here".to_string() } else { notes };
                            Some((told, false))
                        }
                        Ok(false) => None,
                        Err(failure) => Some((self.unless_asked(failure)?.message, true)),
                    };
                    state = self.stand.state()?;
                }
                Some(Action::Save(to)) => {
                    self.view.message = Some(match self.stand.save(to.as_deref()) {
                        Ok(path) => (format!("saved as {}", path.display()), false),
                        Err(failure) => (failure.message, true),
                    });
                }
            }
        }
    }

    /// The failure, unless vsrun is to end.
    fn unless_asked(&self, failure: Failure) -> Result<Failure, Failure> {
        if tracee::interrupted() {
            Err(failure)
        } else {
            Ok(failure)
        }
    }

    /// Goes to where one wants to stand, unless there are more keys, which may lead elsewhere.
    fn arrive(&mut self, state: Arc<State>) -> Result<Arc<State>, Failure> {
        if state.at == self.view.at || !is_gone() && event::poll(Duration::ZERO).unwrap_or(false) {
            return Ok(state);
        }
        match self.stand.go(self.view.at) {
            Ok(state) => Ok(state),
            Err(failure) => {
                let failure = self.unless_asked(failure)?;
                self.view.message = Some((failure.message, true));
                self.view.at = self.stand.at();
                self.stand.state()
            }
        }
    }

    /// The next key; a change of the size is drawn meanwhile. `None`: vsrun is to end.
    fn key(&mut self) -> Result<Option<KeyEvent>, Failure> {
        let mut drawn = true;
        loop {
            if tracee::interrupted() || is_gone() {
                return Ok(None);
            }
            if !drawn {
                let state = self.stand.state()?;
                self.draw(&state)?;
                drawn = true;
            }
            match event::poll(Duration::ZERO) {
                Ok(true) => {}
                Ok(false) => {
                    let _ = terminal_says(LOOK);
                    continue;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e.into()),
            }
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => return Ok(Some(key)),
                Event::Resize(..) => drawn = false,
                _ => {}
            }
        }
    }

    fn draw(&mut self, state: &State) -> Result<(), Failure> {
        let path = self.stand.path();
        let next = path.steps.get(state.at).or(path.steps.last()).map(|step| step.thread.as_str());
        let whose =
            self.view.whose.as_deref().or(next).and_then(|id| state.threads.iter().rev().find(|at| at.lane.id == id));
        let place = whose.and_then(|at| at.place.as_ref());
        let source = place.and_then(|place| Source::around(place, AROUND));
        let name = whose.map_or("nobody", |at| at.lane.name.as_str());
        let shown = Shown { view: &self.view, path, state, source: source.as_ref(), whose: name };
        self.terminal.draw(|frame| draw(frame, &shown))?;
        Ok(())
    }
}
