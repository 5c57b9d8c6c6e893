//! What executions would share with the root, since a fork shares it: it is kept as it stands when the program has come to its main, and put back before
//! each execution.
//!
//! | | kept | how it is reached |
//! |---|---|---|
//! | memory that is mapped shared, without a name | content | the root's `/proc/PID/mem` |
//! | files without a name (memfd), those of the private /dev/shm, what is standard input and can be written | content, size, mode, name | a descriptor of vsrun's, taken from the root |
//! | segments of System V, which lie in vsrun's pool | content | the pool |
//! | descriptions of open files, those of the standard streams too | the place in the file, the flags | a descriptor of vsrun's that is the same description |
//! | what the program has printed | content | [`super::streams::Output`] |
//!
//! What the model has (pipes, locks, semaphores, ..) is put back with the arena ([`super::checkpoint::RootState`]); memory that is not shared, the fork copies.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{fcntl, FcntlArg, OFlag};
use nix::unistd::{lseek, Pid, Whence};
use vsrun_model::arena::{FIRST_FD, LAST_FD};

use super::checkpoint::{descriptor_of, is_same_description};
use super::memory::ProcessMemory;
use crate::base::text::escape;
use crate::binary::modules::Mapping;

/// Bytes are compared so many at a time.
const CHUNK: usize = 1 << 16;
static ZEROS: [u8; CHUNK] = [0; CHUNK];
/// Memory may fail by the page.
const PAGE: usize = 4096;
/// So many bytes are looked at before each execution at the most.
const MOST: u64 = 512 << 20;

/// Bytes of something, without those that are 0, by where they are.
#[derive(Default)]
pub(super) struct Bytes(BTreeMap<u64, Box<[u8]>>);

/// Memory from an address up to another one, and what stands there.
type Region = ((u64, u64), Bytes);

/// Something that has bytes at places.
pub(super) trait Store {
    /// Fills `buffer`, or does not: there is nothing.
    fn load(&self, at: u64, buffer: &mut [u8]) -> bool;
    /// Where from there on there may be bytes that are not 0.
    fn next(&self, at: u64) -> u64 {
        at
    }
    fn put(&self, at: u64, bytes: &[u8]) -> io::Result<()>;
}

impl Store for File {
    fn load(&self, at: u64, buffer: &mut [u8]) -> bool {
        self.read_exact_at(buffer, at).is_ok()
    }

    fn put(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, at)
    }
}

/// vsrun's pool, of which most is mostly not used. Nobody else needs the place in its file.
pub(super) struct Pool<'a>(pub &'a File);

impl Store for Pool<'_> {
    fn load(&self, at: u64, buffer: &mut [u8]) -> bool {
        self.0.load(at, buffer)
    }

    fn next(&self, at: u64) -> u64 {
        match lseek(self.0.as_raw_fd(), at as i64, Whence::SeekData) {
            Ok(next) => next as u64,
            // There are none behind it.
            Err(Errno::ENXIO) => u64::MAX,
            Err(_) => at,
        }
    }

    fn put(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.put(at, bytes)
    }
}

impl Store for ProcessMemory {
    fn load(&self, at: u64, buffer: &mut [u8]) -> bool {
        self.read(at, buffer).is_ok()
    }

    fn put(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.write(at, bytes).map_err(|e| io::Error::other(e.to_string()))
    }
}

impl Bytes {
    pub(super) fn take(store: &dyn Store, (start, end): (u64, u64)) -> Bytes {
        let mut bytes = Bytes::default();
        each(store, (start, end), &mut |at, found| {
            if !same(found, &ZEROS[..found.len()]) {
                bytes.0.insert(at, found.into());
            }
            Ok(())
        })
        .unwrap_or_default();
        bytes
    }

    /// Puts them back, and 0 everywhere else.
    ///
    /// # Errors
    /// It cannot be written any more.
    pub(super) fn restore(&self, store: &dyn Store, (start, end): (u64, u64)) -> io::Result<()> {
        each(store, (start, end), &mut |at, found| {
            let wanted = self.0.get(&at).map_or(&ZEROS[..found.len()], |kept| &**kept);
            if wanted.len() != found.len() {
                // A page could not be read when the others around it were, or the other way round.
                return Err(io::Error::other("its pages come and go"));
            }
            if same(wanted, found) {
                return Ok(());
            }
            let pages = (at..).step_by(PAGE).zip(wanted.chunks(PAGE).zip(found.chunks(PAGE)));
            pages.filter(|(_, (wanted, found))| wanted != found).try_for_each(|(at, (wanted, _))| store.put(at, wanted))
        })
    }
}

