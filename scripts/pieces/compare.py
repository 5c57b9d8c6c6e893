"""Programs of c-tests, whole and in pieces: see ../pieces.sh."""

import glob
import json
import os
import random
import re
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
# A search of so many executions, or so many seconds, is left out.
MOST, SECONDS = 3000, 20
# With another end, or another beginning, it is none that can be split. Which search is asked for is no matter: this is about one.
OTHERS = ["--bound", "--max-executions", "--time", "--once", "--save", "--resume", "--max-depth", "--checkpoint", "--output", "--random", "-j", "--with"]


# An execution of it ends early (an assertion that fails): in pieces a trace may be run twice.
ENDS = ["inherit_circle"]
# What vsrun tells of each execution: the number of its trace, the same for all executions of it.
TELLS = dict(os.environ, VSRUN_LOG="vsrun::explore=debug")
# Of a search that has not seen all that threads do to memory.
UNSEEN = "not-watched"
# Too many executions; one that goes on for ever, or that went another way than its schedule.
CUT = {"executions", "idle", "unseen"}
# It took longer than it may.
NO_END = "no end"
# So small that who was to split it has explored it.
NOT_SPLIT = "not split"
TRACE = re.compile(r"execution \d+, trace ([0-9a-f]{16})$")


def run(words, seconds=SECONDS, traces=None):
    """Exit status and output; what was explored since the search last started over is added to `traces`."""
    try:
        done = subprocess.run([vsrun] + words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=work, timeout=seconds, env=TELLS)
    except subprocess.TimeoutExpired:
        return None, NO_END
    errors = done.stderr.decode(errors="replace")
    if traces is not None:
        last = errors.split("the search starts over")[-1].splitlines()
        traces.update(found[1] for found in map(TRACE.search, last) if found)
    return done.returncode, done.stdout.decode(errors="replace") or errors


def told(text):
    """What has to be the same."""
    report = json.loads(text)
    # A bug is reported by the shortest execution that shows it: of equally long ones the pieces may have another.
    bugs = sorted(bug["kind"] for bug in report["bugs"])
    outcomes = (report.get("outcomes") or {}).get("different")
    return {"verdict": report["verdict"], "complete": report["complete"], "bugs": bugs, "outcomes": outcomes, "executions": report["executions"] - report["sleep_blocked"]}


def in_pieces(search, traces):
    """The report of the pieces, which are explored as `traces`; where it cannot be had, why."""
    place = os.path.join(work, "pieces")
    shutil.rmtree(place, ignore_errors=True)
    status, text = run(["pieces", "split", "--into", str(lots.choice([2, 7, 16])), "--look", "0", "-o", place] + search, 10 * SECONDS)
    if status is None:
        return NO_END
    if not os.path.isdir(place) or not glob.glob(place + "/piece-*.vsrun"):
        traces.add(NOT_SPLIT)
        return text if status in (0, 1) else f"split: {status}: {text[-300:]}"
    for turn in range(8):
        traces.clear()
        todo = sorted(glob.glob(place + "/piece-*.vsrun"))
        lots.shuffle(todo)
        todo.append(lots.choice(todo))
        for piece in todo:
            # Some have no time to speak of, and are left half-way.
            if lots.random() < 0.2:
                run(["pieces", "work", "-j", "1", "--time", "0.02", "--format", "json", piece], traces=traces)
            status, text = run(["pieces", "work", "-j", "1", "--format", "json", piece], 10 * SECONDS, traces)
            if status not in (0, 1, 3):
                return f"work: {status}: {text[-300:]}"
        status, text = run(["pieces", "merge", "--format", "json", "--scenario-dir", work, place])
        if '"pieces:again"' not in text:
            return text
        run(["pieces", "split", "--again", "-o", place], 10 * SECONDS)
    return "split again and again"


def memory(text):
    """Which memory is an object."""
    return [note for note in json.loads(text)["notes"] if "of memory without an order" in note]


