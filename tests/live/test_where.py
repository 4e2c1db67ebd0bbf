# SPDX-License-Identifier: GPL-3.0-or-later
"""The expressions of --where: random ones against the event log of the same recording, each option against what
allocprof-where(7) says it is short for, and the commands that take it."""

import collections
import json
import random
import sqlite3

import pytest

from support import TIMEOUT_SECONDS

NO, UNSURE, YES = 0, 1, 2
EXPRESSIONS = 1000
COSTS = ("allocations", "bytes", "live", "live_bytes")


class Cells:
    """The blocks of an event log by the epochs of their birth and death, as a recording keeps them."""

    def __init__(self, lines, data):
        database = sqlite3.connect(data)
        meta = dict(database.execute("SELECT key, value FROM meta"))
        self.epoch_ns = int(meta["epoch_ns"])
        self.names = self.stack_names(database)
        blocks = list(self.read(lines))
        # The log has the machine's clock, the data file the time since the start.
        oldest = {row[:4]: row[4] for row in database.execute(
            "SELECT c.process, t.name, c.stack, c.function, b.oldest_ns FROM counts c JOIN threads t ON t.id = c.thread "
            "JOIN blocks b ON b.count = c.id WHERE b.allocations > b.frees + b.discarded")}
        first = {}
        for key, _, born_ns, died_ns in blocks:
            if died_ns is None:
                first[key] = min(first.get(key, born_ns), born_ns)
        starts = collections.Counter(first[key] - oldest_ns for key, oldest_ns in oldest.items() if key in first)
        (start_ns, agree), *_ = starts.most_common()
        assert agree > len(oldest) * 9 / 10, "the log and the recording do not agree on when blocks were allocated"
        self.blocks = [(key, size, born_ns - start_ns, died_ns and died_ns - start_ns) for key, size, born_ns, died_ns in blocks]
        last_epoch = max((died_ns or born_ns) // self.epoch_ns for _, _, born_ns, died_ns in self.blocks)
        self.end_ns = max(int(float(meta["elapsed_seconds"]) * 1e9), last_epoch * self.epoch_ns,
                          *(ns for ns, in database.execute("SELECT max(time_ns) FROM timeline")))
        self.processes = dict(database.execute("SELECT id, comm FROM processes"))
        self.match(database.execute("SELECT c.process, t.name, c.stack, c.function, l.born, l.died, l.blocks FROM lifetimes l "
                                    "JOIN counts c ON c.id = l.count JOIN threads t ON t.id = c.thread"))
        sums = collections.defaultdict(lambda: [0, 0])
        for key, size, _, _ in self.blocks:
            sums[key][0] += 1
            sums[key][1] += size
        self.sums = sums
        database.close()

    @staticmethod
    def read(lines):
        """The blocks: ((process, thread's name, stack, function), size, when it was allocated, and freed or None)."""
        births, spaces = {}, {}
        for event in map(json.loads, lines):
            if event["kind"] in ("start", "fork", "exec"):
                spaces[event["process"]] = event["space"]
            if event["kind"] == "exec" and event["ended_space"]:
                for number, block in list(births.items()):
                    if spaces[block[0][0]] == event["ended_space"]:
                        yield *births.pop(number), event["time_ns"]
            if event["kind"] in ("free", "unseen", "realloc"):
                yield *births.pop(event["id"]), event["time_ns"]
            if event["kind"] in ("alloc", "realloc"):
                key = event["process"], event["thread_name"], event["stack"], event["function"]
                births[event["id"]] = key, event["size"], event["time_ns"]
        for block in births.values():
            yield *block, None

    def match(self, rows):
        """Sees that the recording has the blocks of the log by their epochs, and takes from it what the log has not: the stack of
        a site whose only event was written before it was known, and when a realloc was called, which logs when it returned."""
        theirs = collections.Counter()
        for *key, born, died, blocks in rows:
            theirs[tuple(key), born, died] += blocks
        others = []
        for number, (key, _, born_ns, died_ns) in enumerate(self.blocks):
            cell = key, born_ns // self.epoch_ns, died_ns if died_ns is None else died_ns // self.epoch_ns
            if theirs[cell]:
                theirs[cell] -= 1
            else:
                others.append((number, cell))

        def fits(cell, ours):
            (process, thread, stack, function), born, died = ours
            key = process, thread, cell[0][2] if stack is None else stack, function
            is_earlier = None not in (cell[2], died) and cell[2] < died
            return cell[:2] == (key, born) and (cell[2] == died or is_earlier)

        # What has its stack is sure of more.
        for number, ours in sorted(others, key=lambda other: other[1][0][2] is None):
            cell = next((it for it, n in theirs.items() if n and fits(it, ours)), None)
            assert cell, f"the recording has no block {ours}"
            theirs[cell] -= 1
            _, size, born_ns, died_ns = self.blocks[number]
            if cell[2] != ours[2]:
                died_ns = max(born_ns, (cell[2] + 1) * self.epoch_ns - 1)
            self.blocks[number] = cell[0], size, born_ns, died_ns
        assert not +theirs, "the log lacks blocks of the recording"
        assert len(others) < len(self.blocks) / 20

    @staticmethod
    def stack_names(database):
        """{stack: the names of the functions of its frames}"""
        functions = collections.defaultdict(set)
        for frame, name in database.execute("SELECT l.frame, f.name FROM lines l JOIN functions f ON f.id = l.function"):
            functions[frame].add(name)
        return {stack: set().union(*(functions[frame] for frame in json.loads(frames)))
                for stack, frames in database.execute("SELECT id, frames FROM stacks")}

    def select(self, expression):
        """Sums of the blocks of which it holds for sure, and of those of which nobody can tell; and of how many it holds."""
        sure, unsure, true = collections.Counter(), collections.Counter(), 0
        for key, size, born_ns, died_ns in self.blocks:
            born = born_ns // self.epoch_ns * self.epoch_ns
            died = died_ns if died_ns is None else died_ns // self.epoch_ns * self.epoch_ns
            last = [min(epoch_ns + self.epoch_ns, self.end_ns) - 1 for epoch_ns in (born, born if died is None else died)]
            known = Block(self, key, (born, last[0]), None if died is None else (died, last[1]))
            real = Block(self, key, (born_ns, born_ns), None if died is None else (died_ns, died_ns))
            answer, truth = expression.judge(known), expression.judge(real)
            assert truth != UNSURE
            assert answer in (UNSURE, truth), f"{expression.sql}: what is sure is wrong"
            true += truth == YES
            if answer == YES:
                sure.update(allocations=1, bytes=size, live=died is None, live_bytes=size if died is None else 0)
            elif answer == UNSURE:
                unsure.update(unsure=1, unsure_bytes=size)
        return {cost: sure[cost] for cost in COSTS} | {cost: unsure[cost] for cost in ("unsure", "unsure_bytes")}, true


class Block:
    """A block, with the earliest and the latest times that it may have."""

    def __init__(self, cells, key, born, died):
        self.process, self.thread, self.stack, self.function = key
        n, total = cells.sums[key]
        self.cells, self.allocations, self.size = cells, n, total / n
        self.born, self.died, self.end = born, died, cells.end_ns

    def values(self, column):
        """The least and the greatest value, or None for NULL."""
        if column == "allocated_at":
            return tuple(ns / 1e9 for ns in self.born)
        alive = self.died is None
        if column == "age" or column == "alive_for" and alive:
            return ((self.end - self.born[1]) / 1e9, (self.end - self.born[0]) / 1e9) if alive else None
        if alive:
            return None
        if column in ("freed_at", "freed_after"):
            return tuple(ns / (1e9 if column == "freed_at" else self.end) for ns in self.died)
        return max(0, self.died[0] - self.born[1]) / 1e9, (self.died[1] - self.born[0]) / 1e9


COMPARE = {"<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
           "=": lambda a, b: a == b, "<>": lambda a, b: a != b}


class Fact:
    """What is known of each block: @value(block)."""

    def __init__(self, sql, value):
        self.sql, self.value = sql, value

    def judge(self, block):
        value = self.value(block)
        return None if value is None else YES if value else NO


class Time:
    """A comparison of a time with a constant."""

    def __init__(self, column, operator, constant):
        self.sql = f"{column} {operator} {constant!r}"
        self.column, self.compare, self.constant = column, COMPARE[operator], constant

    def judge(self, block):
        values = block.values(self.column)
        return values and (NO, UNSURE, YES)[sum(self.compare(value, self.constant) for value in values)]


class Both:
    def __init__(self, a, b):
        self.sql, self.parts = f"({a.sql} AND {b.sql})", (a, b)

    def judge(self, block):
        answers = [part.judge(block) for part in self.parts]
        return NO if NO in answers else None if None in answers else min(answers)


class Either(Both):
    def __init__(self, a, b):
        super().__init__(a, b)
        self.sql = f"({a.sql} OR {b.sql})"

    def judge(self, block):
        answers = [part.judge(block) for part in self.parts]
        return YES if YES in answers else None if None in answers else max(answers)


class Not:
    def __init__(self, part):
        self.sql, self.part = f"(NOT {part.sql})", part

    def judge(self, block):
        answer = self.part.judge(block)
        return None if answer is None else YES - answer


class Whole:
    """An expression whose NULL does not hold."""

    def __init__(self, parts):
        self.sql = " AND ".join(part.sql for part in parts)
        self.parts = parts

    def judge(self, block):
        return min(part.judge(block) or NO for part in self.parts)


class Maker:
    """Makes random expressions of which it can be told for sure what they select: times are in a conjunction, or there is
    one."""

    def __init__(self, seed, cells):
        self.random, self.cells = random.Random(seed), cells
        self.functions = sorted({name for names in cells.names.values() for name in names})
        self.sizes = sorted(total / n for n, total in cells.sums.values())

    def fact(self):
        pick = self.random.choice
        block = pick(self.cells.blocks)[0]
        name, operator = pick(self.functions), pick(sorted(COMPARE))
        number = round(pick(self.sizes)) + pick((-1, 0, 1))
        calls = pick([n for n, _ in self.cells.sums.values()])
        return pick([
            lambda: Fact("leaked", lambda block: block.died is None),
            lambda: Fact("alive", lambda block: block.died is None),
            lambda: Fact("freed", lambda block: block.died is not None),
            lambda: Fact("age IS NULL", lambda block: block.died is not None),
            lambda: Fact(f"size {operator} {number}", lambda block: COMPARE[operator](block.size, number)),
            lambda: Fact(f"size % 3 = {number % 3}", lambda block: int(block.size) % 3 == number % 3),
            lambda: Fact(f"allocations {operator} {calls}", lambda block: COMPARE[operator](block.allocations, calls)),
            lambda: Fact(f"thread {operator} '{block[1]}'", lambda it: COMPARE[operator](it.thread, block[1])),
            lambda: Fact(f"process = '{self.cells.processes[block[0]]}'",
                         lambda it: self.cells.processes[it.process] == self.cells.processes[block[0]]),
            lambda: Fact(f"function = '{block[3]}'", lambda it: it.function == block[3]),
            lambda: Fact(f"matches(function, '{block[3][:3]}*')", lambda it: it.function.startswith(block[3][:3])),
            lambda: Fact(f"function LIKE '%{block[3][-5:]}'", lambda it: it.function.endswith(block[3][-5:])),
            lambda: Fact(f"through('{name}')", lambda it: name in self.cells.names[it.stack]),
        ])()

    def time(self):
        column = self.random.choice(("age", "lifetime", "alive_for", "allocated_at", "freed_at", "freed_after"))
        _, _, born_ns, died_ns = self.random.choice(self.cells.blocks)
        constant = ((died_ns or self.cells.end_ns) - born_ns if column in ("age", "lifetime", "alive_for") else
                    born_ns if column == "allocated_at" else died_ns or self.cells.end_ns)
        constant = constant / self.cells.end_ns if column == "freed_after" else constant / 1e9
        return Time(column, self.random.choice(("<", "<=", ">", ">=")), constant)

    def tree(self, leaf, depth):
        """@leaf: a part that it has, or None."""
        kind = self.random.randrange(4) if depth else 0
        if not kind:
            return leaf or self.fact()
        if kind == 1:
            return Not(self.tree(leaf, depth - 1))
        parts = [self.tree(leaf, depth - 1), self.tree(None, depth - 1)]
        self.random.shuffle(parts)
        return (Both if kind == 2 else Either)(*parts)

    def expression(self):
        if self.random.random() < .5:
            return Whole([self.tree(self.time(), 4)])
        times = [self.time() for _ in range(self.random.randint(0, 4))]
        return Whole(times + [self.tree(None, 3) for _ in range(self.random.randint(not times, 2))])


@pytest.fixture
def selected(run, allocprof):
    """selected(data, options...): what report says of the blocks that are selected."""
    def read(data, *options):
        result = run([allocprof, "report", "--json", "--top=1", "--sort=bytes", *options, data], expect=0)
        return json.loads(result.stdout)["selected"]
    return read


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_random_expressions(run, allocprof, target, tmp_path, selected, seed):
    """Blocks of threads with names of their own, and of four threads that allocate, free and pass on at random."""
    data = tmp_path / "data"
    script = f"{target('named_threads')} 150 'io-%d' >/dev/null; {target('live_random')} {seed} 4 600 >/dev/null"
    run([allocprof, "record", "-q", "--live", "--events", "-o", data, "--", "sh", "-c", script], expect=0)
    lines = run([allocprof, "export", "--format=events", "--backtrace=none", data], expect=0).stdout.splitlines()
    cells = Cells(lines, data)
    maker = Maker(seed, cells)
    kinds = collections.Counter()
    for _ in range(EXPRESSIONS // 2):
        expression = maker.expression()
        expected, true = cells.select(expression)
        got = selected(data, "--where", expression.sql)
        assert {key: got[key] for key in expected} == expected, expression.sql
        assert got["allocations"] <= true <= got["allocations"] + got["unsure"]
        kinds["some" if 0 < true < len(cells.blocks) else "all or none"] += 1
        kinds["unsure"] += got["unsure"] > 0
    # They are no idle ones.
    assert kinds["some"] > EXPRESSIONS / 4 and kinds["unsure"] > EXPRESSIONS / 10, kinds


# As in allocprof-where(7), which has other constants.
SHORT_FORMS = [
    (["--leaks"], "leaked"),
    (["--leaks", "--at-exit"], "alive"),
    (["--freed"], "freed"),
    (["--older=5ms"], "alive AND age >= 0.005"),
    (["--older=5%"], "alive AND age >= 0.05 * duration"),
    (["--leaks", "--older=5ms"], "leaked AND age >= 0.005"),
    (["--min-lifetime=3ms"], "alive_for >= 0.003"),
    (["--alive-for=20%"], "alive_for >= 0.2 * duration"),
    (["--leaks", "--min-lifetime=3ms"], "leaked AND age >= 0.003"),
    (["--max-lifetime=3ms"], "lifetime <= 0.003"),
    (["--min-lifetime=1ms", "--max-lifetime=3ms"], "alive_for >= 0.001 AND lifetime <= 0.003"),
    (["--freed-after=5ms"], "freed_at >= 0.005"),
    (["--freed-after=50%"], "freed_after >= 0.5"),
    (["--min-size=400"], "size >= 400"),
    (["--max-size=400"], "size <= 400"),
    (["--through=*site_1*"], "through('*site_1*')"),
    (["--through=/site/", "--through=work"], "through('/site/') AND through('work')"),
    (["--not-through=/site_[12]/"], "NOT through('/site_[12]/')"),
    (["--module=live_random"], "through_module('live_random')"),
    (["--module=libc.so.6"], "through_module('libc.so.6')"),
    (["--thread=live*"], "matches(thread, 'live*')"),
    (["--thread=live_random", "--thread=other"], "thread IN ('live_random', 'other')"),
    (["--process=live_random"], "matches(process, 'live_random')"),
    (["--function=malloc,calloc"], "function IN ('malloc', 'calloc')"),
    (["--leaks", "--function=malloc", "--min-size=100"], "leaked AND function = 'malloc' AND size >= 100"),
]


@pytest.mark.engines("preload")
@pytest.mark.fast("preload-1")
@pytest.mark.parametrize("runs", [1, 3])
def test_short_forms(run, allocprof, target, tmp_path, selected, runs):
    data = tmp_path / "data"
    run([allocprof, "record", "-q", "--live", *([f"-r{runs}"] if runs > 1 else []), "-o", data, "--",
         target("live_random"), 5, 4, 800], expect=0)
    stacks = json.loads(run([allocprof, "report", "--json", data], expect=0).stdout)["stacks"]
    some = [stack["stack"] for stack in stacks[:2]]
    database = sqlite3.connect(data)
    pid = database.execute("SELECT pid FROM processes").fetchone()[0]
    forms = [*SHORT_FORMS,
             ([f"--stack={some[0]},{some[1]}"], f"stack IN ({some[0]}, {some[1]})"),
             ([f"--not-stack={some[0]}"], f"stack <> {some[0]}"),
             ([f"--process={pid}"], f"pid = {pid}")]
    everything = selected(data)
    for options, expression in forms:
        short, long = selected(data, *options), selected(data, "--where", expression)
        assert short == long, (options, expression)
        assert short["allocations"] or "calloc" in expression or "libc" in expression, f"{options} select nothing"
        assert short["allocations"] <= everything["allocations"]
    assert selected(data, "--run=1")["allocations"] == selected(data, "--where", "run = 1")["allocations"]


@pytest.mark.engines("preload")
@pytest.mark.fast("preload")
def test_commands(run, allocprof, target, tmp_path):
    """Each command that selects takes an expression, and does the same with it as with the option that is short for it."""
    data = tmp_path / "data"
    run([allocprof, "record", "-q", "--live", "-o", data, "--", target("live_random"), 5, 4, 800], expect=0)

    def output(command, *options):
        name = tmp_path / "out"
        run([allocprof, *command, *options, "-o", name, data], expect=0)
        return name.read_bytes()

    for options, expression in ((["--freed"], "freed"), (["--min-lifetime=3ms"], "alive_for >= 0.003"),
                                (["--min-size=400"], "size >= 400")):
        for command in (["folded", "--cost=bytes"], ["flamegraph"], ["graph", "--json"], ["export", "--format=json"],
                        ["export", "--format=collapsed"], ["diff", "--json", data], ["html"]):
            words = ["--where", expression]
            short, long = output(command, *options), output(command, *words)
            if command[0] in ("html", "flamegraph"):
                # The page says which command made it.
                assert len(long) > 1000
                continue
            assert short == long, (command, expression)
            assert short != output(command), f"{command} selects everything"


@pytest.mark.engines("preload")
def test_series(run, allocprof, target, tmp_path, selected):
    """Bands of graph by expressions: what is of none is the last, and all of them add up to the whole."""
    data = tmp_path / "data"
    run([allocprof, "record", "-q", "--live", "-o", data, "--", target("live_random"), 5, 4, 800], expect=0)

    def graph(*options):
        return json.loads(run([allocprof, "graph", "--json", *options, data], expect=0).stdout)

    whole = graph("--top=1")
    drawn = graph("--series", "Large=size >= 400", "--series", "Leaked=leaked", "--series", "None=thread = 'nobody'")
    names = [one["name"] for one in drawn["series"]]
    assert sorted(names[:-1]) == ["Large", "Leaked"] and names[-1] == "all else"
    assert all(one["stack"] is None and one["stacks"] is None for one in drawn["series"])

    def sums(graph):
        return [sum(values) for values in zip(*(one[kind] for one in graph["series"] for kind in ("stays_bytes", "freed_bytes")))]

    assert sums(drawn) == sums(whole) and drawn["peak_bytes"] == whole["peak_bytes"]
    live = {one["name"]: one["live"] for one in drawn["series"]}
    # A block of several is in the first.
    assert live == {"Large": selected(data, "--where", "size >= 400 AND alive")["live"],
                    "Leaked": selected(data, "--where", "alive AND NOT size >= 400")["live"], "all else": 0}
    # They are of what is selected.
    assert [one["name"] for one in graph("--where", "leaked", "--series", "Leaked=leaked")["series"]] == ["Leaked"]
    run([allocprof, "graph", "--series", "Leaked=leaked", "-o", tmp_path / "out.svg", data], expect=0)
    for words, said in ((["--series", "leaked"], "is a name and an expression"), (["--series", "a=sise"], "no such column: sise"),
                        (["--series", "a=leaked", "--top=3"], "leave one out")):
        assert said in run([allocprof, "graph", *words, "-o", tmp_path / "x.svg", data], expect=64).stderr.decode()


@pytest.mark.engines("preload")
def test_errors(run, allocprof, target, tmp_path):
    data = tmp_path / "data"
    run([allocprof, "record", "-q", "-o", data, "--", target("live_random"), 5, 1, 50], expect=0)

    def fails(*expressions, status):
        words = [word for expression in expressions for word in ("--where", expression)]
        return run([allocprof, "folded", *words, data], expect=status).stderr.decode()

    assert "no such column: sise, at character 12, 'sise > 3'" in fails("leaked AND sise > 3", status=64)
    assert "record with --live" in fails("leaked", status=2)
    assert "no function in this recording is 'nowhere'" in fails("through('nowhere')", status=0)
    assert "stack numbers differ between files" in run([allocprof, "diff", "--where", "stack = 1", data, data],
                                                       expect=64).stderr.decode()


@pytest.mark.slow
@pytest.mark.engines("preload")
def test_hours(run, allocprof, target, tmp_path):
    """One instruction of SQLite's that would take hours ends after a minute of processor time."""
    data = tmp_path / "data"
    run([allocprof, "record", "-q", "-o", data, "--", target("live_random"), 5, 1, 50], expect=0)
    hours = "instr(hex(zeroblob(8000000)) || 1, hex(zeroblob(4000000)) || 2)"
    assert "processor time was over" in run([allocprof, "folded", "--where", hours, data], expect=2, timeout=10 * TIMEOUT_SECONDS).stderr.decode()
