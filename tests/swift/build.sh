#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Builds shapes.swift with Debian 13's Swift, for whatever Debian this is: build.sh DIRECTORY
#
# Makes a root of Debian 13 with debootstrap and the package swiftlang, which takes about a minute, the
# network and 4 GB below DIRECTORY, or below SWIFT_ROOT where that is set, where the root stays for the
# next time. Leaves in DIRECTORY shapes, lib/ with the libraries that it needs and their ld.so, and
# libswiftDemangle.so with what that needs in demangle/. To run:
#   DIRECTORY/lib/ld-linux-x86-64.so.2 --library-path DIRECTORY/lib DIRECTORY/shapes
set -eu
[ $# = 1 ] || {
	echo "usage: build.sh DIRECTORY" >&2
	exit 64
}
mkdir -p "$1"
source=$(cd "$(dirname "$0")" && pwd)
out=$(cd "$1" && pwd)
root=${SWIFT_ROOT-$out/root}
mirror=${DEBIAN_MIRROR-http://deb.debian.org/debian}
swift=/usr/libexec/swift

# in_root COMMAND: mounts that nobody else sees, and that end with it.
in_root() {
	# shellcheck disable=SC2016
	unshare --mount --propagation private sh -c '
		mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" &&
		exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TMPDIR=/tmp LC_ALL=C \
			DEBIAN_FRONTEND=noninteractive chroot "$0" "$@"' "$root" "$@" </dev/null
}

if [ ! -x "$root$swift/bin/swiftc" ]; then
	rm -rf "$root.new"
	trap 'rm -rf "$root.new"' EXIT
	debootstrap --variant=minbase trixie "$root.new" "$mirror" >"$out/debootstrap.log" 2>&1 || {
		tail -n 5 "$out/debootstrap.log" >&2
		exit 1
	}
	final=$root root=$root.new
	cp -L /etc/resolv.conf "$root/etc/resolv.conf"
	in_root sh -c 'apt-get update -qq && apt-get install -qq -y --no-install-recommends \
		swiftlang libc6-dev libstdc++-14-dev' >"$out/apt.log" 2>&1 || {
		tail -n 5 "$out/apt.log" >&2
		exit 1
	}
	rm -rf "$root/var/cache/apt/archives" "$root/var/lib/apt/lists" "$final"
	mv "$root" "$final"
	root=$final
	trap - EXIT
fi

cp "$source/shapes.swift" "$root/tmp/shapes.swift"
in_root "$swift/bin/swiftc" -O -g -parse-as-library -o /tmp/shapes /tmp/shapes.swift

# copy_with_libraries DIRECTORY FILE...: paths in the root
copy_with_libraries() {
	local to=$1 file

	shift
	mkdir -p "$to"
	for file; do
		in_root ldd "$file" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p; s/^\t\(\/[^ ]*\) .*/\1/p'
	done | sort -u | while read -r file; do
		cp -L "$root$file" "$to/$(basename "$file")"
	done
}

rm -rf "${out:?}/lib" "${out:?}/demangle"
copy_with_libraries "$out/lib" /tmp/shapes
copy_with_libraries "$out/demangle" "$swift/lib/libswiftDemangle.so" "$swift/bin/swift-demangle"
cp "$root$swift/lib/libswiftDemangle.so" "$root$swift/bin/swift-demangle" "$out/demangle/"
cp "$root/tmp/shapes" "$out/shapes"
