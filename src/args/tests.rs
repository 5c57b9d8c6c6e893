use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

use super::*;
use crate::config::Checkpoint;
use crate::config::Point;
use crate::config::{
    Bounds, ClientsStart, Doctor, Explain, Format, MemoryModel, PictureFormat, ProgressMode, Refine, Replay,
    ReportFormat, Show, Timeouts, Why,
};
use crate::search::Bound;

fn run(args: &[&str]) -> Result<Command, UsageError> {
    parse(std::iter::once("vsrun").chain(args.iter().copied()).map(OsString::from))
}

fn config(args: &[&str]) -> Config {
    match run(args) {
        Ok(Command::Explore(config)) => config,
        other => panic!("{args:?}: {other:?}"),
    }
}

fn refused(args: &[&str]) -> String {
    let error = run(args).unwrap_err();
    assert_eq!(error.code, 2, "{args:?}");
    assert!(error.text.starts_with("vsrun: ") && !error.text.contains('\n'), "{args:?}: {:?}", error.text);
    error.text
}

fn strings(config: &Config) -> Vec<&str> {
    config.program.iter().map(|a| a.to_str().unwrap()).collect()
}

#[test]
fn definition_is_consistent() {
    command().debug_assert();
}

#[test]
fn each_option_that_is_shown_first_is_there() {
    for id in FIRST {
        assert!(Raw::command().get_arguments().any(|arg| arg.get_id() == id), "no option has the id {id}");
    }
}

#[test]
fn the_short_help_fits_a_screen_and_the_long_one_has_all() {
    let (short, long) = (refused_with_help("-h"), refused_with_help("--help"));
    assert!(short.lines().count() <= 70, "{} lines:\n{short}", short.lines().count());
    for arg in Raw::command().get_arguments().filter(|arg| !arg.is_hide_set()) {
        if let Some(name) = arg.get_long() {
            assert!(long.contains(&format!("--{name}")), "--{name} is not in --help");
        }
    }
    assert!(short.contains("vsrun --help") && !short.contains("--pct-fair") && long.contains("--pct-fair"));
}

fn refused_with_help(option: &str) -> String {
    let help = run(&[option]).unwrap_err();
    assert_eq!(help.code, 0);
    help.text
}

/// A heading that nearly all stand under says nothing.
#[test]
fn options_stand_under_headings_of_a_dozen_or_so() {
    let mut sizes = std::collections::BTreeMap::<String, usize>::new();
    for arg in Raw::command().get_arguments().filter(|arg| !arg.is_hide_set()) {
        *sizes.entry(arg.get_help_heading().unwrap_or("").to_string()).or_default() += 1;
    }
    assert!(sizes.len() >= 6 && sizes.values().all(|&n| n <= 13), "{sizes:?}");
}

#[test]
fn what_packagers_ask_for() {
    use crate::config::{Completions, Man, Shell};
    assert_eq!(run(&["completions", "zsh"]), Ok(Command::Completions(Completions { shell: Shell::Zsh })));
    assert_eq!(run(&["man", "dir"]), Ok(Command::Man(Man { directory: PathBuf::from("dir") })));
    assert!(refused(&["completions", "tcsh"]).contains("tcsh"));
    assert!(refused(&["--once", "man", "x"]).contains("'man'"));
}

#[test]
fn defaults() {
    let c = config(&["./prog"]);
    assert_eq!(c.search, SearchKind::Optimal);
    assert_eq!(c.bounds, Bounds::default());
    assert!(!c.all_objects && c.unshared.is_empty() && c.atomic.is_empty() && c.annotations.is_none());
    assert_eq!(c.divergence_timeout, Duration::from_secs(2));
    assert_eq!((c.timeouts, c.checkpoint, c.format), (Timeouts::Any, Checkpoint::Auto, ReportFormat::Text));
    assert_eq!((c.livelock, c.seed, c.workers, c.progress), (None, 0, None, ProgressMode::Auto));
    assert!(!c.keep_going && !c.fail_on_exit && !c.allow_misuse);
    assert_eq!((c.scenario_dir, c.output), (PathBuf::from("."), None));
    assert_eq!((c.save, c.resume), (None, None));
    let c = config(&["--save", "s", "--resume", "r", "./prog"]);
    assert_eq!((c.save, c.resume), (Some(PathBuf::from("s")), Some(PathBuf::from("r"))));
}

