//! The vsrun command: arguments in, one of a few modes, an exit code out.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use nix::sys::signal::{SigSet, Signal};
use vsrun::base::files;
use vsrun::base::print::{complain, out};
use vsrun::base::surroundings;
use vsrun::base::text::one_line;
use vsrun::config::{
    Cluster, Command, Config, Daemon, DebugFormat, Engine, Explain, Format, Man, Pack, Packed, PictureFormat, Pieces,
    Replay, ReportFormat, Searched, Show, SplitPieces, Timeline, Trace, Why,
};
use vsrun::explore::{self, Failure, Replayed, Split};
use vsrun::finding::{Bug, BugKind, Summary};
use vsrun::report::timeline::{self, About, Picture};
use vsrun::report::{self, colours_for, json, junit, listing, sarif, shell_line, show, text};
use vsrun::runtime::{session, tracee};
use vsrun::scenario::Scenario;
use vsrun::{args, canary, cluster, doctor, gdb, pack, step, why};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    if arguments.nth(1).is_some_and(|a| a == session::GUARD) {
        if let Some(path) = arguments.next() {
            session::guard(path.as_ref());
        }
        return ExitCode::SUCCESS;
    }
    // A file that must not get larger is an error of its write, not the end.
    let _ = SigSet::from(Signal::SIGXFSZ).thread_block();
    env_logger::Builder::from_env(env_logger::Env::new().filter("VSRUN_LOG")).init();
    std::panic::set_hook(Box::new(|info| complain(&format!("vsrun bug: {info}"))));
    if let Some(result) = gdb::of_debugger(std::env::args_os().skip(1)) {
        return ended(result);
    }
    let inside = match pack::inside() {
        Ok(inside) => inside.map(|inside| inside.packed),
        Err(failure) => return ended(Err(failure)),
    };
    let command = match args::parse_in(std::env::args_os(), inside.as_ref()) {
        Ok(command) => at_home(command),
        Err(e) => {
            if e.code != 0 {
                complain(&e.text);
                if asks_for_json() {
                    say(&json::line(&failed(&[], &e.text)));
                }
                return ExitCode::from(e.code as u8);
            }
            return ended(out(&(e.text + "\n")).map(|()| 0).map_err(Failure::from));
        }
    };
    let result = match command {
        Command::Explore(config) => run(&config),
        Command::Replay(args) => replay(&args),
        Command::Debug(args) if args.format == DebugFormat::Gdb => gdb::debug(&args),
        Command::Explain(args) => explain(&args),
        Command::Debug(args) => step::lines::serve(&args).map(|()| 0),
        Command::Step(args) => step::screen::run(&args).map(|()| 0),
        Command::Show(args) => print_scenario(&args),
        Command::Timeline(args) => draw(&args),
        Command::Trace(args) => list(&args),
        Command::Doctor(args) if args.program.is_empty() => check_machine(),
        Command::Doctor(args) => look_at(&args.program),
        Command::Why(args) => why_it_hangs(&args),
        Command::Daemon(args) => hunt(&args),
        Command::Pieces(args) => pieces(&args),
        Command::Cluster(args) => explore_in_pieces(&args, inside.as_ref()),
        Command::Pack(args) => packs(&args),
        Command::Completions(args) => out(&args::completions(args.shell)).map(|()| 0).map_err(Failure::from),
        Command::Man(args) => write_pages(&args),
    };
    ended(result)
}

/// The exit status; of a failure it is said why.
fn ended(result: Result<i32, Failure>) -> ExitCode {
    let code = result.unwrap_or_else(|failure| {
        complain(&format!("{}{}", prefix(&failure.message), one_line(&failure.message)));
        failure.code
    });
    ExitCode::from(code as u8)
}

/// What a message begins with that does not say whose it is.
fn prefix(message: &str) -> &'static str {
    if message.starts_with("vsrun bug") {
        ""
    } else {
        "vsrun: "
    }
}

/// Whether the arguments, which could not be understood as a whole, ask for JSON.
fn asks_for_json() -> bool {
    let arguments: Vec<_> = std::env::args_os().collect();
    arguments.iter().any(|a| a == "--format=json")
        || arguments.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json")
}

