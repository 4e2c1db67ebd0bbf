// SPDX-License-Identifier: GPL-3.0-or-later
// The theme is that of the system, until the reader chooses another.

import { element } from "./elements.js";

const themeKey = "allocprof.theme";

/** The theme that the reader chose; undefined where none was, or the browser keeps nothing for the page. */
function keptTheme() {
	try {
		return ["light", "dark"].find((theme) => theme === localStorage.getItem(themeKey));
	} catch {
		return undefined;
	}
}

function keepTheme(theme) {
	try {
		localStorage.setItem(themeKey, theme);
	} catch {
		// It is kept until the page is left.
	}
}

/** A button that changes between light and dark. */
export function themeButton() {
	const { dataset } = document.documentElement;
	const kept = keptTheme();
	if (kept)
		dataset.theme = kept;
	const isDark = () => (dataset.theme ? dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
	const button = element("button", { type: "button", className: "theme" });
	const label = () => {
		button.textContent = isDark() ? "Light" : "Dark";
		button.title = `Change to the ${isDark() ? "light" : "dark"} theme`;
	};
	button.addEventListener("click", () => {
		dataset.theme = isDark() ? "light" : "dark";
		keepTheme(dataset.theme);
		label();
	});
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
	label();
	return button;
}
