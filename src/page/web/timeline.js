// SPDX-License-Identifier: GPL-3.0-or-later
// The time line of a recording, on which one chooses a moment or a span.

import { formatTime, timeTicks, valueTicks } from "./axis.js";
import { hatchOf, paintBands } from "./band_paint.js";
import { formatValue } from "./format.js";
import { highestPoint, pointAt, timeOfPoint } from "./moments.js";
import { showName } from "./names.js";

const chartHeight = 136;
const stripHeight = 34;
const axisHeight = 24;
const gutter = 76;
/** A drag that is shorter is a click. */
const leastDrag = 4;
const pageStep = 10;
/** Resident memory is drawn where the most of it is at most so many times what was ever alive. */
const mostResident = 4;
const markSize = 5;
/** The line of resident memory has a gap where the next sample is so many usual distances away. */
const longestPause = 8;
const markTitles = { dump: "copy", stop: "stopped", start: "started" };

export function nameOfMark(kind, name) {
	return showName(name ? `${markTitles[kind]} at ${name}` : markTitles[kind]);
}

export class TimeLine {
	/**
	 * Draws @recording into @container, from 0 to @endNs. @onChoose gets each choice: { kind: "all" }, { kind: "moment", point } or
	 * { kind: "span", from, until }, of points.
	 */
	constructor(container, recording, endNs, onChoose) {
		this.container = container;
		this.recording = recording;
		this.endNs = endNs;
		this.onChoose = onChoose;
		this.choice = { kind: "all" };
		this.hovered = null;
		this.dragged = null;
		this.build();
		this.listen();
	}

	/**
	 * @lines.whole is what is drawn, of timeLine(); @lines.part a part of it that stands out, or null; @lines.base the
	 * same of another recording, [{ timeNs, value }], or null. @peak is what was alive at the recorded peak, or null. @bands are
	 * drawn in place of the part, or of the whole: { what, list, colours, names }, of makeBands() and colourBands().
	 */
	setLines(lines, peak, unit, bands) {
		this.lines = lines;
		this.peak = bands.what === "alive" ? peak : null;
		this.unit = unit;
		this.bands = bands;
		this.draw();
		this.describe();
	}

	time(point) {
		const { recording } = this;
		return formatTime(timeOfPoint(recording, point), recording.epochNs, recording.endNs);
	}

	alive(point) {
		return this.lines.whole.alive[this.unit][point];
	}

	build() {
		this.container.classList.add("timeline");
		this.canvas = document.createElement("canvas");
		this.canvas.tabIndex = 0;
		this.canvas.setAttribute("role", "slider");
		this.canvas.setAttribute("aria-label", "Moment or span of the recording");
		this.canvas.setAttribute("aria-valuemin", "0");
		this.canvas.setAttribute("aria-valuemax", String(this.recording.nEpochs));
		this.canvas.setAttribute("aria-describedby", "timeline-help");
		this.tip = document.createElement("div");
		this.tip.className = "timeline-tip";
		this.tip.hidden = true;
		this.container.append(this.canvas, this.tip);
		this.context = this.canvas.getContext("2d");
	}

