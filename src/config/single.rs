//! What is asked of single executions: a picture of a scenario, the list of what a program does when it is run once.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::values::{command_words, seconds, signal_number, uncontrolled};
use super::{Config, FilesName, Format, Timeouts, Words};

/// The form of a picture of an execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum PictureFormat {
    /// A page that needs nothing else.
    Html,
    /// Trace events, for Perfetto and chrome://tracing.
    Perfetto,
    /// Who waits for whom at the end, for Graphviz.
    Dot,
    /// All of it as one object.
    Json,
}

/// Draws a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Timeline {
    /// Form of the picture: html (a page that needs nothing else), perfetto (trace events for ui.perfetto.dev and
    /// chrome://tracing), dot (who waits for whom at the end, for Graphviz), json
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = PictureFormat::Html)]
    pub format: PictureFormat,
    /// File for the picture (default: stdout)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Run it though somebody else wrote it, or another machine: what it runs is in the file
    #[arg(long)]
    pub trust: bool,
    /// The scenario
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// The options of `vsrun trace`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct TraceOptions {
    /// The program (found in PATH unless it has a slash) and its arguments
    #[arg(value_name = "PROGRAM [ARGS]", trailing_var_arg = true, num_args = 1.., required = true)]
    pub program: Vec<OsString>,
    /// Draw who goes next by lot, from this seed [default: who runs goes on while it can]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Cut it after N transitions
    #[arg(long = "max-depth", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub depth: Option<u64>,
    /// Cut it after SECONDS
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub time: Option<Duration>,
    /// One more process of the system, a client for instance: program and arguments, with quotes as for a shell
    #[arg(long, value_name = "CMD", value_parser = command_words)]
    pub with: Vec<Words>,
    /// Signal (name or number) for processes that only wait for peers when all others are done
    #[arg(long, value_name = "SIG", value_parser = signal_number)]
    pub stop_signal: Option<i32>,
    /// When timeouts of the program fire: any (whenever they could), urgent (when nothing else can run)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Timeouts::Any)]
    pub timeouts: Timeouts,
    /// CPU seconds without a visible operation that are a divergence
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub divergence_timeout: Duration,
    /// Let calls that are not modelled go to the kernel, by kind, separated by commas: inotify, fanotify, io_uring, remap
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = uncontrolled)]
    pub uncontrolled: Vec<u32>,
    /// What the program writes to files: real (the files are changed), private (a layer that is gone at the end)
    #[arg(long, value_enum, value_name = "WHERE", hide_possible_values = true, default_value_t = FilesName::Real)]
    pub files: FilesName,
    /// File for the program's own output (default: stderr)
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Form of the list: text, or json (an object a line)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Format::Text)]
    pub format: Format,
}

/// Runs a program once and lists what it does.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Seed by which who goes next is drawn; `None`: who runs goes on while it can.
    pub seed: Option<u64>,
    /// Form of the list.
    pub format: Format,
    /// The rest: one execution.
    pub config: Config,
}
