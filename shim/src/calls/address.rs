//! Addresses of sockets as the program has them in its memory.

use vsrun_model::address::{Address, Host, INET, INET6, NETLINK, UNIX};

use super::files;
use crate::gate::{arena, fiber};
use crate::sys::errno::*;
use crate::sys::{bytes, load, store};

/// Bytes of struct sockaddr_un.
const UNIX_SIZE: u64 = 110;

fn port_at(at: u64) -> u16 {
    u16::from_be_bytes([load(at + 2), load(at + 3)])
}

/// The address at `at`, for a socket of `domain`; a negative error number if it is none. Its family is 0 for AF_UNSPEC.
pub fn read(at: u64, len: u64, domain: u16) -> Result<Address, i64> {
    let len = len as u32 as u64;
    if !(2..=128).contains(&len) {
        return Err(EINVAL);
    }
    let family: u16 = load(at);
    if family == 0 && !matches!(domain, UNIX | NETLINK) {
        return Ok(Address::NONE);
    }
    match domain {
        UNIX if family == 0 => Ok(Address::NONE),
        UNIX if family != UNIX || len > UNIX_SIZE => Err(EINVAL),
        UNIX => {
            let name = bytes(at + 2, (len - 2) as usize);
            // A path ends with its first NUL; an abstract name has all bytes.
            let used = match name.first() {
                Some(0) | None => name.len(),
                Some(_) => name.iter().position(|&b| b == 0).unwrap_or(name.len()),
            };
            Ok(Address::local(&name[..used]))
        }
        NETLINK if len < 12 || family != NETLINK => Err(EINVAL),
        NETLINK => Ok(Address::netlink(load(at + 4), load(at + 8))),
        INET if len < 16 => Err(EINVAL),
        INET if family != INET => Err(EAFNOSUPPORT),
        INET => Ok(Address::internet(Host::V4(load(at + 4)), port_at(at))),
        _ if family == INET6 && len >= 24 => Ok(Address::internet(Host::V6(load(at + 8)), port_at(at))),
        _ if family == INET6 || len < 16 => Err(EINVAL),
        _ => Err(EAFNOSUPPORT),
    }
}

/// Puts `address` as one of a socket of `domain` where the program wants it: up to the length at `len_at`, which becomes
/// its whole length.
pub fn write(address: &Address, domain: u16, at: u64, len_at: u64) {
    let mut image = [0u8; 128];
    let len = image_of(address, domain, &mut image);
    let room = if len_at == 0 { 0 } else { load::<u32>(len_at) as usize };
    for (i, &byte) in image[..len.min(room)].iter().enumerate() {
        store(at + i as u64, byte);
    }
    if len_at != 0 {
        store(len_at, len as u32);
    }
}

/// The bytes of `address`; how many they are.
pub fn image_of(address: &Address, domain: u16, image: &mut [u8; 128]) -> usize {
    image[..2].copy_from_slice(&domain.to_ne_bytes());
    match domain {
        UNIX => {
            let name = address.name();
            image[2..2 + name.len()].copy_from_slice(name);
            2 + name.len() + usize::from(address.is_path())
        }
        NETLINK => {
            image[4..12].copy_from_slice(&address.bytes[..8]);
            12
        }
        INET => {
            image[2..4].copy_from_slice(&address.port.to_be_bytes());
            if let Host::V4(host) = address.any_host() {
                image[4..8].copy_from_slice(&host);
            }
            16
        }
        _ => {
            image[2..4].copy_from_slice(&address.port.to_be_bytes());
            match address.any_host() {
                Host::V6(host) => image[8..24].copy_from_slice(&host),
                Host::V4([0, 0, 0, 0]) => {}
                Host::V4(host) => {
                    image[18..20].copy_from_slice(&[0xff, 0xff]);
                    image[20..24].copy_from_slice(&host);
                }
            }
            28
        }
    }
}

