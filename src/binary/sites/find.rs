//! The sites of one file.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use goblin::elf::section_header::SHF_EXECINSTR;
use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};
use vsrun_model::watch::Operand;

use super::super::allowed::code::fixed_pointers;
use super::super::allowed::dynamic::Word;
use super::super::allowed::function::{self, Jumps};
use super::super::allowed::image::Image;
use super::super::allowed::images::Images;
use super::super::allowed::unwind;
use super::super::elf::{ElfError, ElfFile};
use super::access::{self, Around};
use super::body::{ends, Body, References};
use super::groups;
use super::live::{self, Effect};
use super::rounds;
use super::same::Seen;
use super::uncovered::uncovered;
use super::{Choice, Reason, Site, Sites, Unwatched};

/// The file is none that can be watched.
#[derive(Debug)]
pub struct FindError(ElfError);

impl fmt::Display for FindError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for FindError {}

/// The sites of the file at `path`.
///
/// # Errors
/// It is no program or library of this machine. Code that is not understood is no error: it is named as not watched.
pub fn find(path: &Path, choice: Choice) -> Result<Sites, FindError> {
    let elf = ElfFile::open(path).map_err(FindError)?;
    let bias = if elf.is_dyn() { BIAS } else { 0 };
    let code = code_of(&elf, bias);
    let mut sites = Image::load(path, bias).map(|image| find_in(image, choice, &code)).map_err(FindError)?;
    unbias(&mut sites, bias);
    Ok(sites)
}

/// The sections with code; none where the file has no sections. Without a word about them, all that is executable may be code.
fn code_of(elf: &ElfFile, bias: u64) -> Vec<(u64, u64)> {
    let all = elf.sections().unwrap_or_default();
    let code = all.iter().filter(|s| s.sh_flags & u64::from(SHF_EXECINSTR) != 0);
    let range = |start: u64, size: u64| (start.wrapping_add(bias), start.wrapping_add(size).wrapping_add(bias));
    code.map(|s| range(s.sh_addr, s.sh_size)).collect()
}

/// Where files without a place of their own are taken to lie: small numbers are no addresses there.
const BIAS: u64 = 0x5555_0000_0000;

/// From addresses with `bias` to those of the file. A damaged file names addresses that went past the end of all
/// numbers when the bias was added, so it is taken off in the same way.
fn unbias(sites: &mut Sites, bias: u64) {
    for site in &mut sites.sites {
        site.at = site.at.wrapping_sub(bias);
        for operand in site.operands.iter_mut().filter(|o| o.is(Operand::OF_MODULE)) {
            operand.displacement = operand.displacement.wrapping_sub(bias);
        }
    }
    sites.units.iter_mut().for_each(|unit| unit.at = unit.at.wrapping_sub(bias));
    sites.unwatched.iter_mut().for_each(|part| part.at = part.at.wrapping_sub(bias));
    sites.imports.iter_mut().for_each(|(at, _)| *at = at.wrapping_sub(bias));
    sites.random.iter_mut().for_each(|at| *at = at.wrapping_sub(bias));
}

/// The same of a file that has been read; addresses are those that it has there.
fn find_in(image: Image, choice: Choice, sections: &[(u64, u64)]) -> Sites {
    let images = Images::new(vec![image], BTreeSet::new());
    let Some(image) = images.all().first() else { return Sites::default() };
    let mut sites = Sites::default();
    let mut bodies = Vec::new();
    for mut extent in image.extents.all() {
        // None reaches from one section into another, whatever is said of it.
        let around = sections.iter().find(|(start, end)| (*start..*end).contains(&extent.start));
        extent.end = around.map_or(extent.end, |section| extent.end.min(section.1));
        if extent.bounded {
            bodies.push(Body::new(image, extent));
        }
    }
    let functions: Vec<(u64, u64)> = bodies.iter().map(|body| (body.extent.start, body.extent.end)).collect();
    sites.unwatched = uncovered(image, &functions, sections);
    for body in &mut bodies {
        if sites
            .unwatched
            .iter()
            .any(|part| part.reason == Reason::Unbounded && runs_into(image, part, body.extent.start))
        {
            body.until = 0;
        }
    }
    let mut references = References::collect(image, &bodies);
    take_from_data(image, &mut references);
    let understood = follow_jumps(&images, image, &mut bodies, &mut references);
    let mut finder = Finder { image, choice, references: &references, info: InstructionInfoFactory::new(), sites };
    for (n, body) in bodies.iter().enumerate() {
        finder.body(body, understood[n]);
    }
    let mut sites = finder.sites;
    name_functions(image, &mut sites);
    sites.sites.sort_by_key(|site| site.at);
    sites.units.sort_by_key(|unit| unit.at);
    sites.unwatched.sort();
    sites.random.sort_unstable();
    sites
}

