//! The files of a pack become the root file system of this process, and vsrun runs there.
//!
//! A tmpfs gets a copy of each file, compared with what was packed while it is copied; `/proc`, `/dev` and `/sys` are the machine's, and all of the machine
//! lies below `/.vsrun/node`, for what vsrun itself reads and writes. Who is not root makes a user namespace for that, in which he is who he is.
//!
//! NOTE [Addresses] The kernel puts mappings of 2 MiB and more where huge pages could be, on file systems that may have these: ext4, xfs, btrfs, and a tmpfs that
//! is mounted so. With `huge=advise` libraries lie where they lie on the disk of the machine on which they were packed, on every machine.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::errno::Errno;
use nix::mount::{mount, MsFlags};
use nix::sched::{unshare, CloneFlags};
use nix::unistd::{getegid, geteuid, pivot_root};

use super::check::{damaged, Files};
use super::inside::{to_node, PACK_VARIABLE};
use super::make::write;
use super::manifest::{refused, Manifest, What, MANIFEST, NODE, OWN, ROOT, VSRUN};
use crate::base::text::escape;
use crate::config::RunPack;
use crate::explore::Failure;

/// Variables of the machine's that are for vsrun itself.
const OWN_VARIABLES: [&str; 9] =
    ["TERM", "COLORTERM", "COLUMNS", "LINES", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "VSRUN_LOG", "RUST_BACKTRACE"];
/// The same, which name directories.
const OWN_DIRECTORIES: [&str; 3] = ["HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"];

const NONE: Option<&str> = None;

/// Runs vsrun in a pack: this process becomes it.
///
/// # Errors
/// The pack is not as it was packed, or this machine lets nobody make a root file system.
pub fn enter(args: &RunPack) -> Result<Infallible, Failure> {
    let dir = std::path::absolute(&args.dir)?;
    let (manifest, text) = Manifest::of(&dir)?;
    let files = Files::of(&dir)?;
    let cwd = std::env::current_dir().map_err(|e| Failure::environment(format!("the current directory: {e}")))?;
    own_namespaces()?;
    // Until it is the root it lies over a directory that is there anyway.
    let root = dir.join(ROOT);
    mount_memory(&root).map_err(forbidden)?;
    copy(&dir, &manifest, &files, &root)?;
    let failed = |e: io::Error| refused(&dir, format!("its copy in memory cannot be made: {e}"));
    write(&root.join(OWN).join(MANIFEST), &mut &text[..], 0o644, (0, 0)).map_err(failed)?;
    for top in ["proc", "dev", "sys"] {
        fs::create_dir(root.join(top)).map_err(failed)?;
        mount(Some(&Path::new("/").join(top)), &root.join(top), NONE, MsFlags::MS_BIND | MsFlags::MS_REC, NONE)
            .map_err(forbidden)?;
    }
    fs::create_dir(root.join(NODE)).map_err(failed)?;
    pivot_root(&root, &root.join(NODE)).map_err(forbidden)?;
    std::env::set_current_dir(to_node(&cwd)).map_err(failed)?;
    let own = Path::new("/").join(VSRUN);
    let mut command = Command::new(&own);
    command.arg0("vsrun").args(&args.words).env_clear().envs(environment(&manifest, &dir));
    let e = command.exec();
    Err(refused(&dir, format!("its vsrun cannot be executed: {e}")))
}

/// What this machine forbids, and what to do.
fn forbidden(errno: Errno) -> Failure {
    Failure::environment(format!(
        "environment: a pack runs in a root file system of its own, and this machine lets nobody but root make one ({}): run it as root; or allow user namespaces \
         (sysctl kernel.apparmor_restrict_unprivileged_userns=0, kernel.unprivileged_userns_clone=1, user.max_user_namespaces=10000, as far as there are these); \
         in a container add --cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined",
        errno.desc()
    ))
}

/// A mount namespace of this process's own; if it takes that, in a user namespace in which its user and group are what they are.
fn own_namespaces() -> Result<(), Failure> {
    let (user, group) = (geteuid(), getegid());
    if !user.is_root() || unshare(CloneFlags::CLONE_NEWNS).is_err() {
        unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS).map_err(forbidden)?;
        let tell = |file: &str, text: String| fs::write(Path::new("/proc/self").join(file), text);
        let told = tell("setgroups", "deny".into())
            .and_then(|()| tell("uid_map", format!("{user} {user} 1")))
            .and_then(|()| tell("gid_map", format!("{group} {group} 1")));
        told.map_err(|e| forbidden(Errno::from_raw(e.raw_os_error().unwrap_or_default())))?;
    }
    mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NONE).map_err(forbidden)
}

fn mount_memory(at: &Path) -> nix::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    let with = |options: &str| mount(Some("vsrun-pack"), at, Some("tmpfs"), flags, Some(options));
    // A kernel without huge pages does not know the first.
    with("mode=0755,huge=advise").or_else(|_| with("mode=0755"))
}

/// Copies the files, each compared with what was packed.
fn copy(dir: &Path, manifest: &Manifest, files: &Files, root: &Path) -> Result<(), Failure> {
    let mut modes = Vec::new();
    for entry in &manifest.files {
        let (name, to) = (entry.path(), root.join(entry.path()));
        let failed = |e: io::Error| refused(dir, format!("{} cannot be copied into memory: {e}", escape(name)));
        match &entry.what {
            What::Directory { mode } => {
                fs::create_dir(&to).map_err(failed)?;
                modes.push((to, *mode));
            }
            What::Link(link) => symlink(link, &to).map_err(failed)?,
            What::File(content) => {
                let opened = files.open(name).and_then(|file| Ok((file.metadata()?.len(), file)));
                let (size, mut file): (u64, File) = match opened {
                    Ok(opened) => opened,
                    Err(e) => return damaged(dir, name, Err(e)),
                };
                if size != content.size {
                    return damaged(dir, name, Ok(false));
                }
                let written = write(&to, &mut file, content.mode, content.modified).map_err(failed)?;
                damaged(dir, name, Ok(written == *content))?;
            }
        }
    }
    // The last first: what is in a directory that its owner may not change is there by now.
    for (directory, mode) in modes.iter().rev() {
        fs::set_permissions(directory, Permissions::from_mode(*mode))
            .map_err(|e| refused(dir, format!("its copy in memory cannot be made: {e}")))?;
    }
    Ok(())
}

/// The environment of the vsrun in the pack: that of the program, but for what is vsrun's own.
fn environment(manifest: &Manifest, dir: &Path) -> Vec<(OsString, OsString)> {
    let own = OWN_VARIABLES.iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
    let directories = OWN_DIRECTORIES.iter().filter_map(|name| {
        let path = std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())?;
        Some((OsString::from(name), to_node(&path).into_os_string()))
    });
    let pack = (OsString::from(PACK_VARIABLE), dir.as_os_str().to_os_string());
    let of_vsrun: Vec<(OsString, OsString)> = own.chain(directories).chain([pack]).collect();
    let is_own = |name: &OsStr| OWN_DIRECTORIES.iter().chain(&["TMPDIR", "LD_PRELOAD"]).any(|own| name == *own);
    let of_program =
        manifest.env.iter().filter_map(|entry| super::inside::split(entry)).filter(|(name, _)| !is_own(name));
    of_program.chain(of_vsrun).collect()
}
