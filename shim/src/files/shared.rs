//! Uses of files that may be visible operations: who uses what is noted, and what is known to be shared is published before
//! the kernel is asked. What it means is the model's: `vsrun_model::file`.

use core::cell::UnsafeCell;

use vsrun_model::arena::{MAX_SYSCALLS, SHARED_FILES};
use vsrun_model::file::{path_bit, Use, Verdict, LISTING, NAME, PLACE, PLACED};
use vsrun_model::object::NONE;
use vsrun_model::op::TRY;
use vsrun_model::{Key, Kind, ObjId, ObjKind, Op, MAX_NAME};

use super::layer::{self, given, seen_as};
use super::path::{Path, Stat};
use super::walk::{Place, Side};
use super::{seen, Request, Room};
use crate::local::{arena, local, me, world, Phase};
use crate::sys::load;
use crate::{gate, raw};

const AT_FDCWD: i32 = libc::AT_FDCWD;
const SYS_PREADV2: i64 = 327;
const SYS_PWRITEV2: i64 = 328;
/// Descriptors whose open file descriptions are told apart.
const MAX_FDS: usize = 1024;

struct Descriptions(UnsafeCell<[u32; MAX_FDS]>);
// SAFETY: one kernel thread a process; used for a statement at a time.
unsafe impl Sync for Descriptions {}

/// Names of the open file descriptions of this process, by descriptor; 0: not known. A fork copies them.
static DESCRIPTIONS: Descriptions = Descriptions(UnsafeCell::new([0; MAX_FDS]));

fn description(fd: i32) -> Option<&'static mut u32> {
    // SAFETY: see `Descriptions`.
    unsafe { (*DESCRIPTIONS.0.get()).get_mut(usize::try_from(fd).ok()?) }
}

