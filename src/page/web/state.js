// SPDX-License-Identifier: GPL-3.0-or-later
// What a page shows, as the fragment of its address: so that Back undoes, and a link shows the same.

const switches = ["regexp", "folded", "reversed", "merged"];
const texts = ["card", "unit", "panel", "find", "layout", "order", "colour", "chart", "bands"];
const numbers = ["at", "zoom", "function", "file", "process"];

/** The fragment for a state, without "#". What is not in it is as the page begins. */
export function writeState(state) {
	const words = new URLSearchParams();
	for (const name of numbers)
		if (Number.isInteger(state[name]))
			words.set(name, state[name]);
	if (state.span)
		words.set("span", state.span.join("-"));
	for (const name of texts)
		if (state[name])
			words.set(name, state[name]);
	for (const name of switches)
		if (state[name])
			words.set(name, "1");
	if (state.threads)
		words.set("threads", state.threads.join("."));
	return words.toString();
}

function numberOf(text) {
	return /^\d{1,10}$/.test(text ?? "") ? Number(text) : undefined;
}

/** The state of a fragment, which may be anybody's: numbers are numbers, but may be of nothing. */
export function readState(fragment) {
	const words = new URLSearchParams(fragment);
	const state = {};
	for (const name of numbers)
		state[name] = numberOf(words.get(name));
	const span = words.get("span")?.split("-").map(numberOf);
	state.span = span?.length === 2 && span[0] < span[1] ? span : undefined;
	for (const name of texts)
		state[name] = words.get(name) ?? undefined;
	for (const name of switches)
		state[name] = words.get(name) === "1";
	state.threads = words.get("threads")?.split(".").map(numberOf).filter((number) => number !== undefined);
	return state;
}
