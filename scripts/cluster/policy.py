"""What `vsrun cluster` does, as a simulation of discrete events: src/cluster/{mod,desk,local,hands}.rs with times that were measured.
Its numbers are read from there.

A tree is an interval of executions. A node of it is a part of that interval, and so is a piece; where a node is split is drawn from the shapes that
were measured, by the node alone, so that who looks twice sees the same.
"""

import heapq
import random
import re
import sys
from collections import deque



def source(path, pattern):
    """What stands in the sources, so that a rule that changes there changes here, or is missed here."""
    with open(path) as file:
        found = re.search(pattern, file.read())
    if found is None:
        sys.exit(f"simulate: FAILED: {path} has no {pattern!r} any more: scripts/cluster/policy.py is to follow what it does now")
    return [float(group.replace("_", "")) for group in found.groups()]


[EACH] = source("src/cluster/rounds.rs", r"const EACH: u32 = (\d+);")
[MANY] = source("src/cluster/rounds.rs", r"const MANY: u32 = (\d+);")
[TRIES] = source("src/cluster/desk.rs", r"const TRIES: u32 = (\d+);")
[LOCAL_PAUSE] = source("src/cluster/local.rs", r"const PAUSE: Duration = Duration::from_millis\((\d+)\);")
[PAUSE] = source("src/cluster/hands.rs", r"const PAUSE: Duration = Duration::from_millis\((\d+)\);")
[ASKED] = source("src/cluster/hands.rs", r"const ASKED: Duration = Duration::from_secs\((\d+)\);")
[HANDED] = source("src/cluster/hands.rs", r"const HANDED: Duration = Duration::from_secs\((\d+)\);")
[SAVED] = source("src/explore/save.rs", r"const INTERVAL: Duration = Duration::from_secs\((\d+)\);")
[GRAIN] = source("src/config/pieces.rs", r'default_value = "(\d+)", value_parser = duration\)\]\s*pub grain')
[LOOK] = source("src/config/pieces.rs", r'default_value = "(\d+)", value_parser = duration_or_none\)\]\s*pub look: Duration,\s*/// Form of the report')
LOCAL_PAUSE, PAUSE = LOCAL_PAUSE / 1000, PAUSE / 1000
MOST = {engine: source(f"src/cluster/{engine}.rs", r"const MOST: usize = ([\d_]+);")[0] for engine in ("slurm", "hq")}
[PARTS] = source("src/cluster/desk.rs", r"const PARTS: usize = (\d+);")
[FEW] = source("src/cluster/desk.rs", r"const FEW: usize = (\d+);")
[SHORTER] = source("src/cluster/desk.rs", r"const SHORTER: u32 = (\d+);")
source("src/cluster/desk.rs", r"nodes > 1 && self\.left\.len\(\) \+ self\.under_way < each \* nodes")
source("src/cluster/desk.rs", r"self\.long\.contains\(&piece\.file\) && self\.has_fewer\(FEW, nodes\)")
source("src/cluster/desk.rs", r"Some\(nodes\) if self\.has_fewer\(1, nodes\) => \(self\.grain / SHORTER\)")
source("src/cluster/hands.rs", r"while let Some\(at\) = desk\.left\.iter\(\)\.position\(\|piece\| desk\.is_better_split\(piece, nodes\)\)")
source("src/cluster/desk.rs", r"progress_of_parts\(dir, &piece\.file\)")
source("src/search/pieces.rs", r"min_by_key\(\|\(n, piece\)\| \(piece\.search\.base \+ piece\.asleep\(\), \*n\)\)")


class Tree:
    """`levels`: for each level the fractions, in their order, of splits that were measured there."""

    def __init__(self, levels, executions, seed):
        self.levels, self.seed, self.root = levels, seed, Node(0, executions, 0, 0)

    def children(self, node):
        if node.children is None:
            node.children = self.split(node)
        return node.children

    def split(self, node):
        size, level = node.end - node.begin, node.level
        draw = random.Random(f"{self.seed} {node.begin} {node.end} {level}")
        if size <= 1:
            return []
        while True:
            fractions = draw.choice(self.levels[min(level, len(self.levels) - 1)])
            level += 1
            if size <= len(fractions):
                fractions = [1 / size] * size
            marks, sum_so_far = [node.begin], 0.0
            for fraction in fractions[:-1]:
                sum_so_far += fraction
                marks.append(node.begin + round(size * min(sum_so_far, 1.0)))
            marks.append(node.end)
            parts = [(a, b) for a, b in zip(marks, marks[1:]) if b > a]
            if len(parts) > 1:
                return [Node(a, b, level, node.key + 1 + n) for n, (a, b) in enumerate(parts)]


