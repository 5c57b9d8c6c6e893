//! The directory and the environment in which a program is started: vsrun's own, or those of the pack that vsrun runs in.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where the machine's own files are, for vsrun in a pack.
pub const NODE: &str = "/.vsrun/node";

/// Those of a program that are not vsrun's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// Working directory.
    pub cwd: PathBuf,
    /// Environment, `NAME=value`, in order.
    pub env: Vec<OsString>,
    /// vsrun runs in a pack: what a shell is told to run it so once more.
    pub command: Option<String>,
}

static GIVEN: Mutex<Option<Surroundings>> = Mutex::new(None);

fn given() -> MutexGuard<'static, Option<Surroundings>> {
    GIVEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on programs have these.
pub fn set(surroundings: Surroundings) {
    *given() = Some(surroundings);
}

/// The working directory of programs.
///
/// # Errors
/// vsrun's own is gone.
pub fn cwd() -> io::Result<PathBuf> {
    match &*given() {
        Some(given) => Ok(given.cwd.clone()),
        None => std::env::current_dir(),
    }
}

/// The environment of programs.
pub fn environment() -> Vec<OsString> {
    if let Some(given) = &*given() {
        return given.env.clone();
    }
    std::env::vars_os().map(|(name, value)| entry(&name, &value)).collect()
}

fn entry(name: &OsStr, value: &OsStr) -> OsString {
    [name, value].join(OsStr::new("="))
}

/// Sets a variable of the environment, of vsrun and of programs.
pub fn set_variable(name: &str, value: &OsStr) {
    std::env::set_var(name, value);
    if let Some(given) = &mut *given() {
        let front = format!("{name}=");
        given.env.retain(|entry| !entry.as_bytes().starts_with(front.as_bytes()));
        given.env.push(entry(name.as_ref(), value));
    }
}

/// What a shell is told to run this vsrun.
pub fn command() -> String {
    given().as_ref().and_then(|given| given.command.clone()).unwrap_or_else(|| "vsrun".to_string())
}

/// vsrun runs in a pack.
pub fn is_pack() -> bool {
    given().as_ref().is_some_and(|given| given.command.is_some())
}

/// A text for people and programs outside: names of files as they are there.
pub fn shown(text: &str) -> String {
    match is_pack() {
        true => text.replace(&format!("{NODE}/"), "/"),
        false => text.to_string(),
    }
}
