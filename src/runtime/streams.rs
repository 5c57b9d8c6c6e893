//! The standard streams of the program: where its input comes from and where its output goes, the same at the beginning of each execution, and none
//! of them a description that somebody outside has too.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::sync::Arc;

use nix::fcntl::{fallocate, fcntl, FallocateFlags, FcntlArg, OFlag};
use nix::libc;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};

use super::checkpoint::memory_file;
use crate::base::print::{complain, unless_closed};

/// Where the program's standard input comes from in each execution.
pub enum Input {
    /// A file that is read from the same place on in each execution.
    File(Fed),
    /// Nothing.
    Null(File),
    /// The device that is vsrun's own.
    Own(Lent),
}

/// A file that the program reads, under a description of its own.
pub struct Fed {
    file: File,
    /// Where it begins to read.
    place: u64,
    /// For what it is open, and its file status flags.
    flags: OFlag,
    /// What it may write to is a copy; this is where further ones come from.
    source: Option<Arc<File>>,
}

/// A device that vsrun was started with, which others may have open.
pub struct Lent {
    /// A description of it that nobody else has.
    file: Option<File>,
    /// Where there is no such: the flags that the description has to get back.
    flags: OFlag,
}

impl Drop for Lent {
    fn drop(&mut self) {
        if self.file.is_none() {
            let _ = fcntl(0, FcntlArg::F_SETFL(self.flags));
        }
    }
}

/// The device number of what makes a new terminal each time it is opened (/dev/ptmx).
const PTMX: u64 = libc::makedev(5, 2);

/// Another description of a terminal that is vsrun's own: the flags of this one (O_NONBLOCK) are not those of the shell. `None`: it is no terminal,
/// or cannot be opened.
pub fn own_terminal(stream: &(impl AsFd + IsTerminal)) -> Option<File> {
    let fd = stream.as_fd().as_raw_fd();
    let found = std::fs::metadata(format!("/proc/self/fd/{fd}")).ok()?;
    match stream.is_terminal() && found.rdev() != PTMX {
        true => reopen(fd, flags_of(fd).ok()? | OFlag::O_NOCTTY).ok(),
        false => None,
    }
}

/// For what a descriptor is open, and its file status flags.
fn flags_of(fd: RawFd) -> io::Result<OFlag> {
    Ok(OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL)?))
}

/// A description of its own of what a descriptor of this process is of.
fn reopen(fd: RawFd, flags: OFlag) -> io::Result<File> {
    let access = flags & OFlag::O_ACCMODE;
    let kept = OFlag::O_APPEND | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let mut options = OpenOptions::new();
    options.read(access != OFlag::O_WRONLY).write(access != OFlag::O_RDONLY);
    options.custom_flags((flags & kept).bits()).open(format!("/proc/self/fd/{fd}"))
}

/// The whole of a file, in memory.
fn copy_of(file: &File) -> io::Result<File> {
    let copy = File::from(memory_file(c"vsrun-stdin", 0)?);
    let mut buffer = vec![0; 1 << 16];
    let mut at = 0;
    loop {
        let n = file.read_at(&mut buffer, at)?;
        if n == 0 {
            return Ok(copy);
        }
        copy.write_all_at(&buffer[..n], at)?;
        at += n as u64;
    }
}

impl Fed {
    /// The program gets what `file` is of, from `place` on. What it may write to, and what cannot be opened once more, is copied.
    fn new(file: File, place: u64, flags: OFlag) -> io::Result<Fed> {
        if flags & OFlag::O_ACCMODE == OFlag::O_RDONLY {
            if let Ok(own) = reopen(file.as_raw_fd(), flags) {
                return Fed { file: own, place, flags, source: None }.at_its_place();
            }
        }
        // What can be written only is as good as empty.
        let source = copy_of(&file).or_else(|_| memory_file(c"vsrun-stdin", 0).map(File::from))?;
        Fed::copied(Arc::new(source), place, flags)
    }

    fn copied(source: Arc<File>, place: u64, flags: OFlag) -> io::Result<Fed> {
        let file = reopen(copy_of(&source)?.as_raw_fd(), flags)?;
        Fed { file, place, flags, source: Some(source) }.at_its_place()
    }

    fn another(&self) -> io::Result<Fed> {
        match &self.source {
            Some(source) => Fed::copied(Arc::clone(source), self.place, self.flags),
            None => {
                let file = reopen(self.file.as_raw_fd(), self.flags)?;
                Fed { file, place: self.place, flags: self.flags, source: None }.at_its_place()
            }
        }
    }

