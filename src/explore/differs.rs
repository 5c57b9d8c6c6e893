//! What can make an execution differ from another one of the same schedule: what the user has left out of it. Then that vsrun is wrong is not the
//! first thing to think of.

use crate::runtime::Worker;

/// What was left out of what an execution depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeftOut {
    /// Memory is not watched.
    memory: bool,
    /// Files are the real ones.
    files: bool,
}

const MEMORY: &str =
    "memory is not watched (--race off): where threads use memory that nothing orders, or the program reads something else that \
     differs between executions, the same schedule leads to other steps. Run it without --race off, which makes such \
     memory a part of the schedule; what comes all the same then is no matter of memory";
const FILES: &str = "with --files real an execution finds the files as the ones before it have left them, which is the likely cause. Without \
                     --files real each begins with the same files; a program that has to have the real ones must leave them as it \
                     found them";

impl LeftOut {
    /// By this worker.
    pub fn by(worker: &Worker) -> LeftOut {
        LeftOut { memory: !worker.watches(), files: worker.has_real_files() }
    }

    /// What may be the cause and what to do about it. `None`: nothing was left out.
    pub fn cause(self) -> Option<String> {
        let parts: Vec<&str> =
            [self.files.then_some(FILES), self.memory.then_some(MEMORY)].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("; and "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_named_and_nothing_else() {
        let cause = |memory, files| LeftOut { memory, files }.cause();
        assert_eq!(cause(false, false), None);
        assert_eq!(cause(true, false).as_deref(), Some(MEMORY));
        assert_eq!(cause(false, true).as_deref(), Some(FILES));
        assert!(cause(true, true).is_some_and(|text| text.contains(MEMORY) && text.contains(FILES)));
    }
}
