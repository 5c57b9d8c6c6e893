//! Uses of files in words.

use vsrun_model::{Kind, Op, NONE};

use super::views::Names;

/// The system call that the program made: the shim leaves its number in the operation.
fn number(op: &Op) -> i64 {
    (op.deadline & 0xffff) as i64
}

/// The function that a program calls for a use of a file.
pub fn call_name(op: &Op) -> &'static str {
    match vsrun_model::calls::name(number(op)) {
        Some("pread64") => "pread",
        Some("pwrite64") => "pwrite",
        Some("newfstatat") if is_open_file(op) => "fstat",
        Some("newfstatat") => "stat",
        Some(name) if op.deadline != 0 => name,
        _ => op.kind.name(),
    }
}

fn is_open_file(op: &Op) -> bool {
    matches!(op.kind, Kind::FILE_READ | Kind::FILE_WRITE | Kind::FILE_COPY)
}

/// Its arguments.
pub fn arguments(op: &Op, names: &Names) -> String {
    let object = |o: u32| if o == NONE { String::new() } else { (names.object)(o) };
    if !is_open_file(op) {
        return object(if op.mask == NONE { op.obj } else { op.mask });
    }
    let fd = op.deadline >> 16 & 0xffff;
    let file = match op.obj2 {
        NONE => format!("{fd} = {}", object(op.obj)),
        from => format!("{fd} = {}, from {}", object(op.obj), object(from)),
    };
    match call_name(op) {
        "fstat" | "statx" | "lseek" => file,
        _ => format!("{file}, {} bytes", op.arg),
    }
}
