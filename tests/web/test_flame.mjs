// SPDX-License-Identifier: GPL-3.0-or-later
/* What a flame graph works out, without a browser. */
import assert from "node:assert";
import test from "node:test";

import { deriveTrie, mapValues, splitTrie } from "../../src/page/web/derive.js";
import { boxAt, layOut, rowsOf } from "../../src/page/web/flame_layout.js";
import { formatBytes, formatChange, formatCounted, formatExactly, formatShare } from "../../src/page/web/format.js";
import { FunctionTable } from "../../src/page/web/functions.js";
import { readGraph } from "../../src/page/web/graphs.js";
import { baseName, lastPart, showName } from "../../src/page/web/names.js";
import { compileSearch, findFrames, sumThrough } from "../../src/page/web/search.js";
import { kinds, readTrie, Trie } from "../../src/page/web/trie.js";

/* The trie of stacks, each a list of names from the root on that ends with malloc, and their numbers by node. */
function trieOf(stacks) {
	const names = [], parent = [0], frame = [0], own = [0];
	for (const [stack, value] of stacks) {
		let node = 0;
		for (const name of stack.split(" ")) {
			if (!names.includes(name))
				names.push(name);
			const at = names.indexOf(name);
			let child = parent.findIndex((above, i) => i && above === node && frame[i] === at);
			if (child < 0) {
				child = parent.push(node) - 1;
				frame.push(at);
				own.push(0);
			}
			node = child;
		}
		own[node] += value;
	}
	const frames = {
		name: names, file: names.map((name) => `/src/${name}.c`), module: names.map(() => "/usr/bin/program"),
		kind: Uint32Array.from(names, (name) => kinds.indexOf(name === "malloc" ? "allocator" : "own")),
	};
	return { trie: new Trie(Uint32Array.from(parent), Uint32Array.from(frame), frames), own: Float64Array.from(own) };
}

/* The stacks that a trie has, with their numbers, sorted. */
function stacksOf(trie, own) {
	return Array.from(own, (value, node) => [trie.path(node).map((at) => trie.frames.name[trie.frame[at]]).join(" "), value])
		.filter(([, value]) => value).sort();
}

test("totals are sums over the stacks through a node", () => {
	const { trie, own } = trieOf([["main a malloc", 5], ["main b malloc", 7], ["main malloc", 1], ["other malloc", 2]]);
	const total = trie.totals(own);
	assert.equal(total[0], 15);
	assert.deepEqual([...trie.childrenOf(0)].map((node) => [trie.frames.name[trie.frame[node]], total[node]]),
		[["main", 13], ["other", 2]]);
});

test("reversed, a stack begins with the allocator", () => {
	const { trie, own } = trieOf([["main a malloc", 5], ["main b malloc", 7], ["main b a malloc", 1]]);
	const derived = deriveTrie(trie, { reversed: true });
	assert.deepEqual(stacksOf(derived.trie, mapValues(own, derived.map, derived.trie.size)),
		[["malloc a b main", 1], ["malloc a main", 5], ["malloc b main", 7]]);
});

test("merged, a function is in a stack once", () => {
	const { trie, own } = trieOf([["main f f f malloc", 1], ["main f g f g h malloc", 2], ["main f malloc", 4]]);
	const derived = deriveTrie(trie, { merged: true });
	assert.deepEqual(stacksOf(derived.trie, mapValues(own, derived.map, derived.trie.size)),
		[["main f g h malloc", 2], ["main f malloc", 5]]);
	const both = deriveTrie(trie, { merged: true, reversed: true });
	assert.deepEqual(stacksOf(both.trie, mapValues(own, both.map, both.trie.size)),
		[["malloc f main", 5], ["malloc h g f main", 2]]);
});

test("folded, frames of libraries and runtimes are left out", () => {
	const { trie, own } = trieOf([["main lib_a own lib_b malloc", 5], ["main own malloc", 7], ["rt_start main lib_c lib_a malloc", 1],
		["lib_a own lib_b malloc", 2], ["lib_c malloc", 3]]);
	trie.frames.kind = Uint32Array.from(trie.frames.name, (name, i) =>
		name.startsWith("lib_") ? kinds.indexOf("library") : name.startsWith("rt_") ? kinds.indexOf("runtime") : trie.frames.kind[i]);
	const folded = deriveTrie(trie, { folded: true });
	assert.deepEqual(stacksOf(folded.trie, mapValues(own, folded.map, folded.trie.size)),
		[["main malloc", 1], ["main own malloc", 12], ["malloc", 3], ["own malloc", 2]]);
	const both = deriveTrie(trie, { folded: true, reversed: true });
	assert.deepEqual(stacksOf(both.trie, mapValues(own, both.map, both.trie.size)),
		[["malloc", 3], ["malloc main", 1], ["malloc own", 2], ["malloc own main", 12]].sort());
	assert.equal(deriveTrie(trie, {}), null);
});

test("split, a function is between its callers and what it calls, from its first frame on", () => {
	const stacks = [["main a b malloc", 5], ["main b malloc", 7], ["main a b c b d malloc", 11], ["main a malloc", 2], ["b malloc", 3],
		["other b c malloc", 13]];
	const { trie, own } = trieOf(stacks);
	const table = new FunctionTable(trie, kinds);
	for (const name of trie.frames.name.filter((one) => one !== "malloc")) {
		const number = table.of[trie.frames.name.indexOf(name)];
		const split = splitTrie(trie, (node) => table.outermost[node] && table.ofNode(node) === number);
		const part = own.map((value, node) => (split.isThrough[node] ? value : 0));
		const expected = { above: new Map(), below: new Map() };
		for (const [stack, value] of stacks) {
			const words = stack.split(" "), at = words.indexOf(name);
			const add = (sums, frames) => sums.set(frames.join(" "), (sums.get(frames.join(" ")) ?? 0) + value);
			if (at >= 0) {
				add(expected.above, words.slice(0, at).reverse());
				add(expected.below, words.slice(at + 1));
			}
		}
		for (const side of ["above", "below"])
			assert.deepEqual(stacksOf(split[side].trie, mapValues(part, split[side].map, split[side].trie.size)),
				[...expected[side]].sort(), `${name}, ${side}`);
	}
});

