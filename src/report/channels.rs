//! Message queues in words.

use vsrun_model::msg::{EXCEPT, MSGMAX, NOERROR, SET_SIZE};
use vsrun_model::{Ctl, Kind, Op, Tid, World};

use super::views::Names;
use super::waits::hopeless;

/// What follows the queue among the arguments of an operation.
pub fn queue_arguments(op: &Op) -> String {
    match op.kind {
        Kind::MSG_SEND => format!(", type {}, {} bytes", op.arg, op.mask),
        Kind::MQ_SEND => format!(", {} bytes, priority {}", op.mask, op.arg),
        Kind::MSG_RECEIVE => {
            let which = match op.arg {
                0 => "any type".to_string(),
                n if op.has(EXCEPT) => format!("any type but {n}"),
                n if n < 0 => format!("lowest type up to {}", n.unsigned_abs()),
                n => format!("type {n}"),
            };
            let size = op.mask & !NOERROR;
            let buffer = if size == MSGMAX { String::new() } else { format!(", up to {size} bytes") };
            format!(", {which}{buffer}")
        }
        Kind::MSG_CTL => match Ctl(op.arg as u8) {
            Ctl::REMOVE => ", IPC_RMID".to_string(),
            SET_SIZE => format!(", IPC_SET {} bytes", op.arg >> 8),
            _ => ", IPC_STAT".to_string(),
        },
        _ => String::new(),
    }
}

/// What a thread that is blocked at a queue waits for: how full the queue is, and who has used it from the other end.
pub fn queue(world: &World, t: Tid, names: &Names) -> String {
    let op = &world.threads[t].pending;
    let (object, record) = (&world.objects[op.obj], world.message_queue(op.obj));
    let name = (names.object)(op.obj);
    let posix = matches!(op.kind, Kind::MQ_SEND | Kind::MQ_RECEIVE);
    let sends = matches!(op.kind, Kind::MSG_SEND | Kind::MQ_SEND);
    let (verb, other) = if sends { ("received from", record.receiver) } else { ("sent to", record.sender) };
    let last = match other {
        0 => format!("nobody has {verb} it yet"),
        vpid => format!("last {verb} by process {vpid}"),
    };
    let hope = hopeless(world, t);
    let (count, bytes) = (object.count, object.value);
    if sends {
        let contents = match posix {
            true => format!("{count} of {} messages", record.limit),
            false => format!("{count} messages, {bytes} of {} bytes", record.limit),
        };
        return format!("room for {} bytes in {name} (it holds {contents}; {last}){hope}", op.mask);
    }
    let which = match op.arg {
        _ if posix => String::new(),
        0 => String::new(),
        n if op.has(EXCEPT) => format!(" of another type than {n}"),
        n if n < 0 => format!(" of a type up to {}", n.unsigned_abs()),
        n => format!(" of type {n}"),
    };
    let contents = match count {
        0 => "it is empty".to_string(),
        1 => "it holds 1 message of another type".to_string(),
        n => format!("it holds {n} messages of other types"),
    };
    format!("a message{which} in {name} ({contents}; {last}){hope}")
}
