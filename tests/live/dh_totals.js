// SPDX-License-Identifier: GPL-3.0-or-later
// dh_totals.js DH_VIEW FILE: loads the script of DHAT's viewer without a page, gives it FILE and prints the
// totals of the tree that it builds, as JSON.
"use strict";
const fs = require("fs");
const vm = require("vm");

// Stands for whatever the script looks for in its page.
const anything = () => new Proxy(function () {}, {
	get: (target, key) => (key === Symbol.toPrimitive ? () => "" : anything()),
	apply: () => anything(),
	set: () => true,
});
const context = {
	document: anything(), window: anything(), console, Intl,
	text: fs.readFileSync(process.argv[3], "utf8"),
};
vm.createContext(context);
vm.runInContext(fs.readFileSync(process.argv[2], "utf8") + `
gData = JSON.parse(text);
gSelect = { childNodes: [{}], selectedIndex: 0 };
buildTree();
console.log(JSON.stringify({
	bytes: gRoot._totalBytes, allocations: gRoot._totalBlocks, peak_bytes: gRoot._atTGmaxBytes,
	peak: gRoot._atTGmaxBlocks, live_bytes: gRoot._atTEndBytes, live: gRoot._atTEndBlocks,
}));
`, context);
