//! Finds the program to run and makes sure, before anything is started, that vsrun can run it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::statvfs::{statvfs, FsFlags};
use nix::unistd::{access, AccessFlags};

use super::elf::{machine_name, type_name, ElfError, ElfFile};
use super::libraries::{self, LoaderEnv};
use super::refusal::Refusal;

/// Scripts may be interpreted by scripts, as deep as this.
const MAX_INTERPRETERS: usize = 4;
/// What `execvp` searches when there is no PATH.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// What to execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The ELF program to execute, absolute, without symbolic links.
    pub exe: PathBuf,
    /// All its arguments, `argv[0]` included, as the kernel would pass them.
    pub argv: Vec<OsString>,
    /// The interpreters that `#!` lines name, the script's own first; empty if the program is no script.
    pub interpreter_chain: Vec<PathBuf>,
    /// The file that PROGRAM names, absolute, without symbolic links: `exe` itself, or the script.
    pub program: PathBuf,
}

/// Finds `program` as a shell in directory `cwd` would, with `path_env` as its PATH, and checks everything that can
/// be checked without running it. `args` do not include `argv[0]`. The libraries are looked for with the
/// `LD_LIBRARY_PATH` of this process.
///
/// # Errors
/// The first reason found why it cannot run under vsrun.
pub fn resolve(program: &OsStr, args: &[OsString], cwd: &Path, path_env: Option<&OsStr>) -> Result<Launch, Refusal> {
    let found = find(program, cwd, path_env)?;
    let mut argv: Vec<OsString> =
        std::iter::once(program).chain(args.iter().map(OsString::as_os_str)).map(Into::into).collect();
    let mut chain: Vec<PathBuf> = Vec::new();
    let mut named = found.clone();
    let in_script = |chain: &[PathBuf], cause: Refusal| match chain {
        [] => cause,
        _ => Refusal::Script { script: found.clone(), cause: Box::new(cause) },
    };
    while let Some(line) = check_file(&named, cwd).map_err(|e| in_script(&chain, e))? {
        if chain.len() == MAX_INTERPRETERS {
            return Err(Refusal::TooManyInterpreters(found));
        }
        argv[0] = named.into_os_string();
        let front = std::iter::once(line.interpreter.clone().into_os_string()).chain(line.argument);
        argv.splice(0..0, front);
        chain.push(line.interpreter.clone());
        named = line.interpreter;
    }
    check_program(&named, cwd).map_err(|e| in_script(&chain, e))?;
    let absolute = |path: &Path| cwd.join(path).canonicalize().map_err(|e| io_refusal(path, &e));
    Ok(Launch { exe: absolute(&named)?, program: absolute(&found)?, argv, interpreter_chain: chain })
}

/// The path of the program, as a shell would put it together.
fn find(program: &OsStr, cwd: &Path, path_env: Option<&OsStr>) -> Result<PathBuf, Refusal> {
    if program.as_bytes().contains(&b'/') {
        return Ok(program.into());
    }
    let mut not_executable = None;
    let path = path_env.unwrap_or(OsStr::new(DEFAULT_PATH));
    for directory in path.as_bytes().split(|b| *b == b':').filter(|_| !program.is_empty()) {
        let directory = if directory.is_empty() { b"." } else { directory };
        let candidate = Path::new(OsStr::from_bytes(directory)).join(program);
        let file = cwd.join(&candidate);
        if file.metadata().is_ok_and(|m| m.is_file()) {
            if access(&file, AccessFlags::X_OK).is_ok() {
                return Ok(candidate);
            }
            not_executable.get_or_insert(candidate);
        }
    }
    let here = !program.is_empty() && cwd.join(program).exists();
    not_executable.ok_or_else(|| Refusal::NotInPath { program: program.to_os_string(), here })
}

/// Checks what holds for scripts and programs alike, and reads the `#!` line if there is one.
fn check_file(named: &Path, cwd: &Path) -> Result<Option<ScriptLine>, Refusal> {
    let path = cwd.join(named);
    let metadata = fs::metadata(&path).map_err(|e| metadata_refusal(named, &path, &e))?;
    check_kind(named, &metadata)?;
    if access(&path, AccessFlags::X_OK).is_err() {
        return Err(why_not_executable(named, &path, &metadata));
    }
    let start = read_start(&path).map_err(|e| match e.kind() {
        io::ErrorKind::PermissionDenied => Refusal::NotReadable(named.into()),
        _ => io_refusal(named, &e),
    })?;
    script_line(&start).map_err(|what| Refusal::BadScript(named.into(), what))
}

