// SPDX-License-Identifier: GPL-3.0-or-later
// Leaks, temporary blocks, histograms, threads to select by, and what a recording says of itself.

import { formatDuration } from "./axis.js";
import { element } from "./elements.js";
import { formatBytes, formatChange, formatCount, formatCounted, formatExactly, formatShare, formatValue } from "./format.js";
import { nodesWith, startOfBucket, sumHistogram } from "./functions.js";
import { showName } from "./names.js";
import { changeColumn, DataTable, shareColumn, stackColumn, valueColumn } from "./report_tables.js";
import { writeState } from "./state.js";

const asBytes = () => "bytes";
const asBlocks = () => "blocks";

/** What a finding shows, by its kind; by cost, where two recordings are compared. */
const shownBy = {
	incomplete: () => ({ panel: "ledger" }),
	lost: () => ({ card: "live" }), growing: () => ({ card: "live" }), peak: () => ({ card: "peak" }),
	churn: () => ({ unit: "blocks" }), resident: (nEpochs) => ({ at: nEpochs, panel: "resident" }), advice: () => ({ unit: "blocks", panel: "advice" }),
	"live-bytes": () => ({ card: "live" }), bytes: () => ({}), allocations: () => ({ unit: "blocks" }),
};

/** A finding as a link that sets what is shown, and zooms to the function. */
export function findingLink({ kind, function: name, says, detail, node }, nEpochs) {
	const fragment = writeState({ ...shownBy[kind](nEpochs), zoom: node ?? undefined });
	return element("a.finding", { href: `#${fragment}`, "data-kind": kind, title: name ? showName(name) : "" },
		element("span.says", {}, name ? element("span.code", {}, showName(name)) : null, name ? ` ${says}` : says),
		element("span.detail", {}, showName(detail)));
}

/** Sentences that are unfolded from one line. */
export function remarkList(title, sentences, isMissing) {
	return element(`details.finding.remarks${isMissing ? ".missing" : ""}`, {},
		element("summary", {}, `${title}: ${formatCounted(sentences.length, "remarks")}`),
		element("ul", {}, ...sentences.map((text) => element("li", {}, text))));
}

/** What the numbers advise, by what it saves. */
export class AdvicePanel {
	constructor(advice) {
		this.table = new DataTable([
			{ title: "Advice", cell: ({ says }) => says },
			{ title: "Saves", order: (row) => -advice.indexOf(row), cell: ({ detail }) => detail },
			{
				title: "In", className: "name-cell", cell: ({ function: name, node }) =>
					element("a.code", { href: `#${writeState({ unit: "blocks", panel: "advice", zoom: node ?? undefined })}` }, showName(name)),
			},
			{ title: "Why", className: "name-cell", cell: ({ reason }) => reason },
		], "Where calls of the allocator, or memory, can be saved, as far as the numbers tell.", 1);
		this.table.setRows([...advice]);
		this.container = this.table.container;
	}
}

const unknownGrowth = { verdict: "-", rate: 0 };

// Of src/report/growth.h, and before them "unknown".
const growthVerdicts = ["-", "no", "undecided", "growing"];

/** What is alive at the end, by stack: its oldest block, and whether the stack was still growing. */
export class LeakPanel {
	constructor(trie, recording, hasBase) {
		this.recording = recording;
		this.table = new DataTable([
			valueColumn("Bytes", asBytes, (node) => this.values.bytes[node]),
			valueColumn("Blocks", asBlocks, (node) => this.values.blocks[node]),
			shareColumn((node) => this.values.bytes[node], () => this.values.total.bytes),
			...hasBase ? [changeColumn("Change", asBytes, (node) => this.values.bytes[node] - this.base.bytes[node])] : [],
			{
				title: "Oldest", className: "number", order: (node) => this.ageOf(node),
				cell: (node) => this.values.blocks[node] ? formatDuration(this.ageOf(node)) : "-",
			},
			{
				title: "Growing", className: "number",
				order: (node) => this.growthOf(node).verdict === "growing" ? this.growthOf(node).rate : 0,
				cell: (node) => this.growthCell(this.growthOf(node)),
			},
			stackColumn(trie),
		], "Blocks that were alive at the end, or that ended processes left. Growing: whether their bytes still grew when the recording ended, or when the program began to free all because it ended.", 0);
		this.container = this.table.container;
	}

	ageOf(node) {
		return this.values.blocks[node] ? Math.max(0, this.recording.endNs - this.oldest[node]) : 0;
	}