/// The code of no known function goes on where `function` is said to start, or within an instruction there: that is not where one starts.
fn runs_into(image: &Image, part: &Unwatched, function: u64) -> bool {
    if part.at + part.length != function {
        return false;
    }
    let bytes = image.tail(part.at);
    let bytes = &bytes[..bytes.len().min(part.length as usize)];
    let last = Decoder::with_ip(64, bytes, part.at, DecoderOptions::NONE).into_iter().last();
    !last.is_some_and(|i| !i.is_invalid() && (ends(&i) || matches!(i.mnemonic(), Mnemonic::Nop | Mnemonic::Int3)))
}

/// Which functions of others the module may call, and which it defines. libc has no names of C++.
fn name_functions(image: &Image, sites: &mut Sites) {
    let wanted = |name: &String| !name.starts_with("_Z");
    for (at, word) in &image.dynamic.words {
        if let Word::Symbol(name, 0) = word {
            sites.imports.extend(Some(name).filter(|name| wanted(name)).map(|name| (*at, name.clone())));
        }
    }
    sites.defines = image.exports().keys().filter(|name| wanted(name)).cloned().collect();
}

/// Addresses of code in the module's data.
fn take_from_data(image: &Image, references: &mut References) {
    let words = image.dynamic.words.values().filter_map(|word| match word {
        Word::Address(at) | Word::Chosen(at) => Some(*at),
        Word::Symbol(name, addend) => Some(image.exports().get(name)?.wrapping_add(*addend)),
    });
    references.labels.extend(words.filter(|at| image.is_code(*at)));
    if !image.relocatable {
        references.labels.extend(fixed_pointers(image).into_iter().map(|(_, at)| at));
    }
    references.taken.extend(&references.labels);
}

/// Adds where jumps through tables, and landing pads, lead; takes away what is data. Says of each function whether all its jumps are
/// understood.
fn follow_jumps(images: &Images, image: &Image, bodies: &mut [Body], references: &mut References) -> Vec<bool> {
    let mut understood = vec![true; bodies.len()];
    for (n, body) in bodies.iter().enumerate() {
        let pads = body.extent.handlers.map(|at| unwind::landing_pads(image, body.extent.start, at));
        let blind = pads.as_ref().is_some_and(Option::is_none);
        let mut open = pads.flatten().unwrap_or_default();
        open.iter().for_each(|at| references.branched.insert(*at));
        understood[n] = !blind;
        if !body.jumps_indirectly(image) {
            continue;
        }
        let labels = references.taken.range(body.extent.start + 1..body.extent.end.max(body.extent.start + 1));
        let labels: BTreeSet<u64> = labels.copied().collect();
        open.extend(labels.iter().filter(|at| body.position(**at).is_some()));
        open.retain(|at| body.position(*at).is_some());
        let Jumps { targets, tables, understood: all } =
            function::jumps(images, image, &body.extent, body.code.clone(), &open, !labels.is_empty());
        targets.iter().for_each(|at| references.branched.insert(*at));
        references.accessed.extend(tables.iter().filter(|at| image.is_code(**at)));
        for table in tables_of(image, body) {
            references.branched.insert(table);
        }
        understood[n] &= all;
    }
    for body in bodies {
        references.without_data(body);
    }
    understood
}

