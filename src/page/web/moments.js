// SPDX-License-Identifier: GPL-3.0-or-later
// What was alive at a moment, and what happened in a span of time, from blocks by the epochs of their birth and death.
//
// A recording has nEpochs epochs and nEpochs + 1 points: point p is the boundary between the epochs p - 1 and p, so
// point 0 is the start and the last point the end of the recording. A block is alive at point p if it was born in an
// epoch before p and did not die in one before p; the death of one that is alive at the end is nEpochs. One that was
// born and died within an epoch is alive at no point. The span from point a to point b is made of the epochs a to b - 1.
// For each span
//
//     alive at a + allocated in the span = alive at b + freed in the span
//
// Rows are the counts of the profile: calls of a function from a stack by threads of one name. rows.node has the node
// of the trie at which the stack ends. Lifetimes are sorted by row.

/** The time of a point in nanoseconds since the start. The last epoch may be shorter than the others. */
export function timeOfPoint(recording, point) {
	return Math.min(point * recording.epochNs, recording.endNs);
}

/** The point that is closest to a time. */
export function pointAt(recording, timeNs) {
	const { nEpochs, epochNs, endNs } = recording;

	if (timeNs > (timeOfPoint(recording, nEpochs - 1) + endNs) / 2)
		return nEpochs;
	return Math.max(0, Math.min(Math.round(timeNs / epochNs), nEpochs));
}

/**
 * Which rows are of included threads, and of stacks that are in @nodes, as a Uint8Array. @isIncluded is a Uint8Array by
 * thread and @nodes one by node, or null for all.
 */
export function selectRows(recording, isIncluded, nodes) {
	const { node, thread } = recording.rows;
	const selected = new Uint8Array(node.length);

	for (let row = 0; row < node.length; row++)
		selected[row] = (!isIncluded || isIncluded[thread[row]]) && (!nodes || nodes[node[row]]) ? 1 : 0;
	return selected;
}

/** What a span shows. Kept: of what was allocated in it, what was still alive at its end. Freed: whenever it was born. */
const spanTests = {
	allocated: (from, until) => (born) => born >= from && born < until,
	kept: (from, until) => (born, died) => born >= from && born < until && died >= until,
	freed: (from, until) => (born, died) => died >= from && died < until,
};

/** Blocks and bytes by node of the trie, and their sums: { blocks, bytes, total: { blocks, bytes } }. */
function sumLifetimes(recording, nNodes, selected, passes) {
	const { row, born, died, blocks, bytes } = recording.lifetimes;
	const { node } = recording.rows;
	const total = { blocks: 0, bytes: 0 };
	const [blocksOf, bytesOf] = [0, 1].map(() => new Float64Array(nNodes));

	for (let i = 0; i < row.length; i++) {
		if (selected[row[i]] && passes(born[i], died[i])) {
			blocksOf[node[row[i]]] += blocks[i];
			bytesOf[node[row[i]]] += bytes[i];
			total.blocks += blocks[i];
			total.bytes += bytes[i];
		}
	}
	return { blocks: blocksOf, bytes: bytesOf, total };
}

/** What was alive at a point, by node. */
export function aliveAt(recording, nNodes, selected, point) {
	return sumLifetimes(recording, nNodes, selected, (born, died) => born < point && died >= point);
}

/** What was "allocated", "kept" or "freed" between two points, by node. */
export function inSpan(recording, nNodes, selected, from, until, what) {
	return sumLifetimes(recording, nNodes, selected, spanTests[what](from, until));
}

/** Blocks and bytes of what a span shows, without nodes, and of what was alive at its ends. */
export function spanFigures(recording, selected, from, until) {
	const tests = {
		before: (born, died) => born < from && died >= from,
		after: (born, died) => born < until && died >= until,
	};
	const figures = {};

	for (const what of Object.keys(spanTests))
		tests[what] = spanTests[what](from, until);
	for (const [what, passes] of Object.entries(tests)) {
		const { row, born, died, blocks, bytes } = recording.lifetimes;
		const sum = { blocks: 0, bytes: 0 };
		for (let i = 0; i < row.length; i++) {
			if (selected[row[i]] && passes(born[i], died[i])) {
				sum.blocks += blocks[i];
				sum.bytes += bytes[i];
			}
		}
		figures[what] = sum;
	}
	return figures;
}

/** One of the columns of rows by node. */
export function sumByNode({ rows }, nNodes, selected, column) {
	const { node, [column]: values } = rows;
	const sums = new Float64Array(nNodes);

	for (let row = 0; row < node.length; row++)
		if (selected[row])
			sums[node[row]] += values[row];
	return sums;
}

/** Of the whole recording, one of the costs of rows, as sumLifetimes() has it: "allocated", "live", "temporary" or "peak". */
export function wholeRecording(recording, nNodes, selected, cost) {
	const [blocks, bytes] = [cost, `${cost}Bytes`].map((column) => sumByNode(recording, nNodes, selected, column));
	return { blocks, bytes, total: totalOf(recording, selected, cost) };
}

/** Its sums: { blocks, bytes }. */
export function totalOf(recording, selected, cost) {
	const blocks = recording.rows[cost];
	const bytes = recording.rows[`${cost}Bytes`];
	const total = { blocks: 0, bytes: 0 };

	for (let row = 0; row < selected.length; row++) {
		total.blocks += selected[row] * blocks[row];
		total.bytes += selected[row] * bytes[row];
	}
	return total;
}

/** The time line of the selected rows: what is alive at each point, and what was allocated in each epoch. */
export function timeLine(recording, selected) {
	const { row, born, died, blocks, bytes } = recording.lifetimes;
	const { nEpochs } = recording;
	const alive = { blocks: new Float64Array(nEpochs + 1), bytes: new Float64Array(nEpochs + 1) };
	const allocated = { blocks: new Float64Array(nEpochs), bytes: new Float64Array(nEpochs) };

	for (let i = 0; i < row.length; i++) {
		if (!selected[row[i]])
			continue;
		allocated.blocks[born[i]] += blocks[i];
		allocated.bytes[born[i]] += bytes[i];
		alive.blocks[born[i] + 1] += blocks[i];
		alive.bytes[born[i] + 1] += bytes[i];
		if (died[i] < nEpochs) {
			alive.blocks[died[i] + 1] -= blocks[i];
			alive.bytes[died[i] + 1] -= bytes[i];
		}
	}
	for (let point = 1; point <= nEpochs; point++) {
		alive.blocks[point] += alive.blocks[point - 1];
		alive.bytes[point] += alive.bytes[point - 1];
	}
	return { alive, allocated };
}

/** The first index of the greatest value. */
export function highestPoint(values) {
	let highest = 0;

	for (let point = 1; point < values.length; point++)
		if (values[point] > values[highest])
			highest = point;
	return highest;
}
