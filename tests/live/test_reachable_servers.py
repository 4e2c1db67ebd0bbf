# SPDX-License-Identifier: GPL-3.0-or-later
"""record --reachable of servers that answer requests meanwhile: these lose nothing, so whatever is called lost is in use."""

import os

import pytest

from measured import Measured
from servers import Load, Nginx, Node, Postgresql, Redis
from support import Recording

ATTACHMENTS = int(os.environ.get("ALLOCPROF_TRIES", 10))


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("server", [Nginx, Node, Postgresql, Redis])
def test_nothing_is_lost(request, runner, run, allocprof, directory, tmp_path, engine, server):
    served = server(runner, directory, request.getfixturevalue("cluster") if server is Postgresql else None)
    with Load(served) as load:
        load.await_more()
        for number in range(ATTACHMENTS):
            data, dump = tmp_path / f"data{number}", tmp_path / f"dump{number}"
            recording = Measured(runner, allocprof, served.pid, data, "record", "-q", "--reachable", engine=engine)
            served.keep()
            load.await_more()
            run([allocprof, "ctl", "-p", recording.process.pid, "dump", "-o", dump], expect=0)
            load.await_more()
            recording.finish()
            assert_nothing_is_lost(dump)
            assert_nothing_is_lost(data)
        # The server goes on.
        load.await_more()
    served.end()


def assert_nothing_is_lost(path):
    recording = Recording(path)
    (lost, possibly, reachable), = recording.sql(
        "SELECT sum(lost + indirectly_lost), sum(possibly_lost), sum(reachable) FROM reach")
    assert possibly + reachable > 0 and lost == 0, (path, lost, possibly, reachable)
    assert "reach_unread" not in recording.gaps, recording.gaps
