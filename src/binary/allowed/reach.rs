//! The closure of calls from one place on: which functions may run and which visible operations they may perform.

use std::collections::{BTreeMap, BTreeSet};

use vsrun_model::ObjKind;

use super::bound::AllowedOps;
use super::code::Code;
use super::function::{Destination, Summary};
use super::harmless;
use super::images::Callee;
use super::names::{self, Effect, FutexCommand};
use super::value::Value;
use crate::base::text::escape;
use crate::binary::demangle::demangle;
use crate::search::allowed::{KindClass, Operand};

/// Functions that were handed over to be called later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registered {
    functions: BTreeSet<Callee>,
    /// It is not known which: any whose address is taken.
    any: bool,
}

impl Registered {
    /// Adds others.
    pub fn add(&mut self, other: Registered) {
        self.functions.extend(other.functions);
        self.any |= other.any;
    }
}

/// Why a function is reached.
#[derive(Clone, Copy)]
enum Via {
    /// It is where the thread starts.
    Start,
    /// It is called directly.
    Call,
    /// Called through a pointer in the function that starts here.
    Pointer(u64),
    /// At exit, at the end of a thread, or by a signal.
    Registered,
}

/// What was reached so far.
pub struct Reach<'a> {
    program: &'a Code,
    /// Functions by their start, with why and from where.
    seen: BTreeMap<u64, Via>,
    /// Places other functions jump to, by function.
    entries: BTreeMap<u64, BTreeSet<u64>>,
    work: BTreeSet<u64>,
    /// Functions in which any of those whose address is taken is called, in the order found.
    indirect: Option<Via>,
    allowed: AllowedOps,
    creates: BTreeSet<u64>,
    taken: BTreeSet<Callee>,
    registered: Registered,
    /// Threads may start with any function whose address is taken.
    starts_any: bool,
    /// Created threads are followed too.
    with_created: bool,
}