/// Where tables of distances would lead whose addresses the function takes: those that are not recognized as such must do no harm.
fn tables_of(image: &Image, body: &Body) -> Vec<u64> {
    const MOST: u64 = 1 << 12;
    let mut found = Vec::new();
    for i in body.code.iter().filter(|i| i.mnemonic() == Mnemonic::Lea && i.is_ip_rel_memory_operand()) {
        let table = i.ip_rel_memory_address();
        if image.is_code(table) || !image.is_constant(table) {
            continue;
        }
        for n in 0..MOST {
            let Some(distance) = image.u32_at(table + 4 * n) else { break };
            let to = table.wrapping_add(i64::from(distance as i32) as u64);
            if body.position(to).is_none() {
                break;
            }
            found.push(to);
        }
    }
    found
}

struct Finder<'a> {
    image: &'a Image,
    choice: Choice,
    references: &'a References,
    info: InstructionInfoFactory,
    sites: Sites,
}

impl Finder<'_> {
    /// The sites of one function.
    fn body(&mut self, body: &Body, understood: bool) {
        self.sites.counts.functions += 1;
        self.sites.counts.instructions += body.code.len() as u32;
        let (start, end) = (body.extent.start, body.extent.end);
        if body.until < end {
            let reason = if body.code.iter().any(Instruction::is_invalid) { Reason::Undecodable } else { Reason::Data };
            let at = body.until.max(start);
            self.sites.unwatched.push(Unwatched { at, length: end - at, reason });
        }
        let code = &body.code[..body.code.partition_point(|i| i.next_ip() <= body.until)];
        if code.is_empty() {
            return;
        }
        self.sites.counts.opaque += u32::from(!understood);
        let is_random = |i: &&Instruction| matches!(i.mnemonic(), Mnemonic::Rdrand | Mnemonic::Rdseed);
        self.sites.random.extend(code.iter().filter(is_random).map(Instruction::ip));
        let first = self.sites.sites.len();
        self.sites_of(body, code);
        if self.sites.sites.len() > first {
            let room = if body.until < end { 0 } else { groups::padding(self.image, end) };
            let units = groups::units(
                code,
                &self.sites.sites[first..],
                &self.references.branched,
                &self.references.taken,
                understood,
                room,
            );
            self.sites.units.extend(units);
        }
    }

    fn sites_of(&mut self, body: &Body, code: &[Instruction]) {
        let image = self.image;
        let is_constant = |at: u64| image.contains(at) && (image.is_constant(at) || image.dynamic.slots.contains(&at));
        let frame = has_frame(code);
        let is_whole = self.references.entered.range(body.extent.start..body.extent.end).next().is_none()
            && !code.iter().any(|i| body.is_left_by(i))
            && begins_frame(code);
        let private = is_whole && !code.iter().any(|i| reveals_frame(i, frame));
        let around = Around { choice: self.choice, frame, private, is_constant: &is_constant };
        let mut found: Vec<(usize, Site)> = Vec::new();
        let mut effects = Vec::with_capacity(code.len());
        let mut seen = Seen::default();
        let mut counts = std::mem::take(&mut self.sites.counts);
        for (n, i) in code.iter().enumerate() {
            if self.references.branched.contains(i.ip()) || self.references.taken.contains(&i.ip()) {
                seen.forget();
            }
            let info = self.info.info(i);
            effects.push(Effect::of(i, info));
            match access::operands(i, info, &around, &mut counts) {
                Ok(operands) if operands.is_empty() => {}
                Ok(operands) if is_movable(i) => {
                    let repeated = seen.repeats(&operands) && self.choice.skip_repeated;
                    found.push((n, Site { at: i.ip(), alive: 0, operands, repeated }));
                }
                Ok(_) => self.sites.unwatched.push(unwatched(i, Reason::Fixed)),
                Err(reason) => self.sites.unwatched.push(unwatched(i, reason)),
            }
            seen.step(i, info);
        }
        self.sites.counts = counts;
        if found.is_empty() {
            return;
        }
        let entry = |at| body.position(at).filter(|n| *n < code.len());
        let alive = live::alive(code, &effects, entry);
        let references = self.references;
        let is_target = |at: u64| references.taken.contains(&at) || references.entered.contains(&at);
        let untold = rounds::untold(code, &effects, entry, is_target);
        for (n, site) in found.iter_mut().filter(|(n, _)| untold.contains(n)) {
            debug_assert!(code[*n].ip() == site.at);
            site.operands.iter_mut().for_each(|o| o.flags |= Operand::UNTOLD);
        }
        self.sites.sites.extend(found.into_iter().map(|(n, site)| Site { alive: alive[n], ..site }));
    }
}

