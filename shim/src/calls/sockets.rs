//! Calls that have a socket as their first argument.

use vsrun_model::fd::DescId;

use super::memory::{vector, Memory};
use super::{address, fd, message, socket, sockopt};
use crate::gate::world;
use crate::sys::errno::*;

/// Call `nr` with a socket as its first argument. `None`: it is none of those that only sockets have.
pub fn call(nr: i64, desc: DescId, a: [u64; 6]) -> Option<i64> {
    let domain = world().sockets[socket::of(desc)].domain;
    Some(match nr {
        libc::SYS_read if a[2] == 0 => 0,
        libc::SYS_read => message::receive(desc, Memory::one(a[1], a[2]), 0),
        libc::SYS_write => message::send(desc, Memory::one(a[1], a[2]), 0),
        libc::SYS_readv => vector(a[1], a[2], |memory| message::receive(desc, memory, 0)),
        libc::SYS_writev => vector(a[1], a[2], |memory| message::send(desc, memory, 0)),
        libc::SYS_preadv2 if a[3] as i64 == -1 && a[5] == 0 => {
            vector(a[1], a[2], |memory| message::receive(desc, memory, 0))
        }
        libc::SYS_pwritev2 if a[3] as i64 == -1 && a[5] == 0 => {
            vector(a[1], a[2], |memory| message::send(desc, memory, 0))
        }
        libc::SYS_recvfrom => message::recvfrom(desc, a),
        libc::SYS_sendto => message::sendto(desc, a),
        libc::SYS_recvmsg => message::recvmsg(desc, a[1], a[2] as i32).0,
        libc::SYS_sendmsg => message::sendmsg(desc, a[1], a[2] as i32),
        libc::SYS_recvmmsg => message::recvmmsg(desc, a),
        libc::SYS_sendmmsg => message::sendmmsg(desc, a),
        libc::SYS_bind => match address::read(a[1], a[2], domain) {
            Ok(address) => socket::bind(desc, address),
            Err(error) => error,
        },
        libc::SYS_listen => socket::listen(desc, a[1] as i32),
        libc::SYS_connect => match address::read(a[1], a[2], domain) {
            Ok(address) => socket::connect(desc, address),
            Err(error) => error,
        },
        libc::SYS_accept => socket::accept(desc, a[1], a[2], 0),
        libc::SYS_accept4 if a[3] as i32 & !socket::FLAGS != 0 => EINVAL,
        libc::SYS_accept4 => socket::accept(desc, a[1], a[2], a[3] as i32),
        libc::SYS_shutdown => socket::shutdown(desc, a[1] as i32),
        libc::SYS_getsockname => {
            fd::settle(desc);
            let address = world().sockets[socket::of(desc)].local;
            address::write(&address, domain, a[1], a[2]);
            0
        }
        libc::SYS_getpeername => socket::peer_name(desc, a),
        libc::SYS_setsockopt => sockopt::set(desc, a),
        libc::SYS_getsockopt => sockopt::get(desc, a),
        _ => return None,
    })
}