#[test]
fn shortening_and_explaining() {
    let shrink = |args: &[&str]| config(args).shrink;
    assert_eq!(shrink(&["p"]), Duration::from_secs(2));
    assert_eq!(shrink(&["--shrink", "0", "p"]), Duration::ZERO);
    assert_eq!(shrink(&["--shrink", "0.5", "p"]), Duration::from_millis(500));
    assert!(refused(&["--shrink=-1", "p"]).contains("or 0"));
    let explained = |args: &[&str]| match run(args) {
        Ok(Command::Explain(explain)) => explain,
        other => panic!("{other:?}"),
    };
    let (time, file) = (Duration::from_secs(10), PathBuf::from("f"));
    let plain = Explain { samples: 20, time, seed: 0, trust: false, format: Format::Text, file };
    assert_eq!(explained(&["explain", "f"]), plain);
    let time = Duration::from_secs(3);
    let all = Explain { samples: 5, time, seed: 7, trust: true, format: Format::Json, ..plain };
    let args = "explain --samples 5 --time 3 --seed 7 --trust --format json f";
    assert_eq!(explained(&args.split_whitespace().collect::<Vec<_>>()), all);
    assert!(refused(&["explain", "--samples", "0", "f"]).contains("--samples"));
}

#[test]
fn all_options() {
    let args = "--search random --keep-going --max-idle 4 --max-depth 9 --max-executions=50 --time 1.5 --seed 7 -j 3 \
                --progress never --race off --divergence-timeout 0.5 --livelock 40 --timeouts urgent --checkpoint fork \
                --fail-on-exit --allow-misuse --scenario-dir /tmp --output o --format json p";
    let c = config(&args.split_whitespace().collect::<Vec<_>>());
    assert_eq!(c.search, SearchKind::Random);
    let time = Some(Duration::from_millis(1500));
    assert_eq!(c.bounds, Bounds { idle: Some(4), depth: Some(9), executions: Some(50), time });
    assert_eq!((c.seed, c.livelock, c.divergence_timeout), (7, Some(40), Duration::from_millis(500)));
    assert_eq!((c.timeouts, c.checkpoint, c.format), (Timeouts::Urgent, Checkpoint::Fork, ReportFormat::Json));
    assert!(c.keep_going && c.fail_on_exit && c.allow_misuse);
    assert_eq!((c.workers, c.progress), (Some(3), ProgressMode::Never));
    assert_eq!((c.scenario_dir, c.output), (PathBuf::from("/tmp"), Some(PathBuf::from("o"))));
    assert_eq!(config(&["--once", "p"]).search, SearchKind::Once);
    assert_eq!(config(&["--search", "naive", "p"]).search.name(), "naive");
}

#[test]
fn what_follows_the_program_is_its_own() {
    let c = config(&["--seed", "3", "./p", "--seed", "4", "-j", "8", "--help", "--", "replay", "--bogus"]);
    assert_eq!(c.seed, 3);
    assert_eq!(strings(&c), ["./p", "--seed", "4", "-j", "8", "--help", "--", "replay", "--bogus"]);
    assert_eq!(strings(&config(&["p", "replay", "x"])), ["p", "replay", "x"]);
    assert_eq!(strings(&config(&["--once", "--", "-odd", "--", "a"])), ["-odd", "--", "a"]);
    assert_eq!(strings(&config(&["help", ""])), ["help", ""]);
}

#[test]
fn bytes_that_are_not_utf8_and_newlines_pass() {
    let odd = OsString::from_vec(b"a\nb\xff\xfe".to_vec());
    let args = ["vsrun".into(), "--scenario-dir".into(), odd.clone(), odd.clone(), odd.clone()];
    let Ok(Command::Explore(c)) = parse(args) else { panic!() };
    assert_eq!(c.program, [odd.clone(), odd.clone()]);
    assert_eq!(c.scenario_dir.into_os_string(), odd);
}

