// SPDX-License-Identifier: GPL-3.0-or-later
// The data blocks of a page, which src/page/page_data.c writes.

const blockDecoders = {
	u8: (buffer) => new Uint8Array(buffer),
	u16: (buffer) => new Uint16Array(buffer),
	u32: (buffer) => new Uint32Array(buffer),
	f64: (buffer) => new Float64Array(buffer),
	// Each string ends with "\0".
	strings: (buffer) => new TextDecoder().decode(buffer).split("\0").slice(0, -1),
	json: (buffer) => JSON.parse(new TextDecoder().decode(buffer)),
};

function bytesOfBase64(text) {
	if (Uint8Array.fromBase64)
		return Uint8Array.fromBase64(text);
	const binary = atob(text);
	const bytes = new Uint8Array(binary.length);
	for (let i = 0; i < bytes.length; i++)
		bytes[i] = binary.charCodeAt(i);
	return bytes;
}

/** What deflate made the base64 text of: an ArrayBuffer. */
export async function inflate(text) {
	const stream = new Blob([bytesOfBase64(text)]).stream();
	return new Response(stream.pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}

/** All blocks of the document, by name. They are removed from it, for they are large. */
export async function readData(root) {
	const data = new Map();
	for (const block of root.querySelectorAll("script[data-name]")) {
		const decode = blockDecoders[block.dataset.type];
		data.set(block.dataset.name, decode(await inflate(block.textContent)));
		block.remove();
	}
	return data;
}
