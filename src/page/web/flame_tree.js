// SPDX-License-Identifier: GPL-3.0-or-later
// The numbers of a flame graph as a tree in a table, for all who want to read them and those who do not see the picture.
// Only rows that are unfolded are in the document.

import { element } from "./elements.js";
import { formatChange, formatCount, formatShare, formatValue } from "./format.js";
import { placeOf } from "./flame_details.js";
import { baseName, showName } from "./names.js";

/** Children of a node that are shown at once: those that have this share of what it has. */
const childrenAtOnce = 40;
const leastShown = 0.01;
/** A chain of functions is unfolded together, as long as each has nearly all of its caller's. */
const longestChain = 200;
const nearlyAll = 0.95;

export class FlameTree {
	/** @graph is the FlameGraph whose numbers are shown; a row's Enter calls its zoomTo(). */
	constructor(graph, container) {
		this.graph = graph;
		this.body = element("tbody");
		this.head = element("tr");
		this.table = element("table", { className: "flame-tree", role: "treegrid", "aria-label": "Stacks as a tree" },
			element("thead", {}, this.head), this.body);
		this.table.addEventListener("keydown", (event) => this.pressed(event));
		this.table.addEventListener("click", (event) => this.clicked(event));
		container.append(this.table);
		this.unfolded = new Set();
	}

	/** Shows the numbers as they are now. @isNew: of another trie, whose nodes are others. */
	update(isNew) {
		const { graph } = this;
		const focused = this.focusedRow()?.dataset.node;
		if (isNew || !this.unfolded.size) {
			this.unfolded = new Set([0]);
			this.unfoldChain(0);
			this.limits = new Map();
		}
		const columns = ["Function", graph.unitTitle, "of all", null, "by itself", ...(graph.baseTotal ? ["before", "change"] : [])];
		this.head.replaceChildren(...columns.map((text) => (text === null ? element("td", { "aria-hidden": "true" })
			: element("th", { textContent: text, role: "columnheader", scope: "col" }))));
		const rows = [];
		this.addRows(rows, 0, 1);
		this.body.replaceChildren(...rows);
		const kept = (focused && this.body.querySelector(`[data-node="${focused}"]`)) || this.body.firstChild;
		if (kept)
			kept.tabIndex = 0;
	}

	/** The children of a node that have anything, the greatest first, or in the order of the calls. */
	childrenOf(node) {
		const { trie, weight, options } = this.graph;
		return Array.from(trie.childrenOf(node)).filter((child) => weight[child])
			.sort(options.isChart ? (a, b) => a - b : (a, b) => weight[b] - weight[a] || a - b);
	}

	unfoldChain(node) {
		for (let i = 0; i < longestChain; i++) {
			this.unfolded.add(node);
			const children = this.childrenOf(node);
			if (!children.length || this.graph.weight[children[0]] < nearlyAll * this.graph.weight[node])
				return;
			[node] = children;
		}
	}

	addRows(rows, root, level) {
		const pending = [[root, level]];
		while (pending.length) {
			const [node, depth, rest] = pending.pop();
			if (rest) {
				rows.push(this.restRow(node, depth, rest));
				continue;
			}
			const children = this.childrenOf(node);
			rows.push(this.row(node, depth, children.length > 0));
			if (!this.unfolded.has(node))
				continue;
			const limit = this.limitOf(node, children);
			if (children.length > limit)
				pending.push([node, depth + 1, children.slice(limit)]);
			for (const child of children.slice(0, limit).reverse())
				pending.push([child, depth + 1]);
		}
	}

	/** How many of the children are shown; those that are smaller are one row, unless that would be of one alone. */
	limitOf(node, children) {
		const { weight } = this.graph;
		const nGreat = children.filter((child) => weight[child] >= leastShown * weight[node]).length;
		const limit = this.limits.get(node) ?? Math.min(nGreat, childrenAtOnce);
		return children.length - limit === 1 ? children.length : limit;
	}

	/** The cells of numbers: the total, its share, a bar of that, the node's own and, to compare with, the total of before. */
	cells(total, own, before) {
		const { whole, unit } = this.graph;
		const cell = (text, more = "") => element(`td.number${more}`, { role: "gridcell" }, text);
		const bar = element("span");
		bar.style.width = `${whole ? (100 * total) / whole : 0}%`;
		const cells = [cell(formatValue(total, unit)), cell(formatShare(total, whole), ".share"),
			element("td.bar", { "aria-hidden": "true" }, bar), cell(own ? formatValue(own, unit) : "")];
		if (before !== null)
			cells.push(cell(formatValue(before, unit)), cell(total === before ? "" : formatChange(total - before, unit)));
		return cells;
	}

