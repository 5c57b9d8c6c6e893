"""The simulation of `vsrun cluster`: tables, checks, and searches that are really run beside it. scripts/simulate.sh calls it."""

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time

import measure
import policy

STORED = "scripts/cluster/measured.json"
EXECUTIONS = 10**8
WORKERS = (1, 2, 8, 25, 50, 100, 200)
SEEDS = (1, 2, 3)
# -n, for each CPU that an engine has: what waits in its hands begins when something ends.
OVER = {"local": 1.0, "slurm": 1.25, "hq": 1.25}
# Of what N workers could do, at 100; where the median over more trees is 0.90, one of few may be a little below.
WANTED = {"local": 0.9, "slurm": 0.88, "hq": 0.9}
# Of tasks, where some are killed or lost.
LOST = 0.05
# How far a quick measurement may be from what is stored: other machines, other work beside it.
BOUND = {"rate": 20.0, "shape": 1.25, "begun": 1.4}

failed = []


def check(holds, what):
    print(f"simulate: {'ok' if holds else 'FAILED'}: {what}", flush=True)
    if not holds:
        failed.append(what)


def engine_times(stored, engine):
    return {} if engine == "local" else stored["engines"][engine]


def simulated(stored, program, engine, workers, seed=1, executions=EXECUTIONS, more=0.0, rate=None, levels=None, **rules):
    """One run of the command; what it comes to, and what was wrong."""
    shape = stored["shapes"][program]
    tree = policy.Tree(levels or shape["levels"], executions, seed)
    name = engine.split("-")[0]
    rules = policy.Rules(workers, **{"engine": name, "most": int(workers * OVER[name]), **rules})
    run = policy.Run(tree, rules, stored["times"], engine_times(stored, engine), rate or shape["rate"], more, seed)
    result = run.run()
    result["wrong"] = run.failed or policy.once(run.done, executions)
    result["speed-up"] = result["useful"] / result["wall"]
    result["efficiency"] = result["speed-up"] / workers
    return result


def medians(results):
    """Of each figure its median; of the efficiency the range, too."""
    of = {key: statistics.median(one[key] for one in results) for key in ("wall", "speed-up", "efficiency", "tasks", "divides", "pieces")}
    of["spent"] = {key: statistics.median(one["spent"][key] for one in results) for key in results[0]["spent"]}
    of["range"] = min(one["efficiency"] for one in results), max(one["efficiency"] for one in results)
    return of


HEAD = f"{'N':>4} {'wall s':>9} {'speed-up':>8} {'of N':>5} {'range':>11} {'tasks':>6} {'divides':>7} {'pieces':>6} | lost, % of N x wall: start engine split divide merge idle"


def row(workers, of):
    lost = " ".join(f"{100 * of['spent'][key]:6.1f}" for key in ("start", "engine", "split", "divide", "merge", "idle"))
    low, high = of["range"]
    return (
        f"{workers:4} {of['wall']:9.0f} {of['speed-up']:8.1f} {of['efficiency']:5.2f} {low:5.2f}-{high:4.2f} {of['tasks']:7.0f} "
        f"{of['divides']:7.0f} {of['pieces']:6.0f} |                       {lost}"
    )


def known(stored, engines):
    there = [engine for engine in engines if engine == "local" or engine in stored["engines"]]
    return there + [f"{engine}-slow" for engine in there if f"{engine}-slow" in stored["engines"]]


def redundant(shape, pieces, executions):
    """How many executions are cut off as redundant, as a part of the others: a power of pieces and of executions, through what was
    measured; `None`: too few splits had any."""
    rows = [(math.log(p), math.log(size), math.log(blocked / size)) for p, _, blocked, size, *_ in shape["pieces"] + shape["pieces_of_smaller"] if blocked]
    if len(rows) < 3:
        return None
    # Least squares of log share = a + b log pieces + c log executions.
    matrix = [[sum(u[i] * u[j] for u in unit) for j in range(3)] + [sum(u[i] * y for u, y in zip(unit, (r[2] for r in rows)))] for unit in [[(1, p, s) for p, s, _ in rows]] for i in range(3)]
    for i in range(3):
        matrix[i][i] += 1e-9
        for j in range(3):
            if j != i:
                factor = matrix[j][i] / matrix[i][i]
                matrix[j] = [a - factor * b for a, b in zip(matrix[j], matrix[i])]
    a, b, c = (matrix[i][3] / matrix[i][i] for i in range(3))
    # A larger tree has no larger share of them.
    return math.exp(a + b * math.log(pieces) + min(c, 0.0) * math.log(executions))


