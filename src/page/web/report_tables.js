// SPDX-License-Identifier: GPL-3.0-or-later
// Tables of functions and of stacks.

import { element } from "./elements.js";
import { formatChange, formatExactly, formatShare, formatValue } from "./format.js";
import { nodesWith } from "./functions.js";
import { baseName, showName } from "./names.js";
import { Sandwich } from "./sandwich.js";

const rowsAtOnce = 100;
/** Frames of a stack that its row names before it is opened. */
const framesInRow = 3;

/**
 * A table whose rows are made when they are to be seen. @columns: { title, className, cell(row), order(row) }; what has
 * an order can be sorted by, in descending order. A row is whatever cell() and order() take: where there may be a
 * million, as of stacks, a number.
 */
export class DataTable {
	constructor(columns, caption, sortColumn) {
		this.columns = columns;
		this.sortColumn = sortColumn;
		this.descending = true;
		this.rows = [];
		this.body = element("tbody");
		this.caption = element("caption", {}, caption);
		this.headings = columns.map((column, i) => this.heading(column, i));
		this.more = element("button.more", { type: "button", click: () => this.showMore() });
		this.empty = element("p.soft", {}, "Nothing.");
		this.container = element("div", {},
			element("table.data", {}, this.caption, element("thead", {}, element("tr", {}, ...this.headings)), this.body),
			this.empty, this.more);
	}

	heading(column, i) {
		const title = column.order
			? element("button", { type: "button", click: () => this.sortBy(i) }, column.title)
			: column.title;
		return element(`th${column.className ? `.${column.className}` : ""}`, { scope: "col" }, title);
	}

	setRows(rows) {
		this.rows = rows;
		this.sort();
	}

	sortBy(column) {
		this.descending = this.sortColumn === column ? !this.descending : true;
		this.sortColumn = column;
		this.sort();
	}

	sort() {
		const { order } = this.columns[this.sortColumn];
		const sign = this.descending ? -1 : 1;

		this.headings.forEach((heading, i) => {
			if (i === this.sortColumn)
				heading.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
			else
				heading.removeAttribute("aria-sort");
		});
		this.rows.sort((a, b) => {
			const left = order(a);
			const right = order(b);
			return left === right ? 0 : (left < right ? -1 : 1) * sign;
		});
		this.body.replaceChildren();
		this.showMore();
	}

	showMore() {
		const from = this.body.childElementCount;
		const shown = this.rows.slice(from, from + rowsAtOnce);
		const left = this.rows.length - from - shown.length;

		this.body.append(...Array.from(shown, (row) => element("tr", {}, ...this.columns.map((column) =>
			element(`td${column.className ? `.${column.className}` : ""}`, {}, column.cell(row))))));
		this.more.hidden = !left;
		this.more.textContent = `${Math.min(left, rowsAtOnce)} more of ${left}`;
		this.empty.hidden = this.rows.length > 0;
	}
}

/** A column of numbers in the unit that the page shows at the time. */
export function valueColumn(title, unitOf, valueOf) {
	return {
		title, className: "number", order: valueOf,
		cell: (row) => element("span", { title: formatExactly(valueOf(row), unitOf(row)) }, formatValue(valueOf(row), unitOf(row))),
	};
}

export function shareColumn(valueOf, wholeOf) {
	return { title: "Share", className: "number", cell: (row) => formatShare(valueOf(row), wholeOf()) };
}

export function classOfChange(change) {
	return change > 0 ? ".grew" : change < 0 ? ".shrank" : ".soft";
}

export function changeColumn(title, unitOf, changeOf) {
	return {
		title, className: "number", order: changeOf,
		cell: (row) => element(`span${classOfChange(changeOf(row))}`, { title: formatExactly(changeOf(row), unitOf(row)) }, formatChange(changeOf(row), unitOf(row))),
	};
}

/** "parse.c:12" or "" of a frame. */
function lineOf(frames, frame) {
	const { file, line, lastLine } = frames;
	if (!file[frame])
		return "";
	const until = lastLine[frame] > line[frame] ? `-${lastLine[frame]}` : "";
	return `${showName(file[frame])}${line[frame] ? `:${line[frame]}${until}` : ""}`;
}

export function moduleOf(frames, frame) {
	return showName(baseName(frames.module[frame]));
}

function frameItem(frames, frame) {
	const places = [lineOf(frames, frame), moduleOf(frames, frame)].filter((text) => text).join(" ");
	return element("li", {},
		element("span.code", {}, showName(frames.name[frame])),
		frames.inlined[frame] ? element("span.place", {}, " inlined") : null,
		places ? element("span.place", {}, ` ${places}`) : null);
}

/** What a row says of a stack: its innermost frames; all of them, and their places, once it is opened. */
export function stackCell(trie, node) {
	const { frames } = trie;
	const path = trie.path(node).reverse().map((at) => trie.frame[at]);
	const names = path.slice(1, 1 + framesInRow).map((frame) => showName(frames.name[frame]));
	const head = `${names.join(" ← ") || showName(frames.name[path[0]])}${path.length > 1 + framesInRow ? " ← …" : ""}`;
	const list = element("ol");
	const details = element("details", {
		toggle: () => {
			if (details.open && !list.childElementCount)
				list.append(...path.map((frame) => frameItem(frames, frame)));
		},
	}, element("summary", {}, element("span.code.clip", {}, head)), list);
	return details;
}

