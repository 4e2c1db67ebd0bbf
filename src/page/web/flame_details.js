// SPDX-License-Identifier: GPL-3.0-or-later
// What is known of a frame of a flame graph, in a box beside the pointer, and as a sentence for those who listen.

import { formatDuration } from "./axis.js";
import { element } from "./elements.js";
import { formatChange, formatCount, formatExactly, formatShare, formatValue } from "./format.js";
import { showName } from "./names.js";
import { kinds, kindTitles } from "./trie.js";

/** "file.c:12", "file.c:12-30"; "" if the file is unknown. */
export function placeOf(frames, frame) {
	const { file, line, lastLine } = frames;
	if (!file[frame])
		return "";
	const lines = !line[frame] ? "" : lastLine[frame] > line[frame] ? `:${line[frame]}\u2013${lastLine[frame]}` : `:${line[frame]}`;
	return showName(file[frame]) + lines;
}

/** Names longer than this are cut in the details; the table has them whole. */
const longestName = 600;

function nameOfNode({ trie, options }, node) {
	const name = node ? showName(trie.frames.name[trie.frame[node]]) : options.rootName;
	return name.length > longestName ? `${name.slice(0, longestName)}\u2026` : name;
}

/** Rows of the details: [label, value]. */
function rowsOfDetails(graph, node) {
	const { trie, options, total, own, baseTotal, unit, whole, beside } = graph;
	const rows = [[unit, formatExactly(total[node], unit)]];
	if (baseTotal) {
		rows.push(["before", formatExactly(baseTotal[node], unit)]);
		rows.push(["change", changeOf(total[node], baseTotal[node], unit)]);
	}
	if (options.isChart)
		rows.push(["called", `${formatDuration(options.firstNs[node])} to ${formatDuration(options.lastNs[node])} after the start`]);
	for (const more of beside)
		rows.push([more.unit, formatExactly(more.totals()[node], more.unit)]);
	if (own[node] && own[node] !== total[node])
		rows.push(["by itself", formatExactly(own[node], unit)]);
	if (node) {
		rows.push([graph.options.isPlain ? `of ${nameOfNode(graph, 0)}` : "of all", formatShare(total[node], whole)]);
		if (trie.parent[node])
			rows.push([graph.options.reversed || graph.options.isOfCallers ? "of what it called" : "of its caller",
				formatShare(total[node], total[trie.parent[node]])]);
	}
	return rows;
}

/** "+1.2 MiB (+34.0 %)", "new", "gone". */
export function changeOf(after, before, unit) {
	if (after === before)
		return "none";
	const change = formatChange(after - before, unit);
	if (!before)
		return `${change}, new`;
	if (!after)
		return `${change}, gone`;
	const percent = (100 * (after - before)) / before;
	return `${change} (${percent > 0 ? "+" : ""}${percent.toFixed(1)} %)`;
}

export class FlameDetails {
	constructor(container) {
		this.element = element("div", { className: "flame-tip", hidden: true, "aria-hidden": true });
		this.spoken = element("div", { className: "visually-hidden", "aria-live": "polite" });
		container.append(this.element, this.spoken);
		this.container = container;
	}

	hide() {
		this.element.hidden = true;
	}

	/**
	 * @x and @y are in the viewport, where that begins which the details are of; @height: of that, to be left visible, as is what
	 * comes next of it where there is room on the other side.
	 */
	show(graph, box, x, y, height) {
		this.element.replaceChildren(...(box.hidden ? this.partsOfHidden(graph, box) : this.parts(graph, box.node)));
		this.element.hidden = false;
		const area = this.container.getBoundingClientRect();
		const { offsetWidth, offsetHeight } = this.element;
		const left = Math.max(Math.min(x - area.left + 12, area.width - offsetWidth), 0);
		const [above, below] = [y - offsetHeight - 8, y + height + 8];
		const isRoom = { above: above >= 0, below: below + offsetHeight < innerHeight };
		const isBelow = graph.options.layout === "flame" ? isRoom.below || !isRoom.above : !isRoom.above;
		this.element.style.left = `${left}px`;
		this.element.style.top = `${(isBelow ? below : above) - area.top}px`;
	}

	/** Reads the box out to those who cannot see it. */
	speak(graph, box) {
		const { total, unit, whole } = graph;
		this.spoken.textContent = box.hidden ? `${box.hidden} more that are too narrow`
			: `${nameOfNode(graph, box.node)}, level ${box.depth}, ${formatValue(total[box.node], unit)}, ` +
				`${formatShare(total[box.node], whole)} of all`;
	}

	partsOfHidden(graph, box) {
		const side = graph.options.layout === "flame" ? "above" : "below";
		const place = `too narrow to be drawn, ${side} ${nameOfNode(graph, box.node)}; the table has them`;
		return [
			element("div", { className: "name", textContent: `${formatCount(box.hidden)} more` }),
			element("div", { className: "place", textContent: place }),
		];
	}

	parts(graph, node) {
		const { frames } = graph.trie;
		const frame = graph.trie.frame[node];
		const parts = [element("div", { className: "name", textContent: nameOfNode(graph, node) })];
		if (node) {
			const kind = kindTitles[kinds[frames.kind[frame]]] + (frames.inlined[frame] ? ", inlined" : "");
			const place = placeOf(frames, frame);
			const module = showName(frames.module[frame]);
			for (const line of [place, module ? `${module} (${kind})` : kind])
				if (line)
					parts.push(element("div", { className: "place", textContent: line }));
		}
		parts.push(element("table", {}, element("tbody", {}, ...rowsOfDetails(graph, node).map(([label, value]) =>
			element("tr", {}, element("th", { textContent: label }), element("td", { textContent: value }))))));
		return parts;
	}
}
