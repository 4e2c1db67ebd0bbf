// SPDX-License-Identifier: GPL-3.0-or-later
// Lines of source with what is allocated through them, which a page has that was made with --source.

import { choiceList, element } from "./elements.js";
import { formatExactly, formatShare, formatValue } from "./format.js";
import { showName } from "./names.js";
import { kinds } from "./trie.js";

/** Reads what src/page/page_source.c writes; null if the page has none. */
export function readSource(data, prefix) {
	const get = (name) => data.get(`${prefix}.source.${name}`);
	return get("files") ? {
		files: get("files"), place: get("place"), parent: get("parent"), placeFile: get("placeFile"), placeLine: get("placeLine"),
		excerptFile: get("excerptFile"), excerptFirst: get("excerptFirst"), text: get("text"),
	} : null;
}

/**
 * Own and total values by place: own of the calls of the allocator at that line, total of what goes through it, recursion once.
 * @values: a number for each path, which are nodes with a parent and a place; place 0 is none.
 */
export function sumPlaces({ parent, place, placeLine }, values) {
	const own = new Float64Array(placeLine.length), total = new Float64Array(placeLine.length);
	const seenBy = new Uint32Array(placeLine.length);

	for (let node = 1; node < values.length; node++) {
		if (!values[node])
			continue;
		own[place[node]] += values[node];
		for (let at = node; at; at = parent[at]) {
			if (seenBy[place[at]] !== node) {
				seenBy[place[at]] = node;
				total[place[at]] += values[node];
			}
		}
	}
	return { own, total };
}

export class SourcePanel {
	/** @frames of the trie say which files are of own code; @onChoose is called after the reader chose another file. */
	constructor(source, frames, onChoose) {
		this.source = source;
		const own = kinds.indexOf("own");
		const ofOwnCode = new Set(frames.file.filter((_, frame) => frames.kind[frame] === own));
		const isRead = new Set(source.excerptFile);
		/** By file: those that are listed first have the greatest rank. */
		this.rank = source.files.map(([path], file) => (isRead.has(file) ? 2 : 0) + (ofOwnCode.has(path) ? 1 : 0));
		this.file = null;
		this.list = choiceList("File", [], null, (file) => {
			this.file = Number(file);
			this.show();
			onChoose();
		}, { id: "source-file" });
		this.note = element("p.soft", {});
		this.body = element("tbody");
		const heading = (title, more = "") => element(`th${more}`, { scope: "col" }, title);
		this.container = element("div", {}, element("div.filter", {}, this.list), this.note,
			element("table.data.source", {},
				element("caption", {}, "Own: by calls of the allocator on that line. Total: by what goes through it, with what it calls; recursion counts once."),
				element("thead", {}, element("tr", {}, heading("Own", ".number"), heading("Total", ".number"), heading("Share", ".number"),
					heading("Line", ".number"), heading("Source", ".name-cell"))), this.body));
	}

	/** @values: a number for each path, of all that the page shows, in @unit. */
	update(values, unit) {
		const { source } = this;
		this.unit = unit;
		this.whole = values.reduce((sum, value) => sum + value, 0);
		this.sums = sumPlaces(source, values);
		const byFile = source.files.map((_, file) => ({ file, own: 0, total: 0 }));
		for (let place = 1; place < source.placeLine.length; place++) {
			const of = byFile[source.placeFile[place]];
			of.own += this.sums.own[place];
			of.total = Math.max(of.total, this.sums.total[place]);
		}
		const { rank } = this;
		const order = byFile.sort((a, b) => rank[b.file] - rank[a.file] || b.own - a.own || b.total - a.total || a.file - b.file);
		this.file ??= order[0]?.file ?? null;
		this.list.querySelector("select").replaceChildren(...order.map(({ file, own }) => element("option", {
			value: file, textContent: `${showName(source.files[file][0])}, own ${formatValue(own, unit)}`, selected: file === this.file,
		})));
		this.show();
	}

	/** The number of a file by its path, or -1. */
	fileOf(path) {
		return this.source.files.findIndex(([known]) => known === path);
	}

	scrollTo(line) {
		const row = this.body.querySelector(`[data-line="${line}"]`);
		row?.scrollIntoView({ block: "center" });
	}

	show() {
		const { source, file } = this;
		const rows = [];
		const places = new Map();
		if (file !== null)
			for (let place = 1; place < source.placeLine.length; place++)
				if (source.placeFile[place] === file)
					places.set(source.placeLine[place], place);
		let last = 0;
		for (let i = 0; i < source.excerptFile.length; i++) {
			if (source.excerptFile[i] !== file)
				continue;
			if (last)
				rows.push(element("tr.gap", {}, element("td", { colSpan: 5 }, "\u22ee")));
			source.text[i].split("\n").forEach((text, at) => {
				last = source.excerptFirst[i] + at;
				rows.push(this.row(last, places.get(last), text));
				places.delete(last);
			});
		}
		rows.push(...[...places].map(([line, place]) => this.row(line, place, "")));
		const [, note] = source.files[file] ?? [null, "no line of a stack is known"];
		this.note.hidden = note === null;
		this.note.textContent = note === null ? "" : `Of this file: ${note}.`;
		this.body.replaceChildren(...rows);
	}

	row(line, place, text) {
		const { unit, sums } = this;
		const cell = (value) => element("td.number", { title: value ? formatExactly(value, unit) : "" }, value ? formatValue(value, unit) : "");
		const total = place === undefined ? 0 : sums.total[place];
		return element(`tr${total ? ".hot" : ""}`, { "data-line": line }, cell(place === undefined ? 0 : sums.own[place]), cell(total),
			element("td.number", {}, total ? formatShare(total, this.whole) : ""), element("td.number.soft", {}, String(line)),
			element("td.name-cell.code", {}, showName(text.replaceAll("\t", "    "))));
	}
}
