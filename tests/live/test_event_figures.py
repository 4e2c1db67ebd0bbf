# SPDX-License-Identifier: GPL-3.0-or-later
"""What events.py works out of a log, on logs written by hand. Needs neither root nor a target."""

import mmap
import struct

import pytest

import events
from events import ENTER, IMAGE, RETURN, SPACE, Event, analyse

PROGRAM = 100


class Story:
    """A log that is told call by call; a stack is one letter."""

    def __init__(self):
        self.events = []
        self.spaces = {}
        self.image(PROGRAM)

    def add(self, kind, process, thread, **fields):
        event = Event(len(self.events), kind, process, thread or process,
                      self.spaces[process], **fields)
        self.events.append(event)
        return event

    def image(self, process):
        self.spaces[process] = 1 + max(self.spaces.values(), default=0)
        self.add(IMAGE, process, None)

    def fork(self, parent, child):
        space = self.spaces[parent]
        self.spaces[child] = 1 + max(self.spaces.values())
        self.add(SPACE, child, None, link=space)

    def vfork(self, parent, child):
        self.spaces[child] = self.spaces[parent]

    def enter(self, function, pointer=0, size=0, stack="s", thread=None, process=PROGRAM,
              overflow=False):
        return self.add(ENTER, process, thread, function=function, pointer=pointer, bytes=size,
                        overflow=overflow, stack=(("/program", ord(stack)),))

    def leave(self, enter, result):
        self.add(RETURN, enter.process, enter.thread, function=enter.function, pointer=result,
                 link=enter.number)

    def malloc(self, result, size, **where):
        self.leave(self.enter("malloc", size=size, **where), result)

    def realloc(self, pointer, size, result, **where):
        self.leave(self.enter("realloc", pointer, size, **where), result)

    def free(self, pointer, **where):
        self.enter("free", pointer, **where)

    def figures(self, **options):
        figures = analyse(self.events, **options)
        # What holds for any log.
        blocks, totals = figures.all_blocks, figures.all_totals
        assert blocks.live >= 0 and blocks.live_bytes >= 0
        assert blocks.allocations == totals.total_allocations
        assert blocks.bytes == totals.total_allocated_bytes
        assert blocks.peak_bytes >= blocks.live_bytes
        assert totals.bytes_allocated - totals.bytes_deallocated == \
            blocks.live_bytes + blocks.discarded_bytes
        lives = figures.lives
        assert len(lives) == blocks.allocations
        assert sum(life.bytes for life in lives if life.died_ns is None) == blocks.live_bytes
        assert sum(life.is_discarded for life in lives) == blocks.discarded
        return figures

    def stated(self, **options):
        return self.figures(**options).stated()


@pytest.fixture
def story():
    return Story()


def test_nothing(story):
    assert story.stated() == {}
    assert analyse([]).stated() == {}


def test_malloc_and_free(story):
    story.malloc(0x10, 5)
    story.malloc(0x20, 7)
    story.free(0x10)
    assert story.stated() == {
        "allocations": 2, "deallocations": 1, "bytes_allocated": 12, "bytes_deallocated": 5,
        "live": 1, "live_bytes": 7, "peak": 2, "peak_bytes": 12}
    totals = story.figures().all_totals
    assert (totals.calls, totals.total_allocations, totals.remaining_allocations,
            totals.total_allocated_bytes) == (3, 2, 1, 12)


def test_block_of_no_bytes(story):
    story.malloc(0x10, 0)
    assert story.stated() == {"allocations": 1, "live": 1, "peak": 1}


def test_free_of_null(story):
    story.free(0)
    figures = story.figures()
    assert figures.stated() == {}
    assert figures.all_calls.calls == 1


def test_failures(story):
    story.malloc(0, 1 << 60)
    story.leave(story.enter("calloc", overflow=True), 0)
    story.leave(story.enter("posix_memalign", 0x7ffe0000, 30), 0)
    assert story.stated() == {"failed": 3}
    assert story.figures().all_calls.bytes == 30


def test_posix_memalign_takes_no_block(story):
    """Its first argument is where the result goes."""
    story.malloc(0x7ffe0000, 3)
    story.leave(story.enter("posix_memalign", 0x7ffe0000, 30), 0x20)
    assert story.stated() == {"allocations": 2, "bytes_allocated": 33, "live": 2, "live_bytes": 33,
                              "peak": 2, "peak_bytes": 33}


