//! Parts of global variables by name, from the types in debug information: `bank[1].lock` for what lies 48 bytes behind `bank`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use gimli::constants as dw;
use gimli::{AttributeValue, DebuggingInformationEntry, Operation, Reader, Unit, UnitOffset};

use super::debuginfo::{Bytes, Dwarf};

/// Types that are followed from a variable to a part of it: more than nested types of a program have.
const MOST_TYPES: usize = 64;
/// Members of a structure that are looked at.
const MOST_MEMBERS: usize = 4096;

type Entry<'a> = DebuggingInformationEntry<'a, 'a, Bytes>;

/// The variables of a file with a fixed address.
#[derive(Default)]
pub(super) struct Variables {
    /// The units in which they are.
    units: Vec<(Arc<Dwarf>, Unit<Bytes>)>,
    /// By address: the unit and the entry.
    all: BTreeMap<u64, (usize, UnitOffset)>,
}

impl Variables {
    /// Adds those of a unit.
    ///
    /// # Errors
    /// It is damaged: those before the damage are there.
    pub fn add(&mut self, dwarf: &Arc<Dwarf>, unit: Unit<Bytes>) -> gimli::Result<()> {
        let number = self.units.len();
        let found = find(dwarf, &unit, |address, entry| {
            self.all.entry(address).or_insert((number, entry));
        });
        self.units.push((dwarf.clone(), unit));
        found
    }

    /// What lies `offset` bytes behind the start of the variable at `address`: `[1].lock`, and bytes behind the start of that. `None`:
    /// nothing is known of it.
    pub fn part(&self, address: u64, offset: u64) -> Option<(String, u64)> {
        let &(unit, entry) = self.all.get(&address)?;
        let (dwarf, unit) = &self.units[unit];
        let of = Types { dwarf, unit };
        let kind = of.type_of(entry)?;
        Some(of.part(kind, offset))
    }
}

/// Calls `found` with the address and entry of each variable that has one.
fn find(dwarf: &Dwarf, unit: &Unit<Bytes>, mut found: impl FnMut(u64, UnitOffset)) -> gimli::Result<()> {
    let mut entries = unit.entries_raw(None)?;
    while !entries.is_empty() {
        let at = entries.next_offset();
        let Some(abbreviation) = entries.read_abbreviation()? else { continue };
        if abbreviation.tag() != dw::DW_TAG_variable {
            entries.skip_attributes(abbreviation.attributes())?;
            continue;
        }
        for specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(*specification)?;
            if let (dw::DW_AT_location, AttributeValue::Exprloc(place)) = (attribute.name(), attribute.value()) {
                let mut operations = place.operations(unit.encoding());
                let address = match operations.next()? {
                    Some(Operation::Address { address }) => Some(address),
                    Some(Operation::AddressIndex { index }) => dwarf.address(unit, index).ok(),
                    _ => None,
                };
                let alone = operations.next()?.is_none();
                address.filter(|_| alone).into_iter().for_each(|address| found(address, at));
            }
        }
    }
    Ok(())
}

/// The types of a unit.
struct Types<'a> {
    dwarf: &'a Dwarf,
    unit: &'a Unit<Bytes>,
}

