//! Calls that use names of files: which names they use and what they do to them, found by following their paths.

use vsrun_model::file::{path_bit, Use, Verdict, LISTING, NAME, SOCKET};
use vsrun_model::object::{NONE, SHARED};
use vsrun_model::op::TRY;
use vsrun_model::world::ONE_STEP;
use vsrun_model::{Key, Kind, ObjId, ObjKind, Op};

use super::layer::{self, file, seen_as};
use super::path::{given, hash, is_empty, mix, step, Path, Stat, FNV};
use super::room::{on_stack, room, Request, Room};
use super::states::{uses_program, Cell, Uses};
use super::uses::{all_names, call_it, name_of, of_descriptor, unexplored, use_of};
use super::walk::{Place, Side};
use super::{calls, seen};
use crate::gate::{arena, is_threaded, local, machine, model, world};
use crate::sys::{decimal, load};

/// Stands for a call that looks for a socket by a path, its first argument: shown as connect.
pub const CONNECT: i64 = libc::SYS_connect | 1 << 16;

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
    /// What it uses besides.
    cells: Uses,
    /// The file whose last name it takes away.
    removes: Option<(u64, u64)>,
    /// The first two names on its ways that others change, by their rows, or [`NONE`].
    on_way: [u32; 2],
}

impl Plan {
    const NOTHING: Plan = Plan {
        names: 0,
        changes: false,
        shown: NONE,
        writes: NONE,
        reads: NONE,
        same: 0,
        cells: Uses::NOTHING,
        removes: None,
        on_way: [NONE; 2],
    };

    /// A name that others change is on the way. Only whether there are two matters.
    fn passes(&mut self, row: u32) {
        if let Some(free) = self.on_way.iter_mut().find(|way| **way == row || **way == NONE) {
            *free = row;
        }
    }

    fn is_visible(&self) -> bool {
        self.names != 0 || self.writes != NONE || self.reads != NONE
    }
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
    counts: Counts,
    /// It is executed (`Read`), or opened for writing, for which it may be busy.
    busy: Option<Use>,
}

/// What it is to the number of names that the file at its end has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counts {
    Nothing,
    Tells,
    Changes,
}

impl Does {
    fn counts(self) -> Counts {
        match self {
            Does::Stats => Counts::Tells,
            Does::Removes | Does::Replaces => Counts::Changes,
            _ => Counts::Nothing,
        }
    }
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
    /// Looks up the directory of a file without a name, which it makes.
    MakesNameless,
    /// Takes it away.
    Removes,
    /// The new name in a rename.
    Replaces,
    /// Looks for what is bound to it.
    Connects,
    /// Sets permissions, owner, times or extended attributes; true: also who may look up what is below.
    Sets(bool),
    /// The same, of what this descriptor refers to.
    SetsOpen,
    /// Lists the directory of this descriptor.
    Lists,
}

