//! Which file may use which. The files of a crate stand on floors (`FLOORS` beside them, the lowest first: the name of a
//! floor, then its files and directories); a file imports files on floors below its own or on its own, and nothing
//! imports itself by way of others.
//!
//! What counts as an import: `use`, and paths in expressions, types and macros, resolved to the file in which the thing is
//! defined: through modules, `pub use` and names that were imported. Tests within the files do not count. A `mod.rs` that
//! only declares modules and says what is public of them is a table of contents, and imports nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A token: a word, or a sign.
type Token = String;

/// Splits source text into words and signs; comments, strings and characters are left out.
fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let (mut all, mut at) = (Vec::new(), 0);
    let find = |from: usize, end: &str| text[from..].find(end).map_or(text.len(), |n| from + n + end.len());
    while at < bytes.len() {
        let rest = &text[at..];
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let raw = rest.trim_start_matches(['b', 'c', 'r']).trim_start_matches('#').starts_with('"');
        if rest.starts_with("//") {
            at = find(at, "\n");
        } else if rest.starts_with("/*") {
            at = find(at, "*/");
        } else if rest.starts_with(['b', 'c', 'r']) && raw && rest[..word].contains('r') {
            let open = rest.find('"').unwrap_or(0);
            let hashes = "#".repeat(rest[..open].matches('#').count());
            at = find(at + open + 1, &format!("\"{hashes}"));
        } else if rest.starts_with('"') || word == 1 && raw {
            let mut end = at + rest.find('"').unwrap_or(0) + 1;
            while end < bytes.len() && bytes[end] != b'"' {
                end += if bytes[end] == b'\\' { 2 } else { 1 };
            }
            at = end + 1;
        } else if let Some(quoted) = rest.strip_prefix('\'') {
            let escaped = quoted.starts_with('\\');
            let c = quoted.chars().next().map_or(1, char::len_utf8);
            // A character, not a lifetime.
            let is_char = escaped || quoted[c.min(quoted.len())..].starts_with('\'');
            at = if is_char { find(at + if escaped { 3 } else { 1 + c }, "'") } else { at + 1 };
        } else if word > 0 {
            all.push(rest[..word].to_string());
            at += word;
        } else if rest.starts_with("::") {
            all.push("::".to_string());
            at += 2;
        } else {
            let c = rest.chars().next().map_or(1, char::len_utf8);
            if !rest[..c].trim().is_empty() {
                all.push(rest[..c].to_string());
            }
            at += c;
        }
    }
    all
}

