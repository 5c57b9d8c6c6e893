//! What is asked of the pieces that a search is split into.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::forms::{Format, ReportFormat};
use super::values::{duration, duration_or_none, fault_or_none};

/// The options of `vsrun pieces`.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(subcommand_required = true, disable_help_subcommand = true)]
pub struct PiecesOptions {
    #[command(subcommand)]
    pub(crate) command: RawPieces,
}

/// One of them, as it is read.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub(crate) enum RawPieces {
    /// Explore a program until there are so many pieces, and write them
    Split(SplitOptions),
    /// Explore a piece, from its beginning or from where it was left
    Work(WorkPiece),
    /// Split a piece, begun or not, so that more can work on what is left of it
    Divide(DividePiece),
    /// Sum up what the pieces have come to: one report, as of one search
    Merge(MergePieces),
}

/// The options of `vsrun pieces split`.
#[derive(Clone, Debug, PartialEq, Args)]
pub(crate) struct SplitOptions {
    /// Pieces, or a few more
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub into: u32,
    /// Directory for the pieces; it is made if it is not there
    #[arg(short = 'o', long = "dir", value_name = "DIR")]
    pub dir: PathBuf,
    /// Split again what is in DIR, with what its pieces have shown of objects
    #[arg(long)]
    pub again: bool,
    /// How long to look for objects that threads share, and for bugs, before the search is split: seconds, or 10m; 0: not at all
    #[arg(long, value_name = "TIME", default_value = "2", value_parser = duration_or_none)]
    pub look: Duration,
    /// Options of the search, as without 'pieces', then the program and its arguments
    #[arg(value_name = "[OPTIONS] PROGRAM [ARGS]", trailing_var_arg = true, allow_hyphen_values = true, num_args = 1..)]
    pub command: Vec<OsString>,
}

/// Explores a piece.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct WorkPiece {
    /// How long: seconds, or 10m [default: to its end]; what is left then goes on next time
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub time: Option<Duration>,
    /// Workers, a CPU each
    #[arg(short = 'j', value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub workers: u32,
    /// End, as by SIGTERM, when that file is gone: whoever began this does not want it any more
    #[arg(long = "while", value_name = "FILE")]
    pub wanted: Option<PathBuf>,
    /// Form of the report: text, json (one object on stdout)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Format::Text)]
    pub format: Format,
    /// The piece, a file that 'pieces split' has written; or a task of a swarm
    #[arg(value_name = "PIECE")]
    pub file: PathBuf,
}

/// Splits a piece.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct DividePiece {
    /// Pieces that it becomes, or a few more or less
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub into: u32,
    /// The piece, which nobody explores meanwhile
    #[arg(value_name = "PIECE")]
    pub file: PathBuf,
}

/// Sums pieces up.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct MergePieces {
    /// Form of the report: text, json, sarif, junit
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = ReportFormat::Text)]
    pub format: ReportFormat,
    /// Directory for scenarios
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub scenario_dir: PathBuf,
    /// The directory of the pieces
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// What runs the pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Engine {
    /// Processes on this machine, each on a CPU of its own.
    Local,
    /// Job arrays of Slurm.
    Slurm,
    /// Jobs of HyperQueue.
    Hq,
}

impl Engine {
    /// As it is asked for.
    pub fn word(self) -> &'static str {
        match self {
            Engine::Local => "local",
            Engine::Slurm => "slurm",
            Engine::Hq => "hq",
        }
    }
}

/// The options of `vsrun cluster`.
#[derive(Clone, Debug, PartialEq, Args)]
pub(crate) struct ClusterOptions {
    /// What runs the pieces: local (processes on this machine), slurm, hq (HyperQueue)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Engine::Local)]
    pub engine: Engine,
    /// Pieces that are explored at a time [default: as many as there are CPUs; with Slurm a quarter more; all with HyperQueue]; 0: split, and no more
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1024))]
    pub nodes: Option<u32>,
    /// Pieces [default: 16 for each node, or 256]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub into: Option<u32>,
    /// Draw executions by lot, by many searches side by side, where exploring all is out of reach
    #[arg(long)]
    pub swarm: bool,
    /// Of a swarm: stop after TIME: seconds, or 10m, 1h30m, 500ms
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub time: Option<Duration>,
    /// Of a swarm: stop after N executions
    #[arg(long = "max-executions", id = "max-executions", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub executions: Option<u64>,
    /// Of a swarm: the seed that those of all tasks come from [default: 0]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Of a swarm: faults that may strike in some tasks, as of --inject, separated by commas; none [default: short-io,eintr,spurious]
    #[arg(long, value_name = "FAULTS", value_delimiter = ',', value_parser = fault_or_none)]
    pub vary: Option<Vec<u32>>,
    /// Directory for the pieces, or the swarm; what is there already goes on
    #[arg(short = 'o', long = "dir", value_name = "DIR")]
    pub dir: PathBuf,
    /// How long a piece is explored before another one has its turn: seconds, or 10m
    #[arg(long, value_name = "TIME", default_value = "30", value_parser = duration)]
    pub grain: Duration,
    /// How long to look for objects that threads share, and for bugs, before the search is split: seconds, or 10m; 0: not at all
    #[arg(long, value_name = "TIME", default_value = "2", value_parser = duration_or_none)]
    pub look: Duration,
    /// Form of the report: text, json, sarif, junit
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = ReportFormat::Text)]
    pub format: ReportFormat,
    /// Directory for scenarios
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub scenario_dir: PathBuf,
    /// Options of the search, as without 'cluster', then the program and its arguments, or a pack; nothing, where there are pieces
    #[arg(value_name = "[OPTIONS] PROGRAM [ARGS]", trailing_var_arg = true, allow_hyphen_values = true, num_args = 1..)]
    pub command: Vec<OsString>,
}
