//! `vsrun debug --format json FILE`: commands from standard input, an answer to each on standard output, an object a line.

use std::io;
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::unistd::read;
use serde_json::{json, Value};

use super::answers::{opened, standing, step, who};
use super::request::{Asked, Request};
use crate::base::print::out;
use crate::config::Debug;
use crate::explore::{Failure, Stand};
use crate::report::debug::{answer, refusal};
use crate::report::explain;
use crate::runtime::tracee;

/// Bytes of a line.
const LONGEST: usize = 1 << 20;
/// Milliseconds after which it is looked whether vsrun is to end.
const LOOK: u16 = 200;
/// Steps that are told at once, at most.
const MOST_STEPS: usize = 10_000;

/// Answers until there are no more commands, or one to end. The first line answers to the opening of the scenario.
///
/// # Errors
/// The scenario cannot be read or run; standard output cannot be written; vsrun was asked to end.
pub fn serve(args: &Debug) -> Result<(), Failure> {
    let opened_stand = Stand::open(&args.file, args.trust, args.input.as_deref());
    let mut stand = opened_stand.or_else(|failure| {
        out(&(refusal("open", None, &failure.message) + "\n"))?;
        Err(failure)
    })?;
    let state = stand.state()?;
    let mut body = standing(stand.path(), &state);
    body["scenario"] = args.file.to_string_lossy().into();
    add(&mut body, opened(stand.path()));
    out(&(answer("open", None, body) + "\n"))?;
    let mut lines = Lines::default();
    while let Some(line) = lines.next()? {
        let asked = match line {
            Ok(line) if line.trim_ascii().is_empty() => continue,
            Ok(line) => Asked::read(&line),
            Err(why) => Asked { command: String::new(), id: None, request: Err(why) },
        };
        let (command, id) = (asked.command.as_str(), asked.id.as_ref());
        let ends = asked.request == Ok(Request::Quit);
        let answered = match asked.request {
            Ok(request) => done(&mut stand, request),
            Err(why) => Err(Failure::environment(why)),
        };
        let text = match answered {
            Ok(body) => answer(command, id, body),
            Err(failure) if failure.is_interrupted() && tracee::interrupted() => return Err(failure),
            Err(failure) => refusal(command, id, &failure.message),
        };
        out(&(text + "\n"))?;
        if ends {
            break;
        }
    }
    Ok(())
}

fn add(object: &mut Value, more: Value) {
    if let (Value::Object(object), Value::Object(more)) = (object, more) {
        object.extend(more);
    }
}

fn done(stand: &mut Stand, request: Request) -> Result<Value, Failure> {
    let at = stand.at();
    match request {
        Request::Who => {
            let state = stand.state()?;
            Ok(who(stand.path(), &state))
        }
        Request::Step(count) => goto(stand, at.saturating_add(count)),
        Request::Back(count) => match at.checked_sub(count) {
            Some(n) => goto(stand, n),
            None => Err(Failure::environment(format!("there are {at} steps before this one, not {count}"))),
        },
        Request::Goto(n) => goto(stand, n),
        Request::Steps(from, count) => {
            let steps = &stand.path().steps;
            let first = from.max(1) - 1;
            let some = steps.iter().skip(first).take(count.min(MOST_STEPS));
            Ok(json!({ "step": at, "steps": steps.len(), "list": some.map(step).collect::<Vec<_>>() }))
        }
        Request::Choose(thread, value) => {
            let left = stand.choose(&thread, value)?;
            let state = stand.state()?;
            let mut body = standing(stand.path(), &state);
            body["left"] = left.into();
            if left {
                add(&mut body, opened(stand.path()));
            }
            Ok(body)
        }
        Request::Explain(samples, time) => {
            let explained = stand.explain(samples, time)?;
            Ok(json!({ "step": at, "explained": explain::object(&explained, stand.file()) }))
        }
        Request::Save(file) => {
            let path = stand.save(file.as_deref())?;
            Ok(json!({ "step": at, "file": path.to_string_lossy() }))
        }
        Request::Quit => Ok(json!({ "step": at })),
    }
}

fn goto(stand: &mut Stand, n: usize) -> Result<Value, Failure> {
    let state = stand.go(n)?;
    Ok(standing(stand.path(), &state))
}

/// Lines of standard input. A request to end is seen while none comes.
#[derive(Default)]
struct Lines {
    read: Vec<u8>,
    /// The rest of a line that is too long is passed over.
    skips: bool,
    is_over: bool,
}

impl Lines {
    /// The next line without its end, or why it is none. `None`: there are no more.
    fn next(&mut self) -> Result<Option<Result<Vec<u8>, String>>, Failure> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let mut line: Vec<u8> = self.read.drain(..=end).collect();
                line.pop();
                if !std::mem::take(&mut self.skips) {
                    return Ok(Some(Ok(line)));
                }
                continue;
            }
            if self.read.len() > LONGEST {
                self.read.clear();
                if !std::mem::replace(&mut self.skips, true) {
                    return Ok(Some(Err(format!("the line is longer than {LONGEST} bytes"))));
                }
            }
            if self.is_over {
                let rest = std::mem::take(&mut self.read);
                return Ok((!rest.is_empty() && !self.skips).then_some(Ok(rest)));
            }
            self.read_more()?;
        }
    }

    fn read_more(&mut self) -> Result<(), Failure> {
        let stdin = io::stdin();
        let mut waiting = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        if tracee::interrupted() {
            return Err(Failure::interrupted("interrupted"));
        }
        match poll(&mut waiting, PollTimeout::from(LOOK)) {
            Ok(0) | Err(Errno::EINTR) => return Ok(()),
            Ok(_) => {}
            Err(e) => return Err(io::Error::from(e).into()),
        }
        let mut buffer = [0; 1 << 16];
        match read(0, &mut buffer) {
            Ok(0) => self.is_over = true,
            Ok(n) => self.read.extend_from_slice(&buffer[..n]),
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            Err(e) => return Err(Failure::environment(format!("standard input cannot be read: {e}"))),
        }
        Ok(())
    }
}
