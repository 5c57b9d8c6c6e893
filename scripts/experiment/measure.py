"""Ways to begin executions over the sizes of programs: `scripts/experiment.sh`.

measure.py VSRUN PROGRAM PLOTS RUNS SHORT [NAME...]: tables in Markdown on stdout, and pictures in the directory PLOTS (none: `-`).
"""

import json
import os
import statistics
import subprocess
import sys
import time

VSRUN, PROGRAM, PLOTS, RUNS, SHORT, NAMES = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5] == "1", sys.argv[6:]

# Name, options, colour.
WAYS = [
    ("replay", ["--checkpoint", "replay"], "#b03030"),
    ("fork", ["--checkpoint", "fork"], "#c08000"),
    ("first choice", ["--checkpoint", "rollback", "--checkpoint-memory", "0"], "#2060c0"),
    ("marks", ["--checkpoint", "rollback"], "#108040"),
    ("copies", ["--checkpoint", "copies"], "#8040a0"),
]
# What all but one are.
USUAL = {"rounds": 40, "us": 0, "pages": 0, "threads": 4, "processes": 1}
# Name, what is told, what is changed, its values, what is not as usual. A round is two transitions; threads have a few beside.
SWEEPS = [
    ("depth", "transitions of an execution", "rounds", [8, 40, 140, 490, 1490, 4990], {}),
    ("work", "ms of invisible work in each of 20 rounds", "us", [0, 10, 100, 1000, 10000], {"rounds": 20}),
    ("pages", "pages that an execution writes", "pages", [0, 10, 100, 1000, 8000, 10000], {}),
    ("threads", "threads", "threads", [2, 4, 8, 16, 32], {}),
    ("processes", "processes of two threads each", "processes", [1, 2, 4, 8], {"threads": 2}),
]
if SHORT:
    SWEEPS = [
        ("depth", "transitions of an execution", "rounds", [140], {}),
        ("work", "ms of invisible work in each of 20 rounds", "us", [1000], {"rounds": 20}),
        ("pages", "pages that an execution writes", "pages", [100], {}),
        ("processes", "processes of two threads each", "processes", [2], {"threads": 2}),
    ]
# Seconds of CPU time that the executions that are measured are to take, and bounds for their number.
BUDGET, LEAST, MOST = (0.2, 16, 2000) if SHORT else (0.5, 16, 8000)
# Executions before those. They teach what is written and what a transition takes, and each place for a mark costs page faults when it is first used.
FIRST, LONG = 100, 0.05
# The same where one takes longer than LONG seconds, and those that are measured.
OF_LONG = (8, 16)
# Executions of `replay`, each of which is like any other: first ones, and those that are measured.
OF_REPLAY = (4, 12)


def command(way, point, executions):
    words = [str(point[key]) for key in ("rounds", "us", "pages", "threads", "processes")]
    # The idle bound is for programs that get nowhere.
    fixed = ["--race", "off", "-j", "1", "--search", "optimal", "--keep-going", "--progress", "never", "--format", "json", "--output", "/dev/null"]
    return [VSRUN] + fixed + way[1] + ["--max-executions", str(executions), PROGRAM] + words


def failed(child, words, text, said):
    """Ends all if it has: what failed is no figure."""
    if child.returncode not in (0, 3):
        sys.exit(f"experiment: status {child.returncode} of {' '.join(words)}: {(said + text).decode(errors='replace')[:800]}")


def run(way, point, executions):
    """CPU seconds of it and all that it has started, and its report."""
    words = command(way, point, executions)
    child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    # Both are short.
    text, said = child.stdout.read(), child.stderr.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    failed(child, words, text, said)
    return used.ru_utime + used.ru_stime, json.loads(text)


def processes_below(pid):
    found, todo = [pid], [pid]
    while todo:
        one = todo.pop()
        try:
            for thread in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{thread}/children") as children:
                    more = [int(word) for word in children.read().split()]
                found += more
                todo += more
        except OSError:
            pass
    return found


