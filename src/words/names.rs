//! What objects, sockets among them, and threads are called.

use vsrun_model::channel::ChanKind;
use vsrun_model::fd::{FLAGS, FREE};
use vsrun_model::object::{Key, ObjKind, SHARED, THREAD_DATA};
use vsrun_model::socket::{SockState, Socket, CONNECTED_BY_ADDRESS, DGRAM, SEQPACKET};
use vsrun_model::{Address, ObjId, Object, Tid, World};

/// A thread by its path of creation.
pub fn thread_name(world: &World, t: Tid) -> String {
    world
        .threads
        .get(t)
        .map_or_else(|| "a thread that does not exist here".to_string(), |thread| thread.uid.to_string())
}

/// A channel: what it is, the thread that made it, and how many it had made by then, itself included. It keeps its name
/// when it is closed.
fn channel_name(world: &World, object: &Object) -> String {
    let kind = match ChanKind(object.flags as u8) {
        ChanKind::PIPE => "pipe",
        ChanKind::FIFO => {
            let id = world.objects.as_slice().iter().position(|o| o.key == object.key);
            let own = world.names.as_slice().iter().find(|name| Some(name.obj as usize) == id);
            let name = own.map_or(&[][..], |n| &n.bytes[..(n.len as usize).min(n.bytes.len())]);
            return format!("FIFO {}", String::from_utf8_lossy(name));
        }
        ChanKind::QUEUE => {
            let id = world.objects.as_slice().iter().position(|o| o.key == object.key);
            match id.and_then(|id| world.mqueue_called(id as ObjId)) {
                Some(name) => return format!("message queue {}", String::from_utf8_lossy(name)),
                None => "message queue",
            }
        }
        ChanKind::COUNTER => "eventfd",
        ChanKind::TIMER => "timerfd",
        ChanKind::SIGNALS => "signalfd",
        ChanKind::EPOLL => "epoll",
        ChanKind::STREAM => "tcp socket",
        ChanKind::LOCAL => "unix socket",
        ChanKind::PACKET => "datagram socket",
        _ => "channel",
    };
    format!("{kind} {}:{}", thread_name(world, object.value as u32), object.count)
}

/// Its low bits are the number, or say what else is meant.
fn descriptor_name(name: u64) -> String {
    match name & 0xffff {
        FREE => "numbers of descriptors".to_string(),
        FLAGS => "flags of a descriptor".to_string(),
        number => format!("descriptor {number}"),
    }
}

/// The standard streams have names in programs that are not those of the variables, and what lies in the heap is called by its kind.
fn standard_name(object: &Object, symbol: String) -> String {
    let kind = object.key.kind.name();
    if let Some(place) = symbol.strip_prefix(kind).filter(|place| place.starts_with(' ') && object.kind_name() != kind)
    {
        return format!("{}{place}", object.kind_name());
    }
    let standard = symbol.strip_prefix("_IO_2_1_").and_then(|name| name.strip_suffix('_'));
    match standard {
        Some(name) if object.key.kind == ObjKind::STREAM => name.to_string(),
        _ => symbol,
    }
}

/// An object: by its own name (named semaphores), by its identifier (SysV), by what `symbol` knows of its place, or by
/// kind and place. `@0.1` tells the private objects of processes apart, `#2` the second object at a place.
pub fn object_name(world: &World, id: ObjId, symbol: &dyn Fn(&Key) -> Option<String>) -> String {
    let Some(object) = world.objects.get(id) else { return "?".to_string() };
    // Of memory the variable that was used first, which may begin within the word.
    let within = if object.key.kind == ObjKind::MEMORY { u64::from(object.flags & 7) } else { 0 };
    name_from(world, id, within, symbol)
}

/// What memory that is an object is called from each byte of its word on: several variables may lie in it. None of other objects.
pub fn memory_names(world: &World, id: ObjId, symbol: &dyn Fn(&Key) -> Option<String>) -> Vec<String> {
    let is_memory = world.objects.get(id).is_some_and(|object| object.key.kind == ObjKind::MEMORY);
    let bytes = if is_memory { 0..size_of::<u64>() as u64 } else { 0..0 };
    bytes.map(|byte| name_from(world, id, byte, symbol)).collect()
}

/// The name of an object by what lies `within` bytes behind its place.
fn name_from(world: &World, id: ObjId, within: u64, symbol: &dyn Fn(&Key) -> Option<String>) -> String {
    let Some(object) = world.objects.get(id) else { return "?".to_string() };
    let key = &Key::new(object.key.space, object.key.kind, object.key.addr + within);
    let named = matches!(key.kind, ObjKind::SEM | ObjKind::RECORDS | ObjKind::FLOCK | ObjKind::FILE | ObjKind::PATHS);
    let own = world.names.as_slice().iter().find(|name| name.obj == id && named);
    if let Some(name) = own {
        return String::from_utf8_lossy(&name.bytes[..(name.len as usize).min(name.bytes.len())]).into_owned();
    }
    let again = if object.generation == 0 { String::new() } else { format!("#{}", u64::from(object.generation) + 1) };
    match key.kind {
        ObjKind::MSGQ => return format!("queue {}", key.addr),
        ObjKind::SYSV => return format!("set {}{again}", key.addr),
        ObjKind::NAMES => return "names".to_string(),
        ObjKind::PATHS => return "names of files".to_string(),
        ObjKind::DESCRIPTOR => return descriptor_name(key.addr),
        // Threads may have had this place one after the other: it is called by the last one.
        ObjKind::STREAM if object.flags & THREAD_DATA != 0 => {
            if let Some(t) = world.thread_by_fs(key.space, key.addr) {
                return format!("what libc keeps of {}", thread_name(world, t));
            }
        }
        ObjKind::CHANNEL => return socket_name(world, id).unwrap_or_else(|| channel_name(world, object)),
        _ => {}
    }
    let private = key.space & SHARED == 0;
    let kind = object.kind_name();
    let place =
        object.kept().map(String::from).or_else(|| symbol(key).map(|name| standard_name(object, name))).unwrap_or_else(
            || match private {
                true => format!("{kind} {:#x}", key.addr),
                false => format!("{kind} {:#x} in region {}", key.addr, key.space & !SHARED),
            },
        );
    let whose = match world.procs.get(key.space) {
        Some(process) if private && world.procs.as_slice().len() > 1 => {
            format!("@{}", thread_name(world, process.main_thread))
        }
        _ => String::new(),
    };
    format!("{place}{again}{whose}")
}

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
fn socket_name(world: &World, id: ObjId) -> Option<String> {
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
