//! What sockets are called.

use vsrun_model::socket::{SockState, Socket, CONNECTED_BY_ADDRESS, DGRAM, SEQPACKET};
use vsrun_model::{Address, ObjId, World};

/// An address as it is usually written; `None`: it has none.
fn address_text(address: &Address) -> Option<String> {
    address.is_name().then(|| address.to_string())
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

#[cfg(test)]
mod tests {
    use vsrun_model::address::{Host, UNIX};

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
