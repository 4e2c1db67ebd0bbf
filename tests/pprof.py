# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads pprof's profile.proto (https://github.com/google/pprof/blob/main/proto/profile.proto), from the
specification of the wire format alone.

pprof.py FILE prints it as text."""

import dataclasses
import gzip
import sys


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7f) << shift
        at += 1
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """(number, value) of each field: an integer, or the bytes of what has a length."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            size, at = varint(data, at)
            value = data[at:at + size]
            if len(value) != size:
                raise ValueError("a field is cut off")
            at += size
        else:
            raise ValueError(f"wire type {key & 7}")
        yield key >> 3, value


def packed(data):
    at = 0
    values = []
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


def message(data, names):
    """The dictionary of the fields that @names names; those of names that end in * are lists."""
    found = {name.rstrip("*"): [] if name.endswith("*") else 0 for name in names.values()}
    for number, value in fields(data):
        name = names[number]
        if name.endswith("*"):
            found[name[:-1]].append(value)
        else:
            found[name] = value
    return found


PROFILE = {1: "sample_type*", 2: "sample*", 3: "mapping*", 4: "location*", 5: "function*", 6: "string*",
           9: "time", 10: "duration", 11: "period_type", 12: "period", 13: "comment", 14: "default"}
VALUE_TYPE = {1: "type", 2: "unit"}
SAMPLE = {1: "location", 2: "value", 3: "label*"}
LABEL = {1: "key", 2: "str", 3: "num", 4: "unit"}
MAPPING = {1: "id", 2: "start", 3: "limit", 4: "offset", 5: "file", 6: "build_id", 7: "has_functions",
           8: "has_filenames", 9: "has_line_numbers", 10: "has_inline_frames"}
LOCATION = {1: "id", 2: "mapping", 3: "address", 4: "line*"}
LINE = {1: "function", 2: "line"}
FUNCTION = {1: "id", 2: "name", 3: "system_name", 4: "file"}


@dataclasses.dataclass
class Profile:
    types: list  # (type, unit)
    samples: list  # (values, labels, location ids)
    mappings: list
    locations: dict
    functions: dict
    raw: dict

    def totals(self):
        """By sample type."""
        return {name: sum(values[i] for values, _, _ in self.samples)
                for i, (name, _) in enumerate(self.types)}


def read(path):
    """Holds the profile to what Go's pprof, Parca (pkg/normalizer) and Pyroscope demand of it."""
    with gzip.open(path) as file:
        raw = message(file.read(), PROFILE)
    strings = [text.decode("utf-8") for text in raw["string"]]
    assert strings[0] == "" and len(set(strings)) == len(strings)

    def value_type(data):
        found = message(data, VALUE_TYPE)
        return strings[found["type"]], strings[found["unit"]]

    def named(data, names, *texts):
        found = message(data, names)
        return {**found, **{key: strings[found[key]] for key in texts}}

    functions = [named(data, FUNCTION, "name", "system_name", "file") for data in raw["function"]]
    locations = [named(data, LOCATION) for data in raw["location"]]
    for location in locations:
        location["line"] = [message(line, LINE) for line in location["line"]]
        assert all(line["function"] <= len(functions) for line in location["line"]) and location["mapping"] <= len(raw["mapping"])
    mappings = [named(data, MAPPING, "file", "build_id") for data in raw["mapping"]]
    for table in (functions, locations, mappings):
        assert [entry["id"] for entry in table] == list(range(1, len(table) + 1))
    samples = []
    for data in raw["sample"]:
        sample = message(data, SAMPLE)
        labels = {}
        assert len(packed(sample["value"])) == len(raw["sample_type"])
        assert all(0 < number <= len(locations) for number in packed(sample["location"]))
        for label in sample["label"]:
            found = named(label, LABEL, "key", "str")
            assert found["key"]
            labels[found["key"]] = found["str"] or found["num"]
        samples.append((packed(sample["value"]), labels, packed(sample["location"])))
    raw["comment"] = [strings[index] for index in packed(raw["comment"] or b"")]
    raw["default"] = strings[raw["default"]]
    raw["period_type"] = value_type(raw["period_type"])
    return Profile([value_type(data) for data in raw["sample_type"]], samples, mappings,
                   {entry["id"]: entry for entry in locations},
                   {entry["id"]: entry for entry in functions}, raw)


def text(profile):
    raw = profile.raw
    lines = [f"types {profile.types}, {raw['default']} by default",
             f"time {raw['time']} duration {raw['duration']} period {raw['period_type']} {raw['period']}"]
    lines += [f"comment {comment!r}" for comment in raw["comment"]]
    lines += [f"sample {values} {labels} {locations}" for values, labels, locations in profile.samples]
    for location in profile.locations.values():
        lines.append(f"location {location['id']} mapping {location['mapping']} "
                     f"address {location['address']:#x}")
        for line in location["line"]:
            function = profile.functions[line["function"]]
            lines.append(f"  {function['name']!r} symbol {function['system_name']!r} "
                         f"{function['file']!r} line {line['line']}")
    for mapping in profile.mappings:
        has = [key for key in mapping if key.startswith("has_") and mapping[key]]
        lines.append(f"mapping {mapping['id']} {mapping['start']:#x} to {mapping['limit']:#x} offset "
                     f"{mapping['offset']} {mapping['file']!r} {mapping['build_id']!r} {' '.join(has)}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text(read(sys.argv[1])))
