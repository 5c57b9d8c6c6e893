//! Vector clocks over the steps of one execution.

/// By thread number, 1 + the index of the last step of that thread that happened before; 0: none.
pub type Clock = Vec<u32>;

/// True if the step at `index` by thread number `thread` is in `clock`.
pub fn contains(clock: &[u32], thread: u32, index: usize) -> bool {
    clock.get(thread as usize).is_some_and(|&c| c as usize > index)
}

/// Adds what is in `other`.
pub fn join(clock: &mut Clock, other: &[u32]) {
    if clock.len() < other.len() {
        clock.resize(other.len(), 0);
    }
    for (c, &o) in clock.iter_mut().zip(other) {
        *c = (*c).max(o);
    }
}

/// Adds the step at `index` by thread number `thread`.
pub fn add(clock: &mut Clock, thread: u32, index: usize) {
    let at = thread as usize;
    if clock.len() <= at {
        clock.resize(at + 1, 0);
    }
    clock[at] = index as u32 + 1;
}
