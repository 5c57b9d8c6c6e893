"""Each program of c-tests with every way to come to where executions begin: `scripts/checkpoints.sh --same`."""
import glob
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from c_tests import Failed, bugs, cases, compiled, explored

vsrun, tests, work, word, short = sys.argv[1:6]
# A sample of kinds of operations, memory and ends.
DOZEN = "back_marks back_memory barrier cond_two_waiters lockcount philosophers_threads producers_consumers race_behind_circle rwlock_cross signal_mutex".split()
WAYS = [["fork"], ["rollback"], ["rollback", "--marks", "1"], ["rollback", "--marks", "3"], ["copies"], ["copies", "--marks", "1"]]
# Where the clock or a lot decides, or there is one execution only, there is nothing to compare.
OTHERS = ["--once", "--time", "--checkpoint", "--save", "--resume", "--output", "-j", "--guard-arena", "--divergence-timeout"]
SECONDS = 60


def told(words, keys):
    """What has to be the same, and how many executions went back."""
    done = explored(vsrun, words, keys, work, SECONDS)
    if done is None:
        return "no end", 0
    status, report = done
    same = {"exit": status} | {key: report[key] for key in ("verdict", "complete", "incomplete_reasons", "executions", "transitions", "sleep_blocked")}
    same["bugs"] = bugs(report)
    same["outcomes"] = (report.get("outcomes") or {}).get("different")
    return same, report["from_marks" if "--marks" in words else "copied" if "copies" in words else "rolled_back"]


compared, differ, failed, back, left_out = 0, 0, 0, {}, 0
for path in sorted(glob.glob(tests + "/*.expect")):
    base = os.path.basename(path)[: -len(".expect")]
    if base < os.environ.get("FROM", "") or word not in base or short == "1" and base not in DOZEN:
        continue
    source = next(p for p in (f"{tests}/{base}.c", f"{tests}/{base}.cc") if os.path.exists(p))
    for name, keys in cases(path):
        options = keys.get("options", "").split()
        if any(option.split("=")[0] in OTHERS for option in options) or "annotations" in keys or "library" in keys or keys.get("slow") == "yes":
            left_out += 1
            continue
        program = compiled(source, keys, work)
        if not program:
            left_out += 1
            continue
        # Many executions, which go back where they can: the first ones never do. What a search draws by lot it draws alike.
        search = [] if "--search" in options or "--random" in options else ["--search", "naive"]
        most = [] if "--max-executions" in options else ["--max-executions", "400"]
        keeps = [] if "--keep-going" in options else ["--keep-going"]
        line = search + most + keeps + ["-j", "1", "--format", "json", "--shrink", "0", "--scenario-dir", work] + options
        first = None
        compared += 1
        for way in WAYS:
            try:
                found, went = told(["--checkpoint"] + way + line + ["./" + os.path.basename(program)] + keys.get("args", "").split(), keys)
            except Failed as why:
                failed += 1
                print(f"FAILED {base} [{name}] {' '.join(way)}: {why}", flush=True)
                break
            back[" ".join(way)] = back.get(" ".join(way), 0) + went
            if first is None:
                first = found
                if found == "no end":
                    compared, left_out = compared - 1, left_out + 1
                    break
            elif found != first:
                differ += 1
                print(f"FAILED {base} [{name}] {' '.join(way)}: {found}, by fork: {first}", flush=True)
                break
print(f"checkpoints: {compared} programs, {differ} differ, {failed} could not be compared since vsrun failed; executions that went back, with marks those that began at one: {back}; left out: {left_out}")
# Without any there was nothing to compare.
sys.exit(differ > 0 or failed > 0 or compared == 0 or word == "" and not all(back[" ".join(way)] for way in WAYS[1:]))
