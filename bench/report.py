# SPDX-License-Identifier: GPL-3.0-or-later
"""The table, from the raw numbers."""

import statistics

NONE = "–"


class Results:
    """Medians of the runs."""

    def __init__(self, data):
        self.data = data
        self.runs = {}
        for run in data["runs"]:
            self.runs.setdefault((run["target"], run["tool"], run["size"]), []).append(run)

    def values(self, target, tool, size, key):
        runs = self.runs.get((target, tool, size), [])
        return [run[key] for run in runs if run.get(key) is not None]

    def median(self, target, tool, size, key):
        values = self.values(target, tool, size, key)
        return statistics.median(values) if values else None

    def spread(self, target, tool, size, key):
        """How far the runs lie from their median, as a share of it; None for a single run."""
        values = self.values(target, tool, size, key)
        median = statistics.median(values)
        return max(abs(value - median) for value in values) / median if len(values) > 1 else None

    def hits(self, target, tool, size):
        """0 where the tool is not run with the target."""
        return self.data["tools"][tool]["hits"].get(target, {}).get(size, 0)

    def failure(self, target, tool):
        entry = self.data["tools"][tool]
        return entry["missing"] or entry["failures"].get(target, "")

    def over_bare(self, target, tool, size, key="wall_ns"):
        """Time that the tool takes above the bare run's."""
        under, bare = (self.median(target, name, size, key) for name in (tool, "bare"))
        return None if under is None or bare is None else under - bare

    def slope_ns(self, target, tool):
        """Per hit, without what is the same for many and few."""
        full, third = (self.over_bare(target, tool, size) for size in ("full", "third"))
        if full is None or third is None:
            return None
        hits = self.hits(target, tool, "full") - self.hits(target, tool, "third")
        return (full - third) / hits if hits else None

    def inside_ns(self, target, tool):
        """Per hit, by the target's own clock around its calls."""
        over = self.over_bare(target, tool, "full", "inside_ns")
        hits = self.hits(target, tool, "full")
        return None if over is None or not hits else over / hits

    def once_ms(self, target, tool):
        slope, full = self.slope_ns(target, tool), self.over_bare(target, tool, "full")
        if slope is None:
            return None
        return (full - slope * self.hits(target, tool, "full")) / 1e6

    def ratio(self, of, to):
        return of / to if of is not None and to is not None and to > 0 else None


def show(value, form="{:.2f}", none=NONE):
    return none if value is None else form.format(value)


