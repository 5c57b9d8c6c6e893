//! What is in `fuzz/corpus` is done with as the fuzz targets do it (`scripts/fuzz.sh`), without a fuzzer.

#[path = "../../fuzz/src/targets/mod.rs"]
mod targets;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

type Target = fn(&[u8]) -> bool;

/// Every target, by its name.
const TARGETS: [(&str, Target); 12] = [
    ("allowed", targets::allowed),
    ("annotations", targets::annotations),
    ("arguments", targets::arguments),
    ("elf", targets::elf),
    ("ldcache", targets::ldcache),
    ("pieces", targets::pieces),
    ("saved", targets::saved),
    ("scenario", targets::scenario),
    ("search", targets::search),
    ("sites", targets::sites),
    ("swarm", targets::swarm),
    ("unwind", targets::unwind),
];

fn files(target: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut files: Vec<PathBuf> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn nothing_in_the_corpus_does_harm() {
    for (name, target) in TARGETS {
        let files = files(name);
        assert!(!files.is_empty(), "{name}");
        let mut taken = 0;
        for file in files {
            println!("{}", file.display());
            let since = Instant::now();
            taken += usize::from(target(&fs::read(&file).unwrap()));
            assert!(since.elapsed() < Duration::from_secs(3), "{}: {:?}", file.display(), since.elapsed());
        }
        // What all is refused of shows little.
        assert!(taken > 0, "{name}");
    }
}

/// Each target has a file in `fuzz_targets` and a corpus.
#[test]
fn every_target_is_here() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    for (part, ending) in [("fuzz_targets", ".rs"), ("corpus", "")] {
        let entries = fs::read_dir(fuzz.join(part)).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = entries.map(|name| name.trim_end_matches(ending).to_string()).collect();
        names.sort();
        assert_eq!(names, TARGETS.map(|(name, _)| name), "{part}");
    }
}

/// Searches that were saved after some executions are in the corpus as this vsrun saves them. With `VSRUN_CORPUS=write` they are
/// written: after a change of what is saved.
#[test]
fn saved_searches_of_the_corpus_are_those_of_today() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/search");
    for kind in 0..8u8 {
        for (n, executions) in [1, 4, 9].into_iter().enumerate() {
            // Programs of which a search has more to do.
            let number = 3 * kind + 7 * n as u8;
            let seed = targets::seed(kind, number, executions);
            let path = directory.join(format!("saved-{kind}-{executions}"));
            if std::env::var_os("VSRUN_CORPUS").is_some() {
                fs::write(&path, &seed).unwrap();
            }
            assert!(targets::search(&seed), "{}", path.display());
            assert!(fs::read(&path).is_ok_and(|there| there == seed), "{}", path.display());
        }
    }
}

/// The same of files of a swarm.
#[test]
fn files_of_swarms_of_the_corpus_are_those_of_today() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/swarm");
    for (seed, name) in vsrun::cluster::swarm::fuzz::seeds().into_iter().zip(["description", "clock", "lot", "done"]) {
        let path = directory.join(name);
        if std::env::var_os("VSRUN_CORPUS").is_some() {
            fs::write(&path, &seed).unwrap();
        }
        assert!(targets::swarm(&seed), "{}", path.display());
        assert!(fs::read(&path).is_ok_and(|there| there == seed), "{}", path.display());
    }
}
