// SPDX-License-Identifier: GPL-3.0-or-later
// 1,000 tasks, among others that are not measured, by Allocprof.measured() of bindings/swift, which four threads resume. Prints by the
// number of suspensions how much more than its own calls a task was told, all different answers: "3 suspensions: 8 more", where the
// runtime allocates for each, and the sum, "sum allocations=N deallocations=N".
import Allocprof
import Glibc

final class Resumers: @unchecked Sendable {
    var waiting: [UnsafeContinuation<Void, Never>] = []
    var lock = pthread_mutex_t()
    var changed = pthread_cond_t()

    init(room: Int) {
        // It does not grow within a task.
        waiting.reserveCapacity(room)
        pthread_mutex_init(&lock, nil)
        pthread_cond_init(&changed, nil)
    }

    func add(_ continuation: UnsafeContinuation<Void, Never>) {
        pthread_mutex_lock(&lock)
        waiting.append(continuation)
        pthread_cond_signal(&changed)
        pthread_mutex_unlock(&lock)
    }

    func resumeForEver() {
        while true {
            pthread_mutex_lock(&lock)
            while waiting.isEmpty {
                pthread_cond_wait(&changed, &lock)
            }
            let next = waiting.removeLast()
            pthread_mutex_unlock(&lock)
            next.resume()
        }
    }
}

let resumers = Resumers(room: 2000)

@inline(never) func take(_ size: Int) -> UInt {
    UInt(bitPattern: malloc(size)!)
}

@inline(never) func give(_ block: UInt) {
    free(UnsafeMutableRawPointer(bitPattern: block))
}

// Keeps each block over a suspension, and has some more. Returns how many.
func work(_ i: Int) async -> Int {
    var own = 0
    for step in 0..<(5 + i % 3) {
        let block = take(100 + step)
        own += 1
        await withUnsafeContinuation { resumers.add($0) }
        for _ in 0..<(i % 50) {
            give(take(10))
            own += 1
        }
        give(block)
    }
    return own
}

func other() async {
    for _ in 0..<5 {
        give(take(1000))
        await withUnsafeContinuation { resumers.add($0) }
    }
}

for _ in 0..<4 {
    var thread = pthread_t()
    pthread_create(&thread, nil, { _ in
        resumers.resumeForEver()
        return nil
    }, nil)
}
let tasks = (0..<1000).map { i in
    Task { () -> (Int, Reading) in await Allocprof.measured("task") { await work(i) } }
}
let others = (0..<250).map { _ in Task { await other() } }
var more: [Int: Set<String>] = [:]
var allocations = 0
var deallocations = 0
for (i, task) in tasks.enumerated() {
    let (own, reading) = await task.value
    switch reading {
    case .success(let figures):
        let rest = (Int(figures.allocations) - own, Int(figures.deallocations) - own)
        more[5 + i % 3, default: []].insert(rest.0 == rest.1 ? "\(rest.0) more" : "\(rest) more")
        allocations += Int(figures.allocations)
        deallocations += Int(figures.deallocations)
    case .failure(let why):
        more[5 + i % 3, default: []].insert("\(why)")
    }
}
for task in others {
    await task.value
}
for (suspensions, answers) in more.sorted(by: { $0.key < $1.key }) {
    print("\(suspensions) suspensions: \(answers.sorted().joined(separator: ", "))")
}
print("sum allocations=\(allocations) deallocations=\(deallocations)")
