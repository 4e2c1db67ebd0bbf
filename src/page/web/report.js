// SPDX-License-Identifier: GPL-3.0-or-later
// The page of `allocprof html`: one choice of a part of the recording, and all that is shown of it.

import { formatDuration, formatTime } from "./axis.js";
import { BandPanel } from "./band_panel.js";
import { readData } from "./data.js";
import { byId, element } from "./elements.js";
import { FlameGraph } from "./flame.js";
import { greatestModules } from "./flame_colour.js";
import { formatChange, formatCount, formatCounted, formatValue } from "./format.js";
import { FunctionTable } from "./functions.js";
import { aliveAt, highestPoint, inSpan, pointAt, selectRows, spanFigures, sumByNode, timeLine, timeOfPoint, totalOf, wholeRecording } from "./moments.js";
import { minuteOf, showName } from "./names.js";
import { groupThreads, knowsCost, readRecording } from "./recording.js";
import { AdvicePanel, findingLink, HistogramPanel, LeakPanel, ledgerPanel, momentTable, remarkList, residentTable, TemporaryPanel } from "./report_panels.js";
import { classOfChange, FunctionPanel, StackPanel } from "./report_tables.js";
import { BlockPanel, blockTest } from "./single_blocks.js";
import { readSource, SourcePanel } from "./source.js";
import { readState, writeState } from "./state.js";
import { themeButton } from "./theme.js";
import { ThreadPanel } from "./threads.js";
import { nameOfMark, TimeLine } from "./timeline.js";
import { kinds, readTrie } from "./trie.js";

/** Processes that are listed by number; more of them by name. */
const mostProcesses = 100;
const momentsInTable = 20;

/** What can be shown of each kind of choice. */
const cards = {
	all: [
		["allocated", "Allocated"], ["live", "Alive at the end"], ["peak", "Alive at the peak"], ["temporary", "Temporary"],
	],
	moment: [["alive", "Alive then"]],
	span: [["allocated", "Allocated in it"], ["kept", "Of that, alive at its end"], ["freed", "Freed in it"]],
};
/** Tables of what is chosen; the others are of the whole recording. */
const followingPanels = new Set(["functions", "stacks", "source", "blocks", "threads"]);
/** Cards of what was alive at a moment. */
const momentCards = new Set(["peak", "live"]);
const explanations = {
	"all allocated": "All blocks that were allocated.",
	"all requested": "All calls that asked for memory. Whether they got it, and what was freed, is not recorded.",
	"all live": "Blocks that were not freed before the recording ended.",
	"all peak": "What was alive when all processes together had most.",
	"all temporary": "Blocks that were freed before the same thread's next allocation.",
	"moment alive": "Blocks that were allocated before that moment, and freed later or never.",
};

class ReportPage {
	constructor(data) {
		this.trie = readTrie(data);
		this.after = readRecording(data, "after");
		this.before = readRecording(data, "before");
		this.source = readSource(data, "after");
		this.sides = [this.after, this.before].filter((side) => side);
		this.hasBase = this.before !== null;
		this.hasTime = this.after.nEpochs > 0 && (!this.hasBase || this.before.nEpochs > 0);
		this.unit = "bytes";
		this.choice = { kind: "all" };
		this.card = { all: "allocated", moment: "alive", span: "allocated" };
		this.groups = groupThreads(this.sides, mostProcesses);
		this.included = this.sides.map(() => null);
		this.process = null;
		this.panel = null;
		this.modules = greatestModules(this.trie, sumByNode(this.after, this.trie.size, selectRows(this.after, null, null), "allocatedBytes"));
		this.buildHead();
		this.buildUnits();
		this.buildPanels();
		this.buildTime();
		this.flame = new FlameGraph(byId("flame"), this.trie, {
			onZoom: () => this.zoomed(),
			onChange: (isSearch) => this.remember(isSearch),
			modules: this.modules,
		});
		this.select();
	}

