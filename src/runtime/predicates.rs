//! Exclusive access predicates that an annotation file states ([`Predicate`]): the instructions at which they change, which become sites, and what
//! the shim is to say there (`shim/src/watch/slow.rs`).
//!
//! NOTE [Returns] A function returns where it has a return instruction, also in the part that a compiler has put elsewhere since it runs
//! seldom. One that ends in a jump to another function returns there, where others do too: that is refused. What leaves by an exception, a long
//! jump or a jump through a register says nothing; a predicate that is missed costs time, and hides nothing (`docs/PREDICATES.md`).

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction as Decoded};
use vsrun_model::watch::{Operand, Predicate as Placed, Record, NO_REGISTER};

use super::loaded::Loaded;
use super::named::functions_named;
use super::setup::StartError;
use crate::binary::entries::{Functions, LONGEST};
use crate::binary::modules::Module;
use crate::binary::sites::{Instruction, Sites, Unwatched};
use crate::binary::Modules;
use crate::scenario::{Length, Place, Predicate, Says};

/// What the shim is to say, and where: for each module its sites, which have an operand more.
#[derive(Debug, Default)]
pub(super) struct Predicates {
    /// All that is said, place by place.
    pub(super) placed: Vec<Placed>,
    /// Module, address in its file, and what is said there first.
    places: Vec<(usize, u64, String)>,
    /// Functions of which a compiler has put a part into others.
    pub(super) split: Vec<String>,
}

/// Registers of arguments, by their numbers.
const ARGUMENTS: [u8; 6] = [7, 6, 2, 1, 8, 9];
const RESULT: u8 = 0;
/// Instructions of a function that are looked at.
const LARGEST: u64 = 16 << 20;

fn refused(line: &str, why: &str) -> StartError {
    StartError::Refused(format!("--annotations: {line}: {why}"))
}

/// A module whose functions are named.
struct Code<'a> {
    loaded: &'a Loaded,
    functions: Functions,
}

impl Code<'_> {
    /// As many as `length` bytes from an address of the file on.
    fn bytes(&self, at: u64, length: u64) -> &[u8] {
        let at = at.wrapping_add(self.loaded.bias);
        let part = self.loaded.text.iter().find(|(start, bytes)| (*start..start + bytes.len() as u64).contains(&at));
        part.map_or(&[], |(start, bytes)| {
            let from = (at - start) as usize;
            &bytes[from..from.saturating_add(length as usize).min(bytes.len())]
        })
    }

    fn instructions(&self, range: &Range<u64>) -> impl Iterator<Item = Decoded> + '_ {
        let bytes = self.bytes(range.start, (range.end - range.start).min(LARGEST));
        Decoder::with_ip(64, bytes, range.start, DecoderOptions::NONE).into_iter()
    }

    fn length(&self, at: u64) -> Option<u8> {
        let i = self.instructions(&(at..at.saturating_add(15))).next()?;
        (!i.is_invalid()).then_some(i.len() as u8)
    }

    /// Where the function that is there is entered, or returns.
    fn places(&self, function: Range<u64>, after: bool) -> Result<Vec<Instruction>, &'static str> {
        if !after {
            return Ok(vec![Instruction { at: function.start, room: 0, is_target: true }]);
        }
        if function.is_empty() {
            return Err("nothing says where it ends");
        }
        let cold = self.functions.named().cold.iter().map(|&(start, end)| start..end);
        let parts: Vec<Range<u64>> = std::iter::once(function).chain(cold).collect();
        let mut places = Vec::new();
        for i in parts.iter().flat_map(|part| self.instructions(part)) {
            match i.flow_control() {
                _ if i.is_invalid() => return Err("its code cannot be decoded"),
                FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch
                    if !parts.iter().any(|part| part.contains(&i.near_branch_target())) =>
                {
                    return Err("it returns by a jump to another function: name that, or compile with -fno-optimize-sibling-calls");
                }
                FlowControl::Return => {
                    let end = i.next_ip();
                    let is_last = parts.iter().any(|part| part.end == end);
                    let padding =
                        if is_last { self.functions.padding(end, self.bytes(end, LONGEST as u64)) } else { 0 };
                    let room = (i.len() + padding).min(usize::from(u8::MAX)) as u8;
                    places.push(Instruction { at: i.ip(), room, is_target: false });
                }
                _ => {}
            }
        }
        if places.is_empty() {
            Err("it never returns")
        } else {
            Ok(places)
        }
    }
}

