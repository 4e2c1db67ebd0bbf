// SPDX-License-Identifier: GPL-3.0-or-later
/* What the page of a recording works out, against a list of blocks that are gone through one by one. */
import assert from "node:assert";
import test from "node:test";

import { FunctionTable, nodesWith, startOfBucket, sumHistogram } from "../../src/page/web/functions.js";
import { aliveAt, highestPoint, inSpan, pointAt, selectRows, spanFigures, timeLine, timeOfPoint,
	wholeRecording } from "../../src/page/web/moments.js";
import { argumentsOf } from "../../src/page/web/names.js";
import { countProcesses, groupThreads, readRecording } from "../../src/page/web/recording.js";
import { kinds, nodesBelow, Trie } from "../../src/page/web/trie.js";

/* Numbers that are the same each time. */
function* numbers(seed) {
	for (let state = seed;;) {
		state = (Math.imul(state, 1103515245) + 12345) >>> 0;
		yield state >>> 8;
	}
}

const N_EPOCHS = 12;

/* Node 0 is the root, 1 and 2 are below it, 3 and 4 below 1. */
const trie = { parent: Uint32Array.of(0, 0, 0, 1, 1), frame: Uint32Array.of(0, 0, 1, 2, 3) };

function makeBlocks(seed, n) {
	const next = numbers(seed);
	const draw = (below) => next.next().value % below;

	return Array.from({ length: n }, () => {
		const born = draw(N_EPOCHS);
		const died = draw(3) ? born + draw(N_EPOCHS - born) : N_EPOCHS;

		return { row: draw(6), born, died, bytes: 1 + draw(1000) };
	});
}

function makeRecording(blocks) {
	const column = (name) => Uint32Array.from(blocks, (block) => block[name]);

	return {
		nEpochs: N_EPOCHS,
		epochNs: 100,
		endNs: N_EPOCHS * 100 - 30,
		/* Two threads at nodes 2, 3 and 4 each. */
		rows: { node: Uint32Array.of(2, 3, 4, 2, 3, 4), thread: Uint32Array.of(0, 0, 0, 1, 1, 1) },
		lifetimes: {
			row: column("row"), born: column("born"), died: column("died"),
			blocks: new Float64Array(blocks.length).fill(1),
			bytes: Float64Array.from(blocks, (block) => block.bytes),
		},
	};
}

/* The sums of the blocks that pass, by node. */
function expected(recording, blocks, selected, passes) {
	const bytes = new Float64Array(5), counts = new Float64Array(5);

	for (const block of blocks) {
		if (!selected[block.row] || !passes(block))
			continue;
		bytes[recording.rows.node[block.row]] += block.bytes;
		counts[recording.rows.node[block.row]] += 1;
	}
	return { bytes, blocks: counts };
}

function assertEqual(values, wanted) {
	assert.deepStrictEqual(values.bytes, wanted.bytes);
	assert.deepStrictEqual(values.blocks, wanted.blocks);
	assert.deepStrictEqual(values.total, {
		blocks: wanted.blocks.reduce((a, b) => a + b), bytes: wanted.bytes.reduce((a, b) => a + b) });
}

const isAliveAt = (point) => ({ born, died }) => born < point && died >= point;

for (const isIncluded of [null, Uint8Array.of(0, 1)]) {
	test(`moments and spans ${isIncluded ? "of one thread" : ""}`, () => {
		const blocks = makeBlocks(7, 500);
		const recording = makeRecording(blocks);
		const selected = selectRows(recording, isIncluded, null);
		const line = timeLine(recording, selected);

		for (let until = 0; until <= N_EPOCHS; until++) {
			const alive = aliveAt(recording, 5, selected, until);

			assertEqual(alive, expected(recording, blocks, selected, isAliveAt(until)));
			assert.strictEqual(line.alive.bytes[until], alive.total.bytes);
			assert.strictEqual(line.alive.blocks[until], alive.total.blocks);
			for (let from = 0; from < until; from++) {
				const isBorn = ({ born }) => born >= from && born < until;
				const span = {
					allocated: isBorn,
					kept: (block) => isBorn(block) && block.died >= until,
					freed: ({ died }) => died >= from && died < until,
				};
				const figures = spanFigures(recording, selected, from, until);

				for (const [what, passes] of Object.entries(span)) {
					const values = inSpan(recording, 5, selected, from, until, what);

					assertEqual(values, expected(recording, blocks, selected, passes));
					assert.deepStrictEqual(figures[what], values.total);
				}
				assert.strictEqual(figures.before.bytes, line.alive.bytes[from]);
				assert.strictEqual(figures.after.bytes, line.alive.bytes[until]);
				assert.strictEqual(figures.before.bytes + figures.allocated.bytes,
					figures.after.bytes + figures.freed.bytes);
			}
		}
		assert.strictEqual(line.allocated.bytes.reduce((a, b) => a + b),
			inSpan(recording, 5, selected, 0, N_EPOCHS, "allocated").total.bytes);
		assert.strictEqual(line.alive.bytes[highestPoint(line.alive.bytes)], Math.max(...line.alive.bytes));
	});
}

