//! What an execution does to memory, as it is told.

use vsrun_model::library::{Does, Function, FUNCTIONS};
use vsrun_model::watch::{Entry, Record};
use vsrun_model::{Pid, Tid};

/// One access to memory, of all bytes from `address` on that lie within one execution's log entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Whose memory: that of a process, or one that processes share.
    pub space: u32,
    /// Where; for what processes share, the place in the mapping and not the address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// It writes.
    pub write: bool,
    /// Atomic: a LOCK prefix, or xchg.
    pub locked: bool,
    /// The instruction: its number among the access sites.
    pub site: u32,
}

impl Access {
    /// This one and those `stride`, `2 * stride`, .. bytes behind it, `times` in all.
    pub fn run(self, times: u32, stride: i64) -> impl Iterator<Item = Access> {
        let of = move |n: i64| Access { address: self.address.wrapping_add_signed(n * stride), ..self };
        (0..i64::from(times)).map(of)
    }

    /// All memory from the lowest to the highest byte of [`run`](Access::run), as one access.
    pub fn whole(self, times: u32, stride: i64) -> Access {
        let last = i64::from(times.saturating_sub(1)) * stride;
        let address = self.address.wrapping_add_signed(last.min(0));
        Access { address, size: last.unsigned_abs() + self.size, ..self }
    }

    /// The same as accesses that have bytes in the same words, and in no others, as those of [`run`](Access::run) if `granule` is that of
    /// words, and likewise for pages and what else memory is told apart by: all of it at once where no granule of that many bytes is left out.
    pub fn covering(self, times: u32, stride: i64, granule: u64) -> impl Iterator<Item = Access> {
        let dense = stride.unsigned_abs() <= self.size.max(granule);
        let (first, times) = if dense { (self.whole(times, stride), 1) } else { (self, times) };
        first.run(times, stride)
    }

    /// The order of both can be told, if nothing else orders them.
    pub fn conflicts(&self, other: &Access) -> bool {
        let apart = self.address + self.size <= other.address || other.address + other.size <= self.address;
        self.space == other.space && !apart && (self.write || other.write)
    }

    /// It is made by a function that frees blocks.
    pub fn frees(&self) -> bool {
        self.function().is_some_and(|function| matches!(function.name, "free" | "realloc" | "reallocarray"))
    }

    /// It is the use of a lock, a semaphore or the like, by which no data is read.
    pub fn is_of_object(&self) -> bool {
        const OBJECTS: [&str; 6] =
            ["pthread_mutex_", "pthread_cond_", "pthread_rwlock_", "pthread_spin_", "pthread_barrier_", "sem_"];
        let concerns = |function: &Function| OBJECTS.iter().any(|of| function.name.starts_with(of));
        !self.write && self.function().is_some_and(|function| function.does == Does::Nothing && concerns(function))
    }

    /// The function of libc that makes it, if one does.
    fn function(&self) -> Option<&'static Function> {
        FUNCTIONS.get((self.site & !Entry::FUNCTION) as usize).filter(|_| self.site & Entry::FUNCTION != 0)
    }
}

/// What a thread says of who may use memory: what changes an exclusive access predicate (Stoller and Cohen, Section 1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// From here on it alone (VS_own).
    Owns,
    /// From here on nobody (VS_disown).
    Disowns,
    /// From here on that thread alone; `None`: whoever uses or owns it next (VS_hand_over).
    HandsOver(Option<Tid>),
}

impl Claim {
    /// What stands for it where an access has the number of its instruction, if it is made by the instruction `at`, too.
    pub fn site(self, at: Option<u32>) -> u32 {
        let what = match self {
            Claim::Owns => Record::OWNS,
            Claim::Disowns => Record::DISOWNS,
            Claim::HandsOver(_) => Record::HANDS_OVER,
        };
        let at = at
            .and_then(|at| at.checked_add(1))
            .filter(|at| *at < 1 << (Entry::CLAIM.trailing_zeros() - Entry::CLAIM_AT));
        Entry::CLAIM | what | at.unwrap_or(0) << Entry::CLAIM_AT
    }

    /// The name in `vs.h` of what `site` stands for; `None`: that is no claim.
    pub fn name(site: u32) -> Option<&'static str> {
        match site.checked_sub(Entry::CLAIM)? & Record::KIND {
            Record::OWNS => Some("VS_own"),
            Record::DISOWNS => Some("VS_disown"),
            Record::HANDS_OVER => Some("VS_hand_over"),
            _ => None,
        }
    }

    /// The instruction that makes it, of what `site` stands for.
    pub fn at(site: u32) -> Option<u32> {
        (site.checked_sub(Entry::CLAIM)? >> Entry::CLAIM_AT).checked_sub(1)
    }
}

/// What the log of an execution says, in the order in which it came about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Note {
    /// `thread` begins to run. What `creator` has done so far is before it; what it does from now on is not.
    Begins {
        /// The new thread, or the first one of a new process.
        thread: Tid,
        /// Who has created it.
        creator: Tid,
        /// Its process.
        process: Pid,
        /// The process that created its process, or [`NONE`](vsrun_model::NONE).
        parent: Pid,
    },
    /// The transition of that index in the trace is made, by its thread.
    Step {
        /// Index in [`crate::trace::Trace::steps`].
        index: u32,
    },
    /// `thread` has come to its end: whoever waits for that has all it did before it. Not said of one that another one has ended.
    Ends {
        /// The thread.
        thread: Tid,
    },
    /// `thread` touches memory, after its last step and before its next one.
    Touches {
        /// The thread.
        thread: Tid,
        /// What.
        access: Access,
    },
    /// `thread` touches memory so many times, the first time as `access` says, and then each time at the same distance from the time before.
    Runs {
        /// The thread.
        thread: Tid,
        /// The first one.
        access: Access,
        /// How many there are.
        times: u32,
        /// Bytes from each to the next one, less than 0 if that lies below; the access's own size if they lie side by side.
        stride: i64,
    },
    /// `thread` says who may use memory from here on.
    Claims {
        /// Who says it.
        thread: Tid,
        /// As in [`Access`].
        space: u32,
        #[allow(missing_docs)]
        address: u64,
        /// Bytes.
        size: u64,
        /// What.
        claim: Claim,
        /// The number of the instruction, of what an annotation file says.
        at: Option<u32>,
    },
    /// Memory is given out anew (malloc, mmap): what was done to it before is nothing to who has it now.
    Anew {
        /// Who has asked for it.
        thread: Tid,
        /// As in [`Access`].
        space: u32,
        #[allow(missing_docs)]
        address: u64,
        /// Bytes.
        size: u64,
    },
}
