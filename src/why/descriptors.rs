//! Descriptors: what they are, and which processes have the other end.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use super::locks;
use super::proc::numbers;
use crate::runtime::tracee::unix_peers;

/// What is waited for at a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Something to read, or a connection.
    In,
    /// Room to write.
    Out,
}

/// What a descriptor is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Pipe(u64),
    Socket(u64),
    Event(u64),
    /// A named pipe, by device and inode.
    Fifo(u64, u64),
    Epoll,
    /// What only the world outside, the clock or a signal makes ready; in words.
    Outside(&'static str),
    /// A file or something else that is not waited for in a way that is known.
    Other,
}

/// Who can end a wait at a descriptor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ends {
    /// What is waited for: `data in the pipe at descriptor 3`.
    pub what: String,
    /// How the processes stand to it: `written by`.
    pub via: &'static str,
    /// The processes that have the other end.
    pub processes: Vec<i32>,
    /// Somebody else may: who.
    pub outside: Option<String>,
}

/// A descriptor of a process.
struct Held {
    pid: i32,
    fd: i32,
    link: String,
}

/// All descriptors that can be seen.
pub(super) struct Descriptors {
    all: Vec<Held>,
    /// Processes whose descriptors must not be read.
    pub hidden: usize,
    peers: Option<BTreeMap<u64, u64>>,
}

fn is_forbidden(dir: &str) -> bool {
    fs::read_dir(dir).is_err_and(|e| e.kind() == std::io::ErrorKind::PermissionDenied)
}

fn link_of(pid: i32, fd: i32) -> Option<String> {
    Some(fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()?.to_string_lossy().into_owned())
}

/// The number in `pipe:[123]`.
fn inode(link: &str, kind: &str) -> Option<u64> {
    link.strip_prefix(kind)?.strip_prefix(":[")?.strip_suffix(']')?.parse().ok()
}

fn info(pid: i32, fd: i32) -> String {
    fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).unwrap_or_default()
}

/// A field of `fdinfo`.
fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| Some(line.strip_prefix(name)?.trim()))
}

/// Whether it can be read from, and written to.
fn ways(pid: i32, fd: i32) -> (bool, bool) {
    let flags = field(&info(pid, fd), "flags:").and_then(|text| u64::from_str_radix(text, 8).ok()).unwrap_or(2);
    (flags & 3 != 1, flags & 3 != 0)
}

/// What descriptor `fd` of process `pid` is; `None`: it is closed, or must not be seen.
pub(super) fn kind(pid: i32, fd: i32) -> Option<Kind> {
    let link = link_of(pid, fd)?;
    if let Some(inode) = inode(&link, "pipe") {
        return Some(Kind::Pipe(inode));
    }
    if let Some(inode) = inode(&link, "socket") {
        return Some(Kind::Socket(inode));
    }
    Some(match link.as_str() {
        "anon_inode:[eventfd]" => Kind::Event(event_id(pid, fd)?),
        "anon_inode:[eventpoll]" => Kind::Epoll,
        "anon_inode:[timerfd]" => Kind::Outside("the clock"),
        "anon_inode:[signalfd]" => Kind::Outside("a signal"),
        "anon_inode:inotify" | "inotify" => Kind::Outside("a change of files"),
        "anon_inode:[pidfd]" => Kind::Other,
        _ => of_file(pid, fd, &link),
    })
}

fn event_id(pid: i32, fd: i32) -> Option<u64> {
    field(&info(pid, fd), "eventfd-id:")?.parse().ok()
}

fn of_file(pid: i32, fd: i32, link: &str) -> Kind {
    let Ok(meta) = fs::metadata(format!("/proc/{pid}/fd/{fd}")) else { return Kind::Other };
    if meta.file_type().is_fifo() {
        return Kind::Fifo(meta.dev(), meta.ino());
    }
    let terminal = link.starts_with("/dev/pts/") || link.starts_with("/dev/tty") || link == "/dev/console";
    match meta.file_type().is_char_device() {
        true if terminal => Kind::Outside("a terminal"),
        true => Kind::Outside("a device"),
        false => Kind::Other,
    }
}

impl Descriptors {
    /// Looks at all processes that can be seen.
    pub(super) fn read() -> Descriptors {
        let (mut all, mut hidden) = (Vec::new(), 0);
        for pid in numbers("/proc").unwrap_or_default() {
            let dir = format!("/proc/{pid}/fd");
            match numbers(&dir) {
                Some(fds) => {
                    all.extend(fds.into_iter().filter_map(|fd| Some(Held { pid, fd, link: link_of(pid, fd)? })))
                }
                // Some are gone meanwhile.
                None => hidden += usize::from(is_forbidden(&dir)),
            }
        }
        Descriptors { all, hidden, peers: unix_peers().ok() }
    }