/** The column that names the stack, of rows that are its nodes. */
export function stackColumn(trie) {
	return { title: "Stack, from the caller of the allocator on", className: "name-cell", cell: (node) => stackCell(trie, node) };
}

/**
 * A table of all functions by own and total values. update() takes what the page shows: @values and, to compare with,
 * @base or null. A click on a function shows its callers and callees; @onSelect is called with its number, or null. @onPlace is called
 * with the file and the line of a function that is clicked on, where @hasPlace holds of the file.
 */
export class FunctionPanel {
	constructor(functions, hasBase, unitOf, modules, onSelect, hasPlace, onPlace) {
		const { frames } = functions.trie;
		this.functions = functions;
		this.selected = null;
		this.onSelect = onSelect;
		this.sandwich = new Sandwich(functions, modules, () => {
			const { selected } = this;
			this.select(null);
			this.table.container.querySelector(`[data-function="${selected}"]`)?.focus();
		});
		this.search = element("input", {
			type: "search", placeholder: "Functions with this in their names", input: () => this.list(),
			"aria-label": "Search functions",
		});
		this.count = element("span.soft", { role: "status" });
		this.table = new DataTable([
			valueColumn("Own", unitOf, (row) => row.own),
			shareColumn((row) => row.own, () => this.whole),
			valueColumn("Total", unitOf, (row) => row.total),
			shareColumn((row) => row.total, () => this.whole),
			...hasBase ? [
				changeColumn("Own change", unitOf, (row) => row.own - row.baseOwn),
				changeColumn("Total change", unitOf, (row) => row.total - row.baseTotal),
			] : [],
			{
				title: "Function", className: "name-cell", cell: ({ frame, number }) => element("span", {},
					element("button.link.code.clip", {
						type: "button", "data-function": number, click: () => this.choose(number),
					}, showName(frames.name[frame])),
					frames.line[frame] && hasPlace(frames.file[frame])
						? element("button.link.place.clip", { type: "button", click: () => onPlace(frames.file[frame], frames.line[frame]) }, lineOf(frames, frame))
						: element("span.place.clip", {}, [lineOf(frames, frame), moduleOf(frames, frame)].filter((text) => text).join(" "))),
			},
		], "Own: by calls of the allocator that the function makes itself. Total: with what it calls; recursion counts once. A click on a function shows what calls it, and what it calls.", 0);
		this.container = element("div", {}, this.sandwich.container,
			element("div.filter", {}, this.search, this.count), this.table.container);
	}

	choose(number) {
		this.select(number);
		this.sandwich.title.focus();
		this.sandwich.container.scrollIntoView({ block: "nearest" });
	}

	/** Shows a function between callers and callees, or none where @number is null. */
	select(number) {
		this.show(number);
		this.onSelect(number);
	}

	show(number) {
		this.selected = number < this.functions.first.length ? number : null;
		this.sandwich.select(this.selected);
		this.updateSandwich();
	}

	updateSandwich() {
		const { values, base, unit } = this.shown ?? {};
		if (this.selected !== null && values)
			this.sandwich.update(values[unit], base?.[unit] ?? null, unit, this.whole, this.ownSums[this.selected]);
	}

	update(values, base, unit) {
		const { functions } = this;
		const sums = functions.sum(values[unit]);
		const before = base ? functions.sum(base[unit]) : null;

		this.whole = values.total[unit];
		this.ownSums = sums.own;
		this.shown = { values, base, unit };
		this.all = [];
		functions.first.forEach((frame, i) => {
			const row = {
				frame, number: i, own: sums.own[i], total: sums.total[i],
				baseOwn: before?.own[i] ?? 0, baseTotal: before?.total[i] ?? 0,
			};
			if (functions.isListed[i] && (row.total || row.baseTotal))
				this.all.push(row);
		});
		this.list();
		this.updateSandwich();
	}

	list() {
		const { name } = this.functions.trie.frames;
		const wanted = this.search.value.toLowerCase();
		const found = this.all.filter(({ frame }) => !wanted || name[frame].toLowerCase().includes(wanted));

		this.count.textContent = `${found.length} of ${this.all.length} functions`;
		this.table.setRows(found);
	}
}

/** A table of stacks by what the page shows. */
export class StackPanel {
	constructor(trie, hasBase, unitOf) {
		this.table = new DataTable([
			valueColumn("Own", unitOf, (node) => this.values[node]),
			shareColumn((node) => this.values[node], () => this.whole),
			...hasBase ? [changeColumn("Change", unitOf, (node) => this.values[node] - this.base[node])] : [],
			stackColumn(trie),
		], "Each stack by itself. Open one to see all of its frames.", 0);
		this.container = this.table.container;
	}

	update(values, base, unit) {
		this.values = values[unit];
		this.base = base?.[unit];
		this.whole = values.total[unit];
		this.table.setRows(nodesWith(this.values, this.base));
	}
}
