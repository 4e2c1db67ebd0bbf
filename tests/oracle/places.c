// SPDX-License-Identifier: GPL-3.0-or-later
/* places [--debug-dir DIR] [--build-id HEX] [--debuginfod SECONDS] FILE: reads virtual addresses in hex from
 * stdin and prints for each "0xADDRESS" and then its lines, innermost first: "SYMBOL\tFILE:LINE", what
 * is unknown as "??". The last line is "# " and where the names came from. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "symbols.h"

static int print(void *context, const struct symbols_query *query, const struct symbols_line *lines,
		 size_t n_lines)
{
	printf("0x%llx\n", query->vaddr);
	for (size_t i = 0; i < n_lines; i++)
		printf("%s\t%s:%u\n", lines[i].symbol ? lines[i].symbol : "??",
		       lines[i].file ? lines[i].file : "??", lines[i].line);
	return 0;
}

int main(int argc, char *argv[])
{
	static const struct option long_options[] = {
		{ "debug-dir", required_argument, NULL, 'd' },
		{ "build-id", required_argument, NULL, 'b' },
		{ "debuginfod", required_argument, NULL, 'n' },
		{ NULL, 0, NULL, 0 },
	};
	struct symbols_options options = { 0 };
	struct symbols_query *queries = NULL;
	const char *dirs[16], *build_id = "";
	struct symbols *symbols;
	size_t n = 0, room = 0;
	__u64 vaddr;
	char *path;
	int option, err;

	options.debug_dirs = dirs;
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (option == 'd' && options.n_debug_dirs < 16)
			dirs[options.n_debug_dirs++] = optarg;
		else if (option == 'b')
			build_id = optarg;
		else if (option == 'n') {
			options.debuginfod = true;
			options.debuginfod_timeout_ms = 1000 * atoi(optarg);
		} else
			return 64;
	}
	if (optind + 1 != argc)
		return 64;
	while (scanf("%llx", &vaddr) == 1) {
		if (n == room) {
			room = room ? 2 * room : 1024;
			queries = reallocarray(queries, room, sizeof(*queries));
			if (!queries)
				return 1;
		}
		queries[n++] = (struct symbols_query){ 1, vaddr };
	}
	path = realpath(argv[optind], NULL);
	symbols = path ? symbols__new(&options) : NULL;
	if (!symbols || symbols__add_module(symbols, 1, -1, path, build_id))
		return 1;
	err = symbols__look_up(symbols, queries, n, print, NULL);
	printf("# %s\n", symbols__module_text(symbols, 1));
	symbols__free(symbols);
	free(queries);
	free(path);
	return err ? 1 : 0;
}
