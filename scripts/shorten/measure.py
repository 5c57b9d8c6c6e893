"""What scripts/shorten.sh measures. Its options come in the environment."""

import glob
import json
import os
import signal
import statistics
import subprocess
import sys

VSRUN, WORK, WORD = os.environ["VSRUN"], os.environ["WORK"], os.environ["WORD"]
SHORT, QUICK, RANDOM = bool(os.environ["SHORT"]), bool(os.environ["QUICK"]), bool(os.environ["RANDOM_SEARCH"])
FEW = ["mutex_order", "philosophers_threads", "locks_end", "pipe_last", "cond_lost", "lock_free", "message_queue", "abort_order"]
REPLAYS = 3 if SHORT or QUICK else 20
# Of one exploration, with and without.
LIMIT = "60"


def cases(path):
    """The cases of a NAME.expect that have a bug."""
    found, now = [], {}
    for line in open(path):
        line = line.strip()
        if line.startswith("["):
            found.append(now)
            now = {"name": line[1:-1]}
        elif line and not line.startswith("#"):
            key, value = line.split("=", 1)
            now[key.strip()] = value.strip()
    found.append(now)
    bugs = [case for case in found if case.get("verdict", "ok") not in ("ok", "error") and case.get("slow") != "yes"]
    return [case for case in bugs if "--once" not in case.get("options", "") and not {"annotations", "library"} & set(case)]


def compiled(source, flags):
    binary = os.path.join(WORK, os.path.basename(source).split(".")[0] + "_".join(flags).replace("/", ""))
    if not os.path.exists(binary):
        compiler = ["g++", "-std=c++20"] if source.endswith(".cc") else ["gcc"]
        subprocess.run(compiler + flags + ["-O1", "-o", binary, source, "-lpthread"], check=True)
    return binary


def explored(case, binary, shrink):
    """The report, and by identity of the bug its length and its scenario."""
    scenarios = os.path.join(WORK, "scenarios" + shrink)
    os.makedirs(scenarios, exist_ok=True)
    options = case.get("options", "--keep-going").split()
    if RANDOM:
        left = [word for word in options if word.startswith("--race") or word in ("off", "explore", "hb", "lockset", "both")]
        options = left + ["--search", "random", "--max-executions", "300", "--seed", "1", "--keep-going", "--max-depth", "2000"]
    if "--race" not in options:
        options += ["--race", "off"]
    command = ["timeout", LIMIT, VSRUN, *options, "-j", "1", "--shrink", shrink, "--scenario-dir", scenarios]
    command += ["--format", "json", "--output", "/dev/null", binary, *case.get("args", "").split()]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if not done.stdout:
        return None
    report, bugs = json.loads(done.stdout), {}
    for bug in report["bugs"]:
        if bug["scenario"]:
            scenario = json.load(open(bug["scenario"]))
            steps = scenario["steps"]
            switches = sum(one["thread"] != two["thread"] for one, two in zip(steps, steps[1:]))
            length = (switches, len(steps), sum(step["value"] != 0 for step in steps))
            if "then" not in scenario:
                bugs[scenario["bug"]["identity"]] = (length, bug)
    return report, bugs


def explains(bug):
    """What `vsrun explain` says of a scenario: "decided" (another choice leads away each time), "some" (now and then), "always" (none does, and each random execution has it), "none", "none in time", why it is not asked for, or why it failed."""
    few = ["--samples", "5", "--time", "1"] if SHORT or QUICK else []
    command = [VSRUN, "explain", *few, "--format", "json", bug["scenario"]]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 3) or not done.stdout:
        told = done.stderr.strip()
        for why in ("no steps of its own", "files are really changed"):
            if why in told:
                return why
        return f"failed: {told}"
    said = json.loads(done.stdout)
    turn, left = said["turn"], said["not_looked_at"]
    if turn is None:
        start = said["beginning"]
        if start and start["bug"] == start["samples"]:
            return "always"
        return "none" if left == 0 else "none in time"
    return "decided" if turn["instead"]["bug"] == 0 else "some"


def measure(wrong, pairs, executions, explained):
    for path in sorted(glob.glob("c-tests/*.expect")):
        name = os.path.basename(path)[: -len(".expect")]
        if WORD not in name or SHORT and name not in FEW:
            continue
        source = next(s for s in (path[:-7] + ".cc", path[:-7] + ".c") if os.path.exists(s))
        for case in cases(path):
            binary = compiled(source, case.get("cflags", "").split())
            both = [explored(case, binary, shrink) for shrink in ("0", "2")]
            what = f"{name} [{case.get('name', '')}]"
            if None in both:
                print(f"{what}: no report within {LIMIT} s")
                continue
            (long, before), (short, after) = both
            keys = ("verdict", "executions", "transitions", "max_depth", "complete")
            if before.keys() != after.keys() or any(long[key] != short[key] for key in keys):
                wrong.append(f"{what}: something else was found")
            for identity in before.keys() & after.keys():
                (one, _), (two, bug) = before[identity], after[identity]
                pairs.append((one, two))
                executions.append(bug.get("shortened", {}).get("executions", 0))
                if two > one or two[1] > one[1]:
                    wrong.append(f"{what}: it has grown")
                replays = [subprocess.run([VSRUN, "replay", "--output", "/dev/null", bug["scenario"]], capture_output=True) for _ in range(REPLAYS)]
                failed = sum(done.returncode != 1 for done in replays)
                said = ""
                # One bug of each case in the short form.
                if not SHORT or (name, case.get("name")) not in explained:
                    said = explains(bug)
                    explained.setdefault((name, case.get("name")), []).append(said)
                    if said.startswith("failed"):
                        wrong.append(f"{what}: explain {said}")
                print(f"{what:44} {bug['kind']} {one} -> {two} in {executions[-1]} executions; {said}", flush=True)
                if failed:
                    wrong.append(f"{what}: {failed} of {REPLAYS} replays came to something else")


def broken_off(_signal, _frame):
    raise KeyboardInterrupt


def main():
    wrong, pairs, executions, explained = [], [], [], {}
    signal.signal(signal.SIGTERM, broken_off)
    try:
        measure(wrong, pairs, executions, explained)
    except KeyboardInterrupt:
        wrong.append("broken off: not all programs were measured")
    if not pairs:
        sys.exit("no bug was found")
    was, now = ([pair[n][0] for pair in pairs] for n in (0, 1))
    steps = [statistics.median(pair[n][1] for pair in pairs) for n in (0, 1)]
    medians = statistics.median(was), statistics.median(now)
    print(f"{len(pairs)} bugs: switches {sum(was)} -> {sum(now)}, median {medians[0]:g} -> {medians[1]:g}; median of steps {steps[0]:g} -> {steps[1]:g};")
    print(f"  {sum(two * 2 <= one for one, two in zip(was, now))} have at most half the switches, {sum(one == two for one, two in zip(was, now))} as many; {max(executions)} executions at most, each replayed {REPLAYS} times")
    said = [one.split(":")[0] for of_case in explained.values() for one in of_case]
    kinds = ", ".join(f"{said.count(kind)} {kind}" for kind in sorted(set(said)))
    print(f"  explain: {len(said)} scenarios: {kinds}")
    if not SHORT and medians[1] * 2 > medians[0]:
        wrong.append("the median has more than half the switches it had")
    print("\n".join(wrong))
    sys.exit(bool(wrong))


main()
