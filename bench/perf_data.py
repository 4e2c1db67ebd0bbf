# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes a perf.data file with one sample for each of some addresses of an ELF file, so that
`perf script` can be asked for the names of just these."""

import struct

RECORD_COMM, RECORD_SAMPLE, RECORD_MMAP2 = 3, 9, 10
SAMPLE_IP, SAMPLE_TID = 1, 2
MISC_USER = 2
PROT_READ, PROT_EXEC, MAP_PRIVATE = 1, 4, 2
PID = 4242
BASE = 0x10000000000
ATTR_SIZE = 112  # PERF_ATTR_SIZE_VER5 of linux/perf_event.h
HEADER_SIZE = 104


def record(kind, misc, body):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def padded(text):
    text = text.encode() + b"\0"
    return text + b"\0" * (-len(text) % 8)


def attribute():
    # type software, size, config cpu-clock, period, sample_type, read_format, flags: mmap, comm,
    # task, sample_id_all left out, mmap2
    flags = 1 << 8 | 1 << 9 | 1 << 23
    attr = struct.pack("<IIQQQQQ", 1, ATTR_SIZE, 0, 1, SAMPLE_IP | SAMPLE_TID, 0, flags)
    return attr + b"\0" * (ATTR_SIZE - len(attr))


def write(path, elf_path, segments, vaddrs):
    """@segments are the executable ones, as (vaddr, file offset, size) with page-aligned starts."""
    data = record(RECORD_COMM, 0, struct.pack("<II", PID, PID) + padded("bench"))
    for vaddr, offset, size in segments:
        data += record(RECORD_MMAP2, MISC_USER, struct.pack(
            "<IIQQQIIQQII", PID, PID, BASE + vaddr, size, offset, 0, 0, 0, 0,
            PROT_READ | PROT_EXEC, MAP_PRIVATE) + padded(str(elf_path)))
    data += b"".join(record(RECORD_SAMPLE, MISC_USER,
                            struct.pack("<QII", BASE + vaddr, PID, PID)) for vaddr in vaddrs)
    attrs = attribute() + struct.pack("<QQ", 0, 0)
    header = b"PERFILE2" + struct.pack("<QQ", HEADER_SIZE, ATTR_SIZE + 16)
    header += struct.pack("<QQ", HEADER_SIZE, len(attrs))
    header += struct.pack("<QQ", HEADER_SIZE + len(attrs), len(data))
    header += struct.pack("<QQ", 0, 0) + b"\0" * 32
    with open(path, "wb") as file:
        file.write(header + attrs + data)
