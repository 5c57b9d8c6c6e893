//! The locks of stdio streams, which libc takes and gives back by atomic instructions of its own, in every function of stdio.
//!
//! NOTE [Armed] Only a lock that looks contended brings libc to the kernel. So in a process with several threads the word of each
//! stream's lock says "taken, and somebody waits" (2) while it is free, with no owner: it is *armed*. Whoever takes it, by flockfile or
//! inside printf, finds it taken and calls futex to wait (`waits`): there it is taken in the model, which may block, and then the word is
//! cleared for libc to take. Whoever gives it back finds that somebody waits and calls futex to wake (`wakes`): there the word is set
//! again and the lock given back in the model. How often its owner has taken it libc counts itself, without a call. So every
//! function of stdio is caught, whoever calls it, and costs nothing in a process with one thread.
//!
//! The list of all streams has a lock of the same kind, which fopen, fclose, fflush(NULL) and fork take. Where it is given back, new
//! streams are found in the list and armed; those that are gone from it are being closed.
//!
//! When the exit handlers are done libc writes out each stream, then tries to take its lock twice, goes on without it, and takes its buffer
//! away (libio/genops.c, _IO_cleanup). Where other threads are left, who exits takes the locks that are free for all that time here, and gives
//! them back before the process ends: so others print before or after. Otherwise the locks are as libc left them.
//!
//! The loader has a lock of a like kind, for dlopen, dlclose, dlsym and the like: a recursive mutex (`_dl_load_lock`) that libc's own functions
//! take and give back. It is armed too.

use core::cell::UnsafeCell;

use vsrun_model::object::{DIRECTORY, LOADER, STREAM_LIST, THREAD_DATA};
use vsrun_model::op::TRY;
use vsrun_model::stream::{held_by, libc_use, Kept, EXPLICIT};
use vsrun_model::world::{EXITS_TWICE, EXIT_STREAMS};
use vsrun_model::{Key, Kind, ObjId, ObjKind, Op, Uid, NONE};

use super::thread::{call0, call1, call2, libc_functions};
use super::{fd, files};
use crate::gate::{self, arena, end, local, machine, me, model, space_of, world};
use crate::sys::elf::Image;
use crate::sys::{elf, fs_base, load, store};

/// Streams of one process that can be told apart.
const MAX_STREAMS: usize = 1024;

// Offsets in FILE (glibc, x86-64), and of the owner in the lock that it points to; bits of its flags.
const CHAIN: u64 = 0x68;
const FILENO: u64 = 0x70;
const LOCK: u64 = 0x88;
const COUNT: u64 = 4;
const OWNER: u64 = 8;
const NO_READS: u32 = 4;
const IS_FILEBUF: u32 = 0x2000;

/// What stands for the file of the loader's lock.
const OF_LOADER: u64 = 1;
/// Bytes of a mutex, and where its kind is.
const MUTEX: u64 = 40;
const KIND: u64 = 16;

/// The word of a lock.
const FREE: u32 = 0;
const CONTENDED: u32 = 2;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Stream {
    /// Address of the lock.
    lock: u64,
    /// Address of the FILE; 0: it is the lock of the list; [`OF_LOADER`].
    file: u64,
    /// It was in the list when that was looked at last.
    listed: bool,
    /// It is being closed.
    closing: bool,
    /// Who exits has taken it.
    exiting: bool,
    /// Who opened it beside other threads, and which of the streams that this thread has open it is: where the heap puts it
    /// depends on what others have given back. Nobody: it goes by its address.
    opener: Uid,
    number: u64,
}

impl Stream {
    fn at(file: u64, lock: u64, listed: bool) -> Stream {
        Stream { lock, file, listed, ..NO_STREAM }
    }

    /// Opened just now by the running thread.
    fn opened(file: u64, lock: u64, listed: bool) -> Stream {
        let (opener, s) = (me().uid, streams());
        let open =
            |number: &u64| s.known[..s.n].iter().any(|o| o.opener == opener && o.number == *number && o.lock != lock);
        let number = (0..).find(|number| !open(number)).unwrap_or(0);
        Stream { opener, number, ..Stream::at(file, lock, listed) }
    }

