# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes ELF files and programs that cost who reads them far more than they have bytes."""

import struct
import subprocess
import zlib

PT_LOAD, PT_INTERP, PT_NOTE = 1, 3, 4
DT_NULL, DT_NEEDED, DT_RPATH = 0, 1, 15
SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_DYNAMIC, SHT_NOTE, SHT_DYNSYM = 1, 2, 3, 4, 6, 7, 11
SHF_CODE, SHF_COMPRESSED = 6, 0x800
FUNCTION = 0x12  # STB_GLOBAL, STT_FUNC
CODE_AT = 0x1000
HEADER = 64


def uleb(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


class ElfFile:
    """A library with code at CODE_AT, and what else is added. Sections may say that they are anywhere."""

    def __init__(self, code=b"\xc3" * 0x2000):
        self.segments = [(PT_LOAD, 5, CODE_AT, len(code))]
        self.names = b"\0"
        self.sections = []
        self.body = bytearray(bytes(CODE_AT)) + code
        self.add_header(".text", SHT_PROGBITS, CODE_AT, len(code), flags=SHF_CODE, address=CODE_AT)

    def add_header(self, name, kind, offset, size, flags=0, address=0, link=0, entry=0):
        self.sections.append((len(self.names), kind, flags, address, offset, size, link, 0, 8, entry))
        self.names += name.encode() + b"\0"
        return len(self.sections)

    def add(self, name, kind, content, **fields):
        """Adds the content and a section of it; its number."""
        self.body += bytes(-len(self.body) % 8)
        number = self.add_header(name, kind, len(self.body), len(content), **fields)
        self.body += content
        return number

    def place(self, kind, content):
        """Adds the content and a segment of it."""
        self.segments.append((kind, 4, len(self.body), len(content)))
        self.body += content

    def write(self, path, size=0):
        """Makes the file, with a hole at its end if it is to be of @size."""
        names = self.add(".shstrtab", SHT_STRTAB, self.names + b".shstrtab\0")
        body = self.body + bytes(-len(self.body) % 8)
        tables = len(body)
        headers = bytes(64) + b"".join(struct.pack("<IIQQQQIIQQ", *section) for section in self.sections)
        programs = b"".join(struct.pack("<IIQQQQQQ", kind, flags, offset, offset, offset, length, length, 0x1000)
                            for kind, flags, offset, length in self.segments)
        body[:HEADER] = b"\x7fELF\2\1\1" + bytes(9) + struct.pack(
            "<HHIQQQIHHHHHH", 3, 62, 1, CODE_AT, tables + len(headers), tables, 0, HEADER, 56, len(self.segments), 64,
            len(self.sections) + 1, names)
        with open(path, "wb") as file:
            file.write(body + headers + programs)
            if size:
                file.truncate(size)


def symbol(name, value, size=16):
    return struct.pack("<IBBHQQ", name, FUNCTION, 0, 1, value, size)


def allocator(code=b"\xc3" * 0x2000, names=(b"malloc", b"free"), step=16):
    """One whose functions are at CODE_AT and each @step bytes further."""
    elf = ElfFile(code)
    strings, symbols = b"\0", bytes(24)
    for i, name in enumerate(names):
        symbols += symbol(len(strings), CODE_AT + i * step, step)
        strings += name + b"\0"
    table = elf.add(".dynstr", SHT_STRTAB, strings)
    elf.dynsym = elf.add(".dynsym", SHT_DYNSYM, symbols, link=table, entry=24)
    return elf


def many_directories(path):
    """A program that needs a library 4,096 times, by a name with which no path is short enough, in 32,768 directories."""
    elf = ElfFile()
    elf.place(PT_INTERP, b"/lib64/ld-linux-x86-64.so.2\0")
    table = elf.add(".dynstr", SHT_STRTAB, b"\0" + 4094 * b"x" + b"\0" + b":".join(32768 * [b"a"]) + b"\0")
    entries = 4096 * [(DT_NEEDED, 1)] + [(DT_RPATH, 4096), (DT_NULL, 0)]
    elf.add(".dynamic", SHT_DYNAMIC, b"".join(struct.pack("<QQ", *entry) for entry in entries), link=table, entry=16)
    elf.write(path)
    path.chmod(0o755)


NOTE = struct.pack("<III", 4, 4, 99) + b"ABC\0" + b"1234"


def notes_in_sections(path):
    """Sixty thousand sections of notes that are all the same four megabytes."""
    elf = allocator()
    elf.add(".note", SHT_NOTE, NOTE * ((4 << 20) // len(NOTE)))
    elf.sections += [elf.sections[-1]] * 60000
    elf.write(path)


def notes_in_segments(path):
    elf = allocator()
    elf.add(".note", SHT_NOTE, NOTE * ((4 << 20) // len(NOTE)))
    offset, size = elf.sections[-1][4:6]
    elf.segments += [(PT_NOTE, 4, offset, size)] * 60000
    elf.write(path)


def overlapping_code(path):
    """64 segments of a gigabyte each, in a file that has one, and that one is a hole."""
    elf = allocator()
    elf.segments = [(PT_LOAD, 5, CODE_AT, (1 << 30) - CODE_AT)] * 64
    elf.write(path, 1 << 30)


def hole_of_symbols(path):
    """A table of 12 gigabytes."""
    elf = allocator()
    elf.add_header(".symtab", SHT_SYMTAB, CODE_AT, 12 << 30, entry=24)
    elf.write(path, (12 << 30) + CODE_AT)


def long_names(path):
    """Two hundred thousand functions that all have one name of four megabytes."""
    elf = allocator()
    strings = elf.add(".strtab", SHT_STRTAB, b"\0" + b"_" * (4 << 20) + b"\0")
    elf.add(".symtab", SHT_SYMTAB, bytes(24) + b"".join(symbol(1, CODE_AT + i % 0x1000) for i in range(200000)),
            link=strings, entry=24)
    elf.write(path)


def strings_without_end(path):
    """Each name of a table that does not end with a NUL is searched for its end, from behind."""
    elf = allocator()
    strings = elf.add(".strtab", SHT_STRTAB, b"\0" + b"x" * (4 << 20))
    elf.add(".symtab", SHT_SYMTAB, bytes(24) + b"".join(symbol(1, CODE_AT + i % 0x1000) for i in range(200000)),
            link=strings, entry=24)
    elf.write(path)


def many_slots(path):
    """Three hundred thousand slots, and ten functions with fifty thousand jumps each to a stub of another one."""
    names = (b"malloc", b"calloc", b"realloc", b"free", b"memalign", b"valloc", b"pvalloc", b"posix_memalign",
             b"aligned_alloc", b"reallocarray")
    step = 50000 * 6 + 16
    stub = CODE_AT + step * len(names)
    code = bytearray()
    for i in range(len(names)):
        start = CODE_AT + i * step
        code += b"".join(b"\x0f\x85" + struct.pack("<i", stub - (start + at + 6)) for at in range(0, 300000, 6))
        code += b"\xc3" * 16
    code += b"\xff\x25" + struct.pack("<i", 0x7000000) + b"\x90" * 10
    elf = allocator(bytes(code), names, step)
    elf.add(".rela.dyn", SHT_RELA, struct.pack("<QQq", 0xdead0000, 1 << 32 | 6, 0) * 300000, link=elf.dynsym, entry=24)
    elf.write(path)


def compressed(megabytes):
    """The content of a compressed section of zeros."""
    packer = zlib.compressobj(9)
    zeros = bytes(1 << 20)
    packed = b"".join(packer.compress(zeros) for _ in range(megabytes)) + packer.flush()
    return struct.pack("<IIQQ", 1, 0, megabytes << 20, 1) + packed


DEBUG_SECTIONS = (".debug_info", ".debug_abbrev", ".debug_line", ".debug_str", ".debug_ranges", ".debug_frame",
                  ".debug_loc", ".debug_types", ".debug_aranges", ".debug_line_str")


def unpacks_to_gigabytes(path, ending=""):
    """A megabyte that is ten compressed sections of a gigabyte each."""
    elf = ElfFile()
    content = compressed(1024)
    elf.add(DEBUG_SECTIONS[0] + ending, SHT_PROGBITS, content, flags=SHF_COMPRESSED)
    for name in DEBUG_SECTIONS[1:]:
        elf.add_header(name + ending, SHT_PROGBITS, *elf.sections[1][4:6], flags=SHF_COMPRESSED)
    elf.write(path)


def one_unit(abbreviations, dies):
    """The DWARF of a compile unit over the code, whose DIE is abbreviation 1 of @abbreviations."""
    abbreviations = (uleb(1) + uleb(0x11) + b"\1" + uleb(0x11) + uleb(1) + uleb(0x12) + uleb(7) + b"\0\0" +
                     abbreviations + b"\0")
    unit = struct.pack("<HBBI", 5, 1, 8, 0) + b"\1" + struct.pack("<QQ", CODE_AT, 0x2000) + dies
    elf = ElfFile()
    elf.add(".debug_abbrev", SHT_PROGBITS, abbreviations)
    elf.add(".debug_info", SHT_PROGBITS, struct.pack("<I", len(unit)) + unit)
    return elf


def long_abbreviation(path):
    """A hundred thousand DIEs, of a byte each, with a hundred thousand attributes each."""
    attributes = (uleb(0x3f) + uleb(0x19)) * 100000
    elf = one_unit(uleb(2) + uleb(0x34) + b"\0" + attributes + b"\0\0", b"\2" * 100000 + b"\0")
    elf.write(path)


def split_unit(path):
    """A unit whose DIEs are in a file beside it, which unpacks to gigabytes."""
    directory = path.parent
    (directory / "program.c").write_text("int work(int n)\n{\n\treturn n + 1;\n}\n")
    subprocess.run(["gcc", "-g", "-gsplit-dwarf", "-shared", "-fPIC", "-nostdlib", "-Wl,-Ttext=0x1000,--build-id=none",
                    "-o", path, "program.c"], cwd=directory, check=True)
    (split,) = directory.glob("*.dwo")
    unpacks_to_gigabytes(split, ".dwo")


# What `doctor` reads.
CODE = {made.__name__: made for made in (notes_in_sections, notes_in_segments, overlapping_code, hole_of_symbols,
                                         long_names, strings_without_end, many_slots)}
# What names are looked up in.
NAMES = {made.__name__: made for made in (notes_in_sections, hole_of_symbols, long_names, strings_without_end,
                                          unpacks_to_gigabytes, long_abbreviation, split_unit)}


def many_frames(database):
    """Frames at one address without a module, of which there may be several."""
    database.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500000) "
                     "INSERT INTO frames SELECT (SELECT max(id) FROM frames) + i, 0, 0, 0, 0 FROM n")


def many_keys(database):
    """A run with a quarter of a million entries in meta and in its ledger."""
    for table in ("run_meta", "run_ledger"):
        database.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250000) "
                         f"INSERT INTO {table} SELECT 1, 'key' || i, '0' FROM n")


def many_lines(database):
    """Two million lines that name no file, and a thousand stacks of files that are looked for in them."""
    frame, stack, count = (database.execute(f"SELECT max(id) FROM {table}").fetchone()[0]
                           for table in ("frames", "stacks", "counts"))
    for i in range(1, 1001):
        frames = ",".join([str(frame + i)] + 511 * ["1"])
        database.execute("INSERT INTO frames VALUES(?, 1, ?, 0, 0)", (frame + i, 10000000 + i))
        database.execute("INSERT INTO stacks VALUES(?, 'frame_pointers', ?)", (stack + i, f"[{frames}]"))
        database.execute("INSERT INTO counts SELECT ?, process, id, ?, 'malloc', 1, 1 FROM threads LIMIT 1",
                         (count + i, stack + i))
    database.execute("INSERT INTO meta VALUES('no_unwind_table', replace(hex(zeroblob(1000000)), '0', char(10)))")


# Changes to a data file, after which it is read.
DATA = {function.__name__: function for function in (many_frames, many_keys, many_lines)}
