//! A counter behind a mutex of the standard library, which is made of atomic instructions and a futex: `fixed` adds in one critical section,
//! anything else looks in one and writes in another.

use std::sync::{Arc, Mutex};
use std::thread;

fn add(counter: &Mutex<i32>, in_one: bool) {
    if in_one {
        *counter.lock().unwrap() += 1;
    } else {
        let seen = *counter.lock().unwrap();
        *counter.lock().unwrap() = seen + 1;
    }
}

fn main() {
    let in_one = std::env::args().nth(1).is_some_and(|word| word == "fixed");
    let counter = Arc::new(Mutex::new(0));
    let other = counter.clone();
    let thread = thread::spawn(move || add(&other, in_one));
    add(&counter, in_one);
    thread.join().unwrap();
    assert_eq!(*counter.lock().unwrap(), 2);
}
