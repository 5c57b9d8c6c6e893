//! How much memory the processes of an execution use, and how much there is.

use std::path::Path;

use crate::base::cgroup;

/// Names of the files of a control group for what it may use and for what it uses.
const OF_GROUPS: [[&str; 2]; 2] =
    [["memory.max", "memory.current"], ["memory.limit_in_bytes", "memory.usage_in_bytes"]];

/// Bytes that are free on this machine, and for this process: what the kernel can give without swapping.
pub fn free() -> u64 {
    free_below(Path::new("/"))
}

fn free_below(root: &Path) -> u64 {
    let text = std::fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
    let machine = field(&text, "MemAvailable:").unwrap_or(u64::MAX);
    let groups = cgroup::directories(root, "memory");
    let of_group = |directory: &std::path::PathBuf| {
        OF_GROUPS.iter().find_map(|[most, used]| {
            let most = cgroup::number(directory, most)?;
            Some(most.saturating_sub(cgroup::number(directory, used).unwrap_or(0)))
        })
    };
    groups.iter().filter_map(of_group).fold(machine, u64::min)
}

/// The bytes that a line `name N kB` tells.
fn field(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// Bytes that these processes use together, if that is more than `bound`. What they share counts once.
pub(super) fn beyond(bound: u64, pids: &[i32]) -> Option<u64> {
    // Quick, and too much where they share.
    let resident: u64 = pids.iter().map(|&pid| resident(pid)).sum();
    if resident <= bound {
        return None;
    }
    let share: u64 = pids.iter().map(|&pid| proportional(pid)).sum();
    (share > bound).then_some(share)
}

fn resident(pid: i32) -> u64 {
    const PAGE: u64 = 4096;
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * PAGE
}

/// Pages of memory of the process's own that it has: so many at the most are not shared with copies of it.
pub(super) fn own_pages(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let mut fields = text.split_whitespace().skip(1).map(|pages| pages.parse::<u64>().unwrap_or(0));
    let resident = fields.next().unwrap_or(0);
    resident.saturating_sub(fields.next().unwrap_or(0))
}

fn proportional(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    field(&text, "Pss:").unwrap_or_else(|| resident(pid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;

    #[test]
    fn the_least_of_machine_and_groups_is_free() {
        let dir = TempDir::new();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert_eq!(free_below(dir.path()), u64::MAX);
        write("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    2000 kB\n");
        assert_eq!(free_below(dir.path()), 2000 * 1024);
        write("proc/self/cgroup", "0::/a/b\n");
        write("sys/fs/cgroup/a/b/memory.max", "max\n");
        write("sys/fs/cgroup/a/memory.max", "5000\n");
        assert_eq!(free_below(dir.path()), 5000);
        write("sys/fs/cgroup/a/memory.current", "4000\n");
        assert_eq!(free_below(dir.path()), 1000);
        write("proc/self/cgroup", "3:cpu,memory:/c\n");
        write("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "700");
        assert_eq!(free_below(dir.path()), 700);
    }

    #[test]
    fn what_this_process_uses() {
        let own = std::process::id() as i32;
        assert_eq!(beyond(u64::MAX, &[own]), None);
        assert!(beyond(1000, &[own]).is_some_and(|used| used > 100_000 && used <= resident(own) + (1 << 20)));
        assert_eq!(beyond(0, &[i32::MAX]), None);
    }
}