fn metadata_refusal(named: &Path, path: &Path, error: &io::Error) -> Refusal {
    match error.kind() {
        io::ErrorKind::NotFound if path.is_symlink() => Refusal::DanglingLink(named.into()),
        io::ErrorKind::NotFound => Refusal::NotFound(named.into()),
        _ => io_refusal(named, error),
    }
}

fn io_refusal(named: &Path, error: &io::Error) -> Refusal {
    Refusal::Io(named.into(), error.to_string())
}

fn check_kind(named: &Path, metadata: &Metadata) -> Result<(), Refusal> {
    if metadata.is_dir() {
        return Err(Refusal::Directory(named.into()));
    }
    if !metadata.is_file() {
        return Err(Refusal::NotRegular(named.into()));
    }
    if metadata.len() == 0 {
        return Err(Refusal::Empty(named.into()));
    }
    Ok(())
}

fn why_not_executable(named: &Path, path: &Path, metadata: &Metadata) -> Refusal {
    let noexec = statvfs(path).is_ok_and(|s| s.flags().contains(FsFlags::ST_NOEXEC));
    if noexec && metadata.permissions().mode() & 0o111 != 0 {
        return Refusal::NoExecMount(named.into());
    }
    Refusal::NotExecutable(named.into())
}

fn read_start(path: &Path) -> io::Result<Vec<u8>> {
    let mut start = Vec::with_capacity(LINE_MAX);
    File::open(path)?.take(LINE_MAX as u64).read_to_end(&mut start)?;
    Ok(start)
}

/// Checks the ELF program that is executed in the end.
fn check_program(named: &Path, cwd: &Path) -> Result<(), Refusal> {
    let (elf, loader) = program_and_loader(named, cwd)?;
    check_privileges(named, &cwd.join(named))?;
    check_what_it_needs(named, cwd, &elf, loader)
}

/// Checks the file that `path` names as [`resolve`] does, but for what rights it gives to its program.
///
/// # Errors
/// The first reason found why it cannot run under vsrun.
pub(super) fn readable(path: &Path, cwd: &Path) -> Result<(), Refusal> {
    if check_file(path, cwd)?.is_some() {
        return Ok(());
    }
    let (elf, loader) = program_and_loader(path, cwd)?;
    check_what_it_needs(path, cwd, &elf, loader)
}

fn program_and_loader(named: &Path, cwd: &Path) -> Result<(ElfFile, Vec<u8>), Refusal> {
    let elf = ElfFile::open(&cwd.join(named)).map_err(|e| elf_refusal(named, e))?;
    let loader = elf.interpreter().map_err(|e| elf_refusal(named, e))?;
    match loader {
        Some(loader) => Ok((elf, loader)),
        None => Err(without_loader(named, &elf)),
    }
}

/// Checks the loader and the libraries.
fn check_what_it_needs(named: &Path, cwd: &Path, elf: &ElfFile, loader: Vec<u8>) -> Result<(), Refusal> {
    let path = cwd.join(named);
    let loader = PathBuf::from(OsString::from_vec(loader));
    check_loader(named, &loader, cwd)?;
    let exe = path.canonicalize().map_err(|e| io_refusal(named, &e))?;
    match libraries::missing(&exe, elf, &cwd.join(&loader), cwd, &LoaderEnv::inherited()) {
        Some(missing) => Err(Refusal::LibraryMissing {
            program: named.into(),
            library: missing.library,
            needed_by: if missing.needed_by == exe { named.into() } else { missing.needed_by },
        }),
        None => Ok(()),
    }
}

fn elf_refusal(named: &Path, error: ElfError) -> Refusal {
    let path = named.to_path_buf();
    match error {
        ElfError::NotElf => Refusal::NotElf(path),
        ElfError::Bits32 => Refusal::Bits32(path),
        ElfError::BigEndian => Refusal::BigEndian(path),
        ElfError::Machine(machine) => Refusal::OtherMachine(path, machine_name(machine)),
        ElfError::Type(kind) => Refusal::NotAProgram(path, type_name(kind)),
        ElfError::Truncated(_) | ElfError::Corrupt(_) => Refusal::Damaged(path, error.to_string()),
        ElfError::Io(e) if e.kind() == io::ErrorKind::PermissionDenied => Refusal::NotReadable(path),
        ElfError::Io(e) => io_refusal(named, &e),
    }
}

/// Without a loader it is statically linked (which may be position independent too) or a library.
fn without_loader(named: &Path, elf: &ElfFile) -> Refusal {
    let dynamic = match elf.dynamic() {
        Ok(dynamic) => dynamic.unwrap_or_default(),
        Err(e) => return elf_refusal(named, e),
    };
    let library =
        elf.is_dyn() && !dynamic.pie && (dynamic.soname.is_some() || !dynamic.needed.is_empty() || !elf.has_entry());
    if library {
        Refusal::SharedLibrary(named.into())
    } else {
        Refusal::Static(named.into())
    }
}

