//! The interposed symbols: tables that turn a libc call into an operation of the model. No logic beyond reading
//! arguments and giving back what the call gives back.

/// A table of interposed symbols: what each function of the program's gives.
macro_rules! symbols {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)? = $gives:expr;)*) => {
        $($(#[$doc])* #[no_mangle] extern "C" fn $name($($arg: $type),*) $(-> $result)? {
            $crate::gate::returning(|| $gives)
        })*
    };
}

/// The same of functions that do not return.
macro_rules! ends {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) = $gives:expr;)*) => {
        $($(#[$doc])* #[no_mangle] extern "C" fn $name($($arg: $type),*) -> ! {
            $crate::gate::shield::enter();
            $gives
        })*
    };
}

#[cfg(feature = "heap")]
pub mod heap;
mod io;
mod ipc;
mod misc;
mod pthread;
mod services;
mod stdio;