	listen() {
		const { canvas } = this;
		new ResizeObserver(() => this.draw()).observe(this.container);
		matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
		new MutationObserver(() => this.draw()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
		matchMedia("print").addEventListener("change", () => this.draw());
		canvas.addEventListener("pointerdown", (event) => this.press(event));
		canvas.addEventListener("pointermove", (event) => this.move(event));
		canvas.addEventListener("pointerup", (event) => this.release(event));
		canvas.addEventListener("pointercancel", () => this.cancel());
		canvas.addEventListener("pointerleave", () => this.leave());
		canvas.addEventListener("keydown", (event) => this.key(event));
	}

	/** Of the canvas in CSS pixels. */
	x(timeNs) {
		return gutter + (timeNs / this.endNs) * this.chartWidth;
	}

	xOfPoint(point) {
		return this.x(timeOfPoint(this.recording, point));
	}

	pointOf(event) {
		const x = event.clientX - this.canvas.getBoundingClientRect().left;
		return pointAt(this.recording, ((x - gutter) / this.chartWidth) * this.endNs);
	}

	press(event) {
		if (event.button)
			return;
		this.canvas.setPointerCapture(event.pointerId);
		this.dragged = { x: event.clientX, point: this.pointOf(event), isSpan: false };
		if (event.shiftKey && this.choice.kind !== "all")
			this.dragged = { x: event.clientX, point: this.anchor(), isSpan: true };
	}

	move(event) {
		const point = this.pointOf(event);
		if (this.dragged) {
			this.dragged.isSpan ||= Math.abs(event.clientX - this.dragged.x) >= leastDrag;
			if (this.dragged.isSpan)
				this.preview = spanOf(this.dragged.point, point);
		}
		this.hovered = point;
		if (this.dragged)
			this.draw();
		else
			this.redrawCursors();
		this.showTip(event, point);
	}

	release(event) {
		if (!this.dragged)
			return;
		const { point, isSpan } = this.dragged;
		const head = this.pointOf(event);
		this.cancel();
		this.ends = { anchor: point, head: isSpan ? head : point };
		this.onChoose(isSpan ? spanOf(point, head) : { kind: "moment", point });
	}

	cancel() {
		this.dragged = this.preview = null;
	}

	leave() {
		this.hovered = null;
		this.tip.hidden = true;
		this.redrawCursors();
	}

	showTip(event, point) {
		const area = this.canvas.getBoundingClientRect();
		const span = this.preview;
		this.tip.textContent = span?.kind === "span"
			? `${this.time(span.from)} to ${this.time(span.until)}`
			: `${this.time(point)}: ${formatValue(this.alive(point), this.unit)} alive${this.residentText(point)}`;
		this.tip.hidden = false;
		const left = event.clientX - area.left + 14;
		const overflows = left + this.tip.offsetWidth > this.canvas.clientWidth;
		this.tip.style.left = `${overflows ? left - 28 - this.tip.offsetWidth : left}px`;
	}

	residentText(point) {
		const bytes = this.residentAt(timeOfPoint(this.recording, point));
		return bytes === undefined ? "" : `, ${formatValue(bytes, "bytes")} resident`;
	}

	/** The end of the choice that stays where it is when the other one is moved. */
	anchor() {
		const { choice } = this;
		if (choice.kind === "moment")
			return choice.point;
		return this.ends && spanOf(this.ends.anchor, this.ends.head).from === choice.from ? this.ends.anchor : choice.from;
	}

	head() {
		const { choice } = this;
		if (choice.kind === "moment")
			return choice.point;
		if (choice.kind === "span")
			return this.anchor() === choice.from ? choice.until : choice.from;
		return highestPoint(this.lines.whole.alive[this.unit]);
	}

	key(event) {
		const { nEpochs } = this.recording;
		const head = this.head();
		const isFirst = this.choice.kind === "all";
		const targets = {
			ArrowLeft: head - 1, ArrowDown: head - 1, ArrowRight: head + 1, ArrowUp: head + 1,
			PageDown: head - pageStep, PageUp: head + pageStep, Home: 0, End: nEpochs,
		};

		if (event.ctrlKey || event.altKey || event.metaKey)
			return;
		if (event.key === "Escape" && !isFirst) {
			this.onChoose({ kind: "all" });
		} else if (event.key in targets) {
			const target = Math.max(0, Math.min(targets[event.key], nEpochs));
			const anchor = event.shiftKey ? (isFirst ? head : this.anchor()) : target;
			// The first arrow shows the highest moment itself.
			const point = isFirst && !event.shiftKey && event.key.startsWith("Arrow") ? head : target;
			this.ends = { anchor: event.shiftKey ? anchor : point, head: point };
			this.onChoose(event.shiftKey ? spanOf(anchor, target) : { kind: "moment", point });
		} else {
			return;
		}
		event.preventDefault();
	}

	/** What a screen reader says of the choice. */
	describe() {
		const { choice, canvas } = this;
		const texts = {
			all: () => "the whole recording",
			moment: () => `${this.time(choice.point)}: ${formatValue(this.alive(choice.point), this.unit)} alive` +
				(this.lines.part ? `, ${formatValue(this.lines.part.alive[this.unit][choice.point], this.unit)} of it in the ` +
					"stacks that the flame graph is zoomed to" : ""),
			span: () => `from ${this.time(choice.from)} to ${this.time(choice.until)}`,
		};
		canvas.setAttribute("aria-valuenow", String(choice.kind === "all" ? 0 : this.head()));
		canvas.setAttribute("aria-valuetext", texts[choice.kind]());
	}

	colour(name) {
		this.canvas.style.color = `var(${name})`;
		return getComputedStyle(this.canvas).color;
	}

	draw() {
		const { canvas, context } = this;
		const width = this.container.clientWidth;
		const height = chartHeight + stripHeight + axisHeight;
		const ratio = devicePixelRatio;

		if (!this.lines || !width)
			return;
		this.chartWidth = Math.max(1, width - gutter - 12);
		Object.assign(canvas.dataset, { left: gutter, width: this.chartWidth, endNs: this.endNs, peak: this.peak ?? "" });
		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round(height * ratio);
		canvas.style.height = `${height}px`;
		context.setTransform(ratio, 0, 0, ratio, 0, 0);
		context.clearRect(0, 0, width, height);
		context.font = `12px ${getComputedStyle(canvas).fontFamily}`;
		const isAlive = this.bands.what === "alive";
		const values = this.lines.whole[this.bands.what][this.unit];
		const base = isAlive ? this.lines.base ?? [] : [];
		this.most = Math.max(values[highestPoint(values)], this.peak ?? 0,
			base.reduce((most, { value }) => Math.max(most, value), 0), 1) * 1.06;
		const resident = isAlive ? this.resident().reduce((most, [, bytes]) => Math.max(most, bytes), 0) * 1.06 : 0;
		this.hasResident = resident > 0 && resident <= this.most * mostResident;
		if (this.hasResident)
			this.most = Math.max(this.most, resident);
		this.drawAxes(width);
		this.drawChosenSpan();
		if (this.lines.part && isAlive)
			this.drawArea(values, 0.16);
		this.drawBands();
		if (base.length)
			this.drawBase();
		if (this.hasResident)
			this.drawResident();
		this.drawPeak();
		this.drawStrip();
		this.drawCopies();
		this.drawMarks();
		this.keep();
		this.drawCursors();
	}

	/** Keeps what is drawn: where only the pointer moves, bands would take long. */
	keep() {
		const { canvas } = this;
		this.kept ??= document.createElement("canvas");
		Object.assign(this.kept, { width: canvas.width, height: canvas.height });
		if (canvas.width && canvas.height)
			this.kept.getContext("2d").drawImage(canvas, 0, 0);
	}

	redrawCursors() {
		const { canvas, context, kept } = this;
		if (!kept?.width || !kept.height)
			return;
		context.save();
		context.resetTransform();
		context.clearRect(0, 0, canvas.width, canvas.height);
		context.drawImage(kept, 0, 0);
		context.restore();
		this.drawCursors();
	}

	y(value) {
		return chartHeight - (value / this.most) * (chartHeight - 14);
	}

	drawAxes(width) {
		const { context } = this;
		const { step, ticks } = timeTicks(this.endNs, this.chartWidth / 110);
		context.strokeStyle = this.colour("--line");
		context.fillStyle = this.colour("--soft");
		context.lineWidth = 1;
		context.textBaseline = "middle";
		context.textAlign = "right";
		for (const value of valueTicks(this.most, 4, this.unit)) {
			const y = Math.round(this.y(value)) + 0.5;
			line(context, gutter, y, gutter + this.chartWidth, y);
			context.fillText(formatTick(value, this.unit), gutter - 10, y);
		}
		context.textBaseline = "alphabetic";
		for (const time of ticks) {
			const x = Math.round(this.x(time)) + 0.5;
			const text = formatTime(time, step, this.endNs);
			const half = context.measureText(text).width / 2;
			line(context, x, chartHeight + stripHeight, x, chartHeight + stripHeight + 5);
			context.textAlign = "center";
			context.fillText(text, Math.min(x, width - half - 1), chartHeight + stripHeight + 19);
		}
	}

	/** The outline of values by point, from the first to the last. */
	trace(values) {
		const { context } = this;
		context.beginPath();
		for (let point = 0; point < values.length; point++)
			context.lineTo(this.xOfPoint(point), this.y(values[point]));
	}

	drawArea(values, opacity) {
		const { context } = this;
		const colour = this.colour("--soft");
		this.trace(values);
		context.strokeStyle = colour;
		context.lineWidth = 1;
		context.lineJoin = "round";
		context.stroke();
		context.lineTo(this.xOfPoint(values.length - 1), chartHeight);
		context.lineTo(this.xOfPoint(0), chartHeight);
		context.globalAlpha = opacity;
		context.fillStyle = colour;
		context.fill();
		context.globalAlpha = 1;
	}

	drawBands() {
		const { context, recording } = this;
		const { what, list, colours, names } = this.bands;
		const hatches = new Map(colours.map((colour) => [colour, hatchOf(context, colour)]));
		paintBands(context, list, {
			xs: Float64Array.from({ length: recording.nEpochs + 1 }, (_, point) => this.xOfPoint(point)), isStepped: what === "allocated",
			yOf: (value) => this.y(value), colours, names, style: { ink: this.colour("--ink"), paper: this.colour("--paper"), hatches },
		});
	}

	drawBase() {
		const { context } = this;
		context.beginPath();
		for (const { timeNs, value } of this.lines.base)
			context.lineTo(this.x(timeNs), this.y(value));
		context.strokeStyle = this.colour("--soft");
		context.lineWidth = 1.5;
		context.setLineDash([1.5, 3]);
		context.stroke();
		context.setLineDash([]);
	}

	/** Samples of resident memory, [timeNs, bytes]. */
	resident() {
		return this.unit === "bytes" ? this.recording.meta.resident : [];
	}

	residentAt(timeNs) {
		return this.resident().findLast(([time]) => time <= timeNs)?.[1];
	}

	drawResident() {
		const { context } = this;
		const samples = this.resident();
		const longest = (longestPause * this.endNs) / samples.length;
		let before = -Infinity;
		context.beginPath();
		for (const [time, bytes] of samples) {
			context[time - before > longest ? "moveTo" : "lineTo"](this.x(time), this.y(bytes));
			before = time;
		}
		context.strokeStyle = this.colour("--ink");
		context.lineWidth = 1.5;
		context.setLineDash([5, 3]);
		context.stroke();
		context.setLineDash([]);
	}

	drawPeak() {
		const { context } = this;
		if (!this.peak)
			return;
		const y = Math.round(this.y(this.peak)) + 0.5;
		const text = `peak ${formatValue(this.peak, this.unit)}`;
		context.strokeStyle = context.fillStyle = this.colour("--soft");
		context.setLineDash([2, 3]);
		line(context, gutter, y, gutter + this.chartWidth, y);
		context.setLineDash([]);
		context.textAlign = "right";
		// Resident memory may be drawn there.
		const at = [text, gutter + this.chartWidth - 4, y - 5 < 10 ? y + 14 : y - 5];
		context.strokeStyle = this.colour("--paper");
		context.lineWidth = 5;
		context.strokeText(...at);
		context.fillText(...at);
		context.lineWidth = 1;
	}

	/** What was allocated in each epoch. */
	drawStrip() {
		const { context, recording } = this;
		const values = this.lines.whole.allocated[this.unit];
		const most = values[highestPoint(values)] || 1;
		const bottom = chartHeight + stripHeight;
		context.fillStyle = this.colour("--soft");
		for (let epoch = 0; epoch < recording.nEpochs; epoch++) {
			if (!values[epoch])
				continue;
			const left = this.xOfPoint(epoch);
			const height = Math.max(1, (values[epoch] / most) * (stripHeight - 8));
			context.fillRect(left, bottom - height, Math.max(0.5, this.xOfPoint(epoch + 1) - left - 0.3), height);
		}
		context.textAlign = "right";
		context.fillText("allocated", gutter - 10, bottom - 8);
		context.strokeStyle = this.colour("--line");
		line(context, gutter, bottom + 0.5, gutter + this.chartWidth, bottom + 0.5);
	}

	/** When copies of the recording were made before it ended, as far as it has what they found. */
	copies() {
		return this.recording.meta.residentParts.map((sample) => sample.time_ns).slice(0, -1);
	}

	drawCopies() {
		const { context } = this;
		const bottom = chartHeight + stripHeight;
		context.fillStyle = this.colour("--mark");
		for (const time of this.copies()) {
			const x = this.x(time);
			context.beginPath();
			context.moveTo(x, bottom - 1);
			context.lineTo(x - markSize, bottom + markSize);
			context.lineTo(x + markSize, bottom + markSize);
			context.fill();
		}
	}

	/** What happened to the recording, with its name where there is room; all names stand in a list, too. */
	drawMarks() {
		const { context } = this;
		let until = -Infinity;
		context.strokeStyle = context.fillStyle = this.colour("--ink");
		context.lineWidth = 1;
		context.textAlign = "left";
		for (const [time, kind, name] of this.recording.meta.marks) {
			const x = Math.round(this.x(time)) + 0.5;
			const text = nameOfMark(kind, name);
			const { width } = context.measureText(text);
			context.setLineDash([1, 2]);
			line(context, x, 0, x, chartHeight + stripHeight);
			context.setLineDash([]);
			if (x < until || x + width + 4 > gutter + this.chartWidth)
				continue;
			context.strokeStyle = this.colour("--paper");
			context.lineWidth = 4;
			context.strokeText(text, x + 4, 11);
			context.strokeStyle = context.fillStyle = this.colour("--ink");
			context.lineWidth = 1;
			context.fillText(text, x + 4, 11);
			until = x + width + 8;
		}
	}

	drawChosenSpan() {
		const { context } = this;
		const span = this.preview ?? this.choice;
		if (span.kind !== "span")
			return;
		const left = this.xOfPoint(span.from);
		context.fillStyle = this.colour("--mark");
		context.globalAlpha = 0.13;
		context.fillRect(left, 0, this.xOfPoint(span.until) - left, chartHeight + stripHeight);
		context.globalAlpha = 1;
	}

	drawCursors() {
		const { context } = this;
		const span = this.preview ?? this.choice;
		const bottom = chartHeight + stripHeight;
		if (this.hovered !== null && !this.preview) {
			context.strokeStyle = this.colour("--soft");
			context.lineWidth = 1;
			line(context, this.xOfPoint(this.hovered), 0, this.xOfPoint(this.hovered), bottom);
		}
		context.strokeStyle = context.fillStyle = this.colour("--mark");
		context.lineWidth = 1.5;
		const points = { all: this.marked ?? [], moment: [span.point], span: [span.from, span.until] }[span.kind];
		for (const point of points) {
			const x = this.xOfPoint(point);
			line(context, x, 0, x, bottom);
			if (this.bands.what !== "alive")
				continue;
			context.beginPath();
			context.arc(x, this.y(this.alive(point)), 4, 0, 2 * Math.PI);
			context.fill();
		}
	}
}

function spanOf(a, b) {
	return a === b ? { kind: "moment", point: a } : { kind: "span", from: Math.min(a, b), until: Math.max(a, b) };
}

/** As formatValue(), of round numbers: "512 KiB". */
function formatTick(value, unit) {
	return formatValue(value, unit).replace(/\.0+(?= )/, "");
}

function line(context, x1, y1, x2, y2) {
	context.beginPath();
	context.moveTo(x1, y1);
	context.lineTo(x2, y2);
	context.stroke();
}
