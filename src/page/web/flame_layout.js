// SPDX-License-Identifier: GPL-3.0-or-later
// Where the boxes of a flame graph are. Only what can be seen is looked at: a subtree that is narrower than a pixel is
// part of a box that stands for all such siblings.

/** Boxes narrower than this are drawn together. */
const leastWidth = 0.75;

/**
 * The boxes below @root, which is as wide as all, and the path to it. @weight has the width of each node. Each box is
 * { node, depth, x, width }; of siblings that are too narrow, { node: parent, depth, x, width, hidden: how many }.
 * @compare sorts the children of a node.
 */
export function layOut(trie, weight, root, width, compare) {
	const boxes = trie.path(root).map((node, i) => ({ node, depth: i + 1, x: 0, width, above: node !== root }));
	boxes.unshift({ node: 0, depth: 0, x: 0, width, above: root !== 0 });
	if (!weight[root])
		return boxes;
	const scale = width / weight[root];
	const pending = [boxes[boxes.length - 1]];
	while (pending.length) {
		const parent = pending.pop();
		const wide = [];
		let narrow = 0, hidden = 0;
		for (const node of trie.childrenOf(parent.node)) {
			if (weight[node] * scale >= leastWidth) {
				wide.push(node);
			} else if (weight[node]) {
				narrow += weight[node];
				hidden++;
			}
		}
		wide.sort(compare);
		let x = parent.x;
		for (const node of wide) {
			const box = { node, depth: parent.depth + 1, x, width: weight[node] * scale };
			x += box.width;
			boxes.push(box);
			pending.push(box);
		}
		if (narrow * scale >= leastWidth)
			boxes.push({ node: parent.node, depth: parent.depth + 1, x, width: narrow * scale, hidden });
	}
	return boxes;
}

/** Boxes by row, each row from left to right. */
export function rowsOf(boxes) {
	const rows = [];
	for (const box of boxes)
		(rows[box.depth] ??= []).push(box);
	for (const row of rows)
		row.sort((a, b) => a.x - b.x);
	return rows;
}

/** The box of a row at @x, or undefined. */
export function boxAt(row, x) {
	let low = 0, high = row ? row.length : 0;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (row[middle].x + row[middle].width <= x)
			low = middle + 1;
		else
			high = middle;
	}
	const box = row?.[low];
	return box && box.x <= x ? box : undefined;
}
