//! `vsrun cluster` of a program in a pack: this vsrun speaks with the engine, which cannot be reached from a pack, and the one in the pack does all that has
//! to do with the program: it splits, explores pieces, divides them and sums them up.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use vsrun_model::inject;

use super::rounds::{begin, explore_all, parts};
use super::swarm;
use crate::args;
use crate::base::surroundings;
use crate::base::text::escape;
use crate::config::Cluster;
use crate::explore::{has_pieces, pack_of, words_of, Failure};
use crate::pack::{is_there, Driven};
use crate::report::terminal::shell_path;
use crate::runtime::tracee;

/// How often it is looked whether a process is over.
const PAUSE: Duration = Duration::from_millis(20);

/// A pack whose search is explored.
pub struct InPack {
    pack: Driven,
    /// Options of the search that are given beside those of the pack.
    options: Vec<OsString>,
    /// Pieces, or a swarm, of it are there.
    begun: bool,
}

impl InPack {
    /// The pack that stands in the place of the program, or that what is in the directory is of. `None`: there is none, or vsrun runs in it.
    ///
    /// # Errors
    /// It cannot be used, or it is not the one that what is there is of.
    pub fn of(args: &Cluster) -> Result<Option<InPack>, Failure> {
        if surroundings::is_pack() {
            return Ok(None);
        }
        let dir = &args.dir;
        let (begun, of) = match () {
            () if swarm::is_there(dir) => (true, swarm::pack_of(dir)?),
            () if has_pieces(dir) => (true, pack_of(dir)?),
            () => (false, None),
        };
        let named = named(args)?;
        let at = match (&named, &of) {
            // Without a pack they go on as they are, or are refused as they are.
            (Some(_), None) if begun => return Ok(None),
            (Some((pack, _)), _) => pack.as_path(),
            (None, Some(of)) if args.search.is_none() => Path::new(&of.dir),
            _ => return Ok(None),
        };
        let pack = Driven::of(at)?;
        let options = named.map_or_else(Vec::new, |(_, options)| options);
        if let Some(of) = of {
            let wrong = |why: &str| Err(Failure::environment(format!("{}: {why}", escape(dir))));
            if of.hash != pack.hash {
                let pack = escape(&pack.dir);
                return wrong(&format!("what is there is of another pack than {pack}, or that one was changed since"));
            }
            if !options.is_empty() {
                return wrong("what is there already goes on with the options that it has");
            }
        }
        // What is printed is done by the vsrun in the pack.
        surroundings::set_command(shell_path(&pack.run));
        Ok(Some(InPack { pack, options, begun }))
    }

    /// What explores a piece.
    pub(super) fn vsrun(&self) -> &Path {
        &self.pack.run
    }

    /// Splits the search, or begins the swarm, if that has not been done. An exit status: it was over by that, or failed, which has been said.
    ///
    /// # Errors
    /// The vsrun in the pack cannot be started, or is killed.
    pub fn begin(&self, args: &Cluster) -> Result<Option<i32>, Failure> {
        match self.begun {
            true => Ok(None),
            false => self.begin_with(args, parts(args, None)),
        }
    }

    fn begin_with(&self, args: &Cluster, into: u32) -> Result<Option<i32>, Failure> {
        let mut words: Vec<OsString> = ["cluster", "--nodes", "0", "--look"].map(OsString::from).to_vec();
        words.push(time(args.look));
        words.extend(["--format", args.format.name(), "--dir"].map(OsString::from));
        words.push(args.dir.clone().into());
        words.extend(["--scenario-dir".into(), args.scenario_dir.clone().into()]);
        let mut say = |name: &str, value: OsString| words.extend([name.into(), value]);
        match args.swarm.filter(|swarm| swarm.asked) {
            None => say("--into", into.to_string().into()),
            Some(said) => {
                said.time.into_iter().for_each(|limit| say("--time", time(limit)));
                said.executions.into_iter().for_each(|n| say("--max-executions", n.to_string().into()));
                said.seed.into_iter().for_each(|seed| say("--seed", seed.to_string().into()));
                said.vary.into_iter().for_each(|faults| say("--vary", names(faults).into()));
                words.push("--swarm".into());
            }
        }
        words.push("--".into());
        words.extend(self.options.iter().cloned());
        let (status, said) = self.run(&words, Stdio::piped())?;
        let begun = status == 0 && (has_pieces(&args.dir) || swarm::is_there(&args.dir));
        if !begun || args.nodes == Some(0) {
            // Its report, why there is none, or what there is now.
            std::io::stdout().write_all(&said)?;
        }
        if begun {
            return Ok(None);
        }
        Ok(Some(status))
    }