/// What the names are in a call.
fn named(nr: i64, a: &[u64; 6]) -> [Option<Named>; 2] {
    let one = |dir: u64, path: u64, follow: bool, does| {
        [Some(Named { dir: dir as i32, path, follow, opens: false, does, counts: does.counts(), busy: None }), None]
    };
    let here = libc::AT_FDCWD as u64;
    let two = |x: (u64, u64, Does), y: (u64, u64, Does), follow: bool| {
        let name = |(dir, path, does): (u64, u64, Does), follow, counts| Named {
            dir: dir as i32,
            path,
            follow,
            opens: false,
            does,
            counts,
            busy: None,
        };
        // The file of a link has one name more then; that of a rename as many as before.
        let first = if x.2 == Does::Looks { Counts::Changes } else { Counts::Nothing };
        [Some(name(x, follow, first)), Some(name(y, false, y.2.counts()))]
    };
    let opens = |dir: u64, path: u64, flags: i32| {
        let exclusive = flags & libc::O_CREAT != 0 && flags & libc::O_EXCL != 0;
        let truncates = flags & libc::O_TRUNC != 0;
        let does = match () {
            () if flags & libc::O_TMPFILE == libc::O_TMPFILE => Does::MakesNameless,
            () if flags & libc::O_CREAT != 0 => Does::Makes(truncates),
            () if truncates => Does::Truncates,
            () => Does::Looks,
        };
        let follow = flags & libc::O_NOFOLLOW == 0 && !exclusive;
        let writes = flags & libc::O_PATH == 0 && flags & (libc::O_ACCMODE | libc::O_TRUNC) != 0;
        let busy = writes.then_some(Use::Write);
        [Some(Named { dir: dir as i32, path, follow, opens: true, does, counts: Counts::Nothing, busy }), None]
    };
    match nr {
        CONNECT => one(here, a[0], true, Does::Connects),
        libc::SYS_open => opens(here, a[0], a[1] as i32),
        libc::SYS_openat => opens(a[0], a[1], a[2] as i32),
        libc::SYS_creat => opens(here, a[0], libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC),
        libc::SYS_truncate => {
            let [first, second] = one(here, a[0], true, Does::Truncates);
            [first.map(|name| Named { busy: Some(Use::Write), ..name }), second]
        }
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
        // The directory may be gone by now.
        libc::SYS_getcwd => one(here, c".".as_ptr() as u64, true, Does::Looks),
        libc::SYS_getdents | libc::SYS_getdents64 => one(a[0], 0, false, Does::Lists),
        libc::SYS_fchmod | libc::SYS_fchown | libc::SYS_fsetxattr | libc::SYS_fremovexattr => {
            one(a[0], 0, false, Does::SetsOpen)
        }
        libc::SYS_utimensat | libc::SYS_futimesat if is_empty(a[1]) => one(a[0], 0, false, Does::SetsOpen),
        // What is executed is read too.
        libc::SYS_stat | libc::SYS_lstat | libc::SYS_newfstatat | libc::SYS_statx | libc::SYS_execveat => {
            let Some((dir, path, follow)) = seen::named(nr, a) else { return [None, None] };
            let [first, second] = one(dir.map_or(here, |at| a[at]), a[path], follow, Does::Stats);
            let busy = (nr == libc::SYS_execveat).then_some(Use::Read);
            [first.map(|name| Named { busy, ..name }), second]
        }
        _ => {
            if let Some((dir, path, follow)) = calls::attribute(nr, a) {
                return one(dir.map_or(here, |at| a[at]), a[path], follow, Does::Sets(calls::sets_access(nr)));
            }
            let Some((dir, path, follow)) = seen::named(nr, a) else { return [None, None] };
            one(dir.map_or(here, |at| a[at]), a[path], follow, Does::Looks)
        }
    }
}

/// Directory and path of each name in a call.
pub(super) fn names_of(nr: i64, a: &[u64; 6]) -> [Option<(i32, u64)>; 2] {
    named(nr, a).map(|name| name.map(|name| (name.dir, name.path)))
}

/// True if it uses names.
fn has_names(nr: i64) -> bool {
    named(nr, &[0; 6])[0].is_some()
}