    fn at_its_place(mut self) -> io::Result<Fed> {
        self.file.seek(SeekFrom::Start(self.place))?;
        Ok(self)
    }
}

impl Input {
    /// vsrun's standard input, made fit for `once` or for many executions.
    pub fn prepare(once: bool) -> io::Result<Input> {
        let own = io::stdin();
        let mut stdin = File::from(own.as_fd().try_clone_to_owned()?);
        let kind = stdin.metadata()?.file_type();
        if kind.is_file() {
            let (place, flags) = (stdin.stream_position()?, flags_of(0)?);
            return Fed::new(stdin, place, flags).map(Input::File);
        }
        if kind.is_fifo() || kind.is_socket() {
            return spool(&stdin).map(Input::File);
        }
        if once && kind.is_char_device() {
            return Ok(Input::Own(Lent { file: own_terminal(&own), flags: flags_of(0)? }));
        }
        Input::null()
    }

    /// A file that is read from its beginning.
    pub fn of_file(file: File) -> io::Result<Input> {
        Fed::new(file, 0, OFlag::O_RDONLY).map(Input::File)
    }

    /// The same input for another worker, to be read independently of this one.
    pub fn another(&self) -> io::Result<Input> {
        match self {
            Input::File(fed) => fed.another().map(Input::File),
            Input::Null(_) => Input::null(),
            Input::Own(lent) => {
                Ok(Input::Own(Lent { file: lent.file.as_ref().map(File::try_clone).transpose()?, flags: lent.flags }))
            }
        }
    }

    /// Nothing to read.
    pub fn null() -> io::Result<Input> {
        Ok(Input::Null(File::open("/dev/null")?))
    }

    /// The descriptor to hand to the program.
    pub fn fd(&self) -> RawFd {
        match self {
            Input::File(Fed { file, .. }) | Input::Null(file) | Input::Own(Lent { file: Some(file), .. }) => {
                file.as_raw_fd()
            }
            Input::Own(Lent { file: None, .. }) => 0,
        }
    }

    /// The description that the program has.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn description(&self) -> io::Result<File> {
        match self {
            Input::File(Fed { file, .. }) | Input::Null(file) | Input::Own(Lent { file: Some(file), .. }) => {
                file.try_clone()
            }
            Input::Own(Lent { file: None, .. }) => io::stdin().as_fd().try_clone_to_owned().map(File::from),
        }
    }

    /// The word for scenarios.
    pub fn name(&self) -> &'static str {
        match self {
            Input::File(_) => "file",
            Input::Null(_) => "null",
            Input::Own(_) => "inherit",
        }
    }
}

/// Reads a pipe or socket to its end, so that every execution sees the same. What does not come within a second is waited for
/// with a word to the user.
fn spool(mut from: &File) -> io::Result<Fed> {
    let mut copy = File::from(memory_file(c"vsrun-stdin", 0)?);
    let mut buffer = vec![0; 1 << 16];
    let wait = |from: &File, limit: PollTimeout| {
        poll(&mut [PollFd::new(from.as_fd(), PollFlags::POLLIN)], limit).unwrap_or(1) > 0
    };
    if !wait(from, PollTimeout::from(1000u16)) {
        complain("vsrun: reading standard input to its end, so that every execution sees the same (use </dev/null if there is none)");
    }
    loop {
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => copy.write_all(&buffer[..n])?,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            // Whoever has it too has set O_NONBLOCK.
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => drop(wait(from, PollTimeout::NONE)),
            Err(e) => return Err(e),
        }
    }
    // A pipe cannot be written to where it is read.
    Fed::new(copy, 0, OFlag::O_RDONLY)
}

/// So many bytes of what an execution prints are kept; the rest would only fill the memory.
pub const KEPT: u64 = 64 << 20;

/// Where the program's standard output and error go while executions are explored.
pub struct Output {
    file: File,
    /// Bytes of the present execution that have been passed on.
    passed: u64,
    /// What the program has printed before its main.
    before: Vec<u8>,
    /// Bytes in it, while nobody prints.
    rests: Option<u64>,
}

impl Output {
    /// A file in memory, emptied before each execution.
    pub fn create() -> io::Result<Output> {
        let file = File::from(memory_file(c"vsrun-output", 0)?);
        // Appending, so that the processes of the program do not overwrite each other.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let file = OpenOptions::new().read(true).append(true).open(path)?;
        Ok(Output { file, passed: 0, before: Vec::new(), rests: None })
    }

