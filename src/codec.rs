//! Little-endian bytes for what searches keep of traces, so that a search can be saved and resumed. No padding, no
//! version: that is the file's business. Reading what was not written by this gives errors, never a panic or an
//! allocation that the bytes do not account for.

use std::fmt;

use vsrun_model::arena::{Choice, Seen};
use vsrun_model::object::ObjKind;
use vsrun_model::{Act, Kind, Op, Uid};

/// Bytes that do not make sense.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeError {
    /// They end too early.
    Short,
    /// There are more than belong there.
    Long,
    /// A value that cannot be: of what.
    Wrong(&'static str),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Short => f.write_str("it ends too early"),
            DecodeError::Long => f.write_str("it goes on after its end"),
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

/// Reads from the front of a slice.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    left: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads `bytes`.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { left: bytes }
    }

    /// The next `n` bytes.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], DecodeError> {
        if n > self.left.len() {
            return Err(DecodeError::Short);
        }
        let (taken, left) = self.left.split_at(n);
        self.left = left;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// Everything has been read.
    pub fn end(&self) -> Result<(), DecodeError> {
        if self.left.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::Long)
        }
    }
}

/// What can be written and read.
pub trait Codec: Sized {
    /// Appends it.
    fn encode(&self, out: &mut Vec<u8>);
    /// Reads one.
    fn decode(from: &mut Reader) -> Result<Self, DecodeError>;
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl Codec for $number {
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn decode(from: &mut Reader) -> Result<$number, DecodeError> {
                from.array().map(<$number>::from_le_bytes)
            }
        })*
    };
}

numbers!(u8, u16, u32, u64, i64, f64);

impl Codec for bool {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    fn decode(from: &mut Reader) -> Result<bool, DecodeError> {
        match u8::decode(from)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError::Wrong("flag")),
        }
    }
}

/// A `u64`: files do not depend on the machine's word.
impl Codec for usize {
    fn encode(&self, out: &mut Vec<u8>) {
        (*self as u64).encode(out);
    }
    fn decode(from: &mut Reader) -> Result<usize, DecodeError> {
        usize::try_from(u64::decode(from)?).map_err(|_| DecodeError::Wrong("length"))
    }
}

impl<T: Codec> Codec for Option<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.is_some().encode(out);
        self.iter().for_each(|value| value.encode(out));
    }
    fn decode(from: &mut Reader) -> Result<Option<T>, DecodeError> {
        bool::decode(from)?.then(|| T::decode(from)).transpose()
    }
}

impl<A: Codec, B: Codec> Codec for (A, B) {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
        self.1.encode(out);
    }
    fn decode(from: &mut Reader) -> Result<(A, B), DecodeError> {
        Ok((A::decode(from)?, B::decode(from)?))
    }
}

/// Appends a length and the elements.
pub fn encode_slice<T: Codec>(slice: &[T], out: &mut Vec<u8>) {
    slice.len().encode(out);
    slice.iter().for_each(|element| element.encode(out));
}

impl<T: Codec> Codec for Vec<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        encode_slice(self, out);
    }
    fn decode(from: &mut Reader) -> Result<Vec<T>, DecodeError> {
        let n = usize::decode(from)?;
        // An element takes a byte or more, so a length that is too large ends as Short; grown as it is read.
        let mut all = Vec::new();
        for _ in 0..n {
            all.push(T::decode(from)?);
        }
        Ok(all)
    }
}

impl Codec for Uid {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }
    fn decode(from: &mut Reader) -> Result<Uid, DecodeError> {
        u64::decode(from).map(Uid)
    }
}

impl Codec for Kind {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }
    fn decode(from: &mut Reader) -> Result<Kind, DecodeError> {
        u8::decode(from).map(Kind)
    }
}

impl Codec for Choice {
    fn encode(&self, out: &mut Vec<u8>) {
        self.uid.encode(out);
        self.value.encode(out);
        self.kind.encode(out);
    }
    fn decode(from: &mut Reader) -> Result<Choice, DecodeError> {
        Ok(Choice::new(Uid::decode(from)?, u32::decode(from)?, Kind::decode(from)?))
    }
}

impl Codec for Op {
    fn encode(&self, out: &mut Vec<u8>) {
        self.kind.encode(out);
        self.flags.encode(out);
        self.signals.encode(out);
        [self.obj, self.obj2, self.mask].iter().for_each(|n| n.encode(out));
        self.arg.encode(out);
        self.deadline.encode(out);
    }
    fn decode(from: &mut Reader) -> Result<Op, DecodeError> {
        let mut op = Op::new(Kind::decode(from)?);
        op.flags = u8::decode(from)?;
        op.signals = u16::decode(from)?;
        op.obj = u32::decode(from)?;
        op.obj2 = u32::decode(from)?;
        op.mask = u32::decode(from)?;
        op.arg = i64::decode(from)?;
        op.deadline = u64::decode(from)?;
        Ok(op)
    }
}

impl Codec for Act {
    fn encode(&self, out: &mut Vec<u8>) {
        self.uid.encode(out);
        [self.tid, self.pid, self.parent].iter().for_each(|n| n.encode(out));
        self.obj_kind.0.encode(out);
        self.fate.encode(out);
        self.once.encode(out);
        self.op.encode(out);
        self.state.encode(out);
    }
    fn decode(from: &mut Reader) -> Result<Act, DecodeError> {
        Ok(Act {
            uid: Uid::decode(from)?,
            tid: u32::decode(from)?,
            pid: u32::decode(from)?,
            parent: u32::decode(from)?,
            obj_kind: ObjKind(u8::decode(from)?),
            fate: u8::decode(from)?,
            once: u16::decode(from)?,
            op: Op::decode(from)?,
            state: i64::decode(from)?,
        })
    }
}

impl Codec for Seen {
    fn encode(&self, out: &mut Vec<u8>) {
        self.act.encode(out);
        self.choices.encode(out);
        self.asleep.encode(out);
    }
    fn decode(from: &mut Reader) -> Result<Seen, DecodeError> {
        Ok(Seen { act: Act::decode(from)?, choices: u32::decode(from)?, asleep: u32::decode(from)? })
    }
}

/// The bytes of one value.
pub fn encode(value: &impl Codec) -> Vec<u8> {
    let mut out = Vec::new();
    value.encode(&mut out);
    out
}

/// The one value that all the bytes are.
pub fn decode<T: Codec>(bytes: &[u8]) -> Result<T, DecodeError> {
    let mut from = Reader::new(bytes);
    let value = T::decode(&mut from)?;
    from.end().map(|()| value)
}

#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;
