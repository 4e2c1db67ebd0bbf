// SPDX-License-Identifier: GPL-3.0-or-later
// Finds frames by their function, file or module.

/** A RegExp for what is searched: plain text, in which case does not matter, or a regular expression. Throws a
 * SyntaxError whose message is for people. */
export function compileSearch(text, isRegExp) {
	const source = isRegExp ? text : text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
	try {
		return new RegExp(source, "iu");
	} catch (error) {
		throw new SyntaxError(`no regular expression: ${error.message.replace(/^.*: /, "")}`);
	}
}

/** Which frames match: a Uint8Array by frame, and how many there are. */
export function findFrames(frames, expression) {
	const found = new Uint8Array(frames.name.length);
	let count = 0;
	// Many frames have the same file and module.
	const known = new Map([["", false]]);
	const matches = (text) => {
		let match = known.get(text);
		if (match === undefined) {
			match = expression.test(text);
			known.set(text, match);
		}
		return match;
	};
	for (let i = 0; i < found.length; i++) {
		if (expression.test(frames.name[i]) || matches(frames.file[i]) || matches(frames.module[i])) {
			found[i] = 1;
			count++;
		}
	}
	return { found, count };
}

/** The sum of @own over the stacks with a frame that was found. */
export function sumThrough(trie, own, found) {
	const covered = new Uint8Array(trie.size);
	let sum = 0;
	for (let node = 1; node < trie.size; node++) {
		covered[node] = covered[trie.parent[node]] | found[trie.frame[node]];
		if (covered[node])
			sum += own[node];
	}
	return sum;
}
