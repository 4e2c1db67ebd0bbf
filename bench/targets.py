# SPDX-License-Identifier: GPL-3.0-or-later
"""What is measured: programs that do a third of their work and all of it, so that what a tool costs
per event can be told from what it costs once."""

import dataclasses
import json
import random
import shutil

SIZES = ("third", "full")
PYTHON = "/usr/bin/python3"


@dataclasses.dataclass
class Target:
    name: str
    what: str
    argvs: dict  # by size
    environment: dict = dataclasses.field(default_factory=dict)
    peers: bool = True  # runs under the other tools too, unless they are asked for by name
    missing: str = ""  # why it cannot run here


def amounts(full, scale):
    full = max(int(full * scale), 3)
    return {"third": full // 3, "full": full}


def write_json(path, entries):
    """About 133 bytes and ten allocations of jq an entry, the same at every call."""
    choice = random.Random(1)
    with open(path, "w") as file:
        file.write("[\n")
        for number in range(entries):
            entry = {"id": number, "name": f"user{choice.randrange(10**6)}",
                     "active": choice.random() < 0.5, "score": round(choice.random() * 100, 3),
                     "tags": [choice.choice(["red", "green", "blue"]) for _ in range(2)],
                     "at": {"x": choice.randrange(1000), "y": choice.randrange(1000)}}
            file.write(json.dumps(entry) + (",\n" if number + 1 < entries else "\n"))
        file.write("]\n")


def jq_target(directory, scale):
    jq = shutil.which("jq")
    argvs = {}
    for size, entries in amounts(60000, scale).items():
        path = directory / f"{size}.json"
        write_json(path, entries)
        argvs[size] = [jq, "length", str(path)]
    mib = path.stat().st_size / 2**20
    return Target("jq", f"jq length on {mib:.1f} MiB of JSON", argvs,
                  missing="" if jq else "jq is not installed")


def python_target(script, scale):
    argvs = {size: [PYTHON, "-S", str(script), str(n)] for size, n in amounts(9000, scale).items()}
    return Target("python", "python3 on bench/objects.py with PYTHONMALLOC=malloc", argvs,
                  environment={"PYTHONMALLOC": "malloc"})


def depth_target(program, mode, depth, scale, threads=0):
    name = f"threads-{threads}" if threads else f"depth-{depth}-{mode}"
    words = [str(threads)] if threads else []
    argvs = {size: [str(program), mode, str(depth), str(n), *words]
             for size, n in amounts(300000, scale).items()}
    what = {"same": "always the same stack", "vary": "the inner quarter of the frames varies",
            "fresh": "all frames vary"}[mode]
    if threads:
        what += f", {threads} thread{'s' if threads > 1 else ''}"
    # The others remember no stacks, so one mode tells all.
    return Target(name, f"malloc and free {depth} frames deep, {what}", argvs,
                  peers=mode == "vary")


def all_targets(source, build, directory, scale):
    """@directory receives their input files."""
    program = build / "bench" / "depth"
    targets = [jq_target(directory, scale), python_target(source / "objects.py", scale)]
    for mode in ("same", "vary", "fresh"):
        targets += [depth_target(program, mode, depth, scale) for depth in (5, 20, 60, 120)]
    targets += [depth_target(program, "vary", 20, scale, threads) for threads in (1, 2, 8)]
    return targets
