"""One search, looked at while it runs: `scripts/soak/steady.sh`. steady.py DIRECTORY EXECUTIONS SEARCH THREADS"""

import os
import pty
import re
import subprocess
import sys
import threading
import time

DIR, EXECUTIONS, SEARCH, THREADS = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
SETTLED = 10_000
# KiB: places for states within executions come into use one after the other, and keep what they have once taken.
PLACES = 1024
# Seconds between looks, beside those when it says how far it is.
PAUSE = 0.1 if EXECUTIONS < 100_000 else 0.5
TICKS = os.sysconf("SC_CLK_TCK")


def read(path):
    with open(path) as file:
        return file.read()


def below(pid):
    """Processes below it."""
    found, todo = [], [pid]
    while todo:
        one = todo.pop()
        try:
            for thread in os.listdir(f"/proc/{one}/task"):
                more = [int(word) for word in read(f"/proc/{one}/task/{thread}/children").split()]
                found += more
                todo += more
        except OSError:
            pass
    return found


def look(pid):
    """Memory in KiB, descriptors, mappings. None: it is over."""
    try:
        memory = re.search(r"^VmRSS:\s+(\d+)", read(f"/proc/{pid}/status"), re.M)
        return int(memory.group(1)), len(os.listdir(f"/proc/{pid}/fd")), read(f"/proc/{pid}/maps").count("\n")
    except (OSError, AttributeError):
        return None


def sample(pid, done):
    own = look(pid)
    ids = below(pid)
    others = [seen for seen in map(look, ids) if seen]
    if not own or not others:
        return None
    of_guards = [text for text in map(command, ids) if text and text[0].startswith("vsrun-guard")]
    stat = read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
    return {
        "executions": done,
        "cpu": sum(map(int, stat[11:15])) / TICKS,
        "memory of vsrun": own[0],
        "descriptors of vsrun": own[1],
        "mappings of vsrun": own[2],
        "memory of a process of the program": max(seen[0] for seen in others),
        "descriptors of a process of the program": max(seen[1] for seen in others),
        "mappings of a process of the program": max(seen[2] for seen in others),
        "processes": len(others),
        "guards": of_guards,
    }


def command(pid):
    try:
        return read(f"/proc/{pid}/cmdline").split("\0")
    except OSError:
        return None


# On a terminal it says twice a second how far it is.
ours, its = pty.openpty()
words = ["./vsrun", "--race", "off", "-j", "1", "--search", SEARCH, "--seed", "1", "--keep-going", "--max-executions", str(EXECUTIONS)]
words += ["--progress", "always", "--output", "/dev/null", "./lockcount", THREADS]
environment = {**os.environ, "TERM": "xterm"}
child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=its, env=environment)
os.close(its)
said = b""
samples = []


def listen():
    global said
    while True:
        try:
            more = os.read(ours, 4096)
        except OSError:
            return
        if not more:
            return
        said = (said + more)[-20_000:]


listener = threading.Thread(target=listen, daemon=True)
listener.start()
last = 0
while child.poll() is None:
    told = re.findall(rb"(\d+) executions, \d+/s", said)
    done = int(told[-1]) if told else 0
    if done > last or done >= SETTLED and not time.sleep(PAUSE):
        last = done
        one = sample(child.pid, done)
        if one:
            samples.append(one)
    time.sleep(0.05)
report = child.stdout.read().decode(errors="replace")
print("\n".join(line for line in report.splitlines() if " executions" in line and " transitions" in line))
failed = []
if child.returncode != 3:
    failed.append(f"vsrun ended with status {child.returncode}: {report[:300]} {said[-300:].decode(errors='replace')}")

# Those before the search started over are told apart.
counted = re.search(r"(\d+) executions(?: \(and (\d+) before)?", report)
count = sum(int(n or 0) for n in counted.groups()) if counted else 0
if count != EXECUTIONS:
    failed.append(f"there were {count} executions instead of {EXECUTIONS}")

settled = [one for one in samples if one["executions"] >= SETTLED]
if len(settled) < 3:
    failed.append(f"only {len(settled)} looks after the first {SETTLED} executions")
else:
    # Each third has one at least.
    third = len(settled) // 3
    for key in settled[0]:
        if key in ("executions", "cpu", "guards"):
            continue
        first, end = [one[key] for one in settled[:third]], [one[key] for one in settled[-third:]]
        most = max(max(first) * 1.05, max(first) + PLACES) if key.startswith("memory") else max(first)
        # Marks are mappings, and how many there are changes: 50 to 56 were seen. One that is left behind each thousandth time would be more than that.
        if key.startswith("mappings of a process of the program"):
            most += 10
        grew = min(end) > most
        unit = " KiB" if key.startswith("memory") else ""
        print(f"{SEARCH}: {key}: {min(first)} to {max(first)}{unit} in the first third, {min(end)} to {max(end)}{unit} in the last one{': it has grown' if grew else ''}")
        if grew:
            failed.append(f"{key} has grown")
    if EXECUTIONS >= 100_000:
        def rate(a, b):
            return (b["executions"] - a["executions"]) / (b["cpu"] - a["cpu"])

        tenth = [one for one in samples if one["executions"] - samples[0]["executions"] >= EXECUTIONS / 10]
        before = [one for one in samples if samples[-1]["executions"] - one["executions"] >= EXECUTIONS / 10]
        begin, end = rate(samples[0], tenth[0]), rate(before[-1], samples[-1])
        print(f"{SEARCH}: executions for a second of CPU time: {begin:.0f} in the first tenth, {end:.0f} in the last one: {end / begin:.2f}")
        if end < 0.95 * begin:
            failed.append("it has become slower")

# What has not gone by itself a while after.
guards = {path for one in samples for guard in one["guards"] for path in guard[1:] if os.path.isabs(path)}
left = None
for _ in range(40):
    left = [path for path in guards if os.path.exists(path)]
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/exe").startswith(DIR + "/"):
                left.append(f"process {pid}")
        except OSError:
            pass
    if not left:
        break
    time.sleep(0.1)
if left:
    failed.append(f"left: {' '.join(left)}")
if not guards:
    failed.append("no directory of vsrun's was seen")
print(f"{SEARCH}: {len(settled)} looks; " + ("; ".join(failed) if failed else "nothing has grown, nothing is left"))
sys.exit(bool(failed))
