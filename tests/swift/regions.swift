// SPDX-License-Identifier: GPL-3.0-or-later
// Marks regions by the package of bindings/swift. It says what it allocated in each, as tests/targets/regions.h does, and what it read
// of it: "read NAME answer=N allocations=N ...".
import Allocprof
import Glibc

struct Own {
    var entered = 0, allocations = 0, reallocations = 0, deallocations = 0
    var asked = 0, allocated = 0, grown = 0, freed = 0, shrunk = 0
}

let names: [StaticString] = ["parse", "emit", "write"]
var own = [Own(), Own(), Own()]
var inside = [0, 0, 0]
// The first time the runtime allocates in it for types and the like.
var isWarm = false

// The compiler knows nothing of it, so that no call is left out.
@inline(never) func take(_ size: Int) -> UnsafeMutableRawPointer {
    for i in 0..<3 where inside[i] > 0 {
        own[i].allocations += 1
        own[i].asked += size
        own[i].allocated += size
    }
    return malloc(size)!
}

@inline(never) func resize(_ block: UnsafeMutableRawPointer, _ before: Int, _ size: Int) -> UnsafeMutableRawPointer {
    for i in 0..<3 where inside[i] > 0 {
        own[i].reallocations += 1
        own[i].asked += size
        own[i].grown += max(size - before, 0)
        own[i].shrunk += max(before - size, 0)
    }
    return realloc(block, size)!
}

@inline(never) func give(_ block: UnsafeMutableRawPointer, _ size: Int) {
    for i in 0..<3 where inside[i] > 0 {
        own[i].deallocations += 1
        own[i].freed += size
    }
    free(block)
}

func scope<T>(_ i: Int, _ body: () throws -> T) rethrows -> T {
    inside[i] += 1
    own[i].entered += 1
    defer { inside[i] -= 1 }
    return try Allocprof.region(isWarm ? names[i] : "warm_up", body)
}

struct Failure: Error {
    let code: Int
}

@inline(never) func nest() {
    scope(0) {
        let block = take(10)
        scope(1) {
            var inner = take(20)
            scope(2) {
                inner = resize(inner, 20, 50)
                inner = resize(inner, 50, 5)
            }
            give(inner, 5)
        }
        scope(0) { give(take(30), 30) }
        give(block, 10)
    }
}

func recurse(_ depth: Int) {
    scope(2) {
        give(take(100 + depth), 100 + depth)
        if depth > 0 {
            recurse(depth - 1)
        }
        give(take(200 + depth), 200 + depth)
    }
}

func fails(_ failure: Error) throws {
    try scope(1) {
        give(take(7), 7)
        throw failure
    }
}

func say(_ name: String, _ reading: Reading) {
    var answer = 1
    var figures = Figures()
    switch reading {
    case .success(let read): figures = read
    case .failure(.nobody): answer = 0
    case .failure(.probes): answer = -1
    case .failure(.noRegions): answer = -2
    case .failure(.incomplete(let read)): (answer, figures) = (-3, read)
    case .failure(.notBegun): answer = -4
    }
    print("read \(name) answer=\(answer) allocations=\(figures.allocations) reallocations=\(figures.reallocations)",
          "deallocations=\(figures.deallocations) bytes_allocated=\(figures.bytes_allocated)",
          "bytes_reallocated=\(figures.bytes_reallocated) bytes_deallocated=\(figures.bytes_deallocated) live=\(figures.live)",
          "live_bytes=\(figures.live_bytes) peak_bytes=\(figures.peak_bytes) temporary=\(figures.temporary)",
          "temporary_bytes=\(figures.temporary_bytes) entered=\(figures.entered)")
}

// It is made in no region.
let failure: Error = Failure(code: 3)

func all() -> Reading {
    let (_, thread) = Allocprof.measure {
        nest()
        recurse(4)
        give(take(1000), 1000)
    }
    do {
        try fails(failure)
    } catch {
        give(take(2000), 2000)
    }
    return thread
}

_ = all()
own = [Own(), Own(), Own()]
// The array of constants is copied when it is written first.
own[0].entered = 0
isWarm = true
let thread = all()
let regions = names.map { Allocprof.readRegion($0) }
say("thread", thread)
for (name, reading) in zip(names, regions) {
    say("\(name)", reading)
}
say("misspelt", Allocprof.readRegion("prase"))
for (name, own) in zip(names, own) {
    print("\(name) entered=\(own.entered) allocations=\(own.allocations) reallocations=\(own.reallocations)",
          "deallocations=\(own.deallocations) asked=\(own.asked) allocated=\(own.allocated) grown=\(own.grown)",
          "freed=\(own.freed) shrunk=\(own.shrunk)")
}
