// SPDX-License-Identifier: GPL-3.0-or-later
// Control groups, if there are several, programs, their processes and threads: a tree of what each has, in which each can be left out
// of the page.

import { element } from "./elements.js";
import { formatChange, formatCount, formatCounted, formatExactly, formatShare, formatValue } from "./format.js";
import { argumentsOf, showName } from "./names.js";
import { countProcesses } from "./recording.js";
import { classOfChange } from "./report_tables.js";

/** Trees of more rows are folded at first. */
const mostUnfolded = 12;

/** What groups of groupThreads() have in common, with what these are told apart by below: { key, name, kind, command, groups, children }. */
function treeOf(groups) {
	const root = { key: "", children: new Map() };
	const hasGroups = new Set(groups.map(({ cgroup }) => cgroup).filter((cgroup) => cgroup)).size > 1;

	groups.forEach(({ cgroup, process, pid, command, thread }, at) => {
		const path = [
			{ kind: "program", of: process, name: process },
			{ kind: "process", of: [pid, command].join(), name: pid === null ? process : `${process} (${pid})`, command },
			{ kind: "thread", of: thread, name: thread },
		];
		if (hasGroups)
			path.unshift({ kind: "group", of: cgroup, name: cgroup ?? "[unknown group]" });
		let row = root;
		for (const { of, ...what } of path) {
			const key = `${row.key}\0${of}`;
			if (!row.children.has(key))
				row.children.set(key, { key, ...what, groups: [], children: new Map() });
			row = row.children.get(key);
			row.groups.push(at);
		}
	});
	return root.children;
}

/** Rows with all that are below them. */
function allRows(rows) {
	return rows.flatMap((row) => [row, ...allRows(row.children)]);
}

export class ThreadPanel {
	/** @onSelect gets the groups' indices that are selected, as a Set, and the process that alone is of them, or null for all. */
	constructor(groups, hasBase, onSelect) {
		this.groups = groups;
		this.hasBase = hasBase;
		this.onSelect = onSelect;
		this.isOn = new Set(groups.keys());
		this.roots = [...treeOf(groups).values()].map((row) => this.settled(row));
		this.hasGroups = this.roots.some(({ kind }) => kind === "group");
		this.unfolded = new Set(groups.length <= mostUnfolded ? allRows(this.roots).map(({ key }) => key)
			: this.roots.length === 1 ? [this.roots[0].key] : []);
		this.search = element("input", {
			type: "search", placeholder: "Search processes and threads", input: () => this.list(),
			"aria-label": "Search processes and threads",
		});
		this.status = element("span.soft", { role: "status" });
		this.body = element("tbody");
		this.container = element("div", {},
			element("div.filter", {}, this.search,
				element("button", { type: "button", click: () => this.showAll() }, "Show all"),
				element("button", { type: "button", click: () => this.only(this.found) }, "Only these"), this.status),
			element("table.data.threads", {},
				element("caption", {}, `What the page shows, by ${this.hasGroups ? "control group, " : ""}program, process and thread, of all threads. Those that are not shown are in nothing else on this page.`),
				element("thead", {}, element("tr", {}, ...this.headings())), this.body));
	}

	headings() {
		const titles = [["Shown"], ["Own", ".number"], ["Share", ".number"], ...this.hasBase ? [["Change", ".number"]] : [], ["Only"],
			[`${this.hasGroups ? "Control group, program" : "Program"}, process, thread`, ".name-cell"]];
		return titles.map(([title, more = ""]) => element(`th${more}`, { scope: "col" }, title));
	}

	/** The row with its children as an array: one of a single process is that process, and of a single thread of its name that thread. */
	settled(row) {
		const { groups } = row;
		let below = [...row.children.values()];
		const only = below.length === 1 && below[0];
		if (only && only.kind === "process")
			return this.settled({ ...row, name: only.name, command: only.command, children: only.children });
		if (only && only.kind === "thread" && only.name === this.groups[groups[0]].process)
			below = [];
		return { ...row, nProcesses: this.count(groups), children: below.map((child) => this.settled(child)) };
	}

	count(groups) {
		return countProcesses(groups.map((at) => this.groups[at]));
	}

	/** "only http", or null where all are shown. */
	selection() {
		const { length } = this.groups;
		if (this.isOn.size === length)
			return null;
		return this.isOn.size === 1 ? `only ${this.nameOf([...this.isOn][0])}`
			: `only ${formatCount(this.isOn.size)} of ${formatCount(length)} threads`;
	}

