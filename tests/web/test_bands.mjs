// SPDX-License-Identifier: GPL-3.0-or-later
/* Bands of the time line, against a list of blocks that are gone through one by one. */
import assert from "node:assert";
import test from "node:test";

import { groupRows, makeBands, makeCharge } from "../../src/page/web/bands.js";
import { colourBands } from "../../src/page/web/band_paint.js";
import { timeLine } from "../../src/page/web/moments.js";
import { kinds } from "../../src/page/web/trie.js";

const N_EPOCHS = 20, N_ROWS = 24;

/* Numbers that are the same each time. */
function* numbers(seed) {
	for (let state = seed;;) {
		state = (Math.imul(state, 1103515245) + 12345) >>> 0;
		yield state >>> 8;
	}
}

/* They are sorted by row. Of rows 0 and 1 most are freed soon, of 2 and 3 none; 4 and 5 have blocks that processes left, and the later ones few blocks. */
function makeBlocks(seed) {
	const next = numbers(seed);
	const draw = (below) => next.next().value % below;

	return Array.from({ length: 3000 }, () => {
		const row = draw(3) ? draw(6) : draw(N_ROWS);
		const born = draw(N_EPOCHS);
		const isLeft = (row === 4 || row === 5) && draw(2);
		const isLive = row > 5 ? !draw(4) : row === 2 || row === 3 || (row < 2 && !draw(12));
		const age = row < 2 ? draw(4) : draw(N_EPOCHS);

		return { row, born, died: isLive ? N_EPOCHS : Math.min(born + age, N_EPOCHS - 1), left: isLeft ? 1 : 0, blocks: 1, bytes: 1 + draw(900) };
	}).sort((a, b) => a.row - b.row);
}

function makeRecording(blocks) {
	const column = (name) => Float64Array.from(blocks, (block) => block[name]);

	return {
		nEpochs: N_EPOCHS,
		lifetimes: Object.fromEntries(["row", "born", "died", "left", "blocks", "bytes"].map((name) => [name, column(name)])),
	};
}

const isFreed = ({ died, left }) => died < N_EPOCHS && !left;

/* The usual age of struct graph_series: 99 of 100 freed blocks had it at most. */
function usualAge(blocks) {
	const ages = blocks.filter(isFreed).map(({ born, died }) => died - born).sort((a, b) => a - b);

	return ages.length < 100 || ages.length < blocks.length - ages.length ? null : ages[Math.max(Math.floor((ages.length * 99) / 100), 1) - 1];
}

function sumOf(blocks, unit) {
	return blocks.reduce((sum, block) => sum + block[unit], 0);
}

/* What is alive of blocks at each point. */
function aliveOf(blocks, unit) {
	return Array.from({ length: N_EPOCHS + 1 }, (_, point) => sumOf(blocks.filter(({ born, died }) => born < point && died >= point), unit));
}

function expectedBand(groups, unit) {
	const stays = groups.flatMap((blocks) => {
		const usual = usualAge(blocks);
		return blocks.filter((block) => !isFreed(block) && (usual === null || Math.min(block.died, N_EPOCHS - 1) - block.born > usual));
	});
	return { stays: aliveOf(stays, unit), freed: aliveOf(groups.flat().filter((block) => !stays.includes(block)), unit) };
}

