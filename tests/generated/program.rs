//! Random programs: what their threads do to memory that all of them use, as C and as operations of a small machine.

use std::fmt::Write as _;

/// Numbers from a seed (splitmix64).
pub struct Rng(pub u64);

impl Rng {
    /// Below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    pub fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }
}

/// Bytes of the memory that is shared.
pub const BYTES: usize = 64;
/// Numbers that a thread has of its own; the last two are for what is on the way.
pub const OWN: usize = 5;
/// Of which the outcome tells these.
pub const TOLD: usize = 3;

/// A variable: as C, offset and size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell(&'static str, usize, usize);

/// All variables; some have bytes in common.
const CELLS: &[Cell] = &[
    Cell("C->l", 0, 8),
    Cell("C->i[0]", 8, 4),
    Cell("C->i[1]", 12, 4),
    Cell("C->c[0]", 16, 1),
    Cell("C->c[1]", 17, 1),
    Cell("C->h", 18, 2),
    Cell("C->v[0]", 32, 8),
    Cell("C->v[1]", 40, 8),
    Cell("*(volatile unsigned int *)&C->l", 0, 4),
    Cell("*(volatile unsigned long *)&C->i[0]", 8, 8),
    Cell("*(volatile unsigned long *)&C->c[0]", 16, 8),
];
/// Two bit fields of one byte: name, place, bits.
const FIELDS: [(&str, u32, u32); 2] = [("low", 0, 3), ("high", 3, 5)];
const FIELDS_AT: usize = 24;

/// A number: given, or one of the thread's own and something more.
#[derive(Clone, Copy, Debug)]
pub enum Val {
    Is(u64),
    Own(usize, u64),
}

/// One step of the machine. Memory is (offset, bytes).
#[derive(Clone, Copy, Debug)]
pub enum Op {
    Load(usize, (usize, usize)),
    Store((usize, usize), Val),
    /// What was there, the place, what it becomes.
    Update(Option<usize>, (usize, usize), How, Val),
    /// Whether it was done, what was there, the place, expected, new.
    Swap(usize, usize, (usize, usize), Val, Val),
    /// Sixteen bytes: whether it was done, expected and new.
    SwapWide(usize, [u64; 2], [u64; 2]),
    /// Goes on when the place is not zero.
    Await((usize, usize)),
    /// Of the thread's own: keeps these bits, sets those, and shifts.
    Set(usize, Val, u64, u64, u32),
    /// Goes on there unless it has this value.
    Unless(usize, u64, usize),
    Sync(Sync, usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Add,
    Or,
    Exchange,
}

/// Operations of the library and of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    Lock,
    TryLock,
    Unlock,
    Post,
    Wait,
    TryWait,
    Value,
    Read,
    TryRead,
    Write,
    TryWrite,
    Release,
    EventAdd,
    EventTake,
    Send,
    Receive,
    Meet,
    Yield,
}

const ORDERS: [&str; 4] = ["__ATOMIC_RELAXED", "__ATOMIC_ACQUIRE", "__ATOMIC_RELEASE", "__ATOMIC_SEQ_CST"];

/// Where the memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Global,
    Heap,
    Stack,
    /// Of processes, which are forked.
    Mapped,
}

#[derive(Debug)]
pub struct Program {
    pub place: Place,
    /// Whether the first thread does what the first body says, instead of another thread.
    pub first: bool,
    /// What the semaphore has to begin with.
    pub posted: u64,
    pub bodies: Vec<Body>,
    /// Whether an access uses more than eight bytes.
    pub wide: bool,
}

#[derive(Debug, Default)]
pub struct Body {
    pub text: String,
    pub ops: Vec<Op>,
}

struct Drawing<'a> {
    rng: &'a mut Rng,
    cells: Vec<Cell>,
    body: Body,
    wide: bool,
    /// Locks that are held.
    held: [bool; 2],
}

impl Program {
    pub fn draw(rng: &mut Rng) -> Program {
        let threads = 2 + u64::from(rng.below(3) == 0);
        let cells: Vec<_> = (0..1 + rng.below(3)).map(|_| rng.of(CELLS)).collect();
        let most = if threads == 2 { 4 } else { 2 };
        let mut wide = false;
        let bodies = (0..threads)
            .map(|_| {
                let mut drawing =
                    Drawing { rng, cells: cells.clone(), body: Body::default(), wide: false, held: [false; 2] };
                for _ in 0..1 + drawing.rng.below(most) {
                    drawing.step(0);
                }
                wide |= drawing.wide;
                drawing.body
            })
            .collect();
        let place = rng.of(&[Place::Global, Place::Heap, Place::Stack, Place::Mapped]);
        Program { place, first: rng.below(2) == 0, posted: rng.below(2), bodies, wide }
    }
}

