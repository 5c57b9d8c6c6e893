# vsrun's commands in gdb, see docs/DEBUGGING.md. A step is a visible operation that the scenario has decided on. The program stops by itself
# (a breakpoint in vsrun's library) before the step that is written to a word of the arena, the memory that vsrun shares with it.
# Going back is starting it again: executions are the same each time.
import json
import os
import struct
import subprocess

import gdb
from gdb.FrameDecorator import FrameDecorator

PLACE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(PLACE, "facts.json")) as facts:
    FACTS = json.load(facts)
STEPS = FACTS["steps"]
LIBRARY = "libvsrun.so"
AT_STEP, AT_END, SHOW = "vsrun_at_step", "vsrun_end_of_scenario", "vsrun_show_threads"

SETTINGS = [
    "set confirm off",
    # The program is started by way of vsrun, which becomes it.
    "set startup-with-shell on",
    "set exec-wrapper " + FACTS["wrapper"],
    # Faults and traps are the library's first, and what is left of them is stopped at by it.
    "handle all nostop noprint pass",
    # All processes of the program.
    "set detach-on-fork off",
    "set follow-fork-mode parent",
    "set follow-exec-mode same",
    "set schedule-multiple on",
    "set non-stop off",
    # One kernel thread carries all threads of a process in turn: what libthread_db keeps of it, such as the place of thread-local
    # variables, would be that of another thread.
    "set auto-load libthread-db off",
    "set libthread-db-search-path /nonexistent",
    "set print thread-events off",
    "set print inferior-events off",
    "set print symbol-loading off",
    "set debuginfod enabled off",
]


class Trouble(Exception):
    """What is told in one line."""


def quietly(command):
    return gdb.execute(command, to_string=True)


def is_for_people():
    """gdb writes to its standard output line by line: not for another program (MI), and not to a whole screen."""
    with open("/proc/self/cmdline", "rb") as file:
        words = file.read().split(b"\0")
    for word in words:
        if word in (b"-i", b"-interpreter", b"--interpreter") or word.startswith((b"-i=", b"-interpreter=", b"--interpreter=")):
            return False
    try:
        return "not active" in quietly("info win")
    except gdb.error:
        return True


class Silence:
    """What gdb says by itself of stops is said better here. It says that past what gdb.execute catches."""

    def __enter__(self):
        self.before = None
        if not is_for_people():
            return
        gdb.flush()
        self.before = os.dup(1)
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.close(nothing)

    def __exit__(self, *_):
        if self.before is not None:
            gdb.flush()
            os.dup2(self.before, 1)
            os.close(self.before)


def silently(command):
    with Silence():
        return quietly(command)


def say(text):
    gdb.write(text + "\n")


# The program.


def alive():
    return [inferior for inferior in gdb.inferiors() if inferior.pid]


def pid():
    """A process of the program: the selected one if it is there."""
    selected = gdb.selected_inferior()
    if selected.pid:
        return selected.pid
    if not alive():
        raise Trouble("the program does not run: 'vs goto N' starts it")
    return alive()[0].pid


def word(name, value=None, form="<Q"):
    """Reads or writes a word of the arena. The program stands still."""
    arena = FACTS["arena"]
    path = "/proc/%d/fd/%d" % (pid(), arena["descriptor"])
    try:
        descriptor = os.open(path, os.O_RDONLY if value is None else os.O_RDWR)
    except OSError:
        raise Trouble("the program is not under way yet")
    try:
        if value is None:
            return struct.unpack(form, os.pread(descriptor, struct.calcsize(form), arena[name]))[0]
        os.pwrite(descriptor, struct.pack(form, value), arena[name])
    finally:
        os.close(descriptor)


def is_own(frame):
    """The frame is of vsrun's library."""
    name = gdb.solib_name(frame.pc())
    return name is not None and os.path.basename(name) == LIBRARY


def frames():
    try:
        frame = gdb.newest_frame()
    except gdb.error:
        return
    while frame is not None:
        yield frame
        try:
            frame = frame.older()
        except gdb.error:
            return


def stands_at():
    """The function of vsrun's library at which the selected thread has stopped, if it has."""
    for frame in frames():
        return frame.name() if is_own(frame) and frame.name() in (AT_STEP, AT_END) else None