def table(stored, engines):
    print(f"A tree of {EXECUTIONS} executions; median and range over {len(stored['shapes'])} programs' trees, {len(SEEDS)} of each.")
    for engine in known(stored, engines):
        print(f"\n{engine}\n{HEAD}")
        for workers in WORKERS:
            results = [simulated(stored, program, engine, workers, seed) for program in stored["shapes"] for seed in SEEDS]
            print(row(workers, medians(results)), flush=True)
            for result in results:
                if result["wrong"]:
                    check(False, f"{engine}, {workers} workers: {result['wrong']}")
    rules(stored, engines)
    print("\nExecutions that are cut off as redundant, as a part of the others, in so many pieces: measured")
    for program, shape in stored["shapes"].items():
        for part in ("pieces_of_smaller", "pieces"):
            print(f"{program:>14} {shape[part][0][3]:6}: " + ", ".join(f"{100 * blocked / size:.0f}% in {pieces}" for pieces, _, blocked, size, *_ in shape[part]))
    print(f"\nExecutions that are cut off as redundant, local, 100 workers, of {EXECUTIONS}: an extrapolation")
    print(f"{'':>14} {'pieces':>7} {'redundant':>9} {'cost of one':>11} {'speed-up over a search that is not split':>41}")
    for program, shape in stored["shapes"].items():
        pieces = simulated(stored, program, "local", 100)["pieces"]
        cost = shape["cost"]["cost"] if shape["cost"] else 1.0
        share = redundant(shape, pieces, EXECUTIONS)
        if share is None:
            print(f"{program:>14} {pieces:7} {'too few were measured for that':>62}")
            continue
        result = simulated(stored, program, "local", 100, more=share * cost)
        print(f"{program:>14} {pieces:7} {100 * share:8.0f}% {cost:11.2f} {result['speed-up']:41.1f}")


# Other rules than those of src/cluster, and other options, to see what they would do.
OTHER = [
    ("as it is", {}),
    ("divided into 8", {"parts": 8}),
    ("divided into 200", {"parts": 200}),
    ("divided below 1 for each", {"few": 1}),
    ("turns that stay as long", {"shorter": 1.0}),
    ("as before (200, 1, long)", {"parts": 200, "few": 1, "shorter": 1.0}),
    ("-n 100", {"most": 100}),
    ("-n 150", {"most": 150, "into": 1600}),
    ("engine without -n", {"most": None}),
    ("--into 400", {"into": 400}),
    ("--grain 10", {"grain": 10.0}),
    ("--grain 60", {"grain": 60.0}),
]


def rules(stored, engines):
    print("\nOther rules, 100 workers: efficiency, median and range")
    for engine in known(stored, engines):
        for name, other in OTHER:
            if engine == "local" and "most" in other:
                continue
            of = medians([simulated(stored, program, engine, 100, seed, **other) for program in stored["shapes"] for seed in SEEDS])
            print(f"{engine:>10} {name:>25}: {of['efficiency']:.2f} {of['range'][0]:.2f}-{of['range'][1]:.2f}, {of['pieces']:.0f} pieces", flush=True)


def short(stored, engines, vsrun):
    for engine in (engine for engine in known(stored, engines) if engine in WANTED):
        good = [simulated(stored, program, engine, 100) for program in stored["shapes"]]
        wrong = [result["wrong"] for result in good if result["wrong"]]
        check(not wrong, f"{engine}, 100 workers: each of {EXECUTIONS} executions is done once {wrong or ''}")
        of = medians(good)
        wanted = WANTED[engine]
        check(of["efficiency"] >= wanted, f"{engine}, 100 workers: {of['efficiency']:.3f} of what they could do, {wanted} wanted, range {of['range'][0]:.2f}-{of['range'][1]:.2f}")
        bad = [simulated(stored, program, engine, 100, lost=LOST) for program in stored["shapes"]]
        wrong = [result["wrong"] for result in bad if result["wrong"]]
        check(not wrong and all(one["spent"]["redone"] > 0 for one in bad), f"{engine}, {LOST:.0%} of tasks killed or lost: each execution is done once {wrong or ''}")
        worst = min(one["efficiency"] for one in bad)
        print(f"simulate: with them {medians(bad)['efficiency']:.2f} of 100, the worst {worst:.2f}")
    begun(stored)
    if vsrun:
        again(stored, vsrun)


def begun(stored):
    """Pieces that had run for a while were divided into 4, and all parts explored: which part of what was left the largest one is, there and as it is simulated."""
    for program, shape in stored["shapes"].items():
        for done, rest, others in shape["begun"]:
            left, shares = rest + sum(others), []
            for seed in range(50):
                # The piece was a branch of the first split.
                tree = policy.Tree(shape["levels"][1:], done + left, seed)
                parts = policy.divide(tree, policy.Piece(tree.root, done), 4)
                shares.append(max(part.left() for part in parts) / left)
            share, real = statistics.median(shares), max([rest, *others]) / left
            check(1 / BOUND["begun"] < share / real < BOUND["begun"], f"{program}, {left} left of a piece that was divided: the largest part is {real:.2f} of it, {share:.2f} simulated")


