//! What objects and threads are called.

use vsrun_model::channel::ChanKind;
use vsrun_model::object::{Key, ObjKind, SHARED};
use vsrun_model::{ObjId, Object, Tid, World};

use super::sockets;

/// A thread by its path of creation.
fn thread_name(world: &World, t: Tid) -> String {
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

/// An object: by its own name (named semaphores), by its identifier (SysV), by what `symbol` knows of its place, or by
/// kind and place. `@0.1` tells the private objects of processes apart, `#2` the second object at a place.
pub fn object_name(world: &World, id: ObjId, symbol: &dyn Fn(&Key) -> Option<String>) -> String {
    let Some(object) = world.objects.get(id) else { return "?".to_string() };
    let key = &object.key;
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
        ObjKind::CHANNEL => return sockets::name(world, id).unwrap_or_else(|| channel_name(world, object)),
        _ => {}
    }
    let private = key.space & SHARED == 0;
    let place = symbol(key).unwrap_or_else(|| match private {
        true => format!("{} {:#x}", key.kind.name(), key.addr),
        false => format!("{} {:#x} in region {}", key.kind.name(), key.addr, key.space & !SHARED),
    });
    let whose = match world.procs.get(key.space) {
        Some(process) if private && world.procs.as_slice().len() > 1 => {
            format!("@{}", thread_name(world, process.main_thread))
        }
        _ => String::new(),
    };
    format!("{place}{again}{whose}")
}