    /// It is one of the program's, not something that libc keeps for all.
    fn is_file(&self) -> bool {
        self.file > OF_LOADER
    }

    fn key(&self) -> Key {
        let (space, at) = space_of(if self.is_file() { self.file } else { self.lock });
        match self.opener {
            NOBODY => Key::new(space, ObjKind::STREAM, at),
            // No address has this bit.
            opener => Key::new(space, ObjKind::STREAM, files::mix(opener.0, self.number) | 1 << 63),
        }
    }
}

struct Streams {
    /// Address of the head of the list.
    head: u64,
    /// Address of the lock of the list; 0: not known.
    list: u64,
    n: usize,
    known: [Stream; MAX_STREAMS],
}

/// In the first word of a FILE: it is for reading only.
const NO_WRITES: u32 = 8;

struct Cell(UnsafeCell<Streams>);
// SAFETY: a process of a world has one kernel thread, and no borrow is kept across a switch of fibers.
unsafe impl Sync for Cell {}

const NOBODY: Uid = Uid(0);
const NO_STREAM: Stream =
    Stream { lock: 0, file: 0, listed: false, closing: false, exiting: false, opener: NOBODY, number: 0 };

static STREAMS: Cell = Cell(UnsafeCell::new(Streams { head: 0, list: 0, n: 0, known: [NO_STREAM; MAX_STREAMS] }));

fn streams() -> &'static mut Streams {
    // SAFETY: see `Cell`; callers use the borrow for one statement.
    unsafe { &mut *STREAMS.0.get() }
}

/// Finds libc's list of streams and its lock, which has no name: it is what two functions take and give back.
pub fn find(image: &Image) {
    let (Some(head), Some(take), Some(give)) =
        (image.find(b"_IO_list_all"), image.find(b"_IO_list_lock"), image.find(b"_IO_list_unlock"))
    else {
        return;
    };
    streams().head = head;
    call0(take);
    let owner = fs_base();
    let mut taken = 0;
    elf::each_writable_segment(image.base(), |start, end| {
        // Word and count are 1, then the owner.
        let is_taken = |at: &u64| load::<u64>(*at) == 1 << 32 | 1 && load::<u64>(at + OWNER) == owner;
        taken = (start..end - 2 * OWNER).step_by(8).find(is_taken).unwrap_or(taken);
    });
    call0(give);
    if taken != 0 && load::<u64>(taken) == 0 {
        streams().list = taken;
        add(Stream::at(0, taken, true));
    }
    if let (Some(walk), Some(loader)) = (image.find(b"dl_iterate_phdr"), elf::find_map(is_loader)) {
        if let Some(data) = Image::of_map(loader).find(b"_rtld_global") {
            let mut lock = data;
            call2(walk, find_loader_lock as extern "C" fn(u64, u64, u64) -> i32 as usize as u64, &raw mut lock as u64);
            if lock != data {
                add(Stream::at(OF_LOADER, lock, false));
            }
        }
    }
    // The standard streams are known before the root, so that an execution has no page of this table to copy for them.
    each_listed(|file, lock| add(Stream::at(file, lock, true)));
}

fn is_loader(map: u64) -> bool {
    elf::is_named(map, b"/ld-linux-x86-64.so.2")
}

/// Called by dl_iterate_phdr, which holds the second of the loader's locks meanwhile; they lie one behind the other in what is at `at`. Puts the
/// address of the first there.
extern "C" fn find_loader_lock(_info: u64, _size: u64, at: u64) -> i32 {
    const MOST: u64 = 0x1000;
    const RECURSIVE: u32 = 1;
    let data: u64 = load(at);
    let is_lock = |lock: u64, taken: u32| {
        let words: [u32; 6] = load(lock);
        (words[0], words[1], words[KIND as usize / 4]) == (taken, taken, RECURSIVE) && (words[2] != 0) == (taken != 0)
    };
    let end = data + MOST - 2 * MUTEX;
    if let Some(first) = (data..end).step_by(8).find(|&lock| is_lock(lock, 0) && is_lock(lock + MUTEX, 1)) {
        store(at, first);
    }
    1
}

