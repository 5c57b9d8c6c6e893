//! Tells whether a program is still the one a scenario was written for.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::elf::ElfFile;
use crate::base::hash::{fnv1a, fold};
use crate::base::serial;

/// The content of a file, in short. Equal contents have equal fingerprints; where the file lies, its name and its
/// times do not matter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BinaryId {
    /// Size in bytes.
    pub size: u64,
    /// FNV-1a, 64 bits, over the whole file. In files: 16 hexadecimal digits, since JSON numbers lose bits.
    #[serde(with = "serial::hex64")]
    pub fnv: u64,
    /// The GNU build-id in hexadecimal, if the linker wrote one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
}

impl BinaryId {
    /// Reads the whole file at `path`.
    ///
    /// # Errors
    /// Those of opening and reading the file. A file that is not ELF is no error: it has no build-id.
    pub fn of(path: &Path) -> io::Result<BinaryId> {
        let (size, fnv) = hash(&mut File::open(path)?)?;
        let build_id = ElfFile::open(path).ok().and_then(|elf| elf.build_id());
        Ok(BinaryId { size, fnv, build_id })
    }
}

/// Size and FNV-1a of all that `input` has left.
fn hash(input: &mut impl Read) -> io::Result<(u64, u64)> {
    let mut buffer = vec![0; 1 << 16];
    let (mut size, mut fnv) = (0, fnv1a([]));
    loop {
        let count = match input.read(&mut buffer) {
            Ok(0) => return Ok((size, fnv)),
            Ok(count) => count,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        size += count as u64;
        fnv = fold(fnv, buffer[..count].iter().copied());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;

    #[test]
    fn known_values() {
        assert_eq!(hash(&mut &b""[..]).unwrap(), (0, 0xcbf2_9ce4_8422_2325));
        assert_eq!(hash(&mut &b"foobar"[..]).unwrap(), (6, 0x8594_4171_f739_67e8));
    }

    #[test]
    fn same_content_same_id_and_one_byte_changes_it() {
        let dir = TempDir::new();
        let a = dir.file("a", vec![7; 100_000], 0o644);
        let b = dir.file("b", vec![7; 100_000], 0o600);
        let mut changed = vec![7; 100_000];
        changed[99_999] = 8;
        let c = dir.file("c", changed, 0o644);
        assert_eq!(BinaryId::of(&a).unwrap(), BinaryId::of(&b).unwrap());
        assert_ne!(BinaryId::of(&a).unwrap(), BinaryId::of(&c).unwrap());
        assert_eq!(BinaryId::of(&a).unwrap().build_id, None);
        assert!(BinaryId::of(&dir.path().join("none")).is_err());
    }

    #[test]
    fn build_id_and_json_round_trip() {
        let dir = TempDir::new();
        let with = dir.program("with", &["-Wl,--build-id=0xdeadbeef01"]);
        let without = dir.program("without", &["-Wl,--build-id=none"]);
        let id = BinaryId::of(&with).unwrap();
        assert_eq!(id.build_id.as_deref(), Some("deadbeef01"));
        for id in [id, BinaryId::of(&without).unwrap()] {
            let text = serde_json::to_string(&id).unwrap();
            assert_eq!(serde_json::from_str::<BinaryId>(&text).unwrap(), id, "{text}");
        }
        assert!(serde_json::from_str::<BinaryId>(r#"{"size":1,"fnv":"xyz"}"#).is_err());
    }
}
