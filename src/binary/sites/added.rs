//! Instructions that become sites though they need not access memory: where something else is to be done before they are executed.

use vsrun_model::watch::Operand;

use super::types::{Site, Sites, Unit, ALL_ALIVE};

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Where it is, in the file.
    pub at: u64,
    /// Its bytes, with padding behind it that nothing jumps to.
    pub room: u8,
    /// Other code jumps to it, so that nothing may lie over it that begins before it.
    pub is_target: bool,
}

impl Sites {
    /// `operand` is one more of that instruction, its last. `length`: how many bytes the instruction at an address has. `None`: one overlaps it
    /// that cannot be told from it; nothing has changed then.
    pub fn add(&mut self, i: Instruction, operand: Operand, length: &dyn Fn(u64) -> Option<u8>) -> Option<()> {
        let own = length(i.at)?;
        let behind = self.units.partition_point(|unit| unit.at <= i.at);
        let next = self.units.get(behind).map_or(u64::MAX, |unit| unit.at);
        if i.at + u64::from(own) > next {
            return None;
        }
        let room = u64::from(i.room.max(own)).min(next - i.at) as u8;
        let unit = Unit { at: i.at, count: 1, room };
        match behind.checked_sub(1).map(|n| (n, self.units[n])) {
            Some((n, over)) if over.at + u64::from(over.room) > i.at => {
                let parts = parts(&over, length)?;
                if !parts.contains(&i.at) {
                    return None;
                }
                if i.is_target && over.at != i.at {
                    let single = |at: u64| length(at).map(|room| Unit { at, count: 1, room });
                    let is_site = |at: &u64| *at == i.at || self.at(*at).is_some_and(|(_, site)| !site.repeated);
                    let singles: Option<Vec<Unit>> = parts.into_iter().filter(is_site).map(single).collect();
                    self.units.splice(n..=n, singles?);
                }
            }
            _ => self.units.insert(behind, unit),
        }
        match self.sites.binary_search_by_key(&i.at, |site| site.at) {
            Ok(n) => {
                self.sites[n].operands.push(operand);
                self.sites[n].repeated = false;
            }
            Err(n) => {
                let site = Site { at: i.at, alive: ALL_ALIVE, operands: vec![operand], repeated: false };
                self.sites.insert(n, site);
            }
        }
        Some(())
    }
}

/// Where the instructions of a unit are.
fn parts(unit: &Unit, length: &dyn Fn(u64) -> Option<u8>) -> Option<Vec<u64>> {
    let mut at = unit.at;
    let mut all = Vec::new();
    for _ in 0..unit.count {
        all.push(at);
        at += u64::from(length(at)?);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Instructions at 0, 3, 5, 9, 10; the second and the third are sites, the first three a unit.
    fn sites() -> Sites {
        let site = |at| Site { at, alive: 0, operands: vec![Operand::OF_FENCE], repeated: at == 5 };
        let units = vec![Unit { at: 0, count: 3, room: 9 }, Unit { at: 10, count: 1, room: 4 }];
        Sites { sites: vec![site(3), site(5), site(10)], units, ..Sites::default() }
    }

    fn length(at: u64) -> Option<u8> {
        [(0, 3), (3, 2), (5, 4), (9, 1), (10, 4)].into_iter().find(|(a, _)| *a == at).map(|(_, n)| n)
    }

    #[test]
    fn what_is_added() {
        let operand = Operand { flags: Operand::CLAIMS, ..Operand::OF_FENCE };
        let add = |sites: &mut Sites, at, room, is_target| {
            let added = sites.add(Instruction { at, room, is_target }, operand, &length);
            assert!(sites.is_ordered());
            added
        };
        let mut all = sites();
        // At the beginning of a unit, and where none is.
        add(&mut all, 0, 3, true).unwrap();
        assert_eq!((all.sites[0].at, all.units.len()), (0, 2));
        add(&mut all, 9, 8, false).unwrap();
        assert_eq!(all.units[1], Unit { at: 9, count: 1, room: 1 });
        assert_eq!(all.at(9).unwrap().1.operands, [operand]);
        // Inside of a unit what is jumped to ends it; what repeats an access no more.
        add(&mut all, 5, 4, true).unwrap();
        let singles: Vec<_> = all.units.iter().map(|u| (u.at, u.count, u.room)).collect();
        assert_eq!(singles, [(0, 1, 3), (3, 1, 2), (5, 1, 4), (9, 1, 1), (10, 1, 4)]);
        assert_eq!(all.at(5).unwrap().1.operands, [Operand::OF_FENCE, operand]);
        assert!(!all.at(5).unwrap().1.repeated);
        // What nothing jumps to stays in it.
        let mut all = sites();
        add(&mut all, 3, 2, false).unwrap();
        assert_eq!((all.units.len(), all.sites.len()), (2, 3));
        // No instruction begins there.
        assert!(add(&mut all, 4, 1, true).is_none() && add(&mut all, 7, 1, true).is_none());
        assert_eq!(all.sites.len(), 3);
    }
}
