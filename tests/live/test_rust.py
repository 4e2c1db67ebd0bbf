# SPDX-License-Identifier: GPL-3.0-or-later
"""The crate of bindings/rust: regions, and figures that the program reads, as in C (test_regions, test_figures, test_tasks)."""

import pathlib
import shutil

import pytest

from support import SOURCE, unavailable
from test_figures import LIVE, COUNTS, PROBES, answers, assert_equal, read_by_program
from test_regions import assert_regions, own_figures, stat

CRATE = SOURCE / "bindings" / "rust"
MANIFEST = """
[package]
name = "{name}"
version = "0.1.0"
edition = "2021"

[dependencies]
allocprof = {{ path = "{crate}" }}
{dependencies}

[features]
tokio = [{tokio}]
"""
# Debian's crates, which are all that there is.
REGISTRY = """
[source.crates-io]
replace-with = "debian"

[source.debian]
directory = "/usr/share/cargo/registry"
"""


@pytest.fixture
def built(cargo, tmp_path):
    def build(name, level, dependencies="", **features):
        (tmp_path / "src").mkdir()
        features = {"tokio": "", **features}
        (tmp_path / "Cargo.toml").write_text(MANIFEST.format(name=name, crate=CRATE, dependencies=dependencies, **features))
        shutil.copy(SOURCE / "tests/targets" / f"{name}.rs", tmp_path / "src" / "main.rs")
        cargo("build", *(["--all-features"] if dependencies else []), *(["--release"] if level == "release" else []), cwd=tmp_path,
              expect=0)
        return tmp_path / "target" / level / name
    return build


ENGINES = pytest.mark.engines("uprobe", "preload")
LEVELS = pytest.mark.parametrize("level", ["debug", "release"])
PLAIN_OR_LIVE = pytest.mark.parametrize("live", [[], ["--live"]], ids=["plain", "live"])


@pytest.mark.covering(2)
@ENGINES
@pytest.mark.fast("preload-nest-release-plain", "panic-release-live")
@PLAIN_OR_LIVE
@LEVELS
@pytest.mark.parametrize("way", ["nest", "recurse", "leave", "panic"])
def test_regions(run, allocprof, built, tmp_path, engine, way, level, live):
    report, result = stat(run, allocprof, tmp_path, live, [built("regions", level), way])
    assert_regions(report, own_figures(result.stdout), live, knows_bytes=way != "panic")
    read = read_by_program(result.stdout)
    if engine == "uprobe":
        assert set(answers(read).values()) == {PROBES}
        return
    for name in own_figures(result.stdout):
        assert read[name]["answer"] == (LIVE if live else COUNTS)
        assert_equal(read[name], report["regions"][name], live)


@pytest.mark.engines("preload")
@pytest.mark.fast("preload-release")
@LEVELS
def test_within(run, allocprof, built, tmp_path, level):
    """What is read is what stat counts within the function in the same run, of the process, its thread and its regions."""
    report, result = stat(run, allocprof, tmp_path, ["--live", "--within", "regions::nest"], [built("regions", level), "panic"])
    read = read_by_program(result.stdout)
    # nest() runs 3 times.
    assert read["process"]["allocations"] == 15
    assert_equal(read["process"], report, True)
    assert_equal(read["thread"], report, True)
    for name in ("parse", "emit", "write"):
        assert_equal(read[name], report["regions"][name], True)


@pytest.mark.covering(2)
@ENGINES
@pytest.mark.fast("preload-release-live")
@PLAIN_OR_LIVE
@LEVELS
def test_futures(run, allocprof, built, tmp_path, engine, level, live):
    """1,000 futures in 4 threads, among others, each with figures of its own."""
    report, result = stat(run, allocprof, tmp_path, live, [built("tasks", level)])
    assert (b'answer Ok("read")' if engine == "preload" else b"answer Err(Probes)") in result.stdout
    assert_regions(report, own_figures(result.stdout), live)


@pytest.mark.slow
@ENGINES
def test_tokio(run, allocprof, built, tmp_path, engine):
    """The same with the executor that programs have."""
    if not list(pathlib.Path("/usr/share/cargo/registry").glob("tokio-1*")):
        unavailable("librust-tokio-dev is not installed: scripts/setup --test")
    (tmp_path / ".cargo").mkdir()
    (tmp_path / ".cargo" / "config.toml").write_text(REGISTRY)
    program = built("tasks", "release", 'tokio = { version = "1", features = ["rt-multi-thread"], optional = true }', tokio='"dep:tokio"')
    report, result = stat(run, allocprof, tmp_path, ["--live"], [program])
    assert (b'answer Ok("read")' if engine == "preload" else b"answer Err(Probes)") in result.stdout
    assert_regions(report, own_figures(result.stdout), True)


def test_nobody(run, built):
    assert b"answer Err(Nobody)" in run([built("tasks", "debug")], expect=0).stdout


@pytest.mark.engines("preload")
def test_documented(allocprof, cargo, tmp_path, monkeypatch):
    """The examples in its documentation run, measured and not."""
    shutil.copytree(CRATE, tmp_path / "crate")
    cargo("test", cwd=tmp_path / "crate", expect=0)
    monkeypatch.setenv("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", f"{allocprof} stat --engine=preload --")
    assert b"allocations" in cargo("test", cwd=tmp_path / "crate", expect=0).stderr


def test_guard_stays_in_its_thread(run, built, cargo, tmp_path):
    """A region that is held over an await is refused where the future may go to another thread."""
    built("tasks", "debug")
    (tmp_path / "src" / "main.rs").write_text("""
fn send<T: Send>(_: T) {}
async fn nothing() {}
fn main() {
    send(async {
        allocprof::region!("held");
        nothing().await;
    });
}
""")
    assert b"future cannot be sent between threads safely" in cargo("build", cwd=tmp_path, expect=101).stderr
