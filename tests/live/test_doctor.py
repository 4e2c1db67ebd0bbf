# SPDX-License-Identifier: GPL-3.0-or-later
"""`allocprof doctor` names what prevents recordings, each with its remedy. The tests make the states: by mounts over the
kernel's files where this kernel has not got them, else as they come about."""

import os
import pathlib
import shutil

import pytest

import support
from support import unavailable

USER = 65531
TITLE = "Obstacles, certain and possible:"


def said(result):
    """The sentences of the obstacles."""
    lines = result.stdout.decode().splitlines()
    if TITLE not in lines:
        return []
    begin = lines.index(TITLE) + 1
    return [line.strip() for line in lines[begin:lines.index("", begin)]]


@pytest.fixture
def doctor(run, allocprof, public_directory):
    """doctor(words, files, mounts): runs it by @words, in a mount namespace in which @mounts are empty directories with
    @files in them, or these are mounted over files that there are."""
    copy = shutil.copy(allocprof, public_directory)

    def ran(*words, files=None, mounts=(), expect=None):
        script = ["set -e"]
        script += [f"mount -t tmpfs none {directory}" for directory in mounts]
        for number, (path, text) in enumerate((files or {}).items()):
            source = public_directory / f"file{number}"
            source.write_text(text)
            source.chmod(0o644)
            inside = any(path.startswith(f"{mount}/") for mount in mounts)
            script += [f"mkdir -p {os.path.dirname(path)}; cp {source} {path}" if inside else f"mount --bind {source} {path}"]
        argv = [*words, copy, "doctor"]
        if mounts or files:
            argv = ["unshare", "--mount", "sh", "-c", "\n".join([*script, 'exec "$@"']), "sh", *argv]
        return run(argv, expect=expect)
    return ran


def as_user(*capabilities, bounds=None):
    sets = ",".join(["-all", *("+" + name for name in capabilities)])
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", f"--inh-caps={sets}",
            f"--ambient-caps={sets}", *([f"--bounding-set={bounds}"] if bounds else [])]


def without_bpf():
    """bpf(2) fails, by a filter, although the process has all privileges."""
    return [support.target("without_bpf"), "bpf", "1"]


def test_nothing(doctor):
    """Where it works, nothing of it is said. The machine's own control group may be small."""
    done = doctor(expect=0)
    assert "Recording works here." in done.stdout.decode()
    assert not [line for line in said(done) if "control group" not in line]


def test_type_information(doctor):
    done = doctor(mounts=["/sys/kernel/btf"], expect=2)
    assert "type information       no" in done.stdout.decode()
    assert "use a kernel built with CONFIG_DEBUG_INFO_BTF" in done.stdout.decode()


@pytest.mark.parametrize("mode, is_said", [("none integrity [confidentiality]", True), ("none [integrity] confidentiality", False),
                                           ("[none] integrity confidentiality", False)])
def test_lockdown(doctor, mode, is_said):
    done = doctor(mounts=["/sys/kernel/security"], files={"/sys/kernel/security/lockdown": f"{mode}\n"})
    lines = [line for line in said(done) if "locked down" in line]
    assert bool(lines) == is_said
    assert all("lockdown=integrity" in line for line in lines)


def test_settings_of_the_kernel(doctor):
    """Without capabilities doctor says that these settings do not help."""
    done = doctor(*as_user(), expect=2, files={"/proc/sys/kernel/perf_event_paranoid": "3\n",
                                               "/proc/sys/kernel/unprivileged_bpf_disabled": "1\n"})
    line, = [line for line in said(done) if "perf_event_paranoid" in line]
    assert "perf_event_paranoid is 3" in line and "unprivileged_bpf_disabled 1;" in line


def test_settings_do_not_matter(doctor):
    """As it says: with the capabilities recording works, whatever these are."""
    done = doctor(*as_user("bpf", "perfmon", "sys_ptrace"), expect=0)
    assert not [line for line in said(done) if "perf_event_paranoid" in line]


@pytest.mark.parametrize("bounds, is_said", [
    ("-bpf,-sys_admin", True), ("-perfmon,-sys_admin", True), ("-sys_ptrace", True), ("-bpf,-perfmon", False)])
def test_bounding_set(doctor, bounds, is_said):
    """A container's root that was not given them cannot get them by sudo."""
    done = doctor("setpriv", f"--bounding-set={bounds}", expect=2 if is_said else 0)
    lines = [line for line in said(done) if "--cap-add" in line]
    assert bool(lines) == is_said and all("sudo does not help" in line for line in lines)


