//! Numbers that stand for one of a few things. Transparent integers, not enums: see the crate's head.

/// A type with the values that it has; with the word for each in reports, where there is one.
macro_rules! numbers {
    ($(#[$about:meta])* $type:ident($int:ty): $($(#[$doc:meta])* $name:ident = $value:expr),+ $(,)?) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        #[repr(transparent)]
        pub struct $type(pub $int);

        #[allow(missing_docs)]
        impl $type {
            $($(#[$doc])* pub const $name: $type = $type($value);)+
        }
    };
    ($(#[$about:meta])* $type:ident($int:ty), or $other:literal:
     $($(#[$doc:meta])* $name:ident = $value:literal, $text:literal;)+) => {
        numbers! { $(#[$about])* $type($int): $($(#[$doc])* $name = $value),+ }

        impl $type {
            /// The words for it in reports.
            pub fn name(self) -> &'static str {
                match self {
                    $($type::$name => $text,)+
                    _ => $other,
                }
            }
        }
    };
}

pub(crate) use numbers;
