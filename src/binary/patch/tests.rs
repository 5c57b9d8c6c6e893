use std::collections::BTreeSet;
use std::path::Path;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind};
use vsrun_model::watch::SLOW_PATHS;

use super::plan::PER_UNIT;
use super::*;
use crate::base::testing::TempDir;
use crate::binary::allowed::image::Image;
use crate::binary::sites::{find, Choice, Sites};

const BIAS: u64 = 0x5555_5555_4000;

/// A program with short and long accesses, loops and a switch.
const SOURCE: &str = "
    struct node { struct node *next; char a, b; short c; int d; long e; } *head; char text[100]; int table[50];
    __attribute__((noinline)) long walk(struct node *n) { long s = 0; while (n) { s += n->a + n->d; n->b = s; n = n->next; } return s; }
    __attribute__((noinline)) int pick(int k) { switch (k) { case 0: return text[k]; case 1: return table[2]; case 2: text[3]++; return 1;
        case 3: return text[9] * 2; case 4: table[k] = 5; return 2; case 5: return text[1]; default: return 0; } }
    __attribute__((noinline)) void fill(char *p, int n) { for (int i = 0; i < n; i++) p[i] ^= i; }
    int main(int n, char **v) { fill(text, n); return walk(head) + pick(n) + v[0][0]; }
";

struct Case {
    _dir: TempDir,
    sites: Sites,
    text: Vec<(u64, Vec<u8>)>,
}

fn case(flags: &[&str]) -> Case {
    let dir = TempDir::new();
    let program = dir.compile("p", "c", SOURCE, flags);
    let sites = find(&program, Choice::default()).unwrap();
    let text = text_of(&program);
    Case { _dir: dir, sites, text }
}

fn text_of(program: &Path) -> Vec<(u64, Vec<u8>)> {
    let image = Image::load(program, BIAS).unwrap();
    image.code().map(|(start, bytes)| (start, bytes.to_vec())).collect()
}

fn planned(case: &Case, form: Form) -> (Plan, Statistics) {
    let slow: [u64; SLOW_PATHS] = std::array::from_fn(|n| 0x7fff_f7f0_0000 + 64 * n as u64);
    let taken = case.text.iter().map(|(start, bytes)| *start - 0x1000..*start + bytes.len() as u64 + 0x4000);
    let input = Input { sites: &case.sites, bias: BIAS, text: case.text.clone() };
    let (plan, modules) = plan(&[input], Space::new(taken), slow, form);
    assert!(modules[0].1.is_empty(), "{:?}", modules[0].1);
    (plan, modules[0].0)
}

/// The patched text.
fn patched(case: &Case, plan: &Plan) -> Vec<(u64, Vec<u8>)> {
    let mut text = case.text.clone();
    for (at, bytes) in &plan.writes {
        let (start, part) = text.iter_mut().find(|(s, b)| (*s..*s + b.len() as u64).contains(at)).unwrap();
        let from = (at - *start) as usize;
        part[from..from + bytes.len()].copy_from_slice(bytes);
    }
    text
}

fn decode(memory: &[(u64, Vec<u8>)], at: u64) -> Option<Instruction> {
    let (start, bytes) = memory.iter().find(|(s, b)| (*s..*s + b.len() as u64).contains(&at))?;
    let i = Decoder::with_ip(64, &bytes[(at - start) as usize..], at, DecoderOptions::NONE).decode();
    (!i.is_invalid()).then_some(i)
}

#[test]
fn every_site_leads_to_its_check_and_back() {
    for flags in [&["-O1"][..], &["-O2"], &["-O0"], &["-Os"]] {
        let case = case(flags);
        for form in [Form::Best, Form::Punned, Form::Trapped] {
            let (plan, statistics) = planned(&case, form);
            let Statistics { jump, group, inside, punned, trap, .. } = statistics;
            assert_eq!(
                jump + group + inside + punned + trap,
                case.sites.checked(),
                "{flags:?} {form:?}: {statistics:?}"
            );
            assert!(form == Form::Best || jump + group + inside == 0);
            assert!(form == Form::Trapped || trap < case.sites.checked() / 2, "{flags:?} {form:?}: {statistics:?}");
            let text = patched(&case, &plan);
            let memory: Vec<_> = plan.mapped.iter().map(|m| (m.at, m.bytes.clone())).collect();
            for unit in case.sites.units.iter() {
                follow(&plan, &text, &memory, unit.at + BIAS, form);
            }
        }
    }
}

