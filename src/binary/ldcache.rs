//! `/etc/ld.so.cache`: where ldconfig says the libraries are (glibc's format, `sysdeps/generic/dl-cache.h`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const OLD_MAGIC: &[u8] = b"ld.so-1.7.0";
const OLD_HEADER: usize = 16;
const OLD_ENTRY: usize = 12;
const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const HEADER: usize = 48;
const ENTRY: usize = 24;
/// Flags of an entry for 64-bit x86: the architecture byte.
const ARCHITECTURE: u32 = 0xff00;
const X86_64: u32 = 0x0300;

/// For each library name, the files it may be found in, in the loader's order. 64-bit x86 only.
#[derive(Debug, Default)]
pub struct LdCache(BTreeMap<String, Vec<PathBuf>>);

impl LdCache {
    /// Reads the cache of this machine; empty if there is none or its format is unknown.
    pub fn system() -> LdCache {
        let bytes = std::fs::read("/etc/ld.so.cache").unwrap_or_default();
        LdCache::parse(&bytes).unwrap_or_default()
    }

    /// Decodes a cache file; None if it is in no format we know.
    pub fn parse(bytes: &[u8]) -> Option<LdCache> {
        let bytes = if bytes.starts_with(OLD_MAGIC) { skip_old(bytes)? } else { bytes };
        if !bytes.starts_with(MAGIC) {
            return None;
        }
        let count = word(bytes, MAGIC.len())? as usize;
        let mut cache = LdCache::default();
        for entry in bytes.get(HEADER..)?.chunks_exact(ENTRY).take(count) {
            if word(entry, 0)? & ARCHITECTURE == X86_64 {
                let (name, path) = (string(bytes, word(entry, 4)?)?, string(bytes, word(entry, 8)?)?);
                cache.0.entry(name.to_string()).or_default().push(PathBuf::from(path));
            }
        }
        Some(cache)
    }

    /// Where the library called `name` may be.
    pub fn find(&self, name: &str) -> impl Iterator<Item = &Path> {
        self.0.get(name).into_iter().flatten().map(PathBuf::as_path)
    }
}

/// Caches for both formats start with a complete old one; the new one follows, aligned to 8.
fn skip_old(bytes: &[u8]) -> Option<&[u8]> {
    let count = word(bytes, 12)? as usize;
    let end = count.checked_mul(OLD_ENTRY)?.checked_add(OLD_HEADER)?;
    bytes.get(end.checked_next_multiple_of(8)?..)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn string(bytes: &[u8], at: u32) -> Option<&str> {
    let tail = bytes.get(at as usize..)?;
    std::str::from_utf8(&tail[..tail.iter().position(|b| *b == 0)?]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache of (flags, name, path).
    fn build(entries: &[(u32, &str, &str)]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend((entries.len() as u32).to_le_bytes());
        bytes.resize(HEADER, 0);
        let mut strings = Vec::new();
        let base = HEADER + entries.len() * ENTRY;
        for (flags, name, path) in entries {
            let key = base + strings.len();
            strings.extend(name.bytes().chain([0]));
            let value = base + strings.len();
            strings.extend(path.bytes().chain([0]));
            for field in [*flags, key as u32, value as u32, 0, 0, 0] {
                bytes.extend(field.to_le_bytes());
            }
        }
        bytes.extend(strings);
        bytes
    }

    fn found(cache: &LdCache, name: &str) -> Vec<PathBuf> {
        cache.find(name).map(Path::to_path_buf).collect()
    }

    #[test]
    fn new_format_only_this_architecture() {
        let bytes = build(&[
            (0x0303, "liba.so", "/x/liba.so"),
            (0x0803, "liba.so", "/32/liba.so"),
            (0x0303, "liba.so", "/y/liba.so"),
        ]);
        let cache = LdCache::parse(&bytes).unwrap();
        assert_eq!(found(&cache, "liba.so"), [PathBuf::from("/x/liba.so"), PathBuf::from("/y/liba.so")]);
        assert!(found(&cache, "libb.so").is_empty());
    }

    #[test]
    fn new_format_after_the_old() {
        let mut bytes = OLD_MAGIC.to_vec();
        bytes.resize(12, 0);
        bytes.extend(1u32.to_le_bytes());
        bytes.resize((OLD_HEADER + OLD_ENTRY).next_multiple_of(8), 0);
        bytes.extend(build(&[(0x0303, "liba.so", "/x/liba.so")]));
        assert_eq!(found(&LdCache::parse(&bytes).unwrap(), "liba.so").len(), 1);
    }

    #[test]
    fn damage_is_not_followed() {
        assert!(LdCache::parse(b"").is_none());
        assert!(LdCache::parse(b"something else").is_none());
        let bytes = build(&[(0x0303, "liba.so", "/x/liba.so")]);
        for len in 0..bytes.len() {
            let _ = LdCache::parse(&bytes[..len]);
        }
        let mut huge = bytes.clone();
        huge[20..24].copy_from_slice(&u32::MAX.to_le_bytes());
        let _ = LdCache::parse(&huge);
    }

    #[test]
    fn the_machine_has_libc() {
        let cache = LdCache::system();
        if Path::new("/etc/ld.so.cache").exists() {
            assert!(cache.find("libc.so.6").any(Path::exists));
        }
    }
}