/// Calls `f` with each stream in libc's list and its lock.
fn each_listed(mut f: impl FnMut(u64, u64)) {
    let mut file: u64 = load(streams().head);
    while file != 0 {
        let lock: u64 = load(file + LOCK);
        if lock != 0 {
            f(file, lock);
        }
        file = load(file + CHAIN);
    }
}

/// The process is about to have a second thread.
pub fn arm_all() {
    if local().streams_armed || streams().head == 0 {
        return;
    }
    local().streams_armed = true;
    let mut i = 0;
    while i < streams().n {
        let stream = streams().known[i];
        let Stream { file, listed, .. } = stream;
        if listed && stream.is_file() && !is_listed(file) {
            // Closed while the process had one thread.
            closed(file);
            continue;
        }
        arm(stream);
        i += 1;
    }
    look_at_list();
}

/// What is written to it stays in its buffer for a while.
fn keeps_writes(file: u64) -> bool {
    const UNBUFFERED: u32 = 2;
    load::<u32>(file) & (NO_WRITES | UNBUFFERED) == 0
}

/// The running thread forks, beside others: the child gets what is in the streams.
pub fn copies() {
    if !is_armed() {
        return;
    }
    for i in 0..streams().n {
        let stream = streams().known[i];
        if stream.is_file() && !stream.closing && keeps_writes(stream.file) {
            machine().stream_is_copied(local().cur, object(&stream));
        }
    }
}

/// libc writes to this descriptor, or what is in all streams, in a process that may be the child of one with several threads.
pub fn copy_written(number: Option<i32>) {
    if !local().streams_copied || local().borrowed {
        return;
    }
    let parent = world().procs[local().pid].creator;
    for i in 0..streams().n {
        let stream = streams().known[i];
        let is_it = || number.is_none_or(|number| load::<i32>(stream.file + FILENO) == number);
        if stream.is_file() && keeps_writes(stream.file) && is_it() {
            let key = stream.key();
            machine().copied_stream_tells(Key::new(parent, key.kind, key.addr));
        }
    }
}

/// First steps of a forked child, which has one thread; libc has set back the locks in its list.
pub fn forked() {
    local().streams_copied |= local().streams_armed;
    local().streams_armed = false;
    local().exits = false;
    (local().leaves, local().exiting) = (NONE, NONE);
    for stream in &mut streams().known[..streams().n] {
        if stream.exiting {
            stream.exiting = false;
        }
    }
}

/// The exit handlers of this process are done.
pub fn exits() {
    copy_written(None);
    if !is_armed() {
        return;
    }
    note_exits();
    if !world().is_alone(local().cur) {
        return takes_all();
    }
    local().exits = true;
    for i in 0..streams().n {
        let Stream { lock, file, .. } = streams().known[i];
        if file > OF_LOADER && load::<u64>(lock + OWNER) == 0 {
            store(lock, FREE);
        }
    }
}

/// The running thread exits, beside others: it takes the locks of all streams that are free.
fn takes_all() {
    local().leaves = local().cur;
    let mut i = 0;
    while i < streams().n {
        let stream = streams().known[i];
        let lock = stream.lock;
        i += 1;
        if !stream.is_file() || stream.closing || load::<u64>(lock + OWNER) == fs_base() {
            continue;
        }
        let id = object_in_step(&stream);
        let taken = gate::pass_quietly(operation(Kind::STREAM_LOCK, &stream, id).with(TRY)) == 0;
        if let Some(at) = index_of(lock).filter(|_| taken) {
            store(lock + COUNT, 1u32);
            store(lock + OWNER, fs_base());
            streams().known[at].exiting = true;
        } else if load::<u32>(stream.file) & NO_WRITES == 0 {
            // Written out all the same, whatever the other thread does with it meanwhile.
            model().never_comes(EXIT_STREAMS);
        }
    }
}

