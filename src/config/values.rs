//! How the values of options are read. An error is one line, without the option's name.

use std::ffi::OsString;
use std::time::Duration;

use clap::ValueEnum;

use crate::scenario::Toss;
use crate::search::Bound;

/// One of the names of [`vsrun_model::inject::NAMES`], as its bit.
pub(super) fn fault(text: &str) -> Result<u32, String> {
    let known = vsrun_model::inject::NAMES;
    let found = known.iter().find(|(name, _)| *name == text).map(|(_, bit)| *bit);
    found.ok_or_else(|| format!("faults are {}", known.map(|(name, _)| name).join(", ")))
}

/// The same, or 0 for `none`.
pub(super) fn fault_or_none(text: &str) -> Result<u32, String> {
    match text {
        "none" => Ok(0),
        _ => fault(text).map_err(|why| format!("{why}, or none")),
    }
}

/// One of the names of [`vsrun_model::calls::KINDS`], as its bit.
pub(super) fn uncontrolled(text: &str) -> Result<u32, String> {
    let known = vsrun_model::calls::KINDS;
    let found = known.iter().find(|kind| kind.0 == text).map(|kind| kind.1);
    found.ok_or_else(|| format!("kinds are {}", known.map(|kind| kind.0).join(", ")))
}

/// `preemptions=K` or `delays=K`.
pub(super) fn bound(text: &str) -> Result<Bound, String> {
    let wrong = || "preemptions=K or delays=K is needed".to_string();
    let (kind, k) = text.split_once('=').ok_or_else(wrong)?;
    let k = k.parse().ok().filter(|k| *k <= 1000).ok_or("K is a number, 1000 or less")?;
    match kind {
        "preemptions" => Ok(Bound::Preemptions(k)),
        "delays" => Ok(Bound::Delays(k)),
        _ => Err(wrong()),
    }
}

/// A variable, or a part of it, of which each use is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Its name, as a file has it or demangled.
    pub symbol: String,
    /// The first byte.
    pub offset: u64,
    /// Bytes; `None`: all from there on.
    pub length: Option<u64>,
}

impl std::fmt::Display for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.symbol)?;
        if self.offset > 0 || self.length.is_some() {
            write!(f, "+{}", self.offset)?;
        }
        self.length.map_or(Ok(()), |length| write!(f, ":{length}"))
    }
}

/// `SYMBOL[+OFFSET[:LEN]]`; numbers are decimal, or hexadecimal after `0x`.
pub(super) fn point(text: &str) -> Result<Point, String> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok().filter(|_| !text.starts_with('+')),
    };
    let wrong = "SYMBOL[+OFFSET[:LEN]] is needed, OFFSET a number of bytes, LEN one above 0";
    let (symbol, rest) = text.split_once('+').map_or((text, None), |(symbol, rest)| (symbol, Some(rest)));
    let (offset, length) = match rest.map(|rest| rest.split_once(':').map_or((rest, None), |(o, l)| (o, Some(l)))) {
        Some((offset, length)) => (number(offset).ok_or(wrong)?, length.map(|l| number(l).ok_or(wrong)).transpose()?),
        None => (0, None),
    };
    match symbol.is_empty() || length == Some(0) {
        true => Err(wrong.into()),
        false => Ok(Point { symbol: symbol.to_string(), offset, length }),
    }
}

/// `FUNC:N`: the name of a function, and the most that it is to return.
pub(super) fn toss(text: &str) -> Result<Toss, String> {
    let (function, most) = text.rsplit_once(':').ok_or("FUNC:N is needed, a function and the most that it returns")?;
    let most = most.parse().ok().filter(|most| (1..=Toss::LARGEST).contains(most));
    let most = most.ok_or_else(|| format!("N is a number from 1 to {}", Toss::LARGEST))?;
    match function.is_empty() || function.ends_with(':') {
        true => Err("the name of the function is missing".into()),
        false => Ok(Toss { function: function.to_string(), most }),
    }
}

/// When others see what a thread stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum MemoryModel {
    /// At once: sequential consistency.
    Sc,
    /// When it comes out of a buffer, in order, at any moment: x86-TSO.
    Tso,
}

/// What `--search transactions` does when something that it has assumed turns out to be wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Refine {
    /// It begins again.
    Restart,
    /// What was explored is put right where that was assumed.
    Incremental,
}

/// The value of `--memory`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// Bytes.
    Size(u64),
    /// A memory model.
    Model(MemoryModel),
}

/// A command as words, at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Words(pub Vec<OsString>);

