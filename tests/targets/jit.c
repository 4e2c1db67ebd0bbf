// SPDX-License-Identifier: GPL-3.0-or-later
/* Makes code at run time that allocates, and writes down what it is called: /tmp/perf-PID.map. With
 * "late" that is written when the code has run, with "link" it is a link to the file, and with
 * "writable" anyone may write to it. With "name" the code has another name, the next argument. With "trampoline" the code keeps no frame pointer, as Python's trampolines
 * under `perf`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void allocate(void)
{
	void *volatile block = malloc(1234);

	free(block);
}

static void write_map(const char *how, const char *name, const void *code, size_t size)
{
	char path[64], link[64];
	FILE *map;

	snprintf(link, sizeof(link), "/tmp/perf-%d.map", getpid());
	snprintf(path, sizeof(path), "%s%s", link, strcmp(how, "link") ? "" : ".map");
	if (strcmp(path, link) && symlink(path, link))
		exit(1);
	umask(strcmp(how, "writable") ? 022 : 0);
	map = fopen(path, "w");
	if (!map)
		exit(1);
	fprintf(map, "%lx %zx an earlier life\n", (unsigned long)code, size);
	fprintf(map, "%lx %zx %s\n", (unsigned long)code, size, name);
	fclose(map);
}

int main(int argc, char *argv[])
{
	/* push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret. */
	static const unsigned char framed[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };
	/* sub $8,%rsp; call *%rdi; add $8,%rsp; ret. */
	static const unsigned char trampoline[] = { 0x48, 0x83, 0xec, 0x08, 0xff, 0xd7,
						    0x48, 0x83, 0xc4, 0x08, 0xc3 };
	const char *how = argc > 1 ? argv[1] : "", *name = argc > 2 ? argv[2] : "made at run time";
	int late = !strcmp(how, "late"), is_trampoline = !strcmp(how, "trampoline");
	const unsigned char *code = is_trampoline ? trampoline : framed;
	size_t size = is_trampoline ? sizeof(trampoline) : sizeof(framed);
	void *place = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(place, code, size);
	mprotect(place, 4096, PROT_READ | PROT_EXEC);
	if (!late)
		write_map(how, name, place, size);
	for (int i = 0; i < 100; i++)
		((void (*)(void (*)(void)))place)(allocate);
	if (late)
		write_map(how, name, place, size);
	return 0;
}
