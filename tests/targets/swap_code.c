// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * swap_code A B [TIMES]: maps the code of the two libraries at one address in turn, a hundred times each or
 * TIMES, and lets it allocate: 11 bytes from A's from_a(), 22 from B's from_b(). Nothing is allocated in
 * between, and as many pages are mapped as before. Exit status 0.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "raw.h"

#define PLACE ((char *)0x123400000000)

typedef void *(*from_fn)(void *(*allocate)(size_t), size_t size);

DEFINE_SINK;

/* Where the function is in the file: its address in one whose code is mapped as the file is laid out. */
static size_t find_function(const char *path, const char *name)
{
	void *library = dlopen(path, RTLD_NOW);
	size_t offset;
	Dl_info info;
	void *call;

	if (!library)
		_exit(1);
	call = dlsym(library, name);
	if (!call || !dladdr(call, &info))
		_exit(1);
	offset = (char *)call - (char *)info.dli_fbase;
	dlclose(library);
	return offset;
}

static void *allocate(size_t size)
{
	sink = malloc(size);
	return sink;
}

static void call(int fd, size_t offset, size_t size, size_t bytes)
{
	if (mmap(PLACE, size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) != PLACE)
		_exit(1);
	free(((from_fn)(PLACE + offset))(allocate, bytes));
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "from_a", "from_b" };
	size_t offsets[2], size = 0;
	int fds[2];
	struct stat st;
	int times = argc == 4 ? atoi(argv[3]) : 100;

	if (argc < 3)
		return 1;
	for (int i = 0; i < 2; i++) {
		offsets[i] = find_function(argv[1 + i], names[i]);
		fds[i] = open(argv[1 + i], O_RDONLY);
		if (fds[i] < 0 || fstat(fds[i], &st))
			return 1;
		if (size < (size_t)st.st_size)
			size = st.st_size;
	}
	for (int i = 0; i < times; i++) {
		call(fds[0], offsets[0], size, 11);
		call(fds[1], offsets[1], size, 22);
	}
	say("done\n");
	return 0;
}
