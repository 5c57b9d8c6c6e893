//! Two threads add to a counter in `Arc<Mutex<_>>` of Rust's library, in one critical section or in two (`--cfg lost`). They are pthreads: what
//! `std::thread` does at the start of a thread is of no concern here.

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex};

extern "C" {
    fn pthread_create(t: *mut usize, a: *const c_void, f: extern "C" fn(*mut c_void) -> *mut c_void, arg: *mut c_void) -> i32;
    fn pthread_join(t: usize, r: *mut *mut c_void) -> i32;
}

extern "C" fn adds(arg: *mut c_void) -> *mut c_void {
    // SAFETY: each thread gets a count of its own from `Arc::into_raw`.
    let count = unsafe { Arc::from_raw(arg as *const Mutex<i32>) };
    if cfg!(lost) {
        let n = *count.lock().unwrap();
        *count.lock().unwrap() = n + 1;
    } else {
        *count.lock().unwrap() += 1;
    }
    null_mut()
}

fn main() {
    let count = Arc::new(Mutex::new(0));
    let mut threads = [0; 2];
    for t in &mut threads {
        let own = Arc::into_raw(Arc::clone(&count)) as *mut c_void;
        // SAFETY: the function takes what it is given.
        assert_eq!(unsafe { pthread_create(t, null(), adds, own) }, 0);
    }
    for t in threads {
        // SAFETY: each is joined once.
        assert_eq!(unsafe { pthread_join(t, null_mut()) }, 0);
    }
    if *count.lock().unwrap() != 2 {
        std::process::abort();
    }
}
