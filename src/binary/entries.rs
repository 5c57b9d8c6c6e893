//! Where functions of a name begin, and how many bytes there a jump may take: for what is put in their place.

use std::collections::BTreeSet;
use std::ops::Range;

use goblin::elf::section_header::{SHT_DYNSYM, SHT_SYMTAB};
use goblin::elf::sym::{Symtab, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE};
use iced_x86::{Decoder, DecoderOptions, Mnemonic};

use super::demangle::demangle;
use super::elf::{ElfError, CTX};
use super::symbols::ElfModule;

/// What a file has under a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// The code of each function of that name, clones that a compiler has made of it among them; ascending. Addresses of the file.
    pub whole: BTreeSet<(u64, u64)>,
    /// A compiler has split the function: a part of it is in its callers, or behind a function of its own.
    pub is_split: bool,
    /// Of these parts, those that are run seldom, to which the function jumps.
    pub cold: BTreeSet<(u64, u64)>,
    /// The symbol is that of a function which chooses one when the file is loaded.
    pub chooses: bool,
}

/// The functions of a file: by their beginnings.
#[derive(Clone, Debug, Default)]
pub struct Functions {
    /// Where functions begin, and where they end, if that is known.
    all: BTreeSet<(u64, Option<u64>)>,
    named: Named,
}

/// How the names of clones end that do all that the function does.
const CLONES: [&str; 4] = ["constprop", "isra", "lto_priv", "llvm"];

/// What the name of a symbol says it is of the function `wanted`.
enum Relation {
    Whole,
    Part,
    None,
}

fn relation(symbol: &str, wanted: &str) -> Relation {
    let (plain, suffix) = symbol.split_once('.').unwrap_or((symbol, ""));
    let demangled = demangle(plain);
    let same = symbol == wanted || plain == wanted || demangled == wanted || without_parameters(&demangled) == wanted;
    let is_clone = |word: &str| CLONES.contains(&word) || word.bytes().all(|b| b.is_ascii_digit());
    match same {
        true if symbol == wanted || suffix.is_empty() || suffix.split('.').all(is_clone) => Relation::Whole,
        true => Relation::Part,
        false => Relation::None,
    }
}

/// `a::f` of `a::f(int) const`.
fn without_parameters(demangled: &str) -> &str {
    let text = demangled.strip_suffix(" const").unwrap_or(demangled);
    let Some(inside) = text.strip_suffix(')') else { return demangled };
    let mut open = 1;
    for (at, c) in inside.char_indices().rev() {
        match c {
            ')' => open += 1,
            '(' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return &text[..at];
        }
    }
    demangled
}

