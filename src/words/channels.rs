//! Message queues in words.

use vsrun_model::msg::{Queue, EXCEPT, MSGMAX, NOERROR, SET_SIZE};
use vsrun_model::{Ctl, Kind, Op, Tid, World};

use super::common::hopeless;
use crate::finding::{words, Word, Words};

/// What follows the queue among the arguments of an operation.
pub fn queue_arguments(op: &Op) -> String {
    match op.kind {
        Kind::MSG_SEND => format!(", type {}, {} bytes", op.arg, op.mask),
        Kind::MQ_SEND => format!(", {} bytes, priority {}", op.arg >> 16, op.arg & 0xffff),
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

/// Who has used a queue from the other end.
fn used(sends: bool, queue: &Queue) -> String {
    let (verb, other) = if sends { ("received from", queue.receiver) } else { ("sent to", queue.sender) };
    match other {
        0 => format!("nobody has {verb} it yet"),
        vpid => format!("last {verb} by process {vpid}"),
    }
}

/// The same as [`queue`] for a POSIX queue.
pub fn posix_queue(world: &World, t: Tid) -> Words {
    let op = &world.threads[t].pending;
    let name = Word::Object(op.obj);
    let Some(id) = world.channel_of(op.obj) else { return name.into() };
    let sends = op.kind == Kind::MQ_SEND;
    let (record, count) = (world.mqueue(id), world.channels[id].messages);
    let (last, hope) = (used(sends, &record), hopeless(world, t));
    match sends {
        true => {
            words!["room in ", name, " (it holds ", count, " of ", record.limit, " messages; ", last, ")", hope]
        }
        false => words!["a message in ", name, " (it is empty; ", last, ")", hope],
    }
}

/// What a thread that is blocked at a queue waits for: how full the queue is, and who has used it from the other end.
pub fn queue(world: &World, t: Tid) -> Words {
    let op = &world.threads[t].pending;
    let (object, record) = (&world.objects[op.obj], world.message_queue(op.obj));
    let name = Word::Object(op.obj);
    let sends = op.kind == Kind::MSG_SEND;
    let last = used(sends, &record);
    let hope = hopeless(world, t);
    let (count, bytes) = (object.count, object.value);
    if sends {
        let contents = format!("{count} messages, {bytes} of {} bytes", record.limit);
        return words!["room for ", op.mask, " bytes in ", name, " (it holds ", contents, "; ", last, ")", hope];
    }
    let which = match op.arg {
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
    words!["a message", which, " in ", name, " (", contents, "; ", last, ")", hope]
}
