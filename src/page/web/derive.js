// SPDX-License-Identifier: GPL-3.0-or-later
// Tries made of a trie: without libraries, with the callers below what they call, and with recursion as one frame.

import { kinds, Trie } from "./trie.js";

/** Nodes of a trie that is made, from the root on. */
class NodeList {
	constructor(room) {
		this.parent = new Uint32Array(Math.max(room, 16));
		this.frame = new Uint32Array(this.parent.length);
		this.size = 1;
	}

	add(parent, frame) {
		if (this.size === this.parent.length)
			this.grow();
		this.parent[this.size] = parent;
		this.frame[this.size] = frame;
		return this.size++;
	}

	grow() {
		for (const name of ["parent", "frame"]) {
			const more = new Uint32Array(this[name].length * 2);
			more.set(this[name]);
			this[name] = more;
		}
	}

	trie(frames) {
		return new Trie(this.parent.slice(0, this.size), this.frame.slice(0, this.size), frames);
	}
}

/** Nodes by parent and frame, in a table of numbers: a Map would take hundreds of bytes for each. */
class NodeTable extends NodeList {
	constructor(room) {
		super(room);
		this.slots = new Uint32Array(1 << Math.ceil(Math.log2(this.parent.length * 2)));
	}

	grow() {
		super.grow();
		this.slots = new Uint32Array(this.slots.length * 2);
		for (let node = 1; node < this.size; node++)
			this.slots[this.slotOf(this.parent[node], this.frame[node])] = node;
	}

	/** Where the node is, or would be. */
	slotOf(parent, frame) {
		const mask = this.slots.length - 1;
		let hash = Math.imul(parent, 0x9e3779b1) ^ Math.imul(frame + 1, 0x85ebca6b);
		hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
		let slot = (hash ^ (hash >>> 13)) & mask;
		for (let node; (node = this.slots[slot]); slot = (slot + 1) & mask)
			if (this.parent[node] === parent && this.frame[node] === frame)
				break;
		return slot;
	}

	/** The child of @parent with @frame. */
	enter(parent, frame) {
		const found = this.slots[this.slotOf(parent, frame)];
		if (found)
			return found;
		const node = this.add(parent, frame);
		this.slots[this.slotOf(parent, frame)] = node;
		return node;
	}

	/** The node on the way to @node that has @frame; 0 if there is none. */
	findAbove(node, frame) {
		while (node && this.frame[node] !== frame)
			node = this.parent[node];
		return node;
	}
}

/** Stacks that are at one node, beside each other: where each of them ends, and its frame that comes next. */
class StackGroups {
	constructor(room) {
		this.ends = new Uint32Array(room);
		this.next = new Uint32Array(room);
		this.node = new Uint32Array(room + 1);
		this.start = new Uint32Array(room + 2); // of each group, and behind the last
		this.size = 0;
	}
}

/**
 * The stacks of a trie from the allocator's function to its callers, level by level: a table of all nodes takes several
 * times as long where there are millions.
 */
function reverseTrie({ parent, frame, frames, size }) {
	const allocator = kinds.indexOf("allocator");
	const nodes = new NodeList(size);
	const map = new Uint32Array(size);
	const ends = Uint32Array.from(frame.keys()).filter((node) => node && frames.kind[frame[node]] === allocator);
	let groups = new StackGroups(ends.length), below = new StackGroups(ends.length);
	// By frame: of the group that is looked at the number of the one below it, or a lesser number.
	const numbers = new Float64Array(frames.name.length).fill(-1);
	const places = new Uint32Array(ends.length + 1);

	groups.ends.set(ends);
	groups.next.set(ends);
	groups.start[1] = ends.length;
	groups.size = ends.length ? 1 : 0;
	for (let nBefore = 0; groups.size; nBefore += below.size, [groups, below] = [below, groups]) {
		below.size = below.start[0] = 0;
		for (let group = 0; group < groups.size; group++) {
			const from = groups.start[group], until = groups.start[group + 1];
			const first = below.size;
			let node = groups.node[group];
			if (until - from === 1) {
				// Nothing but this stack is below.
				for (let next = groups.next[from]; next; next = parent[next])
					node = nodes.add(node, frame[next]);
				map[groups.ends[from]] = node;
				continue;
			}
			for (let i = from; i < until; i++) {
				const next = groups.next[i];
				if (!next) {
					map[groups.ends[i]] = node;
				} else if (numbers[frame[next]] >= nBefore + first) {
					below.start[numbers[frame[next]] - nBefore + 1]++;
				} else {
					numbers[frame[next]] = nBefore + below.size;
					below.node[below.size++] = nodes.add(node, frame[next]);
					below.start[below.size] = 1;
				}
			}
			for (let at = first; at < below.size; at++) {
				places[at] = below.start[at];
				below.start[at + 1] += below.start[at];
			}
			for (let i = from; i < until; i++) {
				const next = groups.next[i];
				if (next) {
					const place = places[numbers[frame[next]] - nBefore]++;
					below.ends[place] = groups.ends[i];
					below.next[place] = parent[next];
				}
			}
		}
	}
	return { trie: nodes.trie(frames), map };
}

