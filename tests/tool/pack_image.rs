//! `vsrun pack oci`: an image is as the specification has it, says the same to the byte each time, and runs as the pack does.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::pack::{counts, ended, Place, SAME, SCENARIO};

fn read(path: &Path) -> Value {
    let text = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// What `sha256sum` says of a file.
fn sum(path: &Path) -> String {
    let done = Command::new("sha256sum").arg(path).output().expect("sha256sum");
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    format!("sha256:{}", said.split(' ').next().unwrap_or_default())
}

/// The file that a descriptor is of, which is as it says.
fn blob(image: &Path, descriptor: &Value, kind: &str) -> PathBuf {
    assert_eq!(descriptor["mediaType"], format!("application/vnd.oci.image.{kind}"), "{descriptor}");
    let digest = descriptor["digest"].as_str().expect("a digest");
    let (algorithm, hex) = digest.split_once(':').expect("an algorithm");
    assert!(
        algorithm == "sha256" && hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase())
    );
    let path = image.join("blobs/sha256").join(hex);
    assert_eq!(fs::metadata(&path).expect("a blob").len(), descriptor["size"].as_u64().expect("a size"));
    assert_eq!(sum(&path), digest);
    path
}

/// Its configuration and its layer, all of it held against the specification.
fn parts(image: &Path) -> (Value, PathBuf) {
    assert_eq!(read(&image.join("oci-layout")), serde_json::json!({"imageLayoutVersion": "1.0.0"}));
    let index = read(&image.join("index.json"));
    assert_eq!(
        (&index["schemaVersion"], &index["mediaType"]),
        (&2.into(), &"application/vnd.oci.image.index.v1+json".into())
    );
    let all = index["manifests"].as_array().expect("manifests");
    assert_eq!(all.len(), 1);
    assert_eq!(all[0]["annotations"]["org.opencontainers.image.ref.name"], "latest");
    assert_eq!(all[0]["platform"], serde_json::json!({"architecture": "amd64", "os": "linux"}));
    let manifest = read(&blob(image, &all[0], "manifest.v1+json"));
    assert_eq!((&manifest["schemaVersion"], &manifest["mediaType"]), (&2.into(), &all[0]["mediaType"]));
    let config = read(&blob(image, &manifest["config"], "config.v1+json"));
    let layers = manifest["layers"].as_array().expect("layers");
    let layer = blob(image, &layers[0], "layer.v1.tar");
    assert_eq!((&config["architecture"], &config["os"]), (&"amd64".into(), &"linux".into()));
    // It is not compressed: its digest is that of the tar.
    assert_eq!(config["rootfs"], serde_json::json!({"type": "layers", "diff_ids": [layers[0]["digest"]]}));
    let made = config["history"].as_array().expect("history").iter().filter(|step| step["empty_layer"] != true).count();
    assert_eq!((layers.len(), made), (1, 1));
    let blobs = fs::read_dir(image.join("blobs/sha256")).expect("blobs").count();
    assert_eq!(blobs, 3, "nothing is left over");
    (config, layer)
}

/// Runs the image with these arguments as an engine does, in a mount namespace.
fn run(root: &Path, config: &Value, arguments: &[&str]) -> (Option<i32>, String) {
    let words = |name: &str| -> Vec<String> {
        let words = config["config"][name].as_array().expect("words").iter();
        words.map(|word| word.as_str().expect("a word").to_string()).collect()
    };
    let cwd = config["config"]["WorkingDir"].as_str().expect("a directory");
    // As an engine does: a root that is mounted, with the machine's own three in it.
    let script = "mount --bind \"$1\" \"$1\"; cd \"$1\"; for top in proc dev sys; do mount --rbind /$top $top; done; \
                  pivot_root . old; cd \"$2\"; shift 2; exec \"$@\"";
    let mut command = Command::new("unshare");
    if !nix::unistd::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--mount", "--", "sh", "-ec", script, "sh"]).arg(root).arg(cwd);
    command.args(words("Entrypoint")).args(arguments).env_clear();
    command.envs(words("Env").iter().filter_map(|entry| entry.split_once('=')));
    command.stdin(Stdio::null());
    ended(command)
}

