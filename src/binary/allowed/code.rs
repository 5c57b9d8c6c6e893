//! The code of a program: its files, what its functions do, which addresses of them are taken.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::dynamic::Word;
use super::extents::Extent;
use super::function::{self, Summary};
use super::image::Image;
use super::images::{Callee, Images};
use super::names::{self, START_THREAD, THREAD_STATE};

/// What a function does when it is entered at these places besides its start.
type Entered = (BTreeSet<u64>, Arc<Summary>);

/// The analysed files of a program and what is known of their functions.
pub struct Code {
    images: Images,
    /// Code and slots whose addresses lie in data or are taken by code that may run.
    pub taken: BTreeSet<Callee>,
    /// Functions inside of which an address lies that is in data or taken: jumps may go to such labels.
    labelled: BTreeSet<u64>,
    /// Bodies of `std::thread`s; None: any function whose address is taken.
    pub bodies: Option<BTreeSet<u64>>,
    /// A thread may wait for a lock of libc's own.
    pub libc_locks: bool,
    /// Classes of the program take the place of those of the C++ library.
    pub derives: bool,
    /// By function, with the places at which others enter it.
    summaries: Mutex<BTreeMap<u64, Vec<Entered>>>,
}

impl Code {
    /// What the files say by themselves.
    pub fn new(images: Images) -> Code {
        let mut code = Code {
            taken: BTreeSet::new(),
            labelled: BTreeSet::new(),
            bodies: thread_bodies(&images),
            libc_locks: names::holds_libc_locks(|name| images.imports(name)),
            derives: images.all().iter().flat_map(|i| &i.dynamic.imports).any(|name| names::derives(name)),
            summaries: Mutex::default(),
            images,
        };
        code.take_from_data();
        code
    }

    /// The files.
    pub fn images(&self) -> &Images {
        &self.images
    }

    /// Notes that code that may run takes these addresses.
    pub fn take_all(&mut self, taken: BTreeSet<Callee>) {
        for callee in taken {
            match callee {
                Callee::Code(target) => self.take(target),
                other => drop(self.taken.insert(other)),
            }
        }
    }

    /// Grows when more is taken.
    pub fn size(&self) -> (usize, usize) {
        (self.taken.len(), self.labelled.len())
    }

    /// What the function at `start` does, entered there and at `entries`. None: there is no code.
    pub fn summary(&self, start: u64, entries: &BTreeSet<u64>) -> Option<Arc<Summary>> {
        let mut summaries = self.summaries.lock().unwrap_or_else(PoisonError::into_inner);
        let known = summaries.get(&start).into_iter().flatten().find(|(at, _)| at == entries);
        if let Some((_, summary)) = known {
            return Some(summary.clone());
        }
        let image = self.images.at(start).filter(|i| i.is_code(start))?;
        let extent = extent(image, start);
        let labelled = self.labelled.contains(&extent.start);
        let summary = Arc::new(function::analyse(&self.images, image, &extent, entries, labelled));
        summaries.entry(start).or_default().push((entries.clone(), summary.clone()));
        Some(summary)
    }

    /// The start of the function around `address`.
    pub fn start_of(&self, address: u64) -> u64 {
        self.images.at(address).and_then(|image| image.extents.start_of(address)).unwrap_or(address)
    }

    /// Notes that something holds the address of the code at `target`.
    fn take(&mut self, target: u64) {
        let Some(image) = self.images.at(target).filter(|i| i.is_code(target)) else { return };
        let start = image.extents.start_of(target).unwrap_or(target);
        if start == target {
            self.taken.insert(Callee::Code(target));
        } else if self.labelled.insert(start) {
            // What is known of the function holds no longer.
            self.summaries.get_mut().unwrap_or_else(PoisonError::into_inner).remove(&start);
        }
    }

    /// Finds the addresses of code in the data of all files.
    fn take_from_data(&mut self) {
        let mut found = BTreeSet::new();
        let mut named = BTreeSet::new();
        for image in self.images.all() {
            let special =
                |at: u64| image.dynamic.arrays.iter().any(|r| r.contains(&at)) || image.dynamic.slots.contains(&at);
            for (at, word) in image.dynamic.words.iter().filter(|(at, _)| !special(**at)) {
                match word {
                    Word::Address(target) => drop(found.insert(*target)),
                    _ => named.extend(self.images.callees(*at).iter().cloned()),
                }
            }
            if !image.relocatable {
                found.extend(
                    fixed_pointers(image).into_iter().filter(|(at, _)| !special(*at)).map(|(_, target)| target),
                );
            }
        }
        for callee in named {
            match callee {
                Callee::Code(target) => self.take(target),
                // A variable of a library, as far as is known.
                Callee::External(name) if names::effects(&name).is_some_and(<[_]>::is_empty) => {}
                other => drop(self.taken.insert(other)),
            }
        }
        found.into_iter().for_each(|target| self.take_pointer(target));
    }