/// Splits a command into words: quotes and backslashes as in a shell, and nothing else that a shell does.
pub(super) fn command_words(text: &str) -> Result<Words, String> {
    const FOR_A_SHELL: &str = "$`|&;<>()*?[~#\n";
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some('"'), '$' | '`') | (None, _) if quote.is_some() || FOR_A_SHELL.contains(c) => {
                return Err(format!("'{c}' needs a shell: sh -c '...'"));
            }
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_with(String::new);
            }
            (None, '\\') | (Some('"'), '\\') => {
                let next = letters.next().ok_or("a backslash at the end")?;
                let word = word.get_or_insert_with(String::new);
                if quote.is_some() && !"\"\\$`".contains(next) {
                    word.push('\\');
                }
                word.push(next);
            }
            (None, c) if c.is_whitespace() => words.extend(word.take().map(OsString::from)),
            (_, c) => word.get_or_insert_with(String::new).push(c),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed".into());
    }
    words.extend(word.map(OsString::from));
    match words.is_empty() {
        true => Err("no program".into()),
        false => Ok(Words(words)),
    }
}

/// A signal by name, with or without SIG, or by number.
pub(super) fn signal_number(text: &str) -> Result<i32, String> {
    use std::str::FromStr;
    if let Ok(number) = text.parse::<i32>() {
        return Some(number).filter(|n| (1..=64).contains(n)).ok_or("signals are 1 to 64".into());
    }
    let upper = text.to_ascii_uppercase();
    let name = if upper.starts_with("SIG") { upper } else { format!("SIG{upper}") };
    nix::sys::signal::Signal::from_str(&name).map(|signal| signal as i32).map_err(|_| "no such signal".into())
}

/// A number of bytes, with K, M or G of 1024 each.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number = digits.parse::<u64>().ok().filter(|_| !digits.starts_with('+'));
    let bytes = number.and_then(|n| n.checked_mul(1 << shift)).filter(|&n| n > 0);
    bytes.ok_or_else(|| "a size is a number above 0, of bytes or with K, M or G behind it".to_string())
}

/// The same, or 0.
pub(super) fn size_or_zero(text: &str) -> Result<u64, String> {
    if text == "0" {
        return Ok(0);
    }
    size(text).map_err(|e| format!("{e}; or 0"))
}

/// The same; 16 MiB at most.
pub(super) fn size_or_none(text: &str) -> Result<u64, String> {
    const LARGEST: u64 = 16 << 20;
    Some(size_or_zero(text)?).filter(|bytes| *bytes <= LARGEST).ok_or_else(|| "16M is the most".to_string())
}

/// A size, or a memory model.
pub(super) fn memory(text: &str) -> Result<Memory, String> {
    match text {
        "sc" => Ok(Memory::Model(MemoryModel::Sc)),
        "tso" => Ok(Memory::Model(MemoryModel::Tso)),
        _ => size(text).map(Memory::Size).map_err(|e| format!("{e}; or sc or tso")),
    }
}

/// The same, or 0.
pub(super) fn duration_or_none(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    duration(text).map_err(|e| format!("{e}; or 0"))
}

/// Units of durations, each shorter than the one before, in nanoseconds.
const UNITS: [(&str, f64); 5] = [("d", 86400e9), ("h", 3600e9), ("m", 60e9), ("s", 1e9), ("ms", 1e6)];
/// The longest duration: a hundred years, which clocks can still add.
const LONGEST: f64 = 100.0 * 365.0 * 86400e9;

/// A duration: seconds (`90`, `0.5`), or numbers with units, the longest first (`10m`, `1h30m`, `1.5h`, `500ms`, `2d`). A thousandth of a
/// second at least.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("a time is a number of seconds (90, 0.5) or 10m, 1h30m, 500ms, 2d, not '{text}'");
    let is_digit = |c: char| c.is_ascii_digit() || c == '.';
    let (mut rest, mut sum, mut longer) = (text, 0.0, 0);
    while !rest.is_empty() {
        let (digits, behind) = rest.split_at(rest.find(|c| !is_digit(c)).unwrap_or(rest.len()));
        let (unit, behind) = behind.split_at(behind.find(is_digit).unwrap_or(behind.len()));
        let number: f64 = digits.parse().map_err(|_| wrong())?;
        // A plain number stands alone.
        let place = match unit {
            "" if digits == text => UNITS.iter().position(|(name, _)| *name == "s"),
            _ => UNITS.iter().position(|(name, _)| *name == unit),
        };
        let place = place.filter(|&place| place >= longer).ok_or_else(wrong)?;
        (rest, sum, longer) = (behind, sum + number * UNITS[place].1, place + 1);
    }
    match sum {
        _ if text.is_empty() => Err(wrong()),
        sum if sum < 1e6 => Err(format!("'{text}' is too short: 1ms is the least")),
        sum if sum > LONGEST => Err(format!("'{text}' is too long: a hundred years are the most")),
        sum => Ok(Duration::from_nanos(sum.round() as u64)),
    }
}
