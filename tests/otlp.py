# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads OpenTelemetry's profiles by the definitions of Debian's package opentelemetry-proto, and holds them to what these say of
the tables of the dictionary."""

import dataclasses
import importlib
import pathlib
import shutil
import subprocess
import sys

# scripts/setup --ci
DEFINITIONS = pathlib.Path("/var/cache/allocprof/opentelemetry-proto/usr/include")
FILES = ["common/v1/common", "resource/v1/resource", "profiles/v1development/profiles",
         "collector/profiles/v1development/profiles_service"]


def missing():
    """Why nothing can be read here; None if it can."""
    if not DEFINITIONS.exists() or not shutil.which("protoc"):
        return "opentelemetry-proto or protobuf-compiler is not installed: scripts/setup --ci installs both"
    return None


@dataclasses.dataclass
class Sample:
    type: str
    resource: dict
    attributes: dict
    stack: list  # names, leaf first
    value: int


@dataclasses.dataclass
class Messages:
    """The modules that protoc makes of the definitions, in @directory."""
    directory: pathlib.Path

    def __post_init__(self):
        subprocess.run(["protoc", f"-I{DEFINITIONS}", f"--python_out={self.directory}",
                        *(f"opentelemetry/proto/{name}.proto" for name in FILES)], check=True)
        sys.path.insert(0, str(self.directory))
        self.profiles = importlib.import_module("opentelemetry.proto.profiles.v1development.profiles_pb2")
        self.service = importlib.import_module("opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2")

    def read(self, data):
        """ProfilesData and the list of its samples."""
        message = self.profiles.ProfilesData.FromString(data)
        request = self.service.ExportProfilesServiceRequest.FromString(data)
        assert request.SerializeToString() == message.SerializeToString()
        return message, samples(message)


def value_of(value):
    return getattr(value, value.WhichOneof("value"))


def check_tables(dictionary):
    """The first of each table stands for none, no two are alike, and all indexes are of elements that there are."""
    tables = {field.name: getattr(dictionary, field.name) for field in dictionary.DESCRIPTOR.fields}
    for name, table in tables.items():
        if name == "string_table":
            assert table[0] == "" and len(set(table)) == len(table), name
            continue
        none = type(table[0])(trace_id=bytes(16), span_id=bytes(8)) if name == "link_table" else type(table[0])()
        assert table[0] == none, name
        encoded = [element.SerializeToString() for element in table]
        assert len(set(encoded)) == len(encoded), name
    for mapping in dictionary.mapping_table[1:]:
        assert mapping.memory_start < mapping.memory_limit and dictionary.string_table[mapping.filename_strindex]
    for location in dictionary.location_table[1:]:
        mapping = dictionary.mapping_table[location.mapping_index]
        assert not location.mapping_index or mapping.memory_start <= location.address <= mapping.memory_limit
    for function in dictionary.function_table[1:]:
        assert dictionary.string_table[function.name_strindex]


def samples(message):
    dictionary = message.dictionary
    if not message.resource_profiles:
        return []
    check_tables(dictionary)
    strings = dictionary.string_table

    def attributes(indexes):
        found = [dictionary.attribute_table[index] for index in indexes]
        assert len({attribute.key_strindex for attribute in found}) == len(found)
        return {strings[attribute.key_strindex]: value_of(attribute.value) for attribute in found}

    def names(location):
        return [strings[dictionary.function_table[line.function_index].name_strindex] for line in location.lines]

    stacks = [[name for index in stack.location_indices for name in names(dictionary.location_table[index])]
              for stack in dictionary.stack_table]
    files = [attributes(mapping.attribute_indices) for mapping in dictionary.mapping_table]
    assert all(set(file) <= {"process.executable.build_id.gnu"} for file in files) and any(files)
    found = []
    for resource in message.resource_profiles:
        of = {attribute.key: value_of(attribute.value) for attribute in resource.resource.attributes}
        assert len(of) == len(resource.resource.attributes)
        [scope] = resource.scope_profiles
        assert scope.scope.name == "allocprof" and scope.scope.version and scope.profiles
        for profile in scope.profiles:
            assert profile.samples
            identities = {(sample.stack_index, tuple(sorted(sample.attribute_indices))) for sample in profile.samples}
            assert len(identities) == len(profile.samples)
            for sample in profile.samples:
                [value] = sample.values
                found.append(Sample(strings[profile.sample_type.type_strindex], of, attributes(sample.attribute_indices),
                                    stacks[sample.stack_index], value))
    return found


def totals(found):
    """By sample type."""
    sums = {}
    for sample in found:
        sums[sample.type] = sums.get(sample.type, 0) + sample.value
    return sums
