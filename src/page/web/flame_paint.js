// SPDX-License-Identifier: GPL-3.0-or-later
// Draws the boxes of a flame graph on a canvas.

import { lastPart, showName } from "./names.js";

export const rowHeight = 20;
const fontSize = 12;
const padding = 5;
const ellipsis = "\u2026";

/** Shortens texts to widths, and remembers how wide they are. */
export class TextFitter {
	constructor(context) {
		this.context = context;
		this.widths = new Map();
	}

	widthOf(text) {
		let width = this.widths.get(text);
		if (width === undefined) {
			width = this.context.measureText(text).width;
			this.widths.set(text, width);
		}
		return width;
	}

	/** The text, its last scope, or the beginning of that; "" if not even three letters fit. */
	fit(name, room) {
		// No box has room for more, and names may be long.
		const text = name.length > 400 ? name.slice(0, 400) + ellipsis : name;
		if (this.widthOf(text) <= room)
			return text;
		const last = lastPart(text);
		if (last !== text && this.widthOf(last) <= room)
			return last;
		let low = 0, high = last.length;
		while (low < high) {
			const middle = (low + high + 1) >> 1;
			if (this.context.measureText(last.slice(0, middle) + ellipsis).width <= room)
				low = middle;
			else
				high = middle - 1;
		}
		return low >= 2 ? last.slice(0, low) + ellipsis : "";
	}
}

/** The device's pixels that a length has are whole, so that edges are sharp. */
function snap(length, ratio) {
	return Math.round(length * ratio) / ratio;
}

/**
 * Draws @rows. @view: { top, height, rowY(depth), colourOf(box),
 * isMatch(box) or null, isGone(box), nameOf(box), noteOf(box), focused, hovered }. @style: { font, ink, soft, faint,
 * paper, focus, mark, ratio }.
 */
export function paintRows(context, rows, width, style, view, fitter) {
	const { ratio } = style;
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	context.clearRect(0, 0, width, view.height);
	context.font = `${fontSize}px ${style.font}`;
	context.textBaseline = "middle";
	rows.forEach((row, depth) => {
		const y = view.rowY(depth) - view.top;
		if (y + rowHeight < 0 || y > view.height)
			return;
		for (const box of row)
			paintBox(context, box, y, style, view, fitter);
	});
}

function paintBox(context, box, y, style, view, fitter) {
	const { ratio } = style;
	const x = snap(box.x, ratio);
	const right = snap(box.x + box.width, ratio);
	// A line of paper between neighbours, unless the box is that line.
	const gap = right - x > 2 ? 1 : 0.25;
	const width = Math.max(right - x - gap, 0.5);
	const height = rowHeight - 1;
	const matches = !view.isMatch || view.isMatch(box);

	context.globalAlpha = matches ? (box.above ? 0.55 : 1) : 0.28;
	context.fillStyle = box.hidden ? style.faint : view.colourOf(box);
	context.beginPath();
	context.roundRect(x, y, width, height, width > 6 ? 2.5 : 0);
	context.fill();
	if (view.isGone(box))
		paintHatch(context, x, y, width, height, style);
	context.globalAlpha = 1;
	if (view.isMatch && matches && !box.hidden && width > 1) {
		context.fillStyle = style.mark;
		context.fillRect(x, y + height - 2, width, 2);
	}
	if (box === view.focused || box === view.hovered) {
		context.strokeStyle = style.focus;
		context.lineWidth = box === view.focused ? 2 : 1.25;
		context.beginPath();
		context.roundRect(x + 1, y + 1, Math.max(width - 2, 0.5), height - 2, 2);
		context.stroke();
	}
	if (width < 24)
		return;
	const room = width - 2 * padding;
	const text = fitter.fit(view.nameOf(box), room);
	if (!text)
		return;
	context.fillStyle = matches ? style.ink : style.soft;
	context.fillText(text, x + padding, y + height / 2 + 0.5);
	const note = view.noteOf(box);
	if (note && fitter.widthOf(text) + fitter.widthOf(note) + 3 * padding <= room)
		context.fillText(note, x + width - padding - fitter.widthOf(note), y + height / 2 + 0.5);
}

/** Lines across a box, for what colour alone should not say. */
function paintHatch(context, x, y, width, height, style) {
	context.save();
	context.beginPath();
	context.rect(x, y, width, height);
	context.clip();
	context.strokeStyle = style.paper;
	context.globalAlpha = 0.55;
	context.lineWidth = 1.5;
	context.beginPath();
	for (let at = x - height; at < x + width; at += 7) {
		context.moveTo(at, y + height);
		context.lineTo(at + height, y);
	}
	context.stroke();
	context.restore();
}

/** What is written into the box of a frame. */
export function boxName(frames, frame) {
	return showName(frames.name[frame]);
}
