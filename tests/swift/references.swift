// SPDX-License-Identifier: GPL-3.0-or-later
// References that are taken and given back in four threads, and objects: references N.
import Glibc

final class Node {
    let next: Node?

    init(_ next: Node?) {
        self.next = next
    }
}

@inline(never) func link(_ nodes: inout [Node], _ next: Node?) {
    nodes.append(Node(next))
}

@inline(never) func work(_ n: Int) -> Int {
    var nodes: [Node] = []
    var found = 0
    nodes.reserveCapacity(n)
    for index in 0..<n {
        link(&nodes, index > 0 ? nodes[index / 2] : nil)
        found += nodes[index].next === nodes[0] ? 1 : 0
    }
    return found
}

let n = Int(CommandLine.arguments[1])!
_ = work(1)
var threads: [pthread_t] = []
for _ in 0..<4 {
    var thread = pthread_t()
    pthread_create(&thread, nil, { _ in
        _ = work(n)
        return nil
    }, nil)
    threads.append(thread)
}
for thread in threads {
    pthread_join(thread, nil)
}
print("done")
