"""What the simulation of `vsrun cluster` is given: shapes of trees, times of pieces, times of an engine, all measured here. scripts/simulate.sh calls it."""

import glob
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import time

# Name: source, arguments, executions of a search that is not split.
PROGRAMS = {
    "philosophers": ("c-tests/philosophers_threads.c", ["11"], 2047),
    "locks": ("c-tests/lockcount.c", ["7"], 5040),
    "producers": ("c-tests/producers_consumers.c", ["3", "3"], 17856),
    "tosses": ("scripts/cluster/tosses.c", ["6"], 14400),
}
# The same with smaller trees, for what share of a split depends on their size.
SMALLER = {"philosophers": (["9"], 511), "locks": (["6"], 720), "producers": (["3", "2"], 768), "tosses": (["5"], 2400)}
# Another one, too large to come to its end here.
LARGE = ("tosses", ["9"])
SPLITS = 48
LEVELS = 6


class Vsrun:
    """The binary, the programs, and a directory that is removed by who calls."""

    def __init__(self, vsrun, work):
        self.vsrun, self.work, self.places = os.path.realpath(vsrun), work, 0

    def program(self, name):
        binary = os.path.join(self.work, name)
        if not os.path.exists(binary):
            source = PROGRAMS[name][0]
            flags = ["-O1", "-pthread", "-I", "shim/include", "-I", "c-tests"]
            subprocess.run(["gcc", *flags, "-o", binary, source], check=True)
        return binary

    def place(self):
        self.places += 1
        return os.path.join(self.work, f"pieces-{self.places}")

    def search(self, name, arguments):
        return ["--race", "off", "--keep-going", self.program(name), *arguments]

    def run(self, *words, codes=(0, 1, 3)):
        """What it prints, and how long it took."""
        since = time.monotonic()
        done = subprocess.run([self.vsrun, *words], capture_output=True, text=True, cwd=self.work, stdin=subprocess.DEVNULL)
        took = time.monotonic() - since
        if done.returncode not in codes:
            sys.exit(f"simulate: vsrun {' '.join(words)}: exit status {done.returncode}: {done.stderr.strip()[-300:]}")
        return done.stdout, took

    def split(self, name, arguments, into):
        """A new directory of pieces, and how long that took."""
        place = self.place()
        took = self.run("pieces", "split", "--into", str(into), "--look", "0", "-o", place, *self.search(name, arguments))[1]
        return place, took

    def pieces(self, place):
        with open(os.path.join(place, "pieces.json")) as file:
            names = json.load(file)["pieces"]
        return [os.path.join(place, f"piece-{name}.vsrun") for name in names]

    def work_on(self, piece, seconds=None):
        """What `pieces work` says of it, and how long it took."""
        bound = [] if seconds is None else ["--time", f"{int(seconds * 1000)}ms"]
        said, took = self.run("pieces", "work", *bound, "--format", "json", piece)
        return json.loads(said), took

    def divide(self, piece, into):
        """The pieces that it becomes, and how long that took."""
        took = self.run("pieces", "divide", "--into", str(into), piece)[1]
        whole = os.path.basename(piece)[: -len(".vsrun")] + "-"
        return [one for one in self.pieces(os.path.dirname(piece)) if os.path.basename(one).startswith(whole)], took

    def rate(self, name, arguments, seconds):
        """Executions in a second of a search by one worker that is not split."""
        words = ["--search", "optimal", "-j", "1", "--shrink", "0", "--format", "json", "--scenario-dir", self.work]
        said = json.loads(self.run(*words, "--time", str(seconds), *self.search(name, arguments))[0])
        return said["executions"] / said["seconds"], said


def fitted(points):
    """The line through (x, y) that is nearest: (y at 0, slope). Neither is below 0."""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    slope = max(statistics.linear_regression(xs, ys).slope, 0.0) if len(set(xs)) > 1 else 0.0
    return max(statistics.mean(ys) - slope * statistics.mean(xs), 0.0), slope


