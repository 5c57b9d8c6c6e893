//! Numbers by which things are known, and numbers that stand for one of a few things.

use core::fmt;

/// No index.
pub const NONE: u32 = u32::MAX;

/// The name of a thread: its path of creation. Twelve bits a level below a leading 1; the top bit marks a hash, for
/// paths that are too deep or too wide. It does not depend on the schedule.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(transparent)]
pub struct Uid(pub u64);

impl Uid {
    /// The first thread of the first process.
    pub const MAIN: Uid = Uid(1);
    const HASHED: u64 = 1 << 63;

    /// The `n`-th (from 1) thread or process created by this one.
    pub fn child(self, n: u32) -> Uid {
        if self.0 < 1 << 51 && n < 1 << 12 {
            return Uid(self.0 << 12 | n as u64);
        }
        let mixed = (self.0 ^ (n as u64).rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Uid((mixed ^ mixed >> 29) | Uid::HASHED)
    }

    /// The one that created it. `None`: it is the first, or its path is not known any more.
    pub fn parent(self) -> Option<Uid> {
        (self.0 & Uid::HASHED == 0 && self.0 > Uid::MAIN.0).then_some(Uid(self.0 >> 12))
    }

    /// As which one its creator made it, from 1; 0: that is not known any more.
    pub fn number(self) -> u32 {
        if self.0 & Uid::HASHED == 0 {
            (self.0 & 0xfff) as u32
        } else {
            0
        }
    }

    /// The name that [`fmt::Display`] printed.
    pub fn parse(text: &str) -> Option<Uid> {
        if let Some(hash) = text.strip_prefix('h') {
            return u64::from_str_radix(hash, 16).ok().map(|h| Uid(h | Uid::HASHED));
        }
        let mut parts = text.split('.');
        if parts.next()? != "0" {
            return None;
        }
        let mut uid = Uid::MAIN;
        for part in parts {
            let n: u32 = part.parse().ok()?;
            if n == 0 || n >= 1 << 12 || uid.0 >= 1 << 51 {
                return None;
            }
            uid = uid.child(n);
        }
        Some(uid)
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 & Uid::HASHED != 0 {
            return write!(f, "h{:x}", self.0 & !Uid::HASHED);
        }
        let levels = (63 - self.0.max(1).leading_zeros()) / 12;
        write!(f, "0")?;
        for level in (0..levels).rev() {
            write!(f, ".{}", self.0 >> (12 * level) & 0xfff)?;
        }
        Ok(())
    }
}

/// Index of a thread in `World::threads`.
pub type Tid = u32;
/// Index of a process in `World::procs`.
pub type Pid = u32;
/// Index of an object in `World::objects`.
pub type ObjId = u32;

/// A type with the values that it has; with the word for each in reports, where there is one.
macro_rules! numbers {
    ($(#[$about:meta])* $type:ident($int:ty): $($(#[$doc:meta])* $name:ident = $value:expr),+ $(,)?) => {
        $(#[$about])*
        #[derive(Clone, Copy, Hash, PartialEq, Eq, Debug, Default)]
        #[repr(transparent)]
        pub struct $type(pub $int);

        #[allow(missing_docs)]
        impl $type {
            $($(#[$doc])* pub const $name: $type = $type($value);)+
        }
    };
    ($(#[$about:meta])* $type:ident($int:ty), or $other:literal:
     $($(#[$doc:meta])* $name:ident = $value:literal, $text:literal;)+) => {
        numbers! { $(#[$about])* $type($int): $($(#[$doc])* $name = $value),+ }

        impl $type {
            /// The words for it in reports.
            pub fn name(self) -> &'static str {
                match self {
                    $($type::$name => $text,)+
                    _ => $other,
                }
            }
        }
    };
}

pub(crate) use numbers;
