//! Where functions start and end: by symbols, and by the call frame information, which stripped programs keep.

use std::collections::BTreeMap;

use super::super::symbols::SymbolTable;
use super::memory::Memory;
use super::unwind;

/// A function, or a part of one that the compiler has put elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First address.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// As the file has it.
    pub name: Option<String>,
    /// Where the table of its landing pads lies.
    pub handlers: Option<u64>,
    /// A symbol's size or the call frame information says where it ends.
    pub bounded: bool,
}

/// The functions of an image by their first address.
#[derive(Debug, Default)]
pub struct Extents(BTreeMap<u64, Extent>);

impl Extents {
    /// Takes the functions that `symbols` name and those that the call frame information covers, whose header lies
    /// at `frames`.
    pub fn read(image: &Memory, symbols: Option<&SymbolTable>, frames: Option<u64>) -> Extents {
        let mut all = Extents::default();
        let functions = symbols.map_or(&[][..], |s| &s.functions);
        let bias = image.bias;
        for f in functions.iter().filter(|f| f.sized) {
            all.add(image, f.start.wrapping_add(bias), f.end.wrapping_add(bias), Some(&f.name), true);
        }
        let frames = frames.map(|at| unwind::frames(image, at)).unwrap_or_default();
        // Where they cannot be believed any function may have landing pads.
        if !frames.sound {
            all.0.values_mut().for_each(|extent| extent.handlers = Some(unwind::UNKNOWN));
        }
        for frame in frames.all.iter().filter(|_| frames.sound) {
            // Symbols say better where functions begin than what begins inside of one.
            match all.start_of(frame.start).filter(|&start| start != frame.start && all.0[&start].name.is_some()) {
                Some(around) => {
                    let handlers = frame.handlers.map(|_| unwind::UNKNOWN);
                    all.0.entry(around).and_modify(|extent| extent.handlers = extent.handlers.or(handlers));
                }
                None => {
                    all.add(image, frame.start, frame.end, None, true);
                    if let Some(extent) = all.0.get_mut(&frame.start) {
                        extent.handlers = frame.handlers;
                    }
                }
            }
        }
        // Labels of assembly code say where something starts, unless it is in the middle of something.
        for f in functions.iter().filter(|f| !f.sized) {
            let start = f.start.wrapping_add(bias);
            if all.starts_at(start) || all.at(start).is_none() {
                let end = all.0.get(&start).map_or(f.end.wrapping_add(bias), |known| known.end);
                all.add(image, start, end, Some(&f.name), false);
            }
        }
        all
    }

    fn add(&mut self, image: &Memory, start: u64, end: u64, name: Option<&String>, bounded: bool) {
        if start >= end || !image.is_code(start) {
            return;
        }
        let new = Extent { start, end, name: None, handlers: None, bounded: false };
        let extent = self.0.entry(start).or_insert(new);
        extent.end = extent.end.max(end);
        extent.bounded |= bounded;
        extent.name = extent.name.take().or_else(|| name.cloned());
    }

    /// All of them, ascending, each up to where the next one starts.
    pub fn all(&self) -> impl Iterator<Item = Extent> + '_ {
        let next = self.0.keys().skip(1).copied().chain([u64::MAX]);
        self.0.values().zip(next).map(|(e, next)| Extent { end: e.end.min(next), ..e.clone() })
    }

    /// The function around `address`; it ends where the next one starts.
    pub fn at(&self, address: u64) -> Option<Extent> {
        let extent = self.0.range(..=address).next_back().map(|(_, e)| e).filter(|e| address < e.end)?;
        let next = self.start_after(extent.start);
        Some(Extent { end: next.map_or(extent.end, |next| extent.end.min(next)), ..extent.clone() })
    }

    /// Where the function around `address` starts.
    pub fn start_of(&self, address: u64) -> Option<u64> {
        self.0.range(..=address).next_back().map(|(_, e)| e).filter(|e| address < e.end).map(|e| e.start)
    }

    /// Whether a function starts at `address`.
    pub fn starts_at(&self, address: u64) -> bool {
        self.0.contains_key(&address)
    }

    /// Where the first function after `address` starts.
    pub fn start_after(&self, address: u64) -> Option<u64> {
        self.0.range(address.checked_add(1)?..).next().map(|(start, _)| *start)
    }

    /// The function named `name`.
    pub fn named(&self, name: &str) -> Option<u64> {
        self.0.values().find(|e| e.name.as_deref() == Some(name)).map(|e| e.start)
    }
}
