//! What the threads of the program may do at most, for searches that compute persistent sets: read off the code that
//! the program has mapped at its root, as the search wants to have it.
//!
//! NOTE [Addresses]. The analysis takes addresses from the program as it stands at its root, which are the same in every
//! execution, so an address it finds is that of an object in the private memory of a process. Of shared memory it
//! knows no addresses: there it says "any". Nor does it know who uses which memory: where that is an object (`--race`), any thread may.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use vsrun_model::{Kind, ObjKind};

use crate::binary::allowed::Program;
use crate::binary::modules::Modules;
use crate::binary::symbols::SymbolCache;
use crate::search::allowed::{Allowed, AllowedOps, KindClass, Operand, ThreadOrigin, Unknown};

/// Sentences that a note quotes on why nothing is known.
const MAX_WHY: usize = 2;

/// Bounds from the code of the program that stands at its root as process `pid`, and, where there are none, a note that
/// says why.
pub(super) fn of_root(pid: i32) -> (Box<dyn Allowed>, Option<String>) {
    match analyse(pid) {
        Ok(bounds) => (Box::new(bounds), None),
        Err(why) => {
            let note = format!(
                "what the threads may do could not be read off the program, so every enabled transition is taken in every \
                 state: {why}"
            );
            (Box::new(Unknown), Some(note))
        }
    }
}

fn analyse(pid: i32) -> Result<FromCode, String> {
    let link = format!("/proc/{pid}/exe");
    let exe = std::fs::read_link(&link).map_err(|e| format!("{link}: {e}"))?;
    let modules = Modules::of_process(pid, &mut SymbolCache::default()).map_err(|e| format!("its mappings: {e}"))?;
    let bounds = FromCode::load(&exe, &modules)?;
    let main = bounds.program.of_main();
    match main.anything {
        true => Err(main.why.iter().take(MAX_WHY).cloned().collect::<Vec<_>>().join("; ")),
        false => Ok(bounds),
    }
}

/// Bounds by where a thread begins.
struct FromCode {
    program: Program,
    /// The end of a process is a visible operation also where it has one thread.
    settles: bool,
    /// By start routine, and whether it is `main`.
    known: RefCell<BTreeMap<(u64, bool), AllowedOps>>,
}

impl FromCode {
    fn load(exe: &Path, modules: &Modules) -> Result<FromCode, String> {
        let program = Program::of_modules(exe, modules).map_err(|e| e.to_string())?;
        Ok(FromCode { settles: program.settles(), program, known: RefCell::default() })
    }

    fn bound(&self, start: u64, is_main: bool) -> AllowedOps {
        let found = if is_main { self.program.of_main() } else { self.program.of_function(start) };
        let class = |class| match class {
            KindClass::Does(Kind::EXIT) if !self.settles => KindClass::ProcessEnd,
            class => class,
        };
        let ops = found.ops.iter().map(|&(kind, operand)| (class(kind), operand));
        let memory = (KindClass::On(ObjKind::MEMORY), Operand::Any);
        AllowedOps { anything: found.anything, ops: ops.chain([memory]).collect() }
    }
}

impl Allowed for FromCode {
    fn of(&self, thread: &ThreadOrigin) -> AllowedOps {
        let key = (thread.start, thread.is_main);
        let mut known = self.known.borrow_mut();
        known.entry(key).or_insert_with(|| self.bound(thread.start, thread.is_main)).clone()
    }
}
