// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * C++ exceptions through frames that hold memory, out of constructors in new[], through qsort of
 * the C library, rethrown in another thread, and bad_alloc by a request that fails. Above start-up
 * of a C++ program the number of calls is the C++ library's business. Prints one line per kind,
 * exit status 6.
 */
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include "raw.h"

DEFINE_SINK;

namespace
{
int alive;

struct Counted {
	std::string text;

	explicit Counted(int n = alive) : text(100, 'x')
	{
		if (n == 5)
			throw std::runtime_error("constructor");
		alive++;
	}
	~Counted()
	{
		alive--;
	}
};

__attribute__((noinline)) unsigned long deep(int levels)
{
	std::vector<char> held(64 + levels);

	sink = held.data();
	if (!levels)
		throw std::runtime_error("deep");
	return deep(levels - 1) + held.size();
}

int compare(const void *, const void *)
{
	sink = malloc(10);
	free(sink);
	throw 42;
}

void frames()
{
	unsigned long caught = 0;

	for (int i = 0; i < 200; i++) {
		try {
			deep(i % 20);
		} catch (const std::exception &e) {
			caught += !strcmp(e.what(), "deep");
		}
	}
	say_number("frames: ", caught, " caught\n");
}

void constructors()
{
	unsigned long caught = 0;

	for (int i = 0; i < 50; i++) {
		try {
			delete[] new Counted[10];
		} catch (const std::exception &e) {
			caught += !strcmp(e.what(), "constructor") && !alive;
		}
	}
	say_number("constructors: ", caught, " caught\n");
}

void requests()
{
	unsigned long caught = 0;

	for (int i = 0; i < 20; i++) {
		volatile size_t size = size_t(1) << 60;

		try {
			sink = new char[size];
		} catch (const std::bad_alloc &) {
			caught++;
		}
		caught += !new (std::nothrow) char[size];
	}
	say_number("requests: ", caught, " caught\n");
}

void through_c()
{
	unsigned long caught = 0;
	int numbers[50] = {};

	for (int i = 0; i < 20; i++) {
		try {
			qsort(numbers, 50, sizeof(*numbers), compare);
		} catch (int n) {
			caught += n == 42;
		}
	}
	say_number("qsort: ", caught, " caught\n");
}

void across_threads()
{
	unsigned long caught = 0;

	for (int i = 0; i < 10; i++) {
		std::exception_ptr thrown;

		std::thread([&thrown] {
			try {
				deep(3);
			} catch (...) {
				thrown = std::current_exception();
			}
		}).join();
		try {
			std::rethrow_exception(thrown);
		} catch (const std::runtime_error &) {
			caught++;
		}
	}
	say_number("threads: ", caught, " caught\n");
}
} // namespace

int main()
{
	frames();
	constructors();
	requests();
	through_c();
	across_threads();
	return 6;
}