/** The same stacks with a function that calls itself, directly or not, as one frame: what it calls at last is below its
 * first. */
function mergeTrie({ parent, frame, frames, size }) {
	const table = new NodeTable(size >> 1);
	const map = new Uint32Array(size);
	for (let stack = 1; stack < size; stack++) {
		const above = map[parent[stack]];
		map[stack] = table.findAbove(above, frame[stack]) || table.enter(above, frame[stack]);
	}
	return { trie: table.trie(frames), map };
}

const foldedKinds = new Set([kinds.indexOf("library"), kinds.indexOf("runtime")]);

/** The same stacks without frames of libraries and runtimes: what these call is their caller's. */
function foldTrie({ parent, frame, frames, size }) {
	const table = new NodeTable(size >> 1);
	const map = new Uint32Array(size);
	for (let node = 1; node < size; node++) {
		const above = map[parent[node]];
		map[node] = foldedKinds.has(frames.kind[frame[node]]) ? above : table.enter(above, frame[node]);
	}
	return { trie: table.trie(frames), map };
}

/**
 * { trie, map }: the trie with the stacks of @trie, each of which is node map[stack] there. @folded: without frames of
 * libraries and runtimes. @reversed: the callers are below what they call. @merged: recursion is one frame. A stack ends at a
 * frame of the allocator.
 */
export function deriveTrie(trie, { folded, reversed, merged }) {
	const steps = [folded && foldTrie, reversed && reverseTrie, merged && mergeTrie].filter((step) => step);
	let derived = null;
	for (const step of steps) {
		const next = step(derived?.trie ?? trie);
		derived = { trie: next.trie, map: derived ? derived.map.map((node) => next.map[node]) : next.map };
	}
	return derived;
}

/**
 * The stacks through a function: @isTop says of a node whether it is the function's, and none above it is. { isThrough, below,
 * above }: which stacks they are, as a Uint8Array, and tries, as deriveTrie() returns them, of what the function calls and of
 * what calls it, in which node 0 is the function.
 */
export function splitTrie({ parent, frame, frames, size }, isTop) {
	const isThrough = new Uint8Array(size);
	const [below, above] = [0, 1].map(() => ({ table: new NodeTable(16), map: new Uint32Array(size) }));

	for (let node = 1; node < size; node++) {
		if (isTop(node)) {
			isThrough[node] = 1;
			for (let caller = parent[node]; caller; caller = parent[caller])
				above.map[node] = above.table.enter(above.map[node], frame[caller]);
		} else if (isThrough[parent[node]]) {
			isThrough[node] = 1;
			above.map[node] = above.map[parent[node]];
			below.map[node] = below.table.enter(below.map[parent[node]], frame[node]);
		}
	}
	return {
		isThrough,
		below: { trie: below.table.trie(frames), map: below.map },
		above: { trie: above.table.trie(frames), map: above.map },
	};
}

/** The numbers of stacks at the nodes that @map gives them. */
export function mapValues(own, map, size) {
	const mapped = new Float64Array(size);
	for (let stack = 0; stack < map.length; stack++)
		mapped[map[stack]] += own[stack];
	return mapped;
}