/// Programs that run with more rights than their caller ignore `LD_PRELOAD`.
fn check_privileges(named: &Path, path: &Path) -> Result<(), Refusal> {
    let mode = path.metadata().map_err(|e| io_refusal(named, &e))?.permissions().mode();
    // Set-group-id without the group's x bit once meant mandatory locking and gives no rights.
    if mode & 0o4000 != 0 || mode & 0o2010 == 0o2010 {
        return Err(Refusal::SetId(named.into()));
    }
    if has_capabilities(path) {
        return Err(Refusal::Capabilities(named.into()));
    }
    Ok(())
}

/// Asks `getcap`, since reading an extended attribute needs a system call that neither std nor nix offers. Where
/// there is no `getcap`, the answer is no: a program that still starts with capabilities has AT_SECURE set in
/// `/proc/PID/auxv`, and is refused then (see [`is_secure_exec`]).
fn has_capabilities(path: &Path) -> bool {
    let tool =
        ["/usr/sbin/getcap", "/sbin/getcap", "/usr/bin/getcap", "/bin/getcap"].iter().find(|t| Path::new(t).exists());
    let output = tool.and_then(|t| Command::new(t).arg(path).stdin(Stdio::null()).stderr(Stdio::null()).output().ok());
    output.is_some_and(|o| !o.stdout.is_empty())
}

/// Whether the kernel started a program with more rights than its caller's, so that the loader ignored vsrun's
/// library. `auxv` is the content of `/proc/PID/auxv`.
pub fn is_secure_exec(auxv: &[u8]) -> bool {
    const AT_SECURE: u64 = 23;
    let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
    auxv.chunks_exact(16).any(|entry| word(&entry[..8]) == AT_SECURE && word(&entry[8..]) != 0)
}

/// The loader must exist, be for this machine, and be glibc's.
fn check_loader(named: &Path, loader: &Path, cwd: &Path) -> Result<(), Refusal> {
    let path = cwd.join(loader);
    let foreign = |p: &Path| p.file_name().is_some_and(|n| is_foreign_loader(&n.to_string_lossy()));
    if foreign(loader) || path.canonicalize().is_ok_and(|p| foreign(&p)) {
        return Err(Refusal::NotGlibc(named.into(), loader.into()));
    }
    match ElfFile::open(&path) {
        Ok(_) => Ok(()),
        Err(ElfError::Io(e)) if e.kind() == io::ErrorKind::NotFound => {
            Err(Refusal::LoaderMissing(named.into(), loader.into()))
        }
        Err(e) => Err(Refusal::LoaderUnusable(named.into(), loader.into(), e.to_string())),
    }
}

/// Names of the loaders of other C libraries: musl, Bionic, uClibc.
fn is_foreign_loader(name: &str) -> bool {
    name.contains("musl") || name.starts_with("linker") || name.to_lowercase().contains("uclibc")
}

/// As much of the file as the kernel looks at.
const LINE_MAX: usize = 256;

/// `#!interpreter argument`.
#[derive(Debug, PartialEq, Eq)]
struct ScriptLine {
    interpreter: PathBuf,
    argument: Option<OsString>,
}

/// The first line of a script, read as the kernel reads it (`fs/binfmt_script.c`); `start`: up to `LINE_MAX` bytes of the file.
/// Ok(None) if it is no script.
fn script_line(start: &[u8]) -> Result<Option<ScriptLine>, &'static str> {
    let Some(rest) = start.strip_prefix(b"#!") else { return Ok(None) };
    let end = rest.iter().position(|b| matches!(b, b'\n' | 0));
    let line = trim(&rest[..end.unwrap_or(rest.len())]);
    let blank = line.iter().position(|b| is_blank(*b));
    if line.is_empty() {
        return Err("a script whose #! names no interpreter; write its path after #!");
    }
    if end.is_none() && blank.is_none() && start.len() >= LINE_MAX {
        return Err("a script whose #! line is too long; the kernel reads 256 bytes");
    }
    let (interpreter, argument) = line.split_at(blank.unwrap_or(line.len()));
    let os = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let argument = trim(argument);
    Ok(Some(ScriptLine { interpreter: os(interpreter).into(), argument: (!argument.is_empty()).then(|| os(argument)) }))
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn trim(bytes: &[u8]) -> &[u8] {
    let first = bytes.iter().position(|b| !is_blank(*b)).unwrap_or(bytes.len());
    let end = bytes.iter().rposition(|b| !is_blank(*b)).map_or(first, |last| last + 1);
    &bytes[first..end]
}

#[cfg(test)]
#[path = "preflight_tests.rs"]
mod tests;
