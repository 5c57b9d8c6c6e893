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

    fn slots(&mut self) -> Option<usize> {
        slots_of(&said("sinfo", Command::new("sinfo").args(["--noheader", "--format=%P %C"])).ok()?)
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

/// The processors of the partition that jobs come to of which no other one is said, which is marked by a star: those that work, and those that could. `sinfo`
/// says "debug* 3/1/4/8": allocated, idle, other (down, drained), all.
fn slots_of(said: &str) -> Option<usize> {
    let usual = |line: &str| {
        let (name, cpus) = line.trim().split_once(' ')?;
        let mut cpus = cpus.trim().split('/').map(str::parse::<usize>);
        let (allocated, idle) = (cpus.next()?.ok()?, cpus.next()?.ok()?);
        name.ends_with('*').then_some(allocated + idle)
    };
    said.lines().find_map(usual).filter(|&slots| slots > 0)
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

#[cfg(test)]
mod tests {
    use super::slots_of;

    #[test]
    fn what_sinfo_says_of_processors() {
        assert_eq!(slots_of("long 0/64/0/64\ndebug* 3/1/4/8\n"), Some(4));
        assert_eq!(slots_of("a 1/1/0/2\n"), None, "no partition is the usual one");
        assert_eq!(slots_of("debug* 0/0/8/8\n"), None, "all are down");
        for wrong in ["", "debug*", "debug* ", "debug* 3", "debug* x/1/0/1", "debug* 99999999999999999999/1/0/1"] {
            assert_eq!(slots_of(wrong), None, "{wrong}");
        }
    }
}