def test_realloc_grows(story):
    story.malloc(0x10, 100, stack="m")
    story.realloc(0x10, 300, 0x20, stack="r")
    assert story.stated() == {
        "allocations": 1, "reallocations": 1, "bytes_allocated": 300, "bytes_reallocated": 200,
        "live": 1, "live_bytes": 300, "temporary": 1, "temporary_bytes": 100, "peak": 1,
        "peak_bytes": 300}
    _, blocks = story.figures().by(lambda key: chr(key.stack[0][1]))
    assert blocks["m"] == events.Blocks(allocations=1, bytes=100, frees=1, freed_bytes=100,
                                        temporary=1, temporary_bytes=100)
    assert blocks["r"] == events.Blocks(allocations=1, bytes=300, peak=1, peak_bytes=300)


def test_realloc_shrinks_in_place(story):
    story.malloc(0x10, 300)
    story.malloc(0x20, 1)
    story.realloc(0x10, 100, 0x10)
    story.free(0x10)
    assert story.stated() == {
        "allocations": 2, "deallocations": 1, "reallocations": 1, "bytes_allocated": 301,
        "bytes_deallocated": 300, "bytes_reallocated": -200, "live": 1, "live_bytes": 1,
        "temporary": 1, "temporary_bytes": 100, "peak": 2, "peak_bytes": 301}


def test_realloc_of_null_and_to_zero(story):
    story.realloc(0, 8, 0x10)
    story.realloc(0x10, 0, 0)
    story.realloc(0, 0, 0x20)
    assert story.stated() == {
        "allocations": 2, "deallocations": 1, "bytes_allocated": 8, "bytes_deallocated": 8,
        "live": 1, "temporary": 1, "temporary_bytes": 8, "peak": 1, "peak_bytes": 8}


def test_failed_realloc_keeps_the_block(story):
    story.malloc(0x10, 8)
    story.realloc(0x10, 1 << 60, 0)
    story.leave(story.enter("reallocarray", 0x10, overflow=True), 0)
    story.free(0x10)
    # No allocation came between.
    assert story.stated() == {
        "allocations": 1, "deallocations": 1, "failed": 2, "bytes_allocated": 8,
        "bytes_deallocated": 8, "temporary": 1, "temporary_bytes": 8, "peak": 1, "peak_bytes": 8}


def test_address_is_used_again_within_a_realloc(story):
    """Another thread gets the old address before the realloc has returned."""
    story.malloc(0x10, 100)
    enter = story.enter("realloc", 0x10, 200)
    story.malloc(0x10, 3, thread=7)
    story.leave(enter, 0x20)
    story.free(0x10, thread=7)
    assert story.stated() == {
        "allocations": 2, "deallocations": 1, "reallocations": 1, "bytes_allocated": 203,
        "bytes_deallocated": 3, "bytes_reallocated": 100, "live": 1, "live_bytes": 200,
        "temporary": 2, "temporary_bytes": 103, "peak": 2, "peak_bytes": 203}


def test_address_is_used_again_within_a_free(story):
    """The free is logged before the address can be handed out, whatever else happens between."""
    story.malloc(0x10, 1)
    waiting = story.enter("malloc", size=2, thread=7)
    story.free(0x10)
    story.leave(waiting, 0x10)
    assert story.stated()["live_bytes"] == 2


def test_temporary_is_of_one_thread(story):
    story.malloc(0x10, 1)
    story.malloc(0x20, 2, thread=7)
    story.free(0x10)  # the other thread's allocation does not matter
    story.free(0x20)  # by another thread
    story.malloc(0x30, 4)
    story.malloc(0x40, 8)
    story.free(0x30)
    story.free(0x40)
    figures = story.stated()
    assert (figures["temporary"], figures["temporary_bytes"]) == (2, 9)


def test_peak_and_who_has_part_in_it(story):
    story.malloc(0x10, 10, stack="a")
    story.malloc(0x20, 20, stack="b")
    story.free(0x10)
    story.malloc(0x30, 9, stack="c")
    story.malloc(0x40, 1, stack="d")  # 30 bytes once more; the first time counts
    story.free(0x20)
    _, blocks = story.figures().by(lambda key: chr(key.stack[0][1]))
    assert {stack: (b.peak, b.peak_bytes) for stack, b in blocks.items()} == {
        "a": (1, 10), "b": (1, 20), "c": (0, 0), "d": (0, 0)}
    assert [b.live_bytes for b in blocks.values()] == [0, 0, 9, 1]