	buildHead() {
		const { meta, endNs } = this.after;
		const parts = [
			meta.startTime && `started ${minuteOf(meta.startTime)}`, endNs && formatDuration(endNs),
			`${formatCount(meta.processes.length)} ${meta.processes.length === 1 ? "process" : "processes"}`,
			this.hasBase && `compared with ${this.before.meta.file}: ${this.before.meta.title}`,
		];
		byId("title").textContent = showName(meta.title);
		byId("theme").append(themeButton());
		byId("subject").textContent = showName(parts.filter((part) => part).join(", "));
		byId("findings").append(...this.findings());
		byId("findings").hidden = !byId("findings").childElementCount;
	}

	/** What is to be said first: links that show it, and what is missing or to be known. */
	findings() {
		const found = (this.after.meta.findings ?? []).map((finding) => findingLink(finding, this.after.nEpochs));
		if (this.hasBase && this.after.meta.findings?.length === 0)
			found.push(element("p.finding", {}, "No cost moved by 1 % or more"));
		for (const side of this.sides) {
			const name = this.hasBase ? `${showName(side.meta.file)}: ` : "";
			const { missing, notes } = side.meta;
			if (missing.length + notes.length)
				found.push(remarkList(missing.length ? "Not complete" : "To be known",
					[...missing, ...notes].map((text) => name + showName(text)), missing.length > 0));
		}
		return found;
	}

	buildUnits() {
		const show = (unit) => {
			this.unit = unit;
			if (this.hasTime)
				this.updateBands();
			this.update();
			this.remember();
		};
		this.units = ["bytes", "blocks"].map((unit) => element("button", {
			type: "button", click: () => show(unit), "data-unit": unit,
		}, unit === "bytes" ? "Bytes" : this.after.meta.hasLive ? "Blocks" : "Calls"));
		byId("units").append(...this.units);
	}

	buildTime() {
		if (!this.hasTime) {
			byId("no-timeline").textContent = this.after.meta.noTimeLine ?? this.before.meta.noTimeLine;
			byId("no-timeline").hidden = false;
			return;
		}
		byId("time").hidden = byId("moments").hidden = false;
		this.bands = new BandPanel(byId("time-tools"), byId("bands"), this.after, this.functionTable, () => {
			this.updateBands();
			this.updateTime();
			this.remember();
		}, (by, key) => this.pick(by, key));
		this.timeLine = new TimeLine(byId("timeline"), this.after, Math.max(...this.sides.map(({ endNs }) => endNs)), (choice) => this.choose(choice));
		if (this.after.meta.resident.some(([, bytes]) => bytes))
			byId("timeline-help").prepend("The dashed line is resident memory: anonymous pages of all processes. ");
		if (this.timeLine.copies().length)
			byId("timeline-help").prepend("Triangles are copies of the recording; the table Resident memory has what each found. ");
		if (this.hasBase)
			byId("timeline-help").prepend(`The dotted line is ${showName(this.before.meta.file)}, at the same times. `);
		byId("marks").append(...this.markButtons());
		byId("marks").hidden = !byId("marks").childElementCount;
		byId("choose-all").addEventListener("click", () => this.chooseAll(momentCards.has(this.card.all) ? "allocated" : this.card.all));
		byId("choose-end").addEventListener("click", () => this.chooseAll("live"));
		byId("choose-peak").addEventListener("click", () => {
			if (this.has("peak"))
				this.chooseAll("peak");
			else
				this.choose({ kind: "moment", point: highestPoint(this.lines.whole.alive[this.unit]) });
		});
		byId("moments").addEventListener("toggle", () => this.updateMoments());
		byId("show-help").addEventListener("click", ({ target }) => {
			byId("timeline-help").hidden = !byId("timeline-help").hidden;
			target.setAttribute("aria-expanded", String(!byId("timeline-help").hidden));
		});
	}

	/** A button for each mark of the time line, which chooses its moment. */
	markButtons() {
		return this.after.meta.marks.map(([timeNs, kind, name]) => element("li", {}, element("button.mark", {
			type: "button", click: () => this.choose({ kind: "moment", point: pointAt(this.after, timeNs) }),
		}, `${formatTime(timeNs, this.after.epochNs, this.after.endNs)}: ${nameOfMark(kind, name)}`)));
	}

