//! The interfaces of the machine, of which the program's world has one: loopback, with its two addresses. What asks for it
//! (ioctl; netlink is in `netlink`), and what would change it, which is denied.

use crate::sys::errno::*;
use crate::sys::{bytes, load, store, zero};
use vsrun_model::address::INET;

/// Its name, as a string of C.
pub const NAME: &[u8; 3] = b"lo\0";
/// Its index.
pub const INDEX: u32 = 1;
/// IFF_UP, IFF_LOOPBACK, IFF_RUNNING.
const FLAGS: u16 = 0x49;
/// ARPHRD_LOOPBACK.
pub const HARDWARE: u16 = 772;
/// Most bytes of a packet.
pub const MTU: u32 = 65_536;
/// Packets in its queue.
pub const QUEUE: u32 = 1000;
/// Its address for IPv4, 127.0.0.1.
pub const ADDRESS: [u8; 4] = [127, 0, 0, 1];
const MASK: [u8; 4] = [255, 0, 0, 0];

/// Bytes of struct ifreq; its name comes first.
const REQUEST: u64 = 40;
const NAME_SIZE: u64 = 16;

/// An ioctl (SIOC*) about interfaces on a socket of `domain`. `None`: it is not known what it gives.
pub fn ioctl(domain: u16, command: u32, at: u64) -> Option<i64> {
    match command {
        SIOCGIFNAME => {
            if load::<u32>(at + NAME_SIZE) != INDEX {
                return Some(ENODEV);
            }
            put_name(at);
            return Some(0);
        }
        SIOCGIFCONF => return Some(list(at)),
        _ => {}
    }
    let name = bytes(at, NAME_SIZE as usize);
    let known = name.iter().take_while(|&&b| b != 0 && b != b':').eq(NAME[..2].iter());
    if changes(command) {
        return Some(EPERM);
    }
    if domain != INET && matches!(command, SIOCGIFADDR | SIOCGIFDSTADDR | SIOCGIFBRDADDR | SIOCGIFNETMASK) {
        return Some(ENOTTY);
    }
    if !known {
        return Some(ENODEV);
    }
    let value = at + NAME_SIZE;
    match command {
        SIOCGIFADDR | SIOCGIFDSTADDR => put_address(value, ADDRESS),
        SIOCGIFBRDADDR => put_address(value, [0; 4]),
        SIOCGIFNETMASK => put_address(value, MASK),
        SIOCGIFFLAGS => store(value, FLAGS),
        SIOCGIFMETRIC => store(value, 0u32),
        SIOCGIFMTU => store(value, MTU),
        SIOCGIFINDEX => store(value, INDEX),
        SIOCGIFTXQLEN => store(value, QUEUE),
        SIOCGIFHWADDR => {
            zero(value, 16);
            store(value, HARDWARE);
        }
        SIOCGIFMAP => zero(value, 24),
        // Whether it has a cable, and the like: as of an interface whose driver does not tell.
        SIOCETHTOOL => return Some(EOPNOTSUPP),
        _ => return None,
    }
    Some(0)
}

const SIOCGIFNAME: u32 = 0x8910;
const SIOCGIFCONF: u32 = 0x8912;
const SIOCGIFFLAGS: u32 = 0x8913;
const SIOCGIFADDR: u32 = 0x8915;
const SIOCGIFDSTADDR: u32 = 0x8917;
const SIOCGIFBRDADDR: u32 = 0x8919;
const SIOCGIFNETMASK: u32 = 0x891b;
const SIOCGIFMETRIC: u32 = 0x891d;
const SIOCGIFMTU: u32 = 0x8921;
const SIOCGIFHWADDR: u32 = 0x8927;
const SIOCGIFINDEX: u32 = 0x8933;
const SIOCGIFTXQLEN: u32 = 0x8942;
const SIOCETHTOOL: u32 = 0x8946;
const SIOCGIFMAP: u32 = 0x8970;

/// SIOCSIF*, SIOCADDMULTI, SIOCDELMULTI and what belongs to bridges.
fn changes(command: u32) -> bool {
    const SETS: [u32; 17] = [
        0x8911, 0x8914, 0x8916, 0x8918, 0x891a, 0x891c, 0x891e, 0x8922, 0x8923, 0x8924, 0x8931, 0x8932, 0x8934, 0x8936,
        0x8937, 0x8943, 0x8971,
    ];
    SETS.contains(&command)
}

fn put_name(at: u64) {
    zero(at, NAME_SIZE as usize);
    store(at, *NAME);
}

/// A struct sockaddr_in.
fn put_address(at: u64, host: [u8; 4]) {
    zero(at, 16);
    store(at, INET);
    store(at + 4, host);
}

/// SIOCGIFCONF: the addresses for IPv4; without a buffer, the bytes that they take.
fn list(at: u64) -> i64 {
    let (room, buffer): (i32, u64) = (load(at), load(at + 8));
    let fits = buffer == 0 || room >= REQUEST as i32;
    if buffer != 0 && fits {
        put_name(buffer);
        zero(buffer + NAME_SIZE, (REQUEST - NAME_SIZE) as usize);
        put_address(buffer + NAME_SIZE, ADDRESS);
    }
    store(at, if fits { REQUEST as i32 } else { 0 });
    0
}
