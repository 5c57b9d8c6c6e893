//! Calls of which nobody looks at the result: the register that it is in is written again, or no longer means anything, before it is read.

use std::collections::BTreeSet;
use std::path::Path;

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

use super::allowed::image::Image;
use super::allowed::images::{Callee, Images};
use super::elf::ElfError;
use super::sites::Body;

/// Instructions behind a call that are looked at.
const LOOKED_AT: usize = 200;

/// Where calls of the imported function `name` return to whose result nobody looks at, in the file at `path`, loaded at `bias`. A call that is
/// not understood is not among them.
///
/// # Errors
/// The file cannot be read, or is damaged.
pub(crate) fn ignored(path: &Path, bias: u64, name: &str) -> Result<Vec<u64>, ElfError> {
    // Most files do not have the name, and to read all of what they say takes its time.
    let bytes = std::fs::read(path).unwrap_or_default();
    let finder = name.as_bytes();
    if !bytes.windows(finder.len()).any(|window| window == finder) {
        return Ok(Vec::new());
    }
    let images = Images::new(vec![Image::load(path, bias)?], BTreeSet::new());
    let Some(image) = images.all().first().filter(|image| image.dynamic.imports.contains(name)) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for extent in image.extents.all().filter(|extent| extent.bounded) {
        let body = Body::new(image, extent);
        let calls = body.code.iter().enumerate().filter(|(_, i)| calls(&images, i, name));
        found.extend(calls.filter(|&(n, _)| is_ignored(&body, n + 1)).map(|(_, i)| i.next_ip()));
    }
    Ok(found)
}

/// `i` calls `name` and nothing else.
fn calls(images: &Images, i: &Instruction, name: &str) -> bool {
    if i.mnemonic() != Mnemonic::Call {
        return false;
    }
    let slot = match i.op0_kind() {
        OpKind::NearBranch64 => images.stub(i.near_branch_target()),
        OpKind::Memory if i.is_ip_rel_memory_operand() => Some(i.ip_rel_memory_address()),
        _ => None,
    };
    let is = |callee: &Callee| matches!(callee, Callee::External(called) if called == name);
    slot.is_some_and(|slot| matches!(images.callees(slot), [callee] if is(callee)))
}

/// On no way from instruction `n` on anybody reads the result before it is written.
fn is_ignored(body: &Body, n: usize) -> bool {
    let mut info = InstructionInfoFactory::new();
    let (mut open, mut seen) = (vec![n], BTreeSet::new());
    while let Some(at) = open.pop() {
        if !seen.insert(at) {
            continue;
        }
        let Some(i) = body.code.get(at).filter(|_| seen.len() <= LOOKED_AT) else { return false };
        let result =
            info.info(i).used_registers().iter().filter(|used| used.register().full_register() == Register::RAX);
        let (mut reads, mut writes) = (false, false);
        for used in result {
            writes |= used.access() == OpAccess::Write && used.register().size() >= 4;
            reads |= !matches!(used.access(), OpAccess::Write | OpAccess::NoMemAccess | OpAccess::None);
        }
        if reads {
            return false;
        }
        if writes {
            continue;
        }
        match i.flow_control() {
            FlowControl::Next => open.push(at + 1),
            // A function that is called is given nothing in that register but the number of vectors, which is written before; it may be
            // anything afterwards.
            FlowControl::Call | FlowControl::IndirectCall if i.mnemonic() == Mnemonic::Call => {}
            FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
                let Some(target) = body.position(i.near_branch_target()) else { return false };
                open.push(target);
                if i.flow_control() == FlowControl::ConditionalBranch {
                    open.push(at + 1);
                }
            }
            // Whoever called this function may look.
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// How many calls of `pthread_barrier_wait` nobody looks at the result of, in the function `f` of that body.
    fn count(body: &str, options: &[&str]) -> usize {
        let dir = std::env::temp_dir().join(format!(
            "vsrun-ignored-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        std::fs::create_dir_all(&dir).expect("a directory");
        let (source, program) = (dir.join("f.c"), dir.join("f"));
        let text = format!(
            "#include <pthread.h>\n#include <stdio.h>\npthread_barrier_t b; int x; int other(int);\n{body}\n\
             int other(int n) {{ return n + x; }}\nint main(void) {{ return 0; }}\n"
        );
        std::fs::write(&source, text).expect("a file");
        let done = Command::new("gcc").args(options).args(["-pthread", "-o"]).arg(&program).arg(&source).status();
        assert!(done.expect("gcc").success());
        let found = ignored(&program, 0x5555_5555_4000, "pthread_barrier_wait").expect("an ELF file").len();
        std::fs::remove_dir_all(&dir).expect("it was there");
        found
    }

    #[test]
    fn results_that_nobody_looks_at_are_told_from_others() {
        for options in [&["-O0"][..], &["-O1"], &["-O2"], &["-O2", "-fno-plt"], &["-O3", "-fcf-protection"]] {
            let is = |body: &str, n: usize| assert_eq!(count(body, options), n, "{body} {options:?}");
            is("void *f(void *a) { pthread_barrier_wait(&b); x = 1; pthread_barrier_wait(&b); return 0; }", 2);
            is("void *f(void *a) { for (int i = 0; i < 9; i++) { pthread_barrier_wait(&b); other(i); } return a; }", 1);
            is("void *f(void *a) { if (pthread_barrier_wait(&b)) x = 1; return 0; }", 0);
            is("int f(void) { return pthread_barrier_wait(&b); }", 0);
            is("void *f(void *a) { x = pthread_barrier_wait(&b); return 0; }", 0);
            is("void *f(void *a) { int r = pthread_barrier_wait(&b); other(1); if (r) x = 2; return 0; }", 0);
            is("void *f(void *a) { printf(\"%d\\n\", pthread_barrier_wait(&b)); return 0; }", 0);
            is("void *f(void *a) { pthread_barrier_wait(&b); printf(\"x\\n\"); return 0; }", 1);
        }
    }
}