	growthOf(node) {
		const { node: nodes, growing, bytesPerSecond } = this.recording.leaks;
		this.byNode ??= new Map(Array.from(nodes, (at, i) => [at, i]));
		const i = this.byNode.get(node);
		return i === undefined ? unknownGrowth : { verdict: growthVerdicts[growing[i]], rate: bytesPerSecond[i] };
	}

	growthCell({ verdict, rate }) {
		return verdict !== "growing" ? verdict : element("span.grew", {}, `${formatChange(rate, "bytes")}/s`);
	}

	update(values, base, selected) {
		const { node, oldestNs } = this.recording.rows;

		this.values = values;
		this.base = base;
		// By node, when the first of its blocks was allocated.
		this.oldest = new Float64Array(values.blocks.length).fill(Infinity);
		for (let row = 0; row < node.length; row++)
			if (selected[row])
				this.oldest[node[row]] = Math.min(oldestNs[row], this.oldest[node[row]]);
		this.table.setRows(nodesWith(values.bytes, base?.bytes));
	}
}

/** Blocks that were freed before the same thread's next allocation. */
export class TemporaryPanel {
	constructor(trie, hasBase) {
		this.table = new DataTable([
			valueColumn("Blocks", asBlocks, (node) => this.values.blocks[node]),
			valueColumn("Bytes", asBytes, (node) => this.values.bytes[node]),
			{
				title: "Of its allocations", className: "number",
				order: (node) => this.values.blocks[node] / (this.allocated.blocks[node] || 1),
				cell: (node) => formatShare(this.values.blocks[node], this.allocated.blocks[node]),
			},
			...hasBase ? [changeColumn("Change", asBlocks, (node) => this.values.blocks[node] - this.base.blocks[node])] : [],
			stackColumn(trie),
		], "Blocks that were freed before the same thread's next allocation: the allocator's work for nothing.", 0);
		this.container = this.table.container;
	}

	update(values, base, allocated) {
		Object.assign(this, { values, base, allocated });
		this.table.setRows(nodesWith(values.blocks, base?.blocks));
	}
}

/** "512 to 1,023" */
function sizesOf(bucket) {
	const least = startOfBucket(bucket);
	return bucket < 2 ? formatCount(least) : `${formatCount(least)} to ${formatCount(2 * least - 1)}`;
}

function agesOf(bucket) {
	return `${formatDuration(startOfBucket(bucket))} to ${formatDuration(startOfBucket(bucket + 1))}`;
}

/** The buckets, but rows of more than three empty ones as null. */
function withGaps(buckets) {
	const rows = [];
	for (let i = 0, until; i < buckets.length; i = until) {
		for (until = i + 1; !buckets[i][1] && until < buckets.length && !buckets[until][1];)
			until++;
		rows.push(...until - i > 3 ? [null] : buckets.slice(i, until));
	}
	return rows;
}

function histogramTable(title, buckets, nameOf) {
	const sum = buckets.reduce((total, [, blocks]) => total + blocks, 0);
	const most = buckets.reduce((greatestYet, [, blocks]) => Math.max(greatestYet, blocks), 0);
	const row = (one) => {
		if (!one)
			return element("tr", {}, element("td.number", { colSpan: 4 }, "\u22ee"));
		const [bucket, blocks] = one;
		const bar = element("span");
		bar.style.width = blocks ? `max(1px, ${(100 * blocks) / most}%)` : "0";
		return element("tr", {}, element("td.number", {}, nameOf(bucket)), element("td.number", {}, formatCount(blocks)),
			element("td.number", {}, formatShare(blocks, sum)), element("td.barcell", { "aria-hidden": "true" }, bar));
	};
	const heading = (text) => element("th.number", { scope: "col" }, text);

	return element("div", {}, element("h3", {}, title), sum
		? element("table.data", {},
			element("thead", {}, element("tr", {}, heading(title.split(" ")[0]), heading("Blocks"), heading("Share"),
				element("th", { "aria-hidden": "true" }))),
			element("tbody", {}, ...withGaps(buckets).map(row)))
		: element("p.soft", {}, "No blocks."));
}

export class HistogramPanel {
	constructor(recording) {
		this.recording = recording;
		this.container = element("div.two");
	}