#[test]
fn commands_and_programs_of_the_same_name() {
    let file = PathBuf::from("f");
    let watch = Vec::new();
    let replay = Replay {
        no_supervisor: true,
        watch,
        relaxed: false,
        until: None,
        trust: false,
        output: None,
        format: Format::Json,
        file: file.clone(),
    };
    assert_eq!(run(&["replay", "--no-supervisor", "--format", "json", "f"]), Ok(Command::Replay(replay)));
    assert_eq!(run(&["show", "f"]), Ok(Command::Show(Show { format: Format::Text, file })));
    assert_eq!(run(&["why", "4711"]), Ok(Command::Why(Why { format: Format::Text, pid: 4711 })));
    let json = Command::Why(Why { format: Format::Json, pid: 1 });
    assert_eq!(run(&["why", "--format", "json", "1"]), Ok(json));
    for wrong in ["0", "-1", "x", "2147483648"] {
        assert!(run(&["why", "--", wrong]).is_err_and(|e| e.code == 2), "{wrong}");
    }
    assert_eq!(run(&["doctor"]), Ok(Command::Doctor(Doctor { program: Vec::new() })));
    assert_eq!(strings(&config(&["./replay", "f"])), ["./replay", "f"]);
    assert_eq!(strings(&config(&["--", "replay", "f"])), ["replay", "f"]);
    assert!(refused(&["--format", "json", "replay", "f"]).contains("./replay"));
    refused(&["replay"]);
    refused(&["replay", "a", "b"]);
    assert_eq!(run(&["doctor", "x"]), Ok(Command::Doctor(Doctor { program: vec!["x".into()] })));
}

#[test]
fn pictures_and_lists_of_single_executions() {
    let Ok(Command::Timeline(picture)) = run(&["timeline", "f", "-o", "bug.html"]) else { panic!() };
    assert_eq!(
        (picture.format, picture.output, picture.trust),
        (PictureFormat::Html, Some(PathBuf::from("bug.html")), false)
    );
    for (name, format) in
        [("perfetto", PictureFormat::Perfetto), ("dot", PictureFormat::Dot), ("json", PictureFormat::Json)]
    {
        let Ok(Command::Timeline(picture)) = run(&["timeline", "--format", name, "f"]) else { panic!() };
        assert_eq!((picture.format, picture.output), (format, None));
    }
    refused(&["timeline"]);
    let words = "trace --seed 7 --max-depth 9 --time 2 --with c --stop-signal TERM --files private --output o --format json p --seed 1";
    let Ok(Command::Trace(trace)) = run(&words.split_whitespace().collect::<Vec<_>>()) else { panic!() };
    assert_eq!((trace.seed, trace.format, trace.config.search), (Some(7), Format::Json, SearchKind::Once));
    assert_eq!(strings(&trace.config), ["p", "--seed", "1"]);
    assert_eq!(trace.config.bounds, Bounds { depth: Some(9), time: Some(Duration::from_secs(2)), ..Bounds::default() });
    assert!(trace.config.private_files() && trace.config.with.len() == 1 && trace.config.stop_signal == Some(15));
    let Ok(Command::Trace(trace)) = run(&["trace", "p"]) else { panic!() };
    assert!(trace.seed.is_none() && !trace.config.private_files() && !trace.config.race().watches());
    refused(&["trace"]);
    assert!(refused(&["trace", ""]).contains("name is empty"));
    assert!(refused(&["trace", "--search", "naive", "p"]).contains("--search"));
}

#[test]
fn reports_for_servers() {
    for (name, format) in [("sarif", ReportFormat::Sarif), ("junit", ReportFormat::Junit)] {
        assert_eq!(config(&["--format", name, "p"]).format, format);
        assert!(refused(&["replay", "--format", name, "f"]).contains(name));
    }
}

