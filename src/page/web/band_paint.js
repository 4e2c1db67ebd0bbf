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

/** The place for a label @width wide in the band between two lines, of their heights at @xs: where it is highest, or null. */
function labelPlace(xs, low, high, width) {
	let best = null;
	let until = 0;
	for (let from = 0; from < xs.length; from++) {
		until = Math.max(until, from);
		while (until < xs.length - 1 && xs[until] - xs[from] < width)
			until++;
		if (xs[until] - xs[from] < width)
			break;
		let top = -Infinity, bottom = Infinity;
		for (let i = from; i <= until; i++) {
			top = Math.max(top, high[i]);
			bottom = Math.min(bottom, low[i]);
		}
		if (bottom - top >= leastLabelHeight && (!best || bottom - top > best.height))
			best = { x: (xs[from] + xs[until]) / 2, y: (top + bottom) / 2, height: bottom - top };
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
	// Where a value lasts, its line has a corner more where the next one begins.
	const corners = isStepped ? Float64Array.from({ length: 2 * xs.length - 1 }, (_, i) => xs[(i + 1) >> 1]) : xs;
	const outline = () => Float64Array.from(corners, (_, i) => yOf(sums[isStepped ? i >> 1 : i]));
	const fill = (low, high, ink) => {
		context.beginPath();
		for (let i = 0; i < corners.length; i++)
			context.lineTo(corners[i], high[i]);
		for (let i = corners.length - 1; i >= 0; i--)
			context.lineTo(corners[i], low[i]);
		context.fillStyle = ink;
		context.fill();
	};
	/** The upper edge, where there is anything between both. */
	const trace = (bottom, top) => {
		context.beginPath();
		for (let i = 1; i < corners.length; i++) {
			if (top[i] < bottom[i] || top[i - 1] < bottom[i - 1]) {
				context.moveTo(corners[i - 1], top[i - 1]);
				context.lineTo(corners[i], top[i]);
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
		const place = isStepped ? null : labelPlace(xs, bottom, top, width);
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
