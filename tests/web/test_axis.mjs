// SPDX-License-Identifier: GPL-3.0-or-later
// Times and steps of axes.
import assert from "node:assert";
import test from "node:test";

import { formatDuration, formatTime, timeTicks, valueTicks } from "../../src/page/web/axis.js";

const second = 1e9;

test("times tell epochs apart", () => {
	assert.strictEqual(formatTime(1234567890, 1e6, 10 * second), "1.235 s");
	assert.strictEqual(formatTime(0, second, 10 * second), "0 s");
	assert.strictEqual(formatTime(1.5e6, 32768, 20e6), "1.50 ms");
	assert.strictEqual(formatTime(16384, 16384, 900e3), "16 µs");
	assert.strictEqual(formatTime(125.25 * second, 0.25 * second, 300 * second), "2:05.3");
	assert.strictEqual(formatTime(3725 * second, 8 * second, 36000 * second), "1:02:05");
	assert.strictEqual(formatTime(59.9999 * second, 8 * second, 36000 * second), "1:00");
});

test("lengths of time", () => {
	assert.strictEqual(formatDuration(0), "0 ns");
	assert.strictEqual(formatDuration(850e6), "850 ms");
	assert.strictEqual(formatDuration(12 * second), "12.0 s");
	assert.strictEqual(formatDuration(90 * second), "90.0 s");
	assert.strictEqual(formatDuration(11520 * second), "3.20 h");
});

test("steps are round, and as many as there is room for", () => {
	for (const end of [1, 17, 999, 12345, 1.5e6, 3e9, 100e9, 119e9, 121e9, 7e12, 3e15]) {
		for (const n of [1, 4, 9]) {
			const { step, ticks } = timeTicks(end, n);
			assert.ok(ticks.length >= 1 && ticks.length <= n + 1, `${end} ${n}: ${ticks.length}`);
			assert.strictEqual(ticks[0], 0);
			assert.ok(ticks.at(-1) <= end * (1 + 1e-8) && ticks.at(-1) + step > end * (1 - 1e-8));
		}
	}
	assert.deepStrictEqual(timeTicks(10 * second, 5).ticks.map((tick) => tick / second), [0, 2, 4, 6, 8, 10]);
	assert.deepStrictEqual(timeTicks(600 * second, 5).ticks.map((tick) => tick / second), [0, 120, 240, 360, 480, 600]);
});

test("values by powers of two where they are bytes", () => {
	assert.deepStrictEqual(valueTicks(0, 4, "bytes"), [0]);
	assert.deepStrictEqual(valueTicks(3.5 * 2 ** 20, 4, "bytes"), [0, 1, 2, 3].map((n) => n * 2 ** 20));
	assert.deepStrictEqual(valueTicks(900 * 1024, 4, "bytes"), [0, 256, 512, 768].map((n) => n * 1024));
	assert.deepStrictEqual(valueTicks(100, 4, "blocks"), [0, 50, 100]);
	assert.deepStrictEqual(valueTicks(1, 4, "blocks"), [0, 1]);
});
