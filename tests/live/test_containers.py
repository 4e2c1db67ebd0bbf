# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes in containers, by the container's name or id (--container), with what is executed in it later; and what recordings call
their control groups (--by=cgroup). The containers are Podman's, with their own mounts, processes and control group."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from measured import Recorder
from support import Obedient, Recording, control_group, unavailable, wait_until, wait_until_counting

NAME = f"ap{os.getpid()}web"
# For files of containers that nobody runs.
ID = "0123456789abcdef" * 4


class Podman:
    """Keeps its files in a directory of the test's."""

    def __init__(self, runner, directory):
        if not shutil.which("podman"):
            unavailable("podman is not installed: scripts/setup --test")
        self.runner = runner
        self.argv = ["podman", "--root", directory / "root", "--runroot", directory / "run", "--tmpdir", directory / "tmp",
                     "--cgroup-manager", "cgroupfs", "--runtime", "runc"]

    def run(self, *words):
        return self.runner.run([*self.argv, *words], expect=0).stdout.decode().strip()

    def start(self, *words):
        """What is executed in a container; it obeys, and ends with its input."""
        return Obedient(self.runner, [*self.argv, *words])


def uses(directory):
    """Whether some process has it among its arguments: conmon has Podman clean up after a container."""
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if os.fsencode(directory) in path.read_bytes():
                return True
    return False


@pytest.fixture
def podman(runner, directory):
    made = Podman(runner, directory)
    yield made
    made.run("rm", "--all", "--force", "--time", "0")
    wait_until(lambda: not uses(directory / "root"), "Podman has cleaned up")


@pytest.fixture
def system(target, directory):
    """The root directory of containers, with the program sleeper and its libraries."""
    root = directory / "system"
    for made in ("proc", "sys", "dev", "tmp", "etc", "run"):
        (root / made).mkdir(parents=True)
    libraries = subprocess.run(["ldd", target("sleeper")], check=True, stdout=subprocess.PIPE, text=True).stdout
    for path in re.findall(r"(/\S+) \(0x", libraries):
        (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, root / path[1:])
    shutil.copy(target("sleeper"), root / "sleeper")
    return root


def begin(podman, system, name, *words):
    return podman.start("run", "--interactive", "--name", name, "--network", "none", "--ulimit", "nofile=1024:1024", "--ulimit",
                        "nproc=1024:1024", *words, "--rootfs", system, "/sleeper")


def calls_by_group(data):
    rows = Recording(data).database.execute("SELECT name, sum(calls) FROM calls JOIN control_groups USING (process) "
                                            "WHERE function = 'malloc' AND bytes = 32 * calls GROUP BY name")
    return dict(rows.fetchall())


@pytest.mark.parametrize("words", [[], ["--uidmap", "0:100000:65536"]], ids=["root", "users"])
def test_container(runner, allocprof, podman, system, tmp_path, words):
    """What runs in it, and what is executed in it later, is measured; other containers are not. Functions are those of its files."""
    os.chmod(system.parent, 0o755)
    if words:
        # The user root of the container has another number outside.
        runner.run(["chown", "-R", "100000:100000", system], expect=0)
    first, other = begin(podman, system, NAME, *words), begin(podman, system, "other")
    number = podman.run("inspect", "--format", "{{.Id}}", NAME)
    for i, word in enumerate((NAME, number[:12], number)):
        data = tmp_path / f"{i}"
        recorder = Recorder(runner, [allocprof, "record", "-o", data, "--container", word])
        later = podman.start("exec", "--interactive", NAME, "/sleeper")
        first.ask("alloc 10")
        later.ask("alloc 5")
        other.ask("alloc 100")
        later.exit()
        recorder.finish()
        assert calls_by_group(data) == {NAME: 15}
        folded = runner.run([allocprof, "folded", "--by=cgroup", data], expect=0).stdout.decode()
        assert re.search(f"^{NAME};.*;main;malloc 15$", folded, re.MULTILINE), folded
    assert f"control group {NAME}\n" in runner.run([allocprof, "report", "--by=cgroup", data], expect=0).stdout.decode()
    for process in (first, other):
        process.exit()


def test_two_in_one_recording(runner, allocprof, podman, system, tmp_path):
    """Costs are told apart by container, also with --where."""
    processes = [begin(podman, system, name) for name in ("one", "two")]
    pids = [podman.run("inspect", "--format", "{{.State.Pid}}", name) for name in ("one", "two")]
    data = tmp_path / "data"
    recorder = Recorder(runner, [allocprof, "record", "-o", data, "-p", ",".join(pids)])
    for i, process in enumerate(processes):
        process.ask(f"alloc {i + 3}")
    recorder.finish()
    for process in processes:
        process.exit()
    assert calls_by_group(data) == {"one": 3, "two": 4}
    folded = runner.run([allocprof, "folded", "--where", "cgroup = 'two'", "--by=cgroup", data], expect=0).stdout
    assert folded.startswith(b"two;") and folded.endswith(b" 4\n") and folded.count(b"\n") == 1