#[test]
fn an_image_of_a_pack_is_sound_and_runs_as_the_pack_does() {
    let place = Place::with_program("image");
    let (status, native) = place.vsrun("made", &["--keep-going", "--scenario-dir", "../there", "-j", "1", "./program"]);
    assert!(status == Some(1) && native.starts_with("DEADLOCK: "), "{native}");
    // Names and links that are too long for the header of a tar.
    let long = format!("made/data/{}", "long/".repeat(30));
    fs::create_dir_all(place.path(&long)).expect("directories");
    place.write(&format!("{long}file"), "x");
    std::os::unix::fs::symlink(format!("./{}file", "long/".repeat(30)), place.path("made/data/link")).expect("a link");
    std::os::unix::fs::symlink(".//long", place.path("made/data/odd")).expect("a link");
    place.write("made/data/closed", "nobody may");
    fs::set_permissions(place.path("made/data/closed"), fs::Permissions::from_mode(0o400)).expect("chmod");
    place.pack(&["--add", "data", "--keep-going", "-j", "1", "./program"]);
    let (status, said) = place.vsrun("here", &["pack", "oci", "-o", "image", "../pack"]);
    assert!(status == Some(0) && said.starts_with("image: an OCI image: "), "{said}");
    let image = place.path("here/image");
    let (config, layer) = parts(&image);
    assert!(
        said.contains(read(&image.join("index.json"))["manifests"][0]["digest"].as_str().expect("a digest")),
        "{said}"
    );
    // The same again.
    let (status, said) = place.vsrun("here", &["pack", "oci", "-o", "again", "../pack"]);
    assert!(status == Some(0), "{said}");
    assert!(Command::new("diff")
        .args(["-r", "image", "again"])
        .current_dir(place.path("here"))
        .status()
        .expect("diff")
        .success());

    // What others make of the layer.
    let root = place.path("root");
    fs::create_dir(&root).expect("a directory");
    let list = Command::new("tar").args(["--numeric-owner", "--utc", "-tvf"]).arg(&layer).output().expect("tar");
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(list.lines().all(|line| line.contains(" 0/0 ") && line.contains(" 1970-01-01 00:00 ")), "{list}");
    let unpacked = Command::new("tar").arg("-xpf").arg(&layer).arg("-C").arg(&root).status();
    assert!(unpacked.expect("tar").success());
    let (status, said) = place.vsrun("here", &["pack", "check", "../root/pack"]);
    assert!(status == Some(0) && said.contains("as it was packed"), "{said}");
    let closed = root.join("pack/root").join(place.path("made/data/closed").strip_prefix("/").expect("absolute"));
    assert_eq!(fs::metadata(closed).expect("a file").mode() & 0o777, 0o444, "who runs it need not be root");

    fs::rename(place.path("made"), place.path("kept")).expect("moved");
    fs::remove_dir_all(place.path("pack")).expect("removed");
    ["proc", "dev", "sys", "old"].iter().for_each(|top| fs::create_dir(root.join(top)).expect("a directory"));
    let (status, said) = run(&root, &config, &[]);
    if said.contains("unshare failed") || said.contains("lets nobody but root make one (Operation not permitted)") {
        eprintln!("left out, since this machine forbids packs: {said}");
        return;
    }
    assert_eq!(status, Some(1), "{said}");
    assert_eq!(counts(&said), counts(&native));
    let lines = |path: &Path| -> String {
        let text = fs::read_to_string(path).expect("a scenario");
        let same =
            |line: &&str| !["\"env\"", "\"checksum\"", "\"mark\""].iter().any(|key| line.trim_start().starts_with(key));
        text.lines().filter(same).map(|line| format!("{line}\n")).collect()
    };
    let (found, there) = (root.join("out").join(SCENARIO), place.path("there").join(SCENARIO));
    assert_eq!(lines(&found), lines(&there), "steps, objects and names are the same");
    fs::copy(&there, root.join("out/native.json")).expect("copied");
    for name in [SCENARIO, "native.json"] {
        let (status, said) = run(&root, &config, &["replay", "--trust", name]);
        assert!(status == Some(1) && said.contains(SAME), "{name}: {said}");
    }
    fs::rename(place.path("kept"), place.path("made")).expect("moved");
    let (status, said) = place.vsrun("here", &["replay", "--trust", &found.to_string_lossy()]);
    assert!(status == Some(1) && said.contains(SAME), "{said}");
    // What is damaged is refused there, too.
    let conf = root.join("pack/root").join(place.path("made/conf").strip_prefix("/").expect("absolute"));
    fs::remove_file(&conf).expect("removed");
    fs::write(&conf, "3\n").expect("written");
    let (status, said) = run(&root, &config, &[]);
    assert!(status == Some(2) && said.contains("made/conf: it is not what was packed"), "{said}");
}

