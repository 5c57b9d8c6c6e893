//! POSIX message queues: the arguments of the calls; what they mean is the model's. No queue of the program reaches the
//! kernel.

use vsrun_model::address::{NETLINK, NOTICE};
use vsrun_model::channel::ChanId;
use vsrun_model::fd::{DescId, DescKind, ACCESS, NONBLOCK, READ_ONLY, READ_WRITE, WRITE_ONLY};
use vsrun_model::mqueue::{Notice, BY_SOCKET, NO_SIGNAL, PRIORITIES};
use vsrun_model::msg::Queue;
use vsrun_model::op::TRY;
use vsrun_model::socket::SockId;
use vsrun_model::{Kind, Op, NONE};

use super::{fd, files, msg, socket, sync, time};
use crate::gate::{self, end, inject, local, machine, me, model, note_passed, signal, world};
use crate::sys::errno::*;
use crate::sys::{bytes, bytes_mut, copy_out, cstr, decimal, limit, load, raw, store, store_if, writable, zero};

const NAME_MAX: usize = 255;
/// Limits for those with CAP_SYS_RESOURCE (include/linux/ipc_namespace.h).
const HARD_MESSAGES: i64 = 65536;
const HARD_BYTES: i64 = 16 << 20;
/// What the kernel counts for a message beside its bytes, and for a priority in use (struct msg_msg, struct
/// posix_msg_tree_node).
const PER_MESSAGE: u64 = 48;
const PER_PRIORITY: u64 = 48;

/// mq_open, mq_unlink, mq_timedsend, mq_timedreceive, mq_notify, mq_getsetattr.
pub fn call(nr: i64, a: [u64; 6]) -> i64 {
    let outcome = match nr {
        libc::SYS_mq_open => open(a[0], a[1] as i32, a[2] as u32, a[3]),
        libc::SYS_mq_unlink => unlink(a[0]),
        libc::SYS_mq_timedsend => send(a[0], a[1], a[2], a[3] as u32, a[4]),
        libc::SYS_mq_timedreceive => receive(a[0], a[1], a[2], a[3], a[4]),
        libc::SYS_mq_notify => notify(a[0], a[1]),
        _ => attributes(a[0], a[1], a[2]),
    };
    outcome.unwrap_or_else(|error| error)
}

/// A name as glibc passes it on, without its slash; in the model it has one.
struct QueueName {
    bytes: [u8; NAME_MAX + 1],
    len: usize,
}

impl QueueName {
    fn read(at: u64) -> Result<QueueName, i64> {
        let name = cstr(at, 4096);
        match name {
            b"" => return Err(ENOENT),
            b"." | b".." => return Err(EACCES),
            _ if name.len() >= 4096 => return Err(ENAMETOOLONG),
            _ if name.contains(&b'/') => return Err(EACCES),
            _ if name.len() > NAME_MAX => return Err(ENAMETOOLONG),
            _ => {}
        }
        let mut bytes = [b'/'; NAME_MAX + 1];
        bytes[1..=name.len()].copy_from_slice(name);
        Ok(QueueName { bytes, len: name.len() + 1 })
    }

