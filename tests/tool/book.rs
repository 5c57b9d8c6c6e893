//! README.md and the book in docs/: every command of the README runs as it stands there and prints what stands below it; every page is in the
//! book, every link leads somewhere, every option is explained.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A command of a page, and the lines that are said to come of it.
#[derive(Debug, PartialEq)]
struct Shown {
    command: String,
    prints: Vec<String>,
}

/// The commands of a page, in order: of each indented block either the lines that begin with `$ `, and what stands below them, or all lines.
/// A comment behind a command is none of it.
fn commands(page: &str) -> Vec<Shown> {
    let mut all = Vec::<Shown>::new();
    // A blank line ends a block unless another indented one follows.
    for block in page.split("\n\n").collect::<Vec<_>>().chunk_by(|a, b| a.starts_with("    ") && b.starts_with("    "))
    {
        let text = block.join("\n\n");
        let lines: Vec<&str> = text.lines().map(|line| line.strip_prefix("    ").unwrap_or("")).collect();
        if !text.starts_with("    ") {
            continue;
        }
        let bare = !lines.iter().any(|line| line.starts_with("$ "));
        for line in lines {
            match (line.strip_prefix("$ "), bare) {
                (Some(command), _) => all.push(Shown { command: command.to_string(), prints: Vec::new() }),
                (None, true) => {
                    let command = line.split(" # ").next().unwrap_or(line).trim().to_string();
                    all.push(Shown { command, prints: Vec::new() });
                }
                (None, false) => all.last_mut().expect("a command comes first").prints.push(line.to_string()),
            }
        }
    }
    all
}

/// A line without what differs from run to run: seconds and rates.
fn lasting(line: &str) -> String {
    let mut words: Vec<&str> = line.trim_end().split(' ').collect();
    for n in 1..words.len() {
        let unit = words[n].trim_end_matches([',', ';']);
        if (unit == "s" || unit == "executions/s") && words[n - 1].parse::<f64>().is_ok() {
            words[n - 1] = "N";
        }
    }
    words.join(" ")
}

/// The first line that is said to come and does not. `...` stands for any number of lines.
fn missing(said: &[String], printed: &str) -> Option<String> {
    let printed: Vec<String> = printed.lines().map(lasting).collect();
    let (mut at, mut anywhere) = (0, false);
    for line in said {
        if line.trim() == "..." {
            anywhere = true;
            continue;
        }
        let wanted = lasting(line);
        let found = if anywhere {
            printed[at..].iter().position(|p| *p == wanted)
        } else {
            (printed.get(at) == Some(&wanted)).then_some(0)
        };
        match found {
            Some(n) => at += n + 1,
            None => return Some(line.clone()),
        }
        anywhere = false;
    }
    (!anywhere && at < printed.len() && !said.is_empty()).then(|| format!("(no end: {})", printed[at]))
}

/// Commands that CI runs elsewhere, and where.
const ELSEWHERE: [(&str, &str); 3] = [
    ("./scripts/demo.sh", "scripts/test.sh"),
    ("./scripts/test.sh", ".ci/run"),
    ("cargo install --locked --path .", "scripts/package.sh"),
];