/// What the shim says for a line.
fn placed(line: &Predicate, modules: &Modules) -> Result<Placed, String> {
    let register = |n: u8| ARGUMENTS[usize::from(n - 1)];
    let (base, from, whole) = match &line.memory {
        Place::Argument(n) => (register(*n), 0, 0),
        Place::Result => (RESULT, 0, 0),
        Place::Variable(symbol) => match modules.objects_named(symbol)[..] {
            [(start, size)] => (NO_REGISTER, start, size),
            [] => {
                return Err(format!("neither the program nor a library loaded with it has a global variable {symbol}"))
            }
            _ => return Err(format!("there are several variables {symbol}")),
        },
    };
    let (length, size) = match line.length {
        Some(Length::Bytes(n)) => (NO_REGISTER, n),
        Some(Length::Argument(n)) => (register(n), 0),
        None => (NO_REGISTER, whole.saturating_sub(line.offset)),
    };
    if base == NO_REGISTER && line.offset.saturating_add(size.max(1)) > whole {
        return Err(format!("the variable has {whole} bytes"));
    }
    let what = match line.says {
        Says::Own => Record::OWNS,
        Says::Disown => Record::DISOWNS,
        Says::HandOver => Record::HANDS_OVER,
    };
    let to = line.to.map_or(NO_REGISTER, register);
    Ok(Placed { what, base, length, to, reserved: 0, offset: from.wrapping_add(line.offset), size })
}

/// An instruction, and what is said there, with the lines.
type Here = (Instruction, Vec<(Placed, String)>);

/// Makes sites of the instructions at which the predicates of these `lines` change. `changed`: where vsrun has changed code.
///
/// # Errors
/// A line that means nothing in this program: why.
pub(super) fn add(
    lines: &[Predicate],
    modules: &Modules,
    loaded: &[Loaded],
    sites: &mut [Arc<Sites>],
    changed: &[Range<u64>],
) -> Result<Predicates, StartError> {
    let mut all = Predicates::default();
    let mut said: BTreeMap<(usize, u64), Here> = BTreeMap::new();
    for line in lines {
        let name = line.to_string();
        let refused = |why: &str| refused(&name, why);
        let placed = placed(line, modules).map_err(|why| refused(&why))?;
        let is_of =
            |module: &Module, loaded: &Loaded| (module.bias, module.elf.path()) == (loaded.bias, loaded.path.as_path());
        for (module, functions) in functions_named(&line.function, modules).map_err(|why| refused(&why))? {
            let n = loaded.iter().position(|loaded| is_of(module, loaded) && loaded.intact);
            let n = n.ok_or_else(|| refused(&format!("{} is not watched", module.name())))?;
            if functions.named().is_split && !all.split.contains(&line.function) {
                all.split.push(line.function.clone());
            }
            let code = Code { loaded: &loaded[n], functions };
            for &(start, end) in &code.functions.named().whole {
                for place in code.places(start..end, line.after).map_err(refused)? {
                    let at = place.at.wrapping_add(module.bias);
                    if changed.iter().any(|range| range.contains(&at)) {
                        return Err(refused("--toss has replaced it"));
                    }
                    let (_, here) = said.entry((n, place.at)).or_insert((place, Vec::new()));
                    // A function may have several names.
                    if !here.iter().any(|(_, other)| *other == name) {
                        here.push((placed, name.clone()));
                    }
                }
            }
        }
    }
    for ((n, at), (place, here)) in said {
        let first = here[0].1.clone();
        let claims = Operand {
            displacement: all.placed.len() as u64,
            size: here.len().try_into().map_err(|_| refused(&first, "too much is said there"))?,
            flags: Operand::CLAIMS,
            base: NO_REGISTER,
            index: NO_REGISTER,
            scale: 1,
            bit: NO_REGISTER,
        };
        let code = Code { loaded: &loaded[n], functions: Functions::default() };
        let added = Arc::make_mut(&mut sites[n]).add(place, claims, &|at| code.length(at));
        added.ok_or_else(|| refused(&first, "its code is not understood"))?;
        all.placed.extend(here.into_iter().map(|(placed, _)| placed));
        all.places.push((n, at, first));
    }
    Ok(all)
}

impl Predicates {
    /// All of these places are patched; `unwatched`: what is not, of each module.
    ///
    /// # Errors
    /// One is not.
    pub(super) fn are_patched<'a>(&self, unwatched: impl Fn(usize) -> &'a [Unwatched]) -> Result<(), StartError> {
        for (n, at, line) in &self.places {
            let covers = |part: &&Unwatched| (part.at..part.at.saturating_add(part.length)).contains(at);
            if let Some(part) = unwatched(*n).iter().find(covers) {
                return Err(refused(line, &format!("nothing can be put there: {}", part.reason)));
            }
        }
        Ok(())
    }

    /// What is to be said of them, a line each.
    pub(super) fn notes(&self) -> Vec<String> {
        let of = |function: &String| {
            format!("--annotations: a compiler has split {function}: where it has put a part into callers nothing is said of who may use memory")
        };
        self.split.iter().map(of).collect()
    }
}
