//! The control groups that this process is in, of version 1 and 2.

use std::path::{Path, PathBuf};

/// The directories of the group and of those above it that `controller` rules, below `root`.
pub fn directories(root: &Path, controller: &str) -> Vec<PathBuf> {
    let below = |path: &str| root.join(path.trim_start_matches('/'));
    let memberships = std::fs::read_to_string(below("/proc/self/cgroup")).unwrap_or_default();
    let mut all = Vec::new();
    for line in memberships.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let base = match controllers {
            "" => "/sys/fs/cgroup".to_string(),
            list if list.split(',').any(|c| c == controller) => format!("/sys/fs/cgroup/{controller}"),
            _ => continue,
        };
        all.extend(Path::new(path).ancestors().map(|a| below(&format!("{base}{}", a.display()))));
    }
    all
}

/// The number in that file of a group; none where it is no number ("max").
pub fn number(directory: &Path, file: &str) -> Option<u64> {
    std::fs::read_to_string(directory.join(file)).ok()?.trim().parse().ok()
}