impl<'a> Reach<'a> {
    /// Nothing is reached yet. `with_created`: follow created threads too.
    pub fn new(program: &'a Code, with_created: bool) -> Reach<'a> {
        Reach {
            program,
            seen: BTreeMap::new(),
            entries: BTreeMap::new(),
            work: BTreeSet::new(),
            indirect: None,
            allowed: AllowedOps::default(),
            creates: BTreeSet::new(),
            taken: BTreeSet::new(),
            registered: Registered::default(),
            starts_any: false,
            with_created,
        }
    }

    /// Reaches what a thread does that starts at `start`.
    pub fn start(&mut self, start: u64) {
        if self.program.images().is_code(start) {
            self.code(start, Via::Start);
        } else if let Some(bodies) = self.program.bodies.clone().filter(|_| start != 0) {
            // A function of the C++ library as a start routine: it calls the body of a std::thread.
            bodies.into_iter().for_each(|body| self.code(body, Via::Start));
        } else {
            self.any_taken(Via::Start);
        }
        self.run();
    }

    /// Reaches what any thread does, from `main` and what is run before and after it.
    pub fn everything(&mut self, main: u64) {
        self.code(main, Via::Start);
        for image in self.program.images().all() {
            for function in image.dynamic.init.iter().chain(&image.dynamic.fini) {
                self.code(*function, Via::Registered);
            }
        }
        self.run();
    }

    /// Reaches what every thread may call at its end, at that of the process, or for a signal.
    pub fn registered(&mut self, registered: &Registered) {
        for image in self.program.images().all() {
            for function in &image.dynamic.fini {
                self.code(*function, Via::Registered);
            }
        }
        for callee in &registered.functions {
            self.callee(callee, &[Value::Unknown; 6], None, Via::Registered);
        }
        if registered.any {
            self.any_taken(Via::Registered);
        }
        self.run();
    }

    /// What may be done and which threads are started.
    pub fn into_bound(self) -> (AllowedOps, BTreeSet<u64>) {
        (self.allowed, self.creates)
    }

    /// Whose addresses are taken, what is registered, and all operations.
    pub fn into_taken(self) -> (BTreeSet<Callee>, Registered, BTreeSet<(KindClass, Operand)>) {
        (self.taken, self.registered, self.allowed.ops)
    }

    fn run(&mut self) {
        while let Some(start) = self.work.pop_first() {
            let none = BTreeSet::new();
            let entries = self.entries.get(&start).unwrap_or(&none);
            match self.program.summary(start, entries) {
                Some(summary) => self.apply(start, &summary),
                None => self.anything(format!("{}, where there is no code, may be called", self.name(start))),
            }
        }
    }

    fn name(&self, function: u64) -> String {
        self.program.images().function_name(function)
    }

    /// `function`, and how it is reached if not directly.
    fn described(&self, function: u64) -> String {
        match self.seen.get(&function) {
            Some(Via::Pointer(from)) if *from != function => {
                format!("{} (which an indirect call in {} may reach)", self.name(function), self.name(*from))
            }
            Some(Via::Registered) => format!("{} (called at exit or by a signal)", self.name(function)),
            _ => self.name(function),
        }
    }

    fn anything(&mut self, why: String) {
        self.allowed.anything = true;
        if !self.allowed.why.contains(&why) {
            self.allowed.why.push(why);
        }
    }

    /// Reaches the code at `address`.
    fn code(&mut self, address: u64, via: Via) {
        if address <= 1 {
            return; // no function: nothing, SIG_DFL or SIG_IGN
        }
        if let Some(slot) = self.program.images().stub(address) {
            return self.slot(slot, &[Value::Unknown; 6], None, via);
        }
        let start = self.program.start_of(address);
        let new = !self.seen.contains_key(&start);
        self.seen.entry(start).or_insert(via);
        let entered = start != address && self.entries.entry(start).or_default().insert(address);
        if new || entered {
            self.work.insert(start);
        }
    }

    /// Calls what the slot holds; `from` is the calling function.
    fn slot(&mut self, slot: u64, arguments: &[Value; 6], from: Option<u64>, via: Via) {
        let callees = self.program.images().callees(slot);
        if callees.is_empty() {
            let caller = from.map_or_else(|| "the program".to_string(), |f| self.described(f));
            self.anything(format!("a call in {caller} goes through a word that nothing is known of"));
        }
        callees.iter().for_each(|callee| self.callee(callee, arguments, from, via));
    }

    fn callee(&mut self, callee: &Callee, arguments: &[Value; 6], from: Option<u64>, via: Via) {
        match callee {
            Callee::Code(target) => self.code(*target, via),
            Callee::External(name) => self.external(name, arguments, from, via),
            // It gives back a function of its file, by the address that it takes of it.
            Callee::Chosen(resolver) => {
                self.code(*resolver, via);
                self.any_taken(via);
            }
        }
    }

    /// Any function whose address is taken may be called.
    fn any_taken(&mut self, via: Via) {
        if self.indirect.is_some() {
            return;
        }
        self.indirect = Some(via);
        let own: Vec<Callee> = self
            .taken
            .iter()
            .filter(|c| !matches!(c, Callee::Code(at) if self.program.start_of(*at) != *at))
            .cloned()
            .collect();
        for callee in self.program.taken.iter().chain(&own) {
            self.callee(callee, &[Value::Unknown; 6], None, via);
        }
    }

    fn apply(&mut self, function: u64, summary: &Summary) {
        for call in &summary.calls {
            match call.callee {
                Destination::Code(target) if target > 1 && !self.program.images().is_code(target) => {
                    self.anything(format!(
                        "a call in {} goes to {target:#x}, which is no code",
                        self.described(function)
                    ));
                }
                Destination::Code(target) => self.code(target, Via::Call),
                Destination::Slot(slot) => {
                    let arguments = call.arguments.as_deref().unwrap_or(&[Value::Unknown; 6]);
                    self.slot(slot, arguments, Some(function), Via::Call);
                }
            }
        }
        for at in &summary.taken {
            self.take(Callee::Code(*at));
        }
        for callee in summary.taken_slots.iter().flat_map(|slot| self.program.images().callees(*slot)) {
            self.take(callee.clone());
        }
        if summary.indirect {
            self.any_taken(Via::Pointer(function));
        }
        if summary.unreadable {
            self.anything(format!("the code of {} cannot be decoded", self.described(function)));
        }
        for (number, arguments) in &summary.system_calls {
            self.system_call(function, *number, arguments);
        }
    }

    /// Notes a taken address. Those of all that runs from `main` on are known before; a start that is not reached from
    /// there has its own.
    fn take(&mut self, callee: Callee) {
        let new = self.taken.insert(callee.clone()) && !self.program.taken.contains(&callee);
        let function = match callee {
            Callee::Code(at) => self.program.start_of(at) == at,
            _ => true,
        };
        if let (true, true, Some(via)) = (new, function, self.indirect) {
            self.callee(&callee, &[Value::Unknown; 6], None, via);
        }
    }

    fn system_call(&mut self, function: u64, number: Value, arguments: &[Value; 6]) {
        let Some(number) = number.single() else {
            let caller = self.described(function);
            return self.anything(format!("a system call in {caller} has a number that is not known"));
        };
        let number = number as i32 as i64;
        let Some(effects) = names::of_system_call(number) else {
            let caller = self.described(function);
            return self.anything(format!("system call {number}, in {caller}, may do anything"));
        };
        if number == names::FUTEX {
            match arguments[1].single().map(names::futex_command) {
                Some(FutexCommand::One) => {}
                Some(FutexCommand::Two) => self.on(ObjKind::FUTEX, arguments[4]),
                // Those with priority inheritance depend on everything.
                Some(FutexCommand::Inherits) | None => {
                    let caller = self.described(function);
                    return self.anything(format!("a futex call in {caller} may be one with priority inheritance"));
                }
            }
        }
        effects.iter().for_each(|effect| self.effect(*effect, arguments, function));
    }

    /// A call of a function that is known by name, or not.
    fn external(&mut self, name: &str, arguments: &[Value; 6], from: Option<u64>, via: Via) {
        if self.program.images().harmless.contains(name) {
            return;
        }
        let from = from.unwrap_or(match via {
            Via::Pointer(from) => from,
            _ => 0,
        });
        match names::effects(name) {
            Some(effects) => {
                effects.iter().for_each(|effect| self.effect(*effect, arguments, from));
                if self.program.derives && harmless::is_cxx(name) {
                    self.any_taken(Via::Pointer(from));
                }
            }
            None => {
                let caller = match via {
                    Via::Pointer(from) => format!("which an indirect call in {} may reach", self.name(from)),
                    Via::Registered if from == 0 => "called at exit or by a signal".to_string(),
                    _ if from == 0 => "which is called through a pointer".to_string(),
                    _ => format!("called in {}", self.described(from)),
                };
                let name = escape(demangle(name));
                self.anything(format!("{name}, {caller}, may do anything"));
            }
        }
    }

    fn effect(&mut self, effect: Effect, arguments: &[Value; 6], from: u64) {
        let argument = |n: usize| arguments.get(n).copied().unwrap_or_default();
        match effect {
            Effect::On(kind, n) => self.on(kind, argument(n)),
            Effect::Op(class) => drop(self.allowed.ops.insert((class, Operand::Any))),
            Effect::Calls(n) => match self.functions(argument(n)) {
                Some(callees) => {
                    callees.iter().for_each(|c| self.callee(c, &[Value::Unknown; 6], Some(from), Via::Call))
                }
                None => self.any_taken(Via::Pointer(from)),
            },
            Effect::Starts(n) => self.starts(argument(n), from),
            Effect::StartsBody => self.starts_body(),
            Effect::Registers(n) => match self.functions(argument(n)) {
                Some(callees) => self.registered.functions.extend(callees),
                None => self.registered.any = true,
            },
            Effect::RegistersAny => self.registered.any = true,
            Effect::CallsAny => self.any_taken(Via::Pointer(from)),
            Effect::SystemCall => {
                let mut shifted = [Value::Unknown; 6];
                shifted[..5].copy_from_slice(&arguments[1..]);
                self.system_call(from, argument(0).sign32(), &shifted);
            }
            Effect::Locks if self.program.libc_locks => {
                self.allowed.ops.insert((KindClass::On(ObjKind::FUTEX), Operand::Any));
                self.allowed.ops.insert((KindClass::On(ObjKind::STREAM), Operand::Any));
            }
            Effect::Locks => {}
        }
    }

    /// The functions that an argument can be. None: not known.
    fn functions(&self, value: Value) -> Option<Vec<Callee>> {
        match value {
            Value::Slot(slot) => Some(self.program.images().callees(slot).to_vec()),
            Value::Known(few) if !few.loose => {
                let code = |at: &u64| *at <= 1 || self.program.images().is_code(*at);
                few.all()
                    .iter()
                    .all(code)
                    .then(|| few.all().iter().filter(|a| **a > 1).map(|a| Callee::Code(*a)).collect())
            }
            _ => None,
        }
    }

    fn starts(&mut self, value: Value, from: u64) {
        let known = self.functions(value);
        if known.is_none() {
            if std::mem::replace(&mut self.starts_any, true) {
                return;
            }
            if self.with_created {
                self.any_taken(Via::Pointer(from));
            }
        }
        let callees = known.unwrap_or_else(|| self.program.taken.iter().chain(&self.taken).cloned().collect());
        for callee in callees {
            match callee {
                Callee::Code(start) => {
                    let start = self.program.images().stub(start).map_or(start, |_| 0);
                    self.creates.insert(start);
                    if self.with_created {
                        self.code(start, Via::Start);
                    }
                }
                // A function that is not the program's as a start routine: what it does is done by the creator too.
                other => self.callee(&other, &[Value::Unknown; 6], Some(from), Via::Pointer(from)),
            }
        }
    }

    fn starts_body(&mut self) {
        match self.program.bodies.clone() {
            Some(bodies) => {
                if self.with_created {
                    bodies.iter().for_each(|body| self.code(*body, Via::Start));
                }
                self.creates.extend(bodies);
            }
            None => self.starts(Value::Unknown, 0),
        }
    }

    /// An operation on an object of this kind at this address.
    fn on(&mut self, kind: ObjKind, address: Value) {
        let class = KindClass::On(kind);
        let Value::Known(few) = address else {
            self.allowed.ops.insert((class, Operand::Any));
            return;
        };
        for at in few.all() {
            let operands = if few.loose { self.arrays(kind, *at) } else { vec![Operand::Addr(*at)] };
            self.allowed.ops.extend(operands.into_iter().map(|operand| (class, operand)));
        }
    }

    /// An object of this kind in an array at or near `anchor`.
    fn arrays(&self, kind: ObjKind, anchor: u64) -> Vec<Operand> {
        let arrays = self.program.images().at(anchor).map(|image| image.arrays_near(anchor, size_of(kind)));
        match arrays {
            Some(arrays) if !arrays.is_empty() => arrays.into_iter().map(|r| Operand::Range(r.start, r.end)).collect(),
            _ => vec![Operand::Any],
        }
    }
}

/// How many bytes an object takes in memory (glibc, x86-64).
fn size_of(kind: ObjKind) -> u64 {
    match kind {
        ObjKind::MUTEX => 40,
        ObjKind::COND => 48,
        ObjKind::RWLOCK => 56,
        ObjKind::BARRIER | ObjKind::SEM => 32,
        _ => 4,
    }
}
