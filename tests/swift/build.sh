#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Builds shapes.swift, references.swift, callbacks.swift and types.swift, and regions.swift, tasks.swift and chains.swift with the package of bindings/swift, with Debian 13's Swift, for whatever Debian
# this is, unless that was done for these sources before: build.sh. Its last line is the directory with what it has built.
#
# Makes a root of Debian 13 with the package swiftlang by scripts/root, which takes some minutes, the network
# and 4 GB, and stays for the next time. In the directory are shapes, regions-debug and the like, lib/ with the libraries that it needs and
# their ld.so, and libswiftDemangle.so with what that needs in demangle/. To run:
#   DIRECTORY/lib/ld-linux-x86-64.so.2 --library-path DIRECTORY/lib DIRECTORY/shapes
set -eu
[ $# = 0 ] || {
	echo "usage: build.sh" >&2
	exit 64
}
source=$(cd "$(dirname "$0")" && pwd)
top=$source/../..
scripts=$top/scripts
swift=/usr/libexec/swift

"$scripts/root" make swift trixie swiftlang libc6-dev libstdc++-14-dev
root=$("$scripts/root" path swift)

# Programs have paths of it in them.
key=$(find "$source" "$top/include/allocprof.h" "$top/bindings/swift" -type f -print0 | sort -z | xargs -0 cat | sha256sum)
out=$root/var/cache/programs-${key:0:16}
exec 9>"$root.programs.lock"
flock 9
if [ -e "$out/whole" ]; then
	echo "$out"
	exit
fi
# Another checkout may be using its own.
find "$root/var/cache" -maxdepth 1 -name 'programs-*' -mtime +7 -exec rm -rf {} +
rm -rf "$out"
mkdir -p "$out"

in_root() {
	"$scripts/root" run swift "$@" </dev/null
}

cp "$source"/{shapes,references,callbacks,types}.swift "$root/tmp"
in_root "$swift/bin/swiftc" -O -g -parse-as-library -o /tmp/shapes /tmp/shapes.swift
in_root "$swift/bin/swiftc" -O -g -o /tmp/references /tmp/references.swift
# These find their ld.so and libraries themselves.
own=(-Xlinker "--dynamic-linker=$out/lib/ld-linux-x86-64.so.2" -Xlinker -rpath -Xlinker "$out/lib")
in_root "$swift/bin/swiftc" -O -g "${own[@]}" -o /tmp/callbacks /tmp/callbacks.swift
in_root "$swift/bin/swiftc" -O -g "${own[@]}" -D REGRESSION -o /tmp/callbacks-regression /tmp/callbacks.swift
for level in Onone O; do
	in_root "$swift/bin/swiftc" "-$level" -g -parse-as-library -module-name types "${own[@]}" -o "/tmp/types-$level" \
		/tmp/types.swift
done

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

# The package of bindings/swift, and programs that depend on it, in both configurations.
app=$root/tmp/allocprof-swift
rm -rf "$app"
for name in regions tasks; do
	mkdir -p "$app/Sources/$name"
	cp "$source/$name.swift" "$app/Sources/$name/main.swift"
done
mkdir -p "$app/Sources/chains"
cp "$source/chains.swift" "$app/Sources/chains"
cp -r "$top/bindings/swift" "$app/allocprof"
cp "$top/include/allocprof.h" "$app"
cat >"$app/Package.swift" <<'END'
// swift-tools-version:5.9
import PackageDescription
let dependencies: [Target.Dependency] = [.product(name: "Allocprof", package: "allocprof")]
let package = Package(
    name: "programs", dependencies: [.package(path: "allocprof")],
    targets: ["regions", "tasks", "chains"].map { .executableTarget(name: $0, dependencies: dependencies) })
END
for configuration in debug release; do
	in_root env -C /tmp/allocprof-swift HOME=/tmp/allocprof-swift "$swift/bin/swift" build --disable-sandbox \
		-c "$configuration" -Xcc -I/tmp/allocprof-swift
	for name in regions tasks chains; do
		cp "$app/.build/$configuration/$name" "$out/$name-$configuration"
	done
done

copy_with_libraries "$out/lib" /tmp/shapes /tmp/references /tmp/types-Onone \
	/tmp/allocprof-swift/.build/{debug,release}/{tasks,chains}
copy_with_libraries "$out/demangle" "$swift/lib/libswiftDemangle.so" "$swift/bin/swift-demangle"
cp "$root$swift/lib/libswiftDemangle.so" "$root$swift/bin/swift-demangle" "$out/demangle/"
cp "$root/tmp"/{shapes,references,callbacks,callbacks-regression,types-Onone,types-O} "$out"
touch "$out/whole"
echo "$out"