/// A directory in which README's commands find what they name.
struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        let dir = std::env::temp_dir().join(format!("vsrun-book-{}", std::process::id()));
        fs::create_dir_all(dir.join("bin")).expect("a temporary directory");
        for name in ["c-tests", "docs", "shim"] {
            std::os::unix::fs::symlink(root().join(name), dir.join(name)).expect("a link");
        }
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_vsrun"), dir.join("bin/vsrun")).expect("a link");
        Place(dir)
    }

    /// Status and standard output. On one CPU, so that searches are the same each time.
    fn run(&self, command: &str) -> (Option<i32>, String) {
        let path = format!("{}:{}", self.0.join("bin").display(), std::env::var("PATH").unwrap_or_default());
        let mut shell = Command::new("sh");
        let one_cpu = r#"exec taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')" timeout 120 sh -c "$0""#;
        shell.args(["-c", one_cpu, command]).env("PATH", path).current_dir(&self.0).stdin(Stdio::null());
        let done = shell.output().expect("sh");
        (done.status.code(), String::from_utf8_lossy(&done.stdout).into_owned())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn every_command_of_the_readme_runs_as_it_stands_there() {
    let page = fs::read_to_string(root().join("README.md")).expect("README.md");
    let place = Place::new();
    let mut ran = 0;
    for Shown { command, prints } in commands(&page) {
        if let Some((_, by)) = ELSEWHERE.iter().find(|(elsewhere, _)| *elsewhere == command) {
            let text = fs::read_to_string(root().join(by)).expect("a script");
            assert!(text.contains(&command), "{by} does not run {command}");
            continue;
        }
        let (status, printed) = place.run(&command);
        // Bugs are found, or not all is explored: that is what vsrun is for. All else is a command that does not work.
        let right = status == Some(0) || command.starts_with("vsrun ") && matches!(status, Some(1 | 3));
        assert!(right, "{command}: {status:?}\n{printed}");
        if let Some(line) = missing(&prints, &printed) {
            panic!("README says that {command} prints\n{line}\n\nit prints\n{printed}");
        }
        ran += 1;
    }
    assert!(ran >= 10, "{ran} commands");
}

#[test]
fn commands_and_what_they_print_are_told_apart() {
    let page = "# A\nText.\n\n    $ one -x\n    prints\n\n      this\n    $ two # for nothing\n\nText\n\n    bare a   # comment\n    bare b\n";
    let shown = |command: &str, prints: &[&str]| Shown {
        command: command.into(),
        prints: prints.iter().map(|line| line.to_string()).collect(),
    };
    let all = [
        shown("one -x", &["prints", "", "  this"]),
        shown("two # for nothing", &[]),
        shown("bare a", &[]),
        shown("bare b", &[]),
    ];
    assert_eq!(commands(page), all);
    let said = |lines: &[&str]| lines.iter().map(|line| line.to_string()).collect::<Vec<_>>();
    assert_eq!(missing(&said(&["a, 0.25 s", "...", "c"]), "a, 1 s\nb\nc\n"), None);
    assert_eq!(missing(&said(&["a", "c"]), "a\nb\nc\n"), Some("c".into()));
    assert_eq!(missing(&said(&["...", "d"]), "a\nb\nc\n"), Some("d".into()));
    assert!(missing(&said(&["a"]), "a\nb\n").is_some() && missing(&said(&["a", "..."]), "a\nb\n").is_none());
}

/// What the pages of the book are called, and their texts.
fn pages() -> BTreeMap<String, String> {
    let files = fs::read_dir(root().join("docs")).expect("docs");
    let names = files.map(|file| file.expect("an entry").file_name().into_string().expect("UTF-8"));
    let pages = names.filter(|name| name.ends_with(".md"));
    pages.map(|name| (name.clone(), fs::read_to_string(root().join("docs").join(name)).expect("a page"))).collect()
}

/// Where the links of a page lead, without those to other machines. What stands in code is none.
fn links(page: &str) -> Vec<String> {
    let mut outside = String::new();
    for line in page.lines().filter(|line| !line.starts_with("    ")) {
        outside.extend(line.split('`').step_by(2));
        outside.push('\n');
    }
    let targets = outside.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_string()));
    targets.filter(|target| !target.contains("://")).collect()
}

/// What a heading is called in a link: as mdBook and forges make it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().chars();
    let kept = kept.filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// Links that lead nowhere, of a page in `dir`. In the book they have to stay in it.