    /// Notes a word of data that is the address of code.
    fn take_pointer(&mut self, target: u64) {
        match self.images.stub(target) {
            Some(slot) => self.taken.extend(self.images.callees(slot).iter().cloned()),
            None => self.take(target),
        }
    }
}

/// The function around `address`. Where nothing says so: up to the next one.
fn extent(image: &Image, address: u64) -> Extent {
    image.extents.at(address).unwrap_or_else(|| {
        let end = image.extents.start_after(address).unwrap_or(u64::MAX).min(image.code_end(address));
        Extent { start: address, end, name: None, handlers: None, bounded: false }
    })
}

/// The words of data that are addresses of code, in a file that has no relocations for them, with where they lie. Code
/// does not start at odd places in data, but packed structures may, so every byte counts for starts of functions.
pub(in crate::binary) fn fixed_pointers(image: &Image) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    for (start, bytes) in image.data() {
        for (n, window) in bytes.windows(8).enumerate().skip(headers(bytes)) {
            if window[3..] != [0; 5] && window[5..] != [0; 3] {
                continue;
            }
            let (at, target) = (start + n as u64, u64::from_le_bytes(window.try_into().unwrap_or_default()));
            if target == 0 || image.dynamic.symbols.contains(&at) || !image.is_code(target) {
                continue;
            }
            if image.extents.starts_at(target) || n % 8 == 0 {
                found.push((at, target));
            }
        }
    }
    found
}

/// How many bytes the headers of an ELF file take at the start of `bytes`: no data of the program, though they tell where it starts.
fn headers(bytes: &[u8]) -> usize {
    const HEADER: usize = 64;
    const SEGMENT: usize = 56;
    const SEGMENTS_AT: usize = 32;
    const SEGMENTS: usize = 56;
    if !bytes.starts_with(b"\x7fELF") || bytes.len() < HEADER {
        return 0;
    }
    let next_to_it = bytes[SEGMENTS_AT] == HEADER as u8 && bytes[SEGMENTS_AT + 1..SEGMENTS_AT + 8] == [0; 7];
    let segments = usize::from(u16::from_le_bytes([bytes[SEGMENTS], bytes[SEGMENTS + 1]]));
    HEADER + if next_to_it { segments * SEGMENT } else { 0 }
}

/// The bodies of `std::thread`s: the third virtual function of every class that derives from `std::thread::_State`,
/// found by the type information (Itanium C++ ABI: type information is vtable, name, base; a vtable has offset, type
/// information, destructor, deleting destructor, `_M_run`). None where that does not work: no type information.
fn thread_bodies(images: &Images) -> Option<BTreeSet<u64>> {
    let mut bodies = BTreeSet::new();
    for image in images.all().iter().filter(|i| i.dynamic.imports.contains(START_THREAD)) {
        let mut own = BTreeSet::new();
        for base in words_that(
            image,
            |w| matches!(w, Some(Word::Symbol(name, 0)) if name == THREAD_STATE),
            image.exports().get(THREAD_STATE),
        ) {
            let info = base.wrapping_sub(16);
            for vtable in words_that(image, |w| w == Some(&Word::Address(info)), Some(&info)) {
                own.extend(image.pointer_at(vtable.wrapping_add(24)).filter(|body| image.is_code(*body)));
            }
        }
        if own.is_empty() {
            return None;
        }
        bodies.extend(own);
    }
    (!bodies.is_empty()).then_some(bodies)
}

/// The places of words that are relocated so, or, without relocations, hold `value`.
fn words_that(image: &Image, relocated: impl Fn(Option<&Word>) -> bool, value: Option<&u64>) -> Vec<u64> {
    let words = image.dynamic.words.iter().filter(|(at, w)| relocated(Some(w)) && !image.dynamic.slots.contains(at));
    let mut places: Vec<u64> = words.map(|(at, _)| *at).collect();
    if let Some(value) = value.filter(|_| !image.relocatable) {
        for (start, bytes) in image.data() {
            let hit = |(_, word): &(usize, &[u8])| **word == value.to_le_bytes();
            places.extend(bytes.chunks_exact(8).enumerate().filter(hit).map(|(n, _)| start + 8 * n as u64));
        }
    }
    places
}
