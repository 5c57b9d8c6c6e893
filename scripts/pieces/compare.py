"""Programs of c-tests, whole and in pieces: see ../pieces.sh."""

import glob
import json
import os
import random
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from c_tests import cases, compiled

vsrun, tests, work, seed, short, word = sys.argv[1:]
lots = random.Random(int(seed))
# Where SHORT is asked for: some of each kind of object, with bugs and without.
DOZEN = ("inherit_circle barrier commutes cond_two_waiters dpor_classics eventfd_sem file_lockfile futex_wait lockcount mutex_trylock philosophers_sysv "
         "philosophers_threads pipes producers_consumers rwlock_cross semop_counts shm_size signal_mutex").split()
# An execution of it ends early (an assertion that fails): in pieces there may be more of them, and there are never fewer.
ENDS = ["inherit_circle"]
# A search of so many executions, or so many seconds, is left out.
MOST, SECONDS = 3000, 20
# What names another search, or another end, is none that can be split.
OTHERS = ["--search", "--bound", "--max-executions", "--time", "--once", "--save", "--resume", "--max-depth", "--checkpoint", "--output", "--random", "-j", "--with"]


def run(words, seconds=SECONDS):
    try:
        done = subprocess.run([vsrun] + words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=work, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None, "no end"
    return done.returncode, done.stdout.decode(errors="replace") or done.stderr.decode(errors="replace")


def told(text):
    """What has to be the same."""
    report = json.loads(text)
    # A bug is reported by the shortest execution that shows it: of equally long ones the pieces may have another.
    bugs = sorted(bug["kind"] for bug in report["bugs"])
    outcomes = (report.get("outcomes") or {}).get("different")
    return {"verdict": report["verdict"], "complete": report["complete"], "bugs": bugs, "outcomes": outcomes, "executions": report["executions"] - report["sleep_blocked"]}


def in_pieces(search):
    """The report of the pieces; where it cannot be had, why."""
    place = os.path.join(work, "pieces")
    shutil.rmtree(place, ignore_errors=True)
    status, text = run(["pieces", "split", "--into", str(lots.choice([2, 7, 16])), "--look", "0", "-o", place] + search)
    if not os.path.isdir(place) or not glob.glob(place + "/piece-*.vsrun"):
        return text if status in (0, 1) else f"split: {status}: {text[-300:]}"
    for turn in range(8):
        todo = sorted(glob.glob(place + "/piece-*.vsrun"))
        lots.shuffle(todo)
        todo.append(lots.choice(todo))
        for piece in todo:
            # Some have no time to speak of, and are left half-way.
            if lots.random() < 0.2:
                run(["pieces", "work", "-j", "1", "--time", "0.02", "--format", "json", piece])
            status, text = run(["pieces", "work", "-j", "1", "--format", "json", piece])
            if status not in (0, 1, 3):
                return f"work: {status}: {text[-300:]}"
        status, text = run(["pieces", "merge", "--format", "json", "--scenario-dir", work, place])
        if '"pieces:again"' not in text:
            return text
        run(["pieces", "split", "--again", "-o", place])
    return "split again and again"


compared, left_out, differ, counts, redundant, executions = 0, {}, [], [], 0, 0
for path in sorted(glob.glob(tests + "/*.expect")):
    base = os.path.basename(path)[: -len(".expect")]
    if base < os.environ.get("FROM", "") or word not in base or short == "1" and base not in DOZEN:
        continue
    source = next(p for p in (f"{tests}/{base}.c", f"{tests}/{base}.cc") if os.path.exists(p))
    for name, keys in cases(path):
        options = keys.get("options", "--keep-going").split()
        called = f"{base} [{name}]" if name else base

        def leave_out(why):
            left_out[why] = left_out.get(why, 0) + 1

        if any(option.split("=")[0] in OTHERS for option in options) or "annotations" in keys or "library" in keys or keys.get("slow") == "yes":
            leave_out("other options, or slow")
            continue
        program = compiled(source, keys, work)
        if not program:
            leave_out("does not compile")
            continue
        search = options + ["--shrink", "0", "./" + os.path.basename(program)] + keys.get("args", "").split()
        status, text = run(["--search", "optimal", "-j", "1", "--format", "json", "--scenario-dir", work, "--max-executions", str(MOST)] + search)
        if status not in (0, 1, 3) or json.loads(text).get("incomplete_reason") == "executions":
            leave_out("not to its end")
            continue
        whole = told(text)
        if "--keep-going" not in options and whole["bugs"]:
            leave_out("ends at its first bug")
            continue
        merged = in_pieces(search)
        try:
            parts = told(merged)
        except (ValueError, KeyError):
            parts = merged
        compared += 1
        if base in ENDS and isinstance(parts, dict) and parts["executions"] > whole["executions"]:
            counts.append(f"{called} {whole['executions']} {parts['executions']}")
            parts["executions"] = whole["executions"]
        # What is known of objects may differ (which returns of calls are operations is noted by when a sender heard of others, which differs between executions of
        # one trace), and where the last two threads of a child process end a trace may be run twice (docs/PIECES.md): so of the programs that are not in the short
        # form other counts are told, and no failure.
        if isinstance(parts, dict) and short != "1" and base not in ENDS and parts["executions"] != whole["executions"]:
            counts.append(f"{called} {whole['executions']} {parts['executions']}")
            parts["executions"] = whole["executions"]
        if parts != whole:
            differ.append(called)
            print(f"FAILED {called}: whole {whole}, in pieces {parts}", flush=True)
            continue
        executions += whole["executions"]
        redundant += json.loads(merged)["sleep_blocked"]

print(f"pieces: {compared} compared, {len(differ)} differ; {executions} executions, {redundant} redundant in pieces; left out: {left_out}")
if counts:
    print(f"pieces: other counts (whole, in pieces): {'; '.join(counts)}")
# Without a word there are many.
sys.exit(1 if differ or compared < (1 if word else 10) else 0)
