// SPDX-License-Identifier: GPL-3.0-or-later
// A flame graph of the stacks of a trie: controls, a picture, a legend, and the same as a table.

import { deriveTrie, mapValues } from "./derive.js";
import { element } from "./elements.js";
import { Palette } from "./flame_colour.js";
import { FlameControls } from "./flame_controls.js";
import { FlameDetails } from "./flame_details.js";
import { boxAt, layOut, rowsOf } from "./flame_layout.js";
import { boxName, paintRows, rowHeight, TextFitter } from "./flame_paint.js";
import { FlameTree } from "./flame_tree.js";
import { formatChange, formatCount } from "./format.js";
import { showName } from "./names.js";
import { findFrames, sumThrough } from "./search.js";
import { kinds, kindTitles, nodesBelow } from "./trie.js";

const flameDefaults = {
	layout: "icicle",   // the root is on top; "flame": at the bottom
	colour: "kind",     // or "module"
	order: "size",      // of siblings; or "name"
	reversed: false,    // from the allocator's function to its callers
	merged: false,      // a function that calls itself is one frame
	folded: false,      // frames of libraries and runtimes are left out
	maxHeight: 0.72,    // of the picture, as a share of the window's
	label: "Flame graph",
	isPlain: false,     // the picture alone, without controls, legend and table
	isOfCallers: false, // a box is called by those before it, as where reversed
	isChart: false,     // siblings stay in the order of their nodes, which is that of the calls
	firstNs: null,      // with isChart: times of the first and the last call through each node
	lastNs: null,
	rootName: "all stacks",
	modules: [],        // base names of modules, those first that have a colour of their own
	onZoom: () => {},   // called when zoomedNodes() may return something else
	onChange: () => {}, // called when state() may be another, with whether something was searched
};
/** Options by which the trie that is shown is another than the given one. */
const derivations = ["folded", "reversed", "merged"];
const help = "Arrow keys move from box to box, Enter or a click shows only the stacks through a box, Escape shows all, " +
	"/ begins a search, in which Enter goes to the next match and Shift with it to the previous one.";

export class FlameGraph {
	/** Draws into @container the stacks of @trie, once setValues() was called. */
	constructor(container, trie, options = {}) {
		this.container = container;
		this.source = this.trie = trie;
		this.map = null;
		this.options = { ...flameDefaults, ...options };
		this.first = { ...this.options };
		this.root = 0;
		this.hovered = this.focused = this.found = null;
		this.isAnother = false;
		this.build();
		this.listen();
	}

	/**
	 * Shows @own, a Float64Array with a number for each node, in @unit ("bytes", "blocks", "allocations"); with @base,
	 * the same of another recording, what changed since. @beside: more numbers for the details, [{ unit, own }]. What
	 * is zoomed to and searched stays.
	 */
	setValues(own, base, unit, beside = []) {
		this.unit = unit;
		this.unitTitle = unit;
		this.given = { own, base, beside };
		this.derive(this.derived === undefined || this.isAnother);
		this.isAnother = false;
	}

	/** Shows the stacks of another trie, whose root is called @rootName, once setValues() was called. */
	setTrie(trie, rootName) {
		this.source = trie;
		this.options.rootName = rootName;
		this.isAnother = true;
	}

	/** Shows only what is below @node of the trie that is shown; 0 is all. */
	zoomTo(node) {
		this.root = node;
		this.hovered = this.focused = null;
		this.layOut();
		this.options.onZoom();
		if (document.activeElement === this.canvas && !this.isPointing)
			this.focus(this.boxOf(node));
		else
			this.details.hide();
		this.options.onChange(false);
	}

	/** What is shown of the numbers, where it differs from how it was at first. */
	state() {
		const { options, first, root, controls } = this;
		const chosen = ["layout", "order", "colour", ...derivations].filter((name) => options[name] !== first[name]);
		return {
			...Object.fromEntries(chosen.map((name) => [name, options[name]])), zoom: root || undefined,
			find: controls.field.value || undefined, regexp: controls.isRegExp,
		};
	}

