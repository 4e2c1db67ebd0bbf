// SPDX-License-Identifier: GPL-3.0-or-later
// Stacks as a tree, which src/page/page_trie.c writes: a stack is a node, and its frames are those on the way from
// the root, node 0. Parents come before their children. A graph is a Float64Array that has for each node what the
// stack itself has; another moment, span or cost is another such array over the same nodes.

/** By the number of the kind, as enum frame_kind has them. */
export const kinds = ["own", "library", "runtime", "allocator", "unknown", "process", "thread", "missing"];
export const kindTitles = {
	own: "own code", library: "libraries", runtime: "runtime", allocator: "allocator", unknown: "unknown",
	process: "process", thread: "thread", missing: "missing frames",
};

export class Trie {
	/** @frames has arrays by the number of a frame: name, module, file, line, lastLine, kind, inlined. */
	constructor(parent, frame, frames) {
		this.parent = parent;
		this.frame = frame;
		this.frames = frames;
		this.size = parent.length;
		this.linkChildren();
	}

	/** The children of a node are children[start[node]] to children[start[node + 1] - 1]. */
	linkChildren() {
		const { parent, size } = this;
		const start = new Uint32Array(size + 1);
		for (let node = 1; node < size; node++)
			start[parent[node] + 1]++;
		for (let node = 0; node < size; node++)
			start[node + 1] += start[node];
		const next = start.slice(0, size);
		const children = new Uint32Array(Math.max(size - 1, 0));
		for (let node = 1; node < size; node++)
			children[next[parent[node]]++] = node;
		this.start = start;
		this.children = children;
	}

	childrenOf(node) {
		return this.children.subarray(this.start[node], this.start[node + 1]);
	}

	/** Of each node the sum over the stacks that go through it. */
	totals(own) {
		const total = own.slice();
		for (let node = this.size - 1; node > 0; node--)
			total[this.parent[node]] += total[node];
		return total;
	}

	/** The nodes from the root's child to @node. */
	path(node) {
		const path = [];
		for (; node; node = this.parent[node])
			path.push(node);
		return path.reverse();
	}
}

/** The node @top and all below it, as a Uint8Array by node. */
export function nodesBelow(trie, top) {
	const below = new Uint8Array(trie.parent.length);

	below[top] = 1;
	for (let node = top + 1; node < below.length; node++)
		below[node] |= below[trie.parent[node]];
	return below;
}

export function readTrie(data) {
	return new Trie(data.get("trie.parent"), data.get("trie.frame"), {
		name: data.get("frames.name"),
		module: data.get("frames.module"),
		file: data.get("frames.file"),
		line: data.get("frames.line"),
		lastLine: data.get("frames.last_line"),
		kind: data.get("frames.kind"),
		inlined: data.get("frames.inlined"),
	});
}
