//! The files of a pack by their names, and where links among them lead.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Links on the way to one file; the kernel follows as many.
const MOST_LINKS: usize = 40;

/// What a file is to paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    Directory,
    Link(&'a Path),
    File,
}

/// Where a path leads to: the file without any link on the way, and what is there. An error: why it leads nowhere.
///
/// `root` is the directory that the files are in: nothing leads out of it. Names in `at` are relative to it.
pub(super) fn follow<'a, T>(
    files: &'a BTreeMap<PathBuf, T>,
    step: fn(&'a T) -> Step<'a>,
    path: &Path,
) -> Result<PathBuf, &'static str> {
    let mut rest: VecDeque<OsString> = VecDeque::new();
    push_front(&mut rest, path)?;
    let mut at = PathBuf::new();
    let mut links = 0;
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            if !at.pop() {
                return Err("leads out of the pack");
            }
            continue;
        }
        let next = at.join(&name);
        match files.get(&next).map(step) {
            None => return Err("leads to nothing that is in the pack"),
            Some(Step::Link(to)) => {
                links += 1;
                if links > MOST_LINKS {
                    return Err("goes round in circles");
                }
                push_front(&mut rest, to)?;
            }
            Some(Step::File) if !rest.is_empty() => return Err("goes through a file as if that were a directory"),
            Some(_) => at = next,
        }
    }
    Ok(at)
}

fn push_front(rest: &mut VecDeque<OsString>, path: &Path) -> Result<(), &'static str> {
    for part in path.components().rev() {
        match part {
            Component::Normal(name) => rest.push_front(name.into()),
            Component::ParentDir => rest.push_front("..".into()),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return Err("is absolute"),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(text: &&'static str) -> Step<'static> {
        match text.strip_prefix("-> ") {
            Some(to) => Step::Link(Path::new(to)),
            None if *text == "d" => Step::Directory,
            None => Step::File,
        }
    }

    #[test]
    fn links_lead_to_files_in_it() {
        let files: BTreeMap<PathBuf, &'static str> = [
            ("a", "d"),
            ("a/b", "d"),
            ("a/b/f", "f"),
            ("l", "-> a/b"),
            ("a/up", "-> ../a/b/../b/f"),
            ("out", "-> l/../../.."),
            ("round", "-> round"),
            ("abs", "-> /etc"),
            ("dead", "-> a/none"),
        ]
        .into_iter()
        .map(|(name, what)| (PathBuf::from(name), what))
        .collect();
        let to = |path: &str| follow(&files, step, Path::new(path)).map(|p| p.to_string_lossy().into_owned());
        assert_eq!(to("l/f"), Ok("a/b/f".into()));
        assert_eq!(to("a/up"), Ok("a/b/f".into()));
        assert_eq!(to("l/.."), Ok("a".into()), "a link is left by where it leads");
        assert_eq!(to("out"), Err("leads out of the pack"));
        assert_eq!(to("round"), Err("goes round in circles"));
        assert_eq!(to("abs"), Err("is absolute"));
        assert_eq!(to("dead"), Err("leads to nothing that is in the pack"));
        assert_eq!(to("a/b/f/x"), Err("goes through a file as if that were a directory"));
    }
}
