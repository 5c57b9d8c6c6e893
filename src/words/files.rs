//! Uses of files in words.

use vsrun_model::{Kind, Op, NONE};

use crate::finding::{words, Word, Words};

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
pub fn arguments(op: &Op) -> Words {
    let object = |o: u32| if o == NONE { Words::default() } else { Word::Object(o).into() };
    if !is_open_file(op) {
        return object(if op.mask == NONE { op.obj } else { op.mask });
    }
    let fd = op.deadline >> 16 & 0xffff;
    let mut file = words![fd, " = ", object(op.obj)];
    if op.obj2 != NONE {
        file.add(words![", from ", object(op.obj2)]);
    }
    match call_name(op) {
        "fstat" | "statx" | "lseek" => file,
        _ => words![file, ", ", op.arg, " bytes"],
    }
}
