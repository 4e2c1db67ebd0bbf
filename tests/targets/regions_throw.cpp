// SPDX-License-Identifier: GPL-3.0-or-later
/* As regions.c, in C++: scopes in constructors, in templates, and left by exceptions. */
#include "regions.h"

#include <csetjmp>
#include <memory>
#include <string>

struct Thrown {
	char bytes[100];
};

/* The exception is allocated by the runtime, where it is thrown, and freed where it is caught. */
NOINLINE static void throw_one()
{
	ADD(allocations, 1);
	throw Thrown();
}

template <int N> NOINLINE static void descend(int depth)
{
	SCOPE("parse", PARSE);
	void *block = take(N);

	give(block, N);
	if (!depth)
		throw_one();
	{
		SCOPE("emit", EMIT);
		descend<N>(depth - 1);
	}
	take(1);
}

struct Region {
	Region()
	{
		BEGIN("write", WRITE);
	}
	~Region()
	{
		END("write", WRITE);
	}
};

NOINLINE static void guarded(int depth)
{
	Region region;

	give(take(5), 5);
	if (!depth)
		throw_one();
	guarded(depth - 1);
	take(1);
}

static void throws()
{
	for (int i = 0; i < 5; i++) {
		try {
			descend<11>(i);
		} catch (const Thrown &) {
			give(take(400), 400);
		}
		try {
			guarded(i);
		} catch (const Thrown &) {
			give(take(500), 500);
		}
	}
}

/* A region around try and catch has the exception's whole life. */
static void catches()
{
	SCOPE("emit", EMIT);

	try {
		guarded(2);
	} catch (const Thrown &) {
	}
	ADD(deallocations, 1);
}

static void lambdas()
{
	auto work = [](int n) {
		SCOPE("parse", PARSE);
		give(take(n), n);
		return n;
	};

	give(take(work(1) + work(2)), 3);
}

int main(int argc, char **argv)
{
	std::string way = argc > 1 ? argv[1] : "";

	regions__prepare();
	/* Its buffers are made now. */
	try {
		throw_one();
	} catch (const Thrown &) {
	}
	if (way == "throw")
		throws();
	else if (way == "catch")
		catches();
	else if (way == "lambda")
		lambdas();
	give(take(2000), 2000);
	regions__print();
	return 0;
}