/// The report on a run that did not take place, where programs read it.
fn print_failure(config: &Config, message: &str) {
    if config.format != ReportFormat::Text {
        say(&report(config.format, &failed(&config.program, message)));
    }
}

/// The summary of a run that did not take place.
fn failed(program: &[std::ffi::OsString], message: &str) -> Summary {
    Summary::failed(program, message.strip_prefix("vsrun: ").unwrap_or(message))
}

/// The report without its last line end.
fn report(format: ReportFormat, summary: &Summary) -> String {
    match format {
        ReportFormat::Json => json::line(summary),
        ReportFormat::Sarif => sarif::line(summary),
        ReportFormat::Junit => junit::xml(summary).trim_end().to_string(),
        ReportFormat::Text => text::report(summary, colours_for(&io::stdout())).trim_end().to_string(),
    }
}

/// A line to standard output, beside one to standard error that says the same: where it cannot be written, that has been told.
fn say(line: &str) {
    let _ = out(&format!("{line}\n"));
}

fn run(config: &Config) -> Result<i32, Failure> {
    let summary = explore::explore(config).inspect_err(|failure| print_failure(config, &failure.message))?;
    print_summary(config, &summary)?;
    Ok(summary.exit_code())
}

fn print_summary(config: &Config, summary: &Summary) -> io::Result<()> {
    out(&(report(config.format, summary) + "\n"))?;
    if config.format != ReportFormat::Text {
        for bug in summary.bugs.iter().filter(|b| !b.kind.is_of_program()) {
            complain(&format!("{}{}", prefix(&bug.summary), one_line(&bug.summary)));
        }
    }
    Ok(())
}

fn replay(args: &Replay) -> Result<i32, Failure> {
    let refused = |failure: &Failure| {
        if args.format == Format::Json {
            say(&json::not_replayed(&args.file, &failure.message));
        }
    };
    if args.no_supervisor {
        match explore::alone::replay(args).inspect_err(refused)? {}
    }
    match explore::replay(args).inspect_err(refused)? {
        Replayed::Same(bug, kinds) => {
            let text = match args.format {
                Format::Json => json::replayed(&bug, kinds) + "\n",
                Format::Text => text::replayed(&bug, kinds, colours_for(&io::stdout())),
            };
            out(&text)?;
            Ok(if bug.kind.is_of_program() { 1 } else { 3 })
        }
        Replayed::Until(found, of) => {
            out(&match args.format {
                Format::Json => json::until(&args.file, &found, of) + "\n",
                Format::Text => text::until(&found, of, &args.file, colours_for(&io::stdout())),
            })?;
            Ok(0)
        }
        Replayed::Followed(followed) => {
            let (line, expected, there) = (followed.line(), followed.expected.clone(), followed.is_there());
            let bug = followed.found.kind.is_some_and(BugKind::is_of_program).then(|| Bug::new(followed.found, 1));
            let text = match args.format {
                Format::Json => {
                    json::followed(&args.file, (expected.0, &expected.1), (there, bug.as_ref()), &line) + "\n"
                }
                Format::Text => text::followed(bug.as_ref(), &line, colours_for(&io::stdout())),
            };
            out(&text)?;
            Ok(if bug.is_some() { 1 } else { 3 })
        }
        Replayed::Otherwise(other) => {
            if args.format == Format::Json {
                say(&json::replayed_otherwise(&args.file, &other.expected, other.came, &other.line));
            }
            Err(Failure::own(other.line))
        }
    }
}

/// 0: a step was found; 3: none, within the bounds.
fn explain(args: &Explain) -> Result<i32, Failure> {
    let explained = explore::explain(args).inspect_err(|failure| {
        if args.format == Format::Json {
            say(&json::not_replayed(&args.file, &failure.message));
        }
    })?;
    out(&match args.format {
        Format::Json => report::explain::json(&explained, &args.file) + "\n",
        Format::Text => report::explain::text(&explained, colours_for(&io::stdout())),
    })?;
    Ok(if explained.turn.is_some() { 0 } else { 3 })
}

fn print_scenario(args: &Show) -> Result<i32, Failure> {
    let file = Scenario::load_file(&args.file).map_err(|e| Failure::environment(e.to_string()))?;
    let text = match args.format {
        Format::Json => String::from_utf8_lossy(&file.text).into_owned(),
        Format::Text => show::show(&file.scenario, &args.file, colours_for(&io::stdout())),
    };
    out(&text)?;
    Ok(0)
}