fn mix(a: u64, b: u64) -> u64 {
    let z = (a ^ b.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (z ^ z >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(FNV, step)
}

const FNV: u64 = 0xcbf2_9ce4_8422_2325;

fn step(hash: u64, byte: &u8) -> u64 {
    (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
}

/// A call has made descriptor `result`, or -error: by opening, or as another name of an open file description.
pub fn made(nr: i64, a: &[u64; 6], result: i64) {
    if result < 0 {
        return;
    }
    let name = match nr {
        // Opened by this thread with this number: two of which that is so are taken for one.
        libc::SYS_open | libc::SYS_openat | libc::SYS_creat => {
            (mix(me().uid.0, result as u64) as u32).clamp(1, PLACED - 1)
        }
        libc::SYS_dup | libc::SYS_dup2 | libc::SYS_dup3 => description(a[0] as i32).map_or(0, |d| *d),
        libc::SYS_fcntl if matches!(a[1] as i32, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) => {
            description(a[0] as i32).map_or(0, |d| *d)
        }
        libc::SYS_memfd_create => 0,
        _ => return,
    };
    if let Some(place) = description(result as i32) {
        *place = name;
    }
}

/// What a call is about to do, as far as it is shared.
#[derive(Clone, Copy)]
struct Plan {
    /// Names that it concerns.
    names: i64,
    /// It may make or take away some.
    changes: bool,
    /// The object of the name that it is shown by, or [`NONE`].
    shown: ObjId,
    /// The file that it changes the contents of.
    writes: ObjId,
    /// The file that it reads.
    reads: ObjId,
    /// Tells the same use again.
    same: u64,
}

impl Plan {
    const NOTHING: Plan = Plan { names: 0, changes: false, shown: NONE, writes: NONE, reads: NONE, same: 0 };

    fn is_visible(&self) -> bool {
        self.names != 0 || self.writes != NONE || self.reads != NONE
    }
}

/// Uses of files are looked at: several threads have existed.
fn watches() -> bool {
    world().concurrent && local().phase != Phase::BeforeRoot && local().phase != Phase::Off
}

/// Performs a call with `kernel`, after a visible operation if it uses what is shared.
pub fn using(nr: i64, a: [u64; 6], kernel: impl FnOnce() -> i64) -> i64 {
    let plan = if watches() { planned(nr, &a) } else { None };
    let Some((mut op, mut same)) = plan else {
        let result = kernel();
        made(nr, &a, result);
        return result;
    };
    loop {
        gate::pass(op);
        // What names lead to may be something else by now: then all that was done is to look.
        match planned(nr, &a) {
            Some((now, now_same)) if !covers(&op, &now) => (op, same) = (now, now_same),
            _ => break,
        }
    }
    let result = kernel();
    made(nr, &a, result);
    let thread = me();
    // In vain: there is nothing, or not yet, or it is there already, or it is what it was.
    let error = |e: i32| result == -i64::from(e);
    let vain = error(libc::ENOENT) || error(libc::EEXIST) || same != 0 && same == thread.looked;
    thread.polls = if vain && op.tries() { thread.polls.saturating_add(1) } else { 0 };
    thread.looked = same;
    result
}

/// Whether the operation `now` concerns nothing that `op` does not.
fn covers(op: &Op, now: &Op) -> bool {
    let same = |a: ObjId, b: ObjId| b == NONE || a == b;
    now.arg & !op.arg == 0 && op.kind == now.kind && same(op.obj, now.obj) && same(op.obj2, now.obj2)
        || !matches!(now.kind, Kind::PATH_LOOK | Kind::PATH_CHANGE | Kind::PATH_TRUNCATE)
}

fn planned(nr: i64, a: &[u64; 6]) -> Option<(Op, u64)> {
    let (op, same) = contents(nr, a).or_else(|| names(nr, a))?;
    if local().borrowed {
        // The child of a vfork is part of its parent's transition.
        unexplored(|| Err(0));
        return None;
    }
    Some((op, same))
}

/// Notes that there is an order that matters and is not explored, with a name for the first such file.
fn unexplored(name: impl FnOnce() -> Result<Path, i64>) {
    arena().control.passed[SHARED_FILES.min(MAX_SYSCALLS - 1)] += 1;
    let files = &mut arena().files;
    if files.shown_len != 0 {
        return;
    }
    if let Ok(name) = name() {
        let len = name.get().len().min(files.shown.len());
        files.shown[..len].copy_from_slice(&name.get()[..len]);
        files.shown_len = len as u32;
    }
}

fn logged(name: &Path) {
    let files = &mut arena().files;
    let len = name.get().len().min(files.logged.len());
    if files.logged_len == 0 {
        files.logged[..len].copy_from_slice(&name.get()[..len]);
        files.logged_len = len as u32;
    }
}

fn name_of(fd: i32) -> Result<Path, i64> {
    let mut name = Path::new();
    name.of_descriptor(fd)?;
    seen_as(&mut name)?;
    Ok(name)
}

/// The numbers of a file as the program knows it; `None`: it is no file of the program's.
fn file(stat: &Stat) -> Option<(u64, u64)> {
    let (dev, ino) = stat.id();
    let own = dev == arena().files.dev;
    // What collects the program's output has no name and is in no layer; nor has a memfd.
    if stat.kind() != libc::S_IFREG || stat.links() == 0 && !own {
        return None;
    }
    let copied = arena().files.copies.as_slice().iter().find(|c| own && c.own == ino);
    Some(copied.map_or((dev, ino), |c| (c.dev, c.ino)))
}

/// Notes a use of a file; its object if that is visible. `name` is its path.
fn use_of(id: (u64, u64), what: Use, name: impl Fn() -> Result<Path, i64>) -> ObjId {
    let cur = local().cur;
    let row = match arena().used_file(id) {
        Some(row) => Some(row),
        None => arena().add_used_file(id, name().map_or(id.1, |name| hash(name.get()))),
    };
    let Some(row) = row else {
        unexplored(name);
        return NONE;
    };
    match arena().use_file(cur, row, what) {
        Verdict::Passes => NONE,
        Verdict::Unexplored => {
            unexplored(name);
            NONE
        }
        Verdict::Logged => {
            if let Ok(name) = name() {
                logged(&name);
            }
            NONE
        }
        Verdict::Visible => object(row, name),
    }
}

fn object(row: u32, name: impl Fn() -> Result<Path, i64>) -> ObjId {
    let Some((obj, new)) = arena().file_object(row) else {
        crate::end::unsupported(&[b"the program shares more files than vsrun can hold"])
    };
    if new && world().objects[obj].key.kind == ObjKind::FILE {
        if let Ok(name) = name() {
            call_it(obj, name.get());
        }
    }
    obj
}

/// The name in reports; where there is no room for it, the object is shown by its number.
fn call_it(obj: ObjId, name: &[u8]) {
    world().name_add(&name[name.len().saturating_sub(MAX_NAME)..], obj);
}

fn of_descriptor(fd: i32, what: Use) -> ObjId {
    let id = Stat::of_fd(fd).ok().and_then(|stat| file(&stat));
    id.map_or(NONE, |id| use_of(id, what, || name_of(fd)))
}

/// A read that moves the place of the description: visible too if others read through the same one.
fn moving(fd: i32) -> ObjId {
    let reads = of_descriptor(fd, Use::Read);
    let Some(id) = Stat::of_fd(fd).ok().filter(|_| reads == NONE).and_then(|stat| file(&stat)) else { return reads };
    // One that is not known may be any of the file.
    let name = description(fd).map_or(0, |d| u64::from(*d));
    let id_of_place = (PLACE, if name == 0 { mix(id.0, id.1) } else { name });
    let row = arena().used_file(id_of_place).or_else(|| arena().add_used_file(id_of_place, id_of_place.1));
    let Some(row) = row else {
        unexplored(|| name_of(fd));
        return NONE;
    };
    if arena().use_file(local().cur, row, Use::Write) != Verdict::Visible {
        return NONE;
    }
    arena().used_file(id).map_or(NONE, |file| object(file, || name_of(fd)))
}

/// What the descriptor may be used for decides what it is to look at the size.
fn size_by(fd: i32) -> Use {
    match raw!(libc::SYS_fcntl, fd, libc::F_GETFL) as i32 & libc::O_ACCMODE {
        libc::O_WRONLY => Use::Size,
        _ => Use::Read,
    }
}

/// No path, or an empty one.
fn is_empty(path: u64) -> bool {
    const FIRST_ADDRESS: u64 = 4096;
    path < FIRST_ADDRESS || load::<u8>(path) == 0
}

/// Calls about the contents of open files.
fn contents(nr: i64, a: &[u64; 6]) -> Option<(Op, u64)> {
    let fd = a[0] as i32;
    let (mut reads, mut writes) = (NONE, NONE);
    let (mut placed, mut bytes) = (true, a[2] as i64);
    let mut from = fd;
    match nr {
        libc::SYS_read | libc::SYS_readv => {
            reads = moving(fd);
            placed = false;
        }
        libc::SYS_pread64 | libc::SYS_preadv => reads = of_descriptor(fd, Use::Read),
        SYS_PREADV2 => {
            reads = of_descriptor(fd, Use::Read);
            placed = a[3] as i64 != -1;
        }
        libc::SYS_write | libc::SYS_writev | libc::SYS_pwrite64 | libc::SYS_pwritev | SYS_PWRITEV2 => {
            writes = of_descriptor(fd, Use::Write);
        }
        libc::SYS_ftruncate => {
            writes = of_descriptor(fd, Use::Write);
            bytes = a[1] as i64;
        }
        libc::SYS_fallocate => {
            writes = of_descriptor(fd, Use::Write);
            bytes = a[3] as i64;
        }
        libc::SYS_sendfile => {
            (from, placed, bytes) = (a[1] as i32, a[2] != 0, a[3] as i64);
            (reads, writes) = (of_descriptor(from, Use::Read), of_descriptor(fd, Use::Write));
        }
        libc::SYS_copy_file_range | libc::SYS_splice => {
            (placed, bytes) = (a[1] != 0, a[4] as i64);
            (reads, writes) = (of_descriptor(fd, Use::Read), of_descriptor(a[2] as i32, Use::Write));
        }
        libc::SYS_fstat => reads = of_descriptor(fd, size_by(fd)),
        libc::SYS_newfstatat if a[3] as i32 & libc::AT_EMPTY_PATH != 0 && is_empty(a[1]) => {
            reads = of_descriptor(fd, size_by(fd));
        }
        libc::SYS_statx if a[2] as i32 & libc::AT_EMPTY_PATH != 0 && is_empty(a[1]) => {
            reads = of_descriptor(fd, size_by(fd));
        }
        libc::SYS_lseek if !matches!(a[2] as i32, libc::SEEK_SET | libc::SEEK_CUR) => {
            reads = of_descriptor(fd, size_by(fd));
            bytes = a[1] as i64;
        }
        _ => return None,
    }
    if reads == NONE && writes == NONE {
        return None;
    }
    let mut op = match (reads, writes) {
        (reads, NONE) => Op::on(Kind::FILE_READ, reads).with(TRY),
        (NONE, writes) => Op::on(Kind::FILE_WRITE, writes),
        (reads, writes) if reads != writes => Op { obj2: reads, ..Op::on(Kind::FILE_COPY, writes) },
        (_, writes) => Op::on(Kind::FILE_WRITE, writes),
    };
    op.mask = if placed { PLACED } else { description(from).map_or(0, |d| *d) };
    op.arg = bytes;
    op.deadline = nr as u64 | (fd as u64 & 0xffff) << 16;
    let mut same = 0;
    if op.kind == Kind::FILE_READ {
        let place = match nr {
            libc::SYS_pread64 | libc::SYS_preadv => a[3] as i64,
            _ => raw!(libc::SYS_lseek, fd, 0, libc::SEEK_CUR),
        };
        same = mix(u64::from(reads) << 16 | nr as u64, place as u64) | 1;
    }
    Some((op, same))
}

/// A call by names: where directory and path are, whether a last link is followed, and what it does.
#[derive(Clone, Copy)]
struct Named {
    dir: i32,
    path: u64,
    follow: bool,
    /// It is opened.
    opens: bool,
    does: Does,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    /// Looks whether it is there.
    Looks,
    /// Looks at its size too.
    Stats,
    /// Looks it up and empties it.
    Truncates,
    /// Makes it if it is not there; empties it if it is, with true.
    Makes(bool),
    /// Takes it away.
    Removes,
    /// The new name in a rename.
    Replaces,
    /// Lists the directory of this descriptor.
    Lists,
}

/// What the names are in a call.
fn named(nr: i64, a: &[u64; 6]) -> [Option<Named>; 2] {
    let one = |dir: u64, path: u64, follow: bool, does| {
        [Some(Named { dir: dir as i32, path, follow, opens: false, does }), None]
    };
    let here = AT_FDCWD as u64;
    let two = |x: (u64, u64, Does), y: (u64, u64, Does), follow: bool| {
        let name =
            |(dir, path, does): (u64, u64, Does), follow| Named { dir: dir as i32, path, follow, opens: false, does };
        [Some(name(x, follow)), Some(name(y, false))]
    };
    let opens = |dir: u64, path: u64, flags: i32| {
        let exclusive = flags & libc::O_CREAT != 0 && flags & libc::O_EXCL != 0;
        let truncates = flags & libc::O_TRUNC != 0;
        let does = match () {
            () if flags & libc::O_TMPFILE == libc::O_TMPFILE => Does::Looks,
            () if flags & libc::O_CREAT != 0 => Does::Makes(truncates),
            () if truncates => Does::Truncates,
            () => Does::Looks,
        };
        let follow = flags & libc::O_NOFOLLOW == 0 && !exclusive;
        [Some(Named { dir: dir as i32, path, follow, opens: true, does }), None]
    };
    match nr {
        libc::SYS_open => opens(here, a[0], a[1] as i32),
        libc::SYS_openat => opens(a[0], a[1], a[2] as i32),
        libc::SYS_creat => opens(here, a[0], libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC),
        libc::SYS_truncate => one(here, a[0], true, Does::Truncates),
        libc::SYS_unlink => one(here, a[0], false, Does::Removes),
        libc::SYS_rmdir => one(here, a[0], false, Does::Removes),
        libc::SYS_unlinkat => one(a[0], a[1], false, Does::Removes),
        libc::SYS_mkdir | libc::SYS_mknod => one(here, a[0], false, Does::Makes(false)),
        libc::SYS_mkdirat | libc::SYS_mknodat => one(a[0], a[1], false, Does::Makes(false)),
        libc::SYS_symlink => one(here, a[1], false, Does::Makes(false)),
        libc::SYS_symlinkat => one(a[1], a[2], false, Does::Makes(false)),
        libc::SYS_link => two((here, a[0], Does::Looks), (here, a[1], Does::Makes(false)), false),
        libc::SYS_linkat => {
            let follow = a[4] as i32 & libc::AT_SYMLINK_FOLLOW != 0;
            two((a[0], a[1], Does::Looks), (a[2], a[3], Does::Makes(false)), follow)
        }
        libc::SYS_rename => two((here, a[0], Does::Removes), (here, a[1], Does::Replaces), false),
        libc::SYS_renameat | libc::SYS_renameat2 => {
            two((a[0], a[1], Does::Removes), (a[2], a[3], Does::Replaces), false)
        }
        libc::SYS_getdents | libc::SYS_getdents64 => one(a[0], 0, false, Does::Lists),
        libc::SYS_stat | libc::SYS_lstat | libc::SYS_newfstatat | libc::SYS_statx => {
            let Some((dir, path, follow)) = seen::named(nr, a) else { return [None, None] };
            one(dir.map_or(here, |at| a[at]), a[path], follow, Does::Stats)
        }
        _ => {
            let Some((dir, path, follow)) = seen::named(nr, a) else { return [None, None] };
            one(dir.map_or(here, |at| a[at]), a[path], follow, Does::Looks)
        }
    }
}

/// True if it uses names.
fn has_names(nr: i64) -> bool {
    named(nr, &[0; 6])[0].is_some()
}

/// Calls that use names.
fn names(nr: i64, a: &[u64; 6]) -> Option<(Op, u64)> {
    if !has_names(nr) {
        return None;
    }
    let mut request = Request { nr, args: *a, answer: None };
    let mut plan = Plan::NOTHING;
    let both = [&raw mut request as u64, &raw mut plan as u64];
    super::on_stack(both.as_ptr() as u64, plan_names);
    if !plan.is_visible() {
        return None;
    }
    let changed = plan.writes != NONE;
    let mut op = match () {
        () if plan.changes => Op::new(Kind::PATH_CHANGE),
        () if changed => Op::new(Kind::PATH_TRUNCATE),
        () => Op::new(Kind::PATH_LOOK),
    };
    if plan.names != 0 {
        op.obj = all_names();
    }
    op.obj2 = if changed { plan.writes } else { plan.reads };
    op.arg = plan.names;
    op.mask = plan.shown;
    op.deadline = nr as u64;
    Some((op.with(TRY), plan.same))
}

/// The object that stands for all names.
fn all_names() -> ObjId {
    let key = Key::new(vsrun_model::object::SHARED, ObjKind::PATHS, 0);
    match world().find_or_make(key, |_| {}) {
        Some(obj) => obj,
        None => crate::end::unsupported(&[b"the program shares more files than vsrun can hold"]),
    }
}

extern "C" fn plan_names(both: u64) {
    let (request, plan) = (load::<u64>(both), load::<u64>(both + 8));
    // SAFETY: `names` made both and waits; see `Cell` for the room.
    let (request, plan, room) =
        unsafe { (&*(request as *const Request), &mut *(plan as *mut Plan), &mut *super::ROOM.0.get()) };
    look_at(request, plan, room);
}

fn look_at(request: &Request, plan: &mut Plan, room: &mut Room) {
    let [first, second] = named(request.nr, &request.args);
    let removes_directory = request.nr == libc::SYS_rmdir
        || request.nr == libc::SYS_unlinkat && request.args[2] as i32 & libc::AT_REMOVEDIR != 0;
    // Whether the file that gets another name is there decides whether the other one is made.
    let mut there = true;
    for name in [first, second].into_iter().flatten() {
        there = use_name(&name, there, removes_directory, plan, &mut room.one);
    }
    plan.same = mix(plan.same, request.nr as u64) | 1;
    if plan.changes || plan.writes != NONE {
        plan.same = 0;
    }
}

/// True if there is something of that name.
fn use_name(name: &Named, there: bool, removes_directory: bool, plan: &mut Plan, place: &mut Place) -> bool {
    let mut seen = Path::new();
    if name.does == Does::Lists {
        if Stat::of_fd(name.dir).is_ok_and(|s| s.is_dir()) && name_of(name.dir).map(|n| seen = n).is_ok() {
            let mut own = Path::new();
            if own.set(&[seen.get()]).is_ok() && layer::leave_listing(&mut own).is_ok() {
                use_listing(own.get(), Use::Read, plan);
            }
        }
        return true;
    }
    if is_empty(name.path) {
        return false;
    }
    let found = place.find(name.dir, given(name.path), name.follow);
    let stat = if found.is_ok() { place.stat } else { None };
    if seen.set(&[place.at.get()]).is_err() || seen_as(&mut seen).is_err() {
        return false;
    }
    let shm = seen.get().starts_with(b"/dev/shm/");
    if place.side == Side::Outside && !shm || seen.get().first() != Some(&b'/') {
        return stat.is_some();
    }
    let changes = match name.does {
        Does::Makes(_) => found.is_ok() && stat.is_none(),
        Does::Removes => stat.is_some(),
        Does::Replaces => found.is_ok() && there,
        _ => false,
    };
    if changes && stat.is_some_and(|s| s.is_dir()) && !removes_directory {
        // Everything below has another name then.
        unexplored(|| Ok(copy_of(&seen)));
    }
    use_path(seen.get(), changes, plan);
    if found.is_err() {
        // It may come to be while this is pending.
        let rest = given(name.path);
        let last = rest.iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1);
        let mut whole = copy_of(&seen);
        if whole.join(&rest[last..]).is_ok() {
            use_path(whole.get(), false, plan);
        }
    }
    let makes = matches!(name.does, Does::Makes(_) | Does::Removes | Does::Replaces);
    if makes {
        let (_, dir) = seen.split();
        if changes {
            use_listing(&seen.get()[..dir], Use::Write, plan);
        } else {
            // By the time it is performed it may change something.
            add_shared((LISTING, hash(&seen.get()[..dir])), plan);
        }
        if removes_directory {
            use_listing(seen.get(), Use::Read, plan);
        }
        plan.changes |= plan.names != 0;
    }
    // What a directory lists may be settled when it is opened (tmpfs).
    if stat.is_some_and(|s| s.is_dir()) && name.opens {
        use_listing(seen.get(), Use::Read, plan);
    }
    let what = match name.does {
        Does::Stats => Some(Use::Read),
        Does::Truncates | Does::Makes(true) => Some(Use::Write),
        _ => None,
    };
    if let (Some(what), Some(id)) = (what, stat.as_ref().and_then(file)) {
        let obj = use_of(id, what, || Ok(copy_of(&seen)));
        match what {
            Use::Write => plan.writes = obj,
            _ => plan.reads = obj,
        }
    }
    if plan.is_visible() && plan.shown == NONE {
        let key = Key::new(vsrun_model::object::SHARED, ObjKind::PATHS, hash(seen.get()) | 1);
        let known = world().find(key);
        if let Some(obj) = known.or_else(|| world().make(key, |_| {})) {
            plan.shown = obj;
            if known.is_none() {
                call_it(obj, seen.get());
            }
        }
    }
    plan.same = mix(plan.same, hash(seen.get()));
    stat.is_some()
}

fn copy_of(path: &Path) -> Path {
    let mut copy = Path::new();
    let _fits = copy.set(&[path.get()]);
    copy
}

/// Notes the use of a name and of those on the way to it.
fn use_path(path: &[u8], changes: bool, plan: &mut Plan) {
    if arena().files.names_changed > 0 {
        let mut so_far = FNV;
        for (at, byte) in path.iter().enumerate() {
            if *byte == b'/' && at > 0 {
                let changed = |&row: &u32| arena().files.used_files[row].is_changed();
                if let Some(row) = arena().used_file((NAME, so_far)).filter(changed) {
                    use_row(row, Use::Read, plan);
                }
            }
            so_far = step(so_far, byte);
        }
    }
    let number = hash(path);
    use_hash((NAME, number), if changes { Use::Write } else { Use::Read }, plan);
}

fn use_listing(dir: &[u8], how: Use, plan: &mut Plan) {
    use_hash((LISTING, hash(dir)), how, plan);
}

fn use_hash(id: (u64, u64), how: Use, plan: &mut Plan) {
    let row = arena().used_file(id).or_else(|| arena().add_used_file(id, id.1));
    match row {
        Some(row) => use_row(row, how, plan),
        None => unexplored(|| Err(0)),
    }
}

/// A bit for the name or listing with these numbers.
fn bit(dev: u64, ino: u64) -> i64 {
    path_bit(if dev == LISTING { ino.rotate_left(7) } else { ino })
}

fn use_row(row: u32, how: Use, plan: &mut Plan) {
    if arena().use_file(local().cur, row, how) == Verdict::Visible {
        let used = &arena().files.used_files[row];
        plan.names |= bit(used.dev, used.ino);
    }
}

/// The name concerns the operation if it is shared by now.
fn add_shared(id: (u64, u64), plan: &mut Plan) {
    let row = arena().used_file(id).or_else(|| arena().add_used_file(id, id.1));
    if row.is_some_and(|row| arena().is_file_shared(row)) {
        plan.names |= bit(id.0, id.1);
    }
}

/// A mapping of a file: what is done to it there is not seen. Shared memory of other kinds has no name in the file system, or is in
/// /dev/shm.
pub fn mapped(fd: i32, prot: i32, shared: bool) {
    if !watches() {
        return;
    }
    let Some(id) = Stat::of_fd(fd).ok().and_then(|stat| file(&stat)) else { return };
    let Ok(name) = name_of(fd) else { return };
    if name.get().starts_with(b"/dev/shm/") {
        return;
    }
    let writes = shared && prot & libc::PROT_WRITE != 0;
    let mut visible = use_of(id, Use::Read, || Ok(copy_of(&name))) != NONE;
    if writes {
        visible |= use_of(id, Use::Write, || Ok(copy_of(&name))) != NONE;
    }
    if visible {
        unexplored(|| Ok(copy_of(&name)));
    }
}
