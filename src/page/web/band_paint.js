// SPDX-License-Identifier: GPL-3.0-or-later
// Bands of a time line on a canvas: solid what stays, hatched what is freed later, above each other.

/** Of Okabe and Ito, and a dark red, as src/output/graph_ink.c has them. */
const bandColours = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#882255"];
const colourOfOthers = "#999999";
const hatchSize = 7;
const leastLabelHeight = 15;
const labelMargin = 10;

/** A colour for each band, which a key that had one keeps. @known: a Map by key, to be given again. */
export function colourBands(bands, known) {
	const taken = new Set();
	const fresh = new Set(known.values());
	const later = [];

	for (const { key } of bands)
		if (key !== undefined && known.has(key) && !taken.has(known.get(key)))
			taken.add(known.get(key));
		else if (key !== undefined)
			later.push(key);
	// Colours that no band has had come first.
	const free = bandColours.filter((colour) => !taken.has(colour)).sort((a, b) => fresh.has(a) - fresh.has(b));
	for (const key of later)
		known.set(key, free.shift() ?? colourOfOthers);
	return bands.map(({ key }) => (key === undefined ? colourOfOthers : known.get(key)));
}

/** Oblique lines of a colour. */
export function hatchOf(context, colour) {
	const tile = document.createElement("canvas");
	tile.width = tile.height = hatchSize;
	const ink = tile.getContext("2d");
	ink.fillStyle = colour;
	ink.globalAlpha = 0.26;
	ink.fillRect(0, 0, hatchSize, hatchSize);
	ink.globalAlpha = 0.9;
	ink.strokeStyle = colour;
	ink.lineWidth = 1.1;
	ink.beginPath();
	for (const shift of [-hatchSize, 0, hatchSize]) {
		ink.moveTo(shift, hatchSize);
		ink.lineTo(shift + hatchSize, 0);
	}
	ink.stroke();
	return context.createPattern(tile, "repeat");
}

/** The place for a label @width wide in the band between two lines of [x, y]: where it is highest, or null. */
function labelPlace(low, high, width) {
	let best = null;
	let until = 0;
	for (let from = 0; from < low.length; from++) {
		until = Math.max(until, from);
		while (until < low.length - 1 && low[until][0] - low[from][0] < width)
			until++;
		if (low[until][0] - low[from][0] < width)
			break;
		let top = -Infinity, bottom = Infinity;
		for (let i = from; i <= until; i++) {
			top = Math.max(top, high[i][1]);
			bottom = Math.min(bottom, low[i][1]);
		}
		if (bottom - top >= leastLabelHeight && (!best || bottom - top > best.height))
			best = { x: (low[from][0] + low[until][0]) / 2, y: (top + bottom) / 2, height: bottom - top };
	}
	return best;
}

/** The indices of bands from the bottom up: what mostly stays is below all that comes and goes, for its growth to be seen. */
function orderOf(bands) {
	const sum = (values) => values.reduce((all, value) => all + value, 0);
	const stays = bands.map((band) => sum(band.stays) > sum(band.freed));
	return [...bands.keys()].sort((a, b) => stays[b] - stays[a] || a - b);
}

/**
 * Paints @bands, of makeBands(), from the bottom up. @xs: where each of their values is; a value lasts until the next one where
 * @isStepped. @yOf: of a sum of values. @colours and @names are by band, @style has ink, paper and hatches, a Map by colour.
 */
export function paintBands(context, bands, { xs, isStepped, yOf, colours, names, style }) {
	const lines = [];
	const sums = new Float64Array(xs.length);
	const outline = () => {
		const line = [];
		for (let i = 0; i < xs.length; i++) {
			if (isStepped && i)
				line.push([xs[i], line.at(-1)[1]]);
			line.push([xs[i], yOf(sums[i])]);
		}
		return line;
	};
	const fill = (low, high, ink) => {
		context.beginPath();
		for (const [x, y] of high)
			context.lineTo(x, y);
		for (let i = low.length - 1; i >= 0; i--)
			context.lineTo(...low[i]);
		context.fillStyle = ink;
		context.fill();
	};
	/** The upper edge, where there is anything between both. */
	const trace = (bottom, top) => {
		context.beginPath();
		for (let i = 1; i < top.length; i++) {
			if (top[i][1] < bottom[i][1] || top[i - 1][1] < bottom[i - 1][1]) {
				context.moveTo(...top[i - 1]);
				context.lineTo(...top[i]);
			}
		}
	};
	let low = outline();
	for (const i of orderOf(bands)) {
		const band = bands[i];
		const bottom = low;
		for (const [values, ink] of [[band.stays, colours[i]], [band.freed, style.hatches.get(colours[i])]]) {
			values.forEach((value, at) => {
				sums[at] += value;
			});
			const high = outline();
			fill(low, high, ink);
			low = high;
		}
		trace(bottom, low);
		context.strokeStyle = colours[i];
		context.lineWidth = 1;
		context.stroke();
		lines[i] = [bottom, low];
	}
	context.textAlign = "center";
	context.textBaseline = "middle";
	context.lineJoin = "round";
	lines.forEach(([bottom, top], i) => {
		const text = names[i];
		const width = context.measureText(text).width + labelMargin;
		const place = isStepped ? null : labelPlace(bottom, top, width);
		if (!place)
			return;
		context.strokeStyle = style.paper;
		context.lineWidth = 4;
		context.strokeText(text, place.x, place.y);
		context.fillStyle = style.ink;
		context.fillText(text, place.x, place.y);
	});
	context.textBaseline = "alphabetic";
	context.lineWidth = 1;
}