	row(node, level, hasChildren) {
		const { graph } = this;
		const { trie, total, own, baseTotal } = graph;
		const frame = trie.frame[node];
		const isUnfolded = this.unfolded.has(node);
		const name = node ? showName(trie.frames.name[frame]) : "all stacks";
		const place = node ? placeOf(trie.frames, frame) : "";
		const module = node ? showName(baseName(trie.frames.module[frame])) : "";
		const fold = element("span", { className: "fold", textContent: !hasChildren ? "" : isUnfolded ? "\u25be" : "\u25b8", "aria-hidden": true });
		const first = element("td", { role: "gridcell", className: "function" }, fold,
			element("span", { className: "name", textContent: name }),
			element("span", { className: "place", textContent: [place && baseName(place), module].filter(Boolean).join(", ") }));
		// Deep trees would leave the page.
		first.style.setProperty("--level", Math.min(level - 1, 40));
		const row = element("tr", { role: "row", tabIndex: -1, "aria-level": level }, first,
			...this.cells(total[node], own[node], baseTotal && baseTotal[node]));
		if (hasChildren)
			row.setAttribute("aria-expanded", isUnfolded);
		row.dataset.node = node;
		return row;
	}

	restRow(node, level, children) {
		const { total, own, baseTotal } = this.graph;
		const sum = (values) => children.reduce((all, child) => all + values[child], 0);
		const cell = element("td", { role: "gridcell", className: "function" },
			element("span", { className: "fold", textContent: "\u25b8", "aria-hidden": true }),
			element("span", { className: "place", textContent: `${formatCount(children.length)} smaller` }));
		cell.style.setProperty("--level", Math.min(level - 1, 40));
		const row = element("tr", { role: "row", tabIndex: -1, "aria-level": level, className: "rest" }, cell,
			...this.cells(sum(total), sum(own), baseTotal && sum(baseTotal)));
		row.dataset.rest = node;
		return row;
	}

	focusedRow() {
		return document.activeElement?.closest?.(".flame-tree tbody tr");
	}

	focusRow(row) {
		if (!row)
			return;
		this.body.querySelector('[tabindex="0"]')?.setAttribute("tabindex", -1);
		row.tabIndex = 0;
		row.focus();
	}

	/** Folds or unfolds the row of a node, and keeps the focus there. */
	fold(node, isUnfolded) {
		if (isUnfolded)
			this.unfoldChain(node);
		else
			this.unfolded.delete(node);
		this.update(false);
		this.focusRow(this.body.querySelector(`[data-node="${node}"]`));
	}

	showMore(row) {
		const node = Number(row.dataset.rest);
		const before = row.previousElementSibling;
		const children = this.childrenOf(node);
		this.limits.set(node, Math.max(this.limitOf(node, children), childrenAtOnce / 4) * 4);
		const kept = before.dataset.node;
		this.update(false);
		this.focusRow(this.body.querySelector(`[data-node="${kept}"]`));
	}

	clicked(event) {
		const row = event.target.closest("tbody tr");
		if (!row)
			return;
		if (row.dataset.rest)
			this.showMore(row);
		else if (row.hasAttribute("aria-expanded"))
			this.fold(Number(row.dataset.node), row.getAttribute("aria-expanded") === "false");
		else
			this.focusRow(row);
	}

	pressed(event) {
		const row = this.focusedRow();
		if (!row || event.ctrlKey || event.altKey || event.metaKey)
			return;
		const node = Number(row.dataset.node);
		const expanded = row.getAttribute("aria-expanded");
		switch (event.key) {
		case "ArrowDown":
			this.focusRow(row.nextElementSibling);
			break;
		case "ArrowUp":
			this.focusRow(row.previousElementSibling);
			break;
		case "Home":
			this.focusRow(this.body.firstChild);
			break;
		case "End":
			this.focusRow(this.body.lastChild);
			break;
		case "ArrowRight":
			if (expanded === "false")
				this.fold(node, true);
			else if (expanded)
				this.focusRow(row.nextElementSibling);
			break;
		case "ArrowLeft":
			if (expanded === "true")
				this.fold(node, false);
			else
				this.focusRow(this.body.querySelector(`[data-node="${this.graph.trie.parent[row.dataset.rest ?? node]}"]`));
			break;
		case "Enter":
			if (row.dataset.rest)
				this.showMore(row);
			else
				this.graph.zoomTo(node);
			break;
		default:
			return;
		}
		event.preventDefault();
	}
}
