//! An image of a pack, for engines of containers: an OCI image layout (image-spec 1.1), with one layer, which is not compressed.
//!
//! NOTE [Image] The pack is a directory of the image, not its root file system: the container's entrypoint is the vsrun in it, which makes a root file
//! system in memory as on any machine ([`super::enter()`]). What an engine makes of a layer will not do: it adds files (`/etc/hosts`, `/.dockerenv`), keeps
//! what the program has written, and lies on overlayfs, where the kernel puts libraries elsewhere than on the file systems of machines (NOTE
//! \[Addresses\] in `enter.rs`). A chroot without a mount namespace has no `/proc`, without which vsrun is blind.
//!
//! An image depends on its pack alone, to the byte.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde_json::{json, Value};
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

use super::check::{damaged, script_is_as_packed, Files};
use super::make::is_free;
use super::manifest::{refused, Content, Manifest, Start, What, MANIFEST, ROOT, SCRIPT, VSRUN};
use crate::base::hash::{fnv1a, fold};
use crate::base::text::escape;
use crate::config::OciPack;
use crate::explore::Failure;
use crate::report::terminal::shell_path;

/// Where the pack is in the image, and where a container begins, for what vsrun writes there.
const PACK: &str = "pack";
const OUT: &str = "out";
const BLOBS: &str = "blobs/sha256";
/// The layer until its digest is known.
const UNNAMED: &str = "layer";
const OF_IMAGE: &str = "application/vnd.oci.image.";
/// Names that begin so say to engines what is not there any more.
const WHITEOUT: &[u8] = b".wh.";
/// Bytes of a link's target in the header of a tar.
const SHORT_LINK: usize = 100;
/// When it was made: so that it depends on its pack alone.
const CREATED: &str = "1970-01-01T00:00:00Z";
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// An image that was written.
pub struct Image {
    /// Where.
    pub dir: PathBuf,
    /// Regular files in it.
    pub files: usize,
    /// Bytes of its layer.
    pub bytes: u64,
    /// What it goes by.
    pub digest: String,
}

impl Image {
    /// What is said of it.
    pub fn text(&self) -> String {
        let (dir, megabytes) = (shell_path(&self.dir), self.bytes as f64 / 1e6);
        format!("{dir}: an OCI image: {} files, {megabytes:.1} MB\n  latest: {}\n", self.files, self.digest)
    }
}

/// Writes an image of a pack.
///
/// # Errors
/// The pack is not as it was packed, or the image cannot be written.
pub fn image(args: &OciPack) -> Result<Image, Failure> {
    let (dir, image) = (&args.dir, &args.image);
    let (manifest, text) = Manifest::of(dir)?;
    script_is_as_packed(dir, &manifest)?;
    let Some(start) = &manifest.start else {
        return Err(refused(dir, "an older vsrun has packed it, which made no images: pack it again"));
    };
    let config = config(start).ok_or_else(|| refused(dir, "the name of vsrun's loader is no UTF-8"))?;
    is_free(image)?;
    fs::create_dir_all(image.join(BLOBS)).map_err(|e| failed(image, &e))?;
    write_all(args, (&manifest, &text), config).inspect_err(|_| {
        // What is not whole does not stay.
        ["blobs", "oci-layout", "index.json"].iter().for_each(|name| {
            let path = image.join(name);
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        });
    })
}

fn failed(image: &Path, e: &io::Error) -> Failure {
    Failure::environment(format!("environment: the image {} cannot be written: {e}", escape(image)))
}

/// What a container runs: vsrun with its own loader and libraries, as the script of the pack does, but without a shell, which may not be there.
fn config(start: &Start) -> Option<Value> {
    let at = |name: &OsStr| Some(format!("/{PACK}/{ROOT}/{}", name.to_str()?));
    let libraries: Option<Vec<String>> = start.libraries.iter().map(|dir| at(dir)).collect();
    let (loader, libraries, vsrun) = (at(&start.loader)?, libraries?.join(":"), at(VSRUN.as_ref())?);
    let pack = format!("/{PACK}");
    Some(json!({
        "Env": [PATH],
        "Entrypoint": [loader, "--library-path", libraries, vsrun, "pack", "run", pack],
        "WorkingDir": format!("/{OUT}"),
    }))
}

