//! Names of functions and variables as they stand in the source.

/// The C++ or Rust name behind a mangled one; any other name as it is.
pub fn demangle(name: &str) -> String {
    if is_of_rust(name) {
        if let Ok(rust) = rustc_demangle::try_demangle(name) {
            return format!("{rust:#}");
        }
    }
    if !name.starts_with("_Z") {
        return name.to_string();
    }
    let symbol = cpp_demangle::Symbol::new(name).ok();
    symbol.and_then(|s| s.demangle(&cpp_demangle::DemangleOptions::default()).ok()).unwrap_or_else(|| name.to_string())
}

/// Names of Rust begin with `_R`, or look like those of C++ and end with a hash.
fn is_of_rust(name: &str) -> bool {
    const HASH: usize = 16;
    let hashed = |name: &str| {
        let hash = name.rfind("17h").and_then(|at| name.get(at + 3..)).and_then(|rest| rest.split_once('E'));
        hash.is_some_and(|(hash, _)| hash.len() == HASH && hash.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    name.starts_with("_R") || name.starts_with("_ZN") && hashed(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_each_language() {
        let all = [
            ("main", "main"),
            ("_ZN5robot3Arm4moveEi", "robot::Arm::move(int)"),
            ("_ZN12_GLOBAL__N_15countE", "(anonymous namespace)::count"),
            ("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"),
            ("_ZN38_$LT$T$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE", "<T as core::fmt::Debug>::fmt"),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("_Register", "_Register"),
            ("_Znot", "_Znot"),
        ];
        for (mangled, name) in all {
            assert_eq!(demangle(mangled), name);
        }
    }
}