def test_peak_is_of_the_tree(story):
    story.malloc(0x10, 10)
    story.fork(PROGRAM, 200)
    story.malloc(0x20, 20, process=200)
    story.free(0x10)
    figures = story.figures()
    assert figures.stated()["peak_bytes"] == 30
    assert figures.stated()["live_bytes"] == 20


def test_realloc_is_not_both_at_the_peak(story):
    story.malloc(0x10, 100)
    story.realloc(0x10, 120, 0x20)
    assert story.stated()["peak_bytes"] == 120


def test_fork(story):
    story.malloc(0x10, 1)
    story.malloc(0x20, 2)
    story.fork(PROGRAM, 200)
    story.free(0x10, process=200)
    story.malloc(0x10, 4, process=200)
    story.free(0x10, process=200)
    story.free(0x20)
    figures = story.figures()
    assert figures.stated() == {
        "allocations": 3, "deallocations": 2, "inherited": 1, "bytes_allocated": 7,
        "bytes_deallocated": 6, "live": 1, "live_bytes": 1, "temporary": 2, "temporary_bytes": 6,
        "peak": 3, "peak_bytes": 7}
    assert figures.totals[events.Process(PROGRAM, 1)].deallocations == 1
    assert figures.totals[events.Process(200, 0)].inherited == 1


def test_grandchild_inherits_too(story):
    story.malloc(0x10, 1)
    story.fork(PROGRAM, 200)
    story.malloc(0x20, 2, process=200)
    story.fork(200, 300)
    story.free(0x10, process=300)
    story.free(0x20, process=300)
    story.free(0x30, process=300)
    figures = story.stated()
    assert (figures["inherited"], figures["unknown"], figures["live"]) == (2, 1, 2)


def test_realloc_of_what_is_not_its_own(story):
    story.malloc(0x10, 10)
    story.fork(PROGRAM, 200)
    story.realloc(0x10, 40, 0x20, process=200)
    story.realloc(0x99, 5, 0x30, process=200)
    assert story.stated() == {
        "allocations": 1, "reallocations": 2, "inherited": 1, "unknown": 1, "bytes_allocated": 55,
        "bytes_reallocated": 45, "live": 3, "live_bytes": 55, "peak": 3, "peak_bytes": 55}


def test_vforked_child_shares_the_space(story):
    story.malloc(0x10, 1)
    story.vfork(PROGRAM, 200)
    story.free(0x10, process=200)
    story.malloc(0x20, 2, process=200)
    story.image(200)  # leaves the parent's blocks alone
    story.malloc(0x30, 4, process=200)
    story.free(0x20)
    assert story.stated() == {
        "allocations": 3, "deallocations": 2, "bytes_allocated": 7, "bytes_deallocated": 3,
        "live": 1, "live_bytes": 4, "peak": 2, "peak_bytes": 6}


def test_exec_discards(story):
    story.malloc(0x10, 10)
    story.malloc(0x20, 20)
    story.free(0x10)
    story.image(PROGRAM)
    story.malloc(0x20, 5)
    story.free(0x20)
    story.free(0x20)
    figures = story.figures()
    assert figures.stated() == {
        "allocations": 3, "deallocations": 2, "unknown": 1, "bytes_allocated": 35,
        "bytes_deallocated": 15, "temporary": 1, "temporary_bytes": 5, "discarded": 1,
        "discarded_bytes": 20, "peak": 2, "peak_bytes": 30}
    # Each image by itself.
    assert [t.allocations for t in figures.totals.values()] == [2, 1]


def test_lives(story):
    """Of a realloc's old block from return to entry, and discarded ones."""
    for ns, act in enumerate([
            lambda: story.malloc(0x10, 1), lambda: story.malloc(0x20, 2),
            lambda: story.realloc(0x10, 4, 0x10), lambda: story.free(0x20),
            lambda: story.image(PROGRAM), lambda: story.malloc(0x10, 8)]):
        before = len(story.events)
        act()
        story.events[before:] = [event._replace(ns=10 * ns + i) for i, event in
                                 enumerate(story.events[before:])]
    assert [(life.bytes, life.born_ns, life.died_ns, life.is_discarded)
            for life in story.figures().lives] == [
        (1, 1, 20, False), (2, 11, 30, False), (4, 21, 40, True), (8, 51, None, False)]


