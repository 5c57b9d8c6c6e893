//! No more memory than an input may ask for: what goes beyond it is refused, and ends the fuzzer with the input.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes at most.
const MOST: usize = 2 << 30;

struct Counted(AtomicUsize);

#[global_allocator]
static COUNTED: Counted = Counted(AtomicUsize::new(0));

impl Counted {
    fn has_room(&self, bytes: usize) -> bool {
        let room = self.0.fetch_add(bytes, Ordering::Relaxed).checked_add(bytes).is_some_and(|all| all <= MOST);
        if !room {
            self.0.fetch_sub(bytes, Ordering::Relaxed);
        }
        room
    }
}

// SAFETY: memory comes from the system's allocator, which is asked with what this one is asked with, or is not given at all.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        if self.has_room(layout.size()) {
            unsafe { System.alloc(layout) }
        } else {
            std::ptr::null_mut()
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        if self.has_room(layout.size()) {
            unsafe { System.alloc_zeroed(layout) }
        } else {
            std::ptr::null_mut()
        }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        self.0.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}