/// Shows what stands there in pieces; pages that are not there are left out.
fn each(
    store: &dyn Store,
    (start, end): (u64, u64),
    show: &mut dyn FnMut(u64, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    let (mut at, mut next) = (start, start);
    while at < end {
        let size = CHUNK.min((end - at) as usize);
        if next <= at {
            next = store.next(at);
        }
        if next >= at + size as u64 {
            show(at, &ZEROS[..size])?;
        } else if store.load(at, &mut buffer[..size]) {
            show(at, &buffer[..size])?;
        } else {
            for page in (0..size).step_by(PAGE) {
                let part = &mut buffer[page..size.min(page + PAGE)];
                if store.load(at + page as u64, part) {
                    show(at + page as u64, part)?;
                }
            }
        }
        at += size as u64;
    }
    Ok(())
}

fn same(a: &[u8], b: &[u8]) -> bool {
    // Most is nothing, on both sides.
    std::ptr::eq(a, b) || a == b
}

/// What is in a file.
struct Content {
    size: u64,
    mode: u32,
    bytes: Bytes,
}

impl Content {
    fn take(file: &File) -> io::Result<Content> {
        let found = file.metadata()?;
        let bytes = Bytes::take(file, (0, found.len()));
        Ok(Content { size: found.len(), mode: found.mode(), bytes })
    }

    fn restore(&self, file: &File) -> io::Result<()> {
        let found = file.metadata()?;
        if found.mode() != self.mode {
            file.set_permissions(Permissions::from_mode(self.mode & 0o7777))?;
        }
        if found.len() != self.size {
            file.set_len(self.size)?;
        }
        self.bytes.restore(file, (0, self.size))
    }
}

/// What is shared as it was later than where it was kept: the places in files, what is in files and in memory.
#[derive(Default)]
pub(super) struct Later {
    places: Vec<Option<u64>>,
    files: Vec<Content>,
    memory: Vec<Bytes>,
}

/// A description that executions inherit.
struct Description {
    file: File,
    /// `None`: there is no place in it.
    place: Option<u64>,
    flags: OFlag,
}

/// A file of the private /dev/shm, with a name of vsrun's own beside it.
struct Named {
    name: OsString,
    own: PathBuf,
    ino: u64,
}

/// All of that.
#[derive(Default)]
pub(super) struct Kept {
    memory: Option<(ProcessMemory, Vec<Region>)>,
    /// The numbers of what is behind these regions.
    behind: Vec<u64>,
    files: Vec<(File, Content)>,
    /// The pool, how much of it is used, and what stands there.
    pool: Option<(File, u64, Bytes)>,
    descriptions: Vec<Description>,
    /// The directory that is /dev/shm for the program, and what is in it.
    shm: PathBuf,
    named: Vec<Named>,
    /// Memory can be written that a file with a name is behind.
    writes_files: bool,
}

/// Where it stands.
pub(super) struct Root<'a> {
    pub pid: Pid,
    /// vsrun's own files, which it tends by itself.
    pub own: Vec<(u64, u64)>,
    /// The descriptions that vsrun has given the program as standard input and output.
    pub streams: [File; 2],
    /// The pool, and how much of it is used.
    pub pool: (&'a File, u64),
    /// The private directory that is /dev/shm for the program, and one beside it that is not there yet.
    pub shm: (PathBuf, PathBuf),
    /// What other processes share with it, and has been kept.
    pub known: &'a Known,
}

/// What has been kept of processes, for others that share it with them.
#[derive(Default)]
pub(super) struct Known {
    /// The numbers of what is behind memory.
    behind: Vec<u64>,
    /// Descriptions of open files, by descriptors of vsrun's.
    descriptions: Vec<RawFd>,
    /// The pool.
    pool: bool,
}

impl Known {
    /// What stands in these.
    pub fn of<'a>(all: impl Iterator<Item = &'a Kept>) -> Known {
        let mut known = Known::default();
        for kept in all {
            known.behind.extend(&kept.behind);
            known.descriptions.extend(kept.descriptions.iter().map(|d| d.file.as_raw_fd()));
            known.pool |= kept.pool.is_some();
        }
        known
    }

    /// Descriptor `fd` of process `pid` is of a description that is known.
    fn has(&self, pid: Pid, fd: RawFd) -> bool {
        self.descriptions.iter().any(|&own| is_same_description(own, pid, fd))
    }
}

impl Root<'_> {
    /// The stream that a descriptor of the program's is, if it is still of that file.
    fn stream(&self, fd: RawFd, id: (u64, u64)) -> Option<OwnedFd> {
        let own = self.streams.get(usize::from(fd != 0)).filter(|own| fd <= 2 && is_of(own, id))?;
        own.try_clone().ok().map(OwnedFd::from)
    }
}

