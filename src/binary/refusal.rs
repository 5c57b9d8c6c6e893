//! Why vsrun does not run a program: one line each, with what to do about it.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use crate::base::text::{escape, escape_bytes};

/// Why a program cannot be run under vsrun. `Display` gives one line that starts with `vsrun: ` and the path as the
/// user gave it, with everything that does not print as itself escaped; it has no line end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no such file.
    NotFound(PathBuf),
    /// No directory of `PATH` has it; `here`: the current directory does.
    NotInPath {
        /// The name given.
        program: OsString,
        /// Whether `./program` exists.
        here: bool,
    },
    /// A symbolic link to nothing.
    DanglingLink(PathBuf),
    /// A directory.
    Directory(PathBuf),
    /// A device, FIFO or socket.
    NotRegular(PathBuf),
    /// A file of size 0.
    Empty(PathBuf),
    /// No permission to execute it.
    NotExecutable(PathBuf),
    /// Its file system is mounted with `noexec`.
    NoExecMount(PathBuf),
    /// It may be executed but not read.
    NotReadable(PathBuf),
    /// Neither ELF nor a script with `#!`.
    NotElf(PathBuf),
    /// An ELF file that is too short or damaged: which, and how.
    Damaged(PathBuf, String),
    /// A 32-bit (or x32) ELF file.
    Bits32(PathBuf),
    /// A big-endian ELF file.
    BigEndian(PathBuf),
    /// For another processor: which.
    OtherMachine(PathBuf, String),
    /// An object file, core dump or the like: which.
    NotAProgram(PathBuf, String),
    /// A shared library that cannot be started.
    SharedLibrary(PathBuf),
    /// Statically linked: there is no loader that could preload anything.
    Static(PathBuf),
    /// Set-user-id or set-group-id.
    SetId(PathBuf),
    /// It has file capabilities.
    Capabilities(PathBuf),
    /// The dynamic loader that it names does not exist.
    LoaderMissing(PathBuf, PathBuf),
    /// The dynamic loader that it names is not an ELF file of this machine: how so.
    LoaderUnusable(PathBuf, PathBuf, String),
    /// The dynamic loader that it names is not glibc's.
    NotGlibc(PathBuf, PathBuf),
    /// A shared library is certainly missing.
    LibraryMissing {
        /// The program.
        program: PathBuf,
        /// The name of the missing library.
        library: String,
        /// The file that needs it.
        needed_by: PathBuf,
    },
    /// A script whose interpreter is refused.
    Script {
        /// The script.
        script: PathBuf,
        /// Why its interpreter is refused; its path may end in a carriage return.
        cause: Box<Refusal>,
    },
    /// A script whose first line names no interpreter or is too long: which.
    BadScript(PathBuf, &'static str),
    /// Scripts that are interpreted by scripts, too deep.
    TooManyInterpreters(PathBuf),
    /// The system refused something else: the error.
    Io(PathBuf, String),
}

impl Refusal {
    /// The message without the leading `vsrun: `.
    pub fn message(&self) -> String {
        let (path, reason) = self.parts();
        format!("{path}: {reason}")
    }

    /// The escaped path and what is wrong with it.
    fn parts(&self) -> (String, String) {
        use Refusal::*;
        match self {
            NotInPath { program, .. } => (escape(program), self.reason()),
            LibraryMissing { program: path, .. } | Script { script: path, .. } => (escape(path), self.reason()),
            NotFound(path)
            | DanglingLink(path)
            | Directory(path)
            | NotRegular(path)
            | Empty(path)
            | NotExecutable(path)
            | NoExecMount(path)
            | NotReadable(path)
            | NotElf(path)
            | Damaged(path, _)
            | Bits32(path)
            | BigEndian(path)
            | OtherMachine(path, _)
            | NotAProgram(path, _)
            | SharedLibrary(path)
            | Static(path)
            | SetId(path)
            | Capabilities(path)
            | LoaderMissing(path, _)
            | LoaderUnusable(path, ..)
            | NotGlibc(path, _)
            | BadScript(path, _)
            | TooManyInterpreters(path)
            | Io(path, _) => (escape(path), self.reason()),
        }
    }

