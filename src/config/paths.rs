//! The files that vsrun itself is told to read and write.

use std::path::PathBuf;

use super::{Command, Config, Pack, Pieces};

impl Config {
    /// Shows each of them.
    pub fn each_path(&mut self, change: &mut dyn FnMut(&mut PathBuf)) {
        change(&mut self.scenario_dir);
        let optional = [&mut self.annotations, &mut self.save, &mut self.resume, &mut self.output, &mut self.watch_log];
        optional.into_iter().flatten().for_each(change);
    }
}

impl Command {
    /// Shows each of them. Files of the program are not among them.
    pub fn each_path(&mut self, change: &mut dyn FnMut(&mut PathBuf)) {
        match self {
            Command::Explore(config) => config.each_path(change),
            Command::Replay(args) => {
                change(&mut args.file);
                args.output.iter_mut().for_each(change);
            }
            Command::Explain(args) => change(&mut args.file),
            Command::Debug(args) => {
                change(&mut args.file);
                args.input.iter_mut().for_each(change);
            }
            Command::Step(args) => {
                change(&mut args.file);
                args.input.iter_mut().for_each(change);
            }
            Command::Show(args) => change(&mut args.file),
            Command::Timeline(args) => {
                change(&mut args.file);
                args.output.iter_mut().for_each(change);
            }
            Command::Trace(args) => args.config.each_path(change),
            Command::Daemon(args) => args.config.each_path(change),
            Command::Pieces(Pieces::Split(args)) => {
                change(&mut args.dir);
                args.search.iter_mut().for_each(|search| search.config.each_path(change));
            }
            Command::Pieces(Pieces::Work(args)) => {
                change(&mut args.file);
                args.wanted.iter_mut().for_each(change);
            }
            Command::Pieces(Pieces::Divide(args)) => change(&mut args.file),
            Command::Pieces(Pieces::Merge(args)) => {
                change(&mut args.dir);
                change(&mut args.scenario_dir);
            }
            Command::Cluster(args) => {
                change(&mut args.dir);
                change(&mut args.scenario_dir);
                args.search.iter_mut().for_each(|search| search.config.each_path(change));
            }
            Command::Man(args) => change(&mut args.directory),
            Command::Pack(Pack::Check(args)) => change(&mut args.dir),
            Command::Pack(Pack::Oci(args)) => {
                change(&mut args.dir);
                change(&mut args.image);
            }
            Command::Pack(_) | Command::Doctor(_) | Command::Why(_) | Command::Completions(_) => {}
        }
    }
}