def shapes_of(vsrun, name, arguments, splits=SPLITS, seed=1):
    """Splits at one state after the other, and then all pieces explored: for each level, which part each branch has, in their order."""
    draw = random.Random(seed)
    place, _ = vsrun.split(name, arguments, 2)
    roots = vsrun.pieces(place)
    inner, open_pieces = {"": roots}, {piece: 1 for piece in roots}
    works = []
    for _ in range(splits):
        levels = sorted({level for level in open_pieces.values() if level < LEVELS})
        if not levels:
            break
        level = draw.choice(levels)
        piece = draw.choice(sorted(one for one, at in open_pieces.items() if at == level))
        del open_pieces[piece]
        parts, _ = vsrun.divide(piece, 2)
        inner[piece] = parts
        for part in parts:
            if len(parts) > 1:
                open_pieces[part] = level + 1
    sizes, blocked = {}, 0
    for piece in vsrun.pieces(place):
        said, took = vsrun.work_on(piece)
        sizes[piece], blocked = said["executions"], blocked + said["sleep_blocked"]
        works.append((said["executions"], said["sleep_blocked"], took))

    def size(piece):
        return sum(map(size, inner[piece])) if piece in inner else sizes[piece]

    levels = [[] for _ in range(LEVELS)]
    for piece, parts in inner.items():
        whole = sum(map(size, parts))
        level = 0 if piece == "" else len(re.findall("-", os.path.basename(piece))) - 2 + 1
        if len(parts) > 1 and whole > 0:
            levels[min(level, LEVELS - 1)].append([round(size(part) / whole, 5) for part in parts])
    shutil.rmtree(place)
    return [level for level in levels if level], sum(sizes.values()), blocked, works


def sleep_of(vsrun, name, arguments, executions, intos):
    """[pieces, executions of all of them, executions that were cut off as redundant, of the search that is not split, largest piece, sum of squares] for each."""
    rows, works = [], []
    for into in intos:
        place, _ = vsrun.split(name, arguments, into)
        pieces = vsrun.pieces(place)
        each = []
        for piece in pieces:
            said, took = vsrun.work_on(piece)
            each.append((said["executions"], said["sleep_blocked"]))
            works.append((said["executions"], said["sleep_blocked"], took))
        done, blocked = sum(e for e, _ in each), sum(b for _, b in each)
        # What is left of them is the search that is not split: each execution once.
        if done - blocked != executions:
            print(f"simulate: {name} in {len(pieces)} pieces: {done - blocked} executions, {executions} expected", file=sys.stderr)
        largest = max(e for e, _ in each) / done
        squares = sum((e / done) ** 2 for e, _ in each)
        rows.append([len(pieces), done, blocked, executions, round(largest, 5), round(squares, 6)])
        shutil.rmtree(place)
    return rows, works


def begun_of(vsrun, name, arguments, seconds):
    """A piece of the search that has run so long, divided into 4, and the parts explored: [what was done before, the first part's rest, the others]."""
    place, _ = vsrun.split(name, arguments, 2)
    piece = vsrun.pieces(place)[0]
    before, _ = vsrun.work_on(piece, seconds)
    if before["explored"]:
        return None
    parts, _ = vsrun.divide(piece, 4)
    done = [vsrun.work_on(part)[0]["executions"] for part in parts]
    shutil.rmtree(place)
    return [before["executions"], done[0] - before["executions"], done[1:]]


