"""Each program of c-tests by all schedules and by states that are met once: `scripts/states.sh`."""
import glob
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from c_tests import Failed, bugs, cases, compiled, explored

vsrun, tests, work, word, short = sys.argv[1:6]
# A sample of kinds of operations, memory and ends.
DOZEN = "barrier cond_two_waiters lockcount philosophers_threads producers_consumers rwlock_cross once_retry detached_exit sem_timed".split()
# Where the clock or a lot decides, or there is one execution only, there is nothing to compare; nor where a search is asked for, or memory is watched.
OTHERS = "--once --time --checkpoint --save --resume --output -j --guard-arena --divergence-timeout --search --random --bound --race --unshared --atomic --memory --watch --max-depth --max-executions --max-idle --files".split()
MOST = int(os.environ.get("MOST", "3000"))
SECONDS = 60


def told(words, keys):
    done = explored(vsrun, words, keys, work, SECONDS)
    return done and (done[1], set(bugs(done[1])))


compared, differ, failed, left_out, no_end, fewer = 0, 0, 0, 0, 0, 0
run = [0, 0]
for path in sorted(glob.glob(tests + "/*.expect")):
    base = os.path.basename(path)[: -len(".expect")]
    if base < os.environ.get("FROM", "") or word not in base or short == "1" and base not in DOZEN:
        continue
    source = next(p for p in (f"{tests}/{base}.c", f"{tests}/{base}.cc") if os.path.exists(p))
    for name, keys in cases(path):
        options = keys.get("options", "").split()
        if any(option.split("=")[0] in OTHERS for option in options) or "annotations" in keys or "library" in keys:
            left_out += 1
            continue
        program = compiled(source, keys, work)
        if not program:
            left_out += 1
            continue
        keeps = [] if "--keep-going" in options else ["--keep-going"]
        line = keeps + ["-j", "1", "--format", "json", "--shrink", "0", "--race", "off", "--scenario-dir", work] + options
        line += ["./" + os.path.basename(program)] + keys.get("args", "").split()
        try:
            every = told(["--search", "naive", "--max-executions", str(MOST)] + line, keys)
            if every is None or "executions" in every[0]["incomplete_reasons"]:
                # Not all schedules are known.
                left_out += 1
                continue
            once = told(["--search", "stateful"] + line, keys)
        except Failed as why:
            failed += 1
            print(f"FAILED {base} [{name}]: {why}", flush=True)
            continue
        if once is None:
            no_end += 1
            print(f"no end {base} [{name}]: {every[0]['executions']} executions of naive", flush=True)
            continue
        compared += 1
        # A livelock is what only a search of states knows; where there is one `naive` was cut, and is not complete.
        livelocks = {bug for bug in once[1] if "can go round for ever" in bug[1]}
        same = once[1] - livelocks == every[1] and (livelocks or once[0]["complete"] <= every[0]["complete"])
        counts = [every[0]["executions"], once[0]["executions"]]
        run = [run[0] + counts[0], run[1] + counts[1]]
        fewer += counts[1] < counts[0]
        if not same:
            differ += 1
            print(f"DIFFERS {base} [{name}]: {every[0]['verdict']} {every[0]['complete']} {sorted(every[1])} {sorted(once[1])} {once[0]['complete']}", flush=True)
        elif livelocks:
            print(f"livelock {base} [{name}]: {sorted(livelocks)}", flush=True)
        elif once[0]["complete"] != every[0]["complete"]:
            print(f"less complete {base} [{name}]: {once[0]['incomplete_reasons']} {every[0]['incomplete_reasons']}", flush=True)
print(f"{compared} programs compared, {differ} differ, {failed} failed, {no_end} without an end, {left_out} left out; "
      f"executions: {run[0]} of naive, {run[1]} of stateful, fewer in {fewer}")
sys.exit(1 if differ or failed or not compared else 0)
