//! A program as its files say it is, and what its threads may do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic, OpKind, Register};
use vsrun_model::ObjKind;

use super::dynamic::Word;
use super::function::{self, Summary};
use super::image::Image;
use super::images::{Callee, Images};
use super::names::{self, START_THREAD, THREAD_STATE};
use super::reach::{Reach, Registered};
use super::{AllowedOps, AnalysisError, Cost, KindClass, Operand, ThreadBound};
use crate::binary::modules::Modules;

/// Where the kernel puts a position independent program when addresses are not randomized.
pub const PROGRAM_BASE: u64 = 0x5555_5555_4000;
/// So many sentences on why a thread may do anything are enough.
const MAX_WHY: usize = 8;

/// What a function does when it is entered at these places besides its start.
type Entered = (BTreeSet<u64>, Arc<Summary>);

/// The analysed files of a program and what is true of all its threads.
pub struct Program {
    images: Images,
    main: u64,
    /// Code and slots whose addresses lie in data or are taken by code that may run.
    pub(super) taken: BTreeSet<Callee>,
    /// Functions inside of which an address lies that is in data or taken: jumps may go to such labels.
    labelled: BTreeSet<u64>,
    /// Bodies of `std::thread`s; None: any function whose address is taken.
    pub(super) bodies: Option<BTreeSet<u64>>,
    /// What any thread may call when it or the process ends or a signal comes.
    pub(super) registered: Registered,
    /// What any thread may do because of what others do to it.
    everywhere: BTreeSet<(KindClass, Operand)>,
    /// A thread may wait for a lock of libc's own.
    pub(super) libc_locks: bool,
    /// Classes of the program take the place of those of the C++ library.
    pub(super) derives: bool,
    /// By function, with the places at which others enter it.
    summaries: Mutex<BTreeMap<u64, Vec<Entered>>>,
}

impl Program {
    /// Reads the program and the libraries with the addresses at which they are loaded: what is added to the addresses in
    /// the file. A program that is position independent is taken to be where the kernel puts it without
    /// randomization.
    ///
    /// # Errors
    /// A file cannot be read or is damaged; `main` is not found.
    pub fn load(exe: &Path, libraries: &[(PathBuf, u64)]) -> Result<Program, AnalysisError> {
        let fixed = read(exe, 0)?;
        let base = if fixed.relocatable { PROGRAM_BASE } else { 0 };
        Program::load_at(exe, base, libraries)
    }

    /// The same with the program's own load address.
    ///
    /// # Errors
    /// As for [`Program::load`].
    pub fn load_at(exe: &Path, base: u64, libraries: &[(PathBuf, u64)]) -> Result<Program, AnalysisError> {
        let mut all = vec![read(exe, base)?];
        let mut harmless = BTreeSet::new();
        for (path, base) in libraries {
            match kind_of(path) {
                Library::Analysed => all.push(read(path, *base)?),
                Library::Harmless => harmless.extend(read(path, *base)?.dynamic.exports.into_keys()),
                Library::Named => {}
            }
        }
        Program::new(Images::new(all, harmless), exe)
    }

    /// The program of a process whose first module is the program itself.
    ///
    /// # Errors
    /// As for [`Program::load`].
    pub fn of_modules(exe: &Path, modules: &Modules) -> Result<Program, AnalysisError> {
        let (own, others): (Vec<_>, Vec<_>) = modules.modules().iter().partition(|m| m.elf.path() == exe);
        let base = own.first().map_or(PROGRAM_BASE, |m| m.bias);
        let libraries: Vec<(PathBuf, u64)> = others.iter().map(|m| (m.elf.path().to_path_buf(), m.bias)).collect();
        Program::load_at(exe, base, &libraries)
    }

