// SPDX-License-Identifier: GPL-3.0-or-later
// Allocations whose stacks have the names that Swift makes: of classes, closures, generics, protocols,
// extensions, collections that grow. Prints "done".

@inline(never) func keep<T>(_ value: T) {
    withExtendedLifetime(value) {}
}

class Shape {
    let name: String
    var numbers: (Int, Int, Int, Int) = (1, 2, 3, 4)

    init(_ name: String) {
        self.name = name
    }

    func draw() -> AnyObject {
        return self
    }
}

final class Circle: Shape {
    @inline(never) override func draw() -> AnyObject {
        return Shape("drawn")
    }
}

final class Holder<Element> {
    var element: Element
    var padding: (Int, Int, Int, Int, Int, Int) = (0, 0, 0, 0, 0, 0)

    init(_ element: Element) {
        self.element = element
    }
}

protocol Named {
    func made() -> [UInt8]
}

struct Plain: Named {
    let count: Int

    @inline(never) func made() -> [UInt8] {
        return [UInt8](repeating: 7, count: count)
    }
}

extension Array where Element == Int {
    @inline(never) func doubled() -> [Int] {
        return map { $0 * 2 }
    }
}

enum Trouble: Error {
    case large(Shape)
}

struct Counter {
    var values: [Int] = []

    var copy: [Int] {
        @inline(never) get { return values + [values.count] }
    }

    subscript(_ n: Int) -> String {
        @inline(never) get { return String(repeating: "y", count: n) }
    }
}

@inline(never) func class_instance(_ n: Int) {
    keep(Shape("plain"))
}

@inline(never) func virtual_call(_ shape: Shape) {
    keep(shape.draw())
}

@inline(never) func generic<T>(_ value: T) {
    keep(Holder(value))
}

@inline(never) func run(_ function: (Int) -> [UInt8], _ n: Int) {
    keep(function(n))
}

@inline(never) func closure(_ base: Int) {
    run({ n in [UInt8](repeating: 1, count: base + n) }, 5)
}

@inline(never) func escaping(_ n: Int) -> () -> Shape {
    let shape = Shape("held")
    return { n > 0 ? Shape("made") : shape }
}

@inline(never) func existential(_ named: any Named) {
    keep(named.made())
}

@inline(never) func array_growth(_ n: Int) {
    var list: [Int] = []
    for i in 0..<n {
        list.append(i)
    }
    keep(list)
}

@inline(never) func dictionary_growth(_ n: Int) {
    var table: [Int: String] = [:]
    for i in 0..<n {
        table[i] = "x"
    }
    keep(table)
}

@inline(never) func string_growth(_ n: Int) {
    var text = ""
    for i in 0..<n {
        text += "a longer piece of text \(i)"
    }
    keep(text)
}

@inline(never) func raises(_ n: Int) throws {
    if n > 0 {
        throw Trouble.large(Shape("thrown"))
    }
}

@inline(never) func caught(_ n: Int) {
    do {
        try raises(n)
    } catch {
        keep(error)
    }
}

@main struct Program {
    static func main() {
        class_instance(1)
        virtual_call(Circle("circle"))
        generic(1)
        generic("text")
        closure(1000)
        keep(escaping(2)())
        existential(Plain(count: 2000))
        array_growth(100)
        keep([3, 1, 2].doubled())
        dictionary_growth(20)
        string_growth(20)
        keep(Counter(values: [1, 2]).copy)
        keep(Counter()[100])
        caught(1)
        print("done")
    }
}
