// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Regions of a program whose allocations `allocprof stat --engine=preload` and `allocprof check --engine=preload` count apart, and
// figures that the program reads itself: include/allocprof.h for Swift.
//
//     let (words, reading) = Allocprof.measure { parse("one two three") }
//     if case .success(let figures) = reading { assert(figures.allocations == 0) }
//
// It allocates nothing. Unmeasured a mark is a load and a branch.
import CAllocprof

/// What was counted; allocprof.h describes the fields.
public typealias Figures = allocprof_figures

/// Why there are no figures.
public enum Unread: Error {
    /// Nobody measures this process.
    case nobody
    /// Probes in the kernel count, which the program cannot read, and which see no region of Swift's: use --engine=preload.
    case probes
    /// This command counts no regions: stat and check do.
    case noRegions
    /// Calls were missed, so that these figures may be too low.
    case incomplete(Figures)
    /// Nobody has begun a region of this name, as where the name is misspelt.
    case notBegun
}

public typealias Reading = Result<Figures, Unread>

public enum Allocprof {
    /// Calls the function in the region. It cannot suspend, since other tasks would run in the region meanwhile.
    @inlinable
    public static func region<T>(_ name: StaticString, _ body: () throws -> T) rethrows -> T {
        let name = text(name)
        allocprof_swift_begin(name)
        defer { allocprof_swift_end(name) }
        return try body()
    }

    /// Reads what all threads of this process have done in the region so far.
    public static func readRegion(_ name: StaticString) -> Reading {
        read(text(name))
    }

    /// Reads what all threads of this process have done so far.
    public static func readProcess() -> Reading {
        read(nil)
    }

    /// Reads what the calling thread has done so far.
    public static func readThread() -> Reading {
        readRegion(":thread")
    }

    /// Calls the function, and returns its result with what this thread has done in it.
    @inlinable
    public static func measure<T>(_ body: () throws -> T) rethrows -> (T, Reading) {
        var task = allocprof_task()
        allocprof_task_enter_(&task)
        let result = try body()
        allocprof_task_leave_(&task)
        return (result, reading(task.answer, task.figures))
    }

    @usableFromInline
    static func text(_ name: StaticString) -> UnsafePointer<CChar> {
        UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self)
    }

    static func read(_ name: UnsafePointer<CChar>?) -> Reading {
        var figures = Figures()
        let answer = allocprof_read(name, &figures)
        return reading(answer, figures)
    }

    @usableFromInline
    static func reading(_ answer: CInt, _ figures: Figures) -> Reading {
        switch answer {
        case 1, 2: return .success(figures)
        case 0: return .failure(.nobody)
        case -1: return .failure(.probes)
        case -2: return .failure(.noRegions)
        case -3: return .failure(.incomplete(figures))
        default: return .failure(.notBegun)
        }
    }
}
