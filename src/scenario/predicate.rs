//! What a line of an annotation file says of who may use memory: where a function of the program is entered or left, an exclusive access
//! predicate changes, as by `VS_own`, `VS_disown` and `VS_hand_over` there.
//!
//! `own|disown|hand-over [after] FUNCTION MEMORY [to $argN]`; MEMORY is `$argN[+OFFSET]:LEN`, behind `after` `$result[+OFFSET]:LEN`, or
//! `SYMBOL[+OFFSET[:LEN]]`; LEN is a number or `$argN`. Arguments are those in registers, the first six.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Predicate {
    /// What is said.
    pub says: Says,
    /// When the function returns, not when it is called.
    pub after: bool,
    /// Its name, as a file has it or demangled.
    pub function: String,
    /// Of which memory.
    pub memory: Place,
    /// Bytes from the address of `memory` on to the first that is meant.
    pub offset: u64,
    /// How many are meant; `None`: all of the variable from there on.
    pub length: Option<Length>,
    /// To which thread it is handed over: the number of an argument, from 1; `None`: to whoever uses it next.
    pub to: Option<u8>,
}

/// What is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// From here on the calling thread alone uses it.
    Own,
    /// From here on nobody does.
    Disown,
    /// From here on another one does.
    HandOver,
}

impl Says {
    const ALL: [Says; 3] = [Says::Own, Says::Disown, Says::HandOver];

    /// The word of annotation files.
    pub fn word(self) -> &'static str {
        match self {
            Says::Own => "own",
            Says::Disown => "disown",
            Says::HandOver => "hand-over",
        }
    }

    /// What that word says.
    pub fn of(word: &str) -> Option<Says> {
        Says::ALL.into_iter().find(|says| says.word() == word)
    }
}

/// Where memory is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Where the argument of that number points, from 1.
    Argument(u8),
    /// Where the result points.
    Result,
    /// At a global variable, named as a file has it or demangled.
    Variable(String),
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// That many, above 0.
    Bytes(u64),
    /// As many as the argument of that number says, from 1.
    Argument(u8),
}

/// Arguments that lie in registers.
const ARGUMENTS: u8 = 6;
const MEMORY: &str = "$argN[+OFFSET]:LEN, $result[+OFFSET]:LEN or SYMBOL[+OFFSET[:LEN]] is needed";

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+')),
        None => text.parse().ok().filter(|_| !text.starts_with('+')),
    }
}

fn argument(text: &str) -> Result<u8, String> {
    let n = text.strip_prefix("$arg").and_then(|n| n.parse().ok()).filter(|n| (1..=ARGUMENTS).contains(n));
    n.ok_or_else(|| format!("'{text}' where $arg1 to $arg{ARGUMENTS} are known"))
}

fn length(text: &str) -> Result<Length, String> {
    if text.starts_with('$') {
        return argument(text).map(Length::Argument);
    }
    let bytes = number(text).filter(|n| *n > 0);
    bytes.map(Length::Bytes).ok_or_else(|| format!("'{text}' where a number of bytes above 0, or $argN, is needed"))
}

fn offset(text: &str) -> Result<u64, String> {
    number(text).ok_or_else(|| format!("'{text}' where a number of bytes is needed"))
}

/// `+OFFSET:LEN`, each of which may be missing.
fn extent(text: &str) -> Result<(u64, Option<Length>), String> {
    let (first, len) = text.split_once(':').map_or((text, None), |(first, len)| (first, Some(len)));
    let at = match first.strip_prefix('+') {
        Some(digits) => offset(digits)?,
        None if first.is_empty() => 0,
        None => return Err(MEMORY.into()),
    };
    Ok((at, len.map(length).transpose()?))
}

fn memory(text: &str) -> Result<(Place, u64, Option<Length>), String> {
    if let Some(value) = text.strip_prefix('$') {
        let end = value.find([':', '+']).unwrap_or(value.len());
        let place = match &value[..end] {
            "result" => Place::Result,
            _ => Place::Argument(argument(&text[..end + 1])?),
        };
        let (offset, length) = extent(&value[end..])?;
        return match length {
            Some(_) => Ok((place, offset, length)),
            None => Err(format!("'{text}' does not say how many bytes: {MEMORY}")),
        };
    }
    // A symbol of C++ may have colons, so here a length comes behind an offset only.
    let end = text.find('+').unwrap_or(text.len());
    let (offset, length) = extent(&text[end..])?;
    match &text[..end] {
        "" => Err(MEMORY.into()),
        symbol => Ok((Place::Variable(symbol.to_string()), offset, length)),
    }
}

