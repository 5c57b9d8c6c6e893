//! The command line as clap reads it.

use clap::{Parser, Subcommand};

use crate::config::{Config, Replay, Show};

const ABOUT: &str = "\
Systematic concurrency checker for unmodified native programs.

Runs PROGRAM, a closed system of processes and threads, in one interleaving after the other and reports
deadlocks, assertion failures, crashes, divergences and livelocks. Each bug is written as a scenario that
replays it exactly.";

const EXAMPLES: &str = "\
Examples:
  vsrun ./robot_controller              explore until the first bug; it is written as a scenario
  vsrun --keep-going --time 60 ./prog   collect different bugs for a minute
  vsrun --once ./prog arg               one execution, as it would run by itself
  vsrun replay prog-deadlock-1.vsrun.json
  gdb -ex 'handle SIGSYS nostop noprint pass' -ex run --args vsrun replay --no-supervisor prog-deadlock-1.vsrun.json
  vsrun doctor                          can this machine run vsrun, and if not, what to do

Exit status: 0 explored completely and no bug; 1 bug; 2 usage, environment or unsupported program;
3 no bug within the bounds; 4 the replay diverged, or a bug of vsrun.";

#[derive(Debug, Parser)]
#[command(name = "vsrun", bin_name = "vsrun", version, about = ABOUT, long_about = None, after_help = EXAMPLES)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true, override_usage = USAGE)]
pub(super) struct Raw {
    #[command(subcommand)]
    pub(super) command: Option<RawCommand>,
    #[command(flatten)]
    pub(super) explore: Config,
}

const USAGE: &str = "\
vsrun [OPTIONS] PROGRAM [ARGS]...
       vsrun replay [--no-supervisor] [--output FILE] [--format text|json] FILE
       vsrun show [--format text|json] FILE
       vsrun doctor";

#[derive(Debug, Subcommand)]
pub(super) enum RawCommand {
    /// Run a scenario again, step by step the same
    Replay(Replay),
    /// Print what a scenario file holds, with all its steps
    Show(Show),
    /// Check whether this machine can run vsrun
    Doctor,
}
