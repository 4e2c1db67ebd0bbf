# SPDX-License-Identifier: GPL-3.0-or-later
"""record --reachable of servers that answer requests meanwhile: these lose nothing, so whatever is called lost is in use."""

import pytest

from measured import Measured
from servers import Load, Nginx, Node, Postgresql, Redis
from support import Recording

# Looks before the recording's end.
LOOKS = 4


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("server", [Nginx, Node, Postgresql, Redis])
def test_nothing_is_lost(request, runner, run, allocprof, directory, tmp_path, engine, server):
    served = server(runner, directory, request.getfixturevalue("cluster") if server is Postgresql else None)
    data, dumps = tmp_path / "data", [tmp_path / f"dump{number}" for number in range(LOOKS)]
    with Load(served) as load:
        load.await_more()
        recording = Measured(runner, allocprof, served.pid, data, "record", "-q", "--reachable", engine=engine)
        for dump in dumps:
            served.keep()
            load.await_more()
            run([allocprof, "ctl", "-p", recording.process.pid, "dump", "-o", dump], expect=0)
        recording.finish()
        # The server goes on.
        load.await_more()
    served.end()
    for path in [*dumps, data]:
        recording = Recording(path)
        (lost, possibly, reachable), = recording.sql(
            "SELECT sum(lost + indirectly_lost), sum(possibly_lost), sum(reachable) FROM reach")
        assert possibly + reachable > 0 and lost == 0, (path, lost, possibly, reachable)
        assert "reach_unread" not in recording.gaps, recording.gaps
