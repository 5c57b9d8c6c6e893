"""The programs of c-tests, for scripts that run vsrun on them (format: c-tests/README.md)."""
import json, os, subprocess


def cases(path):
    """(name, keys) for each case of a file."""
    name, keys, all_of = "", {}, []
    for line in open(path):
        line = line.strip()
        if line.startswith("["):
            all_of.append((name, keys))
            name, keys = line[1:-1], {}
        elif "=" in line and not line.startswith("#"):
            key, value = line.split("=", 1)
            keys[key.strip()] = value.strip()
    return [case for case in all_of + [(name, keys)] if case[1]]


def compiled(source, keys, work):
    program = os.path.join(work, os.path.basename(source).split(".")[0])
    compiler = ["g++", "-std=c++20"] if source.endswith(".cc") else ["gcc"]
    line = compiler + ["-O1", "-g", "-w"] + keys.get("cflags", "").split() + ["-o", program, source, "-lpthread", "-lrt", "-latomic"]
    return program if subprocess.run(line, stderr=subprocess.DEVNULL).returncode == 0 else None


# Exit statuses of an exploration that went as it should; more where a case expects it.
WENT = [0, 1, 3]


class Failed(Exception):
    """vsrun did, so there is nothing to compare."""


def explored(vsrun, words, keys, work, seconds):
    """The exit status and what vsrun reports; None where it does not come to an end."""
    try:
        done = subprocess.run([vsrun] + words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=work, timeout=seconds)
        report = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return None
    except ValueError:
        raise Failed(f"exit status {done.returncode}, no report: {done.stderr.decode(errors='replace')[-300:]}")
    if done.returncode not in WENT and str(done.returncode) != keys.get("exit"):
        raise Failed(f"exit status {done.returncode}: {done.stderr.decode(errors='replace')[-300:]}")
    return done.returncode, report


def bugs(report):
    """Those of a report. Where a thread is that runs for ever is a matter of when it is looked at."""
    return [(bug["kind"], bug["summary"] if bug["kind"] != "divergence" else "") for bug in report["bugs"]]