fn unwatched(i: &Instruction, reason: Reason) -> Unwatched {
    Unwatched { at: i.ip(), length: i.len() as u64, reason }
}

/// An instruction with an operand in memory that does the same elsewhere.
fn is_movable(i: &Instruction) -> bool {
    !i.is_call_far_indirect() && !i.is_jmp_far_indirect() && i.mnemonic() != Mnemonic::Xbegin
}

/// The function has its frame pointer in rbp, and nothing else.
fn has_frame(code: &[Instruction]) -> bool {
    let to_rbp = |i: &Instruction| {
        i.op_count() > 0 && i.op0_kind() == OpKind::Register && i.op0_register().full_register() == Register::RBP
    };
    let sets = |i: &Instruction| {
        i.mnemonic() == Mnemonic::Mov
            && to_rbp(i)
            && i.op1_kind() == OpKind::Register
            && i.op1_register() == Register::RSP
    };
    let keeps = |i: &Instruction| {
        matches!(i.mnemonic(), Mnemonic::Pop | Mnemonic::Push | Mnemonic::Cmp | Mnemonic::Test)
            || i.mnemonic() == Mnemonic::Lea && i.memory_base() == Register::RSP && i.memory_index() == Register::None
            || sets(i)
    };
    code.iter().any(sets) && code.iter().all(|i| !to_rbp(i) || keeps(i))
}

/// What lies on the stack is reached when the function has made room for it; if not, the frame is another one's, of which this is a part.
fn begins_frame(code: &[Instruction]) -> bool {
    let makes_room = |i: &Instruction| {
        i.mnemonic() == Mnemonic::Push || i.mnemonic() == Mnemonic::Sub && i.op0_register() == Register::RSP
    };
    let reaches = |i: &Instruction| {
        let operand = (0..i.op_count()).any(|n| i.op_kind(n) == OpKind::Memory);
        operand && i.memory_base() == Register::RSP && i.memory_displacement64() as i64 >= 0
    };
    code.iter().find(|i| makes_room(i) || reaches(i)).is_none_or(makes_room)
}

/// The instruction puts an address on the stack anywhere but into rsp and, in a function with a frame pointer, into rbp; or gives rsp a value
/// from elsewhere. In a function without such ones all of its frame is its own: to know where it is, somebody has to compute that.
fn reveals_frame(i: &Instruction, frame: bool) -> bool {
    let points = |register: Register| register == Register::RSP || frame && register == Register::RBP;
    let narrow =
        |register: Register| register != Register::None && points(register.full_register()) && !points(register);
    let register = |n: u32| if i.op_kind(n) == OpKind::Register { i.op_register(n) } else { Register::None };
    let is_memory = (0..i.op_count()).any(|n| i.op_kind(n) == OpKind::Memory);
    // An address that is computed from the frame, but for the stack pointer itself.
    if i.mnemonic() == Mnemonic::Lea && (points(i.memory_base()) || points(i.memory_index())) {
        return !points(register(0));
    }
    if is_memory && points(i.memory_index()) {
        return true;
    }
    let named = (0..i.op_count()).map(register);
    let (mut used, mut parts) = (named.clone().filter(|&r| points(r)), named.clone().filter(|&r| narrow(r)));
    if parts.next().is_some() {
        return true;
    }
    match i.mnemonic() {
        // Saves and restores the caller's.
        Mnemonic::Push | Mnemonic::Pop => register(0) == Register::RSP,
        Mnemonic::Leave => false,
        Mnemonic::Mov => used.next().is_some() && !(points(register(0)) && points(register(1))),
        Mnemonic::Add | Mnemonic::Sub | Mnemonic::And => {
            points(register(1)) || points(register(0)) && (register(1) != Register::None || is_memory)
        }
        _ => used.next().is_some(),
    }
}