	showAll() {
		this.only(this.groups.keys());
	}

	processOf(at) {
		const { process, pid } = this.groups[at];
		const nProcesses = this.count([at]);
		const more = nProcesses > 1 ? ` (${formatCount(nProcesses)} processes)` : "";
		return showName(process) + (pid === null ? more : ` (${pid})`);
	}

	nameOf(at) {
		return `${this.processOf(at)}, ${showName(this.groups[at].thread)}`;
	}

	set(list, isOn) {
		for (const at of list)
			this.isOn[isOn ? "add" : "delete"](at);
		this.onSelect(this.isOn, null);
	}

	only(list, process = null) {
		this.isOn = new Set(list);
		this.onSelect(this.isOn, process);
	}

	/** @values: one number for each group, in @unit; @base: of the recording that this one is compared with. */
	update([values, base], unit) {
		Object.assign(this, { values, base, unit });
		this.whole = values.reduce((a, b) => a + b, 0);
		this.list();
	}

	sum(values, { groups }) {
		return groups.reduce((sum, at) => sum + values[at], 0);
	}

	list() {
		const wanted = this.search.value.toLowerCase();
		const isFound = (at) => {
			const { cgroup, command, process } = this.groups[at];
			const texts = [this.nameOf(at), cgroup, command && argumentsOf(command, process)];
			return !wanted || texts.some((text) => text?.toLowerCase().includes(wanted));
		};
		const focused = document.activeElement?.closest?.(".threads tbody tr")?.dataset.key;
		const kind = document.activeElement?.className;
		const rows = [];
		const add = (list, level) => {
			const found = list.map((row) => ({ ...row, groups: row.groups.filter(isFound) })).filter(({ groups }) => groups.length);
			for (const row of found.sort((a, b) => this.sum(this.values, b) - this.sum(this.values, a))) {
				const isUnfolded = row.children.length > 0 && (wanted !== "" || this.unfolded.has(row.key));
				rows.push(this.row(row, level, isUnfolded));
				if (isUnfolded)
					add(row.children, level + 1);
			}
		};
		this.found = [...this.groups.keys()].filter(isFound);
		this.status.textContent = `${formatCount(this.isOn.size)} of ${formatCounted(this.groups.length, "threads")} shown`;
		add(this.roots, 0);
		this.body.replaceChildren(...rows);
		if (focused)
			rows.find(({ dataset }) => dataset.key === focused)?.getElementsByClassName(kind)[0]?.focus();
	}

	row(row, level, isUnfolded) {
		const { unit } = this;
		const value = this.sum(this.values, row);
		const nOn = row.groups.filter((at) => this.isOn.has(at)).length;
		const name = showName(row.name);
		const isThread = row.kind === "thread";
		const full = isThread ? this.nameOf(row.groups[0]) : name;
		const cell = (text, title, more = "") => element(`td.number${more}`, { title }, text);
		const change = value - (this.base ? this.sum(this.base, row) : 0);
		const label = element("td.name-cell", {},
			row.children.length ? element("button.fold", {
				type: "button", "aria-expanded": String(isUnfolded), "aria-label": `${isUnfolded ? "Fold" : "Unfold"} ${full}`,
				click: () => this.fold(row.key),
			}, isUnfolded ? "\u25be" : "\u25b8") : element("span.fold"),
			element("span.code", {}, name),
			row.nProcesses > 1 && !isThread ? element("span.soft", {}, ` ${formatCounted(row.nProcesses, "processes")}`) : null,
			row.command ? element("span.code.soft.command", {}, ` ${showName(argumentsOf(row.command, this.groups[row.groups[0]].process))}`) : null);
		label.style.setProperty("--level", level);
		return element("tr", { "data-key": row.key },
			element("td", {}, element("input.shown", {
				type: "checkbox", checked: nOn === row.groups.length, indeterminate: nOn > 0 && nOn < row.groups.length,
				change: (event) => this.set(row.groups, event.target.checked), "aria-label": `Show ${full}`,
			})),
			cell(formatValue(value, unit), formatExactly(value, unit)), cell(formatShare(value, this.whole)),
			...this.base ? [cell(formatChange(change, unit), formatExactly(change, unit), classOfChange(change))] : [],
			element("td", {}, element("button.only", {
				type: "button", click: () => this.only(row.groups), "aria-label": `Only ${full}`,
			}, "Only")), label);
	}

	fold(key) {
		if (!this.unfolded.delete(key))
			this.unfolded.add(key);
		this.list();
	}
}