def test_seccomp(doctor):
    done = doctor(*without_bpf(), expect=2)
    line, = [line for line in said(done) if "seccomp" in line]
    assert "--security-opt seccomp=FILE" in line


def test_seccomp_of_perf_events(doctor):
    done = doctor(support.target("without_bpf"), "perf", "1", expect=2)
    line, = [line for line in said(done) if "seccomp" in line]
    assert "perf_event_open(2)" in line


@pytest.mark.slow  # the fast tests run in a plain chroot, too, in which none can be made
@pytest.mark.parametrize("way", ["unshare", "bwrap"])
def test_namespace_of_users(run, doctor, way):
    words = {"unshare": [*as_user(), "unshare", "-Ur"],
             "bwrap": [*as_user(), "bwrap", "--unshare-user", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]}[way]
    if not shutil.which(way):
        unavailable(f"{way} is not installed")
    if run([*words, "true"]).status:
        unavailable("no namespace of users can be made here")
    line, = [line for line in said(doctor(*words, expect=2)) if "namespace of users" in line]
    assert "userns-remap" in line and "--engine=preload" in line


def test_no_namespaces_of_users(doctor, run):
    """Where none can be made nothing is missing: workers need none."""
    limit = "/proc/sys/user/max_user_namespaces"
    if not os.path.exists(limit):
        unavailable("this kernel has no namespaces of users")
    done = doctor(expect=0, files={limit: "0\n"})
    assert not [line for line in said(done) if "control group" not in line]


@pytest.mark.parametrize("files, word, remedy", [
    ({"/sys/fs/selinux/enforce": "1"}, "SELinux is enforcing", "audit2allow"),
    ({"/sys/fs/selinux/enforce": "0"}, None, None),
], ids=["enforcing", "permissive"])
def test_selinux(doctor, files, word, remedy):
    """No kernel here has it: where bpf(2) is refused, and it is enforcing."""
    lines = [line for line in said(doctor(*without_bpf(), mounts=["/sys/fs"], files=files, expect=2)) if "SELinux" in line]
    assert bool(lines) == bool(word)
    assert all(word in line and remedy in line for line in lines)


@pytest.mark.parametrize("label, is_said", [("docker-default (enforce)", True), ("docker-default (complain)", False),
                                             ("unconfined", False)])
def test_apparmor(doctor, label, is_said):
    """The same, by the label that this process has."""
    done = doctor(*without_bpf(), mounts=["/sys/fs"], files={"/proc/$$/attr/current": f"{label}\n"}, expect=2)
    lines = [line for line in said(done) if "AppArmor" in line]
    assert bool(lines) == is_said
    assert all(label in line and "apparmor=unconfined" in line for line in lines)


@pytest.mark.parametrize("version, word, remedy", [
    ("Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016", "gVisor", "start the command with --engine=preload"),
    ("Linux version 5.15.90.1-microsoft-standard-WSL2 (oe-user@oe-host)", "WSL2", "wsl --update"),
    ("Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com)", "WSL1", "use WSL2"),
], ids=["gvisor", "wsl2", "wsl1"])
def test_other_kernels(doctor, version, word, remedy):
    """doctor recognises gVisor, WSL1 and WSL2 by /proc/version and names a remedy, unless recording works."""
    line, = [line for line in said(doctor(mounts=["/sys/kernel/btf"], files={"/proc/version": f"{version}\n"}, expect=2))
             if word in line]
    assert remedy in line
    assert not [line for line in said(doctor(files={"/proc/version": f"{version}\n"}, expect=0)) if word in line]


def test_old_kernel(doctor):
    if not shutil.which("setarch"):
        unavailable("setarch is not installed")
    line, = [line for line in said(doctor("setarch", os.uname().machine, "--uname-2.6", *without_bpf(), expect=2))
             if "older" in line]
    assert "Linux 2.6." in line and "RLIMIT_MEMLOCK" in line


@pytest.fixture
def small_group():
    """A control group with 100 MiB of memory, of either version."""
    for parent, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = pathlib.Path(parent, f"allocprof-test-{os.getpid()}")
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / limit).write_text(str(100 << 20))
            yield group
            return
        except OSError:
            continue
        finally:
            group.rmdir()
    unavailable("no control group with a limit of memory can be made here")


def test_memory(doctor, small_group):
    """The kernel counts maps of BPF programs there."""
    done = doctor("sh", "-c", f'echo $$ > {small_group}/cgroup.procs; exec "$@"', "sh", expect=0)
    line, = [line for line in said(done) if "control group" in line]
    assert "limited to 100 MiB" in line and "--max-live=163840" in line