	/** Takes all of such a state but the zoom, which show() takes once there are numbers. */
	restore(state) {
		const { options, first } = this;
		const before = derivations.map((name) => options[name]);
		const known = { layout: ["icicle", "flame"], order: ["size", "name"], colour: ["kind", "module"] };
		for (const [name, values] of Object.entries(known))
			options[name] = values.includes(state[name]) ? state[name] : first[name];
		for (const name of derivations)
			options[name] = state[name] || first[name];
		this.isAnother = derivations.some((name, i) => options[name] !== before[i]);
		this.controls.restore(state.find ?? "", state.regexp);
	}

	/** Zooms to a node if it has anything, else to the next above it that has. */
	show(node) {
		let root = node < this.trie.size ? node : 0;
		while (root && !this.weight[root])
			root = this.trie.parent[root];
		if (root === this.root)
			return;
		this.zoomTo(root);
		// In a deep stack the box may be beyond what is seen, and what is below it is what is wanted.
		const box = this.boxOf(root);
		if (box)
			this.scroll.scrollTop = this.rowY(box.depth) - (this.options.layout === "flame" ? this.scroll.clientHeight - 3 * rowHeight : 2 * rowHeight);
	}

	/** As show(), of a node of the given trie. */
	showOf(node) {
		this.show(this.derived ? this.derived.map[node] : node);
	}

	reset() {
		this.zoomTo(0);
	}

	/** Which nodes of the given trie are below the box that is zoomed to, as a Uint8Array; null where all are shown. */
	zoomedNodes() {
		if (!this.root)
			return null;
		const below = nodesBelow(this.trie, this.root);
		return this.derived ? Uint8Array.from(this.derived.map, (node) => below[node]) : below;
	}

	setOption(name, value) {
		this.options[name] = value;
		if (derivations.includes(name))
			this.derive(true);
		else
			this.layOut();
		this.options.onChange(false);
	}

	/** Marks the frames that @expression matches; null: none. */
	search(expression) {
		this.mark(expression && findFrames(this.trie.frames, expression));
		this.options.onChange(true);
	}

	/** Marks frames: { found, count } as of findFrames(), or null for none. */
	mark(found) {
		this.found = found;
		this.showFound();
		this.paint();
	}

	/** Goes to the next box with a match, or to the previous one where @by is -1. */
	focusMatch(by) {
		const boxes = this.found ? this.rows.flat().filter((box) => this.isMatch(box) && !box.hidden) : [];
		if (!boxes.length)
			return;
		const at = boxes.indexOf(this.focused);
		const next = at < 0 && by < 0 ? boxes.length - 1 : (at + by + boxes.length) % boxes.length;
		this.scrollTo(boxes[next]);
		this.focus(boxes[next]);
		this.controls.showMatch(next, boxes.length);
	}

	build() {
		this.container.classList.add("flame");
		this.controls = new FlameControls(this);
		this.canvas = element("canvas", {
			className: "flame-canvas", tabIndex: 0, role: "application", "aria-roledescription": "flame graph",
			"aria-label": `${this.options.label}. ${help}`,
		});
		this.space = element("div");
		this.scroll = element("div", { className: "flame-scroll" }, this.canvas, this.space);
		this.nothing = element("p", { className: "flame-nothing", textContent: "Nothing to draw: no stack has any of it.", hidden: true });
		this.legend = element("ul", { className: "flame-legend", "aria-label": "Colours" });
		this.tree = new FlameTree(this, element("div", { className: "flame-tree-scroll" }));
		this.container.append(...this.options.isPlain ? [this.nothing, this.scroll]
			: [this.controls.element, this.nothing, this.scroll, this.legend,
				element("p", { className: "flame-help", textContent: help })]);
		this.details = new FlameDetails(this.container);
		if (!this.options.isPlain)
			this.container.append(this.tree.table.parentNode);
		this.context = this.canvas.getContext("2d");
		this.fitter = new TextFitter(this.context);
	}