#[test]
fn searches_of_the_papers_by_name() {
    for name in ["sss", "if-sss", "composed", "transactions", "exitblock", "exitblock-rw"] {
        assert_eq!(config(&["--search", name, "p"]).search.name(), name);
    }
}

#[test]
fn refinement_is_of_transactions() {
    let with = |how| config(&["--search", "transactions", "--refine", how, "p"]).refine;
    assert_eq!((with("incremental"), with("restart")), (Some(Refine::Incremental), Some(Refine::Restart)));
    assert!(refused(&["--refine", "incremental", "p"]).contains("--search transactions"));
}

#[test]
fn later_work_is_refused_by_name() {
    for (race, search) in [("hb", "composed"), ("both", "transactions")] {
        let said = format!("vsrun: --race {race} needs every order of operations: another search than {search}");
        assert!(refused(&["--race", race, "--search", search, "p"]).starts_with(&said));
    }
}

#[test]
fn functions_that_return_a_choice() {
    let tosses = |args: &[&str]| {
        let all = config(args).toss.into_iter();
        all.map(|toss| (toss.function, toss.most)).collect::<Vec<_>>()
    };
    let both = tosses(&["--toss", "a::f(int):3", "--toss", "g:65535", "p"]);
    assert_eq!(both, [("a::f(int)".to_string(), 3), ("g".to_string(), 65535)]);
    assert_eq!(refused(&["--toss", "f:1", "--toss", "f:2", "p"]), "vsrun: --toss names 'f' twice; try 'vsrun --help'");
    for wrong in ["f", "f:", ":1", "a::1", "f:0", "f:-1", "f:65536", "f:x"] {
        assert!(refused(&["--toss", wrong, "p"]).contains("--toss"), "{wrong}");
    }
}

#[test]
fn what_is_kept_back_of_the_heap() {
    let kept = |args: &[&str]| config(args).quarantine();
    assert_eq!(kept(&["p"]), None);
    assert_eq!(kept(&["--quarantine", "1M", "p"]), Some(1 << 20));
    assert_eq!((kept(&["--quarantine", "0", "p"]), kept(&["--heap", "off", "p"])), (Some(0), Some(0)));
    refused(&["--quarantine", "17M", "p"]);
    let marks = |args: &[&str]| config(args).checkpoint_memory;
    assert_eq!((marks(&["p"]), marks(&["--checkpoint-memory", "0", "p"])), (None, Some(0)));
    assert_eq!(marks(&["--checkpoint-memory", "3G", "p"]), Some(3 << 30));
    for wrong in ["", "1T", "x", "1.5G", "99999999999G"] {
        let said = refused(&["--checkpoint-memory", wrong, "p"]);
        assert!(said.contains("--checkpoint-memory") && said.contains("K, M or G behind it; or 0"), "{said}");
    }
    refused(&["--quarantine", "-1", "p"]);
    refused(&["--quarantine", "1K", "--heap", "off", "p"]);
}

#[test]
fn variables_whose_uses_are_told() {
    let watched = config(&["--watch", "a::b", "--watch", "t+16", "--watch", "t+0x10:4", "p"]).watch;
    let point = |symbol: &str, offset, length| Point { symbol: symbol.into(), offset, length };
    assert_eq!(watched, [point("a::b", 0, None), point("t", 16, None), point("t", 16, Some(4))]);
    assert_eq!(watched[2].to_string(), "t+16:4");
    for wrong in ["", "+4", "t+", "t+x", "t+4:", "t+4:0", "t+-1", "t++1"] {
        assert!(refused(&["--watch", wrong, "p"]).contains("--watch"), "{wrong}");
    }
    refused(&["replay", "--no-supervisor", "--watch", "t", "f"]);
}

