//! All analysed files of a process together: where an address lies, what a symbol means, what a constant word holds.

use std::collections::{BTreeMap, BTreeSet};

use super::dynamic::Word;
use super::image::Image;

/// What a call leads to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Callee {
    /// Code of an analysed file.
    Code(u64),
    /// A function of a file that is not analysed, or of none.
    External(String),
    /// One that a function at this address chooses at run time.
    Chosen(u64),
}

/// A constant word of memory.
pub enum Constant {
    /// An address of data, or of code in the same file.
    Address(u64),
    /// The address of a function, by the slot that holds it.
    Slot,
}

/// The analysed files, the program first.
pub struct Images {
    all: Vec<Image>,
    /// Where a symbol is defined: all places, in the order of the files.
    definitions: BTreeMap<String, Vec<u64>>,
    /// What the relocated words hold, as the addresses of functions.
    slots: BTreeMap<u64, Vec<Callee>>,
    /// Slots of functions that do something with their arguments.
    particular: BTreeSet<u64>,
    /// Entries of procedure linkage tables: code address and slot.
    stubs: BTreeMap<u64, u64>,
    /// Names that files without analysis define and that are known to do nothing visible.
    pub harmless: BTreeSet<String>,
}

impl Images {
    /// The files in the order in which the loader looks for symbols, the program first.
    pub fn new(all: Vec<Image>, harmless: BTreeSet<String>) -> Images {
        let mut definitions: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for image in &all {
            for (name, at) in image.exports() {
                definitions.entry(name.clone()).or_default().push(*at);
            }
        }
        // What the program itself defines is what everybody gets.
        for name in all.first().into_iter().flat_map(|program| program.exports().keys()) {
            if let Some(places) = definitions.get_mut(name) {
                places.truncate(1);
            }
        }
        let mut images = Images {
            all,
            definitions,
            harmless,
            slots: BTreeMap::new(),
            particular: BTreeSet::new(),
            stubs: BTreeMap::new(),
        };
        let mut slots = BTreeMap::new();
        for image in &images.all {
            let callees = image.dynamic.words.iter().filter(|(_, w)| !matches!(w, Word::Address(_)));
            let own = image.dynamic.slots.iter().filter_map(|at| image.dynamic.words.get_key_value(at));
            slots.extend(callees.chain(own).map(|(at, word)| (*at, images.find_callees(word))));
        }
        let particular = |c: &Callee| matches!(c, Callee::External(name) if super::names::uses_arguments(name));
        let with = slots.iter().filter(|(_, callees): &(&u64, &Vec<Callee>)| callees.iter().any(particular));
        images.particular = with.map(|(at, _)| *at).collect();
        images.slots = slots;
        images.stubs = images.all.iter().flat_map(stubs).collect();
        images
    }

    /// The files.
    pub fn all(&self) -> &[Image] {
        &self.all
    }

    /// The file at `address`.
    pub fn at(&self, address: u64) -> Option<&Image> {
        self.all.iter().find(|i| i.contains(address))
    }

    /// Whether analysed code lies at `address`.
    pub fn is_code(&self, address: u64) -> bool {
        self.at(address).is_some_and(|i| i.is_code(address))
    }

    /// Where the symbol is defined: all analysed places.
    pub fn definitions(&self, name: &str) -> &[u64] {
        self.definitions.get(name).map_or(&[], Vec::as_slice)
    }

    /// Whether any of the files imports `name`.
    pub fn imports(&self, name: &str) -> bool {
        self.all.iter().any(|i| i.dynamic.imports.contains(name))
    }

    /// What the loader may have put into the word at `at` as the address of a function.
    pub fn callees(&self, at: u64) -> &[Callee] {
        self.slots.get(&at).map_or(&[], Vec::as_slice)
    }

