//! A pack is made.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{symlink, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::gather::{Found, Gathered};
use super::manifest::{Content, Entry, Manifest, PackedOption, Start, What, MANIFEST, ROOT, SCRIPT, VSRUN};
use super::tree::{follow, Step};
use crate::base::hash::{fnv1a, fold};
use crate::base::surroundings::{self, Surroundings};
use crate::base::text::escape;
use crate::binary::libraries;
use crate::config::MakePack;
use crate::explore::{names_used, Failure};
use crate::report::terminal::{shell_path, shell_word};

/// Variables that are taken along unasked: what programs, loaders and libraries look at, and no secrets.
const VARIABLES: [&str; 7] = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ"];
/// The same by how they begin.
const BEGINNINGS: [&str; 5] = ["LC_", "LD_", "GLIBC_", "MALLOC_", "PYTHON"];
/// And by how they end: options of sanitizers.
const ENDING: &str = "SAN_OPTIONS";
/// Where annotations lie in a pack.
const ANNOTATIONS: &str = ".vsrun/annotations";

/// What was packed.
pub struct Made {
    /// Where.
    pub dir: PathBuf,
    /// Regular files.
    pub files: usize,
    /// Bytes of them.
    pub bytes: u64,
    /// Executions that have shown which.
    pub executions: u64,
    /// Sentences about what was left out.
    pub notes: Vec<String>,
}

impl Made {
    /// What is said of it, and what is done with it.
    pub fn text(&self) -> String {
        let run = shell_path(&self.dir.join(SCRIPT));
        let notes: String = self.notes.iter().map(|note| format!("  note: {note}\n")).collect();
        format!(
            "packed: {} files, {:.1} MB, with those that {} execution{} used\n{notes}  explore it, here or elsewhere:  {run}\n  replay a scenario of it:        {run} replay FILE\n",
            self.files,
            self.bytes as f64 / 1e6,
            self.executions,
            if self.executions == 1 { "" } else { "s" },
        )
    }
}

/// Packs a program.
///
/// # Errors
/// It cannot be run or read, or the pack cannot be written.
pub fn make(args: &MakePack) -> Result<Made, Failure> {
    let dir = std::path::absolute(&args.dir)?;
    let failed =
        |e: io::Error| Failure::environment(format!("environment: the pack {} cannot be written: {e}", escape(&dir)));
    is_free(&dir)?;
    let cwd = std::env::current_dir().map_err(|e| Failure::environment(format!("the current directory: {e}")))?;
    let env = environment(&args.env)?;
    surroundings::set(Surroundings { cwd: cwd.clone(), env: env.clone(), pack: None });
    let used = names_used(&args.config, args.look)?;
    let mut notes = Vec::new();
    let mut found = Gathered::without(&dir);
    found.add(&cwd);
    let words = args.config.with.iter().map(|words| &words.0).chain([&args.config.program]);
    words.filter_map(|words| words.first()).for_each(|program| add_program(&mut found, program, &cwd));
    let programs = used.with.iter().map(|client| &client.exe).chain([&used.program.exe, &used.program.script]);
    for path in programs.map(Path::new).filter(|path| !path.as_os_str().is_empty()) {
        found.add(path).ok_or_else(|| Failure::environment(format!("environment: {} is gone", escape(path))))?;
    }
    // Of a name that leads nowhere the directories on the way are taken: what is made there finds these.
    used.names.iter().for_each(|name| drop(found.add(name)));
    for path in &args.add {
        let whole = cwd.join(path);
        found.add_all(&whole).map_err(|e| Failure::environment(format!("environment: --add {}: {e}", escape(path))))?;
    }
    let own = std::env::current_exe().map_err(|e| Failure::environment(format!("vsrun's own file: {e}")))?;
    let needs = libraries::needed(&own, &cwd);
    needs
        .iter()
        .chain(&[PathBuf::from("/etc/ld.so.cache"), PathBuf::from("/tmp")])
        .for_each(|path| drop(found.add(path)));
    found.complete(&cwd);
    found.put(VSRUN, &own);
    let options = options_of(args, &cwd, &mut found);

    let start = start(&found, &needs).ok_or_else(|| Failure::own("vsrun bug: its own loader is not in the pack"))?;
    let script = script(&start);
    fs::create_dir_all(dir.join(ROOT)).map_err(failed)?;
    // What is not whole does not stay.
    let entries =
        write_all(&dir.join(ROOT), &found, &mut notes).inspect_err(|_| drop(fs::remove_dir_all(dir.join(ROOT))))?;
    let script_content = write(&dir.join(SCRIPT), &mut script.as_bytes(), 0o755, (0, 0)).map_err(failed)?;
    let files = entries.iter().filter_map(|entry| match &entry.what {
        What::File(content) => Some(content.size),
        _ => None,
    });
    let (count, bytes) = files.fold((0, 0), |(n, sum), size| (n + 1, sum + size));
    let manifest = Manifest {
        vsrun_pack: Manifest::version(),
        vsrun: env!("CARGO_PKG_VERSION").to_string(),
        program: args.packed.program.clone(),
        options,
        cwd: cwd.into_os_string(),
        env,
        script: script_content,
        start: Some(start),
        files: entries,
    };
    // It comes last: without it a directory is no pack.
    let text = manifest.text();
    Manifest::read(text.as_bytes()).map_err(|why| Failure::own(format!("vsrun bug: {why}")))?;
    write(&dir.join(MANIFEST), &mut text.as_bytes(), 0o644, (0, 0)).map_err(failed)?;
    Ok(Made { dir: args.dir.clone(), files: count, bytes, executions: used.executions, notes })
}

