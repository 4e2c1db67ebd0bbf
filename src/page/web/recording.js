// SPDX-License-Identifier: GPL-3.0-or-later
// A recording as src/page/page_recording.c writes it.

/** The arrays of a group of blocks: columns(data, "after", "rows") has { node, thread, ... }. */
function columns(data, prefix, group) {
	const found = {};
	const start = `${prefix}.${group}.`;

	for (const [name, values] of data)
		if (name.startsWith(start))
			found[name.slice(start.length)] = values;
	return found;
}

/**
 * meta has the texts; rows, lifetimes, sizes, ages, leaks and blocks the columns of these tables. Of a recording without --live
 * nEpochs is 0, and there are rows only. null if @data has no such recording.
 */
export function readRecording(data, prefix) {
	const meta = data.get(`${prefix}.meta`);

	if (!meta)
		return null;
	return {
		meta,
		endNs: meta.endNs,
		epochNs: meta.epochNs,
		nEpochs: meta.nEpochs,
		rows: columns(data, prefix, "rows"),
		lifetimes: columns(data, prefix, "lifetimes"),
		sizes: columns(data, prefix, "sizes"),
		ages: columns(data, prefix, "ages"),
		leaks: columns(data, prefix, "leaks"),
		blocks: columns(data, prefix, "blocks"),
	};
}

/** Whether the recording knows a cost of wholeRecording(). */
export function knowsCost(recording, cost) {
	return cost in recording.rows;
}

/**
 * Groups of threads that one can select by: { cgroup, process, pid, command, thread, threads: [[of the first recording], [of the second],
 * ...], processes: [a Set of each] }. Processes are told apart by number where there are few and one recording, else by command line where
 * there are few of these, else by name; by control group in one recording. What they are not told apart by, or is not known,
 * is null.
 */
export function groupThreads(recordings, mostProcesses) {
	const byNumber = recordings.length === 1 && recordings[0].meta.processes.length <= mostProcesses;
	const byCommand = byNumber ||
		new Set(recordings.flatMap(({ meta }) => meta.processes.map(([, name, command]) => `${name}\0${command}`))).size <= mostProcesses;
	const groups = new Map();
	// A program that runs once in each of two recordings is compared, with whichever arguments.
	const isAlone = (name) => recordings.length > 1 && recordings.every(({ meta }) =>
		new Set(meta.processes.filter((one) => one[1] === name).map(([,, line]) => line)).size <= 1);
	const names = new Set(recordings.flatMap(({ meta }) => meta.processes.map(([, name]) => name)));
	const alone = new Set([...names].filter(isAlone));

	recordings.forEach(({ meta }, side) => {
		meta.threads.forEach(([process, thread], i) => {
			const [number, name, line, placed] = meta.processes[process];
			const pid = byNumber ? number : null;
			const cgroup = recordings.length === 1 ? placed : null;
			const command = byCommand && !alone.has(name) ? line : null;
			const key = [cgroup, byNumber ? process : name, command, thread].join("\0");
			if (!groups.has(key))
				groups.set(key, {
					cgroup, process: name, pid, command, thread,
					threads: recordings.map(() => []), processes: recordings.map(() => new Set()),
				});
			const group = groups.get(key);
			group.threads[side].push(i);
			group.processes[side].add(process);
		});
	});
	return [...groups.values()];
}

/** How many processes groups of groupThreads() have, in the recording in which these are most. */
export function countProcesses(groups) {
	return Math.max(...groups[0].processes.map((_, side) => new Set(groups.flatMap(({ processes }) => [...processes[side]])).size));
}
