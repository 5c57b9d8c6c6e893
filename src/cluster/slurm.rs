//! Slurm: lists of tasks are job arrays. Tried with Debian's 22.05.

use std::process::{Command, Stdio};

use super::engine::{Engine, Tasks};

/// Slurm's own default for an array (MaxArraySize) is one more.
const MOST: usize = 1000;
/// The name of jobs.
const NAME: &str = "vsrun";

pub(super) struct Slurm;

impl Slurm {
    /// # Errors
    /// Its commands are not there, or its controller does not answer.
    pub fn new() -> Result<Slurm, String> {
        said("sinfo", Command::new("sinfo").args(["--noheader", "--format=%D"])).map(|_| Slurm)
    }
}

impl Engine for Slurm {
    fn name(&self) -> &'static str {
        "Slurm"
    }

    fn most(&self) -> usize {
        MOST
    }

    fn submit(&mut self, tasks: &Tasks) -> Result<String, String> {
        let mut sbatch = Command::new("sbatch");
        sbatch.args(["--parsable", "--requeue", "--cpus-per-task=1", "--output=/dev/null", "--job-name", NAME]);
        sbatch.arg(format!("--array=1-{}", tasks.numbers)).arg("--chdir").arg(tasks.dir);
        let said = said("sbatch", sbatch.arg(tasks.script).args(&tasks.arguments))?;
        // The number, and on some systems the cluster.
        let job = said.trim().split(';').next().unwrap_or_default();
        match !job.is_empty() && job.bytes().all(|b| b.is_ascii_digit()) {
            true => Ok(job.to_string()),
            false => Err(format!("sbatch said {said:?} where the number of a job was expected")),
        }
    }

    fn is_over(&mut self, job: &str) -> Result<bool, String> {
        let mut squeue = Command::new("squeue");
        match said("squeue", squeue.args(["--noheader", "--format=%i", "--jobs", job])) {
            Ok(said) => Ok(said.trim().is_empty()),
            // It is forgotten some minutes after its end.
            Err(why) if why.contains("Invalid job id") => Ok(true),
            Err(why) => Err(why),
        }
    }

    fn cancel(&mut self, job: &str) {
        let _ = said("scancel", Command::new("scancel").args(["--state=PENDING", job]));
    }
}

/// What a command prints.
fn said(name: &str, command: &mut Command) -> Result<String, String> {
    let done = command.stdin(Stdio::null()).output().map_err(|e| format!("{name}: {e}"))?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => {
            let why = String::from_utf8_lossy(&done.stderr);
            Err(format!("{name}: {}", why.lines().last().unwrap_or("it failed, and does not say why")))
        }
    }
}
