// SPDX-License-Identifier: GPL-3.0-or-later
// Times and the steps of axes.

const second = 1e9;
/** Above this times are "2:05", below "125.0 s". */
const leastClockNs = 120 * second;
const timeUnits = [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", second]];
const clockSteps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

function formatClock(ns, stepNs) {
	const digits = stepNs < second ? Math.min(3, Math.ceil(-Math.log10(stepNs / second))) : 0;
	const scale = 10 ** digits;
	const parts = Math.round((ns / second) * scale);
	const seconds = Math.floor(parts / scale);
	const two = (n) => String(n).padStart(2, "0");
	const fraction = digits ? `.${String(parts % scale).padStart(digits, "0")}` : "";
	const minutes = Math.floor(seconds / 60);
	const tail = `${two(seconds % 60)}${fraction}`;

	return minutes < 60 ? `${minutes}:${tail}` : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${tail}`;
}

/** A time of a recording that takes @endNs, with as many digits as tell times apart that differ by @stepNs. */
export function formatTime(ns, stepNs, endNs) {
	if (endNs >= leastClockNs)
		return formatClock(ns, stepNs);
	const [name, size] = timeUnits.findLast(([, unit]) => endNs >= unit) ?? timeUnits[0];
	const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(stepNs / size) - 1e-9)));

	return `${(ns / size).toFixed(digits)} ${name}`;
}

/** A length of time by itself, with three digits: "12.0 s", "850 ms"; number__time() prints the same. */
export function formatDuration(ns) {
	const longer = [["h", 3600 * second], ["min", 60 * second]];
	const [name, size] = longer.find(([, unit]) => ns >= 2 * unit) ?? timeUnits.findLast(([, unit]) => ns >= unit) ??
		timeUnits[0];
	const value = ns / size;
	const digits = value < 9.95 && size > 1 ? 2 : value < 99.5 && size > 1 ? 1 : 0;

	return `${value.toFixed(digits)} ${name}`;
}

/** The least step of 1, 2 or 5 times a power of @base that gives no more than @n ticks up to @end. */
function roundStep(end, n, base) {
	const least = end / Math.max(n, 1);
	const power = base ** Math.floor(Math.log(least) / Math.log(base));
	const factors = base === 10 ? [1, 2, 5, 10] : Array.from({ length: 11 }, (_, i) => 2 ** i);

	return power * (factors.find((factor) => factor * power >= least) ?? base);
}

function ticksOf(end, step) {
	return Array.from({ length: Math.floor(end / step + 1e-9) + 1 }, (_, i) => i * step);
}

/** About @n round times from 0 to @endNs, and their distance. */
export function timeTicks(endNs, n) {
	const seconds = endNs / second / Math.max(n, 1);
	const step = endNs < leastClockNs
		? roundStep(endNs, n, 10)
		: (clockSteps.find((one) => one >= seconds) ?? 86400 * Math.ceil(seconds / 86400)) * second;

	return { step, ticks: ticksOf(endNs, step) };
}

/** About @n round numbers from 0 to @most: of bytes by powers of 2. */
export function valueTicks(most, n, unit) {
	if (!most)
		return [0];
	return ticksOf(most, Math.max(1, roundStep(most, n, unit === "bytes" && most >= 1024 ? 1024 : 10)));
}
