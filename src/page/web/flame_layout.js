// SPDX-License-Identifier: GPL-3.0-or-later
// Where the boxes of a flame graph are. Only what can be seen is looked at: a subtree that is narrower than a pixel is
// part of a box that stands for all such siblings.

/** Boxes narrower than this are drawn together. */
const leastWidth = 0.75;

/**
 * The boxes below @root, which is as wide as all, and the path to it. @weight has the width of each node. Each box is
 * { node, depth, x, width }; of siblings that are too narrow, { node: parent, depth, x, width, hidden: how many }.
 * @compare sorts the children of a node; null: they stay in their order, and those that are too narrow in their place.
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
		const depth = parent.depth + 1;
		const [wide, narrow] = compare ? sortedChildren(trie, weight, parent.node, scale, compare)
			: [trie.childrenOf(parent.node), []];
		let { x } = parent;
		let rest = 0, hidden = 0;
		const addRest = () => {
			if (rest * scale >= leastWidth)
				boxes.push({ node: parent.node, depth, x, width: rest * scale, hidden });
			x += rest * scale;
			rest = hidden = 0;
		};
		for (const nodes of [wide, narrow]) {
			for (const node of nodes) {
				if (weight[node] * scale < leastWidth) {
					rest += weight[node];
					hidden += weight[node] > 0;
					continue;
				}
				addRest();
				const box = { node, depth, x, width: weight[node] * scale };
				x += box.width;
				boxes.push(box);
				pending.push(box);
			}
		}
		addRest();
	}
	return boxes;
}

/** The children of a node that are to be drawn, in their order, and those that are too narrow. */
function sortedChildren(trie, weight, node, scale, compare) {
	const wide = [], narrow = [];
	for (const child of trie.childrenOf(node))
		(weight[child] * scale >= leastWidth ? wide : narrow).push(child);
	return [wide.sort(compare), narrow];
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