/// What hangs in a process that was started without vsrun.
fn why_it_hangs(args: &Why) -> Result<i32, Failure> {
    let picture = why::why(args.pid).inspect_err(|failure| {
        if args.format == Format::Json {
            say(&why::json::refused(args.pid, &failure.message));
        }
    })?;
    out(&match args.format {
        Format::Json => why::json::line(&picture) + "\n",
        Format::Text => why::text(&picture, colours_for(&io::stdout())),
    })?;
    Ok(picture.verdict.exit_code())
}

/// A picture of a scenario, which is run for that.
fn draw(args: &Timeline) -> Result<i32, Failure> {
    let seen = explore::timeline(args)?;
    let about = About {
        program: shell_line(&seen.program),
        scenario: args.file.to_string_lossy().into_owned(),
        printed: seen.printed,
        uncontrolled: seen.uncontrolled,
    };
    let picture = Picture::new(&seen.finding, &seen.arrows, about);
    let text = match args.format {
        PictureFormat::Html => timeline::html(&picture),
        PictureFormat::Perfetto => timeline::perfetto(&picture),
        PictureFormat::Dot => timeline::dot(&picture),
        PictureFormat::Json => timeline::json(&picture),
    };
    match &args.output {
        None => out(&text)?,
        Some(path) => {
            let failed = |e: io::Error| Failure::environment(format!("{} cannot be written: {e}", path.display()));
            let mut file = files::output(path).map_err(failed)?;
            file.write_all(text.as_bytes()).map_err(failed)?;
        }
    }
    Ok(0)
}

/// The operations of one execution of a program.
fn list(args: &Trace) -> Result<i32, Failure> {
    let seen = explore::trace(args)?;
    let about = (seen.status, seen.uncontrolled);
    out(&match args.format {
        Format::Json => listing::json(&seen.finding, about),
        Format::Text => listing::text(&seen.finding, about, colours_for(&io::stdout())),
    })?;
    Ok(listing::exit_code(&seen.finding))
}

/// The searches for bugs of a daemon.
fn hunt(args: &Daemon) -> Result<i32, Failure> {
    let hunt = explore::hunt(args).inspect_err(|failure| print_failure(&args.config, &failure.message))?;
    out(&match args.format {
        Format::Json => report::hunt::json(&hunt) + "\n",
        Format::Text => report::hunt::text(&hunt, colours_for(&io::stdout())),
    })?;
    Ok(hunt.exit_code())
}

/// A search in pieces, side by side.
fn explore_in_pieces(args: &Cluster, packed: Option<&Packed>) -> Result<i32, Failure> {
    if let Some(pack) = cluster::InPack::of(args).inspect_err(|failure| print_cluster_failure(args, failure))? {
        return explore_pack(args, &pack);
    }
    if args.swarm.is_some_and(|swarm| swarm.asked) || cluster::swarm::is_there(&args.dir) {
        return draw_by_lot(args, packed);
    }
    let there = explore::has_pieces(&args.dir);
    if surroundings::is_pack() && args.engine != Engine::Local {
        return Err(Failure::environment(
            "no engine can be reached from a pack: a vsrun outside of it reaches one (vsrun cluster --engine .. -o DIR PACK), or split in the pack \
             (pieces split), let the engine run PACK/run pieces work PIECE for each piece, and sum up in the pack (pieces merge)",
        ));
    }
    let search = match &args.search {
        Some(_) if there => {
            let why = "the directory has pieces already: without a program they go on";
            return Err(Failure::environment(format!("{}: {why}", args.dir.display())));
        }
        Some(search) => search.clone(),
        None if there => searched(&args.dir)?,
        None if packed.is_some() => search_of(packed)?,
        None => {
            let why = "there are no pieces yet: a program is expected";
            return Err(Failure::environment(format!("{}: {why}", args.dir.display())));
        }
    };
    let mut config = search.config.clone();
    config.format = args.format;
    if args.nodes == Some(0) {
        return split_alone(args, &search, &config);
    }
    let summary = cluster::run(args, &search, there).inspect_err(|failure| print_failure(&config, &failure.message))?;
    print_summary(&config, &summary)?;
    Ok(summary.exit_code())
}

