// SPDX-License-Identifier: GPL-3.0-or-later
// What was alive of groups of blocks over time, and what was allocated of them: the bands of the time line. They are those of
// `allocprof graph`; src/report/graph_data.h says which blocks stay.

import { kinds } from "./trie.js";

/** Bands besides that of all other groups, and the share of the highest sum of all that one has at least: others could not be seen. */
const mostBands = 8;
const leastShare = 0.005;
/** A group has a usual age where so many of its blocks were freed: the one that this share of them did not exceed. */
const leastFreed = 100;
const usualPercent = 99;

/** A function that gives for the node of a stack that of the function to which its blocks are charged, as findings charge them. */
export function makeCharge({ parent, frame, frames }) {
	const isNamed = Uint8Array.from(frames.name, (name) => (name.startsWith("[") ? 0 : 1));
	const [own, library] = ["own", "library"].map((kind) => kinds.indexOf(kind));

	return (node) => {
		let ofLibrary = 0, withoutName = 0;
		for (let at = parent[node]; at; at = parent[at]) {
			const kind = frames.kind[frame[at]];
			if (kind === own && isNamed[frame[at]])
				return at;
			if (kind === library && isNamed[frame[at]])
				ofLibrary ||= at;
			else if (kind === own)
				withoutName ||= at;
		}
		return ofLibrary || withoutName || parent[node] || node;
	};
}

/** Groups of rows with one key, a number below @nKeys: of gives each row's group, and keys each group's key. */
export function groupRows(nRows, nKeys, keyOfRow) {
	const numbers = new Uint32Array(nKeys);
	const of = new Uint32Array(nRows);
	const keys = [];

	for (let row = 0; row < nRows; row++) {
		const key = keyOfRow(row);
		numbers[key] ||= keys.push(key);
		of[row] = numbers[key] - 1;
	}
	return { of, keys };
}

/** What the selected cells of each group have, and the most of all of them at once. */
function sumGroups(recording, selected, { of, keys }, what, unit) {
	const { lifetimes, nEpochs } = recording;
	const { row, born, died, blocks, left } = lifetimes;
	const values = lifetimes[unit];
	const [all, live, freed] = [0, 1, 2].map(() => new Float64Array(keys.length));
	const changes = new Float64Array(nEpochs + 1);

	for (let i = 0; i < row.length; i++) {
		if (!selected[row[i]])
			continue;
		const group = of[row[i]];
		all[group] += values[i];
		(died[i] < nEpochs && !left?.[i] ? freed : live)[group] += blocks[i];
		changes[born[i]] += values[i];
		if (what === "alive")
			changes[died[i]] -= values[i];
	}
	let sum = 0, most = 0;
	for (let epoch = 0; epoch < nEpochs; epoch++) {
		sum = what === "alive" ? sum + changes[epoch] : changes[epoch];
		most = Math.max(most, sum);
	}
	return { all, live, freed, most };
}

/** The selected cells of the groups that are @wanted, by group: those of group g are cells[start[g]] to cells[start[g + 1] - 1]. */
function cellsByGroup({ lifetimes: { row } }, selected, { of, keys }, wanted) {
	const start = new Uint32Array(keys.length + 1);
	for (let i = 0; i < row.length; i++)
		if (selected[row[i]] && wanted[of[row[i]]])
			start[of[row[i]] + 1]++;
	for (let group = 0; group < keys.length; group++)
		start[group + 1] += start[group];
	const next = start.slice();
	const cells = new Uint32Array(start[keys.length]);
	for (let i = 0; i < row.length; i++)
		if (selected[row[i]] && wanted[of[row[i]]])
			cells[next[of[row[i]]]++] = i;
	return (group) => cells.subarray(start[group], start[group + 1]);
}

/** The age in epochs that the @freed blocks, which are those of the cells that were freed, usually reach. */
function usualAge({ lifetimes: { born, died, blocks, left }, nEpochs }, cells, freed, scratch) {
	let oldest = 0;
	for (let i = 0; i < cells.length; i++) {
		const cell = cells[i];
		if (died[cell] < nEpochs && !left?.[cell]) {
			const age = died[cell] - born[cell];
			scratch[age] += blocks[cell];
			oldest = Math.max(oldest, age);
		}
	}
	const wanted = Math.floor((freed * usualPercent) / 100);
	let usual = 0;
	for (let sum = scratch[0]; sum < wanted; sum += scratch[usual])
		usual++;
	scratch.fill(0, 0, oldest + 1);
	return usual;
}

/** The most that was alive of the cells at the end of an epoch. */
function peakOfAlive({ lifetimes, nEpochs }, cells, unit, changes) {
	const { born, died } = lifetimes;
	const values = lifetimes[unit];
	let first = nEpochs, last = 0, alive = 0, most = 0;

	for (let i = 0; i < cells.length; i++) {
		const cell = cells[i];
		changes[born[cell]] += values[cell];
		changes[died[cell]] -= values[cell];
		first = Math.min(first, born[cell]);
		last = Math.max(last, died[cell]);
	}
	for (let epoch = first; epoch < Math.min(last + 1, nEpochs); epoch++) {
		alive += changes[epoch];
		most = Math.max(most, alive);
	}
	changes.fill(0, first, last + 1);
	return most;
}