/// From a patched place, by way of at most one slot, control comes to a trampoline in which each instruction decodes, up to a jump back
/// into the text, or an instruction that leaves for good.
fn follow(plan: &Plan, text: &[(u64, Vec<u8>)], memory: &[(u64, Vec<u8>)], at: u64, form: Form) {
    let first = match plan.traps.iter().find(|place| place.at == at) {
        Some(place) => place.to,
        None => {
            let Some(jump) = decode(text, at).filter(|i| i.flow_control() == FlowControl::UnconditionalBranch) else {
                // In a form without groups the first instruction of a unit may be no site.
                assert_ne!(form, Form::Best, "{at:#x}");
                return;
            };
            jump.near_branch_target()
        }
    };
    let mut at = first;
    for step in 0..200 {
        let i = decode(memory, at).unwrap_or_else(|| panic!("{at:#x} is no code"));
        match i.flow_control() {
            FlowControl::UnconditionalBranch if decode(memory, i.near_branch_target()).is_some() => {
                assert_eq!(step, 0, "more than a slot");
                at = i.near_branch_target();
            }
            FlowControl::UnconditionalBranch => {
                assert!(decode(text, i.near_branch_target()).is_some());
                return;
            }
            FlowControl::Return | FlowControl::IndirectBranch => return,
            _ => at = i.next_ip(),
        }
    }
    panic!("a trampoline without end at {first:#x}");
}

#[test]
fn moved_instructions_are_those_that_were_there() {
    let case = case(&["-O2"]);
    let (plan, _) = planned(&case, Form::Best);
    let memory: Vec<_> = plan.mapped.iter().map(|m| (m.at, m.bytes.clone())).collect();
    assert!(plan.moves.is_sorted_by(|a, b| a.at < b.at));
    for place in &plan.moves {
        let (old, new) = (decode(&case.text, place.to).unwrap(), decode(&memory, place.at).unwrap());
        if old.flow_control() == FlowControl::IndirectCall {
            continue;
        }
        assert_eq!(old.mnemonic(), new.mnemonic());
        if old.op0_kind() == OpKind::NearBranch64 {
            assert_eq!(old.near_branch_target(), new.near_branch_target());
        } else if old.op_count() > 0 && (0..old.op_count()).any(|n| old.op_kind(n) == OpKind::Memory) {
            let place = |i: &Instruction| (i.memory_base(), i.memory_index(), i.memory_displacement64());
            assert_eq!(place(&old), place(&new), "{old:?} {new:?}");
        }
    }
}

#[test]
fn nothing_is_jumped_to_inside_of_a_patch() {
    let case = case(&["-O2"]);
    let (plan, _) = planned(&case, Form::Best);
    let text = patched(&case, &plan);
    let mut entries = BTreeSet::new();
    for (start, bytes) in &case.text {
        for i in Decoder::with_ip(64, bytes, *start, DecoderOptions::NONE).into_iter().filter(|i| !i.is_invalid()) {
            if i.op0_kind() == OpKind::NearBranch64 {
                entries.insert(i.near_branch_target());
            }
        }
    }
    for unit in &case.sites.units {
        let range = unit.at + BIAS + 1..unit.at + BIAS + u64::from(unit.room);
        assert_eq!(entries.range(range).next(), None, "{unit:?}");
    }
    assert_ne!(text, case.text);
}

#[test]
fn where_there_is_no_room_it_is_said() {
    let case = case(&["-O1"]);
    let input = Input { sites: &case.sites, bias: BIAS, text: case.text.clone() };
    let (plan, modules) = plan(&[input], Space::new(std::iter::once(0..u64::MAX)), [1; SLOW_PATHS], Form::Best);
    assert!(plan.writes.is_empty() && !modules[0].1.is_empty());
}

/// Libraries lie one above the other, and what is free below them has to do for the trampolines of all: slots do not break it up.
#[test]
fn slots_take_no_module_its_room() {
    const MODULES: u64 = 10;
    const APART: u64 = 1 << 24;
    let case = case(&["-O1"]);
    let text = |n: u64| case.text.iter().map(move |(start, bytes)| (start + n * APART, bytes.clone())).collect();
    let input = |n| Input { sites: &case.sites, bias: BIAS + n * APART, text: text(n) };
    let inputs: Vec<Input> = (0..MODULES).map(input).collect();
    let needed = (PER_UNIT * (case.sites.units.len() as u64 + 8)).div_ceil(0x1000) * 0x1000;
    let low = BIAS - 0x1000_0000;
    let room = Space::new([0..low, low + MODULES * needed..u64::MAX]);
    let (plan, modules) = plan(&inputs, room, [BIAS; SLOW_PATHS], Form::Punned);
    assert!(modules.iter().all(|(of, unwatched)| of.sites > 0 && unwatched.is_empty()), "{modules:?}");
    assert_eq!(plan.slot_pages, 0, "all of it is taken");
}
