// SPDX-License-Identifier: GPL-3.0-or-later
// Which bands the time line has: what they are of, by what, and their names.

import { groupRows, makeBands, makeCharge } from "./bands.js";
import { colourBands } from "./band_paint.js";
import { choiceList, element } from "./elements.js";
import { formatCounted, formatExactly, formatValue } from "./format.js";
import { argumentsOf, showName } from "./names.js";

const charts = [["alive", "live memory"], ["allocated", "allocations"]];
const groupings = [
	["function", "by function"], ["stack", "by stack"], ["type", "by type"], ["thread", "by thread"], ["process", "by process"], ["program", "by program"],
	["cgroup", "by control group"],
];
const framesInName = 2;

export class BandPanel {
	/**
	 * Makes lists to choose from in @tools, and a legend in @legend. @functions: a FunctionTable. @onChange is called after another choice;
	 * @onPick with what the bands are by, and the key of one: of a function its number, of a stack its node, else a Set of threads; with
	 * "lost" alone for what was lost.
	 */
	constructor(tools, legend, recording, functions, onChange, onPick) {
		Object.assign(this, { legend, recording, functions, onPick, what: "alive", by: "function" });
		const { processes } = recording.meta;
		const isOfMany = (column) => new Set(processes.map((process) => process[column]).filter((name) => name !== null)).size > 1;
		this.known = new Map();
		this.firsts = {};
		this.chargedTo = makeCharge(functions.trie);
		this.groupings = groupings.filter(([by]) => (by !== "process" || processes.length > 1) &&
			(by !== "program" || isOfMany(1)) && (by !== "cgroup" || isOfMany(3)) && (by !== "type" || recording.meta.types));
		this.lists = {
			what: choiceList("Chart", charts, this.what, (what) => this.choose({ what }, onChange), { id: "chart" }),
			by: choiceList("Bands", this.groupings, this.by, (by) => this.choose({ by }, onChange), { id: "bands-by" }),
		};
		tools.prepend(this.lists.what, this.lists.by);
	}

	choose(choice, onChange) {
		Object.assign(this, choice);
		onChange();
	}

	state() {
		const { what, by } = this;
		return { chart: what === "alive" ? undefined : what, bands: by === "function" ? undefined : by };
	}

	restore({ chart, bands }) {
		this.what = charts.some(([what]) => what === chart) ? chart : "alive";
		this.by = this.groupings.some(([by]) => by === bands) ? bands : "function";
		for (const [name, list] of Object.entries(this.lists))
			list.querySelector("select").value = this[name];
	}

	/** The groups of rows that are chosen, and the colours that their bands have had, which stay. */
	grouping() {
		const { by, recording } = this;
		if (!this.known.has(by))
			this.known.set(by, { groups: this.groupsBy(by), colours: new Map() });
		return this.known.get(by);
	}

	groupsBy(by) {
		const { meta, rows: { node, thread, type } } = this.recording;
		const { functions } = this;
		const { trie } = functions;
		if (by === "function")
			return groupRows(node.length, functions.first.length, (row) => functions.ofNode(this.chargedTo(node[row])));
		if (by === "stack")
			return groupRows(node.length, trie.size, (row) => node[row]);
		if (by === "type")
			return groupRows(node.length, meta.types.length, (row) => type[row]);
		return groupRows(node.length, meta.threads.length + meta.processes.length, (row) => this.keyOfThread(by, thread[row]));
	}

	/** The number of the first thread of that name, of the process, or of the first process of that program or control group. */
	keyOfThread(by, thread) {
		const { threads, processes } = this.recording.meta;
		const [process] = threads[thread];
		const first = (by, list, column) => (this.firsts[by] ??= firstOf(list.map((row) => row[column])));
		return {
			thread: () => first("thread", threads, 1)[thread],
			process: () => process,
			program: () => first("program", processes, 1)[process],
			cgroup: () => first("cgroup", processes, 3)[process],
		}[by]();
	}

	nameOf({ key, nGroups }) {
		const { trie, first } = this.functions;
		const { processes, threads, types } = this.recording.meta;
		const name = (node) => trie.frames.name[trie.frame[node]];
		if (key === undefined)
			return formatCounted(nGroups, "others");
		return showName({
			function: () => trie.frames.name[first[key]],
			stack: () => trie.path(this.chargedTo(key)).slice(-framesInName).reverse().map(name).join(" \u2190 "),
			type: () => types[key][0],
			thread: () => threads[key][1],
			process: () => `${processes[key][1]} (${processes[key][0]})`,
			program: () => processes[key][1],
			cgroup: () => processes[key][3] ?? "[unknown group]",
		}[this.by]());
	}

	/** The bands of the selected rows, of which @line is the time line, for TimeLine.setLines(). */
	make(selected, unit, line) {
		const { groups, colours } = this.grouping();
		const list = makeBands(this.recording, selected, groups, this.what, unit, line);
		this.bands = { what: this.what, list, colours: colourBands(list, colours), names: list.map((band) => this.nameOf(band)) };
		this.unit = unit;
		return this.bands;
	}

	/** Says of each band what is alive of it at a point, or its most where that is null. */
	update(point) {
		const { list, colours, names, what } = this.bands;
		const isAt = point !== null && what === "alive";
		this.legend.replaceChildren(...list.map((band, i) => {
			const value = isAt ? band.stays[point] + band.freed[point] : band.peak;
			const swatch = element("span.swatch", { "aria-hidden": "true" });
			swatch.style.background = colours[i];
			const parts = [swatch, element("span.code", {}, names[i]),
				this.argumentsElement(band),
				element("span.soft", {}, ` ${isAt ? "" : "up to "}${formatValue(value, this.unit)}`)];
			const title = formatExactly(value, this.unit);
			return element("li", {}, band.key === undefined || this.by === "type" ? element("span.band", { title }, ...parts)
				: element("button.band", { type: "button", title, click: () => this.onPick(this.by, this.keyFor(band.key)) }, ...parts));
		}), ...this.recording.meta.missing.length ? [element("li", {}, element("button.band.soft", {
			type: "button", click: () => this.onPick("lost"),
		}, "What was lost is in no band"))] : []);
	}

	/** What tells processes of one name apart, where bands are by process. */
	argumentsElement({ key }) {
		const [, name, command] = this.by === "process" && key !== undefined ? this.recording.meta.processes[key] : [];
		return command ? element("span.code.soft.command", { title: showName(command) }, ` ${showName(argumentsOf(command, name))}`) : null;
	}

	keyFor(key) {
		const { threads } = this.recording.meta;
		if (this.by === "function" || this.by === "stack")
			return key;
		return new Set([...threads.keys()].filter((thread) => this.keyOfThread(this.by, thread) === key));
	}
}

/** By index of a name, the index of the first that is equal. */
function firstOf(names) {
	const known = new Map();
	return names.map((name, i) => known.get(name) ?? (known.set(name, i), i));
}
