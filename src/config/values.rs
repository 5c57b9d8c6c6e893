//! How the values of options are read. An error is one line, without the option's name.

use std::ffi::OsString;
use std::time::Duration;

use crate::search::Bound;

/// One of the names of [`vsrun_model::inject::NAMES`], as its bit.
pub(super) fn fault(text: &str) -> Result<u32, String> {
    let known = vsrun_model::inject::NAMES;
    let found = known.iter().find(|(name, _)| *name == text).map(|(_, bit)| *bit);
    found.ok_or_else(|| format!("faults are {}", known.map(|(name, _)| name).join(", ")))
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

/// A positive number of seconds, fractions allowed.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.parse().map_err(|_| "a number of seconds is needed".to_string())?;
    match Duration::try_from_secs_f64(number) {
        Ok(time) if time >= Duration::from_millis(1) => Ok(time),
        _ => Err("a positive number of seconds, 0.001 or more, is needed".to_string()),
    }
}