impl Kept {
    /// Keeps what stands there.
    ///
    /// # Errors
    /// It cannot be reached, or is too much: why.
    pub fn take(root: &Root) -> Result<Kept, String> {
        let told = |what: &'static str| {
            move |e: io::Error| format!("what the program shares before its main cannot be kept ({what}): {e}")
        };
        let mut kept = Kept { shm: root.shm.0.clone(), ..Kept::default() };
        kept.named(root).map_err(told("/dev/shm"))?;
        kept.descriptors(root).map_err(told("open files"))?;
        if root.pool.1 > 0 && !root.known.pool {
            let pool = root.pool.0.try_clone().map_err(told("segments"))?;
            let bytes = Bytes::take(&Pool(&pool), (0, root.pool.1));
            kept.pool = Some((pool, root.pool.1, bytes));
        }
        kept.mapped(root).map_err(told("memory"))?;
        match kept.size() {
            size if size > MOST => {
                Err(format!("unsupported: before its main the program shares {} MiB, of which each execution would change; {} MiB can be kept", size >> 20, MOST >> 20))
            }
            _ => Ok(kept),
        }
    }

    /// Puts it back.
    ///
    /// # Errors
    /// It cannot be written any more.
    pub fn restore(&mut self) -> io::Result<()> {
        self.restore_with(None)
    }

    /// The same, with what was so later.
    ///
    /// # Errors
    /// It cannot be written any more.
    pub fn restore_with(&mut self, later: Option<&Later>) -> io::Result<()> {
        if !self.named.is_empty() {
            self.restore_names()?;
        }
        for (i, (file, content)) in self.files.iter().enumerate() {
            later.map_or(content, |later| &later.files[i]).restore(file)?;
        }
        if let Some((pool, used, bytes)) = &self.pool {
            bytes.restore(&Pool(pool), (0, *used))?;
        }
        for (i, description) in self.descriptions.iter_mut().enumerate() {
            fcntl(description.file.as_raw_fd(), FcntlArg::F_SETFL(description.flags))?;
            if let Some(place) = later.map_or(description.place, |later| later.places[i]) {
                description.file.seek(SeekFrom::Start(place))?;
            }
        }
        let Some((memory, regions)) = &self.memory else { return Ok(()) };
        let mut all = regions.iter().enumerate();
        all.try_for_each(|(i, (range, bytes))| later.map_or(bytes, |later| &later.memory[i]).restore(memory, *range))
    }

    /// What is so now.
    ///
    /// # Errors
    /// It cannot be told any more.
    pub fn later(&mut self) -> io::Result<Later> {
        let place = |d: &mut Description| d.place.map(|_| d.file.stream_position()).transpose();
        let places = self.descriptions.iter_mut().map(place).collect::<io::Result<_>>()?;
        let files = self.files.iter().map(|(file, _)| Content::take(file)).collect::<io::Result<_>>()?;
        let regions = self.memory.iter().flat_map(|(memory, regions)| regions.iter().map(move |r| (memory, r.0)));
        let memory = regions.map(|(memory, range)| Bytes::take(memory, range)).collect();
        Ok(Later { places, files, memory })
    }

    /// Bytes of files and memory that are looked at for each state that is kept; what is in the pool is no part of it.
    pub fn content(&self) -> u64 {
        self.size() - self.pool.as_ref().map_or(0, |(_, used, _)| *used)
    }

    /// There is memory among it, which is reached through the process.
    pub fn has_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// What is shared can be kept by its content alone: nothing has a name.
    pub fn has_no_names(&self) -> bool {
        self.named.is_empty() && !self.writes_files
    }

    /// Bytes that are looked at each time.
    fn size(&self) -> u64 {
        let regions = self.memory.iter().flat_map(|(_, regions)| regions);
        let files =
            self.files.iter().map(|(_, content)| content.size).chain(self.pool.iter().map(|(_, used, _)| *used));
        regions.map(|((start, end), _)| end - start).sum::<u64>() + files.sum::<u64>()
    }

    fn named(&mut self, root: &Root) -> io::Result<()> {
        for entry in fs::read_dir(&root.shm.0)? {
            let entry = entry?;
            if !entry.file_type()?.is_file() {
                return Err(io::Error::other(format!("{} is no file", escape(entry.path()))));
            }
            if self.named.is_empty() {
                fs::create_dir(&root.shm.1)?;
            }
            let own = root.shm.1.join(self.named.len().to_string());
            fs::hard_link(entry.path(), &own)?;
            let file = OpenOptions::new().read(true).write(true).open(&own)?;
            self.named.push(Named { name: entry.file_name(), own, ino: file.metadata()?.ino() });
            let content = Content::take(&file)?;
            self.files.push((file, content));
        }
        Ok(())
    }

    /// Executions remove names, and what they have made stays when they are over.
    fn restore_names(&self) -> io::Result<()> {
        let mut there = BTreeMap::new();
        for entry in fs::read_dir(&self.shm)?.flatten() {
            let ino = entry.metadata()?.ino();
            match self.named.iter().any(|named| named.name == entry.file_name() && named.ino == ino) {
                true => drop(there.insert(entry.file_name(), ino)),
                false if entry.file_type()?.is_dir() => fs::remove_dir_all(entry.path())?,
                false => fs::remove_file(entry.path())?,
            }
        }
        for named in self.named.iter().filter(|named| !there.contains_key(&named.name)) {
            fs::hard_link(&named.own, self.shm.join(&named.name))?;
        }
        Ok(())
    }

    fn descriptors(&mut self, root: &Root) -> io::Result<()> {
        for entry in fs::read_dir(format!("/proc/{}/fd", root.pid))?.flatten() {
            let Ok(fd) = entry.file_name().to_string_lossy().parse::<i32>() else { continue };
            // What the link shows is looked at first: of most nothing is to be kept.
            let Ok(found) = fs::metadata(entry.path()) else { continue };
            let id = (found.dev(), found.ino());
            if root.own.contains(&id) {
                continue;
            }
            // Those are vsrun's. What only names a place has neither place nor flags.
            if (FIRST_FD..LAST_FD).contains(&fd) || is_path(root.pid, fd) || root.known.has(root.pid, fd) {
                continue;
            }
            let allowed = "the system does not let vsrun share it; in a container: --security-opt seccomp=unconfined";
            // Where that is not allowed, the standard streams are the descriptions that vsrun has given the program.
            let taken = descriptor_of(root.pid, fd).or_else(|e| root.stream(fd, id).ok_or(e));
            let mut file =
                File::from(taken.map_err(|e| io::Error::new(e.kind(), format!("descriptor {fd}: {e}: {allowed}")))?);
            let place = file.stream_position().ok();
            let flags = OFlag::from_bits_retain(fcntl(file.as_raw_fd(), FcntlArg::F_GETFL)?);
            let writable = flags & OFlag::O_ACCMODE != OFlag::O_RDONLY;
            if found.is_file() && found.nlink() == 0 && writable && !is_of(&root.streams[1], id) {
                // What only appends would not write where it is told to, and what only writes cannot be read.
                let path = format!("/proc/self/fd/{}", file.as_raw_fd());
                let own = OpenOptions::new().read(true).write(true).open(path).or_else(|_| file.try_clone())?;
                let content = Content::take(&own)?;
                self.files.push((own, content));
            }
            self.descriptions.push(Description { file, place, flags });
        }
        Ok(())
    }

    fn mapped(&mut self, root: &Root) -> io::Result<()> {
        let maps = Mapping::parse_all(&fs::read(format!("/proc/{}/maps", root.pid))?);
        self.writes_files = maps.iter().any(writes_file);
        let shared: Vec<_> = maps.iter().filter(|m| is_shared(m) && !root.known.behind.contains(&m.inode)).collect();
        self.behind = shared.iter().map(|m| m.inode).collect();
        let regions: Vec<_> = shared.iter().map(|m| (m.start, m.end)).collect();
        if regions.is_empty() {
            return Ok(());
        }
        let memory = ProcessMemory::open(root.pid).map_err(|e| io::Error::other(e.to_string()))?;
        let size: u64 = regions.iter().map(|(start, end)| end - start).sum();
        // It is said how much it is, and not read.
        let take = |range| (range, if size > MOST { Bytes::default() } else { Bytes::take(&memory, range) });
        let regions = regions.into_iter().map(take).collect();
        self.memory = Some((memory, regions));
        Ok(())
    }
}

