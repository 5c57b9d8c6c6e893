"""What vsrun runs to speak with HyperQueue: lines of JSON on standard input and output.

{"words": [..], "numbers": N, "dir": D} hands over a job of N tasks, each with its number behind the words: {"job": J}. {"asked": J} is answered
by {"over": true} when none of a job's tasks waits or runs. {"failed": WHY} where something went wrong.
The server is that of HQ_SERVER_DIR, or of HyperQueue's default directory.
"""

import json
import os
import sys


class Seen(Exception):
    """Ends a wait that has told what it was asked for."""


def say(**what):
    sys.__stdout__.write(json.dumps(what) + "\n")
    sys.__stdout__.flush()


def connected():
    import importlib.metadata

    try:
        version = importlib.metadata.version("hyperqueue")
    except importlib.metadata.PackageNotFoundError:
        raise Exception("python3 has no package hyperqueue (pip install hyperqueue==0.27.0)") from None
    if not version.startswith("0.27."):
        raise Exception(f"hyperqueue {version} was not tried (pip install hyperqueue==0.27.0)")
    from hyperqueue import Client

    return Client(os.environ.get("HQ_SERVER_DIR"))


def submit(client, asked):
    from hyperqueue import Job

    # How a task ends is told by its own file: none ends the others.
    job = Job(default_workdir=asked["dir"], max_fails=None, name="vsrun")
    for number in range(1, asked["numbers"] + 1):
        job.program([*asked["words"], str(number)], stdout=None, stderr=None)
    return client.submit(job).id


def is_over(client, job):
    """The package has no question, but a wait that tells now and then how far it is: the first time is enough."""
    jobs = {}

    def told(so_far):
        jobs.update(so_far)
        raise Seen

    try:
        client.connection.wait_for_jobs((job,), told)
    except Seen:
        # What the server does not know any more is over.
        over = job not in jobs or jobs[job]["completed"]
    else:
        over = True
    if over:
        try:
            client.forget(job)
        except Exception:
            pass
    return over


def main():
    client = connected()
    say(version=1)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if client is None:
                client = connected()
            if "asked" in asked:
                say(over=is_over(client, int(asked["asked"])))
            else:
                say(job=str(submit(client, asked)))
        except BaseException as e:
            # The server may have gone, and come back.
            client = None
            say(failed=str(e) or type(e).__name__)


try:
    main()
except BaseException as e:
    say(failed=str(e))
