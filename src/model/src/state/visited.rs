//! States that are told apart, and those that were met: a table of hashes with open addresses. Nothing is ever taken out.

/// A state that an execution has come to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(C)]
pub struct State {
    /// Its hash. Zeros: it is not told from others.
    pub digest: [u64; 2],
    /// When the last progress before it was made, as `Progress::at`.
    pub progress: u64,
}

impl State {
    /// It is told from others.
    pub fn is_told(&self) -> bool {
        self.digest != [0; 2]
    }
}

/// Places. Pages in which there is none take no memory.
const PLACES: usize = 1 << 24;

/// A state that was met.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Place {
    /// Its hash; zeros: none.
    digest: [u64; 2],
    /// The visit that met it first.
    visit: u64,
}

/// The states that were met, and by which visit. A visit is a number whose lowest [`AGAIN`] bits say how often one execution was begun: what the same one has
/// met when it was begun before does not count.
pub type Visited = Of<PLACES>;

/// See [`Visited`]; with so many places.
#[derive(Debug)]
#[repr(C)]
pub struct Of<const N: usize> {
    /// States, those of searches before included.
    pub len: u64,
    /// The visit under way.
    visit: u64,
    /// The first one of this search: what those before it have met does not count.
    base: u64,
    /// What the search knows the execution by.
    ticket: u64,
    places: [Place; N],
}

/// See [`Visited`].
pub const AGAIN: u32 = 8;

/// What becomes of a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Met {
    /// It is new, and is noted.
    First,
    /// It was met before.
    Before,
    /// There is no room for it: it counts as new.
    NoRoom,
}

impl<const N: usize> Of<N> {
    /// Beyond so many states no more are noted, so that those that are noted are found soon.
    pub const MOST: u64 = (N / 4 * 3) as u64;

    /// An execution begins that a search knows by that ticket; `first`: it is the first one of that search. What is begun twice in a row is the same one.
    pub fn begin(&mut self, ticket: u64, first: bool) {
        let next = ((self.visit >> AGAIN) + 1) << AGAIN;
        self.visit = match !first && ticket == self.ticket {
            true => self.visit + 1,
            false => next,
        };
        if first {
            self.base = next;
        }
        self.ticket = ticket;
    }

    /// It comes to the state with that hash.
    pub fn meet(&mut self, digest: [u64; 2]) -> Met {
        let (visit, base) = (self.visit, self.base);
        let mut at = digest[0] as usize % N;
        loop {
            let place = &mut self.places[at];
            if place.digest == digest {
                let mine = place.visit >> AGAIN == visit >> AGAIN && place.visit != visit;
                if place.visit >= base && !mine {
                    return Met::Before;
                }
                place.visit = visit;
                return Met::First;
            }
            if place.digest == [0; 2] {
                if self.len >= Self::MOST {
                    return Met::NoRoom;
                }
                *place = Place { digest, visit };
                self.len += 1;
                return Met::First;
            }
            at = (at + 1) % N;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> Of<8> {
        Of { len: 0, visit: 0, base: 0, ticket: 0, places: [Place { digest: [0; 2], visit: 0 }; 8] }
    }

    #[test]
    fn what_the_same_execution_met_when_it_was_begun_before_is_new_and_what_it_meets_twice_is_not() {
        let mut visited = empty();
        visited.begin(1, true);
        assert_eq!((visited.meet([1, 2]), visited.meet([1, 2])), (Met::First, Met::Before));
        visited.begin(2, false);
        assert_eq!((visited.meet([3, 4]), visited.meet([1, 2])), (Met::First, Met::Before));
        visited.begin(2, false);
        assert_eq!((visited.meet([3, 4]), visited.meet([3, 4])), (Met::First, Met::Before));
        assert_eq!(visited.meet([1, 2]), Met::Before);
        visited.begin(3, false);
        assert_eq!((visited.meet([3, 4]), visited.len), (Met::Before, 2));
    }

    #[test]
    fn a_search_that_begins_has_met_nothing() {
        let mut visited = empty();
        visited.begin(1, true);
        assert_eq!(visited.meet([1, 2]), Met::First);
        for _ in 0..2 {
            visited.begin(1, true);
            assert_eq!((visited.meet([1, 2]), visited.meet([1, 2])), (Met::First, Met::Before));
        }
        assert_eq!(visited.len, 1);
    }

    #[test]
    fn states_whose_places_are_taken_are_told_apart_until_there_is_no_room() {
        let mut visited = empty();
        visited.begin(1, true);
        assert!((0..6).all(|n| visited.meet([7, n]) == Met::First));
        visited.begin(2, false);
        assert!((0..6).all(|n| visited.meet([7, n]) == Met::Before));
        assert_eq!((visited.meet([7, 6]), visited.len), (Met::NoRoom, 6));
    }
}