	chooseAll(card) {
		this.card.all = card;
		this.choose({ kind: "all" });
	}

	/** The point of the time line at which is what the whole recording's card shows, or null. */
	markedPoint() {
		const { choice } = this;
		if (choice.kind === "moment")
			return choice.point;
		if (choice.kind !== "all" || !momentCards.has(this.card.all))
			return null;
		return this.card.all === "live" ? this.after.nEpochs : highestPoint(this.lines.whole.alive.bytes);
	}

	/** Shows more of a band: of a function what calls it and what it calls, of a stack its boxes, else these threads alone. */
	pick(by, key) {
		if (by === "lost") {
			this.showPanel("ledger");
			this.panel.tab.focus();
		} else if (by === "function") {
			this.showPanel("functions");
			this.functions.choose(key);
		} else if (by === "stack") {
			this.flame.showOf(key);
		} else {
			const { meta } = this.after;
			const groups = [...this.groups.keys()].filter((group) => this.groups[group].threads[0].some((thread) => key.has(thread)));
			// Where there are many processes, groups have those of all that have a name.
			const isOne = by === "process" && this.sides.length === 1 && groups.some((group) => this.groups[group].pid === null);
			this.threads.only(groups, isOne ? meta.threads[[...key][0]][0] : null);
		}
	}

	has(cost) {
		return this.sides.every((side) => knowsCost(side, cost));
	}

	buildPanels() {
		const unitOf = () => this.unit;
		const ofSource = new Set(this.source?.files.map(([path]) => path));
		this.functionTable = new FunctionTable(this.trie, kinds);
		this.functions = new FunctionPanel(this.functionTable, this.hasBase, unitOf, this.modules, (number) => {
			this.markFunction(number);
			this.remember();
		}, (path) => ofSource.has(path), (path, line) => this.showSource(path, line));
		const panels = [
			["functions", "Functions", this.functions,
				(panel) => panel.update(this.values, this.baseValues, this.unit)],
			["stacks", "Stacks", new StackPanel(this.trie, this.hasBase, unitOf),
				(panel) => panel.update(this.values, this.baseValues, this.unit)],
		];
		if (this.source)
			panels.push(["source", "Source", new SourcePanel(this.source, this.trie.frames, () => this.remember()),
				(panel) => panel.update(this.valuesByPath()[this.unit], this.unit)]);
		if (this.after.blocks.sums)
			panels.push(["blocks", "Single blocks", new BlockPanel(this.trie, this.after),
				(panel) => panel.update(this.included[0], this.blockTest())]);
		if (this.has("live"))
			panels.push(["leaks", "Alive at the end", new LeakPanel(this.trie, this.after, this.hasBase),
				(panel) => panel.update(...this.whole("live"), this.selected[0])]);
		if (this.has("temporary"))
			panels.push(["temporary", "Temporary", new TemporaryPanel(this.trie, this.hasBase),
				(panel) => panel.update(...this.whole("temporary"), this.whole("allocated")[0])]);
		if (this.after.meta.hasLive)
			panels.push(["histograms", "Sizes and lifetimes", new HistogramPanel(this.after),
				(panel) => panel.update(this.included[0])]);
		if (this.after.meta.residentParts.length)
			panels.push(["resident", "Resident memory", {
				container: residentTable(this.after, (ns) => formatTime(ns, this.after.epochNs, this.after.endNs)),
			}, () => {}]);
		if (this.after.meta.advice?.length)
			panels.push(["advice", "Advice", new AdvicePanel(this.after.meta.advice), () => {}]);
		this.threads = new ThreadPanel(this.groups, this.hasBase, (isOn, process) => this.include(isOn, process));
		byId("only").addEventListener("click", () => this.threads.showAll());
		panels.push(
			["threads", "Processes and threads", this.threads, (panel) => panel.update(this.sides.map((_, at) => this.valuesByGroup(at)), this.unit)],
			["ledger", "About this recording", { container: element("div.two", {}, ...this.sides.map(ledgerPanel)) }, () => {}]);
		this.panels = panels.map(([name, title, panel, update]) => ({
			name, panel, update, isOfWhole: !followingPanels.has(name),
			tab: element("button", {
				type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `panel-${name}`, click: () => this.showPanel(name),
			}, title),
			box: element("div.panel", {
				role: "tabpanel", id: `panel-${name}`, tabIndex: 0, "aria-labelledby": `tab-${name}`, "data-title": title,
			}, panel.container),
		}));
		byId("tabs").append(...this.panels.map(({ tab }) => tab));
		byId("tabs").addEventListener("keydown", (event) => this.moveTab(event));
		byId("panels").append(...this.panels.map(({ box }) => box));
		this.panel = this.panels[0];
	}

