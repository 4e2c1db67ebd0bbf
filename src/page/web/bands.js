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

/**
 * Groups of rows with one key, a number below @nKeys: of gives each row's group, and keys each group's key. The rows of a group are
 * rows[start[group]] to rows[start[group + 1] - 1].
 */
export function groupRows(nRows, nKeys, keyOfRow) {
	const numbers = new Uint32Array(nKeys);
	const of = new Uint32Array(nRows);
	const keys = [];

	for (let row = 0; row < nRows; row++) {
		const key = keyOfRow(row);
		numbers[key] ||= keys.push(key);
		of[row] = numbers[key] - 1;
	}
	const start = new Uint32Array(keys.length + 1);
	for (let row = 0; row < nRows; row++)
		start[of[row] + 1]++;
	for (let group = 0; group < keys.length; group++)
		start[group + 1] += start[group];
	const next = start.slice();
	const rows = new Uint32Array(nRows);
	for (let row = 0; row < nRows; row++)
		rows[next[of[row]]++] = row;
	return { of, keys, start, rows };
}

/** The selected cells, which are sorted by row, and what each group has of them: in all, and blocks that were freed, or not. */
class GroupedCells {
	constructor({ lifetimes, nEpochs }, selected, groups, unit) {
		const { row, blocks } = lifetimes;
		const values = lifetimes[unit];
		const { of, keys: { length: nGroups } } = groups;
		Object.assign(this, { lifetimes, values, nEpochs, selected, groups });
		this.all = new Float64Array(nGroups);
		this.live = new Float64Array(nGroups);
		this.freed = new Float64Array(nGroups);
		this.first = new Uint32Array(of.length + 1); // cell of each row, and of what comes after the last one
		for (let at = 0, i = 0; at < of.length; at++) {
			const group = of[at];
			let all = 0, live = 0, freed = 0;
			for (; i < row.length && row[i] === at; i++) {
				all += values[i];
				if (this.isFreed(i))
					freed += blocks[i];
				else
					live += blocks[i];
			}
			this.first[at + 1] = i;
			if (selected[at]) {
				this.all[group] += all;
				this.live[group] += live;
				this.freed[group] += freed;
			}
		}
	}

	isFreed(cell) {
		const { died, left } = this.lifetimes;
		return died[cell] < this.nEpochs && !left?.[cell];
	}

	/** Calls @visit with the first cell of each row of a group, and with the one after its last. */
	visit(group, visit) {
		const { first, selected, groups: { start, rows } } = this;
		for (let at = start[group]; at < start[group + 1]; at++)
			if (selected[rows[at]])
				visit(first[rows[at]], first[rows[at] + 1]);
	}

	/** The age in epochs that freed blocks of a group usually reach; -1 where there is none. @scratch: zeros, by epoch. */
	usualAge(group, scratch) {
		const { born, died, blocks } = this.lifetimes;
		if (!this.live[group] || this.freed[group] < Math.max(leastFreed, this.live[group]))
			return -1;
		let oldest = 0;
		this.visit(group, (from, until) => {
			for (let i = from; i < until; i++) {
				if (this.isFreed(i)) {
					const age = died[i] - born[i];
					scratch[age] += blocks[i];
					oldest = Math.max(oldest, age);
				}
			}
		});
		// From the oldest on, as few are older.
		const more = this.freed[group] - Math.floor((this.freed[group] * usualPercent) / 100);
		let usual = oldest;
		for (let older = scratch[usual]; older <= more; older += scratch[usual])
			usual--;
		scratch.fill(0, 0, oldest + 1);
		return usual;
	}

	/** The most that was alive of a group at a point, or was allocated of it in an epoch. */
	peak(group, what, scratch) {
		const { values } = this;
		const { born, died } = this.lifetimes;
		let sum = 0, most = 0;
		this.visit(group, (from, until) => {
			for (let i = from; i < until; i++) {
				scratch[born[i]] += values[i];
				if (what === "alive")
					scratch[died[i]] -= values[i];
			}
		});
		for (const change of scratch.subarray(0, this.nEpochs)) {
			sum = change + (what === "alive" ? sum : 0);
			most = Math.max(most, sum);
		}
		scratch.fill(0);
		return most;
	}
}

