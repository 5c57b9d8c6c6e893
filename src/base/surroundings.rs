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
    /// vsrun runs in that pack.
    pub pack: Option<Pack>,
}

/// A pack that vsrun runs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pack {
    /// Where it is on the machine, if that is known.
    pub dir: Option<PathBuf>,
    /// What a shell is told to run vsrun in it once more.
    pub command: String,
    /// The hash of what it says of itself.
    pub hash: u64,
}

static GIVEN: Mutex<Option<Surroundings>> = Mutex::new(None);
/// What a shell is told where another vsrun runs the program than this one.
static COMMAND: Mutex<Option<String>> = Mutex::new(None);

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

/// What a shell is told to run this vsrun, or the one that runs the program.
pub fn command() -> String {
    let other = COMMAND.lock().unwrap_or_else(PoisonError::into_inner).clone();
    other.or_else(|| pack().map(|pack| pack.command)).unwrap_or_else(|| "vsrun".to_string())
}

/// Another vsrun than this one runs the program: this command runs it.
pub fn set_command(command: String) {
    *COMMAND.lock().unwrap_or_else(PoisonError::into_inner) = Some(command);
}

/// The pack that vsrun runs in.
pub fn pack() -> Option<Pack> {
    given().as_ref().and_then(|given| given.pack.clone())
}

/// vsrun runs in a pack.
pub fn is_pack() -> bool {
    pack().is_some()
}

/// A text for people and programs outside: names of files as they are there.
pub fn shown(text: &str) -> String {
    match is_pack() {
        true => text.replace(&format!("{NODE}/"), "/"),
        false => text.to_string(),
    }
}
