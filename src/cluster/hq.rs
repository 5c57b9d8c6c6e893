//! HyperQueue, by its Python package: a process of Python (`hq.py`) speaks with the server.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::time::Duration;

use serde_json::{json, Value};

use super::engine::{Engine, Tasks};

static SCRIPT: &str = include_str!("hq.py");
/// What it has to answer to within so long.
const ANSWERS: Duration = Duration::from_secs(60);
/// A job of HyperQueue may be as large as one likes; what is handed over at once is to be no larger than this.
const MOST: usize = 10_000;

pub(super) struct HyperQueue {
    /// Begun anew when it has failed, or is gone: what is left of a program that was run is ended with all that vsrun has started.
    python: Option<Python>,
}

/// A process that speaks with the server, ended with this.
struct Python {
    process: Child,
    to: ChildStdin,
    from: Receiver<String>,
}

impl Python {
    fn start() -> Result<Python, String> {
        let mut command = Command::new("python3");
        command.arg("-c").arg(SCRIPT).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().map_err(|e| format!("python3: {e}"))?;
        let (Some(to), Some(from)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("vsrun bug: no pipe to Python".into());
        };
        let (sends, receives) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(from).lines().map_while(Result::ok) {
                if sends.send(line).is_err() {
                    return;
                }
            }
        });
        let python = Python { process, to, from: receives };
        python.answer().map(|_| python)
    }

    fn answer(&self) -> Result<Value, String> {
        let line = self.from.recv_timeout(ANSWERS).map_err(|e| match e {
            RecvTimeoutError::Timeout => "its Python process does not answer".to_string(),
            RecvTimeoutError::Disconnected => "its Python process has ended".to_string(),
        })?;
        let value: Value = serde_json::from_str(&line).map_err(|e| format!("its Python process said {line:?}: {e}"))?;
        match value["failed"].as_str() {
            Some(why) => Err(why.to_string()),
            None => Ok(value),
        }
    }

    fn ask(&mut self, what: &Value) -> Result<Value, String> {
        writeln!(self.to, "{what}").map_err(|e| format!("its Python process: {e}"))?;
        self.answer()
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        // Of one that was waited for nothing is killed: the library knows that.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl HyperQueue {
    /// # Errors
    /// There is no Python, no package, another version of it, or no server.
    pub fn new() -> Result<HyperQueue, String> {
        Ok(HyperQueue { python: Some(Python::start()?) })
    }

    fn ask(&mut self, what: &Value) -> Result<Value, String> {
        let there = |python: &mut Python| python.process.try_wait().is_ok_and(|ended| ended.is_none());
        let mut python = match self.python.take_if(|python| there(python)) {
            Some(python) => python,
            None => Python::start()?,
        };
        let answer = python.ask(what)?;
        self.python = Some(python);
        Ok(answer)
    }
}

impl Engine for HyperQueue {
    fn name(&self) -> &'static str {
        "HyperQueue"
    }

    fn most(&self) -> usize {
        MOST
    }

    /// Its package has no question for that.
    fn slots(&mut self) -> Option<usize> {
        None
    }

    fn submit(&mut self, tasks: &Tasks) -> Result<String, String> {
        let words =
            [&["/bin/sh".to_string(), tasks.script.to_string_lossy().into_owned()], &tasks.arguments[..]].concat();
        let said = self.ask(&json!({"words": words, "numbers": tasks.numbers, "dir": tasks.dir.to_string_lossy()}))?;
        said["job"].as_str().map(String::from).ok_or_else(|| format!("its Python process said {said}"))
    }

    fn is_over(&mut self, job: &str) -> Result<bool, String> {
        Ok(self.ask(&json!({"asked": job}))?["over"] == true)
    }

    /// Its Python package has no word for that. Tasks that begin now end at once.
    fn cancel(&mut self, _job: &str) {}
}