impl Predicate {
    /// What `line` says behind its first word.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(says: Says, line: &str) -> Result<Predicate, String> {
        let needed = "a function and memory are needed behind it";
        let line = line.trim();
        let (after, line) = match line.strip_prefix("after").filter(|rest| rest.starts_with(char::is_whitespace)) {
            Some(rest) => (true, rest.trim_start()),
            None => (false, line),
        };
        let last =
            |line: &str| line.rsplit_once(char::is_whitespace).map(|(a, b)| (a.trim_end().to_string(), b.to_string()));
        let (mut rest, mut word) = last(line).ok_or(needed)?;
        let mut to = None;
        if let Some((before, "to")) = last(&rest).as_ref().map(|(a, b)| (a, b.as_str())) {
            to = Some(argument(&word)?);
            (rest, word) = last(before).ok_or(needed)?;
        }
        let (memory, offset, length) = memory(&word)?;
        let arguments =
            matches!(memory, Place::Argument(_)) || matches!(length, Some(Length::Argument(_))) || to.is_some();
        match () {
            () if to.is_some() && says != Says::HandOver => Err("only what is handed over goes to somebody".into()),
            () if after && arguments => Err("arguments are not known any more when a function returns".into()),
            () if !after && memory == Place::Result => {
                Err("there is a result when the function returns: 'after' is missing".into())
            }
            () => Ok(Predicate { says, after, function: rest, memory, offset, length, to }),
        }
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Predicate { says, after, function, memory, offset, length, to } = self;
        write!(f, "{} {}{function} ", says.word(), if *after { "after " } else { "" })?;
        match memory {
            Place::Argument(n) => write!(f, "$arg{n}")?,
            Place::Result => f.write_str("$result")?,
            Place::Variable(symbol) => f.write_str(symbol)?,
        }
        if *offset > 0 || length.is_some() && matches!(memory, Place::Variable(_)) {
            write!(f, "+{offset}")?;
        }
        match length {
            Some(Length::Bytes(n)) => write!(f, ":{n}")?,
            Some(Length::Argument(n)) => write!(f, ":$arg{n}")?,
            None => {}
        }
        to.map_or(Ok(()), |n| write!(f, " to $arg{n}"))
    }
}

impl FromStr for Predicate {
    type Err = String;

    fn from_str(line: &str) -> Result<Predicate, String> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        Predicate::parse(Says::of(word).ok_or("'own', 'disown' or 'hand-over' is needed")?, rest)
    }
}

impl TryFrom<String> for Predicate {
    type Error = String;

    fn try_from(line: String) -> Result<Predicate, String> {
        line.parse()
    }
}

impl From<Predicate> for String {
    fn from(predicate: Predicate) -> String {
        predicate.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let read = |line: &str| line.parse::<Predicate>().unwrap();
        let own = read("own  after   pool::get(int, char)  $result+8:0x40");
        let expected = Predicate {
            says: Says::Own,
            after: true,
            function: "pool::get(int, char)".into(),
            memory: Place::Result,
            offset: 8,
            length: Some(Length::Bytes(64)),
            to: None,
        };
        assert_eq!(own, expected);
        let given = read("hand-over submit $arg1:$arg2 to $arg3");
        assert_eq!((given.says, given.after, given.to), (Says::HandOver, false, Some(3)));
        assert_eq!((given.memory, given.length), (Place::Argument(1), Some(Length::Argument(2))));
        let whole = read("disown after leave ns::pool");
        assert_eq!((whole.memory, whole.offset, whole.length), (Place::Variable("ns::pool".into()), 0, None));
        for line in
            ["own after a::b(int) $result:8", "disown f g+4", "hand-over f g+0:$arg1 to $arg6", "own f $arg2+1:3"]
        {
            assert_eq!(read(line).to_string(), line);
            let text = serde_json::to_string(&read(line)).unwrap();
            assert_eq!(serde_json::from_str::<Predicate>(&text).unwrap(), read(line));
        }
    }

    #[test]
    fn what_is_wrong() {
        let wrong = |line: &str| line.parse::<Predicate>().unwrap_err();
        let needed = "a function and memory are needed behind it";
        assert_eq!(wrong("own"), needed);
        assert_eq!(wrong("own f"), needed);
        assert_eq!(wrong("hand-over f to $arg1"), needed);
        assert_eq!(wrong("own f $arg1"), format!("'$arg1' does not say how many bytes: {MEMORY}"));
        assert_eq!(wrong("own f $arg7:1"), "'$arg7' where $arg1 to $arg6 are known");
        assert_eq!(wrong("own f $arg:1"), "'$arg' where $arg1 to $arg6 are known");
        assert_eq!(wrong("own f $arg1:0"), "'0' where a number of bytes above 0, or $argN, is needed");
        assert_eq!(wrong("own f $arg1+x:1"), "'x' where a number of bytes is needed");
        assert_eq!(wrong("own f +3:1"), MEMORY);
        assert_eq!(wrong("own f v to $arg1"), "only what is handed over goes to somebody");
        assert_eq!(wrong("own after f $arg1:4"), "arguments are not known any more when a function returns");
        assert_eq!(wrong("own f $result:4"), "there is a result when the function returns: 'after' is missing");
        assert_eq!(wrong("owns f $arg1:4"), "'own', 'disown' or 'hand-over' is needed");
        for line in
            ["own \u{e9}\u{301} $\u{e9}:1", "own f $", "own f $:", "own f v+:", "hand-over f g to x", "own f v+1:+1"]
        {
            assert!(line.parse::<Predicate>().is_err(), "{line}");
        }
    }
}