# Where others keep the names of their containers, by the directory that holds the file.
FILES = {
    "docker": ("/var/lib/docker", f"containers/{ID}/config.v2.json", {"ID": ID, "Name": "/web"}),
    "containerd": ("/run/containerd", f"io.containerd.runtime.v2.task/k8s.io/{ID}/config.json",
                   {"ociVersion": "1.1.0", "annotations": {"io.kubernetes.cri.container-name": "web"}}),
}


@pytest.fixture
def place(runner, target):
    """place(path) is a process that obeys, in a new control group of this path."""
    with contextlib.ExitStack() as stack:
        top = stack.enter_context(control_group())

        def begin_there(path):
            group = top
            for part in pathlib.Path(path).parts:
                group = group / part
                group.mkdir()
                stack.callback(group.rmdir)
            process = Obedient(runner, [target("sleeper")])
            stack.callback(lambda: wait_until(lambda: not (group / "cgroup.procs").read_text(), "the group is empty"))
            stack.callback(lambda: runner.end(process.process))
            (group / "cgroup.procs").write_text(str(process.pid))
            return process

        yield begin_there


class InMounts(Recorder):
    """allocprof, which sees the directory @shown at @path."""

    def __init__(self, runner, shown, path, argv):
        self.process = runner.start(["unshare", "--mount", "sh", "-c", 'mkdir -p "$1" && mount --bind "$0" "$1" && shift && exec "$@"',
                                     shown, path, *argv], stderr=subprocess.PIPE)
        wait_until_counting(argv[0], self.process)


@pytest.mark.parametrize("written", ["right", "damaged"])
@pytest.mark.parametrize("kind", FILES)
def test_names_in_files(runner, allocprof, place, tmp_path, kind, written):
    """Of a container whose file says nothing the id is the name."""
    mounted, path, content = FILES[kind]
    file = tmp_path / "mounted" / path
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(content) if written == "right" else '{"Name": 7, "annotations": []}')
    process = place(f"{kind}-{ID}.scope")
    data = tmp_path / "data"
    name = "web" if written == "right" else ID[:12]
    recorder = InMounts(runner, tmp_path / "mounted", mounted, [allocprof, "record", "-o", data, "--container", name])
    process.ask("alloc 5")
    recorder.finish()
    assert calls_by_group(data) == {name: 5}


@pytest.mark.parametrize("path, option, name", [
    ("system.slice/nginx.service", "--unit", "nginx.service"),
    ("user.slice/user-7.slice/session-1.scope/below", "--unit", "session-1.scope"),
    ("lxc.payload.web", "--cgroup", "lxc.payload.web"),
])
def test_names_of_groups(runner, allocprof, place, tmp_path, path, option, name):
    process = place(path)
    data = tmp_path / "data"
    recorder = Recorder(runner, [allocprof, "record", "-o", data, option, name])
    process.ask("alloc 5")
    recorder.finish()
    assert calls_by_group(data) == {name: 5}


def test_monitor(runner, allocprof, place, tmp_path):
    """Who watches a container has its id in the name of its group, and is not in it."""
    inside, monitor = place(f"machine.slice/libpod-{ID}.scope"), place(f"libpod-conmon-{ID}.scope")
    data = tmp_path / "data"
    recorder = Recorder(runner, [allocprof, "record", "-o", data, "--container", ID[:12]])
    inside.ask("alloc 5")
    monitor.ask("alloc 7")
    recorder.finish()
    assert calls_by_group(data) == {ID[:12]: 5}


def test_named_group(runner, allocprof, place, tmp_path):
    """runc names a container's group as the container; a unit of such a name is another thing."""
    container, unit = place(NAME), place(f"{NAME}.service")
    data = tmp_path / "data"
    recorder = Recorder(runner, [allocprof, "record", "-o", data, "--container", NAME])
    container.ask("alloc 5")
    unit.ask("alloc 7")
    recorder.finish()
    assert calls_by_group(data) == {NAME: 5}
    refused = runner.run([allocprof, "stat", "--container", f"{NAME}.service"], expect=125).stderr.decode()
    assert f"no process that runs now is in the container {NAME}.service" in refused


@pytest.mark.parametrize("words, status, sentence", [
    (["--container", "nobody's"], 125, "no process that runs now is in the container nobody's; podman ps, docker ps or crictl ps"),
    (["--container", ""], 125, "'' is no control group"),
    (["--container", "a", "--unit", "b"], 64, "--container and --unit cannot be used together; give one control group"),
    (["--container", "a", "true"], 64, "--container and the command 'true' cannot be used together"),
])
def test_refused(runner, allocprof, words, status, sentence):
    assert sentence in runner.run([allocprof, "stat", *words], expect=status).stderr.decode()