/// The process is about to end, by a call of the running thread: what that has taken for it others may take again.
pub fn exited() {
    if local().leaves != local().cur || local().borrowed {
        return;
    }
    for i in 0..MAX_STREAMS {
        if i >= streams().n || !streams().known[i].exiting {
            continue;
        }
        let stream = streams().known[i];
        streams().known[i].exiting = false;
        store(stream.lock + COUNT, 0u32);
        store(stream.lock + OWNER, 0u64);
        store(stream.lock, CONTENDED);
        let id = object(&stream);
        gate::pass_quietly(operation(Kind::STREAM_UNLOCK, &stream, id));
    }
}

/// The running thread has got the lock of `stream`, after another one has begun to exit: what of that comes before and after is more than the
/// time for which it holds the locks.
fn note_exit(stream: &Stream) {
    let leaves = local().leaves;
    if leaves != NONE && leaves != local().cur && stream.is_file() && is_told(stream.file) {
        model().never_comes(EXIT_STREAMS);
    }
}

fn is_armed() -> bool {
    local().streams_armed && !local().exits && !local().borrowed
}

fn index_of(lock: u64) -> Option<usize> {
    let s = streams();
    s.known[..s.n].iter().position(|stream| stream.lock == lock)
}

fn made(id: Option<ObjId>) -> ObjId {
    id.unwrap_or_else(|| end::no_room(&[b"the program uses more streams and locks than vsrun can hold"]))
}

fn object(stream: &Stream) -> ObjId {
    let key = stream.key();
    let flags = match stream.file {
        0 => STREAM_LIST,
        OF_LOADER => LOADER,
        _ => 0,
    };
    made(model().object_at(key.space, key.kind, key.addr, flags))
}

/// The stream is known from now on.
fn add(stream: Stream) {
    if let Some(i) = index_of(stream.lock) {
        if streams().known[i] != stream {
            streams().known[i] = stream;
        }
        return;
    }
    if streams().n == MAX_STREAMS {
        end::no_room(&[b"the program has more streams open than vsrun can hold"]);
    }
    // Another one was there before it.
    let key = stream.key();
    if world().find(key).is_some() {
        made(model().object_new(key, 0));
    }
    let s = streams();
    s.known[s.n] = stream;
    s.n += 1;
}

/// The stream is known from now on, and its lock armed.
fn arm(stream: Stream) {
    let lock = stream.lock;
    add(stream);
    let (word, owner): (u32, u64) = (load(lock), load(lock + OWNER));
    if stream.file == OF_LOADER {
        if word != FREE {
            // By the only thread that there was so far.
            model().stream_found(object(&stream), local().cur);
        }
        store(lock, CONTENDED);
        return;
    }
    let in_model = || local().streams_copied && world().find(stream.key()).is_some();
    if owner != 0 || word == FREE && in_model() {
        // What was done to it while the process had one thread.
        let t = if owner == 0 { NONE } else { world().thread_by_fs(local().pid, owner).unwrap_or(NONE) };
        let id = object(&stream);
        model().stream_found(id, t);
    }
    store(lock, CONTENDED);
}

/// Arms streams that are new in the list; those that are not there any more are being closed.
fn look_at_list() {
    for i in 0..streams().n {
        let stream = streams().known[i];
        if stream.listed && stream.is_file() && !stream.closing && !is_listed(stream.file) {
            streams().known[i].closing = true;
        }
    }
    each_listed(|file, lock| {
        let known = stream_at(lock);
        if known.file == file && known.closing {
            // Another one has been opened in its place.
            closed(file);
        }
        if known.file != file || known.closing {
            arm(Stream::opened(file, lock, true));
        }
    });
}

fn is_listed(stream: u64) -> bool {
    let mut found = false;
    each_listed(|file, _| found |= file == stream);
    found
}

