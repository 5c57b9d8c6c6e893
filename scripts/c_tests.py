"""The programs of c-tests, for scripts that run vsrun on them (format: c-tests/README.md)."""
import os, subprocess


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
