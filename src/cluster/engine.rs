//! What is asked of an engine that queues, places and starts.

use std::path::Path;

/// Tasks that are handed over at once: `work.sh ARGUMENTS NUMBER`, for each number from 1.
pub(super) struct Tasks<'a> {
    /// The script.
    pub script: &'a Path,
    /// Its first arguments.
    pub arguments: Vec<String>,
    pub numbers: usize,
    /// Where it was begun.
    pub dir: &'a Path,
}

/// An engine. An error of it is that it did not answer, which may be otherwise in a while.
pub(super) trait Engine {
    /// Its name, for people.
    fn name(&self) -> &'static str;
    /// Tasks that it takes at once.
    fn most(&self) -> usize;
    /// Tasks that it can work on at a time, if it tells.
    fn slots(&mut self) -> Option<usize>;
    /// Hands tasks over. Gives what it calls them.
    fn submit(&mut self, tasks: &Tasks) -> Result<String, String>;
    /// None of them is waiting or running.
    fn is_over(&mut self, job: &str) -> Result<bool, String>;
    /// Those that wait need not be begun.
    fn cancel(&mut self, job: &str);
}
