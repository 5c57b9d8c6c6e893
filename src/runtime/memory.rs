//! Reads and writes another process's memory through `/proc/PID/mem`.
//!
//! The file is opened once and belongs to the address space it was opened for: after an `execve` of that process, or
//! after its death, reads come back empty. Open it again after an exec stop. The kernel asks for the rights of ptrace at
//! the opening, and lets a tracer write to pages that are mapped read-only.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::{fmt, io};

use nix::unistd::Pid;

use super::unwind::ReadMemory;

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

    /// The same for reading only.
    pub fn open_to_read(pid: Pid) -> Result<ProcessMemory, MemoryError> {
        match File::open(format!("/proc/{pid}/mem")) {
            Ok(file) => Ok(ProcessMemory { pid, file }),
            Err(source) => Err(MemoryError { operation: "open", pid, address: 0, source }),
        }
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

    /// Writes all of `bytes` at `address`, also over memory that the process itself may not write.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        self.file.write_all_at(bytes, address).map_err(|source| self.error("write", address, source))
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
    }

    #[test]
    fn writes_what_is_given() {
        let data = Box::new(std::cell::UnsafeCell::new([0u64; 3]));
        let at = data.get() as u64;
        own().write(at + 8, &0x0102_0304_0506_0708u64.to_le_bytes()).unwrap();
        own().write(at, b"ab").unwrap();
        let mut bytes = [0xff; 24];
        own().read(at, &mut bytes).unwrap();
        assert_eq!(&bytes[..3], b"ab\0");
        assert_eq!(&bytes[8..16], &[8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(&bytes[16..], &[0; 8]);
    }

    #[test]
    fn unmapped_memory_is_an_error_with_its_address() {
        let error = own().read_u64(8).unwrap_err();
        assert_eq!((error.operation, error.pid, error.address), ("read", Pid::this(), 8));
        assert!(error.to_string().contains(&format!("process {} at 0x8", Pid::this())), "{error}");
        let error = own().write(16, &[1]).unwrap_err();
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