#[test]
fn durations_are_seconds_or_have_units() {
    let ms = |text: &str| config(&[&format!("--time={text}"), "p"]).bounds.time.map(|time| time.as_millis());
    let times = [
        ("90", 90_000),
        ("1.5", 1500),
        ("0.001", 1),
        (".5", 500),
        ("500ms", 500),
        ("10m", 600_000),
        ("1h30m", 5_400_000),
    ];
    for (text, expected) in
        times.into_iter().chain([("1.5h", 5_400_000), ("2d", 172_800_000), ("1m0.5s", 60_500), ("90s", 90_000)])
    {
        assert_eq!(ms(text), Some(expected), "{text}");
    }
    assert_eq!(config(&["--divergence-timeout", "250ms", "p"]).divergence_timeout, Duration::from_millis(250));
}

#[test]
fn wrong_usage_is_one_line() {
    assert_eq!(refused(&[]), "vsrun: no program given; try 'vsrun --help'");
    assert!(refused(&["--search", "fast", "p"]).contains("'fast'"));
    assert!(refused(&["--bogus", "p"]).contains("--bogus"));
    for (time, said) in [
        ("", "number of seconds"),
        ("-1", "number of seconds (90, 0.5) or 10m, 1h30m, 500ms, 2d, not '-1'"),
        ("nan", "number of seconds"),
        ("x", "number of seconds"),
        ("1e30", "number of seconds"),
        ("1.2.3", "number of seconds"),
        ("10 m", "number of seconds"),
        ("10M", "number of seconds"),
        ("m", "number of seconds"),
        ("1h30", "number of seconds"),
        ("30m1h", "number of seconds"),
        ("1m1m", "number of seconds"),
        ("0", "'0' is too short: 1ms is the least"),
        ("0.5ms", "too short"),
        ("999999d", "too long"),
    ] {
        for option in ["--time", "--divergence-timeout"] {
            let text = refused(&[&format!("{option}={time}"), "p"]);
            assert!(text.contains(said) && text.contains(option), "{time}: {text}");
        }
    }
    refused(&["--max-depth", "0", "p"]);
    refused(&["--max-idle", "0", "p"]);
    refused(&["--once", "--search", "naive", "p"]);
    refused(&["-j", "0", "p"]);
    refused(&["-j", "2000", "p"]);
    refused(&["--once", "--save", "f", "p"]);
    refused(&["--once", "--resume", "f", "p"]);
    refused(&[""]);
}

#[test]
fn help_and_version() {
    let help = run(&["--help"]).unwrap_err();
    assert_eq!(help.code, 0);
    for word in [
        "vsrun replay",
        "--divergence-timeout",
        "Examples:",
        "Exit status:",
        "[possible values: optimal, dpor, naive, stateful, random, walk, pos, surw, rff, novel, predict, pct, sss, if-sss, composed, transactions, exitblock, exitblock-rw]",
    ] {
        assert!(help.text.contains(word), "{word}: {}", help.text);
    }
    assert_eq!(run(&["--version"]).unwrap_err().code, 0);
    assert_eq!(run(&["replay", "--help"]).unwrap_err().code, 0);
}

#[test]
fn bounds_and_pct() {
    let c = config(&["--bound", "preemptions=2", "prog"]);
    assert_eq!((c.search, c.search.name()), (SearchKind::Bounded(Bound::Preemptions(2)), "preemptions"));
    assert_eq!(config(&["--bound", "delays=0", "prog"]).search, SearchKind::Bounded(Bound::Delays(0)));
    let c = config(&["--search", "pct", "--pct-depth", "5", "prog"]);
    assert_eq!((c.search, c.pct_depth), (SearchKind::Pct, 5));
    assert_eq!(config(&["prog"]).pct_depth, 3);
    for bad in ["preemptions", "preemptions=x", "delays=-1", "switches=2", "preemptions=1001"] {
        assert_eq!(parse(["vsrun", "--bound", bad, "prog"].map(OsString::from)).unwrap_err().code, 2, "{bad}");
    }
    let both = ["vsrun", "--bound", "delays=1", "--search", "naive", "prog"].map(OsString::from);
    assert_eq!(parse(both).unwrap_err().code, 2);
}

