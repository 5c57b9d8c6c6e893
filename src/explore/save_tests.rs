use super::*;
use crate::base::testing::TempDir;

fn outcomes() -> SavedOutcomes {
    let schedule = SavedSchedule { prefix: vec![(1, 1, 16)], ..SavedSchedule::default() };
    let (text, status, bytes) = (u64::MAX - 7, 3 << 8, 5);
    let ended = Ended { text, status, bytes, output: vec![b'a', 0xff, 0] };
    let kept =
        SavedOutcome { text, status, bytes, output: ended.output.clone(), execution: 4, transitions: 1, schedule };
    SavedOutcomes { executions: 4, overflow: true, times: vec![(1, 3), (ended.identity(), 1)], kept: vec![kept] }
}

fn saved() -> Saved {
    let program = scenario::Program {
        exe: "/bin/p".into(),
        script: OsString::new(),
        argv: vec!["./p".into(), OsString::from_vec(vec![0xff])],
        cwd: "/".into(),
        env: vec!["A=1".into()],
    };
    let options = scenario::Options {
        livelock: 3,
        fail_on_exit: true,
        divergence_timeout_ms: 2000,
        max_depth: Some(9),
        max_idle: Some(4),
        seed: 1,
        stdin: "null".into(),
        watches: false,
        watched: false,
        ..scenario::Options::default()
    };
    let bug = SavedBug {
        identity: u64::MAX,
        kind: BugKind::Deadlock,
        summary: "nothing can move".into(),
        scenario: Some(vec![b'p', 0xfe]),
        execution: 7,
        transitions: 2,
        schedule: SavedSchedule {
            prefix: vec![(1, 0, 16), (u64::MAX, 1, 3)],
            guide: vec![(2, 1, 17)],
            policy: 0,
            seed: u64::MAX - 1,
            pct: (3, 4, 5),
            expected: vec![(7, 9)],
            interest: vec![3],
            wishes: vec![(1, 2, 3, true)],
        },
        objects: Objects {
            unshared: true,
            shared: [1, u64::MAX].into(),
            declared: Vec::new(),
            words: [(0, 8)].into(),
            distrusts: true,
            reuses: true,
            late: ["/usr/lib/a.so".into()].into(),
        },
        restarts: 2,
    };
    let header = Header {
        program,
        fingerprint: serde_json::json!([{"size": 1}]),
        options,
        search: "--search naive".into(),
        executions: 12,
        max_depth: 5,
        cut: 2,
        ended: 3,
        reasons: [(Reason::Depth, 2), (Reason::PiFutex, 1)].into(),
        outcomes: outcomes(),
        tosses: 5,
        notes: vec!["a note".into()],
        passed: vec![0, 2],
        seconds: 1.5,
        bugs: vec![bug],
        sharing: Sharing::default(),
        piece: None,
    };
    Saved { header, search: (0..40).collect() }
}

#[test]
fn a_state_comes_back() {
    let saved = saved();
    assert_eq!(Saved::from_bytes(&saved.to_bytes()).as_ref(), Ok(&saved));
    let found: Vec<Found> = saved.header.found().collect();
    assert_eq!(SavedBug::new(&found[0]), saved.header.bugs[0]);
    assert!(found[0].is_stale());
    assert_eq!(saved.header.counts().executions, 12);
    let outcomes = saved.header.outcomes.outcomes(&saved.header.sharing);
    assert_eq!(SavedOutcomes::new(&outcomes), saved.header.outcomes);
}

#[test]
fn a_file_cut_off_anywhere_is_not_accepted() {
    let bytes = saved().to_bytes();
    for length in 0..bytes.len() {
        assert!(Saved::from_bytes(&bytes[..length]).is_err(), "{length}");
    }
    assert!(Saved::from_bytes(&[bytes.as_slice(), b"x"].concat()).is_err());
}

#[test]
fn other_versions_are_refused() {
    let bytes = saved().to_bytes();
    for version in ["9\n\0", "11\n", "16\n", "17\n", "18\n"] {
        let other = [FORMAT, version.as_bytes(), &bytes[MAGIC.len()..]].concat();
        assert_eq!(Saved::from_bytes(&other), Err("it was saved by another version of vsrun".into()));
    }
    assert_eq!(Saved::from_bytes(b"something else"), Err("it is not a saved search".into()));
    let dir = TempDir::new();
    let path = dir.0.join("state");
    fs::write(&path, [FORMAT, b"7\n\0", &bytes[MAGIC.len()..]].concat()).unwrap();
    let refused = format!("{} cannot be resumed: it was saved by another version of vsrun", path.display());
    assert_eq!(Saved::load(&path), Err(refused));
}