/// A stream that is in no list (open_memstream) has been made.
pub fn opened(file: u64) {
    if file == 0 {
        return;
    }
    let lock = load(file + LOCK);
    match is_armed() {
        true => arm(Stream::opened(file, lock, false)),
        false => add(Stream::at(file, lock, false)),
    }
}

/// The memory of a stream has been given back.
pub fn closed(file: u64) {
    let s = streams();
    if let Some(i) = s.known[..s.n].iter().position(|stream| stream.file == file) {
        s.n -= 1;
        s.known[i] = s.known[s.n];
    }
}

/// Whether the order of uses of a stream by several threads can be told. What goes to a terminal cannot be read back;
/// what goes to a file can be, from now on.
fn is_told(file: u64) -> bool {
    if file <= OF_LOADER {
        return false;
    }
    let (flags, number): (u32, i32) = (load(file), load(file + FILENO));
    let only_writes = flags & (IS_FILEBUF | NO_READS) == IS_FILEBUF | NO_READS && number >= 0;
    !only_writes || fd::find(number as u64).is_some() || files::written_in_turn(number)
}

/// An operation on the lock of a stream that the running thread is about to take or to give back.
fn operation(kind: Kind, stream: &Stream, id: ObjId) -> Op {
    let told = arena().stream_changes_hands(local().cur, id) && is_told(stream.file);
    Op::on(kind, id).arg(told.into())
}

/// The object of a stream; in step with its memory, where the lock was taken while nobody looked.
fn object_in_step(stream: &Stream) -> ObjId {
    let id = object(stream);
    let owner: u64 = if stream.file == OF_LOADER { 0 } else { load(stream.lock + OWNER) };
    if owner != 0 && world().objects[id].owner == NONE {
        if let Some(t) = world().thread_by_fs(local().pid, owner) {
            model().stream_found(id, t);
        }
    }
    id
}

/// True if the word at `lock` is that of a stream's lock.
pub fn is_one(lock: u64) -> bool {
    index_of(lock).is_some()
}

fn stream_at(lock: u64) -> Stream {
    index_of(lock).map_or(NO_STREAM, |i| streams().known[i])
}

/// libc waits for the lock at `lock`, of a stream; see NOTE [Armed].
pub fn waits(lock: u64) -> i64 {
    let stream = stream_at(lock);
    if !local().borrowed {
        let id = object_in_step(&stream);
        gate::pass_quietly(operation(Kind::STREAM_LOCK, &stream, id));
        note_exit(&stream);
    } else if load::<u64>(lock + OWNER) != 0 {
        // The child of a vfork uses its parent's streams, as a part of its transition.
        end::unsupported(&[b"a wait for a stream that another thread holds, in the child of a vfork before it execs"]);
    }
    store(lock, FREE);
    0
}

/// libc has given back the lock at `lock`, of a stream, and wakes who waits for it.
pub fn wakes(lock: u64) -> i64 {
    let stream = stream_at(lock);
    if !local().exits || !stream.is_file() {
        store(lock, CONTENDED);
    }
    if local().borrowed {
        return 0;
    }
    if stream.file == 0 {
        look_at_list();
    }
    let id = object(&stream);
    if stream.closing {
        // This was the last time.
        closed(stream.file);
        store(lock, FREE);
    }
    gate::pass_quietly(operation(Kind::STREAM_UNLOCK, &stream, id));
    0
}

/// Whether the running thread holds the lock already, or nobody looks: then libc's function does it all.
fn is_plain(lock: u64) -> bool {
    !is_armed() || load::<u64>(lock + OWNER) == fs_base()
}

fn known(file: u64, lock: u64) -> Stream {
    if index_of(lock).is_none() {
        arm(Stream::at(file, lock, false));
    }
    stream_at(lock)
}