/// An error if there is something at that place.
pub(super) fn is_free(dir: &Path) -> Result<(), Failure> {
    let refused = |why: String| {
        Err(Failure::environment(format!("environment: {} {why}: another -o DIR is needed", escape(dir))))
    };
    match fs::read_dir(dir).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => refused("is not empty".into()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => refused(format!("cannot be used: {e}")),
    }
}

/// The environment of the program: what is taken along of vsrun's own, and what `asked` names.
fn environment(asked: &[OsString]) -> Result<Vec<OsString>, Failure> {
    let split = |entry: &OsStr| {
        entry
            .as_bytes()
            .iter()
            .position(|byte| *byte == b'=')
            .map(|at| OsStr::from_bytes(&entry.as_bytes()[..at]).to_os_string())
    };
    let named = |name: &OsStr| asked.iter().any(|asked| asked == name);
    let taken = |name: &OsStr| {
        let text = name.to_str().unwrap_or_default();
        VARIABLES.contains(&text) || BEGINNINGS.iter().any(|start| text.starts_with(start)) || text.ends_with(ENDING)
    };
    let given: Vec<OsString> = asked.iter().filter_map(|entry| split(entry)).collect();
    let kept = std::env::vars_os().filter(|(name, _)| (taken(name) || named(name)) && !given.contains(name));
    let mut all: Vec<OsString> = kept.map(|(name, value)| [name, value].join(OsStr::new("="))).collect();
    for entry in asked {
        match split(entry) {
            Some(name) if name.is_empty() => return Err(Failure::environment("--env: a variable without a name")),
            Some(_) => all.push(entry.clone()),
            None if std::env::var_os(entry).is_none() => {
                return Err(Failure::environment(format!("--env {}: there is no such variable", escape(entry))));
            }
            None => {}
        }
    }
    Ok(all)
}