def is_of_system(frame):
    """The frame is of a library that programs are written with."""
    name = gdb.solib_name(frame.pc())
    return name is not None and os.path.basename(name).startswith(("libc.", "libc-", "ld-", "libpthread", "libstdc++", "libgcc_s"))


def is_lost(frame):
    """Where a use of memory is watched, the library is called from code that it has made itself, through which gdb finds no way out."""
    return frame.name() is None and gdb.solib_name(frame.pc()) is None


def of_program():
    """The innermost frame of the selected thread that is the program's and has source lines, else the innermost that is not of vsrun's
    library."""
    first, own = None, False
    for frame in frames():
        if is_own(frame) or frame.type() == gdb.SIGTRAMP_FRAME:
            own = True
            continue
        if own and is_lost(frame):
            return first
        if first is None:
            first = frame
        if frame.find_sal().symtab is not None and not is_of_system(frame):
            return frame
    return first


def place(frame):
    if frame is None:
        return "at a watched use of memory, whose callers gdb cannot see"
    sal = frame.find_sal()
    name = frame.name() or "?"
    if sal.symtab is None:
        return name
    return "%s %s:%d" % (name, os.path.basename(sal.symtab.filename), sal.line)


# What vsrun knows.


class States:
    """A vsrun that answers questions about the world."""

    def __init__(self):
        self.process = None

    def ask(self, line):
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                FACTS["states"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
            )
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline() or '{"error": "vsrun does not answer"}')
        if "error" in answer:
            raise Trouble(answer["error"])
        return answer


STATES = States()


def called(uid, name=None):
    """A thread as the report calls it."""
    known = FACTS["people"].get(uid)
    return "%s (%s)" % (known, uid) if known else name or uid


def state():
    answer = STATES.ask("state %d" % pid())
    for thread in answer["threads"]:
        thread["name"] = called(thread["thread"], thread["name"])
    return answer


def threads():
    """The threads of the program that are not over, each with the thread of gdb's, or None."""
    if Position().kind == "else" and not STOP.made:
        make_threads()
    answer = state()
    found = {}
    selected = gdb.selected_thread()
    with Silence():
        for inferior in alive():
            for thread in inferior.threads():
                thread.switch()
                try:
                    found[(inferior.pid, int(gdb.parse_and_eval("$fs_base")) & (1 << 64) - 1)] = thread
                except gdb.error:
                    pass
        if selected is not None and selected.is_valid():
            selected.switch()
    pairs = [(t, found.get((t["pid"], t["fs"]))) for t in answer["threads"] if not t["over"]]
    for thread, known in pairs:
        if known is not None:
            known.name = thread["name"]
            STOP.named.append(known)
    return answer, pairs


# Where it stands.


class Stop:
    """Where the program has stopped last, whatever thread is selected now: a function of vsrun's library, or None."""

    def __init__(self):
        self.at = None
        # The threads of the program have been made threads of the kernel's, by a call.
        self.made = False
        # Threads of gdb's that have a name: whom they stand for while the program stands still.
        self.named = []
        gdb.events.stop.connect(self.comes)
        gdb.events.cont.connect(self.goes)

    def comes(self, _event):
        self.at = stands_at()
        self.made = False

    def goes(self, _event):
        named, self.named = self.named, []
        for thread in named:
            if thread.is_valid():
                thread.name = None


STOP = Stop()


class Position:
    """How far the program is."""

    def __init__(self):
        self.kind = "none" if not alive() else {AT_STEP: "step", AT_END: "end"}.get(STOP.at, "else")
        self.made = 0
        if alive():
            taken = word("taken")
            self.made = taken - 1 if self.kind == "step" else taken

    def next(self):
        """The number of the step that comes next."""
        return self.made + 1


def of():
    return " of %d" % len(STEPS) if FACTS["all"] else ""


def told(number):
    """A step in words."""
    if not 1 <= number <= len(STEPS):
        return "step %d" % number
    step = STEPS[number - 1]
    at = "  at " + step["at"] if step["at"] else ""
    return "step %d%s: %s  %s%s" % (number, of(), called(step["thread"]), step["text"], at)


# Of vsrun's library, of which the script says more.
KNOWN = ("vsrun: the last step of the scenario is", "vsrun: reached the end of the scenario")


