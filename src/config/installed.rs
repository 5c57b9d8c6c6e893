//! What is installed beside vsrun: completions and man pages.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// A shell that completes arguments.
#[allow(missing_docs)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Prints what a shell reads to complete vsrun's arguments.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: Shell,
}

/// Writes the man pages.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Man {
    /// A directory that is there
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}
