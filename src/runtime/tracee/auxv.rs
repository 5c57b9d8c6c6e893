//! The auxiliary vector, which the kernel puts on the stack of a new program.

use super::launch::{LaunchError, STACK_LIMIT};
use super::state::Stopped;
use crate::runtime::memory::ProcessMemory;

const AT_NULL: u64 = 0;
const AT_RANDOM: u64 = 25;

/// More entries than any stack of 8 MiB holds.
const MAX_WORDS: u64 = STACK_LIMIT / 8;

/// Makes a program that stands at its exec stop independent of chance: the 16 random bytes that the kernel gives (stack
/// protector, pointer guard, seeds of hash tables) become `random`.
///
/// NOTE "Layout". Nothing else is touched, so every mapping lies where it lies in the same program launched and not
/// fixed, or launched by [`launch_untraced`](super::launch_untraced). AT_SYSINFO_EHDR in particular stays: without a
/// vDSO the loader allocates less, and later mappings move (two pages, seen with glibc 2.36). The real clock is kept
/// from the program by the shim, which patches the vDSO's functions.
pub fn fix_auxv(stopped: &mut Stopped, random: [u8; 16]) -> Result<(), LaunchError> {
    let memory = ProcessMemory::open(stopped.pid())?;
    let mut at = find_auxv(&memory, stopped.regs()?.rsp)?;
    let mut random_at = None;
    loop {
        match memory.read_u64(at)? {
            AT_NULL => break,
            AT_RANDOM => random_at = Some(memory.read_u64(at + 8)?),
            _ => {}
        }
        at += 16;
    }
    let random_at = random_at.ok_or(LaunchError::Stack("no AT_RANDOM"))?;
    Ok(memory.write(random_at, &random)?)
}

/// The auxiliary vector lies behind the environment, which lies behind the arguments, which lie behind their number,
/// where the stack pointer is.
fn find_auxv(memory: &ProcessMemory, rsp: u64) -> Result<u64, LaunchError> {
    let argc = memory.read_u64(rsp)?;
    if argc >= MAX_WORDS {
        return Err(LaunchError::Stack("no number of arguments"));
    }
    let envp = rsp + 8 + 8 * argc + 8;
    for i in 0..MAX_WORDS {
        if memory.read_u64(envp + 8 * i)? == 0 {
            return Ok(envp + 8 * i + 8);
        }
    }
    Err(LaunchError::Stack("no end of the environment"))
}
