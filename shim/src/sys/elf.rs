//! What the shim needs to know of ELF: its own text, libc's functions, the kernel's vDSO, and whether a program that
//! is about to be executed can carry it.

use core::arch::asm;

use super::{cstr, load, raw, store};

const DT_NULL: u64 = 0;
const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_DEBUG: u64 = 21;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
const DT_VERSYM: u64 = 0x6fff_fff0;
/// Of a symbol, at offset 4: a function, which may be chosen at run time.
pub const STT_FUNC: u8 = 2;
pub const STT_GNU_IFUNC: u8 = 10;

/// Start of the shim's own image.
pub fn own_base() -> u64 {
    let base: u64;
    // SAFETY: reads an address that the linker provides.
    unsafe { asm!("lea {}, [rip + __ehdr_start]", out(reg) base, options(nomem, nostack)) };
    base
}

/// First and one past the last address of the executable segments of the image at `base`.
pub fn text_of(base: u64) -> (u64, u64) {
    text_by(base + load::<u64>(base + 32), u64::from(load::<u16>(base + 56)), base)
}

/// The same from `n` program headers at `table` of an image loaded with `bias`.
pub fn text_by(table: u64, n: u64, bias: u64) -> (u64, u64) {
    let (mut low, mut high) = (u64::MAX, 0);
    for i in 0..n {
        let ph = table + 56 * i;
        if load::<u32>(ph) == libc::PT_LOAD && load::<u32>(ph + 4) & 1 != 0 {
            let start = bias + load::<u64>(ph + 16);
            low = low.min(start);
            high = high.max(start + load::<u64>(ph + 40));
        }
    }
    (low & !4095, (high + 4095) & !4095)
}

/// Calls `f` with start, length and protection of each segment of the image at `base` that is not to be written: whole pages.
pub fn each_fixed_segment(base: u64, mut f: impl FnMut(u64, u64, i32)) {
    let (table, n) = (base + load::<u64>(base + 32), load::<u16>(base + 56));
    for i in 0..n as u64 {
        let ph = table + 56 * i;
        let flags: u32 = load(ph + 4);
        if load::<u32>(ph) == libc::PT_LOAD && flags & 2 == 0 {
            let (start, end) = (base + load::<u64>(ph + 16), base + load::<u64>(ph + 16) + load::<u64>(ph + 40));
            let prot = libc::PROT_READ | if flags & 1 != 0 { libc::PROT_EXEC } else { 0 };
            f(start & !4095, ((end + 4095) & !4095) - (start & !4095), prot);
        }
    }
}

/// Calls `f` with start and end of each segment of the image at `base` that may be written.
pub fn each_writable_segment(base: u64, mut f: impl FnMut(u64, u64)) {
    let (table, n) = (base + load::<u64>(base + 32), load::<u16>(base + 56));
    for i in 0..n as u64 {
        let ph = table + 56 * i;
        if load::<u32>(ph) == libc::PT_LOAD && load::<u32>(ph + 4) & 2 != 0 {
            let start = base + load::<u64>(ph + 16);
            f((start + 7) & !7, (start + load::<u64>(ph + 40)) & !7);
        }
    }
}

/// A loaded object's dynamic symbols.
pub struct Image {
    bias: u64,
    strings: u64,
    symbols: u64,
    gnu_hash: u64,
    count: u64,
    versions: u64,
}

impl Image {
    /// From the dynamic section at `dynamic` of an object loaded with `bias`; glibc relocates its pointers, the
    /// vDSO's are not.
    fn new(bias: u64, dynamic: u64) -> Image {
        let mut image = Image { bias, strings: 0, symbols: 0, gnu_hash: 0, count: 0, versions: 0 };
        let mut at = dynamic;
        while load::<u64>(at) != DT_NULL {
            let value: u64 = load(at + 8);
            let pointer = if value < bias { value + bias } else { value };
            match load::<u64>(at) {
                DT_STRTAB => image.strings = pointer,
                DT_SYMTAB => image.symbols = pointer,
                DT_GNU_HASH => image.gnu_hash = pointer,
                DT_VERSYM => image.versions = pointer,
                DT_HASH => image.count = load::<u32>(pointer + 4) as u64,
                _ => {}
            }
            at += 16;
        }
        image
    }