impl Functions {
    /// Reads the symbols of a module, those that are stripped from it too if they are in a file of their own.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn read(module: &ElfModule, name: &str) -> Result<Functions, ElfError> {
        let elf = module.with_symbols()?;
        let mut found = Functions::default();
        let sections = elf.sections()?;
        for section in sections.iter().filter(|s| matches!(s.sh_type, SHT_SYMTAB | SHT_DYNSYM)) {
            let Some(link) = sections.get(section.sh_link as usize) else { continue };
            let strings = elf.bytes(link.sh_offset, link.sh_size, "a string table")?;
            let bytes = elf.bytes(section.sh_offset, section.sh_size, "a symbol table")?;
            let count = bytes.len() / goblin::elf64::sym::SIZEOF_SYM;
            let table = Symtab::parse(&bytes, 0, count, CTX).map_err(|e| ElfError::Corrupt(e.to_string()))?;
            for sym in table.iter() {
                let in_code = sections.get(sym.st_shndx).is_some_and(|s| s.is_executable());
                let is_code = matches!(sym.st_type(), STT_FUNC | STT_GNU_IFUNC | STT_NOTYPE);
                if sym.st_shndx == 0 || !in_code || !is_code {
                    continue;
                }
                let text = strings.get(sym.st_name..).unwrap_or_default();
                let text = text.split(|b| *b == 0).next().unwrap_or_default();
                let text = std::str::from_utf8(text).unwrap_or_default().split('@').next().unwrap_or_default();
                found.add(text, name, sym.st_value, sym.st_size, sym.st_type());
            }
        }
        Ok(found)
    }

    fn add(&mut self, symbol: &str, wanted: &str, start: u64, size: u64, kind: u8) {
        let end = (size > 0).then(|| start.saturating_add(size));
        self.all.insert((start, end));
        match relation(symbol, wanted) {
            Relation::Whole if kind == STT_GNU_IFUNC => self.named.chooses = true,
            Relation::Whole => {
                self.named.whole.insert((start, end.unwrap_or(start)));
            }
            Relation::Part => {
                self.named.is_split = true;
                if let Some(end) = end.filter(|_| symbol.split('.').any(|word| word == "cold")) {
                    self.named.cold.insert((start, end));
                }
            }
            Relation::None => {}
        }
    }

    /// What has the name that was asked for.
    pub fn named(&self) -> &Named {
        &self.named
    }

    /// Where the function behind `start` begins.
    fn next(&self, start: u64) -> u64 {
        self.all.range((start + 1, None)..).next().map_or(u64::MAX, |(next, _)| *next)
    }

    /// The bytes from the entry `start` on that no other function has. `code`: the bytes there, as far as they are needed.
    pub fn room(&self, start: u64, code: &[u8]) -> usize {
        let end = self.all.range((start, None)..=(start, Some(u64::MAX))).filter_map(|(_, end)| *end).max();
        let within = (self.next(start) - start).min(code.len() as u64) as usize;
        // Of a function without a size nothing tells where it ends but the next one.
        let Some(end) = end.map(|end| ((end - start) as usize).min(within)) else { return within };
        let filled = filler(&code[end..within], start + end as u64);
        end + filled
    }

    /// Bytes behind the function that ends at `end` which only fill the space up to the next one.
    pub fn padding(&self, end: u64, code: &[u8]) -> usize {
        let free = self.next(end.saturating_sub(1)).saturating_sub(end).min(code.len() as u64) as usize;
        filler(&code[..free], end)
    }

    /// The last `length` bytes of space between functions that end in `near`, where [`SPARE`] more come before them. `code` gives bytes of
    /// the file, as many as there are.
    pub fn gaps<'a>(
        &'a self,
        near: Range<u64>,
        length: usize,
        code: &'a dyn Fn(u64, usize) -> Vec<u8>,
    ) -> impl Iterator<Item = u64> + 'a {
        let ends: BTreeSet<u64> =
            self.all.iter().filter_map(|(_, end)| *end).filter(|end| near.contains(end)).collect();
        ends.into_iter().filter_map(move |end| {
            let free = self.next(end.saturating_sub(1)).saturating_sub(end).min(LONGEST as u64) as usize;
            let covered = self.all.iter().any(|(start, other)| *start < end && other.is_some_and(|other| other > end));
            let found = free >= length + SPARE && !covered && filler(&code(end, free), end) == free;
            found.then(|| end + (free - length) as u64)
        })
    }
}

/// A patch of the function before may need so many bytes behind it: one of its last instruction, and these, are room for a jump.
const SPARE: usize = 4;

/// Bytes of code that are looked at, at most.
pub const LONGEST: usize = 64;

