// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Asynchronous work: a task leaves its thread where it suspends, and goes on in any other. An executor of its own runs each part of it.
#if compiler(>=6.0)
import CAllocprof
import Dispatch

@available(macOS 15, *)
final class MeasuringExecutor: TaskExecutor, @unchecked Sendable {
    let work: UnsafeMutablePointer<allocprof_swift_work>
    // A part has left before the next one begins.
    let queue = DispatchQueue(label: "allocprof")

    init(_ name: StaticString) {
        work = .allocate(capacity: 1)
        work.initialize(to: allocprof_swift_work())
        work.pointee.name = Allocprof.text(name)
    }

    deinit {
        work.deallocate()
    }

    func enqueue(_ job: consuming ExecutorJob) {
        // Whoever wakes it does not pay for the queue.
        let other = allocprof_swift_pause()
        let job = UnownedJob(job)
        queue.async { [self] in
            allocprof_swift_enter(work)
            job.runSynchronously(on: asUnownedTaskExecutor())
            allocprof_swift_leave(work)
        }
        if let other {
            allocprof_swift_enter(other)
        }
    }
}

@available(macOS 15, *)
extension Allocprof {
    /// Calls the function in the region, and returns its result with what it has done, in whichever threads, and tasks that it has
    /// awaited as its children. These run one at a time.
    public static func measured<T: Sendable>(
        _ name: StaticString, _ body: @Sendable () async throws -> T
    ) async rethrows -> (T, Reading) {
        let executor = MeasuringExecutor(name)
        let result = try await withTaskExecutorPreference(executor) {
            let result = try await body()
            // Before it goes on elsewhere, where the figures are read.
            allocprof_swift_leave(executor.work)
            return result
        }
        return (result, reading(executor.work.pointee.task.answer, executor.work.pointee.task.figures))
    }
}
#endif
