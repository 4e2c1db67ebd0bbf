// SPDX-License-Identifier: GPL-3.0-or-later
// Elements of a document. Names from a recording become text, never markup.

/**
 * A new element: element("td.number", { title }, "text", child, ...). Properties are set as they are; "aria-*", "data-*",
 * "role", "scope" and "for" as attributes, and functions as listeners for what they are named after. null is left out.
 */
export function element(kind, properties = {}, ...children) {
	const [tag, ...classes] = kind.split(".");
	const made = document.createElement(tag);
	made.classList.add(...classes);
	for (const [name, value] of Object.entries(properties)) {
		if (typeof value === "function")
			made.addEventListener(name, value);
		else if (/^(aria-|data-|role$|scope$|for$)/.test(name))
			made.setAttribute(name, value);
		else
			made[name] = value;
	}
	made.append(...children.filter((child) => child !== null));
	return made;
}

export function byId(id) {
	return document.getElementById(id);
}

/** A button that is pressed or not. @change is called with the new state. */
export function toggleButton(label, isPressed, change, properties = {}) {
	const button = element("button", { type: "button", textContent: label, "aria-pressed": isPressed, ...properties });
	button.addEventListener("click", () => {
		const pressed = button.getAttribute("aria-pressed") !== "true";
		button.setAttribute("aria-pressed", pressed);
		change(pressed);
	});
	return button;
}

/** A list to choose from. @choices: [[value, title]]. */
export function choiceList(label, choices, value, change, properties = {}) {
	const list = element("select", properties,
		...choices.map(([name, title]) => element("option", { value: name, textContent: title })));
	list.value = value;
	list.addEventListener("change", () => change(list.value));
	return element("label.choice-list", {}, element("span", { textContent: label }), list);
}
