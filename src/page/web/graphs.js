// SPDX-License-Identifier: GPL-3.0-or-later
// Graphs over a trie, which src/page/page_trie.c writes: for each stack a number, where a stack is a node.

/** The graph @name as a number for each node; @side is "own" or, of the other recording, "base". Null if unknown. */
export function readGraph(data, trie, name, side = "own") {
	const values = data.get(`${side}.${name}`);
	if (!values)
		return null;
	const nodes = data.get("stacks.node");
	const own = new Float64Array(trie.size);
	for (let i = 0; i < nodes.length; i++)
		own[nodes[i]] = values[i];
	return own;
}