	/** @isIncluded: by thread, or null for all. */
	update(isIncluded) {
		this.container.replaceChildren(
			histogramTable("Sizes of blocks in bytes", sumHistogram(this.recording.sizes, isIncluded), sizesOf),
			histogramTable("Lifetimes of blocks that were freed", sumHistogram(this.recording.ages, isIncluded), agesOf));
	}
}

function factsOf({ meta, endNs, epochNs, nEpochs }) {
	const facts = [
		["Recorded", meta.title], ["File", meta.file], ["Started", meta.startTime],
		["Duration", endNs ? formatDuration(endNs) : null], ["Exit status", meta.exitStatus],
		["Epochs", nEpochs ? `${formatCount(nEpochs)} of ${formatDuration(epochNs)}: times are known to that` : null],
		["Engine", meta.engine], ["Kernel", meta.kernel], ["allocprof", meta.version],
	];
	return element("dl.facts", {}, ...facts.filter(([, text]) => text).flatMap(([name, text]) =>
		[element("dt", {}, name), element("dd", {}, showName(text))]));
}

function ledgerTable({ meta }) {
	const listed = meta.ledger.filter(([name, value]) => value || !name.includes("_"));
	return element("table.data", {},
		element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Entry"),
			element("th.number", { scope: "col" }, "Calls or blocks"), element("th", { scope: "col" }, "What it means"))),
		element("tbody", {}, ...listed.map(([name, value, meaning]) => element("tr", {},
			element("td.code", {}, showName(name)), element("td.number", {}, formatCount(value)),
			element("td.name-cell", {}, meaning ?? "")))));
}

/** The ledger of a recording, and what is incomplete. */
export function ledgerPanel(recording) {
	const { meta } = recording;
	const sentences = [...meta.notes, ...meta.missingStrict];

	return element("div", {},
		element("h3", {}, "The recording"), factsOf(recording),
		element("h3", {}, meta.isComplete ? "Complete: no call is missing" : "Not complete"),
		sentences.length ? element("ul.sentences", {}, ...sentences.map((text) => element("li", {}, showName(text)))) : null,
		element("h3", {}, "Ledger"), ledgerTable(recording));
}

const residentParts = [
	["blocks", "Live blocks"], ["slack", "Rest of their pages"], ["free", "Allocator's, without a live block"],
	["before", "From before"], ["mappings", "Other mappings"], ["inherited", "Of forked processes"], ["stacks", "Thread stacks"],
	["data", "Data"], ["files", "Files"], ["shared", "Shared"], ["allocprof", "allocprof's"], ["changed", "Changed meanwhile"],
];

/** What the resident memory consisted of at some moments: a row each. */
export function residentTable(recording, timeOf) {
	const samples = recording.meta.residentParts;
	const parts = residentParts.filter(([name]) => samples.some((sample) => sample[name]));
	const heading = (text) => element("th.number", { scope: "col" }, text);
	const cell = (value) => element("td.number", { title: formatExactly(value, "bytes") }, formatBytes(value));

	return element("table.data", {},
		element("thead", {}, element("tr", {}, heading("Time"), heading("Resident"), ...parts.map(([, title]) => heading(title)))),
		element("tbody", {}, ...samples.map((sample) => element("tr", {},
			element("td.number", {}, timeOf(sample.time_ns)),
			cell(residentParts.reduce((sum, [name]) => sum + (sample[name] ?? 0), 0)),
			...parts.map(([name]) => cell(sample[name] ?? 0))))));
}

/** The time line as a table of so many moments, with a button for each, and what was alive of each band. */
export function momentTable(points, timeOf, alive, unit, onChoose, { what, list, names }) {
	const heading = (text) => element("th.number", { scope: "col" }, text);
	const bands = what === "alive" ? list : [];
	const cell = (value, title) => element("td.number", { title }, formatValue(value, unit));

	return element("table.data", {},
		element("thead", {}, element("tr", {}, heading("Time"), heading("Alive"), ...bands.map((_, i) => heading(names[i])),
			element("th", { "aria-hidden": "true" }))),
		element("tbody", {}, ...points.map((point) => element("tr", {},
			element("td.number", {}, timeOf(point)), cell(alive[point], formatExactly(alive[point], unit)),
			...bands.map(({ stays, freed }) => cell(stays[point] + freed[point],
				`${formatExactly(stays[point] + freed[point], unit)}, of which ${formatExactly(stays[point], unit)} stays`)),
			element("td.name-cell", {}, element("button", { type: "button", click: () => onChoose(point), "aria-label": `Show ${timeOf(point)}` }, "Show"))))));
}
