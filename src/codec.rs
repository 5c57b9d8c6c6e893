//! What searches keep, as bytes, so that a search can be saved and resumed (postcard's format). There is no version in
//! them: that is the file's business. Reading anything else gives an error, never a panic; what is allocated before an
//! element is read is at most 1 MiB a sequence, and nothing where the bytes that are left are fewer than the elements.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Bytes that do not make sense.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeError {
    /// They end too early.
    Short,
    /// There are more than belong there.
    Long,
    /// No value has this encoding.
    Malformed,
    /// A value that cannot be: of what.
    Wrong(&'static str),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Short => f.write_str("it ends too early"),
            DecodeError::Long => f.write_str("it goes on after its end"),
            DecodeError::Malformed => f.write_str("a value in it is malformed"),
            DecodeError::Wrong(what) => write!(f, "its {what} cannot be"),
        }
    }
}

impl std::error::Error for DecodeError {}

impl From<DecodeError> for String {
    fn from(e: DecodeError) -> String {
        e.to_string()
    }
}

/// The bytes of one value.
///
/// # Panics
/// If the value has a sequence of a length that is not known beforehand: none that is saved has one.
pub fn encode(value: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(value).expect("all lengths are known")
}

/// No count of executions, transitions or tickets comes near this; sums of some of them below it do not overflow.
const MOST: u64 = 1 << 56;

/// Whether numbers that have been read can be counts.
///
/// # Errors
/// One is larger than anybody has counted.
pub fn counted(counts: impl IntoIterator<Item = u64>) -> Result<(), DecodeError> {
    counts.into_iter().all(|n| n <= MOST).then_some(()).ok_or(DecodeError::Wrong("count"))
}

/// Whether a number that has been read can be a part of a whole, which may be a little more for it is a sum.
///
/// # Errors
/// It is less than 0, much more than 1, or no number.
pub fn is_part(part: f64) -> Result<(), DecodeError> {
    (0.0..=2.0).contains(&part).then_some(()).ok_or(DecodeError::Wrong("estimate"))
}

/// The one value that all the bytes are.
///
/// # Errors
/// They are too few, too many, or no such value.
pub fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, DecodeError> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok(_) => Err(DecodeError::Long),
        Err(postcard::Error::DeserializeUnexpectedEnd) => Err(DecodeError::Short),
        Err(_) => Err(DecodeError::Malformed),
    }
}

#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;
