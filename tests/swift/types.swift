// SPDX-License-Identifier: GPL-3.0-or-later
// Objects of many classes, arrays, and what else the initializers of classes allocate. Prints how many objects of which class were
// made, "COUNT\tCLASS", and how many new pieces of storage arrays had, as their capacities say.
import Glibc

var made: [String: Int] = [:]
var kept: [AnyObject] = []

@inline(never) func count(_ name: String) {
    made["types.\(name)", default: 0] += 1
}

@inline(never) func keep(_ object: AnyObject) {
    kept.append(object)
}

@inline(never) func see<T>(_ value: T) {
    withExtendedLifetime(value) {}
}

class Shape {
    let name: String

    init(_ name: String) {
        self.name = name
        count("\(type(of: self))")
    }

    required init() {
        self.name = "none"
        count("\(type(of: self))")
    }

    convenience init(number: Int) {
        self.init("number \(number)")
    }
}

final class Circle: Shape {}

final class Square: Shape {
    var side: (Int, Int, Int) = (1, 2, 3)
}

final class Node {
    let next: Node?

    init(_ n: Int) {
        next = n > 0 ? Node(n - 1) : nil
        count("Node")
    }
}

final class Box<Element> {
    let element: Element

    init(_ element: Element) {
        self.element = element
        count("Box<Swift.\(Element.self)>")
    }
}

final class Pair<First, Second> {
    let first: First, second: Second

    init(_ first: First, _ second: Second) {
        self.first = first
        self.second = second
        count("Pair<Swift.\(First.self), Swift.\(Second.self)>")
    }
}

private final class Hidden {
    var number = 1

    init() {
        count("Hidden")
    }
}

enum Space {
    final class Inner {
        let callback: () -> Int

        // The closure has a context, and the box of a variable.
        init(_ n: Int) {
            var called = n
            callback = {
                called += 1
                return called
            }
            count("Space.Inner")
        }
    }
}

indirect enum Tree {
    case leaf(Int)
    case node(Tree, Tree)
}

enum Trouble: Error {
    case known(Shape)
}

final class Owner {
    let shape: Shape
    let square = Square("own")
    let tree: Tree
    let memory: UnsafeMutablePointer<Int>
    let caught: Error?

    init(_ n: Int) {
        shape = Circle("owned")
        tree = .node(.leaf(n), .node(.leaf(1), .leaf(2)))
        memory = .allocate(capacity: n)
        do {
            throw Trouble.known(Shape("thrown"))
        } catch {
            caught = error
        }
        count("Owner")
    }

    init?(fails: Bool) {
        if fails {
            return nil
        }
        shape = Shape("failing")
        tree = .leaf(1)
        memory = .allocate(capacity: 1)
        caught = nil
        count("Owner")
    }

    deinit {
        memory.deallocate()
    }
}

final class Empty {}

@inline(never) func make(_ kind: Shape.Type) -> Shape {
    kind.init()
}

// Appends and counts new storage.
@inline(never) func grow(_ n: Int) -> Int {
    var list: [Int] = []
    var storages = 0, capacity = 0
    for i in 0..<n {
        list.append(i)
        storages += list.capacity != capacity ? 1 : 0
        capacity = list.capacity
    }
    see(list)
    return storages
}

var lists: [[String]] = []

@inline(never) func text(_ n: Int) {
    lists.append(["first \(n)", "second"])
}

@main struct Program {
    static func main() {
        kept.reserveCapacity(1000)
        lists.reserveCapacity(1000)
        for i in 0..<5 {
            keep(Shape("plain"))
            keep(Circle("round"))
            keep(Square(number: i))
            keep(Shape(number: i))
            keep(make(i % 2 == 0 ? Circle.self : Shape.self))
            keep(Node(3))
            keep(Box(i))
            keep(Box("text \(i)"))
            keep(Pair(i, "second"))
            keep(Hidden())
            keep(Space.Inner(i))
            keep(Owner(i + 1))
            if let owner = Owner(fails: i < 0) {
                keep(owner)
            }
            keep(Empty())
            made["types.Empty", default: 0] += 1
            text(i)
            made["Swift._ContiguousArrayStorage<Swift.String>", default: 0] += 1
        }
        let storages = grow(1000)
        made["Swift._ContiguousArrayStorage<Swift.Int>", default: 0] += storages
        for (name, n) in made.sorted(by: { $0.key < $1.key }) {
            print("\(n)\t\(name)")
        }
    }
}
