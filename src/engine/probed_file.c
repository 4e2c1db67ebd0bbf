// SPDX-License-Identifier: GPL-3.0-or-later
#include "probed_file.h"

#include "allocator.h"
#include "definitions.h"

bool probed_file__function(const struct probed_file *file, size_t index,
			   struct probed_function *out)
{
	const struct site *site;

	if (!file->allocator || index >= file->allocator->n_sites)
		return false;
	site = &file->allocator->sites[index];
	*out = (struct probed_function){
		.function = site->function,
		.aliases = site->aliases,
		.n_aliases = site->n_aliases,
		.entry_offset = site->entry_offset,
		.distance_bytes = site->probe_offset - site->entry_offset,
		.instruction = site->instruction,
		.slow_reason = site->emulated ? NULL : site->reason,
		.is_slow_with_live = site->lowered_bytes && site->returns == RETURNS_PROBED &&
				     !(AP_FREEING >> site->function & 1),
	};
	return true;
}

const char *probed_file__unknown(const struct probed_file *file, size_t index, bool *ends)
{
	if (!file->allocator || index >= file->allocator->n_unknown)
		return NULL;
	*ends = file->allocator->unknown[index].ends;
	return file->allocator->unknown[index].name;
}

bool probed_file__has(const struct probed_file *file, const struct definition *definition,
		      size_t function)
{
	const struct interface_function *wanted = &definition->functions[function].interface;

	for (size_t i = 0; file->allocator && i < file->allocator->n_sites; i++)
		if (file->allocator->sites[i].interface == wanted)
			return true;
	return false;
}
