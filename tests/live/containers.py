# SPDX-License-Identifier: GPL-3.0-or-later
"""A container as container engines make them: a root that is an overlay, namespaces of its own. And mounts that only
a test sees."""

import contextlib
import ctypes
import os
import subprocess

from support import CLONE_NEWNS, root_is_mount_point, unavailable

CONTAINER = """
set -e
mount --make-rprivate /
mount -t tmpfs none "$0"
mkdir "$0/upper" "$0/work" "$0/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$0/upper,workdir=$0/work" "$0/root"
mount -t proc proc "$0/root/proc"
mount --rbind /sys "$0/root/sys"
mount --rbind /dev "$0/root/dev"
mkdir -p "$0/root$1"
mount --bind "$1" "$0/root$1"
cd "$0/root"
mkdir -p before
pivot_root . before
umount -l /before
hostname container
shift
exec "$@"
"""


def in_container(tmp_path, argv):
    """Runs with a root of its own, which is an overlay, and namespaces of its own, as a privileged
    container; @tmp_path is there too."""
    root = tmp_path / "container"
    root.mkdir(exist_ok=True)
    return ["unshare", "--mount", "--pid", "--fork", "--uts", "--ipc", "--net", "--cgroup", "sh", "-c",
            CONTAINER, str(root), str(tmp_path), *[str(word) for word in argv]]


@contextlib.contextmanager
def own_mounts():
    """Meanwhile this process and what it starts have a mount namespace of their own."""
    if os.geteuid() != 0 or not root_is_mount_point():
        unavailable("not root, or / is no mount point: no mount namespace can be made")
    libc = ctypes.CDLL(None, use_errno=True)

    def call(function, *arguments):
        if function(*arguments):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    before = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    # setns(2) makes the namespace's root that of the process, which is another where it was in a chroot.
    root, directory = (os.open(path, os.O_PATH | os.O_CLOEXEC) for path in ("/", "."))
    try:
        call(libc.unshare, CLONE_NEWNS)
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        yield
    finally:
        call(libc.setns, before, CLONE_NEWNS)
        os.fchdir(root)
        os.chroot(".")
        os.fchdir(directory)
        for fd in (before, root, directory):
            os.close(fd)
