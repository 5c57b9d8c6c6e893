//! What each transition of an execution did to memory.

use super::access::{Access, Note};
use super::copies;
use crate::touched::Touched;

/// What each of the `steps` transitions touched, from its operation up to the next one's of whatever thread: only the
/// thread that moves runs, and those that it creates up to their first operation. What came before the first transition
/// is left out.
pub fn by_step<N>(steps: usize, notes: N) -> Vec<Touched>
where
    N: IntoIterator<Item = Note, IntoIter: Clone>,
{
    let notes = notes.into_iter();
    let mut copied = copies::read(notes.clone());
    let mut touched = vec![Touched::default(); steps];
    let mut now = None;
    let mut add = |now: Option<usize>, access: &Access| {
        if let Some(all) = now.and_then(|n| touched.get_mut(n)) {
            all.add(access.space, access.address, access.size, access.write);
        }
    };
    for note in notes {
        match note {
            Note::Step { index } => now = Some(index as usize),
            Note::Touches { access, .. } => add(now, &access),
            Note::Runs { access, times, stride, .. } => {
                access.covering(times, stride, 1).for_each(|access| add(now, &access));
            }
            Note::Begins { process, parent, .. } => {
                let reads = copied.remove(&process).into_iter().flatten();
                reads.for_each(|access| add(now, &Access { space: parent, ..access }));
            }
            Note::Ends { .. } | Note::Anew { .. } | Note::Claims { .. } => {}
        }
    }
    touched
}
