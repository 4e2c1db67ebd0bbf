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
 * Groups of threads that one can select by: { process, pid, thread, threads: [[of the first recording], [of the second], ...] }.
 * Processes are told apart by number where there are few and one recording, else by name.
 */
export function groupThreads(recordings, mostProcesses) {
	const byNumber = recordings.length === 1 && recordings[0].meta.processes.length <= mostProcesses;
	const groups = new Map();

	recordings.forEach(({ meta }, side) => {
		meta.threads.forEach(([process, thread], i) => {
			const [pid, name] = meta.processes[process];
			const key = byNumber ? `${process}\0${thread}` : `${name}\0${thread}`;
			if (!groups.has(key))
				groups.set(key, {
					process: name, pid: byNumber ? pid : null, thread,
					threads: recordings.map(() => []), processes: recordings.map(() => new Set()),
				});
			const group = groups.get(key);
			group.threads[side].push(i);
			group.processes[side].add(process);
		});
	});
	return [...groups.values()].map((group) => ({ ...group, nProcesses: Math.max(...group.processes.map(({ size }) => size)) }));
}