    /// From the loader's record (link_map) of an object.
    pub fn of_map(map: u64) -> Image {
        Image::new(load(map), load(map + 16))
    }

    /// Where it is loaded.
    pub fn base(&self) -> u64 {
        self.bias
    }

    /// First and one past the last address of its code, for an image whose first segment starts at file offset 0.
    pub fn text(&self) -> (u64, u64) {
        text_of(self.bias)
    }

    fn name_is(&self, symbol: u64, name: &[u8]) -> bool {
        self.name_of(symbol) == name
    }

    /// Where it is, if it is defined.
    pub fn address(&self, symbol: u64) -> Option<u64> {
        let value: u64 = load(symbol + 8);
        (value != 0 && load::<u16>(symbol + 6) != 0).then_some(value + self.bias)
    }

    /// The default version of function `name`.
    pub fn find(&self, name: &[u8]) -> Option<u64> {
        self.symbol(name).and_then(|symbol| self.address(symbol))
    }

    /// The same; where the function is chosen at run time (STT_GNU_IFUNC), the one that is chosen here.
    pub fn function(&self, name: &[u8]) -> Option<u64> {
        let symbol = self.symbol(name)?;
        let address = self.address(symbol)?;
        match load::<u8>(symbol + 4) & 15 {
            STT_GNU_IFUNC => Some(self.chosen_at(symbol)),
            _ => Some(address),
        }
    }

    /// Where the function of that symbol is, as above; 0: it is none.
    pub fn chosen_at(&self, symbol: u64) -> u64 {
        if load::<u8>(symbol + 4) & 15 != STT_GNU_IFUNC {
            return self.function_at(symbol);
        }
        let Some(address) = self.address(symbol) else { return 0 };
        // SAFETY: that is what such a symbol is the address of; it looks at the processor, and the image is relocated.
        let choose = unsafe { core::mem::transmute::<u64, extern "C" fn() -> u64>(address) };
        choose()
    }

    /// First and one past the last address of the default version of function `name`.
    pub fn bounds(&self, name: &[u8]) -> Option<(u64, u64)> {
        let symbol = self.symbol(name)?;
        self.address(symbol).map(|at| (at, at + load::<u64>(symbol + 16)))
    }

    /// Where the symbol of the default version of `name` is.
    fn symbol(&self, name: &[u8]) -> Option<u64> {
        if self.gnu_hash == 0 {
            let mut all = (0..self.count).map(|i| self.symbols + 24 * i);
            return all.find(|&s| self.name_is(s, name)).filter(|&s| self.address(s).is_some());
        }
        let mut found = None;
        self.each_named(name, |symbol, hidden| {
            if !hidden || found.is_none() {
                found = self.address(symbol).map(|_| symbol);
            }
            hidden
        });
        found
    }

    /// Calls `f` with each symbol of that name, and whether it is not the default version, for as long as it says so. Of objects with a GNU hash table.
    pub fn each_named(&self, name: &[u8], mut f: impl FnMut(u64, bool) -> bool) {
        if self.gnu_hash == 0 {
            return;
        }
        let hash = name.iter().fold(5381u32, |h, &c| h.wrapping_mul(33).wrapping_add(c as u32));
        let (buckets, offset, chains) = self.hash_table();
        let bucket: u32 = load(chains - 4 * u64::from(buckets) + 4 * u64::from(hash % buckets));
        self.each_in_bucket(bucket, offset, chains, |symbol, chain| {
            let same = (chain | 1) == (hash | 1) && self.name_is(symbol, name);
            !same || f(symbol, self.is_hidden(symbol))
        });
    }

    /// Calls `f` with each symbol that others may find. Of objects with a GNU hash table.
    pub fn each_symbol(&self, mut f: impl FnMut(u64)) {
        if self.gnu_hash == 0 {
            return;
        }
        let (buckets, offset, chains) = self.hash_table();
        for bucket in 0..u64::from(buckets) {
            let first: u32 = load(chains - 4 * u64::from(buckets) + 4 * bucket);
            self.each_in_bucket(first, offset, chains, |symbol, _| {
                f(symbol);
                true
            });
        }
    }

