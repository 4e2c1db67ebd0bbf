// SPDX-License-Identifier: GPL-3.0-or-later
// The theme is that of the system, until the reader chooses another.

import { element } from "./elements.js";

/** A button that changes between light and dark. */
export function themeButton() {
	const { dataset } = document.documentElement;
	const isDark = () => (dataset.theme ? dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
	const button = element("button", { type: "button", className: "theme" });
	const label = () => {
		button.textContent = isDark() ? "Light" : "Dark";
		button.title = `Change to the ${isDark() ? "light" : "dark"} theme`;
	};
	button.addEventListener("click", () => {
		dataset.theme = isDark() ? "light" : "dark";
		label();
	});
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
	label();
	return button;
}