/// A search is split, and that is all.
fn split_alone(args: &Cluster, search: &Searched, config: &Config) -> Result<i32, Failure> {
    if explore::has_pieces(&args.dir) {
        return Err(Failure::environment(format!("{}: the directory has pieces already", args.dir.display())));
    }
    let how = SplitPieces { into: cluster::parts(args, None), dir: args.dir.clone(), look: args.look, search: None };
    match explore::split(&how, search, false).inspect_err(|failure| print_failure(config, &failure.message))? {
        Split::Over(summary) => {
            print_summary(config, &summary)?;
            Ok(summary.exit_code())
        }
        Split::Into(done) => {
            if args.format == ReportFormat::Text {
                out(&report::pieces::split(&done.dir, &done.pieces, done.time))?;
            }
            Ok(0)
        }
    }
}

/// A search, or a swarm, of a program in a pack.
fn explore_pack(args: &Cluster, pack: &cluster::InPack) -> Result<i32, Failure> {
    let failed = |failure: &Failure| print_cluster_failure(args, failure);
    let swarm = args.swarm.is_some_and(|swarm| swarm.asked) || cluster::swarm::is_there(&args.dir);
    if args.nodes == Some(0) || swarm {
        if let Some(status) = pack.begin(args).inspect_err(failed)? {
            return Ok(status);
        }
    }
    match () {
        () if args.nodes == Some(0) => Ok(0),
        () if swarm => draw_all(args, &cluster::swarm::searched(&args.dir)?, Some(pack)),
        () => pack.explore(args).inspect_err(failed),
    }
}

/// The report on what did not take place, where it is not known of which program.
fn print_cluster_failure(args: &Cluster, failure: &Failure) {
    if args.format != ReportFormat::Text {
        say(&report(args.format, &failed(&[], &failure.message)));
    }
}

/// A swarm.
fn draw_by_lot(args: &Cluster, packed: Option<&Packed>) -> Result<i32, Failure> {
    let wrong = |why: &str| Err(Failure::environment(format!("{}: {why}", args.dir.display())));
    if !matches!(args.format, ReportFormat::Text | ReportFormat::Json) {
        return wrong("the report of a swarm is text or json");
    }
    let search = match (&args.search, cluster::swarm::is_there(&args.dir)) {
        (Some(_), true) => return wrong("the directory has a swarm already: without a program it goes on"),
        _ if explore::has_pieces(&args.dir) => return wrong("the directory has pieces: a swarm needs another one"),
        (None, true) => cluster::swarm::searched(&args.dir)?,
        (None, false) if packed.is_none() => return wrong("there is no swarm yet: a program is expected"),
        (search, false) => {
            let search = search.clone().map_or_else(|| drawn_of(packed), Ok)?;
            cluster::swarm::begin(&args.dir, &search, args.swarm.unwrap_or_default())?;
            search
        }
    };
    if args.nodes == Some(0) {
        if args.format == ReportFormat::Text {
            out(&report::swarm::begun(&args.dir))?;
        }
        return Ok(0);
    }
    draw_all(args, &search, None)
}

/// Tasks of a swarm that is there, perhaps of a pack, until it ends.
fn draw_all(args: &Cluster, search: &Searched, pack: Option<&cluster::InPack>) -> Result<i32, Failure> {
    let mut config = search.config.clone();
    config.format = args.format;
    let swarm = cluster::draw(args, search, pack).inspect_err(|failure| print_failure(&config, &failure.message))?;
    out(&match args.format {
        ReportFormat::Json => report::swarm::json(&swarm) + "\n",
        _ => report::swarm::text(&swarm, colours_for(&io::stdout())),
    })?;
    Ok(swarm.exit_code())
}

/// The files that vsrun is told to read and write are the machine's, also in a pack.
fn at_home(mut command: Command) -> Command {
    if surroundings::is_pack() {
        command.each_path(&mut |path| *path = pack::to_node(path));
    }
    command
}

/// The search of the pack that vsrun runs in.
fn search_of(packed: Option<&Packed>) -> Result<Searched, Failure> {
    let usage = |e: args::UsageError| Failure::environment(e.text);
    let words = args::search_words(&[], packed.unwrap_or(&Packed::default())).map_err(usage)?;
    let config = args::searched(&words).map_err(usage)?;
    Ok(Searched { words, config })
}

