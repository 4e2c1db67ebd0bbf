# SPDX-License-Identifier: GPL-3.0-or-later
"""`allocprof serve --otlp`: what a collector gets, in sum, is what `report` says of the recording, whatever the collector answers."""

import gzip
import http.server
import os
import pathlib
import re
import signal
import sys
import threading
import time

import pytest

from serving import Serve, report, total
from support import Obedient, unavailable, wait_until

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import otlp  # noqa: E402

PATH = "/v1development/profiles"


class Collector(http.server.ThreadingHTTPServer):
    """Answers as @answers say, each once, and then takes everything. @taken are bodies that it has taken, @times when a request came."""

    daemon_threads = True

    def __init__(self, messages, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.messages = messages
        self.answers, self.requests, self.taken, self.times = [], [], [], []
        self.stopped = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def taken_samples(self):
        return [sample for data in list(self.taken) for sample in self.messages.read(data)[1]]

    def totals(self):
        """Of what was allocated in all pushes, and of what was alive in the last."""
        sums = otlp.totals(sample for sample in self.taken_samples() if sample.type.startswith("alloc_"))
        last = self.messages.read(self.taken[-1])[1] if self.taken else []
        return sums | otlp.totals(sample for sample in last if sample.type.startswith("inuse_"))

    def close(self):
        self.stopped.set()
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in {"Content-Type": "application/x-protobuf", "Content-Length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        collector = self.server
        collector.times.append(time.monotonic())
        data = self.rfile.read(int(self.headers["Content-Length"]))
        collector.requests.append((self.path, dict(self.headers)))
        answer = collector.answers.pop(0) if collector.answers else accept
        answer(self, gzip.decompress(data) if self.headers["Content-Encoding"] == "gzip" else data)


def accept(handler, data, body=b"", **headers):
    handler.server.taken.append(data)
    handler.reply(200, body, **headers)


def refuse(status, message=b"", **headers):
    """An answer with a Status of google.rpc, whose field 2 is a message."""
    return lambda handler, data: handler.reply(status, b"\x12" + bytes([len(message)]) + message if message else b"", **headers)


def close(handler, _):
    handler.close_connection = True
    handler.connection.close()


def be_silent(handler, _):
    handler.server.stopped.wait()


@pytest.fixture
def messages(tmp_path):
    if why := otlp.missing():
        unavailable(why)
    directory = tmp_path / "messages"
    directory.mkdir()
    return otlp.Messages(directory)


@pytest.fixture
def collector(messages):
    server = Collector(messages)
    yield server
    server.close()


@pytest.fixture
def sleeper(runner, target):
    return Obedient(runner, [target("sleeper")])


def push(runner, allocprof, tmp_path, sleeper, collector, **env):
    serve = Serve(runner, allocprof, tmp_path, f"--otlp={collector.url}", "--otlp-interval=1s", "-o", tmp_path / "kept",
                  target=sleeper.pid, env=env)
    # It counts from the first answer on.
    serve.metrics()
    return serve


def ask_all(sleeper):
    sleeper.ask("alloc 1000")
    sleeper.ask("keep 300")
    sleeper.ask("release 100")


EXPECTED = {"alloc_objects": 1300, "alloc_space": 1000 * 32 + 300 * 48, "inuse_objects": 200, "inuse_space": 200 * 48}


def hold_to_report(run, allocprof, serve, collector):
    """What was pushed is what the last recording on disk has."""
    whole = report(run, allocprof, serve.files()[-1])
    assert collector.totals() == {name: whole["all"][figure] for name, figure in {
        "alloc_objects": "allocations", "alloc_space": "bytes", "inuse_objects": "live", "inuse_space": "live_bytes"}.items()}
    by_caller = {}
    for sample in collector.taken_samples():
        if sample.type == "alloc_objects":
            by_caller[sample.stack[0]] = by_caller.get(sample.stack[0], 0) + sample.value
    assert by_caller == {"main": 1000, "keep": 300}


def test_pushes_are_what_report_says(run, runner, allocprof, tmp_path, sleeper, collector):
    serve = push(runner, allocprof, tmp_path, sleeper, collector, OTEL_EXPORTER_OTLP_HEADERS="x-scope-orgid=a%20b, x-two=2",
                 OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=test,host.name=other")
    sleeper.ask("alloc 1000")
    wait_until(lambda: collector.totals().get("alloc_objects") == 1000, "the calls are pushed")
    sleeper.ask("keep 300")
    wait_until(lambda: collector.totals().get("alloc_objects") == 1300, "the others are pushed, and no call twice")
    sleeper.ask("release 100")
    serve.end()
    assert collector.totals() == EXPECTED
    hold_to_report(run, allocprof, serve, collector)
    for path, headers in collector.requests:
        assert path == PATH and headers["Content-Type"] == "application/x-protobuf" and headers["Content-Encoding"] == "gzip"
        assert headers["x-scope-orgid"] == "a b" and headers["x-two"] == "2" and headers["User-Agent"].startswith("allocprof/")
    resource = collector.taken_samples()[0].resource
    assert resource["service.name"] == resource["process.executable.name"] == "sleeper" and resource["process.pid"] == sleeper.pid
    assert resource["deployment.environment.name"] == "test" and resource["host.name"] == "other"
    spans = []
    for data in collector.taken:
        message, _ = collector.messages.read(data)
        strings = message.dictionary.string_table
        for profile in message.resource_profiles[0].scope_profiles[0].profiles:
            if strings[profile.sample_type.type_strindex] == "alloc_space":
                spans.append((profile.time_unix_nano, profile.time_unix_nano + profile.duration_nano))
            elif strings[profile.sample_type.type_strindex] == "inuse_space":
                assert not profile.duration_nano
    assert len(spans) == 2 and all(begin < end <= time.time_ns() for begin, end in spans) and spans[0][1] <= spans[1][1]


# libcurl asks again by itself where a connection is shut that has been used before.
LATER = {"429": [refuse(429, Retry_After=2)], "502": [refuse(502)], "503": [refuse(503, b"wait\x1b[1m")], "504": [refuse(504)], "closes": [close],
         "silent": [be_silent], "often": [close, refuse(503), refuse(429)]}


@pytest.mark.fast("429", "closes", "silent")
@pytest.mark.parametrize("name", LATER)
def test_what_is_not_taken_goes_with_the_next(run, runner, allocprof, tmp_path, sleeper, collector, name):
    """It is said once, counted, and a pause that the collector asks for is kept."""
    collector.answers = list(LATER[name])
    serve = push(runner, allocprof, tmp_path, sleeper, collector, OTEL_EXPORTER_OTLP_TIMEOUT="500")
    ask_all(sleeper)
    wait_until(lambda: collector.totals() == EXPECTED, "all is pushed")
    wait_until(lambda: "profiles are pushed again" in serve.said(), "it is said")
    assert serve.said().count("profiles are pushed later: ") == 1, serve.said()
    if name == "503":
        assert "profiles are pushed later: HTTP 503: wait?[1m\n" in serve.said()
    if name == "429":
        assert collector.times[1] - collector.times[0] >= 2
    metrics = wait_until(lambda: total(now := serve.metrics(), "otlp_accepted_total") and now, "it is counted")
    assert total(metrics, "otlp_postponed_total") == len(LATER[name]) and total(metrics, "otlp_dropped_total") == 0
    serve.end()
    hold_to_report(run, allocprof, serve, collector)


DROPPED = {"400": (refuse(400, b"no such thing"), "HTTP 400: no such thing"), "404": (refuse(404), "HTTP 404"), "500": (refuse(500), "HTTP 500"),
           "redirect": (refuse(307, Location="http://127.0.0.1:9/"), "HTTP 307"),
           "long": (lambda handler, data: handler.reply(200, bytes(100000)), "its answer is too long")}


@pytest.mark.fast("400", "long")
@pytest.mark.parametrize("name", DROPPED)
def test_what_is_refused_is_dropped(runner, allocprof, tmp_path, sleeper, collector, name):
    """Not pushed again, said, and counted; what comes later is pushed."""
    answer, why = DROPPED[name]
    sleeper.ask("keep 1")
    collector.answers = [answer]
    serve = push(runner, allocprof, tmp_path, sleeper, collector)
    sleeper.ask("keep 10")
    wait_until(lambda: f"profiles are dropped: {why}\n" in serve.said(), "it is said")
    sleeper.ask("alloc 5")
    wait_until(lambda: collector.totals().get("alloc_objects"), "later ones are pushed")
    assert collector.totals()["alloc_objects"] == 5 and collector.totals()["inuse_objects"] == 10
    metrics = wait_until(lambda: total(now := serve.metrics(), "otlp_accepted_total") and now, "it is counted")
    assert total(metrics, "otlp_dropped_total") == 1 and total(metrics, "otlp_postponed_total") == 0
    serve.end()


def test_partial_success(runner, allocprof, tmp_path, sleeper, collector):
    """What is not taken is not pushed again: that is counted and said with the collector's words."""
    response = collector.messages.service.ExportProfilesServiceResponse()
    response.partial_success.rejected_profiles = 3
    response.partial_success.error_message = "too many labels"
    warning = collector.messages.service.ExportProfilesServiceResponse()
    warning.partial_success.error_message = "use another port"
    collector.answers = [lambda handler, data: accept(handler, data, response.SerializeToString()),
                         lambda handler, data: accept(handler, data, warning.SerializeToString())]
    serve = push(runner, allocprof, tmp_path, sleeper, collector)
    sleeper.ask("keep 10")
    wait_until(lambda: "the collector has not taken all profiles: too many labels\n" in serve.said(), "it is said")
    wait_until(lambda: "profiles are pushed again" in serve.said(), "the others are taken")
    metrics = serve.metrics()
    assert total(metrics, "otlp_rejected_profiles_total") == 3 and total(metrics, "otlp_postponed_total") == 0
    assert collector.totals()["alloc_objects"] == 10
    serve.end()


def test_collector_that_comes_later(run, runner, allocprof, tmp_path, sleeper, messages):
    """And one that goes: SIGTERM ends the server all the same, and in time."""
    first = Collector(messages)
    first.close()
    serve = push(runner, allocprof, tmp_path, sleeper, first)
    ask_all(sleeper)
    wait_until(lambda: "profiles are pushed later: " in serve.said(), "it is said")
    assert re.search(r"profiles are pushed later: .*[Cc]onnect", serve.said())
    second = Collector(messages, first.server_address[1])
    try:
        wait_until(lambda: second.totals() == EXPECTED, "all is pushed")
        second.answers = [refuse(503)] * 1000
        sleeper.ask("keep 1")
        serve.end()
        assert serve.said().count("profiles are pushed later: HTTP 503\n") == 1
    finally:
        second.close()


def test_signal_ends_the_last_push(runner, allocprof, tmp_path, sleeper, collector):
    """Its collector is silent: the second signal does not wait for it."""
    serve = push(runner, allocprof, tmp_path, sleeper, collector, OTEL_EXPORTER_OTLP_TIMEOUT="600000")
    collector.answers = [be_silent] * 1000
    sleeper.ask("keep 10")
    wait_until(lambda: len(collector.requests) > len(collector.taken), "a push waits")
    serve.process.send_signal(signal.SIGTERM)
    wait_until(lambda: "allocprof-http" not in serve.children(), "the server ends")
    wait_until(lambda: serve.process.poll() is not None or serve.process.send_signal(signal.SIGTERM), "the server has ended")
    assert serve.process.returncode == 0, serve.said()


def test_process_that_pushes(runner, allocprof, tmp_path, sleeper, collector):
    """It has no privileges, and another one goes on when it is killed: from there, so that nothing is pushed twice."""
    serve = push(runner, allocprof, tmp_path, sleeper, collector)
    sleeper.ask("keep 10")
    wait_until(lambda: collector.totals().get("alloc_objects") == 10, "the calls are pushed")
    pid = serve.children()["allocprof-otlp"]
    status = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
    assert {status[f"Cap{name}"] for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2" and "0" not in status["Uid"].split()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: serve.children().get("allocprof-otlp", pid) != pid, "another one pushes")
    wait_until(lambda: "profiles are pushed again" in serve.said(), "it goes on")
    sleeper.ask("alloc 7")
    wait_until(lambda: collector.totals()["alloc_objects"] > 10, "what comes is pushed")
    assert collector.totals()["alloc_objects"] == 17 and collector.totals()["inuse_objects"] == 10
    assert "the process that pushes has ended; it is started again" in serve.said()
    serve.end()


def test_push_alone(runner, allocprof, tmp_path, sleeper, collector):
    """Without --listen, and with everything else by the environment."""
    log = tmp_path / "log"
    process = runner.start([allocprof, "serve", "--no-debuginfod", "--otlp=env", "--otlp-interval=1s", "-p", sleeper.pid],
                           env={"OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT": f"{collector.url}/other", "OTEL_SERVICE_NAME": "shop",
                                "OTEL_EXPORTER_OTLP_PROFILES_COMPRESSION": "none", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"},
                           stderr=log.open("wb"))
    # Nothing tells when it counts.
    def is_pushed():
        assert process.poll() is None, log.read_text()
        sleeper.ask("keep 1")
        return collector.taken

    wait_until(is_pushed, "it is pushed")
    path, headers = collector.requests[0]
    assert path == "/other" and "Content-Encoding" not in headers
    assert {sample.resource["service.name"] for sample in collector.taken_samples()} == {"shop"}
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert log.read_text() == "allocprof: pushing profiles every 1 s\n"


@pytest.mark.parametrize("words, env, why", [
    ("--otlp=collector:4318", {}, "is no address of a collector"), ("--otlp=env --otlp-interval=1ms", {}, "a second or more"),
    ("--listen 127.0.0.1:0 --otlp-interval=1s", {}, "means nothing without --otlp"), ("--otlp=env --series 5", {}, "mean nothing without --listen"),
    ("--otlp=env", {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "speaks http/protobuf alone"),
    ("--otlp=env", {"OTEL_EXPORTER_OTLP_COMPRESSION": "zstd"}, "there are gzip and none"),
    ("--otlp=env", {"OTEL_EXPORTER_OTLP_TIMEOUT": "1s"}, "is no number of milliseconds"),
    ("--otlp=env", {"OTEL_EXPORTER_OTLP_HEADERS": "a"}, "no list of name=value"),
    ("--otlp=env", {"OTEL_EXPORTER_OTLP_HEADERS": "a=b%0d%0ac: d"}, "no list of name=value"),
    ("--otlp=env", {"OTEL_RESOURCE_ATTRIBUTES": "=b"}, "no list of name=value")], ids=str)
def test_usage(run, allocprof, words, env, why):
    result = run([allocprof, "serve", "-p", "1", *words.split()], env=env)
    assert result.status == 64 and why in result.stderr.decode() and result.stderr.count(b"\n") == 1, result
