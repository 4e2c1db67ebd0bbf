// SPDX-License-Identifier: GPL-3.0-or-later
// One function between its callers, above it, and what it calls, below.

import { mapValues, splitTrie } from "./derive.js";
import { element } from "./elements.js";
import { FlameGraph } from "./flame.js";
import { formatCounted, formatExactly, formatShare, formatValue } from "./format.js";
import { showName } from "./names.js";

export class Sandwich {
	/** @functions: a FunctionTable; @modules: as of a FlameGraph; @onClose is called when the reader closes it. */
	constructor(functions, modules, onClose) {
		this.functions = functions;
		this.modules = modules;
		this.title = element("h3", { tabIndex: -1 });
		this.figures = element("p.soft");
		this.sides = { above: element("div"), below: element("div") };
		this.container = element("section.sandwich", { hidden: true, "aria-label": "Callers and callees" },
			element("div.filter", {}, this.title, element("button", { type: "button", click: onClose }, "Close")),
			this.figures, element("h4", {}, "What calls it"), this.sides.above,
			element("h4", {}, "What it calls"), this.sides.below);
	}

	/** Shows the function of this number, or nothing where it is null, once update() is called. */
	select(number) {
		const { trie, outermost } = this.functions;
		this.container.hidden = number === null;
		if (number === null)
			return;
		this.name = showName(trie.frames.name[this.functions.first[number]]);
		this.split = splitTrie(trie, (node) => outermost[node] && this.functions.ofNode(node) === number);
		this.title.textContent = this.name;
		this.graphs ??= {
			above: new FlameGraph(this.sides.above, this.split.above.trie, {
				...this.options("Callers"), layout: "flame", isOfCallers: true,
			}),
			below: new FlameGraph(this.sides.below, this.split.below.trie, this.options("Callees")),
		};
		for (const side of ["above", "below"])
			this.graphs[side].setTrie(this.split[side].trie, this.name);
	}

	options(label) {
		return { label, isPlain: true, maxHeight: 0.3, modules: this.modules };
	}

	/** @values, @base: as of FlameGraph.setValues(), of all stacks; @whole: their sum; @own: the function's own. */
	update(values, base, unit, whole, own) {
		if (this.container.hidden)
			return;
		const { isThrough } = this.split;
		const through = (numbers) => numbers && numbers.map((number, node) => (isThrough[node] ? number : 0));
		const [part, partOfBase] = [through(values), through(base)];
		const total = part.reduce((sum, number) => sum + number, 0);
		for (const side of ["above", "below"]) {
			const { map, trie } = this.split[side];
			this.graphs[side].setValues(mapValues(part, map, trie.size), partOfBase && mapValues(partOfBase, map, trie.size), unit);
		}
		const words = (value) => (unit === "bytes" ? formatValue(value, unit) : formatCounted(value, unit));
		this.figures.title = formatExactly(total, unit);
		this.figures.textContent = `${words(total)} through it, ${formatShare(total, whole)} of all; ` +
			`${words(own)} by calls of the allocator that it makes itself`;
	}
}
