//! Jump tables: what a switch statement becomes. Recognized by the value that the jump goes to (see [`Value`]).

use iced_x86::{Instruction, Mnemonic, OpKind};

use super::images::Images;
use super::value::Value;

/// No switch has more cases.
const MAX_ENTRIES: u64 = 1 << 16;
/// How many instructions before the jump the comparison with the number of cases may be.
const REACH: usize = 24;

/// A jump through a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// Where it starts.
    start: u64,
    /// From where its distances are counted; None: it holds addresses.
    base: Option<u64>,
}

impl Table {
    /// The table through which a jump to `target` goes, if that is what it does.
    pub fn of(target: Value) -> Option<Table> {
        match target {
            Value::Entry { table, wide: true } => Some(Table { start: table, base: None }),
            Value::Target { table, base } => Some(Table { start: table, base: Some(base) }),
            _ => None,
        }
    }

    fn entry(&self, images: &Images, i: u64) -> Option<u64> {
        let image = images.at(self.start)?;
        match self.base {
            None => image.pointer_at(self.start.checked_add(8 * i)?),
            Some(base) => {
                let distance = image.u32_at(self.start.checked_add(4 * i)?)? as i32;
                Some(base.wrapping_add(i64::from(distance) as u64))
            }
        }
    }

    /// Where the jump goes: the targets in its own function, for which `inside` holds, and others (parts of the function
    /// that the compiler has put elsewhere). `bound` is the number of entries, if known. None: it is no jump table,
    /// but one of pointers to functions.
    ///
    /// Reading on beyond the last entry does no harm, since all entries of a table lie in their function or in its
    /// other part: what is read too much is only more than there is.
    pub fn targets(
        &self,
        images: &Images,
        bound: Option<u64>,
        start: u64,
        inside: impl Fn(u64) -> bool,
    ) -> Option<Vec<u64>> {
        let mut targets = Vec::new();
        for i in 0..bound.unwrap_or(MAX_ENTRIES).min(MAX_ENTRIES) {
            let target = self.entry(images, i).filter(|t| *t != start && images.is_code(*t));
            let fits = target.filter(|t| inside(*t) || i > 0 || bound.is_some());
            match (fits, bound) {
                (Some(target), _) => targets.push(target),
                (None, None) if i > 0 => break,
                (None, _) => return None,
            }
        }
        let own = targets.iter().any(|t| inside(*t));
        targets.sort_unstable();
        targets.dedup();
        own.then_some(targets)
    }
}

/// The number of entries that the comparison before the jump at `jump` leaves, if there is one.
pub fn bound(code: &[Instruction], jump: usize) -> Option<u64> {
    for at in (jump.saturating_sub(REACH)..jump).rev() {
        let more = match code[at].mnemonic() {
            Mnemonic::Ja | Mnemonic::Jbe => 1,
            Mnemonic::Jae | Mnemonic::Jb => 0,
            _ => continue,
        };
        let compare = code[..at].iter().rev().take(3).find(|i| i.mnemonic() == Mnemonic::Cmp)?;
        let immediate = matches!(
            compare.op1_kind(),
            OpKind::Immediate8
                | OpKind::Immediate16
                | OpKind::Immediate32
                | OpKind::Immediate8to16
                | OpKind::Immediate8to32
                | OpKind::Immediate8to64
                | OpKind::Immediate32to64
        );
        return if immediate { compare.immediate(1).checked_add(more).filter(|n| *n > 0) } else { None };
    }
    None
}