    fn reason(&self) -> String {
        use Refusal::*;
        let fixed = match self {
            NotFound(_) => "there is no such file; check the path",
            NotInPath { here: false, .. } => "no directory of PATH has such a program; give its path",
            NotInPath { program, here: true } => {
                return format!("no directory of PATH has such a program; for the one in this directory say ./{}", escape(program))
            }
            DanglingLink(_) => "a symbolic link to a file that does not exist; mend the link",
            Directory(_) => "a directory, not a program; give the path of a program",
            NotRegular(_) => "a device, pipe or socket, not a program; give the path of a program",
            Empty(_) => "an empty file, not a program; was it built?",
            NotExecutable(path) => return format!("no permission to execute it; chmod +x {}", escape(path)),
            NoExecMount(_) => "its file system is mounted noexec; copy the program to another one",
            NotReadable(_) => "no permission to read it, and vsrun has to; chmod +r it",
            NotElf(_) => "neither an ELF program nor a script that starts with #!; name the program that runs it first",
            Damaged(_, how) => return format!("a damaged ELF file: {}; build or copy it again", escape(how)),
            Bits32(_) => "a 32-bit program; vsrun supports x86-64 only: build it for 64 bits (without -m32, -mx32)",
            BigEndian(_) => "a big-endian program; vsrun supports x86-64 only: build it for x86-64",
            OtherMachine(_, name) => {
                return format!("a program for another machine, {name}; vsrun supports x86-64 only: build it for x86-64")
            }
            NotAProgram(_, what) => return format!("an ELF file, but not a program: {what}"),
            SharedLibrary(_) => "a shared library, which cannot be started; give a program that uses it",
            Static(_) => {
                "statically linked, so vsrun's library cannot be loaded into it; link it dynamically (without -static)"
            }
            SetId(_) => {
                "set-user-id or set-group-id, so the loader ignores vsrun's library; copy it (cp drops these bits) and run the copy"
            }
            Capabilities(_) => {
                "it has file capabilities, so the loader ignores vsrun's library; copy it (cp drops them) and run the copy"
            }
            LoaderMissing(_, loader) => {
                return format!("its dynamic loader {} does not exist; install the C library it was built for", escape(loader))
            }
            LoaderUnusable(_, loader, how) => {
                return format!("its dynamic loader {} is unusable: {}; install the C library it was built for", escape(loader), escape(how))
            }
            NotGlibc(_, loader) => {
                return format!("its dynamic loader {} is not glibc's; vsrun supports glibc only: build it for glibc", escape(loader))
            }
            LibraryMissing { program, library, needed_by } => return missing(program, library, needed_by),
            Script { cause, .. } => return script_reason(cause),
            BadScript(_, what) => what,
            TooManyInterpreters(_) => "scripts interpreted by scripts, more than 4 deep; name the last interpreter instead",
            Io(_, error) => return escape_bytes(error.as_bytes()),
        };
        fixed.to_string()
    }
}

fn missing(program: &PathBuf, library: &str, needed_by: &PathBuf) -> String {
    let by = if program == needed_by { String::new() } else { format!(" (needed by {})", escape(needed_by)) };
    format!("the shared library {}{by} is not found; install it or set LD_LIBRARY_PATH", escape(library))
}

fn script_reason(cause: &Refusal) -> String {
    let (path, reason) = cause.parts();
    if path.ends_with("\\x0d") {
        return format!("its interpreter is {path}: the script has DOS line ends; remove the carriage returns");
    }
    format!("its interpreter {path}: {reason}")
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "vsrun: {}", self.message())
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_whatever_the_names() {
        let bad = PathBuf::from("./a\nb\x1b[2J");
        let library = Refusal::LibraryMissing {
            program: bad.clone(),
            library: "l\nm.so".to_string(),
            needed_by: PathBuf::from("/x\ny"),
        };
        let all = [
            Refusal::NotFound(bad.clone()),
            Refusal::NotExecutable(bad.clone()),
            Refusal::Damaged(bad.clone(), "x\ny".to_string()),
            Refusal::LoaderMissing(bad.clone(), bad.clone()),
            Refusal::Io(bad.clone(), "x\ny".to_string()),
            Refusal::Script { script: bad.clone(), cause: Box::new(library.clone()) },
            library,
        ];
        for refusal in all {
            let line = refusal.to_string();
            assert!(line.starts_with("vsrun: ./a\\x0ab\\x1b[2J: "), "{line}");
            assert!(!line.chars().any(char::is_control), "{line}");
        }
    }

    #[test]
    fn dos_scripts_are_recognized() {
        let cause = Box::new(Refusal::NotFound(PathBuf::from("/bin/sh\r")));
        let line = Refusal::Script { script: PathBuf::from("./s"), cause }.to_string();
        assert_eq!(
            line,
            "vsrun: ./s: its interpreter is /bin/sh\\x0d: the script has DOS line ends; remove the carriage returns"
        );
    }
}
