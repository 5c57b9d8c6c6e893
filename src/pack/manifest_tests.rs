use super::*;

fn file() -> What {
    What::File(Content { mode: 0o755, size: 3, fnv: 5, modified: (7, 9) })
}

fn sample(more: &[(&str, What)]) -> Manifest {
    let entry = |(path, what): &(&str, What)| Entry { path: path.into(), what: what.clone() };
    let own = [(OWN, What::Directory { mode: 0o755 }), (VSRUN, file()), ("w", What::Directory { mode: 0o700 })];
    Manifest {
        vsrun_pack: VERSION,
        vsrun: "0".into(),
        program: vec!["./p".into()],
        options: vec![PackedOption { name: "seed".into(), word: "--seed=7".into() }],
        cwd: "/w".into(),
        env: vec!["A=b".into()],
        script: Content { mode: 0o755, size: 1, fnv: 2, modified: (0, 0) },
        start: None,
        files: own.iter().chain(more).map(entry).collect(),
    }
}

fn refusal(manifest: &Manifest) -> String {
    Manifest::read(manifest.text().as_bytes()).expect_err("it is refused")
}

#[test]
fn what_is_written_is_read() {
    let whole = sample(&[("l", What::Link("w/../w/none".into())), ("w/f", file())]);
    let text = whole.text();
    assert_eq!(Manifest::read(text.as_bytes()), Ok(whole));
    assert!(text.lines().any(|line| line.contains("w/f") && line.contains("0000000000000005")), "{text}");
}

#[test]
fn what_leads_out_is_refused_by_name() {
    let link = |to: &str| What::Link(to.into());
    for (path, what, why) in [
        ("../x", file(), "it has '..' or '.' in it"),
        ("w/../../x", file(), "it has '..' or '.' in it"),
        ("/etc/passwd", file(), "it is absolute"),
        ("w//x", file(), "it is no name as vsrun writes it"),
        ("", file(), "it has no name"),
        ("none/x", file(), "the directory that it is in is not listed before it"),
        ("w", file(), "it is listed twice"),
        ("proc/1", file(), "the directory that it is in is not listed before it"),
        ("dev", link("w"), "that place is the machine's"),
        (".vsrun/node", link("../w"), "that place is the machine's"),
        ("s", What::File(Content { mode: 0o4755, size: 0, fnv: 0, modified: (0, 0) }), "no such permissions"),
    ] {
        let said = refusal(&sample(&[(path, what)]));
        assert!(said.starts_with(&format!("pack.json: {path}: {why}")), "{said}");
    }
    for (to, why) in [("../x", "leads out of the pack"), ("/etc/passwd", "is absolute"), ("l", "goes round in circles")]
    {
        assert_eq!(refusal(&sample(&[("l", link(to))])), format!("pack.json: the symbolic link l {why}"));
    }
    let through = sample(&[("l", link("w")), ("l/x", file())]);
    assert_eq!(refusal(&through), "pack.json: l/x: the directory that it is in is not listed before it");
}

#[test]
fn what_is_missing_or_of_another_kind_is_said() {
    let read = |text: &str| Manifest::read(text.as_bytes()).expect_err("it is refused");
    assert!(read("").starts_with("pack.json is damaged, or none of vsrun's"));
    assert_eq!(read("{}"), "pack.json is none of vsrun's: it has no \"vsrun_pack\"");
    assert_eq!(read("{\"vsrun_pack\": 2}"), "pack.json is of format 2; this vsrun reads format 1");
    assert!(read("{\"vsrun_pack\": 1}").starts_with("pack.json is damaged: missing field"));
    let mut whole = sample(&[]);
    whole.cwd = "/none".into();
    assert_eq!(refusal(&whole), "pack.json: \"cwd\" is no directory of the pack");
    whole.cwd = "w".into();
    assert_eq!(refusal(&whole), "pack.json: \"cwd\" is not absolute");
    let mut whole = sample(&[]);
    whole.program.clear();
    assert_eq!(refusal(&whole), "pack.json: there is no program");
    let mut whole = sample(&[]);
    whole.files.remove(1);
    assert_eq!(refusal(&whole), "pack.json: .vsrun/vsrun is not listed");
    let mut whole = sample(&[]);
    let start =
        |loader: &str, libraries: &str| Some(Start { loader: loader.into(), libraries: vec![libraries.into()] });
    for (loader, libraries) in [("w", "w"), (VSRUN, VSRUN), ("../w", "w"), (VSRUN, "/w"), ("none", "w")] {
        whole.start = start(loader, libraries);
        assert_eq!(refusal(&whole), "pack.json: what starts vsrun is no file or directory of the pack");
    }
    whole.start = start(VSRUN, "w");
    assert_eq!(Manifest::read(whole.text().as_bytes()), Ok(whole));
    let mut whole = sample(&[]);
    whole.env = vec!["=".into()];
    assert_eq!(refusal(&whole), "pack.json: a variable without a value");
}