/// Where the bracket at `open` is closed.
fn closing(all: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in all.iter().enumerate().skip(open) {
        match token.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    all.len()
}

/// Leaves out what is compiled for tests only.
fn without_tests(all: &[Token]) -> Vec<Token> {
    let test = ["#", "[", "cfg", "(", "test", ")", "]"];
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < all.len() {
        if !all[at..].iter().map(String::as_str).take(test.len()).eq(test) {
            kept.push(all[at].clone());
            at += 1;
            continue;
        }
        // Up to the end of the item: a semicolon, or its braces.
        at += test.len();
        while at < all.len() && !matches!(all[at].as_str(), ";" | "{") {
            at = if matches!(all[at].as_str(), "(" | "[") { closing(all, at) + 1 } else { at + 1 };
        }
        at = if all.get(at).is_some_and(|t| t == "{") { closing(all, at) + 1 } else { at + 1 };
    }
    kept
}

/// A module: a file, or a block of one.
#[derive(Default, Debug)]
struct Module {
    file: String,
    children: BTreeSet<String>,
    /// Names that `use` brings in and the paths they stand for, from the root or as written.
    names: BTreeMap<String, Vec<String>>,
    /// Modules of which everything is brought in.
    globs: Vec<Vec<String>>,
    /// Names that are defined here.
    items: BTreeSet<String>,
    /// Paths in the code.
    paths: Vec<Vec<String>>,
    /// There is nothing but modules and `use`.
    contents_only: bool,
}

/// The modules of a crate, by path from the root.
struct Crate {
    modules: BTreeMap<Vec<String>, Module>,
    /// What the crate is called from outside: in its main.rs.
    name: &'static str,
}

const ITEMS: [&str; 10] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static", "macro_rules", "macro"];

impl Crate {
    /// The crate with these files, by path from the directory of its root; `name` is its own.
    fn read(files: &BTreeMap<String, String>, name: &'static str) -> Crate {
        let mut all = Crate { modules: BTreeMap::new(), name };
        for root in ["lib.rs", "main.rs"].iter().filter(|root| files.contains_key(**root)) {
            // The command is a crate of its own that uses the library.
            let path = if *root == "main.rs" && files.contains_key("lib.rs") { vec!["main".into()] } else { vec![] };
            all.file(files, root, "", path);
        }
        all
    }

    fn file(&mut self, files: &BTreeMap<String, String>, file: &str, below: &str, path: Vec<String>) {
        let text = without_tests(&tokens(&files[file]));
        self.block(files, file, below, path, &text);
    }

    /// Reads the inside of a module; its modules that are files lie in the directory `below`.
    fn block(&mut self, files: &BTreeMap<String, String>, file: &str, below: &str, path: Vec<String>, text: &[Token]) {
        let contents_only = ["mod.rs", "lib.rs"].contains(&file.rsplit('/').next().unwrap_or(file));
        let mut module = Module { file: file.to_string(), contents_only, ..Module::default() };
        let at_word = |at: usize| text.get(at).map_or("", String::as_str);
        let mut at = 0;
        while at < text.len() {
            match at_word(at) {
                "mod" if matches!(at_word(at + 2), ";" | "{") => {
                    let child = at_word(at + 1).to_string();
                    let inside = [path.clone(), vec![child.clone()]].concat();
                    let deeper = format!("{below}{child}/");
                    let end = closing(text, at + 2);
                    if at_word(at + 2) == "{" {
                        self.block(files, file, &deeper, inside, &text[at + 3..end]);
                        at = end;
                    } else {
                        let own = [format!("{below}{child}.rs"), format!("{deeper}mod.rs")];
                        if let Some(own) = own.iter().find(|own| files.contains_key(*own)) {
                            self.file(files, own, &deeper, inside);
                        }
                        at += 2;
                    }
                    module.children.insert(child);
                }
                "use" => {
                    let end = (at..text.len()).find(|&n| text[n] == ";").unwrap_or(text.len());
                    use_tree(&text[at + 1..end], &[], &mut module);
                    at = end;
                }
                "pub" | "(" | ")" | "in" | ";" => {}
                // Attributes; those of the file itself begin with an exclamation mark.
                "#" => at = closing(text, at + if at_word(at + 1) == "!" { 2 } else { 1 }),
                "crate" | "super" | "self" if at_word(at + 1) == ")" => {}
                word => {
                    module.contents_only = false;
                    let begins = word.starts_with(|c: char| c.is_alphabetic() || c == '_');
                    if ITEMS.contains(&word) {
                        let name = if at_word(at + 1) == "!" { at_word(at + 2) } else { at_word(at + 1) };
                        module.items.insert(name.to_string());
                    } else if begins && at_word(at.wrapping_sub(1)) != "::" {
                        let mut parts = vec![word.to_string()];
                        while at_word(at + 1) == "::" && at_word(at + 2).starts_with(|c: char| c.is_alphabetic()) {
                            parts.push(at_word(at + 2).to_string());
                            at += 2;
                        }
                        if parts.len() > 1 {
                            module.paths.push(parts);
                        }
                    }
                }
            }
            at += 1;
        }
        self.modules.insert(path, module);
    }

    /// The file that a path written in `module` leads to. `None`: out of the crate, or nothing but a table of contents.
    fn target(&self, module: &[String], path: &[String], depth: u32) -> Option<&str> {
        let inside = self.modules.get(module)?;
        let (first, rest) = path.split_first()?;
        if depth == 0 {
            return None;
        }
        let deeper = |start: &[String], rest: &[String]| self.descend(start, rest, depth - 1);
        match first.as_str() {
            "crate" if module.first().is_some_and(|root| root == "main") => deeper(&["main".into()], rest),
            "crate" | "$crate" => deeper(&[], rest),
            "self" => deeper(module, rest),
            "super" => deeper(&module[..module.len().saturating_sub(1)], rest),
            name if name == self.name => deeper(&[], rest),
            name if inside.children.contains(name) => deeper(module, path),
            name => {
                let to = inside.names.get(name)?;
                // A name that stands for itself is one of another crate.
                (to.first() != path.first() || to.len() > 1)
                    .then(|| self.target(module, &[to, rest].concat(), depth - 1))
                    .flatten()
            }
        }
    }

    /// The same for a path from the module `start` on.
    fn descend(&self, start: &[String], path: &[String], depth: u32) -> Option<&str> {
        let module = self.modules.get(start)?;
        let own = || (!module.contents_only).then_some(module.file.as_str());
        let Some((name, rest)) = path.split_first() else { return own() };
        if depth == 0 {
            return own();
        }
        if matches!(name.as_str(), "super" | "self") || module.children.contains(name) {
            return match name.as_str() {
                "super" => self.descend(&start[..start.len().saturating_sub(1)], rest, depth - 1),
                "self" => self.descend(start, rest, depth - 1),
                _ => self.descend(&[start, std::slice::from_ref(name)].concat(), rest, depth - 1),
            };
        }
        if module.items.contains(name) {
            return Some(&module.file);
        }
        if let Some(to) = module.names.get(name).filter(|to| to.len() > 1) {
            return self.target(start, &[to, rest].concat(), depth - 1);
        }
        let through = |glob: &Vec<String>| self.target(start, &[glob, path].concat(), depth - 1);
        module.globs.iter().find_map(through).or_else(own)
    }

    /// Who imports whom, file by file.
    fn imports(&self) -> BTreeMap<String, BTreeSet<String>> {
        const DEEPEST: u32 = 16;
        let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (path, module) in &self.modules {
            let own = all.entry(module.file.clone()).or_default();
            let written = module.paths.iter().chain(module.names.values()).chain(&module.globs);
            let to = written.filter(|_| !module.contents_only).filter_map(|p| self.target(path, p, DEEPEST));
            own.extend(to.filter(|to| *to != module.file).map(String::from));
        }
        all
    }
}

/// What a `use` brings in, below `prefix`.
fn use_tree(tree: &[Token], prefix: &[String], module: &mut Module) {
    let mut path = prefix.to_vec();
    let mut at = 0;
    while at < tree.len() {
        match tree[at].as_str() {
            "::" => {}
            "{" => {
                let end = closing(tree, at);
                let (mut from, mut n) = (at + 1, at + 1);
                while n <= end {
                    if n == end || tree[n] == "," {
                        use_tree(&tree[from..n], &path, module);
                        from = n + 1;
                    } else if tree[n] == "{" {
                        n = closing(tree, n);
                    }
                    n += 1;
                }
                return;
            }
            "*" => return module.globs.push(path),
            "as" => {
                module.names.insert(tree.get(at + 1).cloned().unwrap_or_default(), path);
                return;
            }
            "self" if !path.is_empty() => {}
            word => path.push(word.to_string()),
        }
        at += 1;
    }
    if let Some(name) = path.last().cloned().filter(|_| path.len() > prefix.len() || tree.len() == 1) {
        module.names.insert(name, path);
    }
}

/// Files that import each other in a circle.
fn circles(imports: &BTreeMap<String, BTreeSet<String>>) -> Vec<BTreeSet<String>> {
    let reached = |from: &String| {
        let (mut seen, mut work) = (BTreeSet::new(), vec![from]);
        while let Some(next) = work.pop() {
            for to in imports.get(next).into_iter().flatten() {
                if seen.insert(to.clone()) {
                    work.push(to);
                }
            }
        }
        seen
    };
    let reach: BTreeMap<&String, BTreeSet<String>> = imports.keys().map(|file| (file, reached(file))).collect();
    let circle = |file: &String| -> BTreeSet<String> {
        reach[file].iter().filter(|to| reach.get(to).is_some_and(|back| back.contains(file))).cloned().collect()
    };
    let all: BTreeSet<BTreeSet<String>> = imports.keys().map(circle).filter(|circle| circle.len() > 1).collect();
    all.into_iter().collect()
}

/// The floors, lowest first: name, files and directories.
fn floors(text: &str) -> Vec<(String, Vec<String>)> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()).filter(|l| !l.is_empty());
    let floor = |line: &str| {
        let mut words = line.split_whitespace().map(|word| word.trim_end_matches([':', '/']).to_string());
        let name = words.next().unwrap_or_default();
        (name, words.map(|word| word.strip_prefix("src/").unwrap_or(&word).to_string()).collect())
    };
    lines.map(floor).collect()
}