    /// The same before it is known for all words.
    fn find_callees(&self, word: &Word) -> Vec<Callee> {
        match word {
            Word::Address(target) => vec![Callee::Code(*target)],
            Word::Chosen(resolver) => vec![Callee::Chosen(*resolver)],
            Word::Symbol(name, _) => self.named(name),
        }
    }

    /// What the function `name` may be. A library of the program that defines a name of libc may come before or after
    /// libc, hence both.
    fn named(&self, name: &str) -> Vec<Callee> {
        let places = self.definitions(name);
        let chosen = self.all.iter().any(|i| i.dynamic.chosen.contains(name));
        let code = |at: &u64| if chosen { Callee::Chosen(*at) } else { Callee::Code(*at) };
        let mut callees: Vec<Callee> = places.iter().map(code).collect();
        if self.all.iter().any(|i| i.dynamic.variables.contains(name)) {
            return callees;
        }
        let own = self.all.first().is_some_and(|program| program.exports().contains_key(name));
        if places.is_empty() || !own && super::names::effects(name).is_some() {
            callees.push(Callee::External(name.to_string()));
        }
        callees
    }

    /// Whether the arguments of a call through the slot at `at` matter.
    pub fn uses_arguments(&self, at: u64) -> bool {
        self.particular.contains(&at)
    }

    /// Whether a call through the slot at `at` does not come back.
    pub fn never_returns(&self, at: u64) -> bool {
        matches!(self.callees(at), [Callee::External(name)] if super::names::never_returns(name))
    }

    /// What the word at `at` always holds, if that is known.
    pub fn constant(&self, at: u64) -> Option<Constant> {
        let image = self.at(at)?;
        let slot = image.dynamic.slots.contains(&at);
        if !slot && !image.is_constant(at) {
            return None;
        }
        match image.dynamic.words.get(&at) {
            Some(Word::Address(target)) => Some(Constant::Address(*target)),
            Some(Word::Chosen(_)) => Some(Constant::Slot),
            Some(Word::Symbol(name, addend)) => match self.definitions(name) {
                [place] if !self.is_code(*place) => Some(Constant::Address(place.wrapping_add(*addend))),
                _ => Some(Constant::Slot),
            },
            None if image.relocatable => None,
            None => image.u64_at(at).map(Constant::Address),
        }
    }

    /// The slot through which the code at `address` jumps, if that is all it does: an entry of a procedure linkage
    /// table.
    pub fn stub(&self, address: u64) -> Option<u64> {
        self.stubs.get(&address).copied()
    }

    /// What people call the function at `address`.
    pub fn function_name(&self, address: u64) -> String {
        self.at(address).map_or_else(|| format!("{address:#x}"), |i| i.function_name(address))
    }
}

/// Every `jmp [rip + slot]`, perhaps after a `bnd` prefix and an `endbr64`, with its slot. One in the middle of a function
/// does the same if it is called.
fn stubs(image: &Image) -> Vec<(u64, u64)> {
    const JUMP: [u8; 2] = [0xff, 0x25];
    const ENDBR: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
    const BND: u8 = 0xf2;
    let mut found = Vec::new();
    for (start, bytes) in image.code() {
        for n in (0..bytes.len()).filter(|n| bytes[*n] == JUMP[0]) {
            let Some(jump) = bytes.get(n..n + 6).filter(|jump| jump[1] == JUMP[1]) else { continue };
            let distance = i32::from_le_bytes(jump[2..].try_into().unwrap_or_default());
            let slot = start.wrapping_add(n as u64 + 6).wrapping_add(i64::from(distance) as u64);
            if !image.dynamic.slots.contains(&slot) {
                continue;
            }
            let mut first = n;
            found.push((start + first as u64, slot));
            if bytes[..first].last() == Some(&BND) {
                first -= 1;
                found.push((start + first as u64, slot));
            }
            if bytes[..first].ends_with(&ENDBR) {
                found.push((start + first as u64 - 4, slot));
            }
        }
    }
    found
}