class Output:
    """What the program prints, shown once."""

    def __init__(self):
        self.shown = 0
        self.farthest = 0

    def begins(self):
        self.shown = 0

    def show(self):
        try:
            with open(os.path.join(PLACE, "output"), "rb") as file:
                file.seek(self.shown)
                new = file.read()
        except OSError:
            return
        first = max(self.farthest - self.shown, 0)
        self.shown += len(new)
        self.farthest = max(self.farthest, self.shown)
        for line in new[first:].decode(errors="replace").splitlines():
            if not line.startswith(KNOWN):
                say("  | " + line)


OUTPUT = Output()


def select_program():
    frame = of_program()
    if frame is not None:
        frame.select()
    return frame


def show_position():
    position = Position()
    OUTPUT.show()
    if position.kind == "none":
        say("The program has ended.")
        return
    answer, _ = threads()
    frame = select_program()
    if position.kind == "step":
        say("Next is " + told(position.next()))
    elif position.kind == "end":
        say("The end, after step %d%s: %s" % (position.made, of(), ending(answer)))
    else:
        say("In the program, after step %d%s" % (position.made, of()))
    if frame is not None:
        gdb.write(quietly("frame"))
    else:
        say("The thread stands %s" % place(frame))
    if position.kind == "end":
        who()


def ending(answer):
    """What the program has come to: what the scenario records, or something else."""
    recorded = "%s: %s" % (FACTS["kind"], FACTS["summary"])
    kind = answer["kind"] if answer["ended"] else "crash"
    if kind == FACTS["kind"] and answer["ended"]:
        return "%s: %s" % (kind, answer["summary"])
    if kind == FACTS["kind"] or kind is None and FACTS["kind"] == "cut":
        return recorded
    if FACTS["kind"] == "race" and kind != "crash":
        return "%s. Nothing is wrong in this state: each thread stands at its use, or behind it" % recorded
    came = answer["summary"] if answer["ended"] else "a signal is about to end a process"
    return "%s. The scenario records another end: %s" % (came, recorded)


def make_threads():
    """Somewhere in the program: its threads are fibers, which the library is called to make threads of."""
    try:
        silently("with language c -- call ((void (*)(void)) %s)()" % SHOW)
    except gdb.error as error:
        say("vsrun: the other threads of the program could not be made visible: %s" % error)
    # The call is a stop of its own.
    STOP.at, STOP.made = None, True


# Going.


def wanted(number):
    with open(os.path.join(PLACE, "stop"), "w") as file:
        file.write(str(number))


def end_all():
    numbers = [str(inferior.num) for inferior in alive()]
    if numbers:
        quietly("kill inferiors " + " ".join(numbers))
    silently("inferior 1")
    for inferior in gdb.inferiors():
        if inferior.num != 1:
            quietly("remove-inferiors %d" % inferior.num)


def run_on(command):
    """Lets the program run. A bug that has no end is stopped after a while."""
    stops = FACTS["kind"] == "divergence" and FACTS["all"]
    if stops:
        STATES.ask("stop %d %s" % (len(STEPS), os.path.join(PLACE, "number")))
    text = silently(command)
    if stops:
        STATES.ask("rest")
    if not alive():
        OUTPUT.show()
        last = [line for line in text.splitlines() if line.strip()]
        raise Trouble("the program has ended: " + (last[-1] if last else "without a word"))


def start(number):
    end_all()
    # A program that has become another one begins as it did.
    if gdb.current_progspace().filename != FACTS["program"]:
        quietly('file "%s"' % FACTS["program"])
    OUTPUT.begins()
    with open(os.path.join(PLACE, "number"), "w"):
        pass
    wanted(number)
    try:
        run_on("run")
    finally:
        wanted(0)


def stop_before(number):
    word("told_from", number)
    # Who writes to vsrun's memory faults, but not on the way to a step, where that takes most of the time.
    if FACTS["guarded"]:
        word("guarded", 0 if number else FACTS["guarded"], "<I")


def go_on(number):
    stop_before(number)
    run_on("continue")


def go(number):
    """To where step `number` comes next; 0: to the end."""
    if FACTS["all"] and number > len(STEPS):
        number = 0
    position = Position()
    if position.kind == "step" and position.next() == number:
        pass
    elif position.kind == "end" and number == 0:
        pass
    elif position.kind in ("step", "else") and (number == 0 or position.next() < number or position.kind == "else" and position.next() == number):
        go_on(number)
    else:
        start(number)
    show_position()


