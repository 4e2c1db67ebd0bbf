# SPDX-License-Identifier: GPL-3.0-or-later
"""A program that calls each function of an allocator's interface a number of times that it knows, made from a
table. The table says nothing of what allocprof does: only the prototypes, as the allocators' headers have them."""

import dataclasses
import pathlib
import re
import subprocess

# Arguments: s size, n count, a alignment, z offset, h heap, f flags, x extra, p old block, o where to put the
# block, t nothrow. Behind the names what their calls are counted as.
TABLE = """
malloc s malloc
calloc ns calloc
realloc ps realloc
reallocarray pns reallocarray
posix_memalign oas posix_memalign
aligned_alloc as aligned_alloc
memalign as memalign
valloc s valloc
pvalloc s pvalloc
free p free
cfree p free
reallocf ps realloc
free_sized ps free_sized
free_aligned_sized pas free_sized
_Znwm s new
_Znam s new
_ZnwmRKSt9nothrow_t st new
_ZnamRKSt9nothrow_t st new
_ZnwmSt11align_val_t sa new
_ZnamSt11align_val_t sa new
_ZnwmSt11align_val_tRKSt9nothrow_t sat new
_ZnamSt11align_val_tRKSt9nothrow_t sat new
_ZdlPv p delete
_ZdaPv p delete
_ZdlPvm ps delete
_ZdaPvm ps delete
_ZdlPvRKSt9nothrow_t pt delete
_ZdaPvRKSt9nothrow_t pt delete
_ZdlPvSt11align_val_t pa delete
_ZdaPvSt11align_val_t pa delete
_ZdlPvSt11align_val_tRKSt9nothrow_t pat delete
_ZdaPvSt11align_val_tRKSt9nothrow_t pat delete
_ZdlPvmSt11align_val_t psa delete
_ZdaPvmSt11align_val_t psa delete
mallocx sf mallocx
rallocx psf rallocx
xallocx psxf xallocx
dallocx pf dallocx
sdallocx psf sdallocx
tc_malloc s malloc
tc_malloc_skip_new_handler s malloc
tc_calloc ns calloc
tc_realloc ps realloc
tc_memalign as memalign
tc_posix_memalign oas posix_memalign
tc_valloc s valloc
tc_pvalloc s pvalloc
tc_free p free
tc_cfree p free
tc_free_sized ps free_sized
tc_new s new
tc_newarray s new
tc_new_nothrow st new
tc_newarray_nothrow st new
tc_new_aligned sa new
tc_newarray_aligned sa new
tc_new_aligned_nothrow sat new
tc_newarray_aligned_nothrow sat new
tc_delete p delete
tc_deletearray p delete
tc_delete_sized ps delete
tc_deletearray_sized ps delete
tc_delete_nothrow pt delete
tc_deletearray_nothrow pt delete
tc_delete_aligned pa delete
tc_deletearray_aligned pa delete
tc_delete_sized_aligned psa delete
tc_deletearray_sized_aligned psa delete
tc_delete_aligned_nothrow pat delete
tc_deletearray_aligned_nothrow pat delete
mi_malloc s malloc
mi_malloc_small s malloc
mi_zalloc_small s calloc
mi_zalloc s calloc
mi_calloc ns calloc
mi_mallocn ns malloc
mi_realloc ps realloc
mi_reallocn pns reallocarray
mi_reallocf ps realloc
mi_rezalloc ps realloc
mi_recalloc pns reallocarray
mi_malloc_aligned sa aligned_alloc
mi_malloc_aligned_at saz aligned_alloc
mi_zalloc_aligned sa aligned_alloc
mi_zalloc_aligned_at saz aligned_alloc
mi_calloc_aligned nsa aligned_alloc
mi_calloc_aligned_at nsaz aligned_alloc
mi_realloc_aligned psa realloc
mi_realloc_aligned_at psaz realloc
mi_rezalloc_aligned psa realloc
mi_rezalloc_aligned_at psaz realloc
mi_recalloc_aligned pnsa reallocarray
mi_recalloc_aligned_at pnsaz reallocarray
mi_posix_memalign oas posix_memalign
mi_memalign as memalign
mi_valloc s valloc
mi_pvalloc s pvalloc
mi_aligned_alloc as aligned_alloc
mi_reallocarray pns reallocarray
mi_new s new
mi_new_nothrow s new
mi_new_aligned sa new
mi_new_aligned_nothrow sa new
mi_new_n ns new
mi_new_realloc ps realloc
mi_new_reallocn pns reallocarray
mi_free p free
mi_cfree p free
mi_free_size ps free_sized
mi_free_size_aligned psa free_sized
mi_free_aligned pa free
mi_heap_malloc hs malloc
mi_heap_malloc_small hs malloc
mi_heap_zalloc hs calloc
mi_heap_calloc hns calloc
mi_heap_mallocn hns malloc
mi_heap_realloc hps realloc
mi_heap_reallocn hpns reallocarray
mi_heap_reallocf hps realloc
mi_heap_rezalloc hps realloc
mi_heap_recalloc hpns reallocarray
mi_heap_malloc_aligned hsa aligned_alloc
mi_heap_malloc_aligned_at hsaz aligned_alloc
mi_heap_zalloc_aligned hsa aligned_alloc
mi_heap_zalloc_aligned_at hsaz aligned_alloc
mi_heap_calloc_aligned hnsa aligned_alloc
mi_heap_calloc_aligned_at hnsaz aligned_alloc
mi_heap_realloc_aligned hpsa realloc
mi_heap_realloc_aligned_at hpsaz realloc
mi_heap_rezalloc_aligned hpsa realloc
mi_heap_rezalloc_aligned_at hpsaz realloc
mi_heap_recalloc_aligned hpnsa reallocarray
mi_heap_recalloc_aligned_at hpnsaz reallocarray
mi_heap_alloc_new hs new
mi_heap_alloc_new_n hns new
vfree p free
_duma_malloc sxx malloc
_duma_calloc nsxx calloc
_duma_realloc psxx realloc
_duma_memalign asxx memalign
_duma_posix_memalign oasxx posix_memalign
_duma_valloc sxx valloc
_duma_free pxx free
"""

