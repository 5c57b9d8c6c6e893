//! What is told to the program (errno) and to the user.

use core::ops::Deref;

use super::call::raw;

extern "C" {
    fn __errno_location() -> *mut i32;
}

/// The convention of most libc functions: a negative error number becomes -1 and errno.
pub fn ret(value: i64) -> i64 {
    if (-4095..0).contains(&value) {
        // SAFETY: glibc's function returns the address of the calling thread's errno; it takes no lock.
        unsafe { *__errno_location() = -value as i32 }
        return -1;
    }
    value
}

/// Does `work`, which does not change errno as the program sees it.
pub fn keeping_errno<R>(work: impl FnOnce() -> R) -> R {
    // SAFETY: as for `ret`.
    let before = unsafe { *__errno_location() };
    let result = work();
    // SAFETY: as for `ret`; asked again, since another fiber may run on this kernel thread's registers meanwhile.
    unsafe { *__errno_location() = before };
    result
}

/// The convention of pthread functions: 0, or the error number itself, positive.
pub fn ret_pthread(result: i64) -> i32 {
    -result as i32
}

/// Writes a message of vsrun's own to standard error.
pub fn complain(parts: &[&[u8]]) {
    for part in parts {
        raw!(libc::SYS_write, 2, part.as_ptr(), part.len());
    }
    raw!(libc::SYS_write, 2, b"\n".as_ptr(), 1);
}

/// The digits of a number.
pub struct Decimal {
    text: [u8; 24],
    from: usize,
}

impl Deref for Decimal {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.text[self.from..]
    }
}

/// Formats an address.
pub fn hex(value: u64) -> [u8; 16] {
    let digit = |n: usize| b"0123456789abcdef"[(value >> (60 - 4 * n) & 15) as usize];
    core::array::from_fn(digit)
}

/// Formats a number.
pub fn decimal(value: impl Into<i64>) -> Decimal {
    let (mut text, mut at, value) = ([0; 24], 24, value.into());
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        text[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        at -= 1;
        text[at] = b'-';
    }
    Decimal { text, from: at }
}
