// SPDX-License-Identifier: GPL-3.0-or-later
// Sums over the stacks of a trie: by function, by stack, by bucket of a histogram. Nothing here knows of the document.

import { baseName } from "./names.js";

/** Kinds of frames that are no functions of the program: by their names in kinds of trie.js. */
const notFunctions = new Set(["process", "thread", "missing"]);

export class FunctionTable {
	/**
	 * Frames of one name in one module are one function, inlined or not. first has a frame of each function; of, by
	 * frame, the function's number. A stack ends with the function of the allocator, which has no module and is not
	 * among them: what it gives out is its caller's own.
	 */
	constructor(trie, kinds) {
		const { frames } = trie;
		const known = new Map();

		this.trie = trie;
		this.of = new Uint32Array(frames.name.length);
		this.first = [];
		this.isListed = [];
		for (let frame = 0; frame < this.of.length; frame++) {
			const key = `${baseName(frames.module[frame])}\0${frames.name[frame]}\0${kinds[frames.kind[frame]]}`;
			if (!known.has(key)) {
				const kind = kinds[frames.kind[frame]];
				known.set(key, this.first.length);
				this.first.push(frame);
				this.isListed.push(!notFunctions.has(kind) && !(kind === "allocator" && !frames.module[frame]));
			}
			this.of[frame] = known.get(key);
		}
		this.outermost = this.findOutermost();
	}

	/** The function of a node. */
	ofNode(node) {
		return this.of[this.trie.frame[node]];
	}

	/** Which nodes have no ancestor of the same function: their totals add up to the function's, whatever it calls. */
	findOutermost() {
		const { trie } = this;
		const outermost = new Uint8Array(trie.size);
		const nOpen = new Uint32Array(this.first.length);
		// The path from the root, and for each of its nodes the child that is next.
		const path = new Uint32Array(trie.size + 1);
		const next = trie.start.slice(0, trie.size);
		let depth = 0;

		for (;;) {
			const node = path[depth];
			if (next[node] < trie.start[node + 1]) {
				const child = trie.children[next[node]++];
				outermost[child] = nOpen[this.ofNode(child)]++ ? 0 : 1;
				path[++depth] = child;
			} else if (depth) {
				nOpen[this.ofNode(node)]--;
				depth--;
			} else {
				return outermost;
			}
		}
	}

	/** Own and total values by function, as Float64Arrays. */
	sum(own) {
		const { trie } = this;
		const totals = trie.totals(own);
		const sums = { own: new Float64Array(this.first.length), total: new Float64Array(this.first.length) };

		for (let node = 1; node < trie.size; node++) {
			if (own[node] && trie.parent[node])
				sums.own[this.ofNode(trie.parent[node])] += own[node];
			if (this.outermost[node])
				sums.total[this.ofNode(node)] += totals[node];
		}
		return sums;
	}
}

/** The nodes with any of @values or, to compare with, @base. */
export function nodesWith(values, base) {
	return Uint32Array.from(values.keys()).filter((node) => values[node] || base?.[node]);
}

/** Blocks by bucket, of the threads that are included: [[bucket, blocks], ...] from the first to the last. */
export function sumHistogram(histogram, isIncluded) {
	const { thread, bucket, blocks } = histogram;
	const sums = [];

	for (let i = 0; i < bucket.length; i++)
		if (!isIncluded || isIncluded[thread[i]])
			sums[bucket[i]] = (sums[bucket[i]] ?? 0) + blocks[i];
	const first = sums.findIndex((n) => n);
	if (first < 0)
		return [];
	return Array.from({ length: sums.length - first }, (_, i) => [first + i, sums[first + i] ?? 0]);
}

/** The least value of a bucket: bucket n has values of n bits. */
export function startOfBucket(bucket) {
	return bucket ? 2 ** (bucket - 1) : 0;
}
