//! What `vsrun show` prints: a scenario in full.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::terminal::{replay_lines, shell_word, Paint};
use super::{steps, text};
use crate::base::text::one_line;
use crate::scenario::{Options, Scenario};

/// The scenario read from `path`, for people, with all its steps.
pub fn show(scenario: &Scenario, path: &Path, colours: bool) -> String {
    let paint = Paint(colours);
    let program = &scenario.program;
    let words: Vec<_> = program.argv.iter().map(|arg| shell_word(arg.as_bytes())).collect();
    let bug = &scenario.bug;
    let mut out = text::uncontrolled(scenario.options.uncontrolled);
    let _ = writeln!(out, "{}: {}", paint.bad(bug.kind.name()), one_line(&bug.summary));
    let _ = writeln!(out, "  program    {} ({})", words.join(" "), shell_word(program.exe.as_bytes()));
    let _ = writeln!(out, "  directory  {}", shell_word(program.cwd.as_bytes()));
    let _ = writeln!(out, "  found by   {}, execution {}", one_line(&scenario.found.search), scenario.found.execution);
    if let Some(how) = &scenario.found.shortened {
        let _ = writeln!(out, "  shortened  {}", how.line());
    }
    let _ = writeln!(out, "  options    {}", options(&scenario.options));
    let _ = writeln!(out, "\n{}", paint.head(&format!("Transitions ({})", scenario.steps.len())));
    out.push_str(&steps::lines(&steps::of_scenario(scenario)));
    if let Some(then) = &scenario.then {
        let _ = writeln!(out, "  then on by policy {}, seed {}", one_line(&then.policy), then.seed);
    }
    let alone = scenario.options.tosses.is_empty();
    let _ = write!(out, "\n{}\n{}", paint.head("See it again"), replay_lines(Some(path), alone, paint));
    out
}

/// As on the command line.
fn options(options: &Options) -> String {
    let mut words = vec![format!("--timeouts {}", if options.timeouts_any { "any" } else { "urgent" })];
    words.push(format!("--divergence-timeout {}", options.divergence_timeout_ms as f64 / 1000.0));
    if options.inject != 0 {
        let names =
            vsrun_model::inject::NAMES.iter().filter(|(_, bit)| options.inject & bit != 0).map(|(name, _)| *name);
        words.push(format!("--inject {}", names.collect::<Vec<_>>().join(",")));
    }
    if options.uncontrolled != 0 {
        let names = vsrun_model::calls::kinds_of(options.uncontrolled).map(|kind| kind.0);
        words.push(format!("--uncontrolled {}", names.collect::<Vec<_>>().join(",")));
    }
    words.extend(options.allow_misuse.then(|| "--allow-misuse".to_string()));
    words.extend(options.fail_on_exit.then(|| "--fail-on-exit".to_string()));
    words.extend(
        options
            .tosses
            .iter()
            .map(|t| format!("--toss {}", shell_word(format!("{}:{}", t.function, t.most).as_bytes()))),
    );
    words.extend(options.quarantine.map(|bytes| format!("--quarantine {bytes}")));
    words.extend((options.livelock > 0).then(|| format!("--livelock {}", options.livelock)));
    words.extend(options.clients_wait.then(|| "--clients listening".to_string()));
    let awaited = options.clients_for.as_ref().map(|awaited| shell_word(awaited.option().as_bytes()));
    words.extend(awaited.map(|awaited| format!("--clients {awaited}")));
    if options.restarts > 0 {
        let when = if options.restart_always { "always" } else { "on-failure" };
        words.push(format!("--restart {when} --restarts {}", options.restarts));
    }
    words.extend(options.max_depth.map(|depth| format!("--max-depth {depth}")));
    words.extend(options.max_idle.map(|idle| format!("--max-idle {idle}")));
    words.extend(options.store_buffers.then(|| "--memory tso".to_string()));
    words.extend((options.seed != 0).then(|| format!("--seed {}", options.seed)));
    let native = options.cpu.as_ref().is_some_and(|cpu| !cpu.baseline);
    words.extend(native.then(|| "--cpu native".to_string()));
    words.push(format!("(stdin: {})", one_line(&options.stdin)));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::testing::scenario;
    use super::*;

    #[test]
    fn everything_is_there() {
        let text = show(&scenario(), Path::new("d/s.vsrun.json"), false);
        let expected = "\
deadlock: 2 threads wait for each other
  program    ./prog 'a b' $'\\xff' (/bin/prog)
  directory  /tmp
  found by   dpor, execution 3
  options    --timeouts any --divergence-timeout 0.5 --livelock 9 --seed 7 (stdin: null)

Transitions (3)
      0.1                         0.2
   1  pthread_mutex_lock(lock_a)
   2                              pthread_mutex_lock(lock_b)
   3  VS_toss(2) = 1
  then on by policy stay, seed 0

See it again
  vsrun replay d/s.vsrun.json
  vsrun debug d/s.vsrun.json
  gdb -ex 'handle all nostop noprint pass' -ex run --args vsrun replay --no-supervisor d/s.vsrun.json
";
        assert_eq!(text, expected);
    }

    #[test]
    fn all_of_many_steps() {
        let mut scenario = scenario();
        let step = scenario.steps[0].clone();
        scenario.steps = vec![step; 200];
        scenario.steps[7].text.clear();
        let text = show(&scenario, Path::new("s"), false);
        assert!(text.contains("\nTransitions (200)\n"));
        assert!(text.contains("\n         8  mutex_lock\n"), "{text}");
        assert!(text.contains("\n       200  pthread_mutex_lock(lock_a)\n"), "{text}");
    }
}