/// Calls that use names.
pub fn names(nr: i64, a: &[u64; 6]) -> Option<(Op, u64)> {
    if !has_names(nr) {
        return None;
    }
    let mut request = Request { nr, args: *a, answer: None };
    let mut plan = Plan::NOTHING;
    let both = [&raw mut request as u64, &raw mut plan as u64];
    on_stack(both.as_ptr() as u64, plan_names);
    local().removes = plan.removes;
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

extern "C" fn plan_names(both: u64) {
    let (request, plan) = (load::<u64>(both), load::<u64>(both + 8));
    // SAFETY: `names` made both and waits.
    let (request, plan) = unsafe { (&*(request as *const Request), &mut *(plan as *mut Plan)) };
    look_at(request, plan, room());
}

fn look_at(request: &Request, plan: &mut Plan, room: &mut Room) {
    let [first, second] = named(request.nr, &request.args);
    let removes_directory = request.nr == libc::SYS_rmdir
        || request.nr == libc::SYS_unlinkat && request.args[2] as i32 & libc::AT_REMOVEDIR != 0;
    // Whether the file that gets another name is there decides whether the other one is made.
    let mut there = true;
    if let Some(name) = first {
        there = use_name(&name, there, removes_directory, plan, &mut room.one);
    }
    if let Some(name) = second {
        use_name(&name, there, removes_directory, plan, &mut room.two);
    }
    if request.nr == libc::SYS_chdir {
        plan.cells.own(Cell::Directory, Use::Write);
    }
    plan.names |= plan.cells.set;
    plan.changes |= plan.cells.changes;
    if plan.shown == NONE {
        plan.shown = plan.cells.shown;
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
    if name.does == Does::SetsOpen {
        if name_of(name.dir).map(|n| seen = n).is_ok() && seen.get().first() == Some(&b'/') {
            use_path(seen.get(), true, plan);
            plan.changes |= plan.names != 0;
            plan.writes = of_descriptor(name.dir, Use::Write);
        }
        return true;
    }
    if is_empty(name.path) {
        return false;
    }
    if name.dir == libc::AT_FDCWD && given(name.path).first() != Some(&b'/') {
        plan.cells.own(Cell::Directory, Use::Read);
    }
    if matches!(name.does, Does::Makes(_) | Does::MakesNameless) {
        plan.cells.own(Cell::Umask, Use::Read);
    }
    plan.cells.permitted();
    let found = place.find(name.dir, given(name.path), name.follow);
    // The call itself will follow the same path, at once.
    place.keep(name.dir, given(name.path), name.follow);
    let stat = if found.is_ok() { place.stat } else { None };
    if seen.set(&[place.at.get()]).is_err() || seen_as(&mut seen).is_err() {
        return false;
    }
    for &link in &place.links[..place.followed] {
        if let Some(row) = use_hash((NAME, link), Use::Read, plan) {
            plan.passes(row);
        }
    }
    if tells_of_others(seen.get(), name.opens) {
        unexplored(|| shown_below_proc(seen.get()));
    }
    let shm = seen.get().starts_with(b"/dev/shm/");
    if place.side == Side::Outside && !shm || seen.get().first() != Some(&b'/') {
        return stat.is_some();
    }
    let changes = match name.does {
        Does::Makes(_) => found.is_ok() && stat.is_none(),
        Does::Removes | Does::Sets(_) => stat.is_some(),
        Does::Replaces => found.is_ok() && there,
        _ => false,
    };
    if changes && stat.is_some_and(|s| s.is_dir()) {
        machine().note_directory_change();
    }
    let below = !removes_directory && name.does != Does::Sets(false);
    if changes && stat.is_some_and(|s| s.is_dir()) && below {
        // Everything below has another name then, or is there for others.
        unexplored(|| Ok(seen.copy()));
    }
    if name.does == Does::Connects {
        // That it is bound the model knows.
        use_hash((SOCKET, hash(seen.get())), Use::Read, plan);
    } else {
        use_path(seen.get(), changes, plan);
    }
    if found.is_err() && name.does != Does::Connects {
        // It may come to be while this is pending.
        let rest = given(name.path);
        let last = rest.iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1);
        let mut whole = seen.copy();
        if whole.join(&rest[last..]).is_ok() {
            use_path(whole.get(), false, plan);
        }
    }
    let makes = matches!(name.does, Does::Makes(_) | Does::Removes | Does::Replaces);
    if makes {
        let socket = (SOCKET, hash(seen.get()));
        if changes && (name.does == Does::Replaces || stat.is_some_and(|s| s.kind() == libc::S_IFSOCK)) {
            use_hash(socket, Use::Write, plan);
        } else {
            add_shared(socket, plan);
        }
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
    if matches!(name.does, Does::Sets(_)) {
        plan.changes |= plan.names != 0;
    }
    if let Some(id) = stat.as_ref().filter(|_| name.counts != Counts::Nothing).and_then(file) {
        let what = if name.counts == Counts::Changes { Use::Write } else { Use::Read };
        let shared = plan.cells.links(id, || Ok(seen.copy()), what);
        if what == Use::Write && shared {
            // The count is changed before the name (fs/namei.c: vfs_unlink, vfs_link; simple_unlink and the like).
            model().never_comes(ONE_STEP);
        }
        if name.counts == Counts::Changes && makes && stat.is_some_and(|s| s.links() == 1) {
            plan.removes = Some(id);
        }
    }
    if let (Some(what), Some(id)) = (name.busy, stat.as_ref().and_then(file)) {
        uses_program(id, || Ok(seen.copy()), what, what == Use::Read, &mut plan.cells);
    }
    // It tells when something in it was made or taken away, which is not explored.
    if name.does == Does::Stats && stat.is_some_and(|s| s.is_dir()) {
        use_listing(seen.get(), Use::Size, plan);
    }
    // What a directory lists may be settled when it is opened (tmpfs).
    if stat.is_some_and(|s| s.is_dir()) && name.opens {
        use_listing(seen.get(), Use::Read, plan);
    }
    let what = match name.does {
        Does::Stats => Some(Use::Read),
        Does::Truncates | Does::Makes(true) | Does::Sets(_) => Some(Use::Write),
        _ => None,
    };
    if let (Some(what), Some(id)) = (what, stat.as_ref().and_then(file)) {
        let obj = use_of(id, what, || Ok(seen.copy()));
        match what {
            Use::Write => plan.writes = obj,
            _ => plan.reads = obj,
        }
    }
    if plan.is_visible() && plan.shown == NONE {
        let key = Key::new(SHARED, ObjKind::PATHS, hash(seen.get()) | 1);
        let known = world().find(key);
        if let Some(obj) = known.or_else(|| model().object_new(key, 0)) {
            plan.shown = obj;
            if known.is_none() {
                call_it(obj, seen.get());
            }
        }
    }
    plan.same = mix(plan.same, hash(seen.get()));
    stat.is_some()
}

/// It lies below /proc and tells what other threads and processes of the program do: who is there, what they have open, their state. Who
/// comes first is not explored. `opens`: it is opened, not just looked up.
fn tells_of_others(path: &[u8], opens: bool) -> bool {
    /// What a process alone decides about itself, or what is not about its threads.
    const OWN: [&[u8]; 20] = [
        b"auxv",
        b"cgroup",
        b"clear_refs",
        b"cmdline",
        b"coredump_filter",
        b"cpuset",
        b"environ",
        b"exe",
        b"loginuid",
        b"maps",
        b"map_files",
        b"mem",
        b"mountinfo",
        b"mounts",
        b"mountstats",
        b"ns",
        b"oom_score_adj",
        b"personality",
        b"smaps",
        b"smaps_rollup",
    ];
    /// What others decide even where the process has one thread.
    const ABOUT: [&[u8]; 4] = [b"children", b"stat", b"status", b"task"];
    let Some(below) = path.strip_prefix(b"/proc") else { return false };
    let mut parts = below.split(|&b| b == b'/').filter(|part| !part.is_empty());
    let Some(first) = parts.next() else { return below.is_empty() && opens };
    if below[0] != b'/' || !first.iter().all(u8::is_ascii_digit) {
        return false;
    }
    if *first != *decimal(real_id()) {
        return true;
    }
    match parts.next() {
        None => false,
        Some(name) if OWN.contains(&name) => false,
        Some(name) => is_threaded() || ABOUT.contains(&name),
    }
}

/// What is asked below /proc tells whether another process of the program is there, or what it does.
pub fn others_told() {
    if layer::watches() {
        unexplored(|| shown_below_proc(b"/proc/0"));
    }
}

/// What the kernel knows this process as.
fn real_id() -> i64 {
    world().procs.get(local().pid).map_or(0, |process| process.own.real_pid.into())
}

/// The name without the number that the kernel has for the process.
fn shown_below_proc(path: &[u8]) -> Result<Path, i64> {
    let digit = |b: &u8| b.is_ascii_digit();
    let below = path.get(b"/proc/".len()..).unwrap_or(&[]);
    let rest = below.iter().position(|b| !digit(b)).map_or(b"".as_slice(), |at| &below[at..]);
    let mut name = Path::new();
    let front: &[u8] = if below.is_empty() { b"/proc" } else { b"/proc/PID" };
    name.set(&[front, rest])?;
    Ok(name)
}

/// Notes the use of a name and of those on the way to it.
fn use_path(path: &[u8], changes: bool, plan: &mut Plan) {
    if arena().files.names_changed > 0 {
        let mut so_far = FNV;
        for (at, byte) in path.iter().enumerate() {
            if *byte == b'/' && at > 0 {
                let changed = |&row: &u32| arena().files.used_files[row].is_changed();
                let row = arena().used_file((NAME, so_far)).filter(changed);
                if let Some(row) = row.filter(|&row| use_row(row, Use::Read, plan)) {
                    plan.passes(row);
                }
            }
            so_far = step(so_far, byte);
        }
    }
    let number = hash(path);
    let last = use_hash((NAME, number), if changes { Use::Write } else { Use::Read }, plan);
    let [first, second] = plan.on_way;
    if second != NONE || first != NONE && last.is_some_and(|row| row != first) {
        // The kernel looks one up after the other.
        model().never_comes(ONE_STEP);
    }
}

fn use_listing(dir: &[u8], how: Use, plan: &mut Plan) {
    use_hash((LISTING, hash(dir)), how, plan);
}

/// Its row, if that is an operation. The set of names in `plan` does not tell: another name may have the same bit.
fn use_hash(id: (u64, u64), how: Use, plan: &mut Plan) -> Option<u32> {
    let row = arena().used_file(id).or_else(|| machine().add_used_file(id, id.1));
    if row.is_none() {
        unexplored(|| Err(0));
    }
    row.filter(|&row| use_row(row, how, plan))
}

/// A bit for the name or listing with these numbers.
fn bit(dev: u64, ino: u64) -> i64 {
    path_bit(if dev == LISTING { ino.rotate_left(7) } else { ino })
}

/// True if that is an operation.
fn use_row(row: u32, how: Use, plan: &mut Plan) -> bool {
    match machine().use_file(local().cur, row, how) {
        Verdict::Visible => {
            let used = &arena().files.used_files[row];
            plan.names |= bit(used.dev, used.ino);
            return true;
        }
        Verdict::Unexplored => unexplored(|| Err(0)),
        Verdict::Passes | Verdict::Logged => {}
    }
    false
}

/// The name concerns the operation if it is shared by now.
fn add_shared(id: (u64, u64), plan: &mut Plan) {
    let row = arena().used_file(id).or_else(|| machine().add_used_file(id, id.1));
    if row.is_some_and(|row| machine().is_file_shared(row)) {
        plan.names |= bit(id.0, id.1);
    }
}