#[test]
fn memory_is_a_size_or_a_model() {
    let model = |args: &[&str]| config(args).memory_model();
    assert_eq!(model(&["prog"]), MemoryModel::Sc);
    assert_eq!(model(&["--race", "explore", "--memory", "tso", "prog"]), MemoryModel::Tso);
    assert_eq!(model(&["--race", "explore", "--memory-model", "tso", "prog"]), MemoryModel::Tso);
    assert_eq!(model(&["--memory", "sc", "prog"]), MemoryModel::Sc);
    let both = config(&["--race", "explore", "--memory", "2K", "--memory-model", "tso", "prog"]);
    assert_eq!((both.memory_size(), both.memory_model()), (Some(2048), MemoryModel::Tso));
    for bad in [&["--memory", "pso"][..], &["--memory-model", "2G"], &["--race", "off", "--memory", "tso"]] {
        assert_eq!(run(&[bad, &["prog"]].concat()).unwrap_err().code, 2, "{bad:?}");
    }
}

#[test]
fn steps_of_a_scenario() {
    let file = || PathBuf::from("f");
    let json = Debug { format: DebugFormat::Json, input: Some("in".into()), trust: false, file: file(), gdb: vec![] };
    let gdb = Debug { format: DebugFormat::Gdb, input: None, gdb: vec!["-q".into()], ..json.clone() };
    assert_eq!(run(&["debug", "f", "--", "-q"]), Ok(Command::Debug(gdb)));
    refused(&["debug", "--format", "json", "f", "--", "-q"]);
    refused(&["debug", "--input", "in", "f"]);
    assert_eq!(run(&["debug", "--format", "json", "--input", "in", "f"]), Ok(Command::Debug(json)));
    let step = Step { input: None, trust: true, file: file() };
    assert_eq!(run(&["step", "--trust", "f"]), Ok(Command::Step(step)));
    assert!(refused(&["--seed", "1", "step"]).contains("options of 'step' stand after it"));
    refused(&["step"]);
}

#[test]
fn when_clients_begin() {
    let clients = |value: &str| config(&["--clients", value, "./p"]).clients;
    assert_eq!(clients("listening"), ClientsStart::Listening);
    assert_eq!(clients("file:/run/a b"), ClientsStart::File("/run/a b".into()));
    assert_eq!(clients("output:a: b"), ClientsStart::Output("a: b".into()));
    assert_eq!(config(&["./p"]).clients, ClientsStart::AtOnce);
    let bytes = OsString::from_vec(b"file:\xff".to_vec());
    let Ok(Command::Explore(config)) = parse(["vsrun".into(), "--clients".into(), bytes, "./p".into()]) else {
        panic!()
    };
    assert_eq!(config.clients, ClientsStart::File(OsString::from_vec(b"\xff".to_vec())));
    for (value, why) in [
        ("file:", "the path of the file is missing behind the colon"),
        ("output:", "the text is missing behind the colon"),
        ("files:a", "listening, at-once, file:PATH or output:TEXT is needed"),
    ] {
        let line = format!("vsrun: invalid value '{value}' for '--clients <WHEN>': {why}; try 'vsrun --help'");
        assert_eq!(refused(&["--clients", value, "./p"]), line);
    }
    assert!(refused(&["--clients", &format!("file:{}", "a".repeat(1024)), "./p"]).contains("is longer than 1023 bytes"));
}

#[test]
fn a_signal_is_for_the_start_that_there_is() {
    let sender = |args: &[&str]| match run(&[&["daemon", "--signal", "KILL", "--with", "c"], args, &["./d"]].concat()) {
        Ok(Command::Daemon(daemon)) => daemon.config.with[1].0[2].clone(),
        other => panic!("{args:?}: {other:?}"),
    };
    assert_eq!(sender(&[]), "kill -9 1001");
    let both = "kill -9 1001 2>/dev/null || kill -9 1004 2>/dev/null || kill -9 1005 2>/dev/null";
    assert_eq!(sender(&["--restart", "always", "--restarts", "2"]), both);
    assert_eq!(sender(&["--restart", "always", "--pid-file", "p"]), "read pid <\"$0\" && kill -9 \"$pid\"");
}