/// What is wrong with the imports of a crate: a line each.
fn wrong(files: &BTreeMap<String, String>, name: &'static str, table: &str) -> Vec<String> {
    let floors = floors(table);
    let imports = Crate::read(files, name).imports();
    let on = |file: &str, place: &String| {
        file == place || file.strip_prefix(place.as_str()).is_some_and(|rest| rest.starts_with('/'))
    };
    // The longest place that holds a file is the one that counts.
    let floor = |file: &str| {
        let places = floors.iter().enumerate().flat_map(|(n, (_, places))| places.iter().map(move |place| (n, place)));
        places.filter(|(_, place)| on(file, place)).max_by_key(|(_, place)| place.len()).map(|(n, _)| n)
    };
    let mut all = Vec::new();
    for place in floors.iter().flat_map(|(_, places)| places) {
        if !files.keys().any(|file| on(file, place)) {
            all.push(format!("FLOORS names {place}, which does not exist"));
        }
    }
    for (file, to) in &imports {
        let Some(own) = floor(file) else {
            all.push(format!("{file} is on no floor"));
            continue;
        };
        for up in to.iter().filter(|to| floor(to).is_some_and(|floor| floor > own)) {
            let other = floor(up).unwrap_or(0);
            all.push(format!("{file} ({}) imports {up}, which is higher ({})", floors[own].0, floors[other].0));
        }
    }
    let circles = circles(&imports).into_iter();
    all.extend(circles.map(|circle| {
        let within = |file: &String| {
            let to: Vec<&str> = imports[file].intersection(&circle).map(String::as_str).collect();
            format!("{file} -> {}", to.join(" "))
        };
        format!("a circle: {}", circle.iter().map(within).collect::<Vec<_>>().join("; "))
    }));
    all
}