	showSource(path, line) {
		const { panel } = this.panels.find(({ name }) => name === "source");
		const file = panel.fileOf(path);
		if (file < 0)
			return;
		panel.file = file;
		this.showPanel("source");
		this.panel.tab.focus();
		panel.scrollTo(line);
	}

	/** Marks the boxes of a function in the flame graph; null: of none. */
	markFunction(number) {
		this.flame.mark(number === null ? null
			: { found: Uint8Array.from(this.functionTable.of, (of) => (of === number ? 1 : 0)), count: 1 });
	}

	moveTab(event) {
		const at = this.panels.indexOf(this.panel);
		const next = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: this.panels.length - 1 }[event.key];

		if (next === undefined)
			return;
		this.showPanel(this.panels.at(next % this.panels.length).name);
		this.panel.tab.focus();
		event.preventDefault();
	}

	showPanel(name) {
		this.panel = this.panels.find((panel) => panel.name === name);
		this.updatePanel();
		this.remember();
	}

	/** Says of a table of the whole recording that it is, where something else is chosen. */
	updateWhole() {
		const isOther = this.panel.isOfWhole && this.choice.kind !== "all";
		byId("of-whole").hidden = !isOther;
		byId("of-whole").textContent = !isOther ? "" : `This is of the whole recording, not ${this.choice.kind === "span"
			? "of the span alone" : "of the moment"}.`;
	}

	updatePanel() {
		for (const { tab, box } of this.panels) {
			const isShown = tab === this.panel.tab;
			tab.setAttribute("aria-selected", String(isShown));
			tab.tabIndex = isShown ? 0 : -1;
			box.hidden = !isShown;
		}
		this.updateWhole();
		this.panel.update(this.panel.panel);
	}

	/** Shows the threads of these groups only, and of them those of one process alone unless it is null. */
	include(isOn, process) {
		this.setIncluded(isOn, process);
		this.select();
		this.remember();
	}

	setIncluded(isOn, process) {
		this.process = process;
		this.included = this.sides.map((side, at) => {
			if (isOn.size === this.groups.length && process === null)
				return null;
			const threads = new Uint8Array(side.meta.threads.length);
			for (const group of isOn)
				for (const thread of this.groups[group].threads[at])
					threads[thread] = process === null || side.meta.threads[thread][0] === process ? 1 : 0;
			return threads;
		});
	}

	/** After another choice of threads. */
	select() {
		this.selected = this.sides.map((side, at) => selectRows(side, this.included[at], null));
		if (this.hasTime) {
			this.lines = { whole: timeLine(this.after, this.selected[0]), part: null, base: null };
			this.baseLine = this.hasBase ? timeLine(this.before, this.selected[1]) : null;
			this.updateZoomed();
		}
		this.update();
	}

	/** Works out the time line of the stacks that the flame graph is zoomed to, and the bands, which are of these alone then. */
	updateZoomed() {
		const nodes = this.flame.zoomedNodes();
		this.drawn = nodes ? selectRows(this.after, this.included[0], nodes) : this.selected[0];
		this.lines.part = nodes && timeLine(this.after, this.drawn);
		this.updateBands();
	}

	updateBands() {
		this.made = this.bands.make(this.drawn, this.unit, this.lines.part ?? this.lines.whole);
		byId("time-title").textContent = this.made.what === "alive" ? "Live memory over time" : "Allocations over time";
	}

	zoomed() {
		if (!this.hasTime)
			return;
		this.updateZoomed();
		this.updateTime();
	}

	choose(choice) {
		this.choice = choice;
		this.update();
		this.remember();
	}

	/** What is shown, for readState() of another time. */
	state() {
		const { choice, panel, panels, unit } = this;
		const card = this.card[choice.kind];
		const { isOn } = this.threads;
		return {
			...this.flame.state(), unit: unit === "bytes" ? undefined : unit,
			at: choice.kind === "moment" ? choice.point : undefined,
			span: choice.kind === "span" ? [choice.from, choice.until] : undefined,
			card: card === cards[choice.kind][0][0] ? undefined : card,
			panel: panel === panels[0] ? undefined : panel.name,
			function: this.functions.selected ?? undefined, ...this.bands?.state(),
			threads: isOn.size === this.groups.length ? undefined : [...isOn], process: this.process ?? undefined,
			file: panel.name === "source" ? panel.panel.file ?? undefined : undefined,
		};
	}

	/** Puts what is shown into the address. @replaces: in place of what was there, as for each letter of a search. */
	remember(replaces = false) {
		const fragment = writeState(this.state());
		if (this.isRestoring || fragment === location.hash.slice(1))
			return;
		history[replaces ? "replaceState" : "pushState"](null, "", `#${fragment}`);
	}

	/** Shows what readState() returned, as far as there is such a thing here. */
	restore({ at, span, card, unit, panel, threads, process, function: number, chart, bands, file, ...ofFlame }) {
		const { nEpochs } = this.after;
		this.isRestoring = true;
		this.bands?.restore({ chart, bands });
		this.choice = { kind: "all" };
		if (this.hasTime && at <= nEpochs)
			this.choice = { kind: "moment", point: at };
		else if (this.hasTime && span?.[1] <= nEpochs)
			this.choice = { kind: "span", from: span[0], until: span[1] };
		const names = cards[this.choice.kind].map(([name]) => name);
		const isCard = names.includes(card) && (this.choice.kind !== "all" || this.has(card));
		this.card[this.choice.kind] = isCard ? card : names[0];
		this.unit = unit === "blocks" ? unit : "bytes";
		if (file < this.source?.files.length)
			this.panels.find(({ name }) => name === "source").panel.file = file;
		this.panel = this.panels.find(({ name }) => name === panel) ?? this.panels[0];
		this.threads.isOn = new Set(threads?.filter((group) => group < this.groups.length) ?? this.groups.keys());
		this.setIncluded(this.threads.isOn, this.sides.length === 1 && process < this.after.meta.processes.length ? process : null);
		this.flame.restore(ofFlame);
		this.select();
		this.flame.show(ofFlame.zoom ?? 0);
		this.functions.show(number ?? null);
		if (this.functions.selected !== null)
			this.markFunction(number);
		this.isRestoring = false;
	}

	blockTest() {
		return blockTest(this.after, this.choice, this.card[this.choice.kind], this.hasTime ? highestPoint(this.lines.whole.alive.bytes) : 0);
	}

	/** [of the recording, of the one that it is compared with or null] */
	whole(cost) {
		const values = this.sides.map((side, at) => wholeRecording(side, this.trie.size, this.selected[at], cost));
		return [values[0], values[1] ?? null];
	}

	/** The point of the other recording at the same time. */
	pointOf(at, point) {
		return at ? pointAt(this.before, Math.min(timeOfPoint(this.after, point), this.before.endNs)) : point;
	}

	valuesOf(at, selected, side = this.sides[at], nNodes = this.trie.size) {
		const { choice } = this;
		const shown = this.card[choice.kind];

		if (choice.kind === "moment")
			return aliveAt(side, nNodes, selected, this.pointOf(at, choice.point));
		if (choice.kind === "span")
			return inSpan(side, nNodes, selected, this.pointOf(at, choice.from), this.pointOf(at, choice.until), shown);
		return wholeRecording(side, nNodes, selected, shown);
	}

	/** Of what is shown, the numbers by path of lines. */
	valuesByPath() {
		const { rows } = this.after;
		return this.valuesOf(0, this.selected[0], { ...this.after, rows: { ...rows, node: rows.source } }, this.source.parent.length);
	}

	/** Of what is shown, the number for each group of threads, whether or not it is selected. */
	valuesByGroup(at) {
		const side = this.sides[at];
		// Threads take the place of nodes.
		const byThread = { ...side, rows: { ...side.rows, node: side.rows.thread } };
		const all = new Uint8Array(side.rows.node.length).fill(1);
		const sums = this.valuesOf(at, all, byThread, side.meta.threads.length)[this.unit];
		return this.groups.map((group) => group.threads[at].reduce((sum, thread) => sum + sums[thread], 0));
	}

	timeOf(point) {
		return formatTime(timeOfPoint(this.after, point), this.after.epochNs, this.after.endNs);
	}

	title() {
		const { choice } = this;
		if (choice.kind === "moment")
			return `At ${this.timeOf(choice.point)}`;
		if (choice.kind === "span") {
			const length = timeOfPoint(this.after, choice.until) - timeOfPoint(this.after, choice.from);
			return `From ${this.timeOf(choice.from)} to ${this.timeOf(choice.until)}, ${formatDuration(length)}`;
		}
		return { peak: "At the peak", live: "At the end" }[this.card.all] ?? "The whole recording";
	}

	/** Shows what is chosen. */
	update() {
		this.values = this.valuesOf(0, this.selected[0]);
		this.baseValues = this.hasBase ? this.valuesOf(1, this.selected[1]) : null;
		for (const button of this.units)
			button.setAttribute("aria-pressed", String(button.dataset.unit === this.unit));
		byId("choice-title").textContent = this.title();
		this.updateOnly();
		this.updateCards();
		this.updateTime();
		const other = this.unit === "bytes" ? "blocks" : "bytes";
		this.flame.setValues(this.values[this.unit], this.baseValues?.[this.unit] ?? null, this.unitName(this.unit),
			[{ title: this.unitTitle(other), unit: this.unitName(other), own: this.values[other] }]);
		this.updatePanel();
	}

	/** Names the threads that are shown where some are left out, and takes them all on a click. */
	updateOnly() {
		const text = this.process === null ? this.threads.selection() : `only ${this.nameOfProcess(this.process)}`;
		byId("only").hidden = text === null;
		byId("only").textContent = text === null ? "" : `${text} \u2715`;
	}

	nameOfProcess(process) {
		const [pid, name] = this.after.meta.processes[process];
		return `${showName(name)} (${pid})`;
	}

	unitName(unit) {
		return unit === "blocks" && !this.after.meta.hasLive ? "calls" : unit;
	}

	unitTitle(unit) {
		return unit === "bytes" ? "Bytes" : this.unitName(unit) === "calls" ? "Calls" : "Blocks";
	}

	/** The bytes of the whole recording are the counted ones, which the stacks add up to within 1 %. */
	peakOf(at) {
		const sum = totalOf(this.sides[at], this.selected[at], "peak");
		const counted = this.included.every((threads) => !threads) && this.sides[at].meta.peakBytes;
		return counted && counted !== sum.bytes ? { ...sum, bytes: counted, ofStacks: sum.bytes } : sum;
	}

	/** What each card of the choice says: { blocks, bytes } by its name, of one side. */
	figures(at) {
		const { choice } = this;
		const side = this.sides[at];
		if (choice.kind === "moment")
			return { alive: (at ? this.baseValues : this.values).total };
		if (choice.kind === "span")
			return spanFigures(side, this.selected[at], this.pointOf(at, choice.from), this.pointOf(at, choice.until));
		return Object.fromEntries(cards.all.filter(([cost]) => this.has(cost)).map(([cost]) =>
			[cost, cost === "peak" ? this.peakOf(at) : totalOf(side, this.selected[at], cost)]));
	}

	updateCards() {
		const { kind } = this.choice;
		const figures = this.sides.map((_, at) => this.figures(at));
		const shown = cards[kind].filter(([name]) => name in figures[0]);
		const focused = byId("cards").contains(document.activeElement);

		byId("cards").replaceChildren(...shown.map(([name, title]) => this.cardOf(name, title, figures)));
		if (focused)
			byId("cards").querySelector("input:checked").focus();
		const explained = this.after.meta.hasLive ? this.card[kind] : "requested";
		const ofEnded = this.after.meta.hasExits ? {
			"all live": " What ended processes left is among them.",
			"moment alive": " What processes left that had ended by then is not.",
		}[`${kind} ${explained}`] : null;
		byId("balance").textContent = kind === "span" ? this.balance(figures[0]) :
			explanations[`${kind} ${explained}`] + (ofEnded ?? "");
	}

	cardOf(name, title, figures) {
		const { kind } = this.choice;
		const other = this.unit === "bytes" ? "blocks" : "bytes";
		const [now, before] = figures.map((of) => of[name]);
		const input = element("input", {
			type: "radio", name: "card", value: name, checked: this.card[kind] === name,
			change: () => {
				this.card[kind] = name;
				this.update();
				this.remember();
			},
		});
		const words = { blocks: formatCounted(now.blocks, this.unitName("blocks")), bytes: formatValue(now.bytes, "bytes") };
		const change = before ? now[this.unit] - before[this.unit] : 0;
		const parts = now.ofStacks ? `; the stacks add up to ${formatCounted(now.ofStacks, "bytes")}` : "";

		return element("label.card", { "data-card": name, title: `${formatCounted(now.bytes, "bytes")}, ${words.blocks}${parts}` }, input,
			element("span.what", {}, this.after.meta.hasLive ? this.titleOf(name, title) : "Requested"),
			element("span.value", {}, element("span.number", {}, words[this.unit]),
				before ? element(`span.change${classOfChange(change)}`, {}, ` ${formatChange(change, this.unit)}`) : null),
			element("span.other", {}, words[other]));
	}

	titleOf(name, title) {
		return name === "freed" && this.after.meta.hasExits ? "Freed in it, or gone with their process" : title;
	}

	balance(figures) {
		const text = (name) => formatValue(figures[name][this.unit], this.unit);
		return `${text("before")} alive at its start + ${text("allocated")} allocated = ${text("after")} alive at its end + ` +
			`${text("freed")} ${this.after.meta.hasExits ? "freed or gone with their process" : "freed"}`;
	}

	updateTime() {
		if (!this.hasTime)
			return;
		const { unit } = this;
		const isWhole = this.included.every((threads) => !threads);
		// It is of bytes: there may be more blocks at another time.
		const peak = isWhole && unit === "bytes" && this.has("peak") ? this.peakOf(0).bytes : null;
		const base = this.baseLine && Array.from(this.baseLine.alive[unit], (value, point) =>
			({ timeNs: timeOfPoint(this.before, point), value }));
		this.timeLine.choice = this.choice;
		const point = this.markedPoint();
		this.timeLine.marked = point === null ? [] : [point];
		this.timeLine.setLines({ ...this.lines, base }, peak, unit, this.made);
		this.bands.update(point);
		const pressed = this.choice.kind !== "all" ? null : { peak: "peak", live: "end" }[this.card.all] ?? "all";
		for (const name of ["all", "peak", "end"])
			byId(`choose-${name}`).setAttribute("aria-pressed", String(name === pressed));
		this.updateMoments();
	}

	updateMoments() {
		if (!byId("moments").open)
			return;
		const { nEpochs } = this.after;
		const n = Math.min(momentsInTable, nEpochs);
		const points = new Set(Array.from({ length: n + 1 }, (_, i) => Math.round((i * nEpochs) / n)));
		points.add(highestPoint(this.lines.whole.alive[this.unit]));
		byId("moments-table").replaceChildren(momentTable([...points].sort((a, b) => a - b), (point) => this.timeOf(point),
			this.lines.whole.alive[this.unit], this.unit, (point) => this.choose({ kind: "moment", point }), this.made));
	}
}

async function showReport() {
	const page = new ReportPage(await readData(document));
	const restore = () => page.restore(readState(location.hash.slice(1)));
	if (location.hash.length > 1)
		restore();
	addEventListener("popstate", restore);
	document.documentElement.dataset.ready = "";
	return page;
}

showReport();
