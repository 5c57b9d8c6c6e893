//! When processes beside the program begin: clients, and the program once more.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::ValueEnum;

/// When the processes of `--with` begin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClientsStart {
    /// With the program.
    AtOnce,
    /// Once a socket listens.
    Listening,
    /// Once there is that file.
    File(OsString),
    /// Once the program has printed that text.
    Output(OsString),
}

impl fmt::Display for ClientsStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientsStart::AtOnce => f.write_str("at-once"),
            ClientsStart::Listening => f.write_str("listening"),
            ClientsStart::File(path) => write!(f, "file:{}", path.to_string_lossy()),
            ClientsStart::Output(text) => write!(f, "output:{}", text.to_string_lossy()),
        }
    }
}

impl ClientsStart {
    fn parse(value: &OsStr) -> Result<ClientsStart, String> {
        let behind = |name: &str| value.as_bytes().strip_prefix(name.as_bytes()).map(<[u8]>::to_vec);
        let longest = vsrun_model::closing::MAX_AWAITED_TEXT - 1;
        let checked = |bytes: Vec<u8>, what: &str| match bytes.len() {
            0 => Err(format!("{what} is missing behind the colon")),
            n if n > longest => Err(format!("{what} is longer than {longest} bytes")),
            _ => Ok(OsString::from_vec(bytes)),
        };
        match (value.to_str(), behind("file:"), behind("output:")) {
            (Some("at-once"), ..) => Ok(ClientsStart::AtOnce),
            (Some("listening"), ..) => Ok(ClientsStart::Listening),
            (_, Some(path), _) => checked(path, "the path of the file").map(ClientsStart::File),
            (_, _, Some(text)) => checked(text, "the text").map(ClientsStart::Output),
            _ => Err("listening, at-once, file:PATH or output:TEXT is needed".into()),
        }
    }
}

/// Reads when clients begin; knows what a shell may complete.
#[derive(Clone)]
pub(super) struct ClientsParser;

impl TypedValueParser for ClientsParser {
    type Value = ClientsStart;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<ClientsStart, clap::Error> {
        ClientsStart::parse(value).map_err(|why| {
            let name = arg.map_or_else(|| "--clients".to_string(), ToString::to_string);
            let text = format!("invalid value '{}' for '{name}': {why}", value.to_string_lossy());
            clap::Error::raw(ErrorKind::ValueValidation, text).with_cmd(command)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(["listening", "at-once", "file:", "output:"].into_iter().map(PossibleValue::new)))
    }
}

/// After what end a program is started again, as in systemd.service(5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Restart {
    /// A status other than 0, or a signal that does not ask it to end.
    OnFailure,
    /// Any.
    Always,
}
