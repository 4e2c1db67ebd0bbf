// SPDX-License-Identifier: GPL-3.0-or-later
// Names of functions and files, which may be any text.

// Control characters, and those that are invisible or change the direction of what follows.
const hidden = /[\p{Cc}\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff]/gu;

/** The name with such characters visible, as "\u{202e}". */
export function showName(name) {
	return name.replace(hidden, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

/** The part of a path after its last slash. */
export function baseName(path) {
	return path.slice(path.lastIndexOf("/") + 1);
}

/** What follows the name of the program, which may be a path, in a command line; all of it where something else is before it. */
export function argumentsOf(command, program) {
	const [word] = command.split(" ", 1);
	// The kernel keeps 15 bytes of the name.
	return baseName(word).slice(0, 15) === program ? command.slice(word.length + 1) : command;
}

/** The last part of a scoped name, if it has several: "b::c<d::e>" of "a::b::c<d::e>" is "c<d::e>". */
export function lastPart(name) {
	let depth = 0;
	for (let i = name.length - 1; i > 0; i--) {
		const c = name[i];
		if (c === ">" || c === ")" || c === "]")
			depth++;
		else if (c === "<" || c === "(" || c === "[")
			depth--;
		else if (c === ":" && name[i - 1] === ":" && depth <= 0)
			return name.slice(i + 1);
	}
	return name;
}

/** "2026-11-27 13:54 UTC" of a time as recordings have it, which a data file may have as any text. */
export function minuteOf(time) {
	return `${showName(time.slice(0, 10))} ${showName(time.slice(11, 16))} UTC`;
}