/// The checksum keeps damage out; what comes past it does no harm either.
#[test]
fn a_header_that_lies_about_its_length_is_refused() {
    let bytes = saved().to_bytes();
    for length in [0, 1, bytes.len() as u64, u64::MAX] {
        let mut lying = [MAGIC.as_slice(), &length.to_le_bytes(), &bytes[MAGIC.len() + 8..bytes.len() - 8]].concat();
        let sum = fnv1a(lying.iter().copied());
        lying.extend(sum.to_le_bytes());
        assert!(Saved::from_bytes(&lying).unwrap_err().contains("damaged"), "{length}");
    }
}

/// Sums are made of what was counted, and must not overflow.
#[test]
fn counts_that_cannot_be_are_refused() {
    let changes: [fn(&mut Header); 4] = [
        |header| header.executions = u64::MAX,
        |header| {
            header.reasons.insert(Reason::Depth, u64::MAX);
        },
        |header| header.bugs[0].restarts = u64::MAX,
        |header| header.sharing.start_over(u64::MAX),
    ];
    for change in changes {
        let mut saved = saved();
        change(&mut saved.header);
        assert_eq!(Saved::from_bytes(&saved.to_bytes()), Err("it is damaged: its count cannot be".into()));
    }
}

#[test]
fn a_changed_byte_is_noticed() {
    let bytes = saved().to_bytes();
    for at in 0..bytes.len() {
        for bit in [1, 0x80] {
            let mut changed = bytes.clone();
            changed[at] ^= bit;
            assert!(Saved::from_bytes(&changed).is_err(), "{at}");
        }
    }
}

#[test]
fn the_state_before_is_used_where_the_last_is_not_whole() {
    let dir = TempDir::new();
    let path = dir.0.join("state");
    let mut state = saved();
    state.write(&path, false).unwrap();
    assert_eq!(Saved::load(&path), Ok((state.clone(), None)));
    let first = state.clone();
    state.header.executions = 99;
    state.write(&path, false).unwrap();
    assert_eq!(Saved::load(&path), Ok((state.clone(), None)));
    let bytes = fs::read(&path).unwrap();
    for length in (0..bytes.len()).step_by(37) {
        fs::write(&path, &bytes[..length]).unwrap();
        let (loaded, note) = Saved::load(&path).unwrap();
        assert_eq!(loaded, first);
        assert!(note.unwrap().contains("state before it"));
    }
    fs::remove_file(&path).unwrap();
    assert_eq!(Saved::load(&path).unwrap().0, first);
    fs::write(dir.0.join("state.1"), b"").unwrap();
    assert!(Saved::load(&path).unwrap_err().contains("cannot be resumed"));
}

#[test]
fn other_options_are_named() {
    let options = saved().header.options;
    assert_eq!(different_option(&options, &options.clone()), None);
    let other = scenario::Options { max_depth: None, ..options.clone() };
    assert_eq!(different_option(&options, &other), Some("--max-depth"));
    let other = scenario::Options { max_idle: None, ..options.clone() };
    assert_eq!(different_option(&options, &other), Some("--max-idle"));
    let other = scenario::Options { stdin: "file".into(), ..options.clone() };
    assert_eq!(different_option(&options, &other), Some("standard input"));
    let cpu = |baseline, model: &str| Some(scenario::Cpu { baseline, model: model.into(), trapped: false });
    let on = |baseline, model: &str| scenario::Options { cpu: cpu(baseline, model), ..options.clone() };
    assert_eq!(different_option(&on(true, "a"), &on(false, "a")), Some("--cpu"));
    // Another processor is no other option.
    assert_eq!(different_option(&on(true, "a"), &on(true, "b")), None);
}

#[test]
fn a_damaged_state_does_not_take_the_place_of_the_one_before_it() {
    let dir = TempDir::new();
    let path = dir.0.join("state");
    let first = saved();
    first.write(&path, false).unwrap();
    let mut second = first.clone();
    second.header.executions = 99;
    second.write(&path, true).unwrap();
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    second.write(&path, false).unwrap();
    fs::write(&path, "gone").unwrap();
    assert_eq!(Saved::load(&path).unwrap().0, first);
    assert!(first.write(std::path::Path::new("/dev/null"), false).is_err());
}

/// The saved search of the fuzzer's corpus is one of today. With `VSRUN_CORPUS=write` it is written: after a change of what is saved.
#[test]
fn the_saved_search_of_the_corpus_is_one_of_today() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/saved/one");
    if std::env::var_os("VSRUN_CORPUS").is_some() {
        saved().write(&path, false).unwrap();
    }
    assert_eq!(Saved::load(&path).unwrap().0, saved());
}