/// A program by the names under which it is found.
fn add_program(found: &mut Gathered, program: &OsStr, cwd: &Path) {
    if program.as_bytes().contains(&b'/') {
        found.add(&cwd.join(program));
        return;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    for dir in std::env::split_paths(&path) {
        if found.add(&cwd.join(dir).join(program)).is_some_and(|file| file.is_file()) {
            return;
        }
    }
}

/// The options of the search as they are in the pack, with the files that they name.
fn options_of(args: &MakePack, cwd: &Path, found: &mut Gathered) -> Vec<PackedOption> {
    let option = |(name, word): &(String, OsString)| PackedOption { name: name.clone(), word: word.clone() };
    let mut options: Vec<PackedOption> = args.packed.options.iter().map(option).collect();
    if let Some(path) = &args.config.annotations {
        found.put(ANNOTATIONS, &cwd.join(path));
        for option in options.iter_mut().filter(|option| option.name == "annotations") {
            option.word = format!("--annotations=/{ANNOTATIONS}").into();
        }
    }
    options
}

/// Writes them below `root`.
fn write_all(root: &Path, found: &Gathered, notes: &mut Vec<String>) -> Result<Vec<Entry>, Failure> {
    let mut entries = Vec::new();
    for (name, file) in &found.files {
        let to = root.join(name);
        let cannot =
            |e: io::Error| Failure::environment(format!("environment: {} cannot be written: {e}", escape(&to)));
        let what = match file {
            Found::Directory { mode } => {
                fs::create_dir(&to).map_err(cannot)?;
                What::Directory { mode: *mode }
            }
            Found::Link(link) => {
                symlink(link, &to).map_err(cannot)?;
                What::Link(link.clone().into_os_string())
            }
            Found::File(from) => match File::open(from).and_then(|file| Ok((file.metadata()?, file))) {
                Ok((meta, mut file)) => {
                    let modified = since_1970(meta.modified().unwrap_or(UNIX_EPOCH));
                    let mode = meta.permissions().mode() & 0o777;
                    What::File(write(&to, &mut file, mode, modified).map_err(cannot)?)
                }
                Err(e) => {
                    notes.push(format!("{} is left out: {e}", escape(from)));
                    continue;
                }
            },
        };
        entries.push(Entry { path: name.clone().into_os_string(), what });
    }
    Ok(entries)
}

fn since_1970(time: SystemTime) -> (u64, u32) {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    (since.as_secs(), since.subsec_nanos())
}

/// Writes a new file, with the hash of what is written.
pub(super) fn write(to: &Path, from: &mut dyn Read, mode: u32, modified: (u64, u32)) -> io::Result<Content> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    let mut buffer = vec![0; 1 << 16];
    let (mut size, mut fnv) = (0, fnv1a([]));
    loop {
        let n = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        file.write_all(&buffer[..n])?;
        size += n as u64;
        fnv = fold(fnv, buffer[..n].iter().copied());
    }
    file.set_modified(UNIX_EPOCH + Duration::new(modified.0, modified.1))?;
    file.set_permissions(Permissions::from_mode(mode))?;
    Ok(Content { mode, size, fnv, modified })
}

/// What vsrun is started with.
fn start(found: &Gathered, needs: &[PathBuf]) -> Option<Start> {
    let real = |path: &PathBuf| follow(&found.files, step_of, path.strip_prefix("/").ok()?).ok();
    let (loader, libraries) = needs.split_first()?;
    let loader = real(loader)?.into_os_string();
    let mut dirs: Vec<OsString> = Vec::new();
    for library in libraries {
        let dir = real(library)?.parent()?.as_os_str().to_os_string();
        if !dirs.contains(&dir) {
            dirs.push(dir);
        }
    }
    Some(Start { loader, libraries: dirs })
}

/// What starts vsrun with the loader and libraries that are in the pack.
fn script(start: &Start) -> String {
    let quoted = |path: &OsStr| format!("\"$here\"/{ROOT}/{}", shell_word(path.as_bytes()));
    let dirs: Vec<String> = start.libraries.iter().map(|dir| quoted(dir)).collect();
    format!(
        "#!/bin/sh\n\
         # Runs the vsrun of this pack in it: run [OPTIONS | COMMAND ...]\n\
         here=$(dirname -- \"$(readlink -f -- \"$0\")\") || exit 2\n\
         exec {} --library-path {} {} pack run \"$here\" \"$@\"\n",
        quoted(&start.loader),
        dirs.join(":"),
        quoted(VSRUN.as_ref()),
    )
}

fn step_of(file: &Found) -> Step<'_> {
    match file {
        Found::Directory { .. } => Step::Directory,
        Found::Link(to) => Step::Link(to),
        Found::File(_) => Step::File,
    }
}