    fn with_link(&self, link: &str, fits: impl Fn(i32, i32) -> bool) -> Vec<i32> {
        let held = self.all.iter().filter(|held| held.link == link && fits(held.pid, held.fd));
        let mut pids: Vec<i32> = held.map(|held| held.pid).collect();
        pids.dedup();
        pids
    }

    /// Who can make descriptor `fd` of process `pid` ready. `None`: that is not known.
    pub(super) fn ends(&self, pid: i32, fd: i32, way: Way) -> Option<Ends> {
        let (what, via) = match way {
            Way::In => ("data in", "written by"),
            Way::Out => ("room in", "read by"),
        };
        // Who writes is waited for by who reads.
        let other_end = |pid: i32, fd: i32| match way {
            Way::In => ways(pid, fd).1,
            Way::Out => ways(pid, fd).0,
        };
        let ends = |name: &str, processes: Vec<i32>| Ends {
            what: format!("{what} {name} (descriptor {fd})"),
            via,
            processes,
            outside: None,
        };
        match kind(pid, fd)? {
            Kind::Pipe(inode) => Some(ends("the pipe", self.with_link(&format!("pipe:[{inode}]"), other_end))),
            Kind::Fifo(dev, ino) => {
                let link = link_of(pid, fd)?;
                let same = |pid: i32, fd: i32| kind(pid, fd) == Some(Kind::Fifo(dev, ino)) && other_end(pid, fd);
                let ends = ends(&format!("the named pipe {link}"), self.with_link(&link, same));
                Some(Ends { outside: Some("whoever opens it".to_string()), ..ends })
            }
            Kind::Event(id) => {
                let same = |pid: i32, fd: i32| event_id(pid, fd) == Some(id);
                Some(ends("the eventfd", self.with_link("anon_inode:[eventfd]", same)))
            }
            Kind::Socket(inode) => self.socket(pid, inode, ends),
            Kind::Outside(who) => Some(Ends { outside: Some(who.to_string()), ..ends(who, Vec::new()) }),
            Kind::Epoll | Kind::Other => None,
        }
    }

    /// The processes that have the lock of that kind on the file at `link` by an open file description: it may have come to several by
    /// fork. Each can release it.
    pub(super) fn lockers(&self, link: &str, kind: &str) -> Vec<i32> {
        let has = |pid: i32, fd: i32| {
            let info = info(pid, fd);
            let locks = info.lines().filter_map(|line| locks::parse(line.strip_prefix("lock:")?));
            locks.filter(|lock| !lock.waits && lock.kind == kind).count() > 0
        };
        self.with_link(link, has)
    }

    fn socket(&self, pid: i32, inode: u64, ends: impl Fn(&str, Vec<i32>) -> Ends) -> Option<Ends> {
        let holders = |peer: u64| self.with_link(&format!("socket:[{peer}]"), |_, _| true);
        let from_outside = |ends: Ends, who: String| Some(Ends { outside: Some(who), ..ends });
        if let Some(path) = unix_socket(pid, inode) {
            let name = if path.is_empty() { "the Unix socket".into() } else { format!("the Unix socket {path}") };
            return match self.peers.as_ref()?.get(&inode) {
                Some(&peer) => Some(ends(&name, holders(peer))),
                None => from_outside(ends(&name, Vec::new()), "whoever connects or sends".into()),
            };
        }
        let table = tcp(pid);
        let Some(own) = table.iter().find(|line| line.inode == inode) else {
            return from_outside(ends("the socket", Vec::new()), "whoever sends".into());
        };
        if own.listens {
            let name = format!("the TCP socket that listens on {}", own.local);
            return from_outside(ends(&name, Vec::new()), "whoever connects".into());
        }
        let name = format!("the TCP connection from {} to {}", own.local, own.remote);
        let peer = table.iter().find(|line| line.local == own.remote && line.remote == own.local && !line.listens);
        match peer.map(|peer| holders(peer.inode)) {
            Some(processes) if !processes.is_empty() => Some(ends(&name, processes)),
            _ => from_outside(ends(&name, Vec::new()), own.remote.to_string()),
        }
    }
}