TYPES = {"s": "size_t", "n": "size_t", "a": "size_t", "z": "size_t", "h": "void *", "f": "int", "x": "size_t",
         "p": "void *", "o": "void **", "t": "const void *"}
FREEING = ("free", "delete", "free_sized", "dallocx", "sdallocx")


@dataclasses.dataclass
class Entry:
    """One function, and how the program calls it: @calls times, for @size bytes each."""
    name: str
    arguments: str
    family: str
    calls: int
    size: int

    @property
    def frees(self):
        return self.family in FREEING

    @property
    def reallocates(self):
        return "p" in self.arguments and not self.frees

    @property
    def is_array(self):
        return "array" in self.name or self.name.startswith(("_Zna", "_Zda"))

    @property
    def partner(self):
        """What ends its blocks, or begins those that it ends."""
        if self.family not in ("new", "delete"):
            return "keep_malloc" if self.frees else "free(p)"
        if self.frees:
            return "keep_array" if self.is_array else "keep_new"
        return "::operator delete[](p)" if self.is_array else "::operator delete(p)"

    @property
    def throws(self):
        return "new" in self.name.split("_") or self.name.startswith("_Zn") or self.name.startswith("tc_new")

    def prototype(self):
        result = "void" if self.frees else "int" if "o" in self.arguments else "void *"
        if self.family == "xallocx":
            result = "size_t"
        arguments = ", ".join(TYPES[letter] for letter in self.arguments)
        return f'extern "C" {result} f_{self.name}({arguments}) __asm__("{self.name}") __attribute__((weak));'

    def call(self, pointer="p", size=None):
        count = 3 if "n" in self.arguments else 1
        values = {"s": str(size or self.size // count), "n": "3", "a": "64", "z": "0", "h": "heap", "f": "0", "x": "0",
                  "p": pointer, "o": "&p", "t": "&std::nothrow"}
        call = f"f_{self.name}({', '.join(values[letter] for letter in self.arguments)})"
        if self.frees:
            return f"{call};"
        if "o" in self.arguments:
            return f"if ({call}) p = NULL;"
        if self.family == "xallocx":
            return f"(void){call};"
        return f"p = {call};"


def read_table():
    for at, line in enumerate(TABLE.strip().splitlines()):
        name, arguments, family = line.split()
        # Sizes that every alignment of the table divides, and in which the count of 3 goes.
        yield Entry(name, arguments, family, calls=4 + at % 7 * 2, size=192 * (1 + at % 3))


ENTRIES = list(read_table())

HEAD = """
#include <dlfcn.h>
#include <new>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" void *mi_heap_new(void) __attribute__((weak));
static void *heap;
static void *kept[64];
static volatile int zero;
#define NOINLINE __attribute__((noinline, noclone))

struct alignas(128) Over { char bytes[256]; };
struct Counted { long value; ~Counted() { zero = 0; } };

static void used(void *p) { __asm__ volatile("" : : "r"(p) : "memory"); }
static NOINLINE void *keep_malloc(size_t size) { void *p = malloc(size); used(p); return p; }
static NOINLINE void *keep_new(size_t size) { void *p = ::operator new(size); used(p); return p; }
static NOINLINE void *keep_array(size_t size) { void *p = ::operator new[](size); used(p); return p; }

/* Whether it is of the file that malloc is of: of another it would free what is not its own. */
static void *library; /* environment variable ALLOCATOR, where another library stands in front of it */

static bool is_here(const void *function, const char *name)
{
	Dl_info of_malloc, info;

#ifdef ALL_HERE
	return function;
#endif
	if (library)
		return dladdr(dlsym(library, "malloc"), &of_malloc) && dladdr(dlsym(library, name), &info) &&
		       info.dli_fbase == of_malloc.dli_fbase;
	return function && dladdr((void *)malloc, &of_malloc) && dladdr(function, &info) &&
	       info.dli_fbase == of_malloc.dli_fbase;
}
"""

# What C++ makes of its expressions. An array of objects with a destructor begins with their number.
EXPRESSIONS = """
static NOINLINE void call_expression_new() { for (int i = 0; i < 5; i++) { int *p = new int; used(p); delete p; } }
static NOINLINE void call_expression_over()
{ for (int i = 0; i < 5; i++) { Over *p = new Over; used(p); delete p; } }
static NOINLINE void call_expression_array()
{ for (int i = 0; i < 5; i++) { int *p = new int[10]; used(p); delete[] p; } }
static NOINLINE void call_expression_cookie()
{ for (int i = 0; i < 5; i++) { Counted *p = new Counted[10]; used(p); delete[] p; } }
static NOINLINE void call_expression_over_array()
{ for (int i = 0; i < 5; i++) { Over *p = new Over[2]; used(p); delete[] p; } }
static NOINLINE void call_expression_placement()
{ alignas(Counted) static char room[64]; for (int i = 0; i < 5; i++) { Counted *p = new (room) Counted; used(p); p->~Counted(); } }
"""
EXPRESSION_SIZES = {"new": 4, "over": 256, "array": 40, "cookie": 88, "over_array": 512, "placement": None}


def function_of(entry):
    """The function that calls @entry, and how many of its blocks stay."""
    if entry.frees:
        body = f"void *p = {entry.partner}({entry.size}); {entry.call()}"
    elif entry.family == "xallocx":
        body = f"void *p = keep_malloc({entry.size}); {entry.call()} free(p);"
    elif entry.reallocates:
        body = f"void *p = keep_malloc(24); {entry.call()} used(p); if (i % 2) free(p);"
    else:
        body = f"void *p; {entry.call()} used(p); if (i % 2) {entry.partner};"
    return (f"static NOINLINE void call_{entry.name}()\n"
            f"{{ if (!is_here((void *)f_{entry.name}, \"{entry.name}\")) return; puts(\"{entry.name}\"); "
            f"for (int i = 0; i < {entry.calls}; i++) {{ {body} }} }}")


def failing_of(entry):
    """Calls that get nothing, twice: null, or an exception."""
    big = "(size_t)1 << 62"
    if entry.throws and entry.arguments in ("s", "sa") and "nothrow" not in entry.name:
        body = f"void *p = NULL; try {{ {entry.call(size=big)} }} catch (const std::bad_alloc &) {{ }} used(p);"
    else:
        body = f"void *p = NULL; {entry.call(size=big)} if (p) abort();"
    return (f"static NOINLINE void fail_{entry.name}()\n"
            f"{{ if (!is_here((void *)f_{entry.name}, \"{entry.name}\")) return; puts(\"{entry.name}\"); "
            f"for (int i = 0; i < 2; i++) {{ {body} }} }}")


def fails(entry):
    """Whether the program lets @entry fail, too: not with a count, which every allocator checks first."""
    return not entry.frees and "p" not in entry.arguments and "n" not in entry.arguments and \
        entry.family not in ("valloc", "pvalloc") and not entry.name.endswith("_small")


def source():
    lines = [HEAD, EXPRESSIONS]
    lines += [entry.prototype() for entry in ENTRIES]
    lines += [function_of(entry) for entry in ENTRIES]
    lines += [failing_of(entry) for entry in ENTRIES if fails(entry)]
    lines.append("int main(int argc, char **argv)\n{\n"
                 "\tstatic char out[1 << 16];\n\tsetvbuf(stdout, out, _IOFBF, sizeof(out));\n"
                 "\tif (argc < 2) return 2;\n"
                 "\tif (getenv(\"ALLOCATOR\")) library = dlopen(getenv(\"ALLOCATOR\"), RTLD_NOW | RTLD_NOLOAD);\n"
                 "\tif (strchr(argv[1], 'w')) { puts(\"ready\"); fflush(stdout); if (getchar() != '\\n') return 3; }\n"
                 "\tif (mi_heap_new) heap = mi_heap_new();\n"
                 "\tif (strchr(argv[1], 'c')) {")
    lines += [f"\t\tcall_{entry.name}();" for entry in ENTRIES]
    lines.append("\t}\n\tif (strchr(argv[1], 'e')) {")
    lines += [f"\t\tcall_expression_{name}();" for name in EXPRESSION_SIZES]
    lines.append("\t}\n\tif (strchr(argv[1], 'f')) {")
    lines += [f"\t\tfail_{entry.name}();" for entry in ENTRIES if fails(entry) and not entry.throws]
    lines.append("\t}\n\tif (strchr(argv[1], 't')) {")
    lines += [f"\t\tfail_{entry.name}();" for entry in ENTRIES if fails(entry) and entry.throws]
    lines.append("\t}\n\treturn 0;\n}\n")
    return "\n".join(lines)


FLAGS = ["-std=c++17", "-O1", "-g", "-fno-builtin", "-fno-optimize-sibling-calls", "-Wl,-z,dynamic-undefined-weak",
         "-Wno-address", "-faligned-new"]


C_HEAD = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))
#define is_here(function, name) (function)

