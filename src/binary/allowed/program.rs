//! A program as its files say it is, and what its threads may do.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use vsrun_model::{Kind, ObjKind};

use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic, OpKind, Register};

use super::bound::{AllowedOps, AnalysisError, ThreadBound};
use super::code::Code;
use super::image::Image;
use super::images::Images;
use super::names;
use super::reach::{Reach, Registered};
use crate::binary::modules::Modules;
use crate::search::allowed::{KindClass, Operand};

/// Where the kernel puts a position independent program when addresses are not randomized.
pub const PROGRAM_BASE: u64 = 0x5555_5555_4000;
/// So many sentences on why a thread may do anything are enough.
const MAX_WHY: usize = 8;

/// The analysed files of a program and what is true of all its threads.
pub struct Program {
    code: Code,
    main: u64,
    /// What any thread may call when it or the process ends or a signal comes.
    registered: Registered,
    /// What any thread may do because of what others do to it.
    everywhere: BTreeSet<(KindClass, Operand)>,
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
        let (registered, everywhere) = (Registered::default(), BTreeSet::new());
        let mut program = Program { code: Code::new(images), main, registered, everywhere };
        program.settle();
        Ok(program)
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
        bound.own.ops.insert((KindClass::Does(Kind::EXIT), Operand::Any));
        bound
    }

    fn bound(&self, start: u64, with_created: bool) -> ThreadBound {
        let mut reach = Reach::new(&self.code, with_created);
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
        self.everywhere.contains(&(KindClass::Does(Kind::EXIT), Operand::Any))
    }

    /// The files.
    #[cfg(test)]
    pub(super) fn images(&self) -> &Images {
        self.code.images()
    }

    /// The address of `main`.
    pub fn main(&self) -> u64 {
        self.main
    }

    /// The address of the function of the program itself with this name, as the file has it.
    pub fn function(&self, name: &str) -> Option<u64> {
        self.code.images().all().first()?.extents.named(name)
    }

    /// What people call the function at `address`.
    pub fn function_name(&self, address: u64) -> String {
        self.code.images().function_name(address)
    }

    /// Looks at all that may run, until no more addresses are taken and no more functions are registered.
    fn settle(&mut self) {
        loop {
            let before = (self.code.size(), self.registered.clone());
            let mut reach = Reach::new(&self.code, true);
            reach.everything(self.main);
            reach.registered(&self.registered);
            let (taken, registered, ops) = reach.into_taken();
            self.code.take_all(taken);
            self.registered.add(registered);
            if before == (self.code.size(), self.registered.clone()) {
                self.everywhere = self.side_effects(&ops);
                return;
            }
        }
    }

    /// What happens to a thread because of what others do, given all that any of them does.
    fn side_effects(&self, ops: &BTreeSet<(KindClass, Operand)>) -> BTreeSet<(KindClass, Operand)> {
        let has = |class: KindClass| ops.iter().any(|(c, _)| *c == class);
        let robust = self.code.images().imports("pthread_mutexattr_setrobust")
            || self.code.images().imports("pthread_mutexattr_setrobust_np");
        let mut side = BTreeSet::new();
        if robust {
            side.insert((KindClass::Does(Kind::THREAD_EXIT), Operand::Any));
        }
        // The end of a child sends SIGCHLD.
        if has(KindClass::Does(Kind::FORK)) && names::handles_signals(|name| self.code.images().imports(name)) {
            side.insert((KindClass::Does(Kind::KILL), Operand::Any));
        }
        // The last thread of a process ends it: others notice where it leaves locks or undone semaphore operations. A
        // signal ends the process of the thread that takes it.
        let locks = [ObjKind::RECORDS, ObjKind::FLOCK].map(KindClass::On);
        let files = locks.into_iter().any(has);
        if files {
            // A close gives locks back.
            side.extend(locks.map(|class| (class, Operand::Any)));
        }
        if robust || files || has(KindClass::Does(Kind::KILL)) || has(KindClass::On(ObjKind::SYSV)) {
            side.insert((KindClass::Does(Kind::EXIT), Operand::Any));
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