test("a table of nodes grows", () => {
	const stacks = Array.from({ length: 3000 }, (_, i) => [`main f${i % 50} g${i} malloc`, i + 1]);
	const { trie, own } = trieOf(stacks);
	const derived = deriveTrie(trie, { reversed: true });
	assert.equal(derived.trie.totals(mapValues(own, derived.map, derived.trie.size))[0], 3000 * 3001 / 2);
	assert.equal(derived.trie.size, 2 + 3000 * 3);
});

test("boxes are as wide as their share, and what is too narrow is one box", () => {
	const narrow = Array.from({ length: 50 }, (_, i) => [`main n${i} malloc`, 0.1]);
	const { trie, own } = trieOf([["main a malloc", 60], ["main b malloc", 35], ...narrow]);
	const weight = trie.totals(own);
	const rows = rowsOf(layOut(trie, weight, 0, 100, (a, b) => weight[b] - weight[a]));
	assert.deepEqual(rows[2].map(({ x, width, hidden }) => [Math.round(x), Math.round(width), hidden]),
		[[0, 60, undefined], [60, 35, undefined], [95, 5, 50]]);
	assert.equal(boxAt(rows[2], 59.9), rows[2][0]);
	assert.equal(boxAt(rows[2], 60.1), rows[2][1]);
	assert.equal(boxAt(rows[2], 99.9).hidden, 50);
	assert.equal(boxAt(rows[3], 97), undefined);
	assert.equal(boxAt(rows[4], 1), undefined);
	// Zoomed to b, all above it are as wide as the picture.
	const [b] = rows[2].slice(1);
	const zoomed = rowsOf(layOut(trie, weight, b.node, 100, () => 0));
	assert.deepEqual(zoomed.map((row) => row.map(({ width }) => width)), [[100], [100], [100], [100]]);
});

test("a search finds functions, files and modules", () => {
	const { trie, own } = trieOf([["main parse malloc", 5], ["main Parse_more parse malloc", 7], ["main c malloc", 1]]);
	const search = (text, isRegExp) => {
		const { found, count } = findFrames(trie.frames, compileSearch(text, isRegExp));
		return [count, sumThrough(trie, own, found)];
	};
	assert.deepEqual(search("PARSE"), [2, 12]);
	assert.deepEqual(search("^parse$", true), [1, 12]);
	assert.deepEqual(search("^parse$"), [0, 0]);
	assert.deepEqual(search("/c.c"), [1, 1]);
	assert.deepEqual(search("bin/prog"), [5, 13]);
	assert.throws(() => compileSearch("(", true), SyntaxError);
	assert.ok(compileSearch("a.b*c?[d](e){f}^$|\\/g").test("xa.b*c?[d](e){f}^$|\\/g"));
});

test("numbers are as report prints them", () => {
	assert.deepEqual([0, 1023, 1024, 52107476, 1023.5 * 1024].map(formatBytes), ["0 B", "1,023 B", "1.00 KiB", "49.7 MiB", "1.00 MiB"]);
	assert.equal(formatExactly(1, "blocks"), "1 block");
	assert.deepEqual([0, 1, 1.2, 1043].map((value) => formatCounted(value, "blocks")), ["0 blocks", "1 block", "1 block", "1,043 blocks"]);
	assert.equal(formatExactly(2048, "bytes"), "2.00 KiB (2,048 bytes)");
	assert.equal(formatChange(-2048, "bytes"), "-2.00 KiB");
	assert.deepEqual([[0, 0], [1, 1e6], [999999, 1e6], [1, 3], [3, 3]].map(([a, b]) => formatShare(a, b)),
		["-", "<0.1 %", "99.9 %", "33.3 %", "100.0 %"]);
});

test("names show what hides in them", () => {
	assert.equal(showName("a\u202eb\x1b[31m\n\u0085c"), "a\\u{202e}b\\u{1b}[31m\\u{a}\\u{85}c");
	assert.equal(showName("Stra\u00dfe \u65e5\u672c"), "Stra\u00dfe \u65e5\u672c");
	assert.equal(lastPart("a::b<c::d>::e(f::g)"), "e(f::g)");
	assert.equal(lastPart("plain"), "plain");
	assert.equal(baseName("/usr/lib/libc.so.6"), "libc.so.6");
});

test("blocks of a page become a trie and its graphs", () => {
	const data = new Map(Object.entries({
		"trie.parent": Uint32Array.of(0, 0, 1, 1), "trie.frame": Uint32Array.of(0, 0, 1, 2),
		"frames.name": ["main", "malloc", "calloc"], "stacks.node": Uint32Array.of(2, 3),
		"own.bytes": Float64Array.of(10, 20), "base.bytes": Float64Array.of(1, 0),
	}));
	const trie = readTrie(data);
	assert.deepEqual([...readGraph(data, trie, "bytes")], [0, 0, 10, 20]);
	assert.deepEqual([...readGraph(data, trie, "bytes", "base")], [0, 0, 1, 0]);
	assert.equal(readGraph(data, trie, "peak"), null);
});