def again(stored, vsrun):
    """What is stored, against a measurement that takes a few seconds."""
    rate, _ = vsrun.rate("tosses", measure.PROGRAMS["tosses"][1], 3)
    ratio = rate / stored["shapes"]["tosses"]["rate"]
    check(1 / BOUND["rate"] < ratio < BOUND["rate"], f"executions/s of one worker: {rate:.0f}, {ratio:.2f} times what is stored")
    for program in ("locks", "producers"):
        arguments, executions = measure.SMALLER[program]
        rows, _ = measure.sleep_of(vsrun, program, arguments, executions, (16,))
        now, then = rows[0], stored["shapes"][program]["pieces_of_smaller"][0]
        check(now[1] - now[2] == executions, f"{program}: {now[0]} pieces have {now[1] - now[2]} executions that are not redundant, the search has {executions}")
        for what, at in (("pieces", 0), ("executions", 1), ("largest piece", 4), ("sum of squares of pieces", 5)):
            ratio = now[at] / then[at]
            check(1 / BOUND["shape"] < ratio < BOUND["shape"], f"{program}, {what}: {now[at]}, {ratio:.2f} times what is stored")


# Searches that are really run: program, arguments, executions, grain.
# How far simulated time may be from real time.
RATIO = 1.25
REAL = [("tosses", ["6"], 14400, 3), ("producers", ["3", "3"], 17856, 3), ("locks", ["8"], 40320, 5)]


def validate(stored, engine, vsrun):
    """Real and simulated time of the same search. How fast a worker was stands in the report: the seconds that pieces were explored, all together. What else
    runs here changes that, so it is taken from the run itself; what is held against it is all the rest, what is split, begun, waited for, and summed up."""
    print(f"{'':>10} {'engine':>7} {'N':>2} {'executions':>10} {'redundant':>9} {'of one/s':>8} {'real s':>7} {'simulated s':>11} {'ratio':>6} {'range':>11} {'ideal':>11}")
    for program, arguments, executions, grain in REAL:
        for workers in (1, 2) if engine == "local" else (4,):
            place = vsrun.place()
            words = ["cluster", "--engine", engine, "-n", str(workers), "--grain", str(grain), "--look", "0", "-o", place, "--format", "json", "--scenario-dir", vsrun.work]
            said, real = vsrun.run(*words, *vsrun.search(program, arguments))
            report = json.loads(said)
            subprocess.run(["rm", "-rf", place], check=True)
            # The report counts all, as pieces do; of them these were cut off.
            all_of, blocked = report["executions"], report["sleep_blocked"]
            check(report["complete"] and all_of - blocked == executions, f"{program}, {engine}, {workers}: {all_of} - {blocked} executions, {executions} expected")
            seconds, rate = report["seconds"], all_of / report["seconds"]
            # Where that is slow, so is all else that a CPU does.
            slow = max(stored["shapes"][program]["rate"] / rate, 1.0)
            here = dict(stored, times={key: value * slow for key, value in stored["times"].items()})
            options = {"grain": float(grain), "look": 0.0, "most": workers}
            run = lambda seed: simulated(here, program, engine, workers, seed, all_of, 0.0, rate, **options)
            # These seconds have the beginnings of turns, too.
            rate = all_of / max(seconds - run(1)["tasks"] * here["times"]["turn_begins"], seconds / 2)
            walls = [run(seed)["wall"] for seed in range(1, 10)]
            ratio, low, high = (wall / real for wall in (statistics.median(walls), min(walls), max(walls)))
            ideal = seconds / workers / real
            print(
                f"{program:>10} {engine:>7} {workers:2} {executions:10} {blocked:9} {rate:8.0f} {real:7.1f} {ratio * real:11.1f} {ratio:6.2f} {low:5.2f}-{high:4.2f} {ideal:11.2f}",
                flush=True,
            )
            check(abs(math.log(ratio)) < math.log(RATIO), f"simulated time is within {RATIO} times of the real one")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=("table", "short", "measure", "validate"))
    parser.add_argument("engines", nargs="*")
    parser.add_argument("--vsrun"), parser.add_argument("--work")
    args = parser.parse_args()
    vsrun = measure.Vsrun(args.vsrun, args.work) if args.vsrun else None
    stored = {"engines": {}}
    if os.path.exists(STORED):
        with open(STORED) as file:
            stored = json.load(file)
    if args.mode == "measure":
        say = lambda text: print(f"simulate: {text}", flush=True)
        if not args.engines:
            stored.update(measure.pieces_of_search(vsrun, say))
        for engine in args.engines:
            stored["engines"][engine] = measure.engine_of(engine.split("-")[0], args.work, 100, say)
        measure.store(STORED, stored)
    elif args.mode == "validate":
        for engine in args.engines:
            validate(stored, engine, vsrun)
    elif args.mode == "short":
        short(stored, args.engines, vsrun)
    else:
        table(stored, args.engines)
    sys.exit(1 if failed else 0)


main()
