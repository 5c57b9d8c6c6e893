//! What ends an execution that is under way, and the start of a program, beside a request to end vsrun.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Set from any thread; workers look at it at each tick.
#[derive(Debug, Default)]
pub struct Halt {
    now: AtomicBool,
    until: Mutex<Option<Instant>>,
}

impl Halt {
    /// From now on.
    pub fn set(&self) {
        self.now.store(true, Ordering::Relaxed);
    }

    /// Not before `until`; `None`: at no time.
    pub fn put_off(&self, until: Option<Instant>) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
        self.now.store(false, Ordering::Relaxed);
    }

    /// It is time to stop.
    pub fn is_due(&self) -> bool {
        self.is_due_but(None)
    }

    /// The same for one who may go on until `grace`, whatever the time for the others.
    pub fn is_due_but(&self, grace: Option<Instant>) -> bool {
        let until = || *self.until.lock().unwrap_or_else(PoisonError::into_inner);
        let over = |until: Instant| Instant::now() >= grace.map_or(until, |grace| grace.max(until));
        self.now.load(Ordering::Relaxed) || until().is_some_and(over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn when_it_is_due() {
        let halt = Halt::default();
        assert!(!halt.is_due());
        halt.set();
        assert!(halt.is_due());
        halt.put_off(Some(Instant::now() + Duration::from_secs(1000)));
        assert!(!halt.is_due());
        halt.put_off(Some(Instant::now()));
        assert!(halt.is_due() && !halt.is_due_but(Some(Instant::now() + Duration::from_secs(1000))));
        assert!(halt.is_due_but(Some(Instant::now())));
        // Somebody wants an end.
        halt.set();
        assert!(halt.is_due_but(Some(Instant::now() + Duration::from_secs(1000))));
        halt.put_off(Some(Instant::now()));
        halt.put_off(None);
        assert!(!halt.is_due());
    }
}