	listen() {
		const { canvas } = this;
		const themes = new MutationObserver(() => this.restyle());
		new ResizeObserver(() => this.total && this.scroll.clientWidth !== this.width && this.layOut()).observe(this.container);
		themes.observe(document.documentElement, { attributeFilter: ["data-theme"] });
		matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.restyle());
		this.scroll.addEventListener("scroll", () => this.paint());
		addEventListener("resize", () => this.total && this.scroll.clientHeight !== this.height() && this.layOut());
		canvas.addEventListener("pointermove", (event) => this.hover(event));
		canvas.addEventListener("pointerleave", () => this.hover(null));
		canvas.addEventListener("click", (event) => this.clicked(event));
		canvas.addEventListener("pointerdown", () => {
			this.isPointing = true;
		});
		canvas.addEventListener("focus", () => this.isPointing || this.focus(this.focused ?? this.boxOf(this.root)));
		canvas.addEventListener("blur", () => this.focus(null));
		canvas.addEventListener("keydown", (event) => this.pressed(event));
		addEventListener("keydown", (event) => {
			if (event.key === "/" && !this.options.isPlain && !event.target.closest?.("input, select, textarea")) {
				this.controls.field.focus();
				event.preventDefault();
			}
		});
		addEventListener("beforeprint", () => this.print(true));
		addEventListener("afterprint", () => this.print(false));
	}

	/** Makes the trie that the options ask for, where it may be another, and all numbers. */
	derive(isNew) {
		const { own, base, beside } = this.given;
		const { root } = this;
		if (isNew) {
			this.derived = deriveTrie(this.source, this.options);
			this.trie = this.derived?.trie ?? this.source;
			this.root = 0;
			this.hovered = this.focused = null;
		}
		const { trie } = this;
		const mapped = (values) => (this.derived ? mapValues(values, this.derived.map, trie.size) : values);
		const ownBase = base && mapped(base);
		this.own = mapped(own);
		this.total = trie.totals(this.own);
		this.baseTotal = base ? trie.totals(ownBase) : null;
		// What is gone stays visible: a stack is as wide as the greater of both.
		this.weight = base ? trie.totals(this.own.map((value, i) => Math.max(value, ownBase[i]))) : this.total;
		// Only details need them.
		this.beside = beside.map((more) => {
			let total = null;
			return { ...more, totals: () => (total ??= trie.totals(mapped(more.own))) };
		});
		this.whole = this.total[0];
		// The moment or the span may have nothing there.
		while (!this.weight[this.root] && this.root)
			this.root = trie.parent[this.root];
		this.nothing.hidden = this.weight[0] > 0;
		this.scroll.hidden = !this.nothing.hidden;
		this.palette = null;
		this.showFound();
		this.layOut();
		if (!this.options.isPlain)
			this.tree.update(isNew);
		if (root !== this.root)
			this.options.onZoom();
	}

	showFound() {
		const { found, trie, own, whole, unit } = this;
		this.controls.showMatches(found && found.count, found && sumThrough(trie, own, found.found), whole, unit);
	}

	/** Rows of boxes for the width that there is. */
	layOutRows() {
		const { trie, weight } = this;
		const { name } = trie.frames;
		const byName = (a, b) => (name[trie.frame[a]] < name[trie.frame[b]] ? -1 : 1);
		this.width = this.scroll.clientWidth;
		this.rows = rowsOf(layOut(trie, weight, this.root, this.width,
			this.options.isChart ? null : this.options.order === "name" ? byName : (a, b) => weight[b] - weight[a] || byName(a, b)));
		this.resize(this.height());
	}

	layOut() {
		const kept = this.focused?.node;
		this.layOutRows();
		// A scroll bar that comes or goes changes the width.
		if (this.scroll.clientWidth !== this.width)
			this.layOutRows();
		this.focused = kept === undefined ? null : this.boxOf(kept) ?? null;
		this.hovered = null;
		if (!this.focused)
			this.details.hide();
		this.controls.showZoom(this.root !== 0);
		this.controls.showBase(this.baseTotal !== null);
		this.restyle();
		if (this.options.layout === "flame")
			this.scroll.scrollTop = this.scroll.scrollHeight;
	}

	boxOf(node) {
		return this.rows.flat().find((box) => box.node === node && !box.hidden);
	}

	/** Reads colours from the style sheet, which depend on the theme, and paints. */
	restyle() {
		if (!this.total)
			return;
		const style = getComputedStyle(this.container);
		const isDark = style.colorScheme === "dark" ||
			(style.colorScheme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
		const variable = (name) => {
			this.canvas.style.color = `var(${name})`;
			return getComputedStyle(this.canvas).color;
		};
		if (this.palette?.dark !== isDark) {
			this.palette = new Palette(this.trie.frames, isDark);
			this.palette.setModules(this.options.modules);
		}
		this.style = {
			font: style.fontFamily, ink: variable("--ink"), soft: variable("--soft"), faint: variable("--faint"),
			focus: variable("--ink"), mark: variable("--mark"), paper: variable("--paper"),
		};
		this.showLegend();
		this.paint();
	}

	showLegend() {
		const { palette } = this;
		const { kind, module } = this.trie.frames;
		const isByModule = this.options.colour === "module";
		let entries;
		if (this.baseTotal) {
			entries = [["new", 1], ["grew", 0.4], ["did not change", 0], ["shrank", -0.4], ["gone", -1]]
				.map(([title, change]) => [title, palette.ofChange(change)]);
		} else {
			// By module, frames without one have the colour of their kind.
			const present = new Set(isByModule ? kind.filter((_, frame) => module[frame] === "") : kind);
			entries = isByModule ? [...palette.modules.keys()].map((name) => [showName(name), palette.ofModule(name)]) : [];
			if (isByModule && palette.hasOthers)
				entries.push(["others", palette.ofModule("")]);
			entries.push(...kinds.filter((_, i) => present.has(i)).map((name) => [kindTitles[name], palette.ofKind(name)]));
		}
		this.legend.replaceChildren(...entries.map(([title, colour]) => {
			const swatch = element("span", { className: "swatch", "aria-hidden": true });
			swatch.style.background = colour;
			return element("li", {}, swatch, title);
		}));
	}

	/** Of all rows, or of as many as fit the window; the others are scrolled to. On paper all. */
	height() {
		// Browsers limit the size of a canvas.
		if (this.isPrinting)
			return Math.min(this.rows.length * rowHeight, 8000);
		return Math.min(this.rows.length * rowHeight, Math.max(Math.floor(innerHeight * this.options.maxHeight), 6 * rowHeight));
	}

	resize(height) {
		const { canvas, width } = this;
		const pixels = [width, height].map((length) => Math.round(length * devicePixelRatio));
		this.scroll.style.height = `${height}px`;
		this.space.style.height = `${this.rows.length * rowHeight - height}px`;
		if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) {
			[canvas.width, canvas.height] = pixels;
			canvas.style.width = `${width}px`;
			canvas.style.height = `${height}px`;
		}
	}

	paint() {
		const height = this.height();
		this.resize(height);
		paintRows(this.context, this.rows, this.width, { ...this.style, ratio: devicePixelRatio }, {
			top: this.scroll.scrollTop, height,
			rowY: (depth) => this.rowY(depth),
			colourOf: (box) => this.colourOf(box),
			isMatch: this.found ? (box) => this.isMatch(box) : null,
			isGone: (box) => this.baseTotal !== null && !box.hidden && !this.total[box.node] && this.weight[box.node] > 0,
			nameOf: (box) => this.nameOf(box),
			noteOf: (box) => this.noteOf(box),
			focused: this.focused, hovered: this.hovered,
		}, this.fitter);
	}

	/** Paints all rows, in light colours, for paper; or as before. */
	print(isPrinting) {
		const { dataset } = document.documentElement;
		if (isPrinting) {
			this.theme = dataset.theme;
			this.isPrinting = true;
			dataset.theme = "light";
		} else {
			this.isPrinting = false;
			if (this.theme)
				dataset.theme = this.theme;
			else
				delete dataset.theme;
		}
		this.restyle();
	}

	rowY(depth) {
		return (this.options.layout === "flame" ? this.rows.length - 1 - depth : depth) * rowHeight;
	}

	colourOf({ node }) {
		if (this.baseTotal)
			return this.palette.ofChange((this.total[node] - this.baseTotal[node]) /
				(Math.max(this.total[node], this.baseTotal[node]) || 1));
		return node ? this.palette.ofFrame(this.trie.frame[node], this.options.colour) : this.palette.ofKind("process");
	}

	isMatch({ node, hidden }) {
		return Boolean(this.found && node && !hidden && this.found.found[this.trie.frame[node]]);
	}

	nameOf({ node, hidden }) {
		if (hidden)
			return `${formatCount(hidden)} more`;
		return node ? boxName(this.trie.frames, this.trie.frame[node]) : this.options.isPlain ? this.options.rootName : "all";
	}

	/** What is written behind the name, if there is room. */
	noteOf({ node, hidden }) {
		if (!this.baseTotal || hidden || this.total[node] === this.baseTotal[node])
			return "";
		return this.total[node] ? formatChange(this.total[node] - this.baseTotal[node], this.unit) : "gone";
	}

	/** The box below the pointer. */
	boxUnder(event) {
		const area = this.canvas.getBoundingClientRect();
		const row = Math.floor((event.clientY - area.top + this.scroll.scrollTop) / rowHeight);
		return boxAt(this.rows[this.options.layout === "flame" ? this.rows.length - 1 - row : row], event.clientX - area.left);
	}

	hover(event) {
		const box = (event && this.boxUnder(event)) ?? null;
		if (box !== this.hovered) {
			this.hovered = box;
			this.paint();
		}
		if (box)
			this.details.show(this, box, event.clientX, this.topOf(box), rowHeight);
		else
			this.showFocus();
	}

	clicked(event) {
		const box = this.boxUnder(event);
		if (box && box.node !== this.root)
			this.zoomTo(box.node);
		if (box)
			this.hover(event);
	}

	focus(box) {
		this.focused = box ?? null;
		this.paint();
		this.showFocus();
		if (box)
			this.details.speak(this, box);
	}

	/** Details of what has the keyboard's focus. */
	showFocus() {
		const box = this.focused;
		if (!box) {
			this.details.hide();
			return;
		}
		this.details.show(this, box, this.canvas.getBoundingClientRect().left + Math.max(box.x, 0), this.topOf(box), rowHeight);
	}

	/** Where the box begins in the viewport. */
	topOf(box) {
		return this.canvas.getBoundingClientRect().top + this.rowY(box.depth) - this.scroll.scrollTop;
	}

	scrollTo(box) {
		const y = this.rowY(box.depth);
		if (y < this.scroll.scrollTop)
			this.scroll.scrollTop = y;
		else if (y + rowHeight > this.scroll.scrollTop + this.scroll.clientHeight)
			this.scroll.scrollTop = y + rowHeight - this.scroll.clientHeight;
	}

	/** The box that an arrow key leads to from the one with the focus. */
	neighbour(key) {
		const { focused, rows } = this;
		const row = rows[focused.depth];
		const inwards = this.options.layout === "flame" ? "ArrowUp" : "ArrowDown";
		if (key === "ArrowLeft" || key === "ArrowRight")
			return row[row.indexOf(focused) + (key === "ArrowLeft" ? -1 : 1)];
		if (key !== inwards)
			return focused.depth ? boxAt(rows[focused.depth - 1], focused.x + focused.width / 2) : undefined;
		return focused.hidden ? undefined
			: rows[focused.depth + 1]?.find((box) => box.x >= focused.x - 1e-6 && box.x < focused.x + focused.width);
	}

	pressed(event) {
		if (event.ctrlKey || event.altKey || event.metaKey)
			return;
		this.isPointing = false;
		this.focused ??= this.boxOf(this.root);
		if (event.key.startsWith("Arrow")) {
			const box = this.neighbour(event.key);
			if (box) {
				this.scrollTo(box);
				this.focus(box);
			}
		} else if (event.key === "Enter" || event.key === " ") {
			this.zoomTo(this.focused.node);
		} else if (event.key === "Escape") {
			this.reset();
		} else if (event.key === "Backspace") {
			this.zoomTo(this.trie.parent[this.root]);
		} else {
			return;
		}
		event.preventDefault();
	}
}