/// It is of the file with these numbers.
fn is_of(file: &File, id: (u64, u64)) -> bool {
    file.metadata().is_ok_and(|found| (found.dev(), found.ino()) == id)
}

/// That descriptor only names a place (O_PATH).
fn is_path(pid: Pid, fd: i32) -> bool {
    let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).unwrap_or_default();
    let flags = info.lines().find_map(|line| i32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
    flags.is_some_and(|flags| flags & libc::O_PATH != 0)
}

/// Memory of which executions would see what others have written, and which no file with a name is behind. Not vsrun's own.
fn is_shared(mapping: &Mapping) -> bool {
    mapping.perms.ends_with('s') && is_unnamed(mapping) && !is_own(mapping)
}

/// What is written there is in a file with a name.
fn writes_file(mapping: &Mapping) -> bool {
    mapping.perms.ends_with('s') && mapping.perms.contains('w') && !is_unnamed(mapping) && !is_own(mapping)
}

fn is_unnamed(mapping: &Mapping) -> bool {
    let path = mapping.path.as_deref().unwrap_or(Path::new("")).to_string_lossy();
    path.ends_with(" (deleted)") || path.is_empty()
}

/// It is memory of vsrun's.
fn is_own(mapping: &Mapping) -> bool {
    mapping.path.as_deref().unwrap_or(Path::new("")).to_string_lossy().starts_with("/memfd:vsrun-")
}
