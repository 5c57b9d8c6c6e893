//! The instructions that read the time-stamp counter, which fault in programs under vsrun: what the library in the
//! program emulates and what the supervisor does not take for a crash is decided here.

/// Longest instruction, bytes.
const LONGEST: u64 = 15;

/// An instruction that reads the counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading {
    /// Bytes of it, with prefixes.
    pub len: u64,
    /// It also tells the processor (`rdtscp`).
    pub tells_processor: bool,
}

/// Decodes the instruction whose bytes `byte` gives by their offset. Asks for none behind the end of the instruction: of
/// one that has been fetched all bytes can be read, while what follows may lie in another page.
pub fn decode(byte: impl Fn(u64) -> Option<u8>) -> Option<Reading> {
    let at = opcode(&byte)?;
    if byte(at)? != 0x0f {
        return None;
    }
    match byte(at + 1)? {
        0x31 => Some(Reading { len: at + 2, tells_processor: false }),
        0x01 if byte(at + 2)? == 0xf9 => Some(Reading { len: at + 3, tells_processor: true }),
        _ => None,
    }
}

/// Where the opcode begins, behind the prefixes.
pub(super) fn opcode(byte: &impl Fn(u64) -> Option<u8>) -> Option<u64> {
    let mut at = 0;
    // Operand and address size, segments, repetition, REX.
    while matches!(byte(at)?, 0x66 | 0x67 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65 | 0xf2 | 0xf3 | 0x40..=0x4f) {
        at += 1;
        if at == LONGEST {
            return None;
        }
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::{decode, Reading};

    fn of(text: &[u8]) -> Option<Reading> {
        decode(|at| text.get(at as usize).copied())
    }

    #[test]
    fn readings_are_recognized() {
        assert_eq!(of(b"\x0f\x31"), Some(Reading { len: 2, tells_processor: false }));
        assert_eq!(of(b"\x48\x0f\x31\x90"), Some(Reading { len: 3, tells_processor: false }));
        assert_eq!(of(b"\xf3\x66\x0f\x01\xf9"), Some(Reading { len: 5, tells_processor: true }));
    }

    #[test]
    fn others_are_not() {
        // hlt; rdpmc; lgdt; mov rax, [rbx]; prefixes without end; cut off.
        for text in
            [&b"\xf4"[..], b"\x0f\x33", b"\x0f\x01\x10", b"\x48\x8b\x03", &[0x66; 20], b"\x0f", b"\x0f\x01", b"\x66"]
        {
            assert_eq!(of(text), None, "{text:x?}");
        }
    }

    #[test]
    fn nothing_behind_the_instruction_is_looked_at() {
        for (text, last) in [(&b"\xf4"[..], 0), (b"\x0f\x31", 1), (b"\x0f\x01\xf9", 2), (b"\x0f\x32", 1)] {
            decode(|at| {
                assert!(at <= last, "{text:x?}");
                text.get(at as usize).copied()
            });
        }
    }
}