/// The same for a swarm.
fn drawn_of(packed: Option<&Packed>) -> Result<Searched, Failure> {
    let usage = |e: args::UsageError| Failure::environment(e.text);
    let words = args::search_words(&[], packed.unwrap_or(&Packed::default())).map_err(usage)?;
    let config = args::drawn(&words).map_err(usage)?;
    Ok(Searched { words, config })
}

/// Packs a program, looks at a pack, runs vsrun in one.
fn packs(args: &Pack) -> Result<i32, Failure> {
    match args {
        Pack::Make(args) => out(&pack::make(args)?.text())?,
        Pack::Check(args) => out(&pack::check(args)?.text())?,
        Pack::Oci(args) => out(&pack::image(args)?.text())?,
        Pack::Run(args) => match pack::enter(args)? {},
    }
    Ok(0)
}

/// The search that a piece, or a directory of pieces, is of.
fn searched(path: &Path) -> Result<Searched, Failure> {
    let words = explore::words_of(path)?;
    let mut config = args::searched(&words).map_err(|e| Failure::environment(e.text))?;
    if surroundings::is_pack() {
        config.each_path(&mut |path| *path = pack::to_node(path));
    }
    Ok(Searched { words, config })
}

/// Splits a search, explores a piece, sums up.
fn pieces(args: &Pieces) -> Result<i32, Failure> {
    match args {
        Pieces::Split(args) => {
            let (search, again) = match &args.search {
                Some(search) => (search.clone(), false),
                None => (searched(&args.dir)?, true),
            };
            match explore::split(args, &search, again)? {
                Split::Over(summary) => {
                    print_summary(&search.config, &summary)?;
                    Ok(summary.exit_code())
                }
                Split::Into(done) => {
                    out(&report::pieces::split(&done.dir, &done.pieces, done.time))?;
                    Ok(0)
                }
            }
        }
        Pieces::Work(args) if cluster::swarm::is_task(&args.file) => {
            let worked = cluster::swarm::work(args)?;
            out(&match args.format {
                Format::Json => report::swarm::worked_json(&worked) + "\n",
                Format::Text => report::swarm::worked(&worked),
            })?;
            Ok(worked.exit_code())
        }
        Pieces::Work(args) => {
            let worked = explore::work(args, searched(&args.file)?.config)?;
            out(&match args.format {
                Format::Json => report::pieces::worked_json(&worked) + "\n",
                Format::Text => report::pieces::worked(&worked),
            })?;
            Ok(worked.exit_code())
        }
        Pieces::Divide(args) => {
            let search = searched(&args.file)?;
            let done = explore::divide(args, &search)?;
            out(&report::pieces::split(&done.dir, &done.pieces, done.time))?;
            Ok(0)
        }
        Pieces::Merge(args) => {
            let mut config = searched(&args.dir)?.config;
            config.format = args.format;
            let summary =
                explore::merge(args, config.clone()).inspect_err(|failure| print_failure(&config, &failure.message))?;
            print_summary(&config, &summary)?;
            Ok(summary.exit_code())
        }
    }
}

/// Writes the man pages, each to a file of its name.
fn write_pages(args: &Man) -> Result<i32, Failure> {
    for (name, text) in args::man_pages()? {
        let path = args.directory.join(name);
        let failed = |e: io::Error| Failure::environment(format!("{} cannot be written: {e}", path.display()));
        files::output(&path).map_err(failed)?.write_all(&text).map_err(failed)?;
    }
    Ok(0)
}

fn check_machine() -> Result<i32, Failure> {
    let probes = doctor::Probes {
        syscall_user_dispatch: Some(tracee::probe_syscall_user_dispatch()),
        ptrace: Some(tracee::probe_ptrace()),
        canary: Some(canary::sing()),
    };
    let mut text = Vec::new();
    let good = doctor::run(&mut text, &probes)?;
    out(&String::from_utf8_lossy(&text))?;
    Ok(if good { 0 } else { 2 })
}

/// How the memory accesses of a program would be watched.
fn look_at(program: &[std::ffi::OsString]) -> Result<i32, Failure> {
    out(&canary::of_program(program)?)?;
    Ok(0)
}