impl Types<'_> {
    fn entry(&self, at: UnitOffset) -> Option<Entry<'_>> {
        self.unit.entry(at).ok()
    }

    /// What another entry of this unit an attribute refers to.
    fn reference(&self, entry: &Entry, name: gimli::DwAt) -> Option<UnitOffset> {
        match entry.attr_value(name).ok()?? {
            AttributeValue::UnitRef(at) => Some(at),
            AttributeValue::DebugInfoRef(at) => at.to_unit_offset(&self.unit.header),
            _ => None,
        }
    }

    fn number(&self, entry: &Entry, name: gimli::DwAt) -> Option<u64> {
        entry.attr_value(name).ok()??.udata_value()
    }

    fn name(&self, entry: &Entry) -> Option<String> {
        let name = self.dwarf.attr_string(self.unit, entry.attr_value(dw::DW_AT_name).ok()??).ok()?;
        Some(name.to_string_lossy().ok()?.into_owned())
    }

    /// The type of a variable or member; that of its declaration, if it has one elsewhere.
    fn type_of(&self, at: UnitOffset) -> Option<UnitOffset> {
        let entry = self.entry(at)?;
        self.reference(&entry, dw::DW_AT_type).or_else(|| {
            let declared = self.entry(self.reference(&entry, dw::DW_AT_specification)?)?;
            self.reference(&declared, dw::DW_AT_type)
        })
    }

    /// The type that is behind names and qualifiers.
    fn plain(&self, mut at: UnitOffset) -> Option<Entry<'_>> {
        for _ in 0..MOST_TYPES {
            let entry = self.entry(at)?;
            match entry.tag() {
                dw::DW_TAG_typedef | dw::DW_TAG_const_type | dw::DW_TAG_volatile_type | dw::DW_TAG_atomic_type => {
                    at = self.reference(&entry, dw::DW_AT_type)?;
                }
                _ => return Some(entry),
            }
        }
        None
    }

    /// Bytes of a type.
    fn size(&self, at: UnitOffset) -> Option<u64> {
        let entry = self.plain(at)?;
        if entry.tag() != dw::DW_TAG_array_type {
            return self.number(&entry, dw::DW_AT_byte_size);
        }
        let element = self.size_of_element(&entry)?;
        self.counts(&entry).into_iter().try_fold(element, u64::checked_mul)
    }

    /// Bytes of an element of an array; that it is an array itself has no place in debug information.
    fn size_of_element(&self, array: &Entry) -> Option<u64> {
        let element = self.plain(self.reference(array, dw::DW_AT_type)?)?;
        self.number(&element, dw::DW_AT_byte_size)
    }

    /// How many elements an array has in each dimension.
    fn counts(&self, array: &Entry) -> Vec<u64> {
        let bound = |entry: &Entry| {
            let last = || self.number(entry, dw::DW_AT_upper_bound)?.checked_add(1);
            (entry.tag() == dw::DW_TAG_subrange_type)
                .then(|| self.number(entry, dw::DW_AT_count).or_else(last).unwrap_or(u64::MAX))
        };
        self.children(array.offset(), bound)
    }

    /// What `of` gives of the entries directly below one.
    fn children<T>(&self, at: UnitOffset, of: impl Fn(&Entry) -> Option<T>) -> Vec<T> {
        let mut all = Vec::new();
        let Ok(mut tree) = self.unit.entries_tree(Some(at)) else { return all };
        let Ok(root) = tree.root() else { return all };
        let mut children = root.children();
        while let Ok(Some(child)) = children.next() {
            all.extend(of(child.entry()));
            if all.len() >= MOST_MEMBERS {
                break;
            }
        }
        all
    }

    /// The part of a value of type `at` that lies at `offset`, as far as it has a name that is not reserved for the implementation, and
    /// bytes behind its start.
    fn part(&self, mut at: UnitOffset, mut offset: u64) -> (String, u64) {
        let mut path = String::new();
        for _ in 0..MOST_TYPES {
            let Some(entry) = self.plain(at) else { break };
            let next = match entry.tag() {
                dw::DW_TAG_structure_type | dw::DW_TAG_class_type => self.member(&entry, offset),
                dw::DW_TAG_array_type => self.element(&entry, offset),
                _ => None,
            };
            let Some((name, kind, rest)) = next else { break };
            path += &name;
            (at, offset) = (kind, rest);
        }
        (path, offset)
    }

    /// The member of a structure, or the structure that it inherits, that lies there: what it adds to the name, its type, the bytes behind
    /// its start.
    fn member(&self, structure: &Entry, offset: u64) -> Option<(String, UnitOffset, u64)> {
        let of = |entry: &Entry| {
            if entry.tag() != dw::DW_TAG_member && entry.tag() != dw::DW_TAG_inheritance {
                return None;
            }
            let start = self.number(entry, dw::DW_AT_data_member_location)?;
            let kind = self.reference(entry, dw::DW_AT_type)?;
            let rest = offset.checked_sub(start)?;
            (rest < self.size(kind)?).then(|| (self.name(entry), entry.tag(), kind, rest))
        };
        let (name, tag, kind, rest) = self.children(structure.offset(), of).pop()?;
        match name {
            Some(name) if name.starts_with('_') => None,
            Some(name) => Some((format!(".{name}"), kind, rest)),
            None => {
                // The members of a structure without a name are those of the one around it.
                let is_open = tag == dw::DW_TAG_inheritance || self.plain(kind)?.tag() == dw::DW_TAG_structure_type;
                is_open.then(|| (String::new(), kind, rest))
            }
        }
    }

    /// The same of an element of an array.
    fn element(&self, array: &Entry, offset: u64) -> Option<(String, UnitOffset, u64)> {
        let kind = self.reference(array, dw::DW_AT_type)?;
        let size = self.size_of_element(array).filter(|size| *size > 0)?;
        let mut index = offset / size;
        let counts = self.counts(array);
        let mut name = String::new();
        for (dimension, _) in counts.iter().enumerate() {
            let stride = counts[dimension + 1..].iter().try_fold(1, |all: u64, count| all.checked_mul(*count))?;
            let _ = write!(name, "[{}]", index.checked_div(stride)?);
            index %= stride;
        }
        Some((name, kind, offset % size))
    }
}

#[cfg(test)]
#[path = "variables_tests.rs"]
mod tests;