test("points and times", () => {
	const recording = { nEpochs: 12, epochNs: 100, endNs: 1170 };

	assert.strictEqual(timeOfPoint(recording, 12), 1170);
	for (let point = 0; point <= 12; point++)
		assert.strictEqual(pointAt(recording, timeOfPoint(recording, point)), point);
	assert.strictEqual(pointAt(recording, -5), 0);
	assert.strictEqual(pointAt(recording, 149), 1);
	assert.strictEqual(pointAt(recording, 1134), 11);
	assert.strictEqual(pointAt(recording, 1136), 12);
	assert.strictEqual(pointAt(recording, 9999), 12);
});

test("a recording without an event", () => {
	const recording = makeRecording([]);
	const selected = selectRows(recording, null, null);

	assert.strictEqual(aliveAt(recording, 5, selected, 3).total.bytes, 0);
	assert.strictEqual(highestPoint(timeLine(recording, selected).alive.bytes), 0);
});

test("rows below a node", () => {
	assert.deepStrictEqual([...nodesBelow(trie, 1)], [0, 1, 0, 1, 1]);
	assert.deepStrictEqual([...selectRows(makeRecording([]), null, nodesBelow(trie, 1))], [0, 1, 1, 0, 1, 1]);
	assert.deepStrictEqual([...selectRows(makeRecording([]), Uint8Array.of(1, 0), nodesBelow(trie, 1))], [0, 1, 1, 0, 0, 0]);
});

test("figures of the whole recording", () => {
	const recording = makeRecording([]);

	recording.rows.live = Float64Array.of(1, 2, 3, 4, 5, 6);
	recording.rows.liveBytes = Float64Array.of(10, 20, 30, 40, 50, 60);
	const values = wholeRecording(recording, 5, Uint8Array.of(1, 1, 1, 1, 0, 1), "live");

	assert.deepStrictEqual([...values.blocks], [0, 0, 5, 2, 9]);
	assert.deepStrictEqual([...values.bytes], [0, 0, 50, 20, 90]);
	assert.deepStrictEqual(values.total, { blocks: 16, bytes: 160 });
});

/* main calls parse and f; parse calls itself and f; each calls malloc. */
function makeRecursion() {
	const name = ["a.out", "main", "parse", "f", "malloc", "parse"];
	const kind = ["process", "own", "own", "own", "allocator", "own"].map((one) => kinds.indexOf(one));
	const module = ["", "/bin/app", "/bin/app", "/bin/app", "", "/opt/app"];

	/*               root process main parse parse f malloc malloc f malloc malloc */
	return new Trie(Uint32Array.of(0, 0, 1, 2, 3, 4, 5, 4, 2, 8, 3),
		Uint32Array.of(0, 0, 1, 2, 5, 3, 4, 4, 3, 4, 4), { name, kind, module });
}
const own = Float64Array.of(0, 0, 0, 0, 0, 0, 5, 7, 0, 11, 13);

test("functions by own and total cost", () => {
	const functions = new FunctionTable(makeRecursion(), kinds);
	const sums = functions.sum(own);
	const { name } = functions.trie.frames;
	const by = (array) => Object.fromEntries(
		functions.first.flatMap((frame, i) => functions.isListed[i] ? [[name[frame], array[i]]] : []));

	assert.deepStrictEqual([...functions.of], [0, 1, 2, 3, 4, 2]);
	assert.deepStrictEqual([...functions.outermost], [0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1]);
	assert.deepStrictEqual(by(sums.own), { main: 0, parse: 20, f: 16 });
	assert.deepStrictEqual(by(sums.total), { main: 36, parse: 25, f: 16 });
});

