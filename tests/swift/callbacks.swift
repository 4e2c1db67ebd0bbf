// SPDX-License-Identifier: GPL-3.0-or-later
// Futures with callbacks, as SwiftNIO has them: callbacks N completes N chains of ten. With REGRESSION each completion makes a
// closure around each callback.

final class Future<Value> {
    private var value: Value?
    private var callbacks: [(Value) -> Void] = []

    func whenComplete(_ callback: @escaping (Value) -> Void) {
        if let value = self.value {
            callback(value)
        } else {
            self.callbacks.append(callback)
        }
    }

    @inline(never) func succeed(_ value: Value) {
        self.value = value
        #if REGRESSION
        let callbacks = self.callbacks.map { callback in { (value: Value) in callback(value) } } // the regression
        #else
        let callbacks = self.callbacks
        #endif
        self.callbacks = []
        for callback in callbacks {
            callback(value)
        }
    }

    @inline(never) func map<New>(_ transform: @escaping (Value) -> New) -> Future<New> {
        let future = Future<New>()
        self.whenComplete { future.succeed(transform($0)) }
        return future
    }
}

@inline(never) func chain() -> Int {
    let first = Future<Int>()
    var last = first, result = 0
    for _ in 0..<10 {
        last = last.map { $0 + 1 }
    }
    last.whenComplete { result = $0 }
    first.succeed(0)
    return result
}

var sum = 0
for _ in 0..<Int(CommandLine.arguments[1])! {
    sum += chain()
}
print(sum)