    /// Number of buckets, index of the first symbol that has a hash, where the hashes are, behind the buckets.
    fn hash_table(&self) -> (u32, u32, u64) {
        let [buckets, offset, bloom, _]: [u32; 4] = load(self.gnu_hash);
        (buckets, offset, self.gnu_hash + 16 + 8 * u64::from(bloom) + 4 * u64::from(buckets))
    }

    /// Calls `f` with symbol and hash, whose last bit says that it is the last one, until it says false.
    fn each_in_bucket(&self, first: u32, offset: u32, chains: u64, mut f: impl FnMut(u64, u32) -> bool) {
        for index in (first..).take_while(|_| first != 0) {
            let chain: u32 = load(chains + 4 * u64::from(index - offset));
            if !f(self.symbols + 24 * u64::from(index), chain) || chain & 1 != 0 {
                return;
            }
        }
    }

    fn is_hidden(&self, symbol: u64) -> bool {
        let index = self.index_of(symbol) as u64;
        self.versions != 0 && load::<u16>(self.versions + 2 * index) & 0x8000 != 0
    }

    /// The name of that symbol.
    pub fn name_of(&self, symbol: u64) -> &[u8] {
        cstr(self.name_at(symbol), 256)
    }

    /// Where that name is.
    pub fn name_at(&self, symbol: u64) -> u64 {
        self.strings + u64::from(load::<u32>(symbol))
    }

    /// Which of the symbols it is.
    pub fn index_of(&self, symbol: u64) -> usize {
        ((symbol - self.symbols) / 24) as usize
    }

    /// Where the function of that symbol is; 0: it is none.
    pub fn function_at(&self, symbol: u64) -> u64 {
        self.address(symbol).filter(|_| load::<u8>(symbol + 4) & 15 == STT_FUNC).unwrap_or(0)
    }

    /// Start, length and protection of the segment that the symbols are in; 0, 0, 0: there is none.
    pub fn symbols_segment(&self) -> (u64, u64, i32) {
        let mut found = (0, 0, 0);
        each_fixed_segment(self.bias, |start, length, prot| {
            if (start..start + length).contains(&self.symbols) {
                found = (start, length, prot);
            }
        });
        found
    }
}

/// The loaded libc, found through the loader's list of objects.
pub fn libc_image(auxv: &Auxv) -> Option<Image> {
    let phdr = auxv.phdr;
    let mut dynamic = 0;
    let mut bias = 0;
    for i in 0..auxv.phnum {
        let ph = phdr + 56 * i;
        match load::<u32>(ph) {
            6 => bias = phdr.wrapping_sub(load::<u64>(ph + 16)),
            libc::PT_DYNAMIC => dynamic = load::<u64>(ph + 16),
            _ => {}
        }
    }
    if dynamic == 0 {
        return None;
    }
    let mut at = dynamic.wrapping_add(bias);
    while load::<u64>(at) != DT_NULL && load::<u64>(at) != DT_DEBUG {
        at += 16;
    }
    let r_debug: u64 = load(at + 8);
    if load::<u64>(at) != DT_DEBUG || r_debug == 0 {
        return None;
    }
    let mut map: u64 = load(r_debug + 8);
    while map != 0 {
        let name: u64 = load(map + 8);
        if name != 0 && contains(cstr(name, 4096), b"/libc.so.6") {
            return Some(Image::of_map(map));
        }
        map = load(map + 24);
    }
    None
}

extern "C" {
    /// The loader's list of objects, for debuggers.
    static _r_debug: u8;
}

/// The loader's record (link_map) of the first object of which `wanted` is true.
pub fn find_map(mut wanted: impl FnMut(u64) -> bool) -> Option<u64> {
    let list = &raw const _r_debug as u64;
    let mut map: u64 = load(list + 8);
    while map != 0 && !wanted(map) {
        map = load(map + 24);
    }
    (map != 0).then_some(map)
}

/// Whether the object of which the loader's record (link_map) is at `map` has `name` in its path.
pub fn is_named(map: u64, name: &[u8]) -> bool {
    let path: u64 = load(map + 8);
    path != 0 && contains(cstr(path, 4096), name)
}

