//! Reads and writes another process's memory through `/proc/PID/mem`.
//!
//! The file is opened once and belongs to the address space it was opened for: after an `execve` of that process, or
//! after its death, reads come back empty. Open it again after an exec stop. The kernel asks for the rights of ptrace at
//! the opening, and lets a tracer write to pages that are mapped read-only.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

use nix::unistd::Pid;

use super::unwind::ReadMemory;

const PAGE: u64 = 4096;

/// An access to another process's memory that failed.
#[derive(Debug)]
pub struct MemoryError {
    /// What was tried: "open", "read" or "write".
    pub operation: &'static str,
    /// Whose memory.
    pub pid: Pid,
    /// The first address of the access (0 for "open").
    pub address: u64,
    /// What the system said. Unmapped memory is EIO; a process that is gone is `UnexpectedEof` or `WriteZero`.
    pub source: io::Error,
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let MemoryError { operation, pid, address, source } = self;
        match *operation {
            "open" => write!(f, "cannot open the memory of process {pid}: {source}"),
            _ => write!(f, "cannot {operation} the memory of process {pid} at {address:#x}: {source}"),
        }
    }
}

impl std::error::Error for MemoryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// The memory of one process, as it was when this was opened: an exec gives the process another.
#[derive(Debug)]
pub struct ProcessMemory {
    pid: Pid,
    file: File,
}

impl ProcessMemory {
    /// Opens the memory of `pid` for reading and writing. The caller must be its tracer, or allowed to be.
    pub fn open(pid: Pid) -> Result<ProcessMemory, MemoryError> {
        let path = format!("/proc/{pid}/mem");
        match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => Ok(ProcessMemory { pid, file }),
            Err(source) => Err(MemoryError { operation: "open", pid, address: 0, source }),
        }
    }

    /// Whose memory this is.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Fills `buffer` from `address` on; all of it or an error.
    pub fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), MemoryError> {
        self.file.read_exact_at(buffer, address).map_err(|source| self.error("read", address, source))
    }

    /// The little-endian 64-bit word at `address`, which need not be aligned.
    pub fn read_u64(&self, address: u64) -> Result<u64, MemoryError> {
        let mut word = [0; 8];
        self.read(address, &mut word)?;
        Ok(u64::from_le_bytes(word))
    }

    /// `len` bytes from `address` on; all of them or an error.
    pub fn read_bytes(&self, address: u64, len: usize) -> Result<Vec<u8>, MemoryError> {
        let mut bytes = vec![0; len];
        self.read(address, &mut bytes)?;
        Ok(bytes)
    }

    /// The bytes at `address` up to a NUL byte, which is left off, or the first `max` bytes if there is none in them.
    ///
    /// Nothing beyond the page of the NUL is touched.
    pub fn read_cstr(&self, address: u64, max: usize) -> Result<Vec<u8>, MemoryError> {
        let mut text = Vec::new();
        while text.len() < max {
            let at = address.wrapping_add(text.len() as u64);
            let to_page_end = (PAGE - at % PAGE) as usize;
            let part = self.read_bytes(at, to_page_end.min(max - text.len()))?;
            if let Some(end) = part.iter().position(|byte| *byte == 0) {
                text.extend_from_slice(&part[..end]);
                break;
            }
            text.extend_from_slice(&part);
        }
        Ok(text)
    }

    /// Writes all of `bytes` at `address`, also over memory that the process itself may not write.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        self.file.write_all_at(bytes, address).map_err(|source| self.error("write", address, source))
    }

    /// Writes a little-endian 64-bit word at `address`, which need not be aligned.
    pub fn write_u64(&self, address: u64, value: u64) -> Result<(), MemoryError> {
        self.write(address, &value.to_le_bytes())
    }

    fn error(&self, operation: &'static str, address: u64, source: io::Error) -> MemoryError {
        MemoryError { operation, pid: self.pid, address, source }
    }
}

impl ReadMemory for ProcessMemory {
    fn read_u64(&self, address: u64) -> Option<u64> {
        ProcessMemory::read_u64(self, address).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn own() -> ProcessMemory {
        ProcessMemory::open(Pid::this()).unwrap()
    }

    fn address<T: ?Sized>(value: &T) -> u64 {
        std::ptr::from_ref(value).cast::<u8>() as u64
    }

    #[test]
    fn reads_what_is_there() {
        let data = [0x11u8, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99];
        assert_eq!(own().read_u64(address(&data)).unwrap(), 0x8877_6655_4433_2211);
        assert_eq!(own().read_u64(address(&data) + 1).unwrap(), 0x9988_7766_5544_3322);
        assert_eq!(own().read_bytes(address(&data), 9).unwrap(), data);
        assert_eq!(own().read_bytes(address(&data), 0).unwrap(), [0u8; 0]);
    }

    #[test]
    fn writes_what_is_given() {
        let data = Box::new(std::cell::UnsafeCell::new([0u64; 3]));
        let at = data.get() as u64;
        own().write_u64(at + 8, 0x0102_0304_0506_0708).unwrap();
        own().write(at, b"ab").unwrap();
        let bytes = own().read_bytes(at, 24).unwrap();
        assert_eq!(&bytes[..3], b"ab\0");
        assert_eq!(&bytes[8..16], &[8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(&bytes[16..], &[0; 8]);
    }

    #[test]
    fn strings_end_at_nul_or_max() {
        let text = b"hello\0world";
        assert_eq!(own().read_cstr(address(text), 100).unwrap(), b"hello");
        assert_eq!(own().read_cstr(address(text), 3).unwrap(), b"hel");
        assert_eq!(own().read_cstr(address(text) + 5, 100).unwrap(), b"");
        let long = [vec![b'x'; 10_000], vec![0]].concat();
        assert_eq!(own().read_cstr(address(long.as_slice()), 20_000).unwrap(), vec![b'x'; 10_000]);
    }

    /// The stack of a process ends with eight bytes of zero, and no page follows.
    #[test]
    fn strings_do_not_touch_the_page_after_them() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let stack = maps.lines().find(|l| l.ends_with("[stack]")).unwrap();
        let end = u64::from_str_radix(stack.split(['-', ' ']).nth(1).unwrap(), 16).unwrap();
        assert_eq!(own().read_cstr(end - 8, 4096).unwrap(), b"");
        assert_eq!(own().read_bytes(end - 8, 8).unwrap(), [0; 8]);
        assert!(own().read_bytes(end - 8, 9).is_err());
    }

    #[test]
    fn unmapped_memory_is_an_error_with_its_address() {
        let error = own().read_u64(8).unwrap_err();
        assert_eq!((error.operation, error.pid, error.address), ("read", Pid::this(), 8));
        assert!(error.to_string().contains(&format!("process {} at 0x8", Pid::this())), "{error}");
        let error = own().write_u64(16, 1).unwrap_err();
        assert_eq!((error.operation, error.address), ("write", 16));
        assert_eq!(ReadMemory::read_u64(&own(), 8), None);
    }

    #[test]
    fn a_dead_process_is_an_error() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = Pid::from_raw(child.id() as i32);
        let memory = ProcessMemory::open(pid);
        child.kill().unwrap();
        child.wait().unwrap();
        let error = memory.unwrap().read_u64(0x1000).unwrap_err();
        assert_eq!((error.operation, error.pid), ("read", pid));
        let error = ProcessMemory::open(pid).unwrap_err();
        assert_eq!((error.operation, error.pid), ("open", pid));
        assert!(error.to_string().contains("cannot open the memory of process"), "{error}");
    }
}
