//! Call stacks by unwind tables that are the input.

use std::path::Path;

use vsrun::binary::Mapping;
use vsrun::runtime::unwind::{ReadMemory, Regs, Unwinder};

use super::place::at_path_in;

/// Where the file is loaded, how large it is, and where its unwind table is, in the file and in memory.
const BASE: u64 = 0x5555_5555_4000;
const SIZE: u64 = 0x8000;
const TABLE: u64 = 0x2000;

/// Memory that has something else at each address, the same each time: addresses of code, of the stack, and nothing.
struct Noise(u64);

impl ReadMemory for Noise {
    fn read_u64(&self, addr: u64) -> Option<u64> {
        let mixed = (addr ^ self.0).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        match mixed % 8 {
            0 => None,
            1 => Some(mixed),
            2 | 3 => Some(addr.wrapping_add(mixed % 64 * 8)),
            _ => Some(BASE + mixed % TABLE),
        }
    }
}

/// Two bytes say where a thread stands, the rest is `.eh_frame`. It says whether there was a caller.
pub fn unwind(data: &[u8]) -> bool {
    let Some((place, table)) = data.split_first_chunk() else { return false };
    let table = &table[..table.len().min((SIZE - TABLE) as usize - 0x400)];
    let place = u64::from(u16::from_le_bytes(*place));
    let headers = (TABLE + table.len() as u64).next_multiple_of(8);
    let (header, sections) = elf(table.len() as u64, headers);
    at_path_in(&[(0, &header), (TABLE, table), (headers, &sections)], SIZE, |path| stacks(path, place))
}

fn stacks(path: &Path, place: u64) -> bool {
    let mut unwinder = Unwinder::new();
    let mapping =
        Mapping { start: BASE, end: BASE + SIZE, perms: "r-xp".into(), offset: 0, inode: 1, path: Some(path.into()) };
    let maps = [mapping];
    let mut longest = 0;
    for n in 0..8 {
        let mut regs = Regs { rip: BASE + (place + n * 0x91) % SIZE, ..Regs::default() };
        for (register, value) in regs.general.iter_mut().enumerate() {
            *value = 0x7ffc_0000_0000 + 64 * (register as u64 ^ 7);
        }
        let counters = unwinder.backtrace(&maps, &Noise(place), regs, 64);
        assert!((1..=64).contains(&counters.len()));
        longest = longest.max(counters.len());
    }
    longest > 1
}

/// A file with one segment, which is all of it, and a table of that size: the headers, and the sections, which are at `at`.
fn elf(size: u64, at: u64) -> (Vec<u8>, Vec<u8>) {
    const NAMES: &[u8] = b"\0.eh_frame\0.shstrtab\0";
    let words = |all: &[u64]| all.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
    let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let mut header = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    // e_type and so on; e_entry, e_phoff, e_shoff; sizes and numbers of headers: 1 of programs, 3 of sections, names in the last.
    header.extend(words(&[pair(3 | 62 << 16, 1), 0x1000, 64, at]));
    header.extend(words(&[pair(0, 64 | 56 << 16), pair(1 | 64 << 16, 3 | 2 << 16)]));
    header.extend(words(&[pair(1, 5), 0, 0, 0, SIZE, SIZE, 0x1000]));
    let mut sections = words(&[0; 8]);
    sections.extend(words(&[pair(1, 1), 2, TABLE, TABLE, size, 0, 8, 0]));
    sections.extend(words(&[pair(11, 3), 0, 0, at + 192, NAMES.len() as u64, 0, 1, 0]));
    sections.extend(NAMES);
    (header, sections)
}