def test_exec_in_a_forked_child_discards_its_own_only(story):
    story.malloc(0x10, 10)
    story.fork(PROGRAM, 200)
    story.malloc(0x20, 20, process=200)
    story.image(200)
    figures = story.stated()
    assert (figures["discarded_bytes"], figures["live_bytes"]) == (20, 10)


def test_unfinished(story):
    """What was under way when the process died: the request has no answer, the block stays."""
    story.malloc(0x10, 10)
    story.enter("realloc", 0x10, 20)
    story.enter("malloc", size=5, thread=7)
    figures = story.figures()
    assert figures.unfinished == 2
    assert figures.stated() == {"allocations": 1, "bytes_allocated": 10, "live": 1,
                                "live_bytes": 10, "peak": 1, "peak_bytes": 10}


def test_exec_while_another_thread_is_within_realloc(story):
    story.malloc(0x10, 10)
    story.enter("realloc", 0x10, 20, thread=7)
    story.image(PROGRAM)
    figures = story.figures()
    assert figures.stated()["discarded_bytes"] == 10


def test_from_the_middle_of_a_log(story):
    """As for who attaches: what was there before is unknown."""
    story.malloc(0x10, 10)
    enter = story.enter("malloc", size=20)
    middle = len(story.events)
    story.leave(enter, 0x20)
    story.free(0x10)
    story.malloc(0x30, 30)
    assert analyse(story.events[middle:]).stated() == {
        "allocations": 1, "bytes_allocated": 30, "unknown": 1, "live": 1, "live_bytes": 30,
        "peak": 1, "peak_bytes": 30}


def test_selected(story):
    """Blocks of others are in no figure, whoever frees them, but are allocations of the thread."""
    story.malloc(0x10, 1, stack="a")
    story.malloc(0x20, 2, stack="b")
    story.malloc(0x30, 4, stack="b")
    story.free(0x10, stack="b")
    story.free(0x20, stack="a")
    assert story.stated(selected=lambda event: event.stack[0][1] == ord("a")) == {
        "allocations": 1, "deallocations": 1, "bytes_allocated": 1, "bytes_deallocated": 1,
        "peak": 1, "peak_bytes": 1}


def test_binary_form(tmp_path):
    """The layout, and that what was never finished is left out."""
    log = events.Log(tmp_path / "log", tmp_path / "lib.so")
    with open(log.path, "r+b") as file, mmap.mmap(file.fileno(), 0) as data:
        struct.pack_into("=5Q", data, 0, events.MAGIC, 0, 4, 3, 1)
        struct.pack_into("=I17s", data, events.MODULES_AT + 4 * events.MODULE_SIZE, 2, b"/nonexistent/none")
        struct.pack_into("=3Q", data, events.WORDS_AT, 1, 5 << 48 | 0x1234, 0x5678)
        for number, fields in enumerate([
                (IMAGE, 0, 0, 10, 11, 1, 0, 99, 0, 0, 0, 5),
                (ENTER, 3, 2, 10, 11, 1, 1, 100, 0xabc, 7, 1, 0),
                (0, 3, 2, 10, 11, 1, 1, 100, 0xabc, 7, 1, 0),
                (RETURN, 3, 0, 10, 11, 1, 0, 101, 0xdef, 0, 0, 1)]):
            events.EVENT.pack_into(data, events.EVENTS_AT + number * events.EVENT.size, *fields)
    assert log.position() == 4
    image, enter, leave = log.read()
    assert image == Event(0, IMAGE, 10, 11, 1, 99, stack=(("/nonexistent/none", 0),))
    assert enter == Event(1, ENTER, 10, 11, 1, 100, "reallocarray", 0xabc, 7, True,
                          (("/nonexistent/none", 0x1234), (None, 0x5678)), 0)
    assert leave == Event(3, RETURN, 10, 11, 1, 101, "reallocarray", 0xdef, 0, False, (), 1)
    assert log.read(1, 2) == [enter]


def test_not_a_log(tmp_path):
    log = events.Log(tmp_path / "log", tmp_path / "lib.so")
    with open(log.path, "r+b") as file:
        file.write(b"\0" * 8)
    with pytest.raises(ValueError, match="not a log"):
        log.read()