# Who.


def who():
    answer = state()
    waiting = [t for t in answer["threads"] if not t["over"] and t["waits_for"]]
    for thread in waiting:
        say("  %s waits for %s" % (thread["name"], "; ".join(thread["waits_for"])))
    if not waiting:
        say("  No thread waits for another one.")
    if answer["circle"]:
        gdb.write(answer["circle"])


def list_threads():
    answer, pairs = threads()
    selected = gdb.selected_thread()
    frame = gdb.selected_frame() if selected is not None else None
    for thread, known in pairs:
        mark = "*" if known is not None and known == selected else " "
        where = "not seen by gdb"
        if known is not None:
            known.switch()
            where = place(of_program())
        process = "" if len(alive()) < 2 else "  process %d, pid %d" % (thread["process"], thread["pid"])
        number = "%d.%d" % (known.inferior.num, known.num) if known is not None else "-"
        say("%s %-5s %s  %s%s" % (mark, number, thread["name"], where, process))
        doing = "at " + thread["at"] if thread["at"] else "on its way to its next operation"
        if thread["waits_for"]:
            doing += ", waits for " + "; ".join(thread["waits_for"])
        say("          " + doing)
        if thread["holds"]:
            say("          holds %s" % ", ".join(thread["holds"]))
    if selected is not None:
        selected.switch()
        if frame is not None and frame.is_valid():
            frame.select()


def uid_of(text):
    """The path of creation of the thread that is meant: by that, or by name."""
    names = dict(FACTS["people"])
    if text in names or any(step["thread"] == text for step in STEPS):
        return text
    found = [uid for uid, name in names.items() if name == text or "%s (%s)" % (name, uid) == text]
    if len(found) == 1:
        return found[0]
    known = ", ".join(sorted("%s (%s)" % (name, uid) for uid, name in names.items()))
    raise Trouble("no one thread is called '%s'; there are %s" % (text, known))


def select_thread(text):
    uid = uid_of(text)
    for thread, known in threads()[1]:
        if thread["thread"] == uid and known is not None:
            known.switch()
            select_program()
            say("%s" % thread["name"])
            gdb.write(quietly("frame"))
            return
    raise Trouble("%s is not there at this step" % called(uid))


# A variable.

UNSIGNED = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long"}
MOST_CHANGES = 1000


def watch(text):
    """The steps at which a variable changes, up to where the program stands."""
    if len(alive()) > 1:
        raise Trouble("'vs watch' follows a variable of a program with one process; of several: vsrun replay --watch SYMBOL FILE")
    if not text:
        raise Trouble("vs watch EXPRESSION")
    value = gdb.parse_and_eval(text)
    if value.address is None:
        raise Trouble("'%s' is no place in memory" % text)
    kind, address = value.type, int(value.address)
    if kind.sizeof not in UNSIGNED:
        raise Trouble("'%s' has %d bytes: name a part of it of 1, 2, 4 or 8" % (text, kind.sizeof))
    here = Position()
    target = here.next() if here.kind == "step" else 0
    if here.kind == "else":
        raise Trouble("'vs watch' starts where 'vs goto' has led, or at the end")

    def content():
        raw = gdb.selected_inferior().read_memory(address, kind.sizeof)
        return gdb.Value(bytes(raw), kind).format_string()

    start(1)
    language = gdb.parameter("language")
    quietly("set language c")
    try:
        point = gdb.Breakpoint(
            "*(%s *) %d" % (UNSIGNED[kind.sizeof], address), gdb.BP_WATCHPOINT, gdb.WP_WRITE, internal=True
        )
    finally:
        quietly("set language " + language)
    point.silent = True
    changes = 0
    try:
        before = content()
        say("%s is %s before step 1" % (text, before))
        while True:
            stop_before(target)
            run_on("continue")
            if STOP.at is not None:
                break
            now = content()
            # What the library does with memory that is watched is none of the program's doing, and passes.
            if now == before or is_own(gdb.newest_frame()):
                continue
            changes += 1
            step = word("taken")
            frame = of_program()
            where = ", in " + place(frame) if frame is not None and frame.name() is not None else ""
            say("%s: %s -> %s in %s%s" % (text, before, now, told(step) if step else "the beginning", where))
            before = now
            if changes >= MOST_CHANGES:
                say("and so on: %d changes are shown" % MOST_CHANGES)
                break
    finally:
        if point.is_valid():
            point.delete()
    if not changes:
        say("%s does not change up to here" % text)
    go(target)