class Node:
    """Executions from `begin` to `end`; `key`: steps to it and steps that sleep there, by which it is chosen what is split next."""

    __slots__ = ("begin", "end", "level", "key", "children")

    def __init__(self, begin, end, level, key):
        self.begin, self.end, self.level, self.key, self.children = begin, end, level, key, None


class Piece:
    """What is left of it begins at `at`; what a process has done since it last saved is not in that."""

    __slots__ = ("node", "at", "long", "killed")

    def __init__(self, node, at=None):
        self.node, self.at, self.long, self.killed = node, node.begin if at is None else at, False, 0

    def left(self):
        return self.node.end - self.at


def split(tree, nodes, into):
    """src/search/pieces.rs: what has the least key is split until there are so many."""
    heap = [(node.key, n, node) for n, node in enumerate(nodes)]
    heapq.heapify(heap)
    n, done = len(heap), []
    while heap and len(heap) + len(done) < into:
        node = heapq.heappop(heap)[2]
        children = tree.children(node)
        if not children:
            done.append(node)
        for child in children:
            n += 1
            heapq.heappush(heap, (child.key, n, child))
    return [Piece(node) for _, _, node in sorted(heap, key=lambda one: one[:2])] + [Piece(node) for node in done]


def divide(tree, piece, into):
    """What has been begun is split at the first state of its path at which something else is left."""
    node = piece.node
    if piece.at == node.begin:
        return split(tree, [node], into)
    while True:
        children = tree.children(node)
        if not children:
            return [Piece(node, piece.at)]
        under_way = next(n for n, child in enumerate(children) if piece.at < child.end)
        beside = children[under_way + 1 :]
        if beside:
            return [Piece(children[under_way], piece.at)] + split(tree, beside, into - 1)
        node = children[under_way]


class Rules:
    """Those of src/cluster, unless told otherwise."""

    def __init__(self, nodes, **other):
        self.engine, self.nodes, self.most, self.grain, self.look = "local", nodes, nodes, GRAIN, LOOK
        self.into, self.parts = None, int(PARTS)
        # With fewer pieces than `few` for each those that are long are divided; with fewer than `ending` a turn is that part of what it is else.
        self.few, self.shorter, self.ending = FEW, 1 / SHORTER, 1
        # Of tasks: how many are killed, or lost without a word.
        self.lost = 0.0
        self.__dict__.update(other)
        self.into = int(self.into or (EACH * self.most if self.most is not None else MANY))