/// The descriptors that an epoll instance watches, with what for (EPOLLIN and so on).
pub(super) fn watched(pid: i32, fd: i32) -> Vec<(i32, u32)> {
    let one = |line: &str| {
        let mut fields = line.strip_prefix("tfd:")?.split_ascii_whitespace();
        let fd = fields.next()?.parse().ok()?;
        let events = fields.nth(1)?;
        Some((fd, u32::from_str_radix(events, 16).ok()?))
    };
    info(pid, fd).lines().filter_map(one).collect()
}

/// The path of a Unix socket, which may be empty; `None`: it is none.
fn unix_socket(pid: i32, inode: u64) -> Option<String> {
    let text = fs::read(format!("/proc/{pid}/net/unix")).ok()?;
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(6);
        let found = fields.next()?.parse::<u64>().ok()? == inode;
        found.then(|| fields.collect::<Vec<_>>().join(" "))
    })
}

struct Tcp {
    local: SocketAddr,
    remote: SocketAddr,
    listens: bool,
    inode: u64,
}

fn tcp(pid: i32) -> Vec<Tcp> {
    let table = |name: &str| fs::read_to_string(format!("/proc/{pid}/net/{name}")).unwrap_or_default();
    [table("tcp"), table("tcp6")]
        .iter()
        .flat_map(|text| text.lines().filter_map(tcp_line).collect::<Vec<_>>())
        .collect()
}

fn tcp_line(line: &str) -> Option<Tcp> {
    const LISTEN: &str = "0A";
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let (local, remote) = (address(fields.get(1)?)?, address(fields.get(2)?)?);
    Some(Tcp { local, remote, listens: *fields.get(3)? == LISTEN, inode: fields.get(9)?.parse().ok()? })
}

/// `0100007F:1F90`: words of 32 bits as they lie in memory, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.split_once(':')?;
    let word = |n: usize| u32::from_str_radix(host.get(8 * n..8 * n + 8)?, 16).ok().map(u32::to_ne_bytes);
    let host = match host.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let words: Option<Vec<[u8; 4]>> = (0..4).map(word).collect();
            let bytes: [u8; 16] = words?.concat().try_into().ok()?;
            IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(host, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    fn me() -> i32 {
        std::process::id() as i32
    }

    #[test]
    fn addresses() {
        assert_eq!(address("0100007F:1F90"), Some("127.0.0.1:8080".parse().unwrap()));
        assert_eq!(address("0000000000000000FFFF00000100007F:0050"), Some("127.0.0.1:80".parse().unwrap()));
        assert_eq!(address("00000000000000000000000001000000:0001"), Some("[::1]:1".parse().unwrap()));
        for text in ["", "0100007F", "01:1", "0100007G:1", "0100007F:x"] {
            assert_eq!(address(text), None, "{text}");
        }
    }

    #[test]
    fn both_ends_of_what_this_process_has() {
        let (a, b) = UnixStream::pair().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let _server = listener.accept().unwrap();
        let (r, w) = nix::unistd::pipe().unwrap();
        let all = Descriptors::read();
        // What other tests have started meanwhile may have them, too.
        let who =
            |fd: i32, way| all.ends(me(), fd, way).map(|ends| (ends.processes.contains(&me()), ends.outside.is_some()));
        assert_eq!(who(a.as_raw_fd(), Way::In), Some((true, false)));
        assert_eq!(who(b.as_raw_fd(), Way::Out), Some((true, false)));
        assert_eq!(who(client.as_raw_fd(), Way::In), Some((true, false)));
        assert_eq!(who(listener.as_raw_fd(), Way::In), Some((false, true)));
        assert_eq!(who(r.as_raw_fd(), Way::In), Some((true, false)));
        drop(r);
        let all = Descriptors::read();
        let ends = all.ends(me(), w.as_raw_fd(), Way::Out).unwrap();
        assert_eq!((ends.processes.contains(&me()), ends.via), (false, "read by"));
        assert_eq!(all.ends(me(), 1_000_000, Way::In), None);
        let _ = (&a).write(b"x");
    }

    #[test]
    fn what_an_epoll_instance_watches() {
        use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
        let epoll = Epoll::new(EpollCreateFlags::empty()).unwrap();
        let (a, _b) = UnixStream::pair().unwrap();
        epoll.add(&a, EpollEvent::new(EpollFlags::EPOLLIN, 1)).unwrap();
        let watched = watched(me(), epoll.0.as_raw_fd());
        assert_eq!(watched.len(), 1);
        assert_eq!((watched[0].0, watched[0].1 & 1), (a.as_raw_fd(), 1));
    }
}
