# SPDX-License-Identifier: GPL-3.0-or-later
"""allocprof export: what other tools read in its files is what `report --json` says of the same recording."""

import contextlib
import gzip
import json
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys

import jsonschema
import pytest

from support import BUILD, SOURCE, unavailable

sys.path.insert(0, str(SOURCE / "tests"))

import data_digest  # noqa: E402
import otlp  # noqa: E402
import pprof  # noqa: E402

# pprof's sample types, and what report calls them.
TYPES = {"alloc_objects": "allocations", "alloc_space": "bytes", "inuse_objects": "live",
         "inuse_space": "live_bytes"}
# speedscope's schema of its format, from the npm package speedscope 1.25.0 (MIT).
SPEEDSCOPE_SCHEMA = SOURCE / "tests" / "live" / "speedscope.schema.json"
EXPORT_SCHEMA = SOURCE / "data" / "export-1.schema.json"
FIREFOX_SCHEMA = SOURCE / "data" / "firefox-48.schema.json"
SPEEDSCOPE_KINDS = {"bytes allocated": "bytes", "allocations": "allocations", "live bytes": "live_bytes",
                    "live blocks": "live", "temporary allocations": "temporary",
                    "bytes at the peak": "peak_bytes"}
HOSTILE = ["</script><script>alert(1)</script>", "quote\" back\\slash 'single'", "a\tb\nc\x01\x1b[31m",
           "std::vector<" + "std::pair<int, long>, " * 500 + ">", "\u202eright to left", ";", " "]


@pytest.fixture
def recorded(run, allocprof, target, tmp_path):
    """recorded(options): the data file of a program that leaks, keeps a cache and makes temporary blocks, or of
    the command."""
    def record(*options, command=("case_study",)):
        data = tmp_path / "data"
        run([allocprof, "record", *options, "-o", data, "--", target(command[0]), *command[1:]], expect=0)
        return data
    return record


@pytest.fixture
def export(run, allocprof, tmp_path):
    """export(data, format, options): the file."""
    def write(data, form, *options):
        path = tmp_path / f"out.{form}"
        run([allocprof, "export", f"--format={form}", "-i", data, "-o", path, *options], expect=0)
        return path
    return write


@pytest.fixture
def totals(run, allocprof):
    def read(data, *options):
        return json.loads(run([allocprof, "report", "--json", "-i", data, *options], expect=0).stdout)["selected"]
    return read


def validate(path, schema):
    document = json.loads(path.read_text())
    jsonschema.validate(document, json.loads(schema.read_text()))
    return document


def sums_of(document):
    """The totals of a speedscope file, by report's names."""
    sums = {}
    for profile in document["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"])
        assert sum(profile["weights"]) == profile["endValue"]
        sums[SPEEDSCOPE_KINDS[profile["name"]]] = profile["endValue"]
    return sums


def hold_to_report(export, data, expected, *options):
    """All formats have the numbers of @expected."""
    totals = pprof.read(export(data, "pprof", *options)).totals()
    assert totals == {name: expected[TYPES[name]] for name in totals}
    sums = sums_of(validate(export(data, "speedscope", *options), SPEEDSCOPE_SCHEMA))
    assert sums == {name: expected[name] for name in sums}
    document = validate(export(data, "json", *options), EXPORT_SCHEMA)
    assert document["total"] == {name: expected[name] for name in document["total"]}
    for name, value in document["total"].items():
        assert sum(sample[name] for sample in document["samples"]) == value, name
    assert dhat_totals(export(data, "dhat", *options)) == {
        name: expected[name] for name in ["allocations", "bytes"] + (
            ["live", "live_bytes", "peak", "peak_bytes"] if "peak" in document["total"] else [])}
    assert firefox_totals(validate(export(data, "firefox", *options), FIREFOX_SCHEMA)) == {
        name: expected[name] for name in ["allocations", "bytes"] + (["live_bytes"] if "live" in document["total"] else [])}
    return totals, sums, document


def retained_bytes(table):
    """As the viewer works it out: what is allocated at an address stays until that address is freed."""
    held = {}
    for address, weight in zip(table["memoryAddress"], table["weight"]):
        if weight > 0:
            assert address not in held
            held[address] = weight
        else:
            assert held.pop(address) == -weight
    return sum(held.values())