/// Writes all of it, `index.json` last: without that a directory is no image.
fn write_all(args: &OciPack, (manifest, text): (&Manifest, &[u8]), config: Value) -> Result<Image, Failure> {
    let image = &args.image;
    let cannot = |e: io::Error| failed(image, &e);
    let unnamed = image.join(BLOBS).join(UNNAMED);
    let (files, layer) = write_layer(args, (manifest, text), &unnamed)?;
    fs::rename(&unnamed, image.join(BLOBS).join(&layer.digest)).map_err(cannot)?;
    let blob = |value: &Value| {
        let bytes = value.to_string().into_bytes();
        let of = Blob { digest: hex(&Sha256::digest(&bytes)), size: bytes.len() as u64 };
        write(&image.join(BLOBS).join(&of.digest), &bytes).map(|()| of).map_err(cannot)
    };
    let made_by = format!("vsrun {} pack oci", env!("CARGO_PKG_VERSION"));
    let config = blob(&json!({
        "created": CREATED,
        "architecture": "amd64",
        "os": "linux",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [layer.named()]},
        "history": [{"created": CREATED, "created_by": made_by}],
    }))?;
    let whole = blob(&json!({
        "schemaVersion": 2,
        "mediaType": format!("{OF_IMAGE}manifest.v1+json"),
        "config": config.descriptor("config.v1+json"),
        "layers": [layer.descriptor("layer.v1.tar")],
    }))?;
    let mut of_image = whole.descriptor("manifest.v1+json");
    of_image["platform"] = json!({"architecture": "amd64", "os": "linux"});
    of_image["annotations"] = json!({"org.opencontainers.image.ref.name": "latest"});
    let index = json!({"schemaVersion": 2, "mediaType": format!("{OF_IMAGE}index.v1+json"), "manifests": [of_image]});
    write(&image.join("oci-layout"), json!({"imageLayoutVersion": "1.0.0"}).to_string().as_bytes()).map_err(cannot)?;
    write(&image.join("index.json"), index.to_string().as_bytes()).map_err(cannot)?;
    Ok(Image { dir: image.clone(), files, bytes: layer.size, digest: whole.named() })
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).open(path)?.write_all(bytes)
}

/// What a blob goes by.
struct Blob {
    digest: String,
    size: u64,
}

impl Blob {
    fn named(&self) -> String {
        format!("sha256:{}", self.digest)
    }

