//! Bytes that an exploration reads from files, for fuzzing: what is done with them before anything is run.

use super::annotations::{annotations_of, declared_twice};
use super::executions::Counts;
use super::found::Found;
use super::pieces::{words, Manifest};
use super::save::Saved;
use crate::base::hash::fnv1a;

/// What `--annotations` does with the content of a file; whether it is accepted.
pub fn annotations(bytes: &[u8]) -> bool {
    let Ok(read) = annotations_of(bytes) else { return false };
    for said in &read.predicates {
        assert_eq!(said.to_string().parse().as_ref(), Ok(said), "what was read is written otherwise");
    }
    declared_twice(&read.objects).is_none()
}

/// What `--resume` does with the content of a file whose checksum holds, up to the search itself. Gives the bytes of that.
pub fn saved(bytes: &[u8]) -> Option<Vec<u8>> {
    let saved = Saved::from_bytes(bytes).ok()?;
    let again = saved.to_bytes();
    assert_eq!(Saved::from_bytes(&again).as_ref(), Ok(&saved), "what was read is written otherwise");
    let Saved { header, search } = saved;
    // As `prepare` in `run.rs` and the end of an exploration do.
    let mut counts: Counts = header.counts();
    let found: Vec<Found> = header.found().collect();
    let mut sharing = header.sharing.clone();
    let _ = (sharing.notes(), sharing.objects().fits(), counts.executions + sharing.earlier());
    assert!(found
        .windows(2)
        .all(|two| two[0].best.compare(&two[1].best) == two[1].best.compare(&two[0].best).reverse()));
    sharing.start_over(counts.executions);
    counts.start_over();
    Some(search)
}

/// The content of `pieces.json`: whether it is accepted.
pub fn pieces(bytes: &[u8]) -> bool {
    let Ok(mut manifest) = Manifest::parse(bytes) else { return false };
    let read = |manifest: &Manifest| Manifest::parse(&serde_json::to_vec(manifest).unwrap_or_default());
    assert_eq!(read(&manifest).as_ref(), Ok(&manifest), "what was read is written otherwise");
    for name in manifest.pieces.iter().take(2).cloned().collect::<Vec<_>>() {
        manifest.divide(&name, 3, 4);
    }
    let _ = (manifest.turn + 1, words(&manifest.words));
    true
}

/// The bytes with the checksum that they need in the place of the last ones.
pub fn with_checksum(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes[..bytes.len().saturating_sub(8)].to_vec();
    let sum = fnv1a(bytes.iter().copied());
    bytes.extend(sum.to_le_bytes());
    bytes
}
