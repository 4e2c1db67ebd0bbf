// SPDX-License-Identifier: GPL-3.0-or-later
// The controls above a flame graph.

import { choiceList, element, toggleButton } from "./elements.js";
import { formatCount, formatShare, formatValue } from "./format.js";
import { compileSearch } from "./search.js";

export class FlameControls {
	/** @graph has setOption(name, value), search(expression or null), focusMatch(by) and reset(). */
	constructor(graph) {
		this.graph = graph;
		this.isRegExp = false;
		this.field = element("input", {
			type: "search", placeholder: "Functions, files, modules", "aria-label": "Search functions, files, modules",
			className: "flame-search", spellcheck: false, autocomplete: "off",
		});
		this.field.addEventListener("input", () => this.search());
		this.field.addEventListener("keydown", (event) => this.pressed(event));
		this.asRegExp = toggleButton(".*", false, (pressed) => {
			this.isRegExp = pressed;
			this.search();
		}, { className: "flame-regexp", title: "Regular expression", "aria-label": "Search by regular expression" });
		this.matches = element("output", { className: "flame-matches", "aria-live": "polite" });
		this.resetButton = element("button", { type: "button", className: "flame-reset", textContent: "Show all", disabled: true });
		this.resetButton.addEventListener("click", () => graph.reset());
		this.element = element("div", { className: "flame-controls", role: "toolbar", "aria-label": "Flame graph" },
			element("span", { className: "flame-finder" }, this.field, this.asRegExp),
			element("div", { className: "flame-status" }, this.matches, this.resetButton),
			element("span", { className: "flame-switches" }, ...this.switches()));
	}

	switches() {
		const { graph } = this;
		const { options } = graph;
		const change = (name) => (value) => graph.setOption(name, value);
		const list = (label, name, choices) =>
			choiceList(label, choices, options[name], change(name), { className: `flame-${name}` });
		this.colourList = list("Colour", "colour", [["kind", "by kind"], ["module", "by module"]]);
		this.reversedButton = toggleButton("", options.reversed, change("reversed"), { className: "flame-reversed" });
		this.nameSides(options.layout);
		const layout = choiceList("Layout", [["icicle", "icicle"], ["flame", "flame"]], options.layout, (value) => {
			this.nameSides(value);
			graph.setOption("layout", value);
		}, { className: "flame-layout" });
		// A chart is of one order, and its stacks are not put together in another way.
		return options.isChart ? [layout, this.colourList] : [
			layout,
			list("Order", "order", [["size", "by size"], ["name", "by name"]]),
			this.colourList,
			this.reversedButton,
			toggleButton("Own code", options.folded, change("folded"),
				{ className: "flame-folded", title: "Own code only: leave out frames of libraries and runtimes" }),
			toggleButton("Merge recursion", options.merged, change("merged"),
				{ className: "flame-merged", title: "Draw a function that calls itself once" }),
		];
	}

	/** Shows what the graph's options are, and searches. */
	restore(text, isRegExp) {
		const { options } = this.graph;
		for (const name of ["layout", "order", "colour"])
			this.element.querySelector(`.flame-${name}`).value = options[name];
		this.nameSides(options.layout);
		this.reversedButton.setAttribute("aria-pressed", options.reversed);
		for (const name of ["folded", "merged"])
			this.element.querySelector(`.flame-${name}`).setAttribute("aria-pressed", options[name]);
		this.isRegExp = isRegExp;
		this.asRegExp.setAttribute("aria-pressed", isRegExp);
		this.field.value = text;
		this.search();
	}

	/** Callers are where the layout has what follows a box. */
	nameSides(layout) {
		const side = layout === "flame" ? "above" : "below";
		this.reversedButton.textContent = `Callers ${side}`;
		this.reversedButton.title = `Begin with the allocator's functions; ${side} a box is what called it`;
	}

	search() {
		const text = this.field.value;
		this.field.setCustomValidity("");
		try {
			this.graph.search(text ? compileSearch(text, this.isRegExp) : null);
		} catch (error) {
			this.graph.search(null);
			this.field.setCustomValidity(error.message);
			this.matches.textContent = error.message;
		}
	}

	pressed(event) {
		if (event.key === "Escape" && this.field.value) {
			this.field.value = "";
			this.search();
		} else if (event.key === "Enter") {
			this.graph.focusMatch(event.shiftKey ? -1 : 1);
		} else {
			return;
		}
		event.preventDefault();
	}

	/** Says what was found: how many frames, and how much of @whole goes through them. Null: nothing is searched. */
	showMatches(count, sum, whole, unit) {
		this.said = count === null ? "" :
			`${formatShare(sum, whole)}: ${formatValue(sum, unit)} through ${formatCount(count)} ` +
			(count === 1 ? "function" : "functions");
		this.matches.textContent = this.said;
	}

	/** Says which of the boxes with a match the keys have led to. */
	showMatch(at, count) {
		this.matches.textContent = `${formatCount(at + 1)} of ${formatCount(count)}, ${this.said}`;
	}

	showZoom(isZoomed) {
		this.resetButton.disabled = !isZoomed;
	}

	/** Changes since another recording have colours of their own. */
	showBase(hasBase) {
		this.colourList.hidden = hasBase;
	}
}