/// A path as a string of C.
fn path_of(address: &Address) -> [u8; 109] {
    let mut path = [0; 109];
    path[..address.name().len()].copy_from_slice(address.name());
    path
}

/// Looks a path up: fills in which file it names, if there is one. Gives whether the way there is a symbolic link, or a
/// negative error number.
pub fn look_up(address: &mut Address) -> Result<bool, i64> {
    (address.dev, address.ino) = (0, 0);
    if !address.is_path() {
        return Ok(false);
    }
    let path = path_of(address);
    let mut link = false;
    const HERE: u64 = libc::AT_FDCWD as u64;
    for flags in [libc::AT_SYMLINK_NOFOLLOW, 0] {
        let mut stat = [0u64; 18];
        let args = [HERE, path.as_ptr() as u64, stat.as_mut_ptr() as u64, flags as u64, 0, 0];
        let result = files::ask(libc::SYS_newfstatat, args);
        if result == ENOENT {
            return Ok(link);
        }
        if result < 0 {
            return Err(result);
        }
        link |= stat[3] as u32 & libc::S_IFMT == libc::S_IFLNK;
        (address.dev, address.ino) = (stat[0], stat[1]);
        if !link {
            break;
        }
    }
    const WRITE: i32 = 2;
    match files::ask(libc::SYS_faccessat, [HERE, path.as_ptr() as u64, WRITE as u64, 0, 0, 0]) {
        error if error == EACCES => Err(error),
        _ => Ok(link),
    }
}

/// What is bound to a path is looked for: a step of its own where others take such names away. What is found then holds.
pub fn seek(address: &Address) {
    fiber().settled =
        address.is_path() && files::announce(files::CONNECT, [path_of(address).as_ptr() as u64, 0, 0, 0, 0, 0]);
}

/// Makes the file that a local socket is to be found under before anything is done to the socket, if others use that name: true if
/// it has, with 0 or a negative error number.
pub fn make_before(address: &mut Address) -> Option<i64> {
    if !address.is_path() {
        return None;
    }
    let path = path_of(address);
    let call = [libc::AT_FDCWD as u64, path.as_ptr() as u64, u64::from(libc::S_IFSOCK | 0o777), 0, 0, 0];
    files::announce(libc::SYS_mknodat, call).then(|| {
        let result = make_file(address);
        files::names_made(libc::SYS_mknodat);
        result
    })
}

/// Makes the file that a local socket is found under. 0 or a negative error number.
pub fn make_file(address: &mut Address) -> i64 {
    let path = path_of(address);
    let result = files::ask(
        libc::SYS_mknodat,
        [libc::AT_FDCWD as u64, path.as_ptr() as u64, u64::from(libc::S_IFSOCK | 0o777), 0, 0, 0],
    );
    if result == EEXIST {
        return EADDRINUSE;
    }
    if result < 0 {
        return result;
    }
    look_up(address).map_or_else(|error| error, |_| 0)
}

/// Removes the file that was just made for a socket that cannot have it.
pub fn remove_file(address: &Address) {
    let path = path_of(address);
    let call = [libc::AT_FDCWD as u64, path.as_ptr() as u64, 0, 0, 0, 0];
    files::note(libc::SYS_unlinkat, call);
    files::ask(libc::SYS_unlinkat, call);
}

/// Sockets of services of the machine, which is none of the program's world: as if they did not run, unless the program made the
/// file itself. Asked after [`seek`] and [`look_up`]: that it is sought is an operation only where somebody makes the name, which
/// a search finds out. With real files who made one is not known, and these are sockets like others.
pub fn is_absent_service(address: &Address) -> bool {
    const SERVICES: [&[u8]; 6] =
        [b"/var/run/nscd/", b"/run/nscd/", b"/dev/log", b"/run/systemd/", b"/var/run/syslog", b"/run/dbus/"];
    let service = || SERVICES.iter().any(|service| address.name().starts_with(service));
    address.is_path() && arena().files.private != 0 && !files::is_made(address.ino) && service()
}
