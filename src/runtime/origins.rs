//! Where a block of the heap was given out and freed, from what the shim has kept of it (`shim/src/gate/origins.rs`).

use nix::unistd::Pid;
use vsrun_model::watch::{Entry, Origin, ORIGINS, ORIGIN_WORDS};
use vsrun_model::{End, Tid};

use super::inspect::{Inspector, View};
use super::memory::ProcessMemory;
use super::session::SHIM_NAME;
use super::unwind::{ReadMemory, Regs};
use super::worker::Worker;
use crate::binary::Mapping;
use crate::finding::{Finding, GoneView, OriginView};

/// Frames that are shown.
const MAX_FRAMES: usize = 8;
/// Those that are looked at: some are vsrun's own.
const MOST_FRAMES: usize = 32;
const WORDS: usize = Origin::SIZE / 8;

/// A block of the heap.
pub(super) struct Block {
    pub(super) start: u64,
    pub(super) size: u64,
    /// Where it was given out.
    pub(super) allocated: Option<OriginView>,
}

/// The memory of a process as it was when a block was given out or freed, as far as that is known.
struct Then<'a> {
    memory: &'a ProcessMemory,
    /// Where the stack is mapped.
    stack: (u64, u64),
    from: u64,
    words: &'a [u64],
}

impl ReadMemory for Then<'_> {
    fn read_u64(&self, address: u64) -> Option<u64> {
        if !(self.stack.0..self.stack.1).contains(&address) {
            return self.memory.read_u64(address).ok();
        }
        let offset = address.checked_sub(self.from).filter(|offset| offset.is_multiple_of(8))?;
        self.words.get(usize::try_from(offset / 8).ok()?).copied()
    }
}

/// One, from its words.
fn origin_of(words: &[u64]) -> Option<Origin> {
    let &[number, block, size, who, ref rest @ ..] = words else { return None };
    let (registers, stack) = rest.split_at_checked(8)?;
    (number > 0).then_some(())?;
    let (thread, freed, words) = (who as u32, (who >> 32) as u16, (who >> 48) as u16);
    Some(Origin {
        number,
        block,
        size,
        thread,
        freed,
        words,
        registers: registers.try_into().ok()?,
        stack: stack.try_into().ok()?,
    })
}

/// All that a process has kept, the first of them first.
fn kept(memory: &ProcessMemory, at: u64) -> Vec<Origin> {
    let mut bytes = vec![0; Origin::SIZE * ORIGINS];
    if at == 0 || memory.read(at, &mut bytes).is_err() {
        return Vec::new();
    }
    let (words, _) = bytes.as_chunks::<8>();
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let mut all: Vec<Origin> = words.chunks_exact(WORDS).filter_map(origin_of).collect();
    all.sort_by_key(|origin| origin.number);
    all
}

/// The last of them of a block that was given out, or freed.
fn last(all: &[Origin], freed: bool, is_it: impl Fn(&Origin) -> bool) -> Option<&Origin> {
    all.iter().rev().find(|origin| (origin.freed == 1) == freed && is_it(origin))
}

impl Worker {
    /// A process of the world that stands still, with what it has kept.
    fn origins(&self, inspector: &mut Inspector, process: u32) -> Option<(View, Vec<Origin>)> {
        let real = self.arena.world.procs.get(process)?.own.real_pid;
        let view = inspector.open(Pid::from_raw(real), None).filter(|_| real > 0)?;
        let all = kept(view.memory.as_ref()?, self.arena.control.watching.origins);
        Some((view, all))
    }

    /// The block of the heap that lies there in a process, or did last.
    pub(super) fn block_at(&self, inspector: &mut Inspector, process: u32, address: u64) -> Option<Block> {
        let (view, all) = self.origins(inspector, process)?;
        let origin = last(&all, false, |o| address.wrapping_sub(o.block) < o.size)?;
        Some(Block { start: origin.block, size: origin.size, allocated: view_of(inspector, &view, origin) })
    }

    /// Objects on the heap are called by where their block was given out, too.
    pub(super) fn name_blocks(&self, inspector: &mut Inspector, found: &mut Finding) {
        let world = &self.arena.world;
        if self.watched.is_none() {
            return;
        }
        for process in 0..world.procs.as_slice().len() as u32 {
            let keys = world.objects.as_slice().iter().map(|object| object.key).enumerate();
            let own: Vec<_> = keys.filter(|(_, key)| key.space == process && key.addr != 0).collect();
            let Some((view, all)) = (!own.is_empty()).then(|| self.origins(inspector, process)).flatten() else {
                continue;
            };
            for (id, key) in own.into_iter().filter(|(_, key)| view.modules.module(key.addr).is_none()) {
                let origin = last(&all, false, |o| key.addr.wrapping_sub(o.block) < o.size);
                let allocated = origin.and_then(|origin| view_of(inspector, &view, origin));
                let within = allocated.map_or(String::new(), |allocated| allocated.within());
                if let Some(object) = found.objects.get_mut(id).filter(|_| !within.is_empty()) {
                    let region = format!("{:#x} ({})", key.addr, view.modules.region(key.addr));
                    object.name = object.name.replace(&region, &format!("{:#x} (allocated{within})", key.addr));
                }
            }
        }
    }