# Commands.


class Vs(gdb.Command):
    """The scenario that vsrun debug has opened: its steps, its threads.

vs who              who waits for whom, and what holds it
vs threads          each thread: name, place, operation, what it holds
vs thread NAME      select a thread by its name in the report, or its path (0.1)
vs goto N           to where step N comes next; 'vs goto end' is the end
vs step [N], vs back [N]   one step, or N, forward or back
vs next THREAD      to where that thread makes its next step
vs list [N]         the steps around this one, or N
vs watch EXPR       the steps at which a variable has changed up to here
vs where            where this is"""

    def __init__(self):
        super().__init__("vs", gdb.COMMAND_RUNNING)

    def complete(self, text, _word):
        return [name for name in COMMANDS if name.startswith(text)]

    def invoke(self, argument, _from_tty):
        words = argument.split(None, 1)
        command = COMMANDS.get(words[0] if words else "")
        try:
            if command is None:
                raise Trouble("there is vs " + ", ".join(COMMANDS) + "; 'help vs' says what they do")
            command(words[1].strip() if len(words) > 1 else "")
        except (Trouble, gdb.error) as trouble:
            raise gdb.GdbError(str(trouble))


def number_of(text, default):
    if not text:
        return default
    try:
        return int(text, 0)
    except ValueError:
        raise Trouble("'%s' is no number" % text)


def goto(text):
    if text == "end":
        return go(0)
    number = number_of(text, None)
    if number is None or number < 1:
        raise Trouble("steps are numbered from 1: vs goto N, or vs goto end")
    go(number)


def forward(text):
    position = Position()
    if position.kind == "end":
        raise Trouble("this is the end of the scenario")
    go(position.next() + number_of(text, 1) if position.kind == "step" else position.next() + number_of(text, 1) - 1)


def back(text):
    position = Position()
    go(max(position.next() - number_of(text, 1), 1))


def next_of(text):
    uid = uid_of(text)
    position = Position()
    first = position.next() + 1 if position.kind == "step" else position.next()
    for number in range(first, len(STEPS) + 1):
        if STEPS[number - 1]["thread"] == uid:
            return go(number)
    raise Trouble("%s makes no step after this one%s" % (called(uid), "" if FACTS["all"] else " that is known"))


def list_steps(text):
    here = Position().next() if alive() else 1
    middle = number_of(text, here)
    for number in range(max(middle - 8, 1), min(middle + 8, len(STEPS)) + 1):
        say("%s %s" % (">" if number == here else " ", told(number)))


COMMANDS = {
    "who": lambda _: who(),
    "threads": lambda _: list_threads(),
    "thread": select_thread,
    "goto": goto,
    "end": lambda _: go(0),
    "step": forward,
    "back": back,
    "next": next_of,
    "list": list_steps,
    "watch": watch,
    "where": lambda _: show_position(),
}


class Unseen(FrameDecorator):
    """In the place of frames that would be wrong."""

    def function(self):
        return "(a watched use of memory, whose callers gdb cannot see)"

    def address(self):
        return None

    def filename(self):
        return None

    def frame_args(self):
        return None

    def frame_locals(self):
        return None

    def line(self):
        return None


class WithoutLibrary:
    """Leaves the frames of vsrun's library out of call stacks, and those of the signals by which calls come to it."""

    def __init__(self):
        self.name = "vsrun"
        self.priority = 100
        self.enabled = True
        gdb.frame_filters[self.name] = self

    def filter(self, iterator):
        own = False
        for decorated in iterator:
            frame = decorated.inferior_frame()
            if own and is_lost(frame):
                yield Unseen(decorated)
                return
            own = is_own(frame) or own and frame.type() == gdb.SIGTRAMP_FRAME
            if not own:
                yield decorated


def first():
    for setting in SETTINGS:
        try:
            quietly(setting)
        except gdb.error:
            # Of a newer gdb.
            pass
    WithoutLibrary()
    Vs()
    wanted(0)
    try:
        go(0)
    except (Trouble, gdb.error) as trouble:
        say("vsrun: " + str(trouble))
    say("'help vs' lists what vsrun adds to gdb: vs who, vs threads, vs back, vs goto N, vs list ..")


first()
