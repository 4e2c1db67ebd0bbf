// SPDX-License-Identifier: GPL-3.0-or-later
// Single blocks of a recording with an event log, and what became of each.

import { formatDuration } from "./axis.js";
import { element } from "./elements.js";
import { formatBytes, formatCount, formatCounted, formatExactly } from "./format.js";
import { timeOfPoint } from "./moments.js";
import { showName } from "./names.js";
import { DataTable, stackCell } from "./report_tables.js";

// enum block_fate of src/report/event_blocks.h
const alive = 0;
const reallocated = 2;
const fates = ["alive at the end", "freed", "reallocated", "its end was not seen: the address was returned again", "gone with its address space, by an exec"];

const addressText = (address) => `0x${address.toString(16)}`;

/**
 * Which blocks belong to what the page shows, as a function of a block's index: @choice and @card are the page's, @peak the point of
 * the time line at which most was alive.
 */
export function blockTest({ blocks, ...recording }, choice, card, peak) {
	const { born, died, fate, temporary } = blocks;
	const timeOf = (point) => timeOfPoint(recording, point);
	const diesBefore = (i, ns) => fate[i] !== alive && died[i] < ns;
	const isAliveAt = (point) => (i) => born[i] < timeOf(point) && !diesBefore(i, timeOf(point));

	if (choice.kind === "moment")
		return choice.point === recording.nEpochs ? (i) => fate[i] === alive : isAliveAt(choice.point);
	if (choice.kind === "all")
		return { live: (i) => fate[i] === alive, peak: isAliveAt(peak), temporary: (i) => temporary[i] === 1 }[card] ?? (() => true);
	// The last span contains what happens at the very end.
	const from = timeOf(choice.from);
	const until = choice.until === recording.nEpochs ? Infinity : timeOf(choice.until);
	const isBorn = (i) => born[i] >= from && born[i] < until;
	if (card === "freed")
		return (i) => fate[i] !== alive && died[i] >= from && died[i] < until;
	return card === "kept" ? (i) => isBorn(i) && !diesBefore(i, until) : isBorn;
}

export class BlockPanel {
	constructor(trie, recording) {
		const { blocks } = recording;
		this.recording = recording;
		this.search = element("input", {
			type: "search", placeholder: "An address that they have", input: () => this.list(), "aria-label": "Search an address",
		});
		this.count = element("span.soft", { role: "status" });
		const lifeOf = (i) => (blocks.fate[i] === alive ? Infinity : blocks.died[i] - blocks.born[i]);
		this.table = new DataTable([
			{
				title: "Bytes", className: "number", order: (i) => blocks.bytes[i],
				cell: (i) => element("span", { title: formatExactly(blocks.bytes[i], "bytes") }, formatBytes(blocks.bytes[i])),
			},
			{ title: "Address", className: "number", order: (i) => blocks.address[i], cell: (i) => element("span.code", {}, addressText(blocks.address[i])) },
			{
				title: "Allocated", className: "number", order: (i) => blocks.born[i],
				cell: (i) => formatDuration(blocks.born[i]),
			},
			{
				title: "Lived", className: "number", order: lifeOf,
				cell: (i) => formatDuration(Math.max(0, (blocks.fate[i] === alive ? recording.endNs : blocks.died[i]) - blocks.born[i])),
			},
			...recording.meta.types ? [{ title: "Type", className: "name-cell", cell: (i) => showName(this.typeOf(i)) }] : [],
			{ title: "Thread", cell: (i) => this.threadOf(blocks.thread[i], blocks.tid[i]) },
			{ title: "What became of it", className: "name-cell", cell: (i) => this.fateOf(i) },
			{
				title: "Stack, from the caller of the allocator on", className: "name-cell",
				cell: (i) => (blocks.node[i] ? stackCell(trie, blocks.node[i]) : "-"),
			},
		], this.caption(), 0);
		this.container = element("div", {}, element("div.filter", {}, this.search, this.count), this.table.container);
	}

	caption() {
		const { bytes, sums } = this.recording.blocks;
		const unknown = sums.unknown ? ` ${formatCounted(sums.unknown, "more blocks")} of the log are of calls that the data file does not have.` : "";
		const which = sums.is_cut ? `The ${formatCount(bytes.length)} largest of ${formatCounted(sums.selected, "blocks")} of the event log.`
			: sums.selected === sums.logged ? "The blocks of the event log." : "Those blocks of the event log that are selected.";
		return `${which}${unknown} allocprof report --blocks lists all.`;
	}

	/** The type of a block, if it is known. */
	typeOf(i) {
		const [name, isKnown] = this.recording.meta.types[this.recording.blocks.type[i]];
		return isKnown ? name : "";
	}

	threadOf(thread, id) {
		const { threads, processes } = this.recording.meta;
		const [process, name] = threads[thread];
		const of = processes.length > 1 && processes[process][1] !== name ? ` of ${showName(processes[process][1])}` : "";
		return `${showName(name)} (${id})${of}`;
	}

	fateOf(i) {
		const { fate, tid, endedBy, endedThread, nextAddress, nextBytes, temporary, weight } = this.recording.blocks;
		const by = !endedBy[i] ? "" : endedBy[i] === tid[i] ? " by the same thread"
			: ` by ${endedThread[i] ? this.threadOf(endedThread[i] - 1, endedBy[i]) : `thread ${endedBy[i]}`}`;
		const to = fate[i] === reallocated ? ` to ${formatBytes(nextBytes[i])} at ${addressText(nextAddress[i])}` : "";
		const soon = temporary[i] ? ", before it allocated again" : "";
		const many = weight[i] > 1 ? `; stands for ${formatCount(weight[i])} blocks` : "";
		return `${fates[fate[i]]}${by}${to}${soon}${many}`;
	}

	/** @isIncluded: by thread, or null for all; @isShown: of a block's index. */
	update(isIncluded, isShown) {
		const { thread, bytes } = this.recording.blocks;
		this.shown = [...bytes.keys()].filter((i) => (!isIncluded || isIncluded[thread[i]]) && isShown(i));
		this.list();
	}

	list() {
		const { address, bytes } = this.recording.blocks;
		const wanted = Number.parseInt(this.search.value.trim(), 16);
		const has = (i) => address[i] === wanted || (address[i] < wanted && wanted < address[i] + bytes[i]);
		const found = Number.isNaN(wanted) ? this.shown : this.shown.filter(has);
		this.count.textContent = `${formatCount(found.length)} of ${formatCounted(bytes.length, "blocks")}`;
		this.table.setRows([...found]);
	}
}