def times_of(vsrun, shapes):
    """Seconds of what the cluster does beside exploring."""
    name, arguments = LARGE
    splits, divides, reads = [], [], []
    for into in (32, 200, 800, 1600):
        place, took = vsrun.split(name, arguments, into)
        pieces = vsrun.pieces(place)
        splits.append((len(pieces), took))
        merge = [vsrun.run("pieces", "merge", "--scenario-dir", vsrun.work, place)[1] for _ in range(3)]
        reads.append((len(pieces), statistics.median(merge)))
        if into == 200:
            few = place
        else:
            shutil.rmtree(place)
    # A turn, from the beginning of a piece and from where it was left: what it takes beyond its time.
    turns = []
    for piece in vsrun.pieces(few)[:3]:
        so_far = 0
        for seconds in (1, 2, 6, 1, 2):
            said, took = vsrun.work_on(piece, seconds)
            turns.append((seconds, said["executions"] - so_far, took))
            so_far = said["executions"]
    ends = statistics.median(took - seconds for seconds, _, took in turns)
    for piece, into in zip(vsrun.pieces(few)[:3] + vsrun.pieces(few)[-3:], (4, 50, 400, 4, 50, 400)):
        parts, took = vsrun.divide(piece, into)
        divides.append((len(parts), took))
    shutil.rmtree(few)
    merge, merge_part = fitted(reads)
    split, split_part = fitted(splits)
    divide, divide_part = fitted(divides)
    # What pieces take that does not come with their executions, but for that.
    begins = max(statistics.median(shape["cost"]["start"] for shape in shapes.values()) - ends, 0.0)
    times = dict(turn_begins=begins, turn_ends=ends, split=split, split_part=split_part, divide=divide, divide_part=divide_part)
    # What merge does with each piece is read it once: that is also what it costs to look how far it is.
    times.update(merge=merge, merge_part=merge_part, read=merge_part)
    return {key: round(value, 6) for key, value in times.items()}, {"turns": turns, "splits": splits, "divides": divides, "merges": reads}


def blocked_cost(works):
    """How long an execution that is cut off takes, as a part of one that is not; by least squares of pieces: seconds = a + b whole + c cut off."""
    rows = [(1.0, done - blocked, blocked) for done, blocked, _ in works]
    took = [seconds for _, _, seconds in works]
    matrix = [[sum(a[i] * a[j] for a in rows) for j in range(3)] + [sum(a[i] * y for a, y in zip(rows, took))] for i in range(3)]
    for i in range(3):
        if abs(matrix[i][i]) < 1e-9:
            return None
        for j in range(3):
            if j != i:
                factor = matrix[j][i] / matrix[i][i]
                matrix[j] = [a - factor * b for a, b in zip(matrix[j], matrix[i])]
    start, whole, cut = (matrix[i][3] / matrix[i][i] for i in range(3))
    return {"start": round(start, 4), "whole": round(whole, 6), "cut": round(cut, 6), "cost": round(cut / whole, 3)}


def pieces_of_search(vsrun, say):
    """Shapes, sleep and times."""
    shapes = {}
    for name, (_, arguments, executions) in PROGRAMS.items():
        rate, said = vsrun.rate(name, arguments, 60)
        assert said["executions"] == executions, f"{name}: {said['executions']} executions"
        levels, done, blocked, works = shapes_of(vsrun, name, arguments)
        rows, more_works = sleep_of(vsrun, name, arguments, executions, (16, 64, 200))
        smaller, smaller_executions = SMALLER[name]
        few, _ = sleep_of(vsrun, name, smaller, smaller_executions, (16, 64))
        begun = [begun_of(vsrun, name, arguments, seconds) for seconds in (0.5, 1.0, 1.5)]
        shapes[name] = {
            "arguments": arguments,
            "executions": executions,
            "rate": round(rate, 1),
            "levels": levels,
            "pieces": rows,
            "pieces_of_smaller": few,
            "begun": [one for one in begun if one],
            "cost": blocked_cost(works + more_works),
        }
        say(f"{name}: {rate:.0f} executions/s; pieces, executions, redundant: {[row[:3] for row in rows]}, smaller {[row[:3] for row in few]}")
    times, raw = times_of(vsrun, shapes)
    say(f"seconds: {times}")
    return {"shapes": shapes, "times": times, "raw": raw}


# An engine: what it takes to hand over, to begin, to say that it is over. A task writes when it began and when it ended.
TASK = """#!/bin/sh
n=${2:-$SLURM_ARRAY_TASK_ID}
date +%s.%N >"$1.$n.begun"
sleep "$(cat "$1.seconds")"
date +%s.%N >"$1.$n.ended"
"""