test("a trie that is deeper than a call stack", () => {
	const n = 200000;
	const deep = new Trie(Uint32Array.from({ length: n }, (_, i) => Math.max(0, i - 1)), new Uint32Array(n),
		{ name: ["f"], kind: [0], module: [""] });

	assert.strictEqual(new FunctionTable(deep, kinds).outermost.reduce((a, b) => a + b), 1);
});

test("the stacks that have anything", () => {
	assert.deepStrictEqual([...nodesWith(own, undefined)], [6, 7, 9, 10]);
	assert.deepStrictEqual([...nodesWith(Float64Array.of(0, 2, 0), Float64Array.of(0, 0, 3))], [1, 2]);
});

test("histograms", () => {
	const histogram = { thread: Uint32Array.of(0, 0, 1), bucket: Uint32Array.of(3, 6, 5),
		blocks: Float64Array.of(1, 2, 4) };

	assert.deepStrictEqual(sumHistogram(histogram, null), [[3, 1], [4, 0], [5, 4], [6, 2]]);
	assert.deepStrictEqual(sumHistogram(histogram, Uint8Array.of(0, 1)), [[5, 4]]);
	assert.deepStrictEqual(sumHistogram(histogram, Uint8Array.of(0, 0)), []);
	assert.deepStrictEqual([0, 1, 2, 64].map(startOfBucket), [0, 1, 2, 2 ** 63]);
});

test("a recording from the blocks of a page", () => {
	const data = new Map([["after.meta", { endNs: 5, epochNs: 0, nEpochs: 0 }], ["after.rows.node", Uint32Array.of(1)]]);

	assert.strictEqual(readRecording(data, "base"), null);
	assert.deepStrictEqual(readRecording(data, "after").rows, { node: Uint32Array.of(1) });
});

test("threads to select by", () => {
	const recording = { meta: { processes: [[7, "make", null, null], [8, "cc", null, null], [9, "cc", null, null]],
		threads: [[0, "make"], [1, "cc"], [2, "cc"], [2, "worker"]] } };
	const list = (recordings, most) => groupThreads(recordings, most).map(
		(group) => [group.process, group.pid, group.thread, group.threads, countProcesses([group])]);

	assert.deepStrictEqual(list([recording], 3), [["make", 7, "make", [[0]], 1], ["cc", 8, "cc", [[1]], 1],
		["cc", 9, "cc", [[2]], 1], ["cc", 9, "worker", [[3]], 1]]);
	assert.deepStrictEqual(list([recording], 2), [["make", null, "make", [[0]], 1], ["cc", null, "cc", [[1, 2]], 2],
		["cc", null, "worker", [[3]], 1]]);
	assert.deepStrictEqual(list([recording, recording], 9)[1], ["cc", null, "cc", [[1, 2], [1, 2]], 2]);

	const other = { meta: { ...recording.meta, processes: [[7, "make", "make -j", "a"], [8, "cc", "cc a.c", "a"], [9, "cc", "cc b.c", "b"]] } };
	const told = (recordings, most) => groupThreads(recordings, most).map(({ cgroup, pid, command, thread }) => [cgroup, pid, command, thread].join(" "));
	assert.deepStrictEqual(told([other], 3), ["a 7 make -j make", "a 8 cc a.c cc", "b 9 cc b.c cc", "b 9 cc b.c worker"]);
	assert.deepStrictEqual(told([other], 2), ["a   make", "a   cc", "b   cc", "b   worker"]);
	assert.deepStrictEqual(told([other, other], 3), ["   make", "  cc a.c cc", "  cc b.c cc", "  cc b.c worker"]);
	const shorter = { meta: { processes: [[5, "make", "make -k", "a"]], threads: [[0, "make"]] } };
	assert.deepStrictEqual(told([other, shorter], 9), ["   make", "  cc a.c cc", "  cc b.c cc", "  cc b.c worker"]);
	assert.strictEqual(countProcesses(groupThreads([other], 2)), 3);
});

test("arguments without the name of the program", () => {
	assert.strictEqual(argumentsOf("/usr/lib/gcc/cc1 -quiet a.c", "cc1"), "-quiet a.c");
	assert.strictEqual(argumentsOf("/lib/systemd/systemd-timesyncd -v", "systemd-timesyn"), "-v");
	assert.strictEqual(argumentsOf("postgres: writer", "postgres"), "postgres: writer");
	assert.strictEqual(argumentsOf("ls", "ls"), "");
});
