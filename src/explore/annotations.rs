//! What the user says of objects and memory: `--unshared`, `--atomic`, and annotation files.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::failure::Failure;
use crate::base::files;
use crate::base::text::escape;
use crate::config::Config;
use crate::objects::What;
use crate::scenario::{Predicate, Says};

/// What is said of memory, or of what uses it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Said {
    /// Uses of that variable are not reported.
    Benign,
    /// Uses by that function are not reported.
    BenignIn,
    /// That variable is there for communication: each use of it is an operation, from the start.
    Communication,
}

impl Said {
    const ALL: [Said; 3] = [Said::Benign, Said::BenignIn, Said::Communication];

    /// The word of annotation files.
    pub(super) fn word(self) -> &'static str {
        match self {
            Said::Benign => "benign",
            Said::BenignIn => "benign-in",
            Said::Communication => "communication",
        }
    }
}

/// What an annotation file says, of which symbol.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Annotations {
    pub objects: Vec<(What, String)>,
    pub memory: Vec<(Said, String)>,
    pub predicates: Vec<Predicate>,
}

/// What the user says, of which symbol.
pub(super) fn annotated(config: &Config) -> Result<Annotations, Failure> {
    let mut all = match &config.annotations {
        Some(path) => read_annotations(path).map_err(Failure::environment)?,
        None => Annotations::default(),
    };
    let mut wanted: Vec<(What, String)> = Vec::new();
    wanted.extend(config.unshared.iter().map(|s| (What::Unshared, s.clone())));
    wanted.extend(config.atomic.iter().map(|s| (What::Atomic, s.clone())));
    wanted.append(&mut all.objects);
    match declared_twice(&wanted) {
        Some(symbol) => Err(Failure::environment(format!("{symbol} is declared unshared and atomic"))),
        None => Ok(Annotations { objects: wanted, ..all }),
    }
}

/// A variable that is said to be both.
pub(super) fn declared_twice(wanted: &[(What, String)]) -> Option<&str> {
    let mut known = BTreeMap::new();
    wanted
        .iter()
        .find(|(what, symbol)| *known.entry(symbol).or_insert(*what) != *what)
        .map(|(_, symbol)| symbol.as_str())
}

/// Bytes that an annotation file may have.
const LARGEST_ANNOTATIONS: u64 = 16 << 20;

/// What a line may begin with.
const WORDS: &str = "'unshared', 'atomic', 'benign', 'benign-in', 'communication', 'own', 'disown' or 'hand-over'";

/// Reads an annotation file: a line each, a word and a symbol (`unshared cache_lock`), or a [`Predicate`]; `#` begins a comment.
fn read_annotations(path: &Path) -> Result<Annotations, String> {
    let text = files::read(path, LARGEST_ANNOTATIONS).map_err(|e| format!("{}: {e}", escape(path)))?;
    annotations_of(&text).map_err(|(line, what)| format!("{}:{line}: {what}", escape(path)))
}

/// What the content of an annotation file says, or the number of a line that is wrong and why.
pub(super) fn annotations_of(text: &[u8]) -> Result<Annotations, (usize, String)> {
    let line_of = |at: usize| text[..at].iter().filter(|&&b| b == b'\n').count() + 1;
    annotations(std::str::from_utf8(text).map_err(|e| (line_of(e.valid_up_to()), "it is not UTF-8".to_string()))?)
}

/// What the lines of an annotation file say, or the number of one that is wrong and why.
fn annotations(text: &str) -> Result<Annotations, (usize, String)> {
    let mut all = Annotations::default();
    for (at, line) in text.lines().enumerate() {
        // A symbol may have blanks inside (of a template), but no `#`.
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let (word, symbol) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        if let Some(says) = Says::of(word) {
            all.predicates.push(Predicate::parse(says, symbol).map_err(|why| (at + 1, format!("'{word}': {why}")))?);
            continue;
        }
        let symbol = symbol.trim().to_string();
        let object = [What::Unshared, What::Atomic].into_iter().find(|what| what.word() == word);
        let memory = Said::ALL.into_iter().find(|said| said.word() == word);
        match (object, memory) {
            (None, None) => {
                return Err((at + 1, format!("'{word}' where {WORDS} is needed")));
            }
            _ if symbol.is_empty() => return Err((at + 1, format!("'{word}' without the name of a symbol"))),
            (Some(what), _) => all.objects.push((what, symbol)),
            (_, Some(said)) => all.memory.push((said, symbol)),
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotation_files() {
        let text = "# locks\nunshared  cache_lock\n\n  atomic log::lock<int, 3> # of the log\nbenign hits\nbenign-in log::count\ncommunication turn\nown f $arg1:2 # x";
        let objects = vec![(What::Unshared, "cache_lock".into()), (What::Atomic, "log::lock<int, 3>".into())];
        let memory = [(Said::Benign, "hits"), (Said::BenignIn, "log::count"), (Said::Communication, "turn")];
        let memory = memory.map(|(said, symbol)| (said, symbol.to_string())).to_vec();
        assert_eq!(
            annotations(text),
            Ok(Annotations { objects, memory, predicates: vec!["own f $arg1:2".parse().unwrap()] })
        );
        assert_eq!(annotations(""), Ok(Annotations::default()));
        let wrong = |text| annotations(text).unwrap_err();
        assert_eq!(wrong("unshared a\nshared b\n"), (2, format!("'shared' where {WORDS} is needed")));
        let needed = "'own': a function and memory are needed behind it";
        assert_eq!(wrong("# x\nown f # $arg1:2"), (2, needed.into()));
        assert_eq!(wrong("\natomic # x\n"), (2, "'atomic' without the name of a symbol".into()));
        assert_eq!(wrong("benign-in"), (1, "'benign-in' without the name of a symbol".into()));
    }

    #[test]
    fn what_is_declared_twice() {
        let read = |text: String| annotations_of(text.as_bytes()).unwrap().objects;
        assert_eq!(declared_twice(&read("atomic a\natomic b\natomic a\nunshared b\n".into())), Some("b"));
        assert_eq!(declared_twice(&read((0..300_000).map(|n| format!("atomic v{n}\n")).collect())), None);
        assert_eq!(annotations_of(b"atomic a\n# \xff\n"), Err((2, "it is not UTF-8".into())));
    }
}