def pss(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup") as rollup:
            return next(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


def weigh(way, point, executions):
    """The most memory, in MiB, that it and all that it has started had, looked at again and again; what is shared counts once."""
    child = subprocess.Popen(command(way, point, executions), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    most = 0
    while child.poll() is None:
        most = max(most, sum(pss(pid) for pid in processes_below(child.pid)))
        time.sleep(0.01)
    # Both fit into a pipe.
    failed(child, command(way, point, executions), child.stdout.read(), child.stderr.read())
    return most / 1024


def sizes(way, point):
    """How many executions are the first ones, and how many there are with those that are measured."""
    if way[0] == "replay":
        return OF_REPLAY[0], sum(OF_REPLAY)
    one, _ = run(way, point, 1)
    some, _ = run(way, point, OF_LONG[0])
    if (some - one) / OF_LONG[0] > LONG:
        return OF_LONG[0], sum(OF_LONG)
    first = FIRST
    few, _ = run(way, point, first)
    more, _ = run(way, point, first + 3 * LEAST)
    each = max((more - few) / (3 * LEAST), 5e-5)
    return first, first + int(min(max(BUDGET / each, LEAST), MOST))


def rate(way, point):
    """Executions a second of CPU time behind the first ones, how many there were, and the last report."""
    first, many = sizes(way, point)
    while True:
        rates, spans = [], []
        for _ in range(RUNS):
            few, small = run(way, point, first)
            seconds, report = run(way, point, many)
            measured = report["executions"] - small["executions"]
            spans.append(seconds - few)
            rates.append(measured / max(seconds - few, 1e-4))
        # What is too short is no measure.
        if statistics.median(spans) > BUDGET / 4 or report["complete"] or many > 4 * MOST:
            return statistics.median(rates), many, report
        many = first + 4 * (many - first)


def same(point):
    """The first executions are the same however they begin. Transitions of the longest."""
    seen = []
    for way in WAYS:
        _, report = run(way, point, LEAST)
        seen.append([report[key] for key in ("verdict", "executions", "transitions", "sleep_blocked", "max_depth", "complete")])
    if any(one != seen[0] for one in seen):
        sys.exit(f"experiment: {point}: not the same: {dict(zip([way[0] for way in WAYS], seen))}")
    return seen[0][4]


def shown(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def label(key, value, depth):
    return f"{value / 1000:g}" if key == "us" else f"{depth:,}" if key == "rounds" else f"{value:,}"


def plot(name, title, labels, results):
    """Two pictures side by side: executions a second, and memory, both with logarithmic scales."""
    import math

    width, height, left, top, wide, tall = 940, 350, 60, 46, 350, 240
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" role="img" '
        f'aria-label="executions a second and memory over {title}">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for panel, (what, head) in enumerate([("rate", "executions a second of CPU time"), ("memory", "peak memory, MiB")]):
        x0 = left + panel * (wide + 100)
        values = [results[way[0]][what] for way in WAYS]
        low = math.floor(math.log10(min(min(v) for v in values)))
        high = math.ceil(math.log10(max(max(v) for v in values)))
        high = max(high, low + 1)
        x = lambda n: x0 + (wide * (n + 0.5) / len(labels))
        y = lambda v: top + tall * (high - math.log10(v)) / (high - low)
        out.append(f'<text x="{x0}" y="{top - 14}" font-weight="bold">{head}</text>')
        for power in range(low, high + 1):
            at = y(10.0**power)
            out.append(f'<line x1="{x0}" y1="{at:.1f}" x2="{x0 + wide}" y2="{at:.1f}" stroke="#dddddd"/>')
            out.append(f'<text x="{x0 - 6}" y="{at + 4:.1f}" text-anchor="end" fill="#333333">{10.0**power:g}</text>')
        for n, text in enumerate(labels):
            out.append(f'<text x="{x(n):.1f}" y="{top + tall + 18}" text-anchor="middle" fill="#333333">{text}</text>')
        out.append(f'<text x="{x0 + wide / 2}" y="{top + tall + 38}" text-anchor="middle" fill="#333333">{title}</text>')
        for (way, _, colour), line in zip(WAYS, values):
            points = " ".join(f"{x(n):.1f},{y(v):.1f}" for n, v in enumerate(line))
            out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
            out += [f'<circle cx="{x(n):.1f}" cy="{y(v):.1f}" r="3" fill="{colour}"><title>{way}, {labels[n]}: {shown(v)}</title></circle>' for n, v in enumerate(line)]
    for n, (way, _, colour) in enumerate(WAYS):
        at = left + n * 130
        out.append(f'<line x1="{at}" y1="{height - 12}" x2="{at + 24}" y2="{height - 12}" stroke="{colour}" stroke-width="3"/>')
        out.append(f'<text x="{at + 30}" y="{height - 8}" fill="#333333">{way}</text>')
    out.append("</svg>\n")
    with open(os.path.join(PLOTS, f"{name}.svg"), "w") as file:
        file.write("\n".join(out))


def sweep(name, title, key, values, fixed):
    results = {way[0]: {"rate": [], "memory": []} for way in WAYS}
    names = [way[0] for way in WAYS]
    print(f"\n| {title} | " + " | ".join(names) + " | marks / replay | marks / fork | copies / fork | MiB: " + " | ".join(names) + " |")
    print("|" + "---|" * (2 * len(WAYS) + 4))
    labels = []
    for value in values:
        point = {**USUAL, **fixed, key: value}
        labels.append(label(key, value, same(point)))
        for way in WAYS:
            speed, executions, report = rate(way, point)
            results[way[0]]["rate"].append(speed)
            results[way[0]]["memory"].append(weigh(way, point, executions))
            print(f"{point} {way[0]}: {speed:.1f}/s, {executions} executions, {report['rolled_back'] + report['copied']} went back, {report['from_marks']} from marks, "
                  f"{report['not_rolled_back']}, {results[way[0]]['memory'][-1]:.0f} MiB", file=sys.stderr)
        last = {way: result["rate"][-1] for way, result in results.items()}
        cells = [shown(last[way]) for way in names] + [shown(last["marks"] / last["replay"]), shown(last["marks"] / last["fork"]), shown(last["copies"] / last["fork"])]
        cells += [shown(results[way]["memory"][-1]) for way in names]
        print(f"| {labels[-1]} | " + " | ".join(cells) + " |", flush=True)
    if PLOTS != "-":
        plot(name, title, labels, results)


since = time.time()
for one in SWEEPS:
    if not NAMES or one[0] in NAMES:
        sweep(*one)
print(f"\n{time.time() - since:.0f} s, load {open('/proc/loadavg').read().split()[0]}", file=sys.stderr)