    fn new(images: Images, exe: &Path) -> Result<Program, AnalysisError> {
        let main = images.all().first().and_then(find_main);
        let main = main.ok_or_else(|| AnalysisError::NoMain(exe.to_path_buf()))?;
        let libc_locks = names::holds_libc_locks(|name| images.imports(name));
        let derives = images.all().iter().flat_map(|i| &i.dynamic.imports).any(|name| names::derives(name));
        let mut program = Program {
            main,
            taken: BTreeSet::new(),
            labelled: BTreeSet::new(),
            bodies: None,
            registered: Registered::default(),
            everywhere: BTreeSet::new(),
            libc_locks,
            derives,
            summaries: Mutex::default(),
            images,
        };
        program.bodies = thread_bodies(&program.images);
        program.take_from_data();
        program.settle();
        Ok(program)
    }

    /// The files.
    pub(super) fn images(&self) -> &Images {
        &self.images
    }

    /// What a thread that starts with the function at `start` may do, threads that it creates included. A start in
    /// code that is not analysed, or 0, means a function of the program that is called from there: any whose address
    /// is taken.
    pub fn of_function(&self, start: u64) -> AllowedOps {
        self.bound(start, true).own
    }

    /// What the first thread may do, threads that it creates included.
    pub fn of_main(&self) -> AllowedOps {
        self.main_bound(true).own
    }

    /// What the first thread may do itself.
    pub fn main_thread(&self) -> ThreadBound {
        self.main_bound(false)
    }

    /// What a thread that starts with the function at `start` may do itself.
    pub fn thread(&self, start: u64) -> ThreadBound {
        self.bound(start, false)
    }

    fn main_bound(&self, with_created: bool) -> ThreadBound {
        let mut bound = self.bound(self.main, with_created);
        // Whatever main does not do, its return ends the process.
        bound.own.ops.insert((KindClass::Exit, Operand::Any));
        bound
    }

    fn bound(&self, start: u64, with_created: bool) -> ThreadBound {
        let mut reach = Reach::new(self, with_created);
        reach.start(start);
        reach.registered(&self.registered);
        let (mut own, creates) = reach.into_bound();
        own.ops.extend(self.everywhere.iter().copied());
        own.why.truncate(MAX_WHY);
        ThreadBound { own, creates }
    }

    /// Whether the end of a process with one thread may be more than its end: robust mutexes, undone semaphore operations,
    /// signals.
    pub fn settles(&self) -> bool {
        self.everywhere.contains(&(KindClass::Exit, Operand::Any))
    }

    /// The address of `main`.
    pub fn main(&self) -> u64 {
        self.main
    }

    /// The address of the function of the program itself with this name, as the file has it.
    pub fn function(&self, name: &str) -> Option<u64> {
        self.images.all().first()?.extents.named(name)
    }

    /// What people call the function at `address`.
    pub fn function_name(&self, address: u64) -> String {
        self.images.function_name(address)
    }

    /// How much has been decoded so far.
    pub fn cost(&self) -> Cost {
        let summaries = self.summaries.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = summaries.values().flatten().map(|(_, s)| s.bytes).sum();
        Cost { functions: summaries.len(), bytes }
    }

