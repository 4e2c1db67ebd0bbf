# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A plugin for pytest that limits what a test may allocate:

    @pytest.mark.limit_allocations(100)
    def test_parse():
        ...

Copy it beside conftest.py, write pytest_plugins = ["pytest_allocations"] there, and run

    PYTHONMALLOC=malloc allocprof stat --engine=preload python3 -m pytest

Without PYTHONMALLOC only objects of more than 512 bytes are counted, and what libraries allocate. Where nobody measures nothing is
checked; --allocations=required fails then."""

import ctypes
import functools

import pytest


class Figures(ctypes.Structure):
    """struct allocprof_figures of allocprof.h."""
    _fields_ = [("allocations", ctypes.c_uint64), ("reallocations", ctypes.c_uint64), ("deallocations", ctypes.c_uint64),
                ("bytes_allocated", ctypes.c_uint64), ("bytes_reallocated", ctypes.c_int64),
                ("bytes_deallocated", ctypes.c_uint64), ("live", ctypes.c_int64), ("live_bytes", ctypes.c_int64),
                ("peak_bytes", ctypes.c_uint64), ("temporary", ctypes.c_uint64), ("temporary_bytes", ctypes.c_uint64),
                ("entered", ctypes.c_uint64)]


# The library that allocprof loads into the process has it.
READ = getattr(ctypes.CDLL(None), "allocprof_read_", None)
FIGURES = [Figures() for _ in range(3)]
POINTERS = [ctypes.byref(figures) for figures in FIGURES]
SIZE = ctypes.c_ulong(ctypes.sizeof(Figures))


def requests(figures):
    return figures.allocations + figures.reallocations


class Last:
    """What the last measured function did."""
    answer = allocations = 0


def measured(function):
    """Calls the function and notes how often it allocated, without what the reading itself takes."""
    for pointer in POINTERS[:2]:
        before = READ(None, pointer, SIZE)
    try:
        return function()
    finally:
        after = READ(None, POINTERS[2], SIZE)
        first, second, last = map(requests, FIGURES)
        Last.answer = min(before, after)
        Last.allocations = max(0, last - second - (second - first))


def pytest_addoption(parser):
    parser.addoption("--allocations", choices=["required"], help="fail tests with limits where allocprof does not measure")


def pytest_configure(config):
    config.addinivalue_line("markers", "limit_allocations(most): the test fails if it allocates more often, by all threads")


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    marker = pyfuncitem.get_closest_marker("limit_allocations")
    if not marker or not READ and not pyfuncitem.config.getoption("--allocations"):
        yield
        return
    most, = marker.args
    function = pyfuncitem.obj

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        if not READ:
            pytest.fail("allocprof does not measure this process", pytrace=False)
        measured(lambda: function(*args, **kwargs))
        pyfuncitem.user_properties.append(("allocations", Last.allocations))
        if Last.answer < 0:
            pytest.fail(f"allocprof cannot tell: enum allocprof_answer of allocprof.h is {Last.answer}", pytrace=False)
        if Last.allocations > most:
            pytest.fail(f"allocated {Last.allocations:,} times, {most:,} are allowed", pytrace=False)

    pyfuncitem.obj = wrapped
    yield
    pyfuncitem.obj = function