def firefox_totals(document):
    """By report's names. All columns of a table have its length, and all indexes of threads' tables are in range."""
    sums = {"allocations": 0, "bytes": 0}
    for thread in document["threads"]:
        tables = {name: table for name, table in thread.items() if isinstance(table, dict)}
        for name, table in tables.items():
            assert {len(column) for column in table.values() if isinstance(column, list)} == {table["length"]}, name
        for name, column, of in [("stackTable", "frame", "frameTable"), ("frameTable", "func", "funcTable"),
                                 ("samples", "stack", "stackTable"), ("nativeAllocations", "stack", "stackTable")]:
            assert all(0 <= index < tables[of]["length"] for index in tables[name][column]), (name, column)
        assert all(prefix is None or prefix < at for at, prefix in enumerate(tables["stackTable"]["prefix"]))
        assert all(0 <= name < len(thread["stringArray"]) for name in tables["funcTable"]["name"])
        assert all(-1 <= at < tables["resourceTable"]["length"] for at in tables["funcTable"]["resource"])
        native = tables["nativeAllocations"]
        assert native["time"] == sorted(native["time"])
        sums["allocations"] += sum(tables["samples"]["weight"])
        sums["bytes"] += sum(weight for weight in native["weight"] if weight > 0)
        if "memoryAddress" in native:
            sums["live_bytes"] = sums.get("live_bytes", 0) + retained_bytes(native)
    return sums


def dhat_totals(path):
    """By report's names, what dh_view.html of valgrind adds up, which holds the file to the same rules."""
    document = json.loads(path.read_text())
    assert document["dhatFileVersion"] == 2 and document["ftbl"][0] == "[root]"
    names = {"tb": "bytes", "tbk": "allocations"}
    if document["bklt"]:
        names |= {"gb": "peak_bytes", "gbk": "peak", "eb": "live_bytes", "ebk": "live"}
        assert 0 <= document["tg"] <= document["te"]
    for point in document["pps"]:
        assert all(0 < frame < len(document["ftbl"]) for frame in point["fs"])
        assert not document["bklt"] or point["mb"] >= max(point["gb"], point["eb"])
    assert len({tuple(point["fs"]) for point in document["pps"]}) == len(document["pps"])
    return {report: sum(point[name] for point in document["pps"]) for name, report in names.items()}


def go_pprof(run, *words):
    if not shutil.which("go"):
        unavailable("go is not installed")
    return run(["go", "tool", "pprof", *words], expect=0).stdout.decode()


@pytest.mark.slow
def test_go_reads_it(run, recorded, export, totals):
    data = recorded("--live")
    expected = totals(data)
    path = export(data, "pprof")
    for name, reported in TYPES.items():
        text = go_pprof(run, "-top", "-unit=B" if name.endswith("space") else "-unit=count",
                        f"-sample_index={name}", path)
        (total,) = re.findall(r"of (\d+)B? total", text)
        assert int(total) == expected[reported] and expected[reported], text
    raw = go_pprof(run, "-raw", path)
    # The first mapping is the program, with its build id, and its functions have lines.
    ((build_id,),) = sqlite3.connect(data).execute(
        "SELECT build_id FROM modules WHERE path LIKE '%/case_study'").fetchall()
    assert re.search(rf"^1: 0x0/0x\w+/0x0 \S*/case_study {build_id} \[FN\]\[FL\]\[LN\]", raw, re.M), raw
    assert re.search(r"M=1 linear_leak \S*case_study.c:[1-9]\d*", raw), raw


@pytest.mark.slow
def test_totals(recorded, export, totals):
    data = recorded("--live")
    everything, sums, document = hold_to_report(export, data, totals(data))
    assert set(everything) == set(TYPES) and set(sums) == set(SPEEDSCOPE_KINDS.values())
    assert document["live"] and all(everything.values())
    # What is selected by what became of it has no temporary blocks and no peak: these are not known by block.
    leaks, sums, document = hold_to_report(export, data, totals(data, "--leaks"), "--leaks")
    assert leaks["alloc_objects"] == leaks["inuse_objects"] == everything["inuse_objects"]
    assert "temporary" not in sums and "peak" not in document["total"]
    hold_to_report(export, data, totals(data, "--through=mixture"), "--through=mixture")


@pytest.fixture
def messages(tmp_path):
    if why := otlp.missing():
        unavailable(why)
    directory = tmp_path / "messages"
    directory.mkdir()
    return otlp.Messages(directory)


def stack_sums(found):
    """{(type, stack, thread, function, incomplete): value}, of samples that may have more than one such part in common."""
    sums = {}
    for key, value in found:
        sums[key] = sums.get(key, 0) + value
    return sums