/// flockfile; with `flags` [`TRY`] ftrylockfile. Gives what that returns.
pub fn lock(file: u64, flags: u8) -> i32 {
    let lock: u64 = load(file + LOCK);
    let functions = libc_functions();
    let real = if flags & TRY != 0 { functions.ftrylockfile } else { functions.flockfile };
    if is_plain(lock) {
        return call1(real, file);
    }
    let stream = known(file, lock);
    let id = object_in_step(&stream);
    if gate::pass(operation(Kind::STREAM_LOCK, &stream, id).with(flags | EXPLICIT)) != 0 {
        return libc::EBUSY;
    }
    store(lock, FREE);
    let result = call1(real, file);
    store(lock, CONTENDED);
    result
}

/// funlockfile.
pub fn unlock(file: u64) {
    let lock: u64 = load(file + LOCK);
    let once = load::<u32>(lock + 4) == 1;
    if !is_armed() || load::<u64>(lock + OWNER) != fs_base() || !once || index_of(lock).is_none() {
        call1(libc_functions().funlockfile, file);
        return;
    }
    // Nobody is woken: it is armed before anybody else comes.
    store(lock, 1u32);
    call1(libc_functions().funlockfile, file);
    store(lock, CONTENDED);
    let stream = known(file, lock);
    let id = object(&stream);
    gate::pass(operation(Kind::STREAM_UNLOCK, &stream, id).with(EXPLICIT));
}

/// A function is about to be called that tells what others have done to a stream.
pub fn asked(file: u64) {
    if is_armed() && file != 0 {
        if let Some(i) = index_of(load(file + LOCK)) {
            let id = object(&streams().known[i]);
            machine().stream_tells(id);
        }
    }
}

/// exit, or quick_exit, is about to run the handlers.
pub fn begins_exit(function: &str) {
    uses(Kept::EXIT_HANDLERS, function);
    note_exits();
}

/// The running thread is in exit, as another one may be.
fn note_exits() {
    let (first, cur) = (local().exiting, local().cur);
    if first == NONE || local().borrowed {
        local().exiting = cur;
    } else if first != cur {
        model().never_comes(EXITS_TWICE);
    }
}

/// Nobody looks at what libc keeps for all threads.
fn is_unseen() -> bool {
    !world().concurrent || local().borrowed || local().phase == gate::Phase::Off
}

/// The running thread is about to use what libc keeps, by the function of that name.
pub fn uses(what: Kept, function: &str) {
    if is_unseen() {
        return;
    }
    let id = made(model().object_at(local().pid, ObjKind::LIBC, what.0, 0));
    gate::pass(Op::on(Kind::LIBC_USE, id).with(EXPLICIT).arg(libc_use(function)));
}

/// The running thread is about to join or to detach `pthread`, by the function of that name. That is an operation once it is known that the order of the two
/// matters. `matters`: it shows here that it does, which is known from the next execution on.
pub fn meets_thread(pthread: u64, function: &str, matters: bool) {
    if is_unseen() {
        return;
    }
    let (space, at) = space_of(pthread);
    let key = Key::new(space, ObjKind::STREAM, at);
    if machine().thread_is_told(key) {
        let id = made(model().object_at(space, ObjKind::STREAM, at, THREAD_DATA));
        gate::pass(Op::on(Kind::LIBC_USE, id).with(EXPLICIT).arg(libc_use(function)));
    } else if matters {
        machine().tell_thread(key);
    }
}

/// The function of that name works on what is at `at`, under a lock of libc's, which libc then finds free. What it asks the kernel may be a place to
/// switch. `what`: flag of its object.
pub fn under_lock<R>(at: u64, what: u32, function: &str, work: impl FnOnce() -> R) -> R {
    if is_unseen() {
        return work();
    }
    let (space, at) = space_of(at);
    let id = made(model().object_at(space, ObjKind::STREAM, at, what));
    let on = |kind| Op::on(kind, id).with(EXPLICIT).arg(held_by(function));
    gate::pass(on(Kind::STREAM_LOCK));
    let result = work();
    gate::pass(on(Kind::STREAM_UNLOCK));
    result
}

/// The function of that name works on a directory that is read.
pub fn in_directory<R>(dir: u64, function: &str, work: impl FnOnce() -> R) -> R {
    under_lock(dir, DIRECTORY, function, work)
}