compared, left_out, differ, counts, apart, redundant, executions = 0, {}, [], [], [], 0, 0
# Executions of traces of which there was one already.
twice = {"whole": 0, "in pieces": 0}
# Programs with traces that are in pieces only, and how many.
others = []
for path in sorted(glob.glob(tests + "/*.expect")):
    base = os.path.basename(path)[: -len(".expect")]
    if base < os.environ.get("FROM", "") or word not in base or short == "1" and base not in DOZEN:
        continue
    source = next(p for p in (f"{tests}/{base}.c", f"{tests}/{base}.cc") if os.path.exists(p))
    for name, keys in cases(path):
        options = keys.get("options", "--keep-going").split()
        if "--search" in options:
            # The short form has enough without these.
            if short == "1":
                continue
            at = options.index("--search")
            del options[at : at + 2]
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
        of_whole, of_parts = set(), set()
        search = options + ["--shrink", "0", "./" + os.path.basename(program)] + keys.get("args", "").split()
        status, text = run(["--search", "optimal", "-j", "1", "--format", "json", "--scenario-dir", work, "--max-executions", str(MOST)] + search, traces=of_whole)
        if status not in (0, 1, 3) or CUT & set(json.loads(text).get("incomplete_reasons", [])):
            leave_out("not to its end")
            continue
        whole = told(text)
        if "--keep-going" not in options and whole["bugs"]:
            leave_out("ends at its first bug")
            continue
        merged = in_pieces(search, of_parts)
        if merged == NO_END:
            leave_out("split not to its end")
            continue
        try:
            parts = told(merged)
        except (ValueError, KeyError):
            parts = merged
        compared += 1
        if isinstance(parts, dict) and UNSEEN in json.loads(text).get("incomplete_reasons", []):
            # What a trace comes to depends on what is not seen.
            parts.update({what: whole[what] for what in ("verdict", "bugs", "outcomes")})
        if isinstance(parts, dict) and memory(text) != memory(merged):
            # A piece that is split again has taken more memory for used without an order (what an initializer of pthread_once does without an operation):
            # there are more operations then, and other traces.
            apart.append(called)
            of_parts = of_whole
        if isinstance(parts, dict):
            parts["traces"] = of_whole if of_parts == {NOT_SPLIT} else of_parts
            whole["traces"] = of_whole
            for what, report in (("whole", whole), ("in pieces", parts)):
                twice[what] += report["executions"] - len(report["traces"])
            if parts["executions"] != whole["executions"]:
                counts.append(f"{called} {whole['executions']} {parts['executions']}")
                if short != "1" or base in ENDS:
                    parts["executions"] = whole["executions"]
            # What a process sends its parent when it ends depends on what the thread that has made it is about, which is no reason for a search that is not
            # split to look for the other order.
            more = len(parts["traces"] - of_whole)
            if short != "1" and more and parts["traces"] > of_whole:
                others.append(f"{called} {more}")
                parts["traces"] = of_whole
        if parts != whole:
            differ.append(called)
            if isinstance(parts, dict):
                only = [len(of_whole - parts["traces"]), len(parts["traces"] - of_whole)]
                whole["traces"], parts["traces"] = (f"{n} that the other has not" for n in only)
            print(f"FAILED {called}: whole {whole}, in pieces {parts}", flush=True)
            continue
        executions += whole["executions"]
        redundant += json.loads(merged)["sleep_blocked"]

print(f"pieces: {compared} compared, {len(differ)} differ; {executions} executions, {redundant} redundant in pieces, of traces that were run already {twice['whole']} whole and {twice['in pieces']} in pieces; left out: {left_out}")
if counts:
    print(f"pieces: other counts (whole, in pieces): {'; '.join(counts)}")
if others:
    print(f"pieces: traces that are in pieces only: {'; '.join(others)}")
if apart:
    print(f"pieces: other memory counts as used without an order, so that traces are not compared: {'; '.join(apart)}")
# Without a word there are many.
sys.exit(1 if differ or compared < (1 if word else 10) else 0)