def show_size(size):
    if size is None:
        return NONE
    for unit in ("B", "KiB", "MiB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} GiB"


def show_lost(results, target, tool):
    """The worst of all runs."""
    worst = max(results.values(target, tool, "full", "lost"), default=None)
    expected = results.data["tools"][tool]["expected"].get(target, {}).get("full")
    if worst is None or not expected:
        return NONE
    return f"{worst:,} ({worst / expected:.1%})" if worst else "0"


def target_row(results, target, tool):
    failure = results.failure(target, tool)
    if failure:
        return [tool, failure] + [""] * 9
    floor = results.data["tools"][tool]["floor"]
    wall, bare = (results.median(target, name, "full", "wall_ns") for name in (tool, "bare"))
    if wall is None:
        return [tool, "not run"] + [""] * 9
    spread = results.spread(target, tool, "full", "wall_ns")
    cells = [tool, f"{wall / 1e9:.3f}" + show(spread, " ±{:.0%}", ""),
             show(results.ratio(wall, bare))]
    if tool == "bare":
        return cells + [NONE] * 8
    over, floor_over = (results.over_bare(target, name, "full") for name in (tool, floor))
    slope, floor_slope = (results.slope_ns(target, name) for name in (tool, floor))
    share = results.median(target, tool, "full", "complete")
    notes = [run["note"] for run in results.runs.get((target, tool, "full"), []) if "note" in run]
    return cells + [
        show(results.ratio(over, floor_over)),
        show(slope, "{:,.0f}"),
        show(results.ratio(slope, floor_slope)),
        show(results.inside_ns(target, tool), "{:,.0f}"),
        show(results.once_ms(target, tool), "{:,.0f}"),
        show_lost(results, target, tool),
        show_size(results.median(target, tool, "full", "file_bytes")),
        notes[0] if notes else show(share, "{:.1%}"),
    ]


COLUMNS = ["under", "wall s", "× bare", "× floor", "ns/hit", "ns/hit × floor", "ns/hit inside",
           "once ms", "lost", "file", "whole stacks"]

LEGEND = """\
- *floor-stat*, *floor-record*, *floor-live*: an empty BPF program at the sites that `stat` (with
  free), `record` (without) and `record --live` (with free, and at the returns) probe. *× floor* is
  (t − bare) / (floor − bare) over whole runs, start and end included. *live* is `record --live`,
  *live-stat* `stat --live`; they and *heaptrack* are held against floor-live, *stat* against
  floor-stat, the others against floor-record.
- *ns/hit*: by slope, that is the time above bare of a full run less that of a third of it, by hit;
  *once*: the rest, which does not depend on the number of calls. *inside*: by the target's own
  clock around its calls, so that work after its end does not count.
- *lost*: the worst run; of the others than allocprof: what is not in their result and should be, by
  `allocprof stat`.
- *whole stacks*: share of events whose stack reaches `_start` or `clone3`; of perf record in
  {unwound} samples from the middle. bpftrace knows no names once the target has exited.
- Times are medians of {rounds} rounds, in each of which everything runs once; ± is the run farthest
  from the median. Nothing is pinned."""


def markdown_table(header, rows):
    lines = ["| " + " | ".join(header) + " |",
             "|" + "|".join([" --- "] + [" ---: "] * (len(header) - 1)) + "|"]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def depth_lines(results):
    """What a hit costs, by depth."""
    header = ["stack", "floor (stat)", "stat", "stat / floor", "floor (record)", "record",
              "record / floor", "floor (live)", "live", "live / floor", "inside: floor (record)",
              "record", "record / floor", "inside: floor (live)", "live", "live / floor"]
    names = [name for name in results.data["targets"] if name.startswith("depth-")]
    rows = []
    for name in names:
        slopes = {tool: results.slope_ns(name, tool) for tool in results.data["tools"]}
        inside = {tool: results.inside_ns(name, tool) for tool in results.data["tools"]}
        cells = [name]
        for figures, floor, tool in ((slopes, "floor-stat", "stat"),
                                     (slopes, "floor-record", "record"),
                                     (slopes, "floor-live", "live"),
                                     (inside, "floor-record", "record"),
                                     (inside, "floor-live", "live")):
            ours, least = figures.get(tool), figures.get(floor)
            cells += [show(least, "{:,.0f}"), show(ours, "{:,.0f}"),
                      show(results.ratio(ours, least))]
        rows.append(cells)
    if not rows:
        return []
    return ["", "## ns per hit by depth", "", *markdown_table(header, rows)]


def markdown(data, unwound):
    results = Results(data)
    machine = data["machine"]
    versions = [entry["version"] for entry in data["tools"].values() if entry["version"]]
    lines = [f"# allocprof and others, {machine['date']}", "",
             f"{machine['cpus']} × {machine['processor']}, {machine['memory_gib']:.1f} GiB, Linux "
             f"{machine['kernel']}, {machine['libc']}; load at the start {machine['load']:.2f}.",
             "", "; ".join(dict.fromkeys(versions)) + ".", "",
             LEGEND.format(unwound=unwound, rounds=data["rounds"]),
             *depth_lines(results), "", "## Targets"]
    rows = []
    for name, target in data["targets"].items():
        if target["missing"]:
            rows.append([f"**{name}**", target["missing"]] + [""] * 9)
            continue
        counts = target["counts"]["full"]
        rows.append([f"**{name}**: {target['what']}; {counts['hits_but_free']:,} hits, "
                     f"{counts['hits']:,} with free"] + [""] * 10)
        rows += [target_row(results, name, tool) for tool in target["tools"]]
    lines += ["", *markdown_table(COLUMNS, rows), ""]
    return "\n".join(lines)
