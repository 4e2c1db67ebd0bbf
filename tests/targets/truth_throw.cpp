// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Allocates where exceptions are thrown, in destructors while the stack is unwound, in handlers and
 * through the C++ library's own frames. What it allocates is recorded by libtruth. Exit status 0.
 */
#include <algorithm>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include "raw.h"

DEFINE_SINK;

namespace
{
__attribute__((noinline)) void allocate(size_t size)
{
	sink = malloc(size);
	free(sink);
	__asm__ volatile("" : : : "memory");
}

struct Guard {
	size_t size;

	~Guard()
	{
		allocate(size);
	}
};

__attribute__((noinline)) int deep(int levels)
{
	Guard guard{ 5000u + levels };

	if (!levels)
		throw std::runtime_error(std::string(100, 'x'));
	return deep(levels - 1) + 1;
}

__attribute__((noinline)) int specified(int levels) noexcept
{
	try {
		return deep(levels);
	} catch (const std::logic_error &) {
		return 1;
	} catch (...) {
		allocate(5100);
		try {
			throw;
		} catch (const std::exception &e) {
			allocate(5101 + strlen(e.what()));
			return 2;
		}
	}
}

int compare(const void *a, const void *b)
{
	Guard guard{ 5200 };

	if (*static_cast<const int *>(a) == 7)
		throw 42;
	return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

void through_c()
{
	int numbers[] = { 5, 3, 7, 1 };

	try {
		qsort(numbers, 4, sizeof(*numbers), compare);
	} catch (int) {
		allocate(5201);
	}
}

struct Base {
	virtual ~Base() = default;
	virtual void call(size_t size) = 0;
};

struct Other {
	long padding = 1;
	virtual ~Other() = default;
	virtual void more(size_t size) = 0;
};

/* more() is called through a thunk. */
struct Derived : Base, Other {
	void call(size_t size) override
	{
		allocate(size);
		__asm__ volatile("" : : : "memory");
	}
	void more(size_t size) override
	{
		call(size + 1);
		__asm__ volatile("" : : : "memory");
	}
};

void objects(Base &base, Other &other)
{
	base.call(5300);
	other.more(5300);
}

void library()
{
	std::map<std::string, std::vector<int>> map;
	std::ostringstream stream;
	std::function<void(int)> function = [&](int n) {
		map[std::string(40, 'a' + n)].push_back(n);
	};
	std::vector<std::string> words;

	for (int i = 0; i < 20; i++)
		function(i);
	for (const auto &[key, value] : map) {
		stream << key << value.size() << '\n';
		words.push_back(key + "!");
	}
	std::stable_sort(words.begin(), words.end(), [](const auto &a, const auto &b) {
		allocate(5400);
		return b < a;
	});
	std::regex_search(stream.str(), std::regex("(a+)(b|c)*[d-f]{2,5}$"));
}

void in_thread()
{
	std::exception_ptr error;

	std::thread thread([&] {
		try {
			deep(3);
		} catch (...) {
			error = std::current_exception();
		}
	});
	thread.join();
	try {
		std::rethrow_exception(error);
	} catch (const std::exception &) {
		allocate(5500);
	}
}

Guard at_end{ 5600 };
} // namespace

int main()
{
	Derived derived;

	specified(0);
	specified(5);
	through_c();
	objects(derived, derived);
	library();
	in_thread();
	say("done\n");
	return 0;
}