/// How many of these bytes, from the first on, only fill the space up to what comes next.
fn filler(bytes: &[u8], at: u64) -> usize {
    if bytes.iter().all(|b| *b == 0) {
        return bytes.len();
    }
    let instructions = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).into_iter();
    let fills = instructions.take_while(|i| !i.is_invalid() && matches!(i.mnemonic(), Mnemonic::Nop | Mnemonic::Int3));
    fills.map(|i| i.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;
    use crate::binary::SymbolCache;

    const SOURCE: &str = r#"
        namespace robot { struct Arm { int reach() const; int reach(int); }; }
        __attribute__((noinline)) int robot::Arm::reach() const { return 1; }
        __attribute__((noinline)) int robot::Arm::reach(int x) { return x + 1; }
        extern "C" __attribute__((noinline)) int coin(void) { return 0; }
        extern "C" int penny(void) __attribute__((alias("coin")));
        static __attribute__((noinline)) int hidden(int x) { return x * 3; }
        int main(int c, char **v) { robot::Arm a; return a.reach() + a.reach(c) + coin() + hidden(c); }
    "#;

    fn functions(name: &str, flags: &[&str]) -> Functions {
        let dir = TempDir::new();
        let program = dir.compile("p", "cc", SOURCE, flags);
        Functions::read(&SymbolCache::new().get(&program).unwrap(), name).unwrap()
    }

    #[test]
    fn functions_are_found_by_any_of_their_names() {
        let found = |name: &str| functions(name, &["-O1"]).named().whole.len();
        for (name, count) in [
            ("coin", 1),
            ("penny", 1),
            ("hidden", 1),
            ("hidden(int)", 1),
            ("_ZL6hiddeni", 1),
            ("robot::Arm::reach", 2),
            ("robot::Arm::reach(int)", 1),
            ("robot::Arm::reach() const", 1),
            ("reach", 0),
            ("coins", 0),
            ("printf", 0),
        ] {
            assert_eq!(found(name), count, "{name}");
        }
        assert_eq!(functions("coin", &["-O1"]).named(), functions("penny", &["-O1"]).named());
    }

    #[test]
    fn clones_are_the_function_and_parts_are_not() {
        let is = |symbol: &str| match relation(symbol, "f") {
            Relation::Whole => 'w',
            Relation::Part => 'p',
            Relation::None => '-',
        };
        let words = ["f", "f.constprop.0", "f.isra.0.constprop.1", "f.part.0", "f.cold", "f.isra.0.cold", "g", "_Z1fi"];
        assert_eq!(words.map(is), ['w', 'w', 'w', 'p', 'p', 'p', '-', 'w']);
        assert_eq!(
            without_parameters("a::(anonymous namespace)::f(int (*)(char)) const"),
            "a::(anonymous namespace)::f"
        );
        assert_eq!(without_parameters("f"), "f");
    }

    #[test]
    fn room_ends_where_the_next_function_begins() {
        let functions = |sizes: &[(u64, u64)]| {
            let mut all = Functions::default();
            sizes.iter().for_each(|&(start, size)| all.add("g", "f", start, size, STT_FUNC));
            all
        };
        let mut code = [0xcc; LONGEST];
        code[..4].copy_from_slice(&[0x31, 0xc0, 0xc3, 0x90]);
        assert_eq!(functions(&[(16, 3), (32, 9)]).room(16, &code), 16);
        assert_eq!(functions(&[(16, 3), (19, 9)]).room(16, &code), 3);
        assert_eq!(functions(&[(16, 0), (20, 9)]).room(16, &code), 4);
        code[4] = 0xc3;
        assert_eq!(functions(&[(16, 3), (32, 9)]).room(16, &code), 4);
        code[3..].fill(0);
        assert_eq!(functions(&[(16, 3), (20, 9)]).room(16, &code), 4);
    }

    #[test]
    fn gaps_lie_between_functions() {
        let mut all = Functions::default();
        [(0, 3), (16, 7), (32, 16), (48, 7), (64, 40), (80, 8), (120, 8)].iter().for_each(|&(s, n)| {
            all.add("g", "f", s, n, STT_FUNC);
        });
        let mut bytes = [0xcc; 256];
        bytes[25..32].fill(0xc3);
        let code = |at: u64, n: usize| bytes[at as usize..(at as usize + n)].to_vec();
        assert_eq!(all.gaps(0..121, 5, &code).collect::<Vec<_>>(), [11, 59, 115]);
        assert_eq!(all.gaps(10..100, 5, &code).collect::<Vec<_>>(), [59]);
        assert_eq!(all.gaps(0..121, 6, &code).collect::<Vec<_>>(), [10, 114]);
    }
}