/** The groups that have bands of their own, the greatest first. No group has more at once than it has in all. */
function greatestGroups({ all }, least, peakOf) {
	const candidates = [];
	const found = [];

	for (let group = 0; group < all.length; group++)
		if (all[group] && all[group] >= least)
			candidates.push(group);
	candidates.sort((a, b) => all[b] - all[a] || a - b);
	for (const group of candidates) {
		if (found.length === mostBands && all[group] < found.at(-1).peak)
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
function addAlive(bands, bandOf, usual, cells) {
	const { first, values, selected, nEpochs, groups: { of }, lifetimes: { born, died } } = cells;

	for (let row = 0; row < of.length; row++) {
		if (!selected[row])
			continue;
		const { stays, freed } = bands[bandOf[of[row]]];
		const usualAge = usual[of[row]];
		for (let i = first[row]; i < first[row + 1]; i++) {
			const age = Math.min(died[i], nEpochs - 1) - born[i];
			const changes = age > usualAge && !cells.isFreed(i) ? stays : freed;
			changes[born[i] + 1] += values[i];
			if (died[i] < nEpochs)
				changes[died[i] + 1] -= values[i];
		}
	}
}

function addAllocated(bands, bandOf, cells) {
	const { first, values, selected, groups: { of }, lifetimes: { born, died } } = cells;

	for (let row = 0; row < of.length; row++) {
		if (!selected[row])
			continue;
		const { stays, freed } = bands[bandOf[of[row]]];
		for (let i = first[row]; i < first[row + 1]; i++)
			(died[i] === born[i] && cells.isFreed(i) ? freed : stays)[born[i]] += values[i];
	}
}

function settle(values) {
	for (let point = 1; point < values.length; point++)
		values[point] += values[point - 1];
}

/**
 * The greatest groups, and last all others, if there are any: [{ key, peak, stays, freed, nGroups }]. Of "alive" stays and freed are
 * by point, what stays and what is freed later; of "allocated" by epoch, what outlived it and what was freed in it. peak is the most
 * of both at once; key is undefined of the others, of which nGroups have any. @line: of timeLine(), of the same selected rows.
 */
export function makeBands(recording, selected, groups, what, unit, line) {
	const { nEpochs } = recording;
	const cells = new GroupedCells(recording, selected, groups, unit);
	const scratch = new Float64Array(nEpochs + 1);
	const least = leastShare * line[what][unit].reduce((most, value) => Math.max(most, value), 0);
	const greatest = greatestGroups(cells, least, (group) => cells.peak(group, what, scratch));
	const made = (key) => ({ key, peak: 0, nGroups: 1, stays: new Float64Array(nEpochs + 1), freed: new Float64Array(nEpochs + 1) });
	const bands = [...greatest.map((group) => made(groups.keys[group])), made(undefined)];
	const bandOf = new Uint8Array(groups.keys.length).fill(greatest.length);

	greatest.forEach((group, i) => {
		bandOf[group] = i;
	});
	if (what === "alive") {
		addAlive(bands, bandOf, Int32Array.from(bandOf, (_, group) => cells.usualAge(group, scratch)), cells);
		for (const band of bands)
			[band.stays, band.freed].forEach(settle);
	} else {
		addAllocated(bands, bandOf, cells);
	}
	bands.at(-1).nGroups = cells.all.reduce((n, sum, group) => n + (sum && bandOf[group] === greatest.length ? 1 : 0), 0);
	for (const band of bands)
		band.peak = band.stays.reduce((most, stays, i) => Math.max(most, stays + band.freed[i]), 0);
	return bands.filter(({ peak }) => peak);
}