/** The most that was allocated of the cells in an epoch. */
function mostAllocated({ lifetimes }, cells, unit, sums) {
	const { born } = lifetimes;
	const values = lifetimes[unit];
	let most = 0;

	for (const cell of cells)
		most = Math.max(most, sums[born[cell]] += values[cell]);
	for (const cell of cells)
		sums[born[cell]] = 0;
	return most;
}

/** The groups that have bands of their own, the greatest first. No group has more at once than it has in all. */
function greatestGroups(sums, least, peakOf) {
	const candidates = Uint32Array.from(sums.all.keys()).filter((group) => sums.all[group] >= least && sums.all[group])
		.sort((a, b) => sums.all[b] - sums.all[a] || a - b);
	const found = [];

	for (const group of candidates) {
		if (found.length === mostBands && sums.all[group] < found.at(-1).peak)
			break;
		const peak = peakOf(group);
		if (!peak || peak < least)
			continue;
		found.push({ group, peak });
		found.sort((a, b) => b.peak - a.peak || a.group - b.group);
		found.length = Math.min(found.length, mostBands);
	}
	return found.map(({ group }) => group);
}

/** Adds the selected cells to the bands of their groups: of what was alive the changes, of which settle() makes sums. */
function addCells(bands, bandOf, usual, recording, selected, { of }, what, unit) {
	const { lifetimes, nEpochs } = recording;
	const { row, born, died, left } = lifetimes;
	const values = lifetimes[unit];

	for (let i = 0; i < row.length; i++) {
		if (!selected[row[i]])
			continue;
		const group = of[row[i]];
		const band = bands[bandOf[group]];
		const isFreed = died[i] < nEpochs && !left?.[i];
		if (what === "allocated") {
			(isFreed && died[i] === born[i] ? band.freed : band.stays)[born[i]] += values[i];
			continue;
		}
		const age = Math.min(died[i], nEpochs - 1) - born[i];
		const changes = !isFreed && age > usual[group] ? band.stays : band.freed;
		changes[born[i] + 1] += values[i];
		if (died[i] < nEpochs)
			changes[died[i] + 1] -= values[i];
	}
}

function settle(values) {
	for (let point = 1; point < values.length; point++)
		values[point] += values[point - 1];
}

/**
 * The greatest groups, and last all others, if there are any: [{ key, peak, stays, freed, nGroups }]. Of "alive" stays and freed are
 * by point, what stays and what is freed later; of "allocated" by epoch, what outlived it and what was freed in it. peak is the most
 * of both at once; key is undefined of the others, of which nGroups have any.
 */
export function makeBands(recording, selected, groups, what, unit) {
	const { nEpochs } = recording;
	const nGroups = groups.keys.length;
	const sums = sumGroups(recording, selected, groups, what, unit);
	const least = leastShare * sums.most;
	const hasUsual = (group) => sums.live[group] > 0 && sums.freed[group] >= leastFreed && sums.freed[group] >= sums.live[group];
	const wanted = new Uint8Array(nGroups);
	for (let group = 0; group < nGroups; group++)
		wanted[group] = sums.all[group] >= least || hasUsual(group) ? 1 : 0;
	const cellsOf = cellsByGroup(recording, selected, groups, wanted);
	const scratch = new Float64Array(nEpochs + 1);
	const peakOf = what === "alive" ? peakOfAlive : mostAllocated;
	const greatest = greatestGroups(sums, least, (group) => peakOf(recording, cellsOf(group), unit, scratch));
	const usual = new Int32Array(nGroups).fill(-1);
	for (let group = 0; group < nGroups && what === "alive"; group++)
		if (hasUsual(group))
			usual[group] = usualAge(recording, cellsOf(group), sums.freed[group], scratch);
	const made = (key) => ({ key, peak: 0, nGroups: 1, stays: new Float64Array(nEpochs + 1), freed: new Float64Array(nEpochs + 1) });
	const bands = [...greatest.map((group) => made(groups.keys[group])), made(undefined)];
	const bandOf = new Uint8Array(nGroups).fill(greatest.length);

	greatest.forEach((group, i) => {
		bandOf[group] = i;
	});
	addCells(bands, bandOf, usual, recording, selected, groups, what, unit);
	bands.at(-1).nGroups = sums.all.reduce((n, sum, group) => n + (sum && bandOf[group] === greatest.length ? 1 : 0), 0);
	for (const band of bands) {
		if (what === "alive")
			[band.stays, band.freed].forEach(settle);
		band.peak = band.stays.reduce((most, stays, i) => Math.max(most, stays + band.freed[i]), 0);
	}
	return bands.filter(({ peak }) => peak);
}
