// SPDX-License-Identifier: GPL-3.0-or-later
// The path of a request through a small service, N times (argv[1], 1000 without). Built with
// -DREGRESSION it allocates once more for each request, and one function has another name. The "example"
// of allocprof-check(1).
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#define OWN_FRAME __attribute__((noinline, noclone))

// The compiler must neither leave an allocation out nor make a jump of the last call.
static void *volatile kept;
#define STAY __asm__ volatile("" ::: "memory")

struct session {
	char buffer[64];
};

#ifdef REGRESSION
#define parse_request decode_request

static OWN_FRAME void log_request(int number)
{
	std::unique_ptr<char[]> line(new char[80]);

	kept = line.get();
	snprintf(line.get(), 80, "request %d", number);
	STAY;
}
#endif

static OWN_FRAME void parse_request()
{
	auto headers = std::make_unique<session>();

	kept = headers.get();
	STAY;
}

static OWN_FRAME void respond()
{
	std::vector<char> body(256);

	kept = body.data();
	STAY;
}

static OWN_FRAME void handle_request(int number)
{
	parse_request();
#ifdef REGRESSION
	log_request(number);
#else
	(void)number;
#endif
	respond();
	STAY;
}

static OWN_FRAME void open_sessions()
{
	for (int i = 0; i < 4; i++)
		kept = new session;
	STAY;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1000;

	open_sessions();
	for (int i = 0; i < n; i++)
		handle_request(i);
	return 0;
}