/// The files of a crate, by path from the directory of its root.
fn sources(dir: &Path, below: &str, all: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(dir).expect("a directory").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() {
            sources(&entry.path(), &format!("{below}{name}/"), all);
        } else if name.ends_with(".rs") {
            all.insert(format!("{below}{name}"), fs::read_to_string(entry.path()).expect("UTF-8"));
        }
    }
}

/// Checks the crate whose root lies in `dir`, by the table beside it or above it.
fn check(dir: &str, table: &str, name: &'static str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Ok(table) = fs::read_to_string(root.join(table)) else {
        // Until the shim and the model have theirs.
        assert_ne!(name, "vsrun", "no {table}");
        return;
    };
    let mut files = BTreeMap::new();
    sources(&root.join(dir), "", &mut files);
    let found = wrong(&files, name, &table);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn vsrun() {
    check("src", "src/FLOORS", "vsrun");
}

#[test]
fn shim() {
    check("shim/src", "shim/FLOORS", "vsrun_shim");
}

#[test]
fn model() {
    check("src/model/src", "src/model/FLOORS", "vsrun_model");
}

/// Small crates for the tests below.
fn crate_of(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect()
}

const TABLE: &str = "low  a.rs\nmiddle  b\nhigh  c.rs lib.rs\n";

/// What is wrong with a crate in which `a` is low, `b` in the middle and `c` high.
fn wrong_with(a: &str, b: &str, c: &str) -> Vec<String> {
    let files = [
        ("lib.rs", "//! x\npub mod a; mod b; mod c;\npub use b::Thing;\npub use c::Other as Alias;"),
        ("a.rs", a),
        ("b/mod.rs", "mod one; mod two;\npub use one::*;\npub use two::two;"),
        ("b/one.rs", b),
        ("b/two.rs", "use super::one::Thing;\npub fn two() -> Thing { Thing }"),
        ("c.rs", c),
    ];
    wrong(&crate_of(&files), "small", TABLE)
}

