// swift-tools-version:5.9
// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
import PackageDescription

let package = Package(
    name: "Allocprof",
    products: [.library(name: "Allocprof", targets: ["Allocprof"])],
    targets: [
        // It includes <allocprof.h>, which is installed with allocprof; elsewhere: swift build -Xcc -IDIRECTORY
        .target(name: "CAllocprof"),
        .target(name: "Allocprof", dependencies: ["CAllocprof"]),
    ])