#[test]
fn no_image_is_made_of_what_is_damaged_or_hostile() {
    let place = Place::with_program("no-image");
    place.write("made/.wh.gone", "x");
    place.pack(&["./program"]);
    let refused = |what: &str| {
        let (status, said) = place.vsrun("here", &["pack", "oci", "-o", "image", "../pack"]);
        assert!(status == Some(2) && said.contains(what), "{what}: {said}");
        let left = fs::read_dir(place.path("here/image")).map_or(0, Iterator::count);
        assert_eq!(left, 0, "{what}: nothing of it stays");
    };
    let conf = place.path("pack/root").join(place.path("made/conf").strip_prefix("/").expect("absolute"));
    for text in ["3\n", "longer\n", ""] {
        fs::write(&conf, text).expect("written");
        refused("made/conf: it is not what was packed");
    }
    fs::remove_file(&conf).expect("removed");
    refused("made/conf is missing");
    std::os::unix::fs::symlink("/etc/passwd", &conf).expect("a link");
    refused("made/conf: ");
    fs::remove_file(&conf).expect("removed");
    fs::write(&conf, "2\n").expect("written");
    let whole = place.json();
    let with = |text: &str, what: &str| {
        assert_ne!(text, whole);
        place.write("pack/pack.json", text);
        refused(what);
    };
    let entry = "{\"path\":\"tmp\",\"directory\":{\"mode\":511}}";
    with(
        &whole.replace(entry, &format!("{entry},\n{{\"path\":\"tmp/../../x\",\"link\":\"y\"}}")),
        "it has '..' or '.' in it",
    );
    with(&whole.replace("\"start\":", "\"other\":"), "an older vsrun has packed it, which made no images");
    let start = whole.find("\"loader\":\"").expect("a loader") + "\"loader\":\"".len();
    with(
        &format!("{}../{}", &whole[..start], &whole[start..]),
        "what starts vsrun is no file or directory of the pack",
    );
    with(&whole[..whole.len() / 2], "pack.json is damaged");
    place.write("pack/pack.json", &whole);
    let script = fs::read(place.path("pack/run")).expect("the script");
    fs::write(place.path("pack/run"), "#!/bin/sh\n").expect("written");
    refused("run: it is not what was packed");
    fs::write(place.path("pack/run"), script).expect("written");
    // It is not written over what is there.
    place.write("here/image/file", "x");
    let (status, said) = place.vsrun("here", &["pack", "oci", "-o", "image", "../pack"]);
    assert!(status == Some(2) && said.contains("is not empty: another -o DIR is needed"), "{said}");
    // Engines take such a name for one that is gone.
    let (status, said) =
        place.vsrun("made", &["pack", "-o", "../other", "--look", "0.1", "--add", ".wh.gone", "./program"]);
    assert!(status == Some(0), "{said}");
    let (status, said) = place.vsrun("here", &["pack", "oci", "-o", "gone", "../other"]);
    assert!(
        status == Some(2) && said.contains(".wh.gone: in an image that name says that something is gone"),
        "{said}"
    );
}