    fn get(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

fn open(name: u64, flags: i32, mode: u32, attr: u64) -> Result<i64, i64> {
    let asked = (attr != 0).then(|| (load::<i64>(attr + 8), load::<i64>(attr + 16)));
    let name = QueueName::read(name)?;
    fd::needs_number()?;
    if flags & libc::O_CREAT != 0 {
        files::queue_mask();
    }
    gate::pass(Op::on(Kind::NAME, sync::names()));
    let queue = match world().mqueue_named(name.get()) {
        Some(_) if flags & libc::O_CREAT != 0 && flags & libc::O_EXCL != 0 => return Err(EEXIST),
        Some(queue) => {
            permits(queue, flags as u32 & ACCESS)?;
            queue
        }
        None if flags & libc::O_CREAT == 0 => return Err(ENOENT),
        None => {
            let mask = raw!(libc::SYS_umask, 0);
            raw!(libc::SYS_umask, mask);
            make(&name, asked, mode & 0o7777 & !(mask as u32))?
        }
    };
    const FORGOTTEN: i32 = libc::O_CREAT | libc::O_EXCL | libc::O_NOCTTY | libc::O_TRUNC | libc::O_CLOEXEC;
    let desc = fd::new_desc(DescKind::QUEUE, (flags & !FORGOTTEN) as u32, queue, queue);
    // Where the next read of its description begins.
    model().desc_set_extra(desc, 0);
    Ok(fd::install(desc, true))
}

/// What the kernel says to the owner; all processes of a world have one user.
fn permits(queue: ChanId, access: u32) -> Result<(), i64> {
    let wanted = match access {
        READ_ONLY => 4,
        WRITE_ONLY => 2,
        READ_WRITE => 6,
        _ => return Err(EINVAL),
    };
    let lacks = wanted & !(world().mqueue(queue).mode >> 6) != 0;
    if lacks && raw!(libc::SYS_geteuid) != 0 {
        return Err(EACCES);
    }
    Ok(())
}

/// A new queue with that name; `asked` are the number and the size of its messages.
fn make(name: &QueueName, asked: Option<(i64, i64)>, mode: u32) -> Result<ChanId, i64> {
    let privileged = msg::has_capability(msg::CAP_SYS_RESOURCE);
    let (most, largest) =
        (setting(c"/proc/sys/fs/mqueue/msg_max", 10), setting(c"/proc/sys/fs/mqueue/msgsize_max", 8192));
    let (messages, size) = match asked {
        Some((messages, size)) => {
            let (most, largest) = if privileged { (HARD_MESSAGES, HARD_BYTES) } else { (most, largest) };
            if messages <= 0 || size <= 0 || messages > most || size > largest {
                return Err(EINVAL);
            }
            (messages, size)
        }
        None => (
            setting(c"/proc/sys/fs/mqueue/msg_default", 10).min(most),
            setting(c"/proc/sys/fs/mqueue/msgsize_default", 8192).min(largest),
        ),
    };
    let charge = |messages: u64, size: u64| {
        messages * PER_MESSAGE + messages.min(PRIORITIES.into()) * PER_PRIORITY + messages * size
    };
    let mine = charge(messages as u64, size as u64);
    let (others, count) =
        world().mqueues().fold((0, 0), |(sum, n), q| (sum + charge(q.limit, q.longest.into()), n + 1));
    let too_many = !privileged && count >= setting(c"/proc/sys/fs/mqueue/queues_max", 256);
    if mine + others > limit(libc::RLIMIT_MSGQUEUE) || too_many {
        // Whether another queue is gone by now the order of steps decides, which do not depend on this one.
        if count > 0 {
            note_passed(libc::SYS_mq_open);
        }
        return Err(if too_many { ENOSPC } else { EMFILE });
    }
    let queue = Queue { limit: messages as u64, longest: size as u32, mode, size: TEXT_SIZE, ..Queue::default() };
    let cur = local().cur;
    match model().mqueue_new(cur, queue) {
        Some(id) if model().mqueue_call(id, name.get()) => Ok(id),
        _ => end::no_room(&[b"the program uses more message queues or names than vsrun can hold"]),
    }
}

/// A setting of the system; `usual` if it cannot be read.
fn setting(path: &core::ffi::CStr, usual: i64) -> i64 {
    let mut text = [0u8; 24];
    let file = raw!(libc::SYS_open, path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
    if file < 0 {
        return usual;
    }
    let n = raw!(libc::SYS_read, file, text.as_mut_ptr(), text.len());
    raw!(libc::SYS_close, file);
    let digits = text[..n.max(0) as usize].iter().take_while(|b| b.is_ascii_digit());
    digits.fold(None, |n: Option<i64>, b| Some(n.unwrap_or(0) * 10 + i64::from(b - b'0'))).unwrap_or(usual)
}

fn unlink(name: u64) -> Result<i64, i64> {
    let name = QueueName::read(name)?;
    gate::pass(Op::on(Kind::NAME, sync::names()));
    match model().mqueue_unlink(name.get()) {
        true => Ok(0),
        false => Err(ENOENT),
    }
}

/// The description that `fd` names, and its queue.
fn find(fd: u64) -> Result<(DescId, ChanId), i64> {
    let desc = fd::find(fd).filter(|&desc| world().descs[desc].kind == DescKind::QUEUE).ok_or(EBADF)?;
    Ok((desc, world().descs[desc].input))
}

fn access(desc: DescId) -> u32 {
    world().descs[desc].flags & ACCESS
}

/// The deadline of a call: an absolute time. `None`: it waits for ever.
fn deadline(at: u64) -> Result<Option<u64>, i64> {
    match at {
        0 => Ok(None),
        at => time::timespec(at).map(|ns| Some(time::absolute(libc::CLOCK_REALTIME, ns))).ok_or(EINVAL),
    }
}

/// How an operation on `desc` waits, or fails because it may be interrupted.
fn waiting(op: Op, desc: DescId, deadline: Option<u64>) -> Op {
    match deadline {
        _ if world().descs[desc].flags & NONBLOCK != 0 => op.with(TRY),
        Some(at) => op.until(at),
        None => op,
    }
}

fn send(fd: u64, at: u64, len: u64, priority: u32, timeout: u64) -> Result<i64, i64> {
    let deadline = deadline(timeout)?;
    if priority >= PRIORITIES {
        return Err(EINVAL);
    }
    let (desc, queue) = find(fd)?;
    if !matches!(access(desc), WRITE_ONLY | READ_WRITE) {
        return Err(EBADF);
    }
    if len > world().mqueue(queue).longest.into() {
        return Err(EMSGSIZE);
    }
    let contents = if len > 0 { bytes(at, len as usize) } else { &[] };
    let op = waiting(world().mq_send_op(queue, priority, len as u32), desc, deadline);
    if !op.has(TRY) {
        inject::interrupts();
    }
    if !model().stage(local().cur, contents) {
        end::no_room(&[b"the program has more bytes in message queues than vsrun can hold"]);
    }
    Ok(fd::pass(desc, op, |result| {
        if let Some(notice) = (result == 0).then(|| model().mqueue_notice(queue)).flatten() {
            if world().mqueue_awaited(queue) {
                // That the one who waits gets the message, and the notice stays for the next one, is not explored.
                note_passed(libc::SYS_mq_notify);
            }
            tell(notice);
        }
    }))
}

/// The process that asked for it is told of a message by its signal.
fn tell(notice: Notice) {
    if notice.signal <= 0 {
        return;
    }
    machine().expose_to_timers(notice.process);
    signal::send_own(notice.process, NONE, notice.signal, libc::SI_MESGQ, notice.value);
}

fn receive(fd: u64, at: u64, size: u64, priority: u64, timeout: u64) -> Result<i64, i64> {
    let deadline = deadline(timeout)?;
    let (desc, queue) = find(fd)?;
    if !matches!(access(desc), READ_ONLY | READ_WRITE) {
        return Err(EBADF);
    }
    if size < world().mqueue(queue).longest.into() {
        return Err(EMSGSIZE);
    }
    let op = waiting(world().channel_op(Kind::MQ_RECEIVE, queue, 0), desc, deadline);
    if !op.has(TRY) {
        inject::interrupts();
    }
    let mut got = 0;
    let result = fd::pass(desc, op, |result| {
        if result < 0 {
            return;
        }
        let [len, of, _] = me().out;
        got = len;
        // The message is gone all the same.
        let missing = |at: u64, n: u64| writable(at, n) < n;
        if missing(at, len as u64) || priority != 0 && missing(priority, 4) {
            model().unstage(local().cur, &mut []);
            got = EFAULT;
            return;
        }
        model().unstage(local().cur, if len > 0 { bytes_mut(at, len as usize) } else { &mut [] });
        store_if(priority, of as u32);
    });
    Ok(if result < 0 { result } else { got })
}

/// mq_notify: `event` is a sigevent, or 0 to take the request back.
fn notify(fd: u64, event: u64) -> Result<i64, i64> {
    let p = local().pid;
    let (mut request, mut by_socket) = (None, None);
    if event != 0 {
        let (value, number, how): (u64, i32, i32) = (load(event), load(event + 8), load(event + 12));
        match how {
            libc::SIGEV_NONE => request = Some((NO_SIGNAL, value)),
            libc::SIGEV_SIGNAL if (0..=64).contains(&number) => request = Some((number, value)),
            libc::SIGEV_THREAD => by_socket = Some((load::<[u8; NOTICE]>(value), netlink_socket(number as u64)?)),
            _ => return Err(EINVAL),
        }
    }
    let (desc, queue) = find(fd)?;
    if event == 0 {
        return Ok(fd::take_request_back(desc, queue));
    }
    fd::control(desc);
    if let Some((cookie, socket)) = by_socket {
        return Ok(model().mqueue_ask_by_socket(queue, p, socket, cookie));
    }
    let result = model().mqueue_ask(queue, p, request);
    if result == 0 && request.is_some_and(|(number, _)| number > 0) {
        machine().expose_to_timers(p);
    }
    Ok(result)
}

/// The netlink socket by which libc is told, to start a thread (net/netlink/af_netlink.c, netlink_getsockbyfd).
fn netlink_socket(number: u64) -> Result<SockId, i64> {
    let Some(desc) = fd::find(number) else { return Err(if fd::is_open(number) { ENOTSOCK } else { EBADF }) };
    if world().descs[desc].kind != DescKind::SOCKET {
        return Err(ENOTSOCK);
    }
    let s = socket::of(desc);
    if world().sockets[s].domain != NETLINK {
        return Err(EINVAL);
    }
    Ok(s)
}

/// mq_getsetattr: the kernel's struct mq_attr begins with flags, messages, size, messages in the queue (longs).
fn attributes(fd: u64, new: u64, old: u64) -> Result<i64, i64> {
    let flags = if new == 0 { None } else { Some(load::<i64>(new)) };
    if flags.is_some_and(|flags| flags & !i64::from(NONBLOCK) != 0) {
        return Err(EINVAL);
    }
    let (desc, queue) = find(fd)?;
    fd::control(desc);
    if old != 0 {
        let record = world().mqueue(queue);
        zero(old, 64);
        store(old, u64::from(world().descs[desc].flags & NONBLOCK));
        store(old + 8, record.limit);
        store(old + 16, u64::from(record.longest));
        store(old + 24, u64::from(world().channels[queue].messages));
    }
    if let Some(flags) = flags {
        model().desc_set_flags(desc, world().descs[desc].flags & !NONBLOCK | flags as u32 & NONBLOCK);
    }
    Ok(0)
}

/// Call `nr` on the descriptor of a queue. `None`: what holds for all descriptors.
pub fn on(nr: i64, desc: DescId, a: [u64; 6]) -> Option<i64> {
    let can_read = matches!(access(desc), READ_ONLY | READ_WRITE);
    let can_write = matches!(access(desc), WRITE_ONLY | READ_WRITE);
    Some(match nr {
        libc::SYS_read if can_read => read(desc, a[1], a[2], None),
        libc::SYS_pread64 if can_read => read(desc, a[1], a[2], Some(a[3])),
        libc::SYS_read | libc::SYS_pread64 | libc::SYS_readv | libc::SYS_preadv if !can_read => EBADF,
        libc::SYS_write | libc::SYS_writev | libc::SYS_pwrite64 if can_write => EINVAL,
        libc::SYS_write | libc::SYS_writev | libc::SYS_pwrite64 => EBADF,
        libc::SYS_lseek if matches!(a[2] as i32, libc::SEEK_SET | libc::SEEK_CUR) => {
            let base = if a[2] as i32 == libc::SEEK_CUR { i64::from(world().descs[desc].extra) } else { 0 };
            match u32::try_from(base.saturating_add(a[1] as i64)) {
                Ok(to) => {
                    model().desc_set_extra(desc, to);
                    to.into()
                }
                Err(_) => EINVAL,
            }
        }
        libc::SYS_fchmod => {
            fd::control(desc);
            model().mqueue_set_mode(world().descs[desc].input, a[1] as u32 & 0o7777);
            0
        }
        libc::SYS_ioctl if a[1] & 0xffff_ffff == libc::FIONREAD => {
            fd::control(desc);
            store(a[2], (size(desc).wrapping_sub(u64::from(world().descs[desc].extra))) as i32);
            0
        }
        libc::SYS_ftruncate => truncate(desc, a, can_write),
        libc::SYS_fchown => give(desc, a),
        libc::SYS_lseek | libc::SYS_readv | libc::SYS_preadv | libc::SYS_preadv2 => fd::refuse(nr, desc, a),
        libc::SYS_pwritev2 | libc::SYS_fsetxattr => fd::refuse(nr, desc, a),
        _ => return None,
    })
}

/// Bytes that a queue has at first, for fstat (ipc/mqueue.c, FILENT_SIZE).
const TEXT_SIZE: u64 = 80;
/// Set-user-id and set-group-id bits: the kernel takes them away where the file changes.
const SET_IDS: u32 = 0o6000;

/// Bytes that a queue is said to have, for fstat.
pub fn size(desc: DescId) -> u64 {
    world().mqueue(world().descs[desc].input).size
}

/// ftruncate: what the file of a queue says does not change, nor who may send (simple_setattr in fs/libfs.c). There is no O_LARGEFILE.
fn truncate(desc: DescId, a: [u64; 6], can_write: bool) -> i64 {
    const MOST: u64 = i32::MAX as u64;
    if a[1] > MOST || !can_write {
        return EINVAL;
    }
    fd::control(desc);
    let own_ids = mode(desc) & SET_IDS != 0;
    if own_ids || a[1] > size(desc) && limit(libc::RLIMIT_FSIZE) < a[1] {
        fd::refuse(libc::SYS_ftruncate, desc, a);
    }
    model().mqueue_set_size(world().descs[desc].input, a[1]);
    0
}

/// fchown: to whom it belongs already it may be given.
fn give(desc: DescId, a: [u64; 6]) -> i64 {
    let same = |asked: u64, own: i64| asked as u32 == u32::MAX || i64::from(asked as u32) == own;
    if !same(a[1], raw!(libc::SYS_geteuid)) || !same(a[2], raw!(libc::SYS_getegid)) || mode(desc) & SET_IDS != 0 {
        fd::refuse(libc::SYS_fchown, desc, a);
    }
    fd::control(desc);
    0
}

/// Permission bits of a queue, for fstat.
pub fn mode(desc: DescId) -> u32 {
    libc::S_IFREG | world().mqueue(world().descs[desc].input).mode
}

/// The text that describes a queue; without a place, from where the last read ended.
fn read(desc: DescId, at: u64, size: u64, place: Option<u64>) -> i64 {
    fd::control(desc);
    let id = world().descs[desc].input;
    let record = world().mqueue(id);
    let held: u64 = world().mqueue_messages(id).map(|(_, len)| u64::from(len)).sum();
    let process = world().procs.get(record.notified.wrapping_sub(1)).map_or(0, |p| p.vpid);
    let told = record.notified != 0;
    let how = match record.signal {
        NO_SIGNAL if told => libc::SIGEV_NONE,
        BY_SOCKET if told => libc::SIGEV_THREAD,
        _ => libc::SIGEV_SIGNAL,
    };
    let mut text = [b' '; 60];
    let fields: [(&[u8], i64, usize); 4] = [
        (b"QSIZE:", held as i64, 10),
        (b" NOTIFY:", how.into(), 5),
        (b" SIGNO:", if told { record.signal.max(0).into() } else { 0 }, 5),
        (b" NOTIFY_PID:", process.into(), 6),
    ];
    let mut end = 0;
    for (label, value, width) in fields {
        text[end..end + label.len()].copy_from_slice(label);
        end += label.len();
        let digits = decimal(value);
        let n = digits.len().min(width);
        text[end..end + n].copy_from_slice(&digits[..n]);
        end += width;
    }
    text[end] = b'\n';
    let text = &text[..=end];
    let from = place.unwrap_or(u64::from(world().descs[desc].extra)).min(text.len() as u64) as usize;
    let n = (text.len() - from).min(size as usize);
    if !copy_out(at, &text[from..from + n]) {
        return EFAULT;
    }
    if place.is_none() {
        model().desc_set_extra(desc, world().descs[desc].extra + n as u32);
    }
    n as i64
}
