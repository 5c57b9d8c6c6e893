//! What is known of a register: the abstract values of a constant propagation (Wegman and Zadeck's lattice with small
//! sets, and with addresses to which an unknown index was added).

use super::images::Images;

/// How many addresses one value may have.
const FEW: usize = 3;

/// A few addresses or numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Few {
    n: u8,
    at: [u64; FEW],
    /// Something unknown was added: these are the places from which the value was computed.
    pub loose: bool,
}

impl Few {
    fn one(value: u64) -> Few {
        Few { n: 1, at: [value, 0, 0], loose: false }
    }

    /// The addresses.
    pub fn all(&self) -> &[u64] {
        &self.at[..usize::from(self.n)]
    }

    /// The only value.
    fn single(&self) -> Option<u64> {
        (self.n == 1 && !self.loose).then_some(self.at[0])
    }

    fn map(mut self, change: impl Fn(u64) -> u64) -> Few {
        self.at[..usize::from(self.n)].iter_mut().for_each(|value| *value = change(*value));
        self
    }

    /// With `value` added; None if there is no room.
    fn with(mut self, value: u64, images: &Images) -> Option<Few> {
        let together = |a: u64| a == value || self.loose && same_object(images, a, value);
        if self.all().iter().any(|a| together(*a)) {
            return Some(self);
        }
        *self.at.get_mut(usize::from(self.n))? = value;
        self.n += 1;
        Some(self)
    }

    /// One place for each object, as of a value to which something unknown was added.
    fn loosened(self, images: &Images) -> Option<Few> {
        let first = Few { n: 0, loose: true, ..self };
        self.all().iter().try_fold(first, |few, value| few.with(*value, images))
    }

    fn union(self, other: Few, images: &Images) -> Option<Few> {
        let loose = self.loose || other.loose;
        let both = |start: Few| other.all().iter().try_fold(start, |few, value| few.with(*value, images));
        if loose {
            return both(self.loosened(images)?);
        }
        // More than a few: a pointer that goes through an array, unless they are of different objects.
        both(self).or_else(|| {
            let one = both(self.loosened(images)?)?;
            (one.n == 1).then_some(one)
        })
    }
}

fn same_object(images: &Images, a: u64, b: u64) -> bool {
    images.at(a).is_some_and(|i| i.same_object(a, b))
}

/// What a register may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Value {
    /// Anything.
    #[default]
    Unknown,
    /// One of a few.
    Known(Few),
    /// The address of a function, which lies in the word at this address.
    Slot(u64),
    /// A word of a table of code addresses (`wide`) or of distances (32 bits).
    Entry {
        /// Where the table starts.
        table: u64,
        /// 64 bits.
        wide: bool,
    },
    /// A distance from a table, added to `base`.
    Target {
        /// Where the table starts.
        table: u64,
        /// From where the distances are counted.
        base: u64,
    },
}

impl Value {
    /// A constant.
    pub fn constant(value: u64) -> Value {
        Value::Known(Few::one(value))
    }

    /// The constant, if it is one.
    pub fn single(&self) -> Option<u64> {
        match self {
            Value::Known(few) => few.single(),
            _ => None,
        }
    }

    /// The place from which a value was computed by adding something unknown, if there is just one.
    pub fn anchor(&self) -> Option<u64> {
        match self {
            Value::Known(few) if few.loose && few.n == 1 => Some(few.at[0]),
            _ => None,
        }
    }

    /// What it is where paths meet.
    pub fn join(self, other: Value, images: &Images) -> Value {
        match (self, other) {
            (a, b) if a == b => a,
            (Value::Known(a), Value::Known(b)) => a.union(b, images).map_or(Value::Unknown, Value::Known),
            _ => Value::Unknown,
        }
    }

    /// The sum.
    pub fn plus(self, other: Value, images: &Images) -> Value {
        match (self, other) {
            (Value::Known(a), Value::Known(b)) => match (a.single(), b.single()) {
                (_, Some(b)) => shifted(a, b),
                (Some(a), _) => shifted(b, a),
                _ => Value::Unknown,
            },
            (Value::Entry { table, wide: false }, Value::Known(base))
            | (Value::Known(base), Value::Entry { table, wide: false }) => {
                base.single().map_or(Value::Unknown, |base| Value::Target { table, base })
            }
            (Value::Known(few), Value::Unknown) | (Value::Unknown, Value::Known(few)) => loose(few, images),
            _ => Value::Unknown,
        }
    }

    /// The difference.
    pub fn minus(self, other: Value, images: &Images) -> Value {
        match (self, other) {
            (Value::Known(a), Value::Known(b)) => b.single().map_or(Value::Unknown, |b| shifted(a, b.wrapping_neg())),
            (Value::Known(few), Value::Unknown) => loose(few, images),
            _ => Value::Unknown,
        }
    }

    /// The product with the scale of an index.
    pub fn times(self, scale: u64) -> Value {
        match (self, scale) {
            (_, 1) => self,
            (Value::Known(few), _) if !few.loose => Value::Known(few.map(|v| v.wrapping_mul(scale))),
            _ => Value::Unknown,
        }
    }

    /// The low 32 bits, zero-extended.
    pub fn low32(self) -> Value {
        match self {
            Value::Known(few) if !few.loose => Value::Known(few.map(|v| v & 0xffff_ffff)),
            Value::Entry { wide: false, .. } => self,
            _ => Value::Unknown,
        }
    }

    /// The low 32 bits, sign-extended.
    pub fn sign32(self) -> Value {
        match self {
            Value::Known(few) if !few.loose => Value::Known(few.map(|v| v as u32 as i32 as i64 as u64)),
            Value::Entry { wide: false, .. } => self,
            _ => Value::Unknown,
        }
    }
}

/// A loose address stays what it is.
fn shifted(few: Few, by: u64) -> Value {
    Value::Known(if few.loose { few } else { few.map(|v| v.wrapping_add(by)) })
}

/// `few` plus something unknown: only addresses tell anything then.
fn loose(few: Few, images: &Images) -> Value {
    if !few.all().iter().all(|a| images.at(*a).is_some()) {
        return Value::Unknown;
    }
    few.loosened(images).map_or(Value::Unknown, Value::Known)
}
