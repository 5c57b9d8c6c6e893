//! POSIX semaphores: unnamed, process-shared, named.

use crate::object::*;
use crate::op::{self, Op};
use crate::world::{Applied, World};
use crate::{errno, Tid};

/// SEM_VALUE_MAX.
const MAX: i32 = i32::MAX;

/// Length of a name that is kept (NAME_MAX).
pub const MAX_NAME: usize = 256;

/// A name in the kernel's name spaces: a named semaphore or a SysV key.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Name {
    /// The object, or [`NONE`] once unlinked.
    pub obj: u32,
    /// Bytes in use.
    pub len: u32,
    /// The name; for SysV keys the four bytes of the key.
    pub bytes: [u8; MAX_NAME],
}

impl World {
    pub(crate) fn sem_wait_choices(&self, t: Tid, op: &Op) -> u32 {
        let ready = self.objects[op.obj].value > 0 || op.has(op::TRY);
        u32::from(ready || self.may_time_out(op) || self.cancelled(t, op))
    }

    pub(crate) fn sem_wait_perform(&mut self, t: Tid, op: &Op) -> Applied {
        let sem = &mut self.objects[op.obj];
        if sem.value > 0 {
            sem.value -= 1;
            return Applied::Done(0);
        }
        Applied::Done(if op.has(op::TRY) {
            errno::EAGAIN
        } else if self.cancelled(t, op) {
            errno::EINTR
        } else {
            errno::ETIMEDOUT
        })
    }

    pub(crate) fn sem_post_perform(&mut self, op: &Op) -> Applied {
        let sem = &mut self.objects[op.obj];
        if sem.value == MAX {
            return Applied::Done(errno::EOVERFLOW);
        }
        sem.value += 1;
        Applied::Done(0)
    }

    pub(crate) fn sem_get_perform(&mut self, t: Tid, op: &Op) -> Applied {
        self.threads[t].out[0] = self.objects[op.obj].value as i64;
        Applied::Done(0)
    }

    /// The object of name `bytes` of that kind, if there is one.
    pub fn name_find(&self, kind: ObjKind, bytes: &[u8]) -> Option<u32> {
        let named =
            |n: &&Name| n.obj != NONE && &n.bytes[..n.len as usize] == bytes && self.objects[n.obj].key.kind == kind;
        self.names.as_slice().iter().find(named).map(|n| n.obj)
    }

    /// Gives `obj` the name `bytes`. False: no room, or the name is too long.
    pub fn name_add(&mut self, bytes: &[u8], obj: u32) -> bool {
        if bytes.len() > MAX_NAME {
            return false;
        }
        let mut name = Name { obj, len: bytes.len() as u32, bytes: [0; MAX_NAME] };
        name.bytes[..bytes.len()].copy_from_slice(bytes);
        match self.names.as_slice().iter().position(|n| n.obj == NONE) {
            Some(free) => self.names[free as u32] = name,
            None => return self.names.push(name).is_some(),
        }
        true
    }

    /// Takes the name away from the object of that kind; the object lives on. False: no such name.
    pub fn name_remove(&mut self, kind: ObjKind, bytes: &[u8]) -> bool {
        let Some(obj) = self.name_find(kind, bytes) else { return false };
        for name in self.names.as_mut_slice() {
            if name.obj == obj {
                name.obj = NONE;
            }
        }
        true
    }
}

impl World {
    /// A new semaphore at `key`, whatever was there. `None`: no room.
    pub fn sem_new(&mut self, key: Key, value: i32) -> Option<u32> {
        self.make(key, |new| new.value = value)
    }

    /// The semaphore at `key`, made with `value` if it is new. `None`: no room.
    pub fn sem_at(&mut self, key: Key, value: i32) -> Option<u32> {
        self.find_or_make(key, |new| new.value = value)
    }
}