@pytest.mark.fast("whole")
@pytest.mark.parametrize("options", [[], ["--leaks"], ["--through=mixture"]], ids=["whole", "leaks", "through"])
def test_otlp(recorded, export, totals, messages, options):
    """It has what pprof's format has, sample by sample, and report's sums."""
    data = recorded("--live")
    path = export(data, "otlp", *options)
    message, found = messages.read(path.read_bytes())
    expected = totals(data, *options)
    assert otlp.totals(found) == {name: expected[reported] for name, reported in TYPES.items() if expected[reported]}
    of_pprof = pprof.read(export(data, "pprof", *options))

    def names(locations):
        return tuple(of_pprof.functions[line["function"]]["name"] for location in locations
                     for line in of_pprof.locations[location]["line"])

    assert stack_sums(((sample.type, tuple(sample.stack), sample.attributes["thread.name"], sample.attributes["allocprof.function"],
                        sample.attributes.get("allocprof.incomplete")), sample.value) for sample in found) == stack_sums(
        ((of_pprof.types[i][0], names(locations), labels["thread"], labels["function"], labels.get("incomplete")), value)
        for values, labels, locations in of_pprof.samples for i, value in enumerate(values) if value)
    [resource] = message.resource_profiles
    [process] = {(labels["process"], labels["pid"]) for _, labels, _ in of_pprof.samples}
    assert {key: found[0].resource[key] for key in ("service.name", "process.executable.name", "process.pid")} == {
        "service.name": process[0], "process.executable.name": process[0], "process.pid": process[1]}
    for profile in resource.scope_profiles[0].profiles:
        assert profile.time_unix_nano == of_pprof.raw["time"] and profile.duration_nano and not profile.period


@pytest.mark.slow
def test_otlp_of_samples_and_processes(recorded, export, totals, messages):
    """Estimates are as report has them, and each process is a resource of its own."""
    sampled = recorded("--sample=512")
    message, found = messages.read(export(sampled, "otlp").read_bytes())
    expected = totals(sampled)
    assert otlp.totals(found) == {"alloc_objects": expected["allocations"], "alloc_space": expected["bytes"]}
    strings = message.dictionary.string_table
    for profile in message.resource_profiles[0].scope_profiles[0].profiles:
        assert profile.period == 512 and strings[profile.period_type.type_strindex] == "space"
    # Nothing but the recording decides on the bytes.
    assert export(sampled, "otlp").read_bytes() == export(sampled, "otlp").read_bytes()
    several = recorded("--live", command=("/bin/sh", "-c", "ls >/dev/null; ls / >/dev/null; true"))
    message, found = messages.read(export(several, "otlp").read_bytes())
    assert otlp.totals(found)["alloc_objects"] == totals(several)["allocations"]
    # What a process was before an exec is another program.
    programs = {(sample.resource["process.pid"], sample.resource["service.name"]) for sample in found}
    assert len({pid for pid, _ in programs}) == 3 and len(programs) == len(message.resource_profiles)
    nothing = recorded(command=("/bin/true",))
    assert not totals(nothing, "--function=valloc")["allocations"]
    assert export(nothing, "otlp", "--function=valloc").read_bytes() == b""


DH_VIEW = pathlib.Path("/usr/libexec/valgrind/dh_view.js")


@pytest.mark.slow
def test_dhats_viewer_reads_it(run, recorded, export, totals):
    """The script of the page builds its tree, which asserts what it takes for granted of a file."""
    if not DH_VIEW.exists() or not shutil.which("node"):
        unavailable("valgrind or node is not installed")
    data = recorded("--live")
    expected = totals(data)
    script = SOURCE / "tests" / "live" / "dh_totals.js"
    read = json.loads(run(["node", script, DH_VIEW, export(data, "dhat")], expect=0).stdout)
    assert read == {name: expected[name] for name in read}


