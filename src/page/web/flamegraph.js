// SPDX-License-Identifier: GPL-3.0-or-later
// The page of `allocprof flamegraph -o FILE.html`.

import { readData } from "./data.js";
import { choiceList, element } from "./elements.js";
import { FlameGraph } from "./flame.js";
import { greatestModules } from "./flame_colour.js";
import { changeOf } from "./flame_details.js";
import { formatExactly } from "./format.js";
import { readGraph } from "./graphs.js";
import { minuteOf, showName } from "./names.js";
import { themeButton } from "./theme.js";
import { readTrie } from "./trie.js";

/** Lines below the title: what is compared, and what the recordings lack. */
function* linesOfHeader({ recording, base, options }) {
	if (options.isChart)
		yield element("p", { textContent: "Calls in the order in which they were made: what goes on with nothing between is one box." });
	if (base)
		yield element("p", { textContent: `compared with ${showName(base.title)}${base.start ? `, ${minuteOf(base.start)}` : ""}` });
	for (const { remarks } of base ? [recording, base] : [recording])
		for (const remark of remarks)
			yield element("p", { className: "remark", textContent: showName(remark) });
}

function showHeader(page, change) {
	const { recording } = page;
	const figure = element("span", { className: "figure", id: "figure" });
	const list = choiceList("Show", page.graphs.map(({ name, title }) => [name, title]), page.graph, change, { id: "cost" });
	const title = document.getElementById("title");
	title.textContent = showName(recording.title);
	list.append(figure);
	document.getElementById("header").append(themeButton(),
		...linesOfHeader(page), list);
	return figure;
}

async function showPage() {
	const data = await readData(document);
	const page = data.get("page");
	const trie = readTrie(data);
	const modules = greatestModules(trie, readGraph(data, trie, page.graphs[0].name));
	const graph = new FlameGraph(document.getElementById("graph"), trie, {
		...page.options, modules, firstNs: data.get("chart.first_ns"), lastNs: data.get("chart.last_ns"),
	});
	const show = (chosen) => {
		const { name, unit, beside } = page.graphs.find((one) => one.name === chosen);
		const other = page.graphs.find((one) => one.name === beside);
		graph.setValues(readGraph(data, trie, name), readGraph(data, trie, name, "base"), unit,
			other ? [{ unit: other.unit, own: readGraph(data, trie, beside) }] : []);
		figure.textContent = formatExactly(graph.whole, unit) +
			(graph.baseTotal ? `; ${changeOf(graph.whole, graph.baseTotal[0], unit)}` : "");
	};
	const figure = showHeader(page, show);
	show(page.graph);
	document.body.append(element("footer", { textContent: `allocprof ${page.version}${page.recording.start ? `, ${minuteOf(page.recording.start)}` : ""}` }));
	document.documentElement.dataset.ready = "";
}

showPage();
