# SPDX-License-Identifier: GPL-3.0-or-later
"""Allocates in each way in which Python comes to a function, and prints of each allocation what the interpreter itself says
that its frames are. test_python_frames.py runs it, and compares. It waits for a line first, which names shapes that it leaves out."""

import ast
import asyncio
import contextlib
import contextvars
import ctypes
import functools
import importlib.util
import json
import os
import re
import signal
import sys
import tempfile
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

FIRST, STEP = 2_000_003, 1009
temporary = tempfile.TemporaryDirectory()
directory = temporary.name
planted = []
lock = threading.Lock()
c_library = ctypes.CDLL(None)
c_library.malloc.argtypes = [ctypes.c_size_t]
c_library.malloc.restype = ctypes.c_void_p
with_lock = ctypes.PyDLL(None)
with_lock.malloc.argtypes = [ctypes.c_size_t]
with_lock.malloc.restype = ctypes.c_void_p


def size_of(shape, frame):
    """A size that no other allocation has; notes what frames its caller has."""
    frames = []
    while frame:
        code = frame.f_code
        frames.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno or 0])
        frame = frame.f_back
    with lock:
        size = FIRST + len(planted) * STEP
        planted.append({"shape": shape, "size": size, "frames": frames})
    return size


def plant(shape):
    bytearray(size_of(shape, sys._getframe()) - 1)


# Each is a shape, by the name of the function.
shapes = []


def shape(function):
    shapes.append(function)
    return function


@shape
def plain():
    plant("plain")


@shape
def without_the_lock():
    c_library.malloc(size_of("without the lock", sys._getframe()))


@shape
def without_the_lock_in_a_thread():
    thread = threading.Thread(target=without_the_lock)
    thread.start()
    thread.join()


@shape
def by_ctypes():
    with_lock.malloc(size_of("by ctypes", sys._getframe()))


@shape
def recursion(depth=12):
    if depth:
        return recursion(depth - 1)
    return plant("recursion")


@shape
def several_lines():
    plant(
        "several "
        "lines"
    )
    for i in range(3):
        plant(f"loop {i}"); plant(f"same line {i}")


def numbers():
    yield 1
    plant("generator")
    yield from inner_numbers()


def inner_numbers():
    plant("inner generator")
    yield 2


@shape
def generators():
    for _ in numbers():
        pass
    list(plant("generator expression") for _ in range(1))
    sum(len(str(plant("nested expression"))) for _ in (0 for _ in range(1)))


async def leaf(name):
    await asyncio.sleep(0)
    plant(name)


async def ticks():
    plant("async generator")
    yield 1


@contextlib.asynccontextmanager
async def manager():
    plant("async context manager")
    yield


async def tasks():
    await leaf("coroutine")
    await asyncio.gather(leaf("task"), leaf("other task"))
    async for _ in ticks():
        plant("async for")
    async with manager():
        pass
    await asyncio.get_running_loop().run_in_executor(None, plant, "executor")


@shape
def asynchronous():
    asyncio.run(tasks())


@shape
def c_callbacks():
    sorted([1, 2], key=lambda x: plant("sorted") or 0)
    list(map(lambda x: plant("map"), [1]))
    list(filter(lambda x: plant("filter"), [1]))
    max([1], key=lambda x: plant("max") or 0)
    functools.reduce(lambda a, b: plant("reduce"), [1, 2])
    functools.partial(plant, "partial")()
    re.sub("a", lambda m: plant("re.sub") or "", "a")
    json.loads("{}", object_hook=lambda o: plant("object_hook"))
    contextvars.copy_context().run(plant, "context")
    "{}".format(Shown())
    f"{Shown()}"
    any(plant("any") for _ in [1])
    next(iter(lambda: plant("iter"), 1))


class Shown:
    def __format__(self, spec):
        plant("__format__")
        return ""


@shape
def foreign_callback():
    compare_t = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

    def compare(a, b):
        plant("ctypes callback")
        return 0
    array = (ctypes.c_int * 2)(2, 1)
    c_library.qsort(array, 2, 4, compare_t(compare))


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **words):
        return function(*args, **words)
    return wrapper


@shape
@decorated
@decorated
def decorators():
    plant("decorators")


@shape
def texts():
    exec("\n\n\nplant('exec')")
    exec(compile("def f():\n\n  plant('in exec')\nf()", "<text>", "exec"), globals())
    eval("plant('eval')")
    tree = ast.parse("plant('ast')")
    ast.increment_lineno(tree, 5000)
    exec(compile(tree, "<tree>", "exec"))


@shape
def same_place():
    """Code objects that take the place of others: same names, same size, other lines."""
    for i in range(40):
        exec(compile("\n" * (i % 7) + f"plant('place {i:03}')", f"<place {i % 3}>", "exec"))
        exec(f"def of_{i % 2}():\n{chr(10) * (i % 5)} plant('function {i:03}')\nof_{i % 2}()")