    /// The description that the program has.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn description(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// The descriptor to hand to the program.
    pub fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// The program stands before its main: each execution has printed what is there by now.
    ///
    /// # Errors
    /// It is more than is kept of what an execution prints.
    pub fn keep(&mut self) -> io::Result<()> {
        if self.not_kept()? > 0 {
            return Err(io::Error::other("unsupported: the program prints more than 64 MiB before its main"));
        }
        self.before = vec![0; self.bytes()? as usize];
        self.file.read_exact_at(&mut self.before, 0)
    }

    /// Before an execution.
    pub fn clear(&mut self) -> io::Result<()> {
        (self.passed, self.rests) = (0, None);
        // Without that flag it would be written where the last execution has left the place.
        fcntl(self.file.as_raw_fd(), FcntlArg::F_SETFL(OFlag::O_APPEND))?;
        if self.file.metadata()?.len() > 0 {
            self.file.set_len(0)?;
        }
        self.file.write_all(&self.before)
    }

    /// Before an execution that begins when so many bytes have been printed.
    pub fn cut(&mut self, printed: u64) -> io::Result<()> {
        let is_so = self.bytes()? == printed;
        (self.passed, self.rests) = (0, None);
        match is_so {
            true => Ok(()),
            false => self.file.set_len(printed),
        }
    }

    /// The process that prints rests until the next execution begins: what is there need not be asked for again and again.
    ///
    /// # Errors
    /// The file cannot be reached.
    pub fn rests(&mut self) -> io::Result<()> {
        self.rests = Some(self.bytes()?);
        Ok(())
    }

    /// So many bytes of the present execution have been passed on already.
    pub fn has_passed(&mut self, bytes: u64) {
        self.passed = bytes;
    }

    /// Bytes of the present execution that have been passed on.
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// The beginning of what the last execution printed, at most 4 MiB.
    pub fn start(&self) -> io::Result<Vec<u8>> {
        let len = self.bytes()?.min(4 << 20);
        let mut bytes = vec![0; len as usize];
        self.file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }

    /// Bytes that the last execution printed.
    pub fn bytes(&self) -> io::Result<u64> {
        match self.rests {
            Some(bytes) => Ok(bytes),
            None => Ok(self.file.metadata()?.len()),
        }
    }

    /// Copies what was printed since the last time.
    pub fn pass_on(&mut self, to: &mut File) -> io::Result<()> {
        let mut buffer = vec![0; 1 << 16];
        loop {
            let n = self.file.read_at(&mut buffer, self.passed)?;
            if n == 0 {
                break;
            }
            to.write_all(&buffer[..n]).or_else(unless_closed)?;
            self.passed += n as u64;
        }
        match self.passed > KEPT {
            true => self.forget(0, self.passed),
            false => Ok(()),
        }
    }

    /// While an execution runs: gives back the memory of what is not kept.
    pub fn bound(&self) -> io::Result<()> {
        match self.not_kept()? {
            0 => Ok(()),
            more => self.forget(KEPT, more),
        }
    }

    /// Bytes that the last execution printed beyond those that are kept.
    pub fn not_kept(&self) -> io::Result<u64> {
        Ok(self.bytes()?.saturating_sub(KEPT))
    }

    fn forget(&self, from: u64, len: u64) -> io::Result<()> {
        let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        Ok(fallocate(self.file.as_raw_fd(), flags, from as i64, len as i64)?)
    }

    /// The end of what the last execution printed, of what was kept of that: at most 64 KiB.
    pub fn copy_end_to(&self, to: &mut Vec<u8>) -> io::Result<()> {
        const MOST: u64 = 64 << 10;
        let end = self.file.metadata()?.len().min(KEPT);
        let from = end.saturating_sub(MOST);
        let mut bytes = vec![0; (end - from) as usize];
        self.file.read_exact_at(&mut bytes, from)?;
        to.append(&mut bytes);
        Ok(())
    }

    /// What the last execution printed, as far as it was kept.
    pub fn copy_to(&mut self, to: &mut dyn Write) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        io::copy(&mut Read::by_ref(&mut self.file).take(KEPT), to)?;
        match self.not_kept()? {
            0 => Ok(()),
            more => writeln!(to, "\n[{more} bytes more were printed, which vsrun has not kept]"),
        }
    }
}
