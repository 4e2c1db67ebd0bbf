// SPDX-License-Identifier: GPL-3.0-or-later
// Colours of a flame graph. Hues are those of Okabe and Ito, which all people can tell apart; beside colour there
// always are words.

import { baseName } from "./names.js";
import { kinds } from "./trie.js";

// Hue and chroma, of OKLCH.
const kindHues = {
	own: [75, 0.125], library: [240, 0.09], runtime: [265, 0.018], allocator: [350, 0.085],
	unknown: [110, 0.03], process: [100, 0.012], thread: [100, 0.02], missing: [30, 0.07],
};
// None is that of a kind that frames without a module have, such as the allocator's.
const moduleHues = [[75, 0.125], [240, 0.09], [165, 0.09], [45, 0.12], [105, 0.12], [300, 0.08], [200, 0.08]];
const otherHue = [265, 0.012];

/** A number from 0 to 1, always the same of a text. */
function hashOf(text) {
	let hash = 2166136261;
	for (let i = 0; i < text.length; i++)
		hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
	return ((hash ^ (hash >>> 15)) >>> 0) / 4294967296;
}

function colourOf([hue, chroma], dark, shade) {
	// Neighbours of one kind differ a little, so that boxes are seen as boxes.
	const lightness = (dark ? 0.48 : 0.82) + (shade - 0.5) * 0.05;
	return `oklch(${lightness.toFixed(3)} ${(dark ? chroma * 0.72 : chroma).toFixed(3)} ${hue})`;
}

/** Colours for what each frame is; @dark is the theme. */
export class Palette {
	constructor(frames, dark) {
		this.frames = frames;
		this.dark = dark;
		this.modules = new Map();
		this.cache = new Map();
	}

	/** The base names of the modules that have colours, the first of them the greatest. */
	setModules(names) {
		this.modules = new Map(names.slice(0, moduleHues.length).map((name, i) => [name, moduleHues[i]]));
		this.hasOthers = names.length > moduleHues.length;
		this.cache.clear();
	}

	ofKind(kind) {
		return colourOf(kindHues[kind], this.dark, 0.5);
	}

	ofModule(name) {
		return colourOf(this.modules.get(name) ?? otherHue, this.dark, 0.5);
	}

	/** The colour of a frame by "kind" or "module". */
	ofFrame(frame, by) {
		let colour = this.cache.get(frame);
		if (!colour || colour.by !== by) {
			const kind = kinds[this.frames.kind[frame]];
			const isCode = this.frames.module[frame] !== "";
			const hue = by === "module" && isCode
				? this.modules.get(baseName(this.frames.module[frame])) ?? otherHue
				: kindHues[kind];
			colour = { by, text: colourOf(hue, this.dark, hashOf(this.frames.name[frame])) };
			this.cache.set(frame, colour);
		}
		return colour.text;
	}

	/** From -1, which is gone, to 1, which is new: blue to orange, and grey where nothing changed. */
	ofChange(change) {
		const strength = Math.sqrt(Math.min(Math.abs(change), 1));
		const hue = change < 0 ? 245 : 55;
		const lightness = this.dark ? 0.36 + 0.14 * strength : 0.91 - 0.16 * strength;
		return `oklch(${lightness.toFixed(3)} ${(0.13 * strength).toFixed(3)} ${hue})`;
	}
}

/**
 * Base names of the modules of stacks with the numbers @values: first those with own code, and of these, as of the others, the
 * one through which most goes. They are of a recording, whatever is shown of it, so that a module keeps its colour.
 */
export function greatestModules(trie, values) {
	const { frames } = trie;
	const weight = trie.totals(values);
	const numbers = new Map();
	const moduleOf = Uint32Array.from(frames.module, (module) => {
		const name = baseName(module);
		if (!numbers.has(name))
			numbers.set(name, numbers.size);
		return numbers.get(name);
	});
	const sums = new Float64Array(numbers.size);
	const isOwn = new Uint8Array(numbers.size);
	const own = kinds.indexOf("own");
	for (let frame = 0; frame < moduleOf.length; frame++)
		isOwn[moduleOf[frame]] |= frames.kind[frame] === own ? 1 : 0;
	for (let node = 1; node < trie.size; node++) {
		const module = moduleOf[trie.frame[node]];
		const parent = trie.parent[node];
		// A call within the module is part of its caller's total already.
		if (!parent || moduleOf[trie.frame[parent]] !== module)
			sums[module] += weight[node];
	}
	const order = (a, b) => isOwn[numbers.get(b)] - isOwn[numbers.get(a)] || sums[numbers.get(b)] - sums[numbers.get(a)] ||
		(a < b ? -1 : 1);
	return [...numbers.keys()].filter((name) => name && sums[numbers.get(name)]).sort(order);
}