@shape
def threads():
    thread = threading.Thread(target=plant, args=("thread",))
    thread.start()
    thread.join()
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(plant, [f"pool {i}" for i in range(6)]))


class Meta(type):
    def __call__(cls, *args):
        plant("metaclass")
        return super().__call__(*args)


class Base:
    def __init__(self):
        plant("__init__ of the base")


class Thing(Base, metaclass=Meta):
    def __new__(cls):
        plant("__new__")
        return super().__new__(cls)

    def __init__(self):
        super().__init__()
        plant("__init__")
        self.kept = [1]

    @property
    def value(self):
        plant("property")

    @classmethod
    def of_class(cls):
        plant("classmethod")

    @staticmethod
    def of_nothing():
        plant("staticmethod")

    def __getattr__(self, name):
        plant("__getattr__")
        return 1

    def __add__(self, other):
        plant("__add__")

    def __call__(self):
        plant("__call__")

    def __enter__(self):
        plant("__enter__")

    def __exit__(self, *what):
        plant("__exit__")

    def __eq__(self, other):
        plant("__eq__")
        return True

    def __hash__(self):
        plant("__hash__")
        return 1

    def __iter__(self):
        plant("__iter__")
        return iter([])

    def __len__(self):
        plant("__len__")
        return 1

    def __del__(self):
        plant("__del__")


class Simple:
    def __init__(self, name):
        self.name = name
        plant(name)


@shape
def class_bodies():
    class Here:
        plant("class body")

        class Inner:
            plant("inner class body")


@shape
def classes():
    thing = Thing()
    thing.value
    thing.of_class()
    thing.of_nothing()
    thing.missing
    thing + 1
    thing()
    with thing:
        plant("with")
    thing == 1
    {thing}
    list(thing)
    bool(thing)
    for i in range(40):
        Simple(f"simple {i}")


@shape
def ends():
    Thing()
    weakref.finalize(Simple("finalized"), plant, "finalize")


@contextlib.contextmanager
def managed():
    plant("before yield")
    yield
    plant("after yield")


@shape
def managers():
    with managed(), contextlib.ExitStack() as stack:
        stack.callback(plant, "exit stack")


@shape
def exceptions():
    try:
        raise ValueError
    except ValueError:
        plant("except")
    finally:
        plant("finally")
    try:
        failing(3)
    except KeyError:
        plant("caught")


def failing(n):
    try:
        if n:
            failing(n - 1)
        else:
            {}[1]
    finally:
        plant(f"unwinding {n}")


@shape
def comprehensions():
    [plant("list") for _ in range(1)]
    {plant("set") for _ in range(1)}
    {1: plant("dict") for _ in range(1)}
    [[plant("nested") for _ in range(1)] for _ in range(1)]
    (lambda x=plant("default"): plant("lambda"))()


@shape
def importing():
    path = os.path.join(directory, "mödule_é.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write("import __main__\n\n__main__.plant('import')\n\n\ndef größe_名():\n    __main__.plant('names')\n")
    spec = importlib.util.spec_from_file_location("module_e", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.größe_名()


@shape
def signals():
    signal.signal(signal.SIGUSR2, lambda *_: plant("signal"))
    signal.raise_signal(signal.SIGUSR2)


@shape
def tracing():
    def trace(frame, event, argument):
        sys.settrace(None)
        plant("trace")
    sys.settrace(trace)
    traced()
    sys.settrace(None)


def traced():
    return 1


INNER = """
import json, sys
first, step, planted = {first}, {step}, []
def size_of(shape, frame):
    frames = []
    while frame:
        code = frame.f_code
        frames.append([code.co_qualname, code.co_filename, frame.f_lineno])
        frame = frame.f_back
    planted.append(dict(shape=shape, size=first + len(planted) * step, frames=frames))
    return planted[-1]["size"]
def plant():
    bytearray(size_of("subinterpreter", sys._getframe()) - 1)
class Here:
    def __init__(self):
        plant()
Here()
[plant() for _ in range(1)]
with open({path!r}, "w") as file:
    json.dump(planted, file)
"""


@shape
def interpreters():
    """Those of another interpreter do not know of the frames that called it. Each has the addresses and numbers of the last one."""
    for name in "_interpreters", "_xxsubinterpreters":
        if importlib.util.find_spec(name):
            module = importlib.import_module(name)
            break
    path = os.path.join(directory, "inner")
    for i in range(5):
        number = module.create()
        module.run_string(number, "\n" * i + INNER.format(first=1_000_003 + 10 * i * STEP, step=STEP, path=path))
        module.destroy(number)
        with open(path) as file:
            planted.extend(json.load(file))


def main():
    print("ready", flush=True)
    left_out = sys.stdin.readline().split()
    for function in shapes:
        if function.__name__ not in left_out:
            function()
    json.dump({"version": sys.version_info[:2], "planted": planted}, sys.stdout)


main()