const A: &str = "pub struct Low;";
const B: &str = "use crate::a;\npub struct Thing;\nfn f(_: a::Low) {}";
const C: &str = "use crate::b::{self, Thing};\npub struct Other;\nfn g() -> Thing { b::two() }";

#[test]
fn a_crate_in_order() {
    assert_eq!(wrong_with(A, B, C), Vec::<String>::new());
}

#[test]
fn imports_that_go_up_are_found() {
    let up = |a: &str| wrong_with(a, "pub struct Thing;", "pub struct Other;");
    let expected = ["a.rs (low) imports c.rs, which is higher (high)"];
    for a in [
        "use crate::c::Other;",
        "use super::c::{Other, f as g};",
        "fn f(_: crate::c::Other) {}",
        "use crate::Alias;",
        "use crate as all;\nfn f(_: all::Alias) {}",
        "use crate::c;\nfn f() { c::g() }",
        "mod inner { use super::super::c::Other; }",
        "impl crate::c::Other {}",
        "use crate::c::*;",
    ] {
        assert_eq!(up(a), expected, "{a}");
    }
    let through = ["a.rs (low) imports b/one.rs, which is higher (middle)"];
    for a in ["use crate::Thing;", "use crate::b::Thing;", "use crate::b;\nstruct S(b::Thing);"] {
        assert_eq!(up(a), through, "{a}");
    }
}

#[test]
fn circles_on_one_floor_are_found() {
    let two = "use super::two::two;\npub struct Thing;";
    let expected = ["a circle: b/one.rs -> b/two.rs; b/two.rs -> b/one.rs"];
    assert_eq!(wrong_with(A, two, C), expected);
    // By way of a table of contents that says what is public.
    assert_eq!(wrong_with(A, "use super::two;\npub struct Thing;", C), expected);
    assert_eq!(wrong_with(A, "pub struct Thing;\nfn f() { crate::b::two(); }", C), expected);
    let files = [
        ("lib.rs", "mod a;"),
        ("a/mod.rs", "mod x;\npub use x::f;\npub struct S;"),
        ("a/x.rs", "use super::S;\npub fn f() {}"),
    ];
    let found = wrong(&crate_of(&files), "small", "all  lib.rs a");
    assert_eq!(found, ["a circle: a/mod.rs -> a/x.rs; a/x.rs -> a/mod.rs"]);
}

#[test]
fn what_is_no_import() {
    let a = r##"
        //! See [`crate::c::Other`].
        /* crate::c::Other */
        pub const TEXT: &str = "crate::c::Other \" crate::c::Other";
        pub const RAW: &str = r#"" crate::c::Other"#;
        pub const QUOTE: char = '"'; // crate::c
        pub fn life<'a>(x: &'a str) -> &'a str { x }
        #[cfg(test)]
        use crate::c::Other;
        #[cfg(test)]
        #[path = "x.rs"]
        mod tests { use crate::c::Other; }
        pub(crate) struct Low;
    "##;
    assert_eq!(wrong_with(a, B, C), Vec::<String>::new());
}

#[test]
fn files_and_floors_belong_together() {
    let files = [("lib.rs", "mod a; mod b;"), ("a.rs", ""), ("b.rs", "")];
    let found = wrong(&crate_of(&files), "small", "low a.rs gone.rs\nhigh lib.rs");
    assert_eq!(found, ["FLOORS names gone.rs, which does not exist", "b.rs is on no floor"]);
}

#[test]
fn the_command_uses_the_library() {
    let files =
        [("lib.rs", "pub mod a;"), ("a.rs", "pub struct Low;"), ("main.rs", "use small::a::Low;\nfn main() {}")];
    assert_eq!(wrong(&crate_of(&files), "small", "low a.rs\nhigh lib.rs\nmain main.rs"), Vec::<String>::new());
    let found = wrong(&crate_of(&files), "small", "main main.rs\nlow a.rs\nhigh lib.rs");
    assert_eq!(found, ["main.rs (main) imports a.rs, which is higher (low)"]);
}
