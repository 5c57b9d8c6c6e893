//! Random programs for `driver.c`, by families.

mod families;

pub use families::FAMILIES;

/// What a family's programs are made of.
#[derive(Clone, Copy)]
pub struct Family<'a> {
    pub name: &'a str,
    /// What a strand other than the first may be, drawn for each: threads (`t`) and processes (`f`) of the first one; threads that the strand
    /// before begins with (`i`), processes that it makes at any place (`p`). Of the first one these are processes.
    pub strands: &'a str,
    /// How many of them there are at most.
    pub most: u64,
    /// What the first strand does before it starts the others.
    pub before: &'a [&'a str],
    /// What strands do: operations, `*` for another item or nothing, `#` for another strand's number. None: those of a few other families,
    /// drawn for each program.
    pub items: &'a [&'a str],
}

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

    fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len() as u64) as usize]
    }
}

/// Operations that end a process, or replace its program.
const ENDS: &[&str] = &["_exit", "exit", "texit", "exec", "atexit"];

/// A program with items of a few families.
fn mixed(rng: &mut Rng) -> String {
    let whole: Vec<_> = FAMILIES.iter().filter(|family| !family.items.is_empty()).collect();
    let parts: Vec<_> = (0..2 + rng.below(2)).map(|_| *rng.of(&whole)).collect();
    let items: Vec<_> = parts.iter().flat_map(|part| part.items.iter().copied()).collect();
    // Beside other threads these end what is to tell the outcome.
    let alone = items.iter().any(|item| ENDS.iter().any(|end| item.starts_with(end)));
    let strands: String =
        parts.iter().flat_map(|part| part.strands.chars()).filter(|&c| c == 'f' || c == 't' && !alone).collect();
    let first = *rng.of(&parts);
    let before = [*rng.of(first.before)];
    let strands = if strands.is_empty() { "f" } else { &strands };
    Family { name: "", strands, most: 2, before: &before, items: &items }.draw(rng)
}

impl Family<'_> {
    /// A program.
    pub fn draw(&self, rng: &mut Rng) -> String {
        if self.items.is_empty() {
            return mixed(rng);
        }
        let others = 1 + rng.below(self.most);
        let mut strands = vec![Vec::new(); others as usize + 1];
        strands[0].extend(rng.of(self.before).split_whitespace().map(String::from));
        for (i, strand) in strands.iter_mut().enumerate().skip(1) {
            for _ in 0..1 + rng.below(3) {
                self.item(rng, i as u64, others, 0, strand);
            }
        }
        for i in 1..=others {
            // Most programs start everything at once.
            if rng.below(4) == 0 {
                self.item(rng, 0, others, 0, &mut strands[0]);
            }
            let (kind, own) = (*rng.of(self.strands.as_bytes()), i as usize);
            match kind {
                b't' => strands[0].push(format!("thread{i}")),
                b'i' if own > 1 => strands[own - 1].insert(0, format!("thread{i}")),
                b'p' if own > 1 => {
                    let at = rng.below(strands[own - 1].len() as u64 + 1) as usize;
                    strands[own - 1].insert(at, format!("fork{i}"));
                }
                _ => strands[0].push(format!("fork{i}")),
            }
        }
        for _ in 0..rng.below(4) {
            self.item(rng, 0, others, 0, &mut strands[0]);
        }
        strands.iter().map(|ops| ops.join(" ")).collect::<Vec<_>>().join("|")
    }

    fn item(&self, rng: &mut Rng, me: u64, others: u64, depth: u32, ops: &mut Vec<String>) {
        for word in rng.of(self.items).split_whitespace() {
            if word == "*" {
                if depth < 1 && rng.below(2) == 0 {
                    self.item(rng, me, others, depth + 1, ops);
                }
                continue;
            }
            // Who joins a thread twice, or ends before it prints its outcome, shows nothing.
            let whole = me == 0 || !["join", "tryjoin", "timedjoin"].iter().any(|j| word.starts_with(j));
            let ends = me == 0 && ENDS.iter().any(|e| word.starts_with(e));
            if !whole || ends {
                continue;
            }
            let other = (me + 1 + rng.below(others)) % (others + 1);
            // Whether the first thread, when it is cancelled, is the last one is told by a count of libc's that threads change in no
            // order that vsrun could see.
            if other == 0 && word == "cancel#" {
                continue;
            }
            ops.push(word.replace('#', &other.to_string()));
        }
    }
}
