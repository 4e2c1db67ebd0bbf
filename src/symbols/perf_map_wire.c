// SPDX-License-Identifier: GPL-3.0-or-later
/* A worker reads a perf map: the questions and answers. */
#include <errno.h>
#include <stdlib.h>

#include "cleanup.h"
#include "perf_map.h"
#include "worker.h"

void perf_map__put_queries(struct wire_writer *writer, const struct perf_map_query *queries,
			   size_t n)
{
	wire__put_u64(writer, n);
	for (size_t i = 0; i < n; i++)
		wire__put_u64(writer, queries[i].address);
}

int perf_map__get_names(struct wire_reader *reader, struct perf_map_query *queries, size_t n)
{
	for (size_t i = 0; i < n; i++)
		queries[i].name = wire__get_string(reader, PERF_MAP_NAME_BYTES + 1);
	return wire__is_read(reader) ? 0 : -EPROTO;
}

int perf_map__serve(struct worker_call *call)
{
	size_t n = wire__get_count(&call->request, sizeof(__u64));
	_cleanup_(free_ptr) struct perf_map_query *queries = calloc(n + 1, sizeof(*queries));
	struct perf_map *map;
	int err;

	if (!queries)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		queries[i].address = wire__get_u64(&call->request);
	if (call->n_fds != 1 || !wire__is_read(&call->request))
		return -EINVAL;
	err = perf_map__read(call->fds[0], &map);
	if (err)
		return err;
	err = perf_map__look_up(map, queries, n);
	for (size_t i = 0; i < n && !err; i++)
		wire__put_string(&call->reply, queries[i].name);
	perf_map__free(map);
	return err;
}