class Asked:
    """An engine, asked as src/cluster/slurm.rs and hq.rs do."""

    def __init__(self, engine, work):
        self.engine, self.work = engine, work
        self.script = os.path.join(work, "task.sh")
        with open(self.script, "w") as file:
            file.write(TASK)
        if engine == "hq":
            self.python = subprocess.Popen([sys.executable, "src/cluster/hq.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.answer()

    def answer(self):
        said = json.loads(self.python.stdout.readline())
        assert "failed" not in said, said
        return said

    def ask(self, **what):
        self.python.stdin.write(json.dumps(what) + "\n")
        self.python.stdin.flush()
        return self.answer()

    def submit(self, stem, numbers):
        if self.engine == "hq":
            return self.ask(words=["/bin/sh", self.script, stem], numbers=numbers, dir=self.work)["job"]
        words = ["sbatch", "--parsable", "--requeue", "--cpus-per-task=1", "--output=/dev/null", "--job-name", "vsrun"]
        words += [f"--array=1-{numbers}", "--chdir", self.work, self.script, stem]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()

    def is_over(self, job):
        if self.engine == "hq":
            return self.ask(asked=job)["over"]
        done = subprocess.run(["squeue", "--noheader", "--format=%i", "--jobs", job], capture_output=True, text=True)
        return not done.stdout.strip()

    def tasks(self, numbers, seconds):
        """(how long handing over took, when each began after that, when each ended, how long one question takes, when it was said to be over)"""
        stem = os.path.join(self.work, f"task-{time.monotonic_ns()}")
        with open(stem + ".seconds", "w") as file:
            file.write(str(seconds))
        since = time.time()
        job = self.submit(stem, numbers)
        handed = time.time()
        asks = []
        while True:
            asked = time.time()
            over = self.is_over(job)
            asks.append(time.time() - asked)
            if over:
                break
            time.sleep(0.2)
        said = time.time()
        read = lambda n, what: float(open(f"{stem}.{n}.{what}").read())
        begun = [read(n, "begun") - handed for n in range(1, numbers + 1)]
        ended = [read(n, "ended") - handed for n in range(1, numbers + 1)]
        for file in glob.glob(stem + ".*"):
            os.remove(file)
        return handed - since, begun, ended, statistics.median(asks), said - handed

    def close(self):
        if self.engine == "hq":
            self.python.stdin.close()
            self.python.wait()


def engine_of(engine, work, slots, say):
    """Times of an engine that runs, with so many slots."""
    asked = Asked(engine, work)
    one, starts, gaps, asks, overs = [], [], [], [], []
    for _ in range(6):
        took, begun, ended, ask, over = asked.tasks(1, 0.5)
        one.append(took), starts.append(begun[0]), asks.append(ask), overs.append(over - max(ended))
    # As many as there is room for: how far apart they begin. Then more: how long it takes until the next one has the place of one that ended.
    took_many, begun, ended, ask, over = asked.tasks(slots, 6)
    between = (max(begun) - min(begun)) / max(slots - 1, 1)
    asks.append(ask), overs.append(over - max(ended))
    _, more_begun, more_ended, ask, over = asked.tasks(slots + 8, 6)
    late, free = sorted(more_begun)[slots:], sorted(more_ended)
    gaps = [max(begins - ends, 0.0) for begins, ends in zip(late, free)]
    asked.close()
    measured = {
        "submit": [round(x, 4) for x in one],
        "submit_task": round(max(took_many - statistics.median(one), 0.0) / slots, 6),
        "start": [round(max(x, 0.0), 4) for x in starts],
        "between": round(between, 5),
        "next": [round(x, 4) for x in gaps],
        "over": round(max(statistics.median(overs), 0.0), 3),
        "ask": round(statistics.median(asks), 4),
        "slots": slots,
    }
    say(f"{engine}: {measured}")
    return measured


def store(path, measured):
    """One line for each figure, and for each split."""
    def lines(value, indent):
        flat = json.dumps(value)
        inner = value.items() if isinstance(value, dict) else [(None, one) for one in value] if isinstance(value, list) else None
        if inner is None or len(flat) < 140 and not isinstance(value, dict) or indent > 3:
            return flat
        pad = " " * (indent + 1)
        parts = [pad + (json.dumps(key) + ": " if key is not None else "") + lines(one, indent + 1) for key, one in inner]
        begin, end = "{}" if isinstance(value, dict) else "[]"
        return begin + "\n" + ",\n".join(parts) + "\n" + " " * indent + end

    with open(path, "w") as file:
        file.write(lines(measured, 0) + "\n")
