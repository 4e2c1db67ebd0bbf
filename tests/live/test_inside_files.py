# SPDX-License-Identifier: GPL-3.0-or-later
"""What is executed: programs whose files are damaged, as without the library, which looks into them before; and what the C
library executes."""

import struct


def with_names(program):
    """Gives the program symbols and strings by its section headers, which its execution does not need: one name a million
    times, and no symbol that has it."""
    data = bytearray(program.read_bytes())
    at, = struct.unpack_from("<Q", data, 0x28)
    n, = struct.unpack_from("<H", data, 0x3c)
    strings, symbols = b"\0" + b"je_malloc\0" * 1000000, struct.pack("<IBBHQQ", 3, 2, 0, 1, 0, 0) * 300000
    for i in range(n):
        kind, = struct.unpack_from("<I", data, at + i * 64 + 4)
        if kind == 2:
            link, = struct.unpack_from("<I", data, at + i * 64 + 40)
            struct.pack_into("<QQ", data, at + i * 64 + 24, len(data), len(symbols))
            data += symbols
            struct.pack_into("<QQ", data, at + link * 64 + 24, len(data), len(strings))
            data += strings
    program.write_bytes(data)
    return program


def test_many_names(same, compiled):
    """All of the names are looked up in one reading of the symbols."""
    program = with_names(compiled("int main(void) { return 6; }", name="named"))
    bare, _ = same("stat", ["timeout", "20", "sh", "-c", f"{program}; echo $?"])
    assert (bare.status, bare.stdout) == (0, b"6\n"), bare


WORDS = """
#include <stdio.h>
#include <stdlib.h>
#include <wordexp.h>
int main(int argc, char **argv)
{
	wordexp_t words;
	for (int i = 1; i < argc; i++) {
		int err = wordexp(argv[i], &words, 0);
		printf("%d %s\\n", err, err ? "none" : words.we_wordv[0]);
	}
	puts(getenv("LD_PRELOAD") ? "seen" : "hidden");
	return 0;
}
"""


def test_commands_in_words(same, compiled):
    """What wordexp(3) executes is measured."""
    bare, report = same("stat", [compiled(WORDS, name="words"), "$(/bin/echo one)", "plain", "`/bin/echo two`", "$((1 + 2))"])
    assert bare.stdout == b"0 one\n0 plain\n0 two\n0 3\nhidden\n", bare
    # Two shells, which may execute their commands in their own place.
    assert report["processes"] in (3, 5), report