    /// Explores all of it in pieces. The exit status: what it is has been printed.
    ///
    /// # Errors
    /// The engine is not there, or a piece cannot be explored.
    pub fn explore(&self, args: &Cluster) -> Result<i32, Failure> {
        let (mut engine, nodes) = begin(args)?;
        let begun = if self.begun { None } else { self.begin_with(args, parts(args, nodes))? };
        if let Some(status) = begun {
            return Ok(status);
        }
        let words = words_of(&args.dir)?;
        let keep_going = args::searched(&words).map_err(|e| Failure::environment(e.text))?.keep_going;
        let dir = args.dir.as_os_str();
        let mut split_again = || {
            let into = parts(args, nodes).to_string();
            let words = ["pieces", "split", "--again", "--into", &into, "--dir"].map(OsString::from);
            match self.run(&[&words[..], &[dir.into()]].concat(), Stdio::piped())?.0 {
                0 => Ok(()),
                code => Err(Failure { code, message: "the search was not split again".into() }),
            }
        };
        explore_all(args, (engine.as_deref_mut(), nodes), (self.vsrun(), keep_going), &mut split_again)?;
        let mut words =
            ["pieces", "merge", "--format", args.format.name(), "--scenario-dir"].map(OsString::from).to_vec();
        words.extend([args.scenario_dir.clone().into(), dir.into()]);
        Ok(self.run(&words, Stdio::inherit())?.0)
    }

    /// Runs the vsrun in the pack. Its exit status, and what it printed to `out`.
    fn run(&self, words: &[OsString], out: Stdio) -> Result<(i32, Vec<u8>), Failure> {
        let failed = |e: std::io::Error| Failure::environment(format!("{}: {e}", escape(&self.pack.run)));
        let mut child = Command::new(&self.pack.run).args(words).stdout(out).spawn().map_err(failed)?;
        let reader = child.stdout.take().map(|mut out| {
            std::thread::spawn(move || {
                let mut said = Vec::new();
                // What it could not say is missing.
                let _ = out.read_to_end(&mut said);
                said
            })
        });
        let mut asked = false;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                break status;
            }
            if tracee::interrupted() && !asked {
                asked = true;
                // It has not been waited for: the number is its own.
                let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
            }
            std::thread::sleep(PAUSE);
        };
        let said = reader.and_then(|reader| reader.join().ok()).unwrap_or_default();
        match status.code() {
            Some(code) => Ok((code, said)),
            None => Err(Failure::environment(format!("{} was killed", escape(&self.pack.run)))),
        }
    }
}

/// The pack that stands in the place of the program, with the options before it.
fn named(args: &Cluster) -> Result<Option<(PathBuf, Vec<OsString>)>, Failure> {
    let Some(search) = &args.search else { return Ok(None) };
    let Some((program, arguments)) = search.config.program.split_first() else { return Ok(None) };
    if !is_there(Path::new(program)) {
        return Ok(None);
    }
    if !arguments.is_empty() {
        let why = "a pack runs the program that is in it, with its arguments: none are expected behind it";
        return Err(Failure::environment(format!("{}: {why}", escape(program))));
    }
    let options = args::taken_apart(&search.words).map_err(|e| Failure::environment(e.text))?.options;
    let word = |(id, word): (String, OsString)| match (id.as_str(), &search.config.annotations) {
        // Pieces are explored wherever the program runs.
        ("annotations", Some(path)) => {
            let path = std::path::absolute(path)?;
            Ok([OsStr::new("--annotations="), path.as_os_str()].join(OsStr::new("")))
        }
        _ => Ok(word),
    };
    let options: std::io::Result<Vec<OsString>> = options.into_iter().map(word).collect();
    Ok(Some((PathBuf::from(program), options?)))
}

/// As options have it.
fn time(time: Duration) -> OsString {
    match time.is_zero() {
        true => "0".into(),
        false => format!("{}ms", time.as_millis().max(1)).into(),
    }
}

fn names(faults: u32) -> String {
    let names: Vec<&str> = inject::NAMES.iter().filter(|(_, bit)| faults & bit != 0).map(|(name, _)| *name).collect();
    if names.is_empty() {
        "none".into()
    } else {
        names.join(",")
    }
}