static void used(void *p) { __asm__ volatile("" : : "r"(p) : "memory"); }
static NOINLINE void *keep_malloc(size_t size) { void *p = malloc(size); used(p); return p; }
"""

# Those that a C library may have, and what all have.
C_LIBRARY = ("malloc", "calloc", "realloc", "reallocarray", "posix_memalign", "aligned_alloc", "memalign", "valloc", "free")
C_ENTRIES = [entry for entry in ENTRIES
             if entry.name in (*C_LIBRARY, "pvalloc", "cfree", "reallocf", "free_sized", "free_aligned_sized")]


def build_c(directory, name, compiler, *flags):
    """The same of the C library's functions alone, with that compiler."""
    path = pathlib.Path(directory, name)
    lines = [C_HEAD]
    lines += [entry.prototype().replace('extern "C" ', "") for entry in C_ENTRIES]
    lines += [function_of(entry) for entry in C_ENTRIES]
    lines.append("int main(int argc, char **argv)\n{\n\tstatic char out[1 << 12];\n"
                 "\tsetvbuf(stdout, out, _IOFBF, sizeof(out));\n"
                 "\tif (argc > 1 && *argv[1] == 'w') { puts(\"ready\"); fflush(stdout); if (getchar() != '\\n') return 3; }"
                 "\n\tfree(malloc(1));")
    lines += [f"\tcall_{entry.name}();" for entry in C_ENTRIES]
    lines.append("\treturn 0;\n}\n")
    path.with_suffix(".c").write_text("\n".join(lines))
    subprocess.run([compiler, "-O1", "-fno-builtin", "-fno-optimize-sibling-calls", "-Wl,-z,dynamic-undefined-weak", "-w",
                    *flags, *[f"-Wl,-u,{function}" for function in C_LIBRARY if "-static" in flags],
                    "-o", path, path.with_suffix(".c")], check=True)
    return path


def build(directory, name, *libraries):
    """Compiles the program and links it to @libraries."""
    path = pathlib.Path(directory, name)
    path.with_suffix(".cpp").write_text(source())
    subprocess.run(["g++", *FLAGS, "-o", path, path.with_suffix(".cpp"), "-Wl,--no-as-needed", *libraries],
                   check=True)
    return path


def library(name):
    """The path of the shared library whose name begins so, None where it is not installed."""
    found = [path for directory in ("/usr/lib/x86_64-linux-gnu", "/usr/lib")
             for path in sorted(pathlib.Path(directory).glob(f"{name}.so.[0-9]*"))]
    found = [path for path in found if re.fullmatch(rf"{re.escape(name)}\.so\.\d+", path.name)]
    return found[0] if found else None