@pytest.mark.slow
def test_heaptrack_reads_it(run, recorded, export, totals):
    """Allocations, what leaked and the peak are the same; blocks that were temporary and live at the peak are not
    temporary for heaptrack, and of a program with one thread there is one at most."""
    if not shutil.which("heaptrack_print"):
        unavailable("heaptrack is not installed")
    data = recorded("--live")
    expected = totals(data)
    path = export(data, "heaptrack").rename(data.with_name("out.gz"))
    with gzip.open(path, "rt") as file:
        lines = file.read().splitlines()
    assert lines[0] == "v 10400 3"
    sizes = [int(line.split()[1], 16) for line in lines if line.startswith("a ")]
    begun = [int(line[2:], 16) for line in lines if line.startswith("+ ")]
    ended = [int(line[2:], 16) for line in lines if line.startswith("- ")]
    # heaptrack_gui crashes if their first blocks begin in another order; of the last none does.
    assert list(dict.fromkeys(begun)) == list(range(len(sizes) - 1))
    assert len(begun) == expected["allocations"]
    assert sum(sizes[info] for info in begun) == expected["bytes"]
    assert sum(sizes[info] for info in begun) - sum(sizes[info] for info in ended) == expected["live_bytes"]
    text = run(["heaptrack_print", "-f", path], expect=0).stdout.decode()

    def figure(name):
        return re.search(rf"^{name}: ([\d.]+[KMG]?)", text, re.M)[1]

    def rounded(size_bytes):
        return f"{size_bytes / 1000:.2f}K"

    assert int(figure("calls to allocation functions")) == expected["allocations"]
    assert expected["temporary"] - int(figure("temporary memory allocations")) in (0, 1)
    assert figure("peak heap memory consumption") == rounded(expected["peak_bytes"])
    assert figure("total memory leaked") == rounded(expected["live_bytes"])
    with contextlib.closing(sqlite3.connect(data)) as database:
        moments = database.execute("SELECT time_ns / 1000000, live_bytes, rss_bytes / 4096 FROM timeline ORDER BY time_ns").fetchall()
    peak, resident = (max(moments, key=lambda moment, of=of: moment[of]) for of in (1, 2))
    stamps = [tuple(int(number, 16) for number in re.findall(r"[0-9a-f]+", f"{time} {pages}"))
              for time, pages in re.findall(r"^c (\w+)\nR (\w+)$", "\n".join(lines), re.M)]
    assert (peak[0], peak[2]) in stamps and (resident[0], resident[2]) in stamps
    after = float(re.search(r"^peak heap memory consumption: \S+ after ([\d.]+)s", text, re.M)[1]) if " after " in text else None
    assert after is None or abs(after - peak[0] / 1000) < .01
    assert not figure("peak RSS \\(including heaptrack overhead\\)").startswith("0")


@pytest.mark.slow
def test_without_live(recorded, export, totals):
    data = recorded()
    counted, sums, document = hold_to_report(export, data, totals(data))
    assert set(counted) == {"alloc_objects", "alloc_space"} and set(sums) == {"allocations", "bytes"}
    assert not document["live"] and pprof.read(export(data, "pprof")).raw["default"] == "alloc_space"


@pytest.mark.slow
def test_sampled(recorded, export, totals):
    data = recorded("--live", "--sample=256")
    hold_to_report(export, data, totals(data))
    profile = pprof.read(export(data, "pprof"))
    assert profile.raw["period_type"] == ("space", "bytes") and profile.raw["period"] == 256
    # No byte of B is sampled with a chance of exp(-B/256), which is below 5 per cent from 768 bytes on.
    remark = ("one byte of 256 was sampled: all numbers are estimates, and what has no sample is less than "
              "768 bytes")
    assert remark in profile.raw["comment"]
    assert remark in json.loads(export(data, "speedscope").read_text())["name"]
    document = json.loads(export(data, "json").read_text())
    assert document["sample_bytes"] == 256 and remark in document["remarks"]


def test_inlined(recorded, export):
    """The innermost of the functions at one place is the first of its lines, as in the data file."""
    data = recorded(command=("many_stacks", "64", "64"))
    database = sqlite3.connect(data)
    inlined = database.execute("SELECT frame FROM lines WHERE inlined").fetchall()
    assert inlined
    profile = pprof.read(export(data, "pprof", "--raw-stacks"))
    several = [[profile.functions[line["function"]]["system_name"] for line in location["line"]]
               for location in profile.locations.values() if len(location["line"]) > 1]
    expected = [[symbol for symbol, in database.execute(
        "SELECT symbol FROM lines JOIN functions ON function = id WHERE frame = ? ORDER BY depth", frame)]
        for frame in sorted(set(inlined))]
    assert sorted(several) == sorted(expected)


@pytest.mark.slow
def test_collapsed_is_folded(run, allocprof, recorded, export):
    data = recorded("--live")
    for cost in ("allocations", "live-bytes"):
        folded = run([allocprof, "folded", "-i", data, "--cost", cost], expect=0).stdout
        assert export(data, "collapsed", "--cost", cost).read_bytes() == folded != b""


def dtrace_aggregation(text):
    """{frames, outermost first: number}, as scripts read what dtrace prints: they take a line of digits for the number, and cut
    off an offset."""
    sums, frames = {}, []
    for line in text.splitlines():
        if re.fullmatch(r" +[0-9]+", line):
            sums[";".join(reversed(frames))] = int(line)
            frames = []
        elif line:
            frames.append(re.sub(r"\+[^+]*$", "", line.lstrip(" ")))
    return sums


