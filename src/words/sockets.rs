//! Sockets in words: what they are called, and what one that waits needs.

use vsrun_model::address::{Host, UNIX};
use vsrun_model::channel::ChanId;
use vsrun_model::socket::{SockState, Socket, CONNECTED_BY_ADDRESS, DGRAM, SEQPACKET};
use vsrun_model::{Address, Kind, ObjId, Op, Tid, World};

use super::common::processes;
use crate::finding::{words, Word, Words};

/// An address as it is usually written; `None`: it has none.
pub fn address_text(address: &Address) -> Option<String> {
    if address.family == UNIX {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        return match address.name() {
            [] => None,
            [0, name @ ..] => Some(format!("@{}", text(name))),
            name => Some(text(name)),
        };
    }
    if address.port == 0 {
        return None;
    }
    let host = match address.any_host() {
        Host::V4(host) => std::net::Ipv4Addr::from(host).to_string(),
        Host::V6(host) => format!("[{}]", std::net::Ipv6Addr::from(host)),
    };
    Some(format!("{host}:{}", address.port))
}

fn protocol(socket: &Socket) -> &'static str {
    match (socket.is_local(), socket.typ) {
        (true, DGRAM) => "unix datagram",
        (true, SEQPACKET) => "unix seqpacket",
        (true, _) => "unix",
        (false, DGRAM) => "udp",
        (false, _) => "tcp",
    }
}

/// The socket that reads from a channel: `tcp 127.0.0.1:40001 -> 127.0.0.1:8080`. `None`: it is gone, or has no address.
pub fn name(world: &World, id: ObjId) -> Option<String> {
    let socket = &world.sockets[world.sink(world.channel_of(id)?)?];
    let near = address_text(&socket.local);
    let connected = socket.state == SockState::CONNECTED || socket.peer_serial == CONNECTED_BY_ADDRESS;
    let far = address_text(&socket.remote).filter(|_| connected);
    let what = protocol(socket);
    Some(match (near, far) {
        (Some(near), Some(far)) => format!("{what} {near} -> {far}"),
        (Some(near), None) if socket.state == SockState::LISTEN => format!("{what} {near} (listening)"),
        (Some(near), None) => format!("{what} {near}"),
        (None, Some(far)) => format!("{what} -> {far}"),
        (None, None) => return None,
    })
}

/// What the pending operation of `t` on a socket waits for. `None`: it is on something else.
pub fn waits(world: &World, t: Tid, op: &Op) -> Option<Words> {
    let channel = world.channel_of(op.obj)?;
    let socket = world.sockets.get(world.sink(channel)?)?;
    let called = Word::Object(op.obj);
    let holders = |channel: ChanId| processes(&world.holders(channel, false).collect::<Vec<_>>());
    let peer = match world.peer(world.sink(channel)?).map(|peer| world.sockets[peer].input) {
        Some(peer) => words![" (its peer is held by ", holders(peer), ")"],
        None => Words::default(),
    };
    Some(match op.kind {
        Kind::FD_READ if socket.is_dgram() => words!["a datagram for socket ", called, peer],
        Kind::FD_READ => words!["data from socket ", called, peer],
        Kind::FD_WRITE => {
            let bytes = world.channels[channel].len();
            let room = words!["room for ", op.arg, " bytes in socket ", called];
            words![room, ", where ", bytes, " wait to be read (held by ", holders(channel), ")"]
        }
        Kind::FD_ACCEPT => words!["a connection to ", called, " (nobody has connected)"],
        Kind::FD_CONNECT | Kind::FD_SEND => {
            let target = address_text(&world.threads[t].address).unwrap_or_else(|| "its peer".to_string());
            let what = if op.kind == Kind::FD_SEND { "for a datagram at" } else { "in the queue of connections of" };
            words!["room ", what, " ", target]
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_usual() {
        let text = |address: Address| address_text(&address);
        assert_eq!(text(Address::internet(Host::V4([127, 0, 0, 1]), 80)).as_deref(), Some("127.0.0.1:80"));
        let mut loopback = [0; 16];
        loopback[15] = 1;
        assert_eq!(text(Address::internet(Host::V6(loopback), 80)).as_deref(), Some("[::1]:80"));
        assert_eq!(text(Address::local(b"/tmp/s")).as_deref(), Some("/tmp/s"));
        assert_eq!(text(Address::local(b"\0s")).as_deref(), Some("@s"));
        assert_eq!(text(Address::of_family(UNIX)), None);
    }
}
