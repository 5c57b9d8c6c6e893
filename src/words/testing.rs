//! What the tests of this directory share: small worlds.

use std::alloc::{alloc_zeroed, handle_alloc_error, Layout};
use std::ops::{Deref, DerefMut};

use vsrun_model::{Applied, Kind, ObjId, ObjKind, Op, Tid, NONE};

/// A world on the heap, where there is room for it.
pub struct World(Box<vsrun_model::World>);

impl World {
    /// One process with one thread.
    pub fn new() -> World {
        let layout = Layout::new::<vsrun_model::World>();
        // SAFETY: the layout is not empty and is the one of the box; zero bytes are a valid World (the model's rule).
        let mut world = unsafe {
            let memory = alloc_zeroed(layout).cast::<vsrun_model::World>();
            if memory.is_null() {
                handle_alloc_error(layout);
            }
            Box::from_raw(memory)
        };
        world.reset();
        world.create_process(NONE).unwrap();
        World(world)
    }

    /// One process with a first thread and `n` more, all parked at nothing yet.
    pub fn with_threads(n: u32) -> World {
        let mut world = World::new();
        for _ in 0..n {
            world.create_thread(0, 0).unwrap();
        }
        world
    }

    /// An object in the private memory of the first process.
    pub fn object(&mut self, kind: ObjKind, addr: u64) -> ObjId {
        self.object_at(0, kind, addr, 0).unwrap()
    }

    /// `t` reaches `op` and performs it in alternative `value`; it must be enabled.
    pub fn run(&mut self, t: Tid, op: Op, value: u32) -> Applied {
        self.publish(t, op);
        assert!(self.choices(t) > value, "{op:?} is not enabled");
        self.perform(t, value)
    }
}

impl Deref for World {
    type Target = vsrun_model::World;
    fn deref(&self) -> &vsrun_model::World {
        &self.0
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut vsrun_model::World {
        &mut self.0
    }
}

/// Thread 1 locks the mutex at `order.0` then `order.1`, thread 2 the other way round: a circle. The mutexes at `met` are
/// made first, in that order.
pub fn crossed_locks(met: &[u64], order: (u64, u64)) -> World {
    let mut world = World::with_threads(2);
    for &addr in met {
        world.object(ObjKind::MUTEX, addr);
    }
    let (a, b) = (world.object(ObjKind::MUTEX, order.0), world.object(ObjKind::MUTEX, order.1));
    world.publish(0, Op::on(Kind::JOIN, 1));
    world.run(1, Op::on(Kind::MUTEX_LOCK, a), 0);
    world.run(2, Op::on(Kind::MUTEX_LOCK, b), 0);
    world.publish(1, Op::on(Kind::MUTEX_LOCK, b));
    world.publish(2, Op::on(Kind::MUTEX_LOCK, a));
    world
}