impl Drawing<'_> {
    fn c(&mut self, text: &str) {
        writeln!(self.body.text, "    {text} BAR;").expect("text");
    }

    fn op(&mut self, op: Op) {
        self.body.ops.push(op);
    }

    fn own(&mut self) -> usize {
        self.rng.below(TOLD as u64) as usize
    }

    fn value(&mut self) -> (String, Val) {
        match self.rng.below(3) {
            0 => {
                let own = self.own();
                (format!("r[{own}] + 2"), Val::Own(own, 2))
            }
            _ => {
                let value = self.rng.below(3);
                (format!("{value}"), Val::Is(value))
            }
        }
    }

    fn step(&mut self, depth: u32) {
        let which = self.rng.below(if depth < 2 { 36 } else { 28 });
        let Cell(name, at, size) = {
            let cells = self.cells.clone();
            self.rng.of(&cells)
        };
        let (place, own) = ((at, size), self.own());
        let order = self.rng.of(&ORDERS);
        let load = if order == ORDERS[2] { ORDERS[1] } else { order };
        let store = if order == ORDERS[1] { ORDERS[2] } else { order };
        match which {
            0..=2 => {
                self.c(&format!("r[{own}] = {name};"));
                self.op(Op::Load(own, place));
            }
            3..=5 => {
                let (text, value) = self.value();
                self.c(&format!("{name} = {text};"));
                self.op(Op::Store(place, value));
            }
            6 | 7 => {
                self.c(&format!("{name} = {name} + 1;"));
                self.op(Op::Load(OWN - 1, place));
                self.op(Op::Store(place, Val::Own(OWN - 1, 1)));
            }
            8 => {
                let suffix = ["b", "w", "", "l", "", "", "", "q"][size - 1];
                self.c(&format!("__asm__ volatile(\"inc{suffix} %0\" : \"+m\"({name}) : : \"cc\");"));
                self.op(Op::Load(OWN - 1, place));
                self.op(Op::Store(place, Val::Own(OWN - 1, 1)));
            }
            9 | 10 => {
                self.c(&format!("r[{own}] = __atomic_load_n(&{name}, {load});"));
                self.op(Op::Load(own, place));
            }
            11 | 12 => {
                let (text, value) = self.value();
                self.c(&format!("__atomic_store_n(&{name}, {text}, {store});"));
                self.op(Op::Store(place, value));
            }
            13 | 14 => {
                let (text, value) = self.value();
                let (function, how) =
                    self.rng.of(&[("fetch_add", How::Add), ("fetch_or", How::Or), ("exchange_n", How::Exchange)]);
                let told = self.rng.below(2) == 0;
                let to = if told { format!("r[{own}] = ") } else { String::new() };
                self.c(&format!("{to}__atomic_{function}(&{name}, {text}, {order});"));
                self.op(Op::Update(told.then_some(own), place, how, value));
            }
            15 => {
                self.c(&format!("r[{own}] = (__atomic_fetch_or(&{name}, 4, {order}) >> 2) & 1;"));
                self.op(Op::Update(Some(own), place, How::Or, Val::Is(4)));
                self.op(Op::Set(own, Val::Own(own, 0), 4, 0, 2));
            }
            16 | 17 => {
                let (text, value) = self.value();
                let found = (own + 1) % TOLD;
                self.c(&format!(
                    "{{ __typeof__({name}) e = 1; r[{own}] = __atomic_compare_exchange_n(&{name}, &e, {text}, 0, {order}, {}); r[{found}] = e; }}",
                    ORDERS[0]
                ));
                self.op(Op::Swap(own, found, place, Val::Is(1), value));
            }
            18 => {
                self.c(&format!(
                    "{{ __typeof__({name}) e = __atomic_load_n(&{name}, {load}); while (!__atomic_compare_exchange_n(&{name}, &e, e + 3, 0, {order}, {})) {{}} r[{own}] = e; }}",
                    ORDERS[0]
                ));
                self.op(Op::Load(own, place));
                let here = self.body.ops.len();
                self.op(Op::Swap(OWN - 1, own, place, Val::Own(own, 0), Val::Own(own, 3)));
                self.op(Op::Unless(OWN - 1, 1, here));
            }
            19 => {
                let (field, place, bits) = self.rng.of(&FIELDS);
                let mask = ((1_u64 << bits) - 1) << place;
                if self.rng.below(2) == 0 {
                    self.c(&format!("C->bits.{field} = 5;"));
                    self.op(Op::Load(OWN - 1, (FIELDS_AT, 1)));
                    self.op(Op::Set(OWN - 1, Val::Own(OWN - 1, 0), !mask, 5 << place, 0));
                    self.op(Op::Store((FIELDS_AT, 1), Val::Own(OWN - 1, 0)));
                } else {
                    self.c(&format!("r[{own}] = C->bits.{field};"));
                    self.op(Op::Load(own, (FIELDS_AT, 1)));
                    self.op(Op::Set(own, Val::Own(own, 0), mask, 0, place));
                }
            }
            20 => {
                self.c(&format!(
                    "{{ unsigned long n = 0; memcpy(&n, (void *)&{name}, sizeof {name}); r[{own}] = n; }}"
                ));
                self.op(Op::Load(own, place));
            }
            21 => self.wide(own),
            22 => self.sync("post", Sync::Post, own),
            23 => self.sync("wait", Sync::Wait, own),
            24 => self.sync("trywait", Sync::TryWait, own),
            25 => {
                let (text, sync) = self.rng.of(&[
                    ("value", Sync::Value),
                    ("yield", Sync::Yield),
                    ("meet", Sync::Meet),
                    ("eventadd", Sync::EventAdd),
                    ("eventtake", Sync::EventTake),
                    ("send", Sync::Send),
                    ("receive", Sync::Receive),
                ]);
                self.sync(text, sync, own);
            }
            // What waits for memory that is not known to be shared takes seconds to be found.
            26 if self.rng.below(4) == 0 => {
                self.c(&format!("while (!{name}) {{}}"));
                self.op(Op::Await(place));
            }
            27 if self.rng.below(4) == 0 => {
                self.c(&format!("while (!__atomic_load_n(&{name}, {load})) {{}}"));
                self.op(Op::Await(place));
            }
            26 | 27 => self.wide(own),
            28 | 29 => {
                // Looks twice at most, and tells how often.
                self.c(&format!("r[{own}] = 0; while (r[{own}] < 2 && !{name}) r[{own}]++;"));
                self.op(Op::Set(own, Val::Is(0), !0, 0, 0));
                let first = self.body.ops.len();
                self.op(Op::Load(OWN - 1, place));
                self.op(Op::Unless(OWN - 1, 0, first + 6));
                self.op(Op::Set(own, Val::Own(own, 1), !0, 0, 0));
                self.op(Op::Load(OWN - 1, place));
                self.op(Op::Unless(OWN - 1, 0, first + 6));
                self.op(Op::Set(own, Val::Own(own, 1), !0, 0, 0));
            }
            30 | 31 => {
                let value = self.rng.below(3);
                self.inside(depth, own, value, |_| {});
            }
            32 | 33 if !self.held[0] => {
                self.held[0] = true;
                if self.rng.below(3) == 0 {
                    self.sync("trylock", Sync::TryLock, own);
                    self.inside(depth, own, 0, |me| me.sync("unlock", Sync::Unlock, 0));
                } else {
                    self.sync("lock", Sync::Lock, 0);
                    self.more(depth);
                    self.sync("unlock", Sync::Unlock, 0);
                }
                self.held[0] = false;
            }
            34 | 35 if !self.held[1] => {
                self.held[1] = true;
                let (text, sync) = self.rng.of(&[
                    ("readlock", Sync::Read),
                    ("writelock", Sync::Write),
                    ("tryread", Sync::TryRead),
                    ("trywrite", Sync::TryWrite),
                ]);
                self.sync(text, sync, own);
                if text.starts_with("try") {
                    self.inside(depth, own, 0, |me| me.sync("release", Sync::Release, 0));
                } else {
                    self.more(depth);
                    self.sync("release", Sync::Release, 0);
                }
                self.held[1] = false;
            }
            _ => {
                self.c("__atomic_thread_fence(__ATOMIC_SEQ_CST);");
            }
        }
    }

    /// Sixteen bytes at once, or one after the other by the library.
    fn wide(&mut self, own: usize) {
        self.wide = true;
        let other = (own + 1) % TOLD;
        match self.rng.below(4) {
            0 => {
                self.c(&format!("{{ v2 n = *(volatile v2 *)C->v; r[{own}] = n[0]; r[{other}] = n[1]; }}"));
                self.op(Op::Load(own, (32, 8)));
                self.op(Op::Load(other, (40, 8)));
            }
            1 => {
                self.c(&format!("*(volatile v2 *)C->v = (v2){{ 1, r[{own}] }};"));
                self.op(Op::Store((32, 8), Val::Is(1)));
                self.op(Op::Store((40, 8), Val::Own(own, 0)));
            }
            2 => {
                self.c(&format!(
                    "{{ unsigned long n[2]; memcpy(n, (void *)C->v, sixteen); r[{own}] = n[0]; r[{other}] = n[1]; }}"
                ));
                self.op(Op::Load(own, (32, 8)));
                self.op(Op::Load(other, (40, 8)));
            }
            _ => {
                self.c(&format!("r[{own}] = swap_wide(C->v, 0, 1, 1, 2);"));
                self.op(Op::SwapWide(own, [0, 1], [1, 2]));
            }
        }
    }

    fn sync(&mut self, text: &str, sync: Sync, own: usize) {
        self.c(&format!("r[{own}] = do_{text}(r[{own}]);"));
        self.op(Op::Sync(sync, own));
    }

    fn more(&mut self, depth: u32) {
        for _ in 0..1 + self.rng.below(2) {
            self.step(depth + 1);
        }
    }

    /// More steps where `own` has this value, and what comes after them.
    fn inside(&mut self, depth: u32, own: usize, value: u64, after: impl Fn(&mut Self)) {
        writeln!(self.body.text, "    if (r[{own}] == {value}) {{").expect("text");
        let here = self.body.ops.len();
        self.op(Op::Unless(own, value, 0));
        self.more(depth);
        after(self);
        let end = self.body.ops.len();
        self.body.ops[here] = Op::Unless(own, value, end);
        writeln!(self.body.text, "    }}").expect("text");
    }
}