    /// What the function at `start` does, entered there and at `entries`. None: there is no code.
    pub(super) fn summary(&self, start: u64, entries: &BTreeSet<u64>) -> Option<Arc<Summary>> {
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
    pub(super) fn start_of(&self, address: u64) -> u64 {
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

    /// Looks at all that may run, until no more addresses are taken and no more functions are registered.
    fn settle(&mut self) {
        loop {
            let before = (self.taken.len(), self.labelled.len(), self.registered.clone());
            let mut reach = Reach::new(self, true);
            reach.everything(self.main);
            reach.registered(&self.registered);
            let (taken, registered, ops) = reach.into_taken();
            for callee in taken {
                match callee {
                    Callee::Code(target) => self.take(target),
                    other => drop(self.taken.insert(other)),
                }
            }
            self.registered.add(registered);
            if before == (self.taken.len(), self.labelled.len(), self.registered.clone()) {
                self.everywhere = self.side_effects(&ops);
                return;
            }
        }
    }

    /// What happens to a thread because of what others do, given all that any of them does.
    fn side_effects(&self, ops: &BTreeSet<(KindClass, Operand)>) -> BTreeSet<(KindClass, Operand)> {
        let has = |class: KindClass| ops.iter().any(|(c, _)| *c == class);
        let robust =
            self.images.imports("pthread_mutexattr_setrobust") || self.images.imports("pthread_mutexattr_setrobust_np");
        let mut side = BTreeSet::new();
        if robust {
            side.insert((KindClass::ThreadExit, Operand::Any));
        }
        // The end of a child sends SIGCHLD.
        if has(KindClass::Fork) && names::handles_signals(|name| self.images.imports(name)) {
            side.insert((KindClass::Kill, Operand::Any));
        }
        // The last thread of a process ends it: others notice where it leaves locks or undone semaphore operations. A
        // signal ends the process of the thread that takes it.
        let locks = [ObjKind::RECORDS, ObjKind::FLOCK].map(KindClass::On);
        let files = locks.into_iter().any(has);
        if files {
            // A close gives locks back.
            side.extend(locks.map(|class| (class, Operand::Any)));
        }
        if robust || files || has(KindClass::Kill) || has(KindClass::On(ObjKind::SYSV)) {
            side.insert((KindClass::Exit, Operand::Any));
        }
        side
    }
}

fn read(path: &Path, base: u64) -> Result<Image, AnalysisError> {
    Image::load(path, base).map_err(|e| AnalysisError::File { path: path.to_path_buf(), reason: e.to_string() })
}

/// What is done about a library.
enum Library {
    Analysed,
    /// All it exports is harmless.
    Harmless,
    /// What it exports is known by name, or not at all.
    Named,
}

fn kind_of(path: &Path) -> Library {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let is = |stem: &str| name.starts_with(&format!("{stem}.so")) || name.starts_with(&format!("{stem}-"));
    let named =
        ["libc", "libpthread", "libdl", "librt", "libutil", "libanl", "libresolv", "libstdc++", "libgcc_s", "libvsrun"];
    if is("libm") || is("libmvec") {
        Library::Harmless
    } else if named.iter().any(|stem| is(stem)) || name.starts_with("ld-linux") || name.starts_with("ld-2") {
        Library::Named
    } else {
        Library::Analysed
    }
}

/// The function around `address`. Where nothing says so: up to the next one.
fn extent(image: &Image, address: u64) -> super::extents::Extent {
    image.extents.at(address).unwrap_or_else(|| {
        let end = image.extents.start_after(address).unwrap_or(u64::MAX).min(image.code_end(address));
        super::extents::Extent { start: address, end, name: None, handlers: None }
    })
}

/// `main`: by its symbol, or by what the start-up code hands to `__libc_start_main`.
fn find_main(image: &Image) -> Option<u64> {
    image.extents.named("main").or_else(|| main_of_start(image)).filter(|at| image.is_code(*at))
}

fn main_of_start(image: &Image) -> Option<u64> {
    let bytes = image.tail(image.entry);
    let decoder = Decoder::with_ip(64, &bytes[..bytes.len().min(128)], image.entry, DecoderOptions::NONE);
    let mut main = None;
    for i in decoder {
        let to_first_argument =
            i.op_count() == 2 && i.op0_kind() == OpKind::Register && i.op0_register().full_register() == Register::RDI;
        match i.flow_control() {
            FlowControl::Call | FlowControl::IndirectCall => return main,
            _ if !to_first_argument => {}
            _ if i.mnemonic() == Mnemonic::Lea => main = Some(i.memory_displacement64()),
            _ if i.mnemonic() == Mnemonic::Mov && i.op1_kind() == OpKind::Memory => {
                main = image.pointer_at(i.memory_displacement64());
            }
            _ if i.mnemonic() == Mnemonic::Mov => main = i.try_immediate(1).ok(),
            _ => {}
        }
    }
    None
}

/// The words of data that are addresses of code, in a file that has no relocations for them, with where they lie. Code
/// does not start at odd places in data, but packed structures may, so every byte counts for starts of functions.
fn fixed_pointers(image: &Image) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    for (start, bytes) in image.data() {
        for (n, window) in bytes.windows(8).enumerate() {
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
