// SPDX-License-Identifier: GPL-3.0-or-later
// Async functions that allocate, and say which of them await each other: "SIZE: innermost < … < outermost", in the order of sizes.
// They are called directly, after suspensions, as children of a task group, after a continuation that another thread resumes, and on
// an actor. Closures are named "closure".
import Glibc

@inline(never) func take(_ size: Int) -> UInt {
    UInt(bitPattern: malloc(size)!)
}

@inline(never) func give(_ block: UInt) {
    free(UnsafeMutableRawPointer(bitPattern: block))
}

final class Said: @unchecked Sendable {
    private var lines: [Int: String] = [:]
    private var lock = pthread_mutex_t()

    func say(_ size: Int, _ chain: [String]) {
        pthread_mutex_lock(&lock)
        lines[size] = chain.reversed().joined(separator: " < ")
        pthread_mutex_unlock(&lock)
    }

    func printed() -> String {
        lines.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: "\n")
    }
}

let said = Said()

@inline(never) func allocate(_ size: Int, _ chain: [String]) {
    said.say(size, chain)
    give(take(size))
}

@inline(never) func leaf(_ size: Int, _ chain: [String]) async {
    allocate(size, chain + ["leaf"])
}

@inline(never) func suspends(_ size: Int, _ chain: [String]) async {
    await Task.yield()
    allocate(size, chain + ["suspends"])
    await leaf(size + 1, chain + ["suspends"])
    allocate(size + 2, chain + ["suspends"])
}

@inline(never) func nested(_ size: Int, _ depth: Int, _ chain: [String]) async {
    let chain = chain + ["nested"]
    if depth > 0 {
        await nested(size, depth - 1, chain)
    } else {
        await suspends(size, chain)
    }
    allocate(size + 10 + depth, chain)
}

@inline(never) func child(_ size: Int, _ chain: [String]) async -> Int {
    await suspends(size, chain + ["child"])
    return size
}

@inline(never) func group(_ chain: [String]) async {
    let chain = chain + ["group"]
    let sum = await withTaskGroup(of: Int.self) { group -> Int in
        for i in 0..<4 {
            // A child's chain begins with its own closure.
            group.addTask { await child(2000 + 10 * i, ["closure"]) }
        }
        var sum = 0
        for await size in group {
            sum += size
        }
        await leaf(2100, chain + ["closure"])
        return sum
    }
    allocate(2200 + sum % 2, chain)
}

@inline(never) func resumed(_ chain: [String]) async {
    let chain = chain + ["resumed"]
    let value = await withCheckedContinuation { (continuation: CheckedContinuation<Int, Never>) in
        let box = Unmanaged.passRetained(Box(continuation)).toOpaque()
        var thread = pthread_t()
        pthread_create(&thread, nil, { argument in
            Unmanaged<Box>.fromOpaque(argument!).takeRetainedValue().continuation.resume(returning: 1)
            return nil
        }, box)
        pthread_detach(thread)
    }
    allocate(3000 + value, chain)
    await leaf(3100, chain)
}

final class Box {
    let continuation: CheckedContinuation<Int, Never>
    init(_ continuation: CheckedContinuation<Int, Never>) {
        self.continuation = continuation
    }
}

actor Counter {
    var n = 0

    @inline(never) func hop(_ size: Int, _ chain: [String]) async {
        n += 1
        allocate(size, chain + ["hop"])
        await suspends(size + 1, chain + ["hop"])
        allocate(size + 4, chain + ["hop"])
    }
}

@inline(never) func visits(_ counter: Counter, _ chain: [String]) async {
    let chain = chain + ["visits"]
    await counter.hop(4000, chain)
    allocate(4100, chain)
}

@main struct Program {
    static func main() async {
        await leaf(1000, ["main"])
        await nested(1100, 5, ["main"])
        await group(["main"])
        await resumed(["main"])
        await visits(Counter(), ["main"])
        let task = Task.detached { await nested(5000, 20, ["closure"]) }
        await task.value
        print(said.printed())
    }
}
