//! How values stand in scenario files, for serde's `with`.

/// Byte strings: a JSON string where they are UTF-8, `{"hex": "..."}` where not.
pub mod bytes {
    use std::ffi::{OsStr, OsString};
    use std::os::unix::ffi::{OsStrExt, OsStringExt};

    use serde::{de::Error, Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    pub enum Encoded {
        Plain(String),
        Hex { hex: String },
    }

    impl Encoded {
        pub fn new(text: &OsStr) -> Encoded {
            match text.to_str() {
                Some(plain) => Encoded::Plain(plain.to_string()),
                None => Encoded::Hex { hex: text.as_bytes().iter().map(|b| format!("{b:02x}")).collect() },
            }
        }

        pub fn decode(self) -> Result<OsString, &'static str> {
            let hex = match self {
                Encoded::Plain(plain) => return Ok(plain.into()),
                Encoded::Hex { hex } => hex,
            };
            let digit = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
            let pairs = hex.as_bytes().chunks(2).map(|pair| match pair {
                [a, b] => Some(digit(*a)? << 4 | digit(*b)?),
                _ => None,
            });
            pairs.collect::<Option<Vec<u8>>>().map(OsString::from_vec).ok_or("hex: not pairs of hexadecimal digits")
        }
    }

    pub fn serialize<S: Serializer>(text: &OsStr, to: S) -> Result<S::Ok, S::Error> {
        Encoded::new(text).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<OsString, D::Error> {
        Encoded::deserialize(from)?.decode().map_err(D::Error::custom)
    }
}

/// Lists of byte strings.
pub mod byte_list {
    use std::ffi::OsString;

    use serde::{de::Error, Deserialize, Deserializer, Serializer};

    use super::bytes::Encoded;

    pub fn serialize<S: Serializer>(list: &[OsString], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(list.iter().map(|text| Encoded::new(text)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<OsString>, D::Error> {
        Vec::<Encoded>::deserialize(from)?.into_iter().map(|e| e.decode().map_err(D::Error::custom)).collect()
    }
}

/// Sets of 64-bit numbers, in hexadecimal.
pub mod hex64_set {
    use std::collections::BTreeSet;

    use serde::{de::Error, Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(set: &BTreeSet<u64>, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(set.iter().map(|n| format!("{n:016x}")))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeSet<u64>, D::Error> {
        let read = |text: String| {
            u64::from_str_radix(&text, 16).map_err(|_| D::Error::custom(format!("\"{text}\" is not hexadecimal")))
        };
        Vec::<String>::deserialize(from)?.into_iter().map(read).collect()
    }
}

/// `with` modules for values that are written as text.
macro_rules! as_text {
    ($module:ident, $type:ty, $write:expr, $read:expr, $expected:literal) => {
        /// Written as text.
        pub mod $module {
            use serde::{de::Error, Deserialize, Deserializer, Serializer};

            pub fn serialize<S: Serializer>(value: &$type, to: S) -> Result<S::Ok, S::Error> {
                let write: fn(&$type) -> String = $write;
                to.serialize_str(&write(value))
            }

            pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<$type, D::Error> {
                let text = String::deserialize(from)?;
                let read: fn(&str) -> Option<$type> = $read;
                read(&text).ok_or_else(|| D::Error::custom(format!(concat!("\"{}\" is not ", $expected), text)))
            }
        }
    };
}

as_text!(uid, vsrun_model::Uid, |uid| uid.to_string(), vsrun_model::Uid::parse, "a thread");
as_text!(kind, vsrun_model::Kind, |kind| kind.name().to_string(), vsrun_model::Kind::from_name, "an operation");
as_text!(hex64, u64, |n| format!("{n:016x}"), |text| u64::from_str_radix(text, 16).ok(), "a hexadecimal number");
