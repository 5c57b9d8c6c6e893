//! What is asked of packs: a program with all that it needs, in a directory.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::values::duration;

/// The options of `vsrun pack`.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, disable_help_subcommand = true)]
pub struct PackOptions {
    #[command(subcommand)]
    pub(crate) command: Option<RawPack>,
    #[command(flatten)]
    pub(crate) make: MakeOptions,
}

/// What is done with a pack that is there.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub(crate) enum RawPack {
    /// Compare the files of a pack with what was packed; nothing is run
    Check(CheckPack),
    /// Run vsrun in a pack, as DIR/run does
    Run(RunPack),
    /// Write an image of a pack for engines of containers: an OCI image layout
    Oci(OciPack),
}

/// The options of a pack that is made.
#[derive(Clone, Debug, PartialEq, Args)]
pub(crate) struct MakeOptions {
    /// The pack: a directory that is not there, or empty
    #[arg(short = 'o', long = "dir", value_name = "DIR", required = true)]
    pub dir: Option<PathBuf>,
    /// A file that the program needs beside those that its executions show, or a directory with all that is in it
    #[arg(long, value_name = "PATH")]
    pub add: Vec<PathBuf>,
    /// A variable of the environment to take along, as it is or with that value
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub env: Vec<OsString>,
    /// How long to run the program for the files that it uses: seconds, or 10m
    #[arg(long, value_name = "TIME", default_value = "2", value_parser = duration)]
    pub look: Duration,
    /// Options of the search, as without 'pack', then the program and its arguments
    #[arg(value_name = "[OPTIONS] PROGRAM [ARGS]", trailing_var_arg = true, allow_hyphen_values = true, num_args = 1.., required = true)]
    pub words: Vec<OsString>,
}

/// Compares a pack with what was packed.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct CheckPack {
    /// The pack
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// Runs vsrun in a pack.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct RunPack {
    /// The pack
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// What vsrun does there: options of the search of the packed program, or a command
    #[arg(value_name = "OPTIONS | COMMAND", trailing_var_arg = true, allow_hyphen_values = true, num_args = 0..)]
    pub words: Vec<OsString>,
}

/// Writes an image of a pack.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct OciPack {
    /// The image: a directory that is not there, or empty
    #[arg(short = 'o', long = "image", value_name = "IMAGE")]
    pub image: PathBuf,
    /// The pack
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// A search that is packed: its options, each with its name and as it is written; and the program with its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    /// Its options.
    pub options: Vec<(String, OsString)>,
    /// The program and its arguments, as they are given.
    pub program: Vec<OsString>,
}