    fn descriptor(&self, kind: &str) -> Value {
        json!({"mediaType": format!("{OF_IMAGE}{kind}"), "digest": self.named(), "size": self.size})
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Writes to a file, and hashes that.
struct Hashed {
    file: File,
    sha: Sha256,
    size: u64,
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.file.write(bytes)?;
        self.sha.update(&bytes[..n]);
        self.size += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Reads a file of the pack, and hashes that.
struct Compared {
    from: io::Take<File>,
    size: u64,
    fnv: u64,
}

impl Read for Compared {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.from.read(buffer)?;
        self.size += n as u64;
        self.fnv = fold(self.fnv, buffer[..n].iter().copied());
        Ok(n)
    }
}

/// The layer: the pack, and a directory to begin in. How many regular files it has.
fn write_layer(args: &OciPack, (manifest, text): (&Manifest, &[u8]), to: &Path) -> Result<(usize, Blob), Failure> {
    let dir = &args.dir;
    let cannot = |e: io::Error| failed(&args.image, &e);
    let from = Files::of(dir)?;
    let file = OpenOptions::new().write(true).create_new(true).open(to).map_err(cannot)?;
    let mut tar = Builder::new(Hashed { file, sha: Sha256::new(), size: 0 });
    let pack = Path::new(PACK);
    let mut count = 2;
    // Who runs a container need not be root.
    put(&mut tar, Path::new(OUT), EntryType::Directory, 0o1777, 0, io::empty()).map_err(cannot)?;
    put(&mut tar, pack, EntryType::Directory, 0o755, 0, io::empty()).map_err(cannot)?;
    put(&mut tar, &pack.join(MANIFEST), EntryType::Regular, 0o644, text.len(), text).map_err(cannot)?;
    put(&mut tar, &pack.join(ROOT), EntryType::Directory, 0o755, 0, io::empty()).map_err(cannot)?;
    for entry in &manifest.files {
        let (name, path) = (entry.path(), pack.join(ROOT).join(entry.path()));
        if name.file_name().is_some_and(|name| name.as_bytes().starts_with(WHITEOUT)) {
            let why = "in an image that name says that something is gone";
            return Err(refused(dir, format!("{}: {why}", escape(Path::new(ROOT).join(name)))));
        }
        match &entry.what {
            What::Directory { .. } => {
                damaged(dir, name, from.directory(name).map(|()| true))?;
                put(&mut tar, &path, EntryType::Directory, 0o755, 0, io::empty()).map_err(cannot)?;
            }
            What::Link(link) => {
                damaged(dir, name, from.link(name).map(|is| is.as_os_str() == link))?;
                put_link(&mut tar, &path, link).map_err(cannot)?;
            }
            What::File(content) => {
                put_file(&mut tar, (&path, content), (args, name), from.open(name))?;
                count += 1;
            }
        }
    }
    let script = fs::read(dir.join(SCRIPT)).map_err(|e| refused(dir, format!("{SCRIPT}: {e}")))?;
    put(&mut tar, &pack.join(SCRIPT), EntryType::Regular, 0o755, script.len(), &script[..]).map_err(cannot)?;
    let written = tar.into_inner().map_err(cannot)?;
    written.file.sync_data().map_err(cannot)?;
    Ok((count, Blob { digest: hex(&written.sha.finalize()), size: written.size }))
}

/// What is the same of all entries: the owner is root, times are none.
fn header(kind: EntryType, mode: u32, size: usize) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size as u64);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

fn put(
    tar: &mut Builder<Hashed>,
    name: &Path,
    kind: EntryType,
    mode: u32,
    size: usize,
    content: impl Read,
) -> io::Result<()> {
    tar.append_data(&mut header(kind, mode, size), name, content)
}

/// A file of the pack, compared with what was packed while it is copied.
fn put_file(
    tar: &mut Builder<Hashed>,
    (to, content): (&Path, &Content),
    (args, name): (&OciPack, &Path),
    opened: io::Result<File>,
) -> Result<(), Failure> {
    let (size, file) = match opened.and_then(|file| Ok((file.metadata()?.len(), file))) {
        Ok(opened) => opened,
        Err(e) => return damaged(&args.dir, name, Err(e)),
    };
    if size != content.size {
        return damaged(&args.dir, name, Ok(false));
    }
    let mut compared = Compared { from: file.take(size), size: 0, fnv: fnv1a([]) };
    // What it may be done with stands in pack.json; here all may read it.
    let mode = 0o444 | content.mode & 0o111;
    put(tar, to, EntryType::Regular, mode, size as usize, &mut compared).map_err(|e| failed(&args.image, &e))?;
    damaged(&args.dir, name, Ok((compared.size, compared.fnv) == (content.size, content.fnv)))
}

fn put_link(tar: &mut Builder<Hashed>, name: &Path, to: &OsString) -> io::Result<()> {
    let mut header = header(EntryType::Symlink, 0o777, 0);
    if to.len() > SHORT_LINK {
        return tar.append_link(&mut header, name, to);
    }
    // As it is: what does not matter to the kernel stays in it.
    header.set_link_name_literal(to.as_bytes())?;
    tar.append_data(&mut header, name, io::empty())
}