/// Whether `addr` is in the data of an object that has `name` in its path.
pub fn is_data_of(name: &[u8], addr: u64) -> bool {
    let mut inside = false;
    find_map(|map| {
        let path: u64 = load(map + 8);
        if path != 0 && contains(cstr(path, 4096), name) {
            each_writable_segment(load(map), |start, end| inside |= (start..end).contains(&addr));
        }
        inside
    });
    inside
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|w| w == part)
}

/// What the auxiliary vector says.
#[derive(Clone, Copy, Default)]
pub struct Auxv {
    /// Program headers of the program.
    pub phdr: u64,
    /// Their number.
    pub phnum: u64,
    /// The vDSO, or 0.
    pub vdso: u64,
    /// Sixteen random bytes.
    pub random: u64,
    /// The dynamic loader, or 0.
    pub base: u64,
}

/// Reads the auxiliary vector behind the environment.
pub fn auxv(envp: u64) -> Auxv {
    let mut at = envp;
    while load::<u64>(at) != 0 {
        at += 8;
    }
    at += 8;
    let mut found = Auxv::default();
    while load::<u64>(at) != 0 {
        let value: u64 = load(at + 8);
        match load::<u64>(at) {
            3 => found.phdr = value,
            5 => found.phnum = value,
            7 => found.base = value,
            25 => found.random = value,
            33 => found.vdso = value,
            _ => {}
        }
        at += 16;
    }
    found
}

/// Rewrites the vDSO's functions to system calls, which the net then catches: time in it is real time.
pub fn disarm_vdso(base: u64) {
    if base == 0 {
        return;
    }
    let (table, n) = (base + load::<u64>(base + 32), load::<u16>(base + 56) as u64);
    let (mut dynamic, mut size, mut bias) = (0, 0, 0);
    for ph in (0..n).map(|i| table + 56 * i) {
        match load::<u32>(ph) {
            libc::PT_DYNAMIC => dynamic = load::<u64>(ph + 16),
            libc::PT_LOAD => {
                bias = base - load::<u64>(ph + 16);
                size = load::<u64>(ph + 40);
            }
            _ => {}
        }
    }
    let image = Image::new(bias, dynamic + bias);
    let len = (size + 4095) & !4095;
    if raw!(libc::SYS_mprotect, base, len, libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC) < 0 {
        return;
    }
    let calls: [(&[u8], i64); 6] = [
        (b"__vdso_clock_gettime", libc::SYS_clock_gettime),
        (b"__vdso_gettimeofday", libc::SYS_gettimeofday),
        (b"__vdso_time", libc::SYS_time),
        (b"__vdso_clock_getres", libc::SYS_clock_getres),
        (b"__vdso_getcpu", libc::SYS_getcpu),
        (b"__vdso_getrandom", libc::SYS_getrandom),
    ];
    for (name, nr) in calls {
        if let Some(function) = image.find(name) {
            let nr = (nr as u32).to_le_bytes();
            store(function, [0xb8, nr[0], nr[1], nr[2], nr[3], 0x0f, 0x05, 0xc3u8]);
        }
    }
    raw!(libc::SYS_mprotect, base, len, libc::PROT_READ | libc::PROT_EXEC);
}

/// Why the program whose file starts with `head` cannot carry the shim; `None` if it can, or the kernel will refuse it.
pub fn verdict(head: &[u8]) -> Option<&'static [u8]> {
    if head.len() < 64 || !head.starts_with(b"\x7fELF") {
        return None;
    }
    if head[4] != 2 {
        return Some(b"it is a 32-bit program");
    }
    let u16_at = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]) as usize;
    if u16_at(18) != 62 {
        return None;
    }
    let table = u64::from_le_bytes(head[32..40].try_into().unwrap_or([0; 8])) as usize;
    for i in 0..u16_at(56) {
        let at = table + 56 * i;
        if at + 4 > head.len() {
            return None;
        }
        if u32::from_le_bytes(head[at..at + 4].try_into().unwrap_or([0; 4])) == libc::PT_INTERP {
            return None;
        }
    }
    Some(b"it is statically linked, so vsrun's library cannot be loaded into it")
}