def test_stacks_are_collapsed_ones(fixture_data, export):
    """Also of a process that is called a number, and of operators."""
    database = sqlite3.connect(fixture_data)
    database.execute("UPDATE processes SET comm = '7'")
    database.execute("UPDATE functions SET symbol = 'operator+=', name = 'operator+=', full_name = 'operator+=' WHERE id = "
                     "(SELECT function FROM lines LIMIT 1)")
    data_digest.renew(database)
    database.commit()
    for cost in ("allocations", "live-bytes"):
        lines = export(fixture_data, "collapsed", "--cost", cost).read_text().splitlines()
        collapsed = {stack.replace("7;", "[7];", 1): int(n) for stack, n in (line.rsplit(" ", 1) for line in lines)}
        assert any("operator+=" in stack for stack in collapsed)
        assert dtrace_aggregation(export(fixture_data, "stacks", "--cost", cost).read_text()) == collapsed


@pytest.fixture
def fixture_data(tmp_path):
    path = tmp_path / "fixture.data"
    subprocess.run([BUILD / "tests" / "golden" / "write_fixture", path], check=True)
    return path


def test_hostile_names(fixture_data, export, totals):
    database = sqlite3.connect(fixture_data)
    for i, name in enumerate(HOSTILE):
        database.execute("UPDATE functions SET symbol = ?, name = ?, full_name = ? WHERE id = ?",
                         (name, name, name, i + 1))
    database.execute("UPDATE processes SET comm = ?", (HOSTILE[0],))
    database.execute("UPDATE modules SET path = ? WHERE id = 1", (HOSTILE[1],))
    database.execute("UPDATE meta SET value = CAST(x'c328ff22' AS TEXT) WHERE key = 'command'")
    data_digest.renew(database)
    # The reader of data files keeps 8 KiB of a name.
    used = {name[:8192] for name, in database.execute(
        "SELECT name FROM functions WHERE id IN (SELECT function FROM lines)") if name in HOSTILE}
    database.commit()
    assert len(used) >= 4
    hold_to_report(export, fixture_data, totals(fixture_data))
    profile = pprof.read(export(fixture_data, "pprof"))
    assert used <= {function["name"] for function in profile.functions.values()}
    assert profile.raw["comment"][0] == "\u00c3(\u00ff\""
    assert used <= {text for thread in json.loads(export(fixture_data, "firefox").read_text())["threads"]
                    for text in thread["stringArray"]}
    assert used <= {frame["name"] for frame in
                    json.loads(export(fixture_data, "speedscope").read_text())["shared"]["frames"]}
    assert used <= {frame["name"] for frame in
                    json.loads(export(fixture_data, "json").read_text())["frames"]}


def test_damaged(run, allocprof, fixture_data, tmp_path):
    data = fixture_data.read_bytes()
    bad = tmp_path / "bad.data"
    bad.write_bytes(data[:len(data) // 2])
    for form in ("pprof", "speedscope", "collapsed", "stacks", "json", "dhat", "heaptrack", "firefox"):
        out = tmp_path / "out"
        done = run([allocprof, "export", f"--format={form}", "-i", bad, "-o", out], expect=2)
        assert re.fullmatch(rb"allocprof: .*bad.data.*; .*\n", done.stderr), done
        assert not out.exists()


# Stacks of 16 frames, of twenty thousand functions.
STACKS = 100000
DEPTH = 16  # of large_data.py


def peak_of(words):
    """The most memory that the command had, in bytes."""
    source = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
              "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)")
    done = subprocess.run([sys.executable, "-c", source, *map(str, words)], check=True, stdout=subprocess.PIPE)
    return int(done.stdout)


@pytest.mark.slow
def test_memory_of_many_stacks(allocprof, fixture_data, tmp_path):
    """An export needs little more than to read the file and to find the names, which `folded` does, too."""
    subprocess.run(["/usr/bin/python3", SOURCE / "tests" / "large_data.py", fixture_data, str(STACKS)], check=True)
    least = peak_of([allocprof, "folded", "-i", fixture_data, "-o", tmp_path / "out"])
    for form in ("pprof", "speedscope", "json", "dhat", "firefox"):
        peak = peak_of([allocprof, "export", f"--format={form}", "-i", fixture_data, "-o", tmp_path / "out"])
        # The indexes of places: 4 bytes for each frame. The rest is a twentieth.
        assert peak < least * 1.05 + 4 * DEPTH * STACKS, f"{form}: {peak}, folded: {least}"
