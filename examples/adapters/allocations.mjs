// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// For node's test runner, and any other: what a command allocates, as `allocprof stat --json` counts it.
//
//	import { allocations } from "./allocations.mjs";
//
//	test("a request", () => {
//		const { total_allocations } = allocations("./service", "1000");
//		assert.ok(total_allocations <= 2050, `${total_allocations} allocations`);
//	});
//
// It throws where the command fails, and where not all of its calls are known. Of node itself it is buffers and native code, which
// differ from run to run: this is for addons' and services' own programs. The key `regions` has what a program marks.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export function allocations(command, ...words) {
	const directory = mkdtempSync(join(tmpdir(), "allocations-"));

	try {
		const output = join(directory, "stat.json");
		const result = spawnSync(process.env.ALLOCPROF ?? "allocprof",
			["stat", "--engine=preload", "--live", "--json", "-o", output, "--", command, ...words],
			{ stdio: ["inherit", "inherit", "pipe"], encoding: "utf8" });

		if (result.error)
			throw result.error;
		if (result.status !== 0)
			throw new Error(`${command} ended with ${result.signal ?? result.status}: ${result.stderr}`);
		const report = JSON.parse(readFileSync(output, "utf8"));

		if (!report.complete)
			throw new Error(`not all calls of ${command} are known: see allocprof stat -- ${command}`);
		return report;
	} finally {
		rmSync(directory, { recursive: true });
	}
}
