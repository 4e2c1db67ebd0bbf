// SPDX-License-Identifier: GPL-3.0-or-later
// Numbers and names as people read them; numbers as src/output/number.c prints them.

const byteUnits = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/** "1,234,567". toLocaleString() loads what it needs of a locale at the first call, which takes long. */
export function formatCount(value) {
	return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** "1.23 MiB" */
export function formatBytes(value) {
	let scaled = Math.abs(value);
	let unit = 0;
	// 1023.5 would be rounded to 1024.
	for (; scaled >= 1023.5 && unit + 1 < byteUnits.length; unit++)
		scaled /= 1024;
	if (!unit)
		return `${formatCount(value)} B`;
	const digits = scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0;
	return `${value < 0 ? "-" : ""}${scaled.toFixed(digits)} ${byteUnits[unit]}`;
}

/** @unit is "bytes" or anything else, which is counted. */
export function formatValue(value, unit) {
	return unit === "bytes" ? formatBytes(value) : formatCount(value);
}

/** "1,234 blocks", "1 block" */
export function formatCounted(value, unit) {
	return `${formatCount(value)} ${Math.round(value) === 1 ? unit.replace(/s$/, "") : unit}`;
}

/** To the last byte: "1.23 MiB (1,289,748 bytes)", "1,234 blocks". */
export function formatExactly(value, unit) {
	const count = formatCounted(value, unit);
	return unit === "bytes" && Math.abs(value) >= 1023.5 ? `${formatBytes(value)} (${count})` : count;
}

/** With its sign: "+1.23 MiB". */
export function formatChange(value, unit) {
	return (value > 0 ? "+" : "") + formatValue(value, unit);
}

/** "61.2 %"; "-" if @whole is 0. 0.0 % and 100.0 % are exactly that. */
export function formatShare(part, whole) {
	if (!whole)
		return "-";
	const percent = (100 * part) / whole;
	if (part && percent < 0.05)
		return "<0.1 %";
	return part < whole && percent >= 99.95 ? "99.9 %" : `${percent.toFixed(1)} %`;
}