fn broken(dir: &Path, name: &str, text: &str, book: bool) -> Vec<String> {
    let wrong = |target: &String| {
        let (file, place) = target.split_once('#').map_or((target.as_str(), None), |(file, place)| (file, Some(place)));
        let path = dir.join(if file.is_empty() { name } else { file });
        let outside = book && (file.contains("..") || !(file.is_empty() || file.ends_with(".md") || path.is_file()));
        let there = |place: &str| {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let found = text.lines().any(|line| line.starts_with('#') && anchor(line) == place);
            found
        };
        outside || !path.exists() || place.is_some_and(|place| !there(place))
    };
    links(text).iter().filter(|target| wrong(target)).map(|target| format!("{name}: {target}")).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let mut all = Vec::new();
    for (name, text) in pages() {
        all.extend(broken(&root().join("docs"), &name, &text, true));
    }
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(root().join(name)).expect(name);
        all.extend(broken(root(), name, &text, false));
    }
    assert!(all.is_empty(), "links that lead nowhere, or out of the book: {all:#?}");
    let page = "[a](none.md) `[b](c.md)` [d](#other) [e](REPLAY.md) [f](https://example.org) [g](../README.md)\n    [h](i)\n# Some";
    let found = broken(&root().join("docs"), "SUMMARY.md", page, true);
    assert_eq!(found, ["SUMMARY.md: none.md", "SUMMARY.md: #other", "SUMMARY.md: ../README.md"]);
}

#[test]
fn every_page_is_in_the_book_once() {
    let pages = pages();
    let listed = links(&pages["SUMMARY.md"]);
    let once: BTreeSet<&String> = listed.iter().collect();
    assert_eq!(listed.len(), once.len(), "a page is listed twice");
    let all: BTreeSet<&String> = pages.keys().filter(|name| *name != "SUMMARY.md").collect();
    assert_eq!(once, all, "docs/SUMMARY.md lists other pages than there are");
    for (name, text) in &pages {
        assert!(text.starts_with("# "), "{name} has no title");
    }
}

/// The options that `--help` of this command names.
fn options_of(arguments: &[&str]) -> BTreeSet<String> {
    let help = Command::new(env!("CARGO_BIN_EXE_vsrun")).args(arguments).arg("--help").output().expect("vsrun");
    let text = String::from_utf8_lossy(&help.stdout).into_owned();
    let first = text.lines().filter_map(|line| line.trim_start().split([' ', ',', '[']).next());
    let second = text.lines().filter_map(|line| line.trim_start().split_once(", ")?.1.split(' ').next());
    first.chain(second).filter(|word| word.starts_with("--")).map(String::from).collect()
}

#[test]
fn every_option_is_explained_on_a_page() {
    let pages = pages();
    let words = |page: &str| -> BTreeSet<String> {
        let all = page.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
        all.filter(|word| word.starts_with("--")).map(String::from).collect()
    };
    let mut explained = BTreeSet::new();
    for text in pages.values() {
        explained.extend(words(text));
    }
    let own = ["--help".to_string(), "--version".to_string()];
    let search = options_of(&[]);
    assert!(search.len() > 40, "{search:?}");
    let table = words(&pages["OPTIONS.md"]);
    let missing: Vec<&String> =
        search.iter().filter(|option| !table.contains(*option) && !own.contains(option)).collect();
    assert!(missing.is_empty(), "docs/OPTIONS.md does not explain {missing:?}");
    let help = Command::new(env!("CARGO_BIN_EXE_vsrun")).arg("--help").output().expect("vsrun").stdout;
    let help = String::from_utf8_lossy(&help).into_owned();
    let (_, listed) = help.split_once("\nCommands:\n").expect("commands");
    let names = listed.lines().take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next());
    for name in names {
        let options = options_of(&[name]);
        assert!(options.contains("--help"), "{name}: {options:?}");
        let missing: Vec<&String> = options.difference(&explained).filter(|option| !own.contains(option)).collect();
        assert!(missing.is_empty(), "no page of docs/ explains {missing:?} of 'vsrun {name}'");
        assert!(pages.values().any(|text| text.contains(&format!("vsrun {name}"))), "no page names 'vsrun {name}'");
    }
}