for (const unit of ["bytes", "blocks"]) {
	for (const nGroups of [5, N_ROWS]) {
		test(`bands of ${unit} of ${nGroups} groups`, () => {
			const blocks = makeBlocks(nGroups);
			const recording = makeRecording(blocks);
			const groups = groupRows(N_ROWS, nGroups, (row) => row % nGroups);
			const selected = Uint8Array.from({ length: N_ROWS }, (_, row) => (row === 7 ? 0 : 1));
			const kept = blocks.filter(({ row }) => selected[row]);
			const byGroup = new Map(groups.keys.map((key) => [key, kept.filter(({ row }) => row % nGroups === key)]));
			const peakOf = (of) => Math.max(...aliveOf(of, unit));
			const order = [...byGroup.keys()].filter((key) => peakOf(byGroup.get(key))).sort((a, b) => peakOf(byGroup.get(b)) - peakOf(byGroup.get(a)));
			const line = timeLine(recording, selected);
			const bands = makeBands(recording, selected, groups, "alive", unit, line);

			assert.ok([0, 1, 4].some((row) => usualAge(kept.filter((block) => block.row === row)) !== null));
			assert.deepStrictEqual(bands.slice(0, 8).map(({ key }) => key), order.slice(0, 8));
			assert.strictEqual(bands.length, Math.min(order.length, 9));
			bands.forEach((band, i) => {
				const own = i < 8 ? [byGroup.get(band.key)] : order.slice(8).map((key) => byGroup.get(key));
				const expected = expectedBand(own, unit);
				assert.deepStrictEqual([...band.stays], expected.stays);
				assert.deepStrictEqual([...band.freed], expected.freed);
				assert.strictEqual(band.peak, peakOf(own.flat()));
				assert.strictEqual(band.nGroups, own.length);
			});
			for (const band of makeBands(recording, selected, groups, "allocated", unit, line).filter(({ key }) => key !== undefined)) {
				const own = byGroup.get(band.key);
				const inEpoch = (epoch, isGone) => sumOf(own.filter((block) => block.born === epoch && (isFreed(block) && block.died === epoch) === isGone), unit);
				for (let epoch = 0; epoch < N_EPOCHS; epoch++)
					assert.deepStrictEqual([band.stays[epoch], band.freed[epoch]], [inEpoch(epoch, false), inEpoch(epoch, true)]);
			}
		});
	}
}

test("what cannot be seen has no band of its own", () => {
	const block = (row, bytes) => ({ row, born: 0, died: N_EPOCHS, left: 0, blocks: 1, bytes });
	const recording = makeRecording([block(0, 100000), block(1, 400), block(2, 600)]);
	const groups = groupRows(3, 3, (row) => row);

	const bandsOf = (selected) => makeBands(recording, selected, groups, "alive", "bytes", timeLine(recording, selected));

	assert.deepStrictEqual(bandsOf(Uint8Array.of(1, 1, 1)).map(({ key, peak }) => [key, peak]), [[0, 100000], [2, 600], [undefined, 400]]);
	assert.deepStrictEqual(bandsOf(Uint8Array.of(0, 0, 0)), []);
});

test("blocks are charged to the innermost own code that has a name", () => {
	const names = ["main", "[app+0x10]", "lib", "std::vector", "malloc"];
	const of = ["own", "own", "library", "runtime", "allocator"];
	const frames = { name: names, kind: Uint8Array.from(of, (kind) => kinds.indexOf(kind)) };
	const stack = (...stackNames) => {
		const parent = Uint32Array.from([0, ...stackNames.keys()]);
		const trie = { parent, frame: Uint32Array.from([0, ...stackNames.map((name) => names.indexOf(name))]), frames };
		const end = parent.length - 1;
		return names[trie.frame[makeCharge(trie)(end)]];
	};

	assert.strictEqual(stack("main", "[app+0x10]", "lib", "std::vector", "malloc"), "main");
	assert.strictEqual(stack("[app+0x10]", "lib", "std::vector", "malloc"), "lib");
	assert.strictEqual(stack("lib", "[app+0x10]", "malloc"), "lib");
	assert.strictEqual(stack("[app+0x10]", "std::vector", "malloc"), "[app+0x10]");
	assert.strictEqual(stack("std::vector", "malloc"), "std::vector");
	assert.strictEqual(stack("malloc"), "malloc");
});

test("a band keeps its colour", () => {
	const known = new Map();
	const band = (key) => ({ key });
	const [a, b] = colourBands([band("a"), band("b"), band(undefined)], known);
	const again = colourBands([band("c"), band("b"), band("a")], known);

	assert.deepStrictEqual(again.slice(1), [b, a]);
	assert.strictEqual(new Set([a, b, again[0]]).size, 3);
});
