//! Which process is asked about, and whether it can be looked at.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;

use super::proc;
use crate::explore::Failure;

/// The process of `id`, which may be a thread's.
///
/// # Errors
/// There is nothing to be looked at, or that is not allowed: what to do about it is in the message.
pub(super) fn target(id: i32) -> Result<i32, Failure> {
    let refuse = |message: String| Err(Failure::environment(message));
    let Some(pid) = proc::process_of(id) else { return refuse(format!("there is no process {id}")) };
    let Some(stat) = proc::stat(&pid.to_string()) else { return refuse(format!("there is no process {id}")) };
    let name = &stat.comm;
    if pid == std::process::id() as i32 {
        return refuse(format!("process {id} is vsrun itself"));
    }
    if stat.is_of_kernel {
        return refuse(format!("process {pid} ({name}) is a thread of the kernel: there is no program to look at"));
    }
    if stat.state == 'Z' && proc::threads(pid).len() <= 1 {
        let parent = stat.parent;
        let of = proc::stat(&parent.to_string()).map_or(String::new(), |stat| format!(" ({})", stat.comm));
        return refuse(format!(
            "process {pid} ({name}) is over, a zombie: its parent, process {parent}{of}, has not waited for it; \
             'vsrun why {parent}' looks at that"
        ));
    }
    match class(pid) {
        Ok(1) => return refuse(format!("process {pid} ({name}) runs a 32-bit program: only x86-64 is supported")),
        // The first thread is over, and the others are not.
        Err(_) if stat.state == 'Z' => {}
        Err(e) => return refuse(format!("process {pid} ({name}) must not be looked at: {e}{}", whose(pid))),
        Ok(_) => {}
    }
    Ok(pid)
}

/// The class in the ELF header of its program: 1 for 32 bits, 2 for 64.
fn class(pid: i32) -> std::io::Result<u8> {
    let mut start = [0; 5];
    File::open(format!("/proc/{pid}/exe"))?.read_exact(&mut start)?;
    Ok(start[4])
}

/// To whom it belongs, and what to do, if that is not who runs vsrun.
pub(super) fn whose(pid: i32) -> String {
    let owner = |who: &str| fs::metadata(format!("/proc/{who}")).ok().map(|meta| meta.uid());
    match (owner(&pid.to_string()), owner("self")) {
        (Some(owner), Some(own)) if owner != own => {
            format!(" (it belongs to user {owner}, vsrun is run by user {own}: run vsrun as that user, or as root)")
        }
        _ => " (ptrace is not allowed here: run vsrun as root, or see /proc/sys/kernel/yama/ptrace_scope, and \
              docker's --cap-add SYS_PTRACE)"
            .to_string(),
    }
}
