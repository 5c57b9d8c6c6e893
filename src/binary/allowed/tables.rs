//! Jump tables: what a switch statement becomes. Recognized by the value that the jump goes to (see [`Value`]).

use iced_x86::{Code, Decoder, DecoderOptions};

use super::images::Images;
use super::value::Value;

/// No switch has more cases.
const MAX_ENTRIES: u64 = 1 << 16;

/// A jump through a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Table {
    /// Where it starts.
    pub start: u64,
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

    /// Where the jump goes: the targets in its own function, for which `inside` holds, and those in parts of the function
    /// that the compiler has put elsewhere. None: it is no jump table, but one of pointers to functions.
    ///
    /// How many entries there are is not looked for. All entries lead into the function or its other parts, so the first
    /// that does not is beyond the last; what is read too much is only more than there is. So is one that leads to `but`, if
    /// that is given: the start of the function, to which pointers to functions lead.
    pub fn targets(&self, images: &Images, but: Option<u64>, inside: impl Fn(u64) -> bool) -> Option<Vec<u64>> {
        let entries = (0..MAX_ENTRIES).map_while(|i| self.entry(images, i));
        let mut targets: Vec<u64> =
            entries.take_while(|t| Some(*t) != but && (inside(*t) || is_in_part(images, *t))).collect();
        targets.sort_unstable();
        targets.dedup();
        targets.iter().any(|t| inside(*t)).then_some(targets)
    }
}

/// Whether `address` may be in a part of a function that is kept apart from it: by its name, or, where there are no
/// names, if an instruction starts there.
fn is_in_part(images: &Images, address: u64) -> bool {
    let Some(image) = images.at(address) else { return false };
    let Some(extent) = image.extents.at(address) else { return false };
    if let Some(name) = &extent.name {
        return name.contains(".cold");
    }
    let bytes = image.tail(extent.start);
    let len = bytes.len().min(usize::try_from(address - extent.start).unwrap_or(usize::MAX));
    let decoder = Decoder::with_ip(64, &bytes[..len], extent.start, DecoderOptions::NONE);
    decoder.into_iter().all(|i| i.code() != Code::INVALID)
}