    /// If the execution that stands still has ended with a use of freed memory, `found` shows that.
    pub(super) fn show_gone(&self, inspector: &mut Inspector, found: &mut Finding) {
        let (world, gone) = (&self.arena.world, self.arena.control.watching.gone);
        let Some(watched) = self.watched.as_ref().filter(|_| found.end == End::FREED) else { return };
        let thread = world.current;
        let Some(process) = world.threads.get(thread).map(|thread| thread.pid) else { return };
        let owner = (gone.size == 0).then_some(gone.block as Tid);
        let (mut freed, mut allocated) = (None, None);
        if let Some((view, all)) = self.origins(inspector, process) {
            let of_block = |origin: &Origin| origin.block == gone.block;
            freed = last(&all, true, of_block).and_then(|origin| view_of(inspector, &view, origin));
            allocated = last(&all, false, of_block).and_then(|origin| view_of(inspector, &view, origin));
        }
        let [site, what] = gone.entry;
        let instruction = watched.instruction(site);
        let outermost = found.threads.get(thread as usize).and_then(|thread| thread.frames.first());
        let is_function = site & Entry::FUNCTION != 0;
        let frees = is_function && ["free", "realloc"].contains(&instruction.symbol.as_str());
        let size = what >> 2;
        let bytes = if size == 1 { "byte" } else { "bytes" };
        let view = GoneView {
            what: match (frees, what & 1) {
                (true, _) => instruction.symbol.clone(),
                (_, 0) => format!("read of {size} {bytes}"),
                _ => format!("write of {size} {bytes}"),
            },
            at: match outermost.filter(|_| is_function) {
                Some(caller) if frees => caller.clone(),
                Some(caller) => caller.behind(format!("{instruction}, ")),
                None => instruction,
            },
            thread,
            owner,
            size: gone.size,
            offset: if owner.is_some() { 0 } else { gone.address.wrapping_sub(gone.block) },
            freed,
            allocated,
        };
        found.summary = view.behind(&found.summary);
        found.gone = Some(view);
    }
}

/// What is known of it in words.
fn view_of(inspector: &mut Inspector, view: &View, origin: &Origin) -> Option<OriginView> {
    let [rbx, rbp, rsp, r12, r13, r14, r15, rip] = origin.registers;
    let mut general = [0; 16];
    for (number, value) in [(3, rbx), (6, rbp), (7, rsp), (12, r12), (13, r13), (14, r14), (15, r15)] {
        general[number] = value;
    }
    let maps = view.modules.mappings();
    let on_stack = |m: &&Mapping| (m.start..m.end).contains(&rsp);
    let stack = maps.iter().find(on_stack).map_or((rsp, rsp + 8 * ORIGIN_WORDS as u64), |m| (m.start, m.end));
    let then =
        Then { memory: view.memory.as_ref()?, stack, from: rsp, words: origin.stack.get(..usize::from(origin.words))? };
    let counters = inspector.unwinder.backtrace(maps, &then, Regs { general, rip }, MOST_FRAMES);
    let places = counters.iter().skip(1).map(|&at| view.modules.locate_return(at));
    let shown = places
        .filter(|place| place.module != SHIM_NAME)
        .take_while(|place| place.function.as_deref() != Some("__libc_start_call_main"));
    Some(OriginView {
        thread: origin.thread,
        frames: shown.take(MAX_FRAMES).map(|place| view.modules.shown(&place)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read() {
        let mut words = [0; WORDS];
        assert!(origin_of(&words).is_none());
        (words[0], words[1], words[2], words[3], words[4], words[11], words[12]) =
            (7, 0x1000, 40, 3 | 1 << 32, 5, 6, 8);
        let origin = origin_of(&words).expect("one");
        assert_eq!((origin.number, origin.block, origin.size, origin.thread, origin.freed), (7, 0x1000, 40, 3, 1));
        assert_eq!((origin.registers[0], origin.registers[7], origin.stack[0]), (5, 6, 8));
        let later = Origin { number: 9, freed: 0, thread: 4, ..origin };
        let all = [Origin { number: 6, freed: 0, ..origin }, origin, later];
        let number = |freed| last(&all, freed, |o| o.block == 0x1000).map(|o| o.number);
        assert_eq!((number(false), number(true)), (Some(9), Some(7)));
        assert!(last(&all, false, |o| o.block == 0x2000).is_none());
    }
}