class Run:
    """One run of the command. `times`: see measure.py. `more`: how much longer each execution takes for those that sleep."""

    def __init__(self, tree, rules, times, engine, rate, more=0.0, seed=1):
        self.tree, self.rules, self.times, self.engine, self.rate = tree, rules, times, engine, rate / (1 + more)
        self.more, self.draw = more, random.Random(seed)
        self.left, self.under_way, self.grain, self.long = deque(), 0, rules.grain, set()
        self.events, self.count, self.now = [], 0, 0.0
        self.tasks = self.divides = self.killed = self.most_lost = 0
        self.done, self.failed = [], None
        self.spent = dict.fromkeys(("start", "divide", "redone", "engine", "idle"), 0.0)

    # What a task comes to.

    def turn(self, piece):
        """A process for a piece: (how long it takes, how far it comes, how it ends: "ended", "killed", "lost")."""
        begins, ends = self.times["turn_begins"], self.times["turn_ends"]
        room = max(self.grain * (self.rules.shorter if self.has_fewer(self.rules.ending) else 1.0) - begins, 0.0)
        executions = min(piece.left(), int(room * self.rate))
        works = executions / self.rate
        self.tasks += 1
        if self.draw.random() < self.rules.lost:
            dies = self.draw.random() * (begins + works + ends)
            kept = min(executions, int(max(dies - begins, 0.0) // SAVED * SAVED * self.rate))
            self.spent["redone"] += max(dies - begins - kept / self.rate, 0.0)
            self.spent["start"] += min(dies, begins)
            return dies, piece.at + kept, self.draw.choice(("killed", "lost"))
        self.spent["start"] += begins + ends
        return begins + works + ends, piece.at + executions, "ended"

    def take(self, piece, at, end):
        """Desk::take. What stands in the files is what is done."""
        self.under_way -= 1
        got_on = at > piece.at
        if got_on:
            self.done.append((piece.at, at))
        piece.at = at
        if got_on:
            piece.killed, piece.long = 0, True
        elif end != "ended":
            piece.killed += 1
            self.most_lost = max(self.most_lost, piece.killed)
            if piece.killed >= TRIES:
                self.failed = "a piece was killed or lost five times in a row"
        else:
            self.grain *= 2
        if piece.left():
            self.left.append(piece)

    def has_fewer(self, each):
        """`most` is what the command is told of: -n."""
        nodes = self.rules.most
        return nodes is not None and nodes > 1 and len(self.left) + self.under_way < each * nodes

    def better_split(self, piece):
        return piece.long and self.has_fewer(self.rules.few)

    def parts(self, piece):
        parts = divide(self.tree, piece, self.rules.parts)
        self.divides += 1
        self.all += len(parts) - 1
        took = self.times["divide"] + (self.times["divide_part"] + self.times["read"]) * len(parts)
        piece.long = False
        return parts, took

    def split(self):
        """The beginning: (pieces, seconds)."""
        pieces = split(self.tree, [self.tree.root], self.rules.into)
        self.all = len(pieces)
        self.left.extend(pieces)
        return self.rules.look + self.times["split"] + self.times["split_part"] * len(pieces) + self.times["read"] * len(pieces)

    def at(self, when, what, *of):
        self.count += 1
        heapq.heappush(self.events, (when, self.count, what, of))

    def run(self):
        self.now = self.begun = begin = self.split()
        (self.run_local if self.rules.engine == "local" else self.run_engine)()
        merge = self.times["merge"] + self.times["merge_part"] * self.all
        wall = self.now + merge
        room = wall * self.rules.nodes
        useful = self.tree.root.end / (self.rate * (1 + self.more))
        spent = dict(self.spent, sleep=useful * self.more, split=begin * self.rules.nodes, merge=merge * self.rules.nodes)
        spent["idle"] = room - useful - sum(share for name, share in spent.items() if name != "idle")
        return {
            "wall": wall,
            "useful": useful,
            "tasks": self.tasks,
            "divides": self.divides,
            "pieces": self.all,
            "spent": {name: share / room for name, share in spent.items()},
        }

    # local.rs

    def run_local(self):
        self.waiting = 0
        for _ in range(self.rules.nodes):
            self.at(self.now, self.looks)
        while self.events and self.failed is None:
            self.now, _, what, of = heapq.heappop(self.events)
            what(*of)

    def looks(self):
        """A thread that has nothing to do."""
        if not self.left:
            self.waiting += 1
            return
        piece = self.left.popleft()
        self.under_way += 1
        if self.better_split(piece):
            parts, took = self.parts(piece)
            self.spent["divide"] += took
            self.at(self.now + took, self.was_split, parts)
            return
        took, at, end = self.turn(piece)
        # It is looked every 20 ms whether it is over.
        noticed = LOCAL_PAUSE * self.draw.random()
        self.spent["engine"] += noticed + self.times["read"]
        self.at(self.now + took + noticed + self.times["read"], self.local_ended, piece, at, "killed" if end == "lost" else end)

    def local_ended(self, piece, at, end):
        self.take(piece, at, end)
        self.looks()
        self.wakes()

    def was_split(self, parts):
        self.under_way -= 1
        self.left.extend(part for part in parts if part.left())
        self.looks()
        self.wakes()

    def wakes(self):
        """Threads that have nothing to do look every 20 ms."""
        for _ in range(min(self.waiting, len(self.left))):
            self.waiting -= 1
            self.at(self.now + LOCAL_PAUSE * self.draw.random(), self.looks)

    # hands.rs

    def run_engine(self):
        """The loop of explore_all. Tasks are placed when they are handed over: first come, first served."""
        free = [(self.now, n) for n in range(self.rules.nodes)]
        heapq.heapify(free)
        self.handed, self.asked, self.starts = -HANDED, self.now, self.now
        self.tasks_out, self.jobs = {}, {}
        self.words = []
        while (self.left or self.under_way) and self.failed is None:
            if self.rules.most is not None:
                self.split_long()
            self.hand_over(free)
            self.take_words()
            self.ask()
            self.now += PAUSE
            if not self.can_do_something():
                # Nothing changes until a word comes, or the engine is to be asked.
                wait = min([self.words[0][0]] if self.words else [self.now])
                if self.lost_ones():
                    wait = min(wait, self.asked + ASKED)
                self.now += max(0, (wait - self.now) // PAUSE) * PAUSE

    def can_do_something(self):
        room = self.rules.most is None or len(self.tasks_out) < self.rules.most
        return bool(self.left) and room or self.next_long() is not None

    def lost_ones(self):
        return any(end == "lost" for _, _, end in self.tasks_out.values())

    def next_long(self):
        if not self.has_fewer(self.rules.few):
            return None
        return next((piece for piece in self.left if self.better_split(piece)), None)

    def split_long(self):
        while True:
            piece = self.next_long()
            if piece is None:
                return
            self.left.remove(piece)
            parts, took = self.parts(piece)
            self.now += took
            self.left.extend(part for part in parts if part.left())

    def hand_over(self, free):
        room = min(self.rules.most or len(self.left), MOST[self.rules.engine]) - (len(self.tasks_out) if self.rules.most else 0)
        numbers = min(len(self.left), room)
        if numbers <= 0 or self.tasks_out and self.now - self.handed < HANDED:
            return
        self.now += self.draw.choice(self.engine["submit"]) + self.engine["submit_task"] * numbers
        self.handed = self.now
        job = len(self.jobs) + 1
        while job in self.jobs:
            job += 1
        ends = self.now
        for _ in range(numbers):
            piece = self.left.popleft()
            self.under_way += 1
            freed, slot = heapq.heappop(free)
            # It starts when the engine has got round to it, or when there is room.
            begins = self.now + self.draw.choice(self.engine["start"])
            if freed > self.now:
                begins = max(begins, freed + self.draw.choice(self.engine["next"]))
            begins = max(begins, self.starts + self.engine["between"])
            self.starts = begins
            self.spent["engine"] += begins - max(freed, self.begun)
            took, at, end = self.turn(piece)
            over = begins + took
            heapq.heappush(free, (over, slot))
            self.count += 1
            self.tasks_out[self.count] = (piece, at, end)
            if end != "lost":
                heapq.heappush(self.words, (over, self.count))
            ends = max(ends, over + self.engine["over"])
        self.jobs[job] = (ends, self.count - numbers + 1, self.count)

    def take_words(self):
        while self.words and self.words[0][0] <= self.now:
            task = heapq.heappop(self.words)[1]
            if task in self.tasks_out:
                self.now += self.times["read"]
                self.take(*self.tasks_out.pop(task))

    def ask(self):
        if self.now - self.asked < ASKED:
            return
        self.asked = self.now
        over = []
        for job, (ends, first, last) in self.jobs.items():
            self.now += self.engine["ask"]
            if ends <= self.now:
                over.append((job, first, last))
        self.take_words()
        for job, first, last in over:
            del self.jobs[job]
            for task in range(first, last + 1):
                if task in self.tasks_out:
                    self.take(*self.tasks_out.pop(task))


def once(done, executions):
    """Each execution is in what was done, and in one part of it."""
    at = 0
    for begin, end in sorted(done):
        if begin != at:
            return f"executions {min(at, begin)} to {max(at, begin)} were done {'twice' if begin < at else 'never'}"
        at = end
    return None if at == executions else f"executions {at} to {executions} were {'never done' if at < executions else 'too many'}"
