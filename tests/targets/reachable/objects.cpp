// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * objects CASE: has objects of C++ to which pointers lead in one way each, and exits. What can be reached is what valgrind's
 * memcheck says of it; each case allocates in a function of its name. C++20.
 */
#include <any>
#include <coroutine>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <memory_resource>
#include <new>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <unordered_set>
#include <variant>
#include <vector>

#define NOINLINE __attribute__((noinline))

/* Where pointers are kept that lead to something. */
static void *volatile kept[8];
static void *volatile sink;

NOINLINE static long *number(long value)
{
	return new long(value);
}

/* A function object of 16 bytes at the most is within std::function, a larger one in a block of its own. */
NOINLINE static void functions()
{
	long *in_small = number(1), *in_large = number(2), *in_lost = number(3);
	std::string text(50, 't');

	kept[0] = new std::function<long()>([in_small] { return *in_small; });
	kept[1] = new std::function<long()>([in_large, text] { return *in_large + text.size(); });
	sink = new std::function<long()>([in_lost, text] { return *in_lost + text.size(); });
}

NOINLINE static void anys()
{
	kept[0] = new std::any(number(1));
	kept[1] = new std::any(std::string(50, 'a'));
	kept[2] = new std::any(std::make_shared<std::string>(60, 'b'));
	sink = new std::any(std::vector<long *>{ number(2), number(3) });
}

struct top {
	long of_top = 1;
	virtual long get()
	{
		return of_top;
	}
	virtual ~top()
	{
	}
};
struct left : virtual top {
	long of_left = 2;
	virtual long get_left()
	{
		return of_left;
	}
};
struct right : virtual top {
	long of_right = 3;
	virtual long get_right()
	{
		return of_right;
	}
};
struct bottom : left, right {
	long *of_bottom = number(4);
	long get() override
	{
		return *of_bottom;
	}
};
struct plain {
	long of_plain = 5;
};
/* Nothing of these is virtual but the base. */
struct with_plain : virtual plain {
	long of_with_plain = 6;
};

NOINLINE static void virtual_bases()
{
	kept[0] = static_cast<top *>(new bottom);
	kept[1] = static_cast<right *>(new bottom);
	kept[2] = static_cast<left *>(new bottom);
	kept[3] = static_cast<plain *>(new with_plain);
	kept[4] = static_cast<top *>(new bottom[3]);
	sink = static_cast<top *>(new bottom);
}

/* Functions that nothing implements: the table of such a class is all null pointers or __cxa_pure_virtual. */
struct pure {
	virtual long first() = 0;
	virtual long second() = 0;
	virtual ~pure() = default;
};
struct other_pure {
	virtual long third() = 0;
	virtual long fourth() = 0;
};
struct implements : pure, other_pure {
	long *own = number(7);
	long first() override
	{
		return 1;
	}
	long second() override
	{
		return 2;
	}
	long third() override
	{
		return 3;
	}
	long fourth() override
	{
		return 4;
	}
};

NOINLINE static void pure_bases()
{
	kept[0] = static_cast<other_pure *>(new implements);
	kept[1] = static_cast<pure *>(new implements);
	sink = static_cast<other_pure *>(new implements);
}

static std::vector<bool> bits;

NOINLINE static void bools()
{
	bits.assign(1000, true);
	kept[0] = new std::vector<bool>(2000, true);
	sink = new std::vector<bool>(3000, true);
	fflush(stdout);
	_exit(0);
}

struct alignas(64) aligned {
	long *pointer = number(8);
};
struct alignas(64) destroyed {
	long *pointer = number(9);
	~destroyed()
	{
		sink = pointer;
	}
};

/* Before the elements of an array that is aligned to more than a number are as many bytes as it is aligned to. */
NOINLINE static void aligned_new()
{
	kept[0] = new aligned;
	kept[1] = new aligned[3];
	kept[2] = new destroyed[3];
	kept[3] = operator new(8192, std::align_val_t(4096));
	kept[4] = aligned_alloc(256, 512);
	sink = new aligned;
	sink = new destroyed[2];
}

template <int SIZE> struct small {
	char bytes[SIZE];
	~small()
	{
		sink = bytes;
	}
};

/* The number of elements is all that is before them, and they have less than a word. */
NOINLINE static void small_arrays()
{
	kept[0] = new small<1>[1];
	kept[1] = new small<1>[3];
	kept[2] = new small<2>[2];
	kept[3] = new small<3>[5];
	kept[4] = new small<4>[1];
	kept[5] = new small<9>[7];
	kept[6] = new small<9>[0];
	sink = new small<3>[4];
}

/* As std::string is with the ABI before C++11: length, capacity, number of users, characters. */
NOINLINE static void old_strings()
{
	for (std::uintptr_t capacity = 1; capacity < 8; capacity++) {
		std::uintptr_t *block = static_cast<std::uintptr_t *>(calloc(1, 24 + capacity + 1));

		block[0] = capacity - 1;
		block[1] = capacity;
		kept[capacity] = block + 3;
	}
}

/* A block may begin with the number of bytes behind it. */
NOINLINE static void sized()
{
	static const std::uintptr_t sizes[] = { 1, 7, 8, 9, 4000 };

	for (int i = 0; i < 5; i++) {
		std::uintptr_t *block = static_cast<std::uintptr_t *>(calloc(1, 8 + sizes[i]));

		block[0] = sizes[i];
		kept[i] = block + 1;
	}
	kept[5] = static_cast<std::uintptr_t *>(calloc(1, 80)) + 1;
}

struct task {
	struct promise_type {
		task get_return_object()
		{
			return { std::coroutine_handle<promise_type>::from_promise(*this) };
		}
		std::suspend_never initial_suspend()
		{
			return {};
		}
		std::suspend_always final_suspend() noexcept
		{
			return {};
		}
		void return_void()
		{
		}
		void unhandled_exception()
		{
		}
	};
	std::coroutine_handle<promise_type> handle;
};

static task wait_with(long *value, std::size_t size)
{
	std::string text(size, 'c');

	co_await std::suspend_always();
	*value += text.size();
	delete value;
}

NOINLINE static void coroutines()
{
	task finished = wait_with(number(10), 100);

	kept[0] = wait_with(number(11), 200).handle.address();
	sink = wait_with(number(12), 300).handle.address();
	finished.handle.resume();
	finished.handle.destroy();
}

struct peer {
	std::shared_ptr<peer> other;
	std::string text = std::string(70, 'p');
};

static std::weak_ptr<peer> weak;

/* A cycle of shared pointers; and an object of which only a weak one is left, so that its memory stays. */
NOINLINE static void shared_pointers()
{
	auto one = std::make_shared<peer>(), two = std::make_shared<peer>();
	std::shared_ptr<long> separate(number(13));

	one->other = two;
	two->other = one;
	weak = std::make_shared<peer>();
	kept[0] = new std::shared_ptr<peer>(std::make_shared<peer>());
	kept[1] = new std::shared_ptr<long>(separate);
	sink = new std::shared_ptr<long>(number(14));
	fflush(stdout);
}

struct hook {
	hook *next, *previous;
};
struct item {
	long value;
	std::string *text;
	hook in_list;
};
static hook head = { &head, &head };

/* What is in a list by a member has pointers to its inside alone. */
NOINLINE static void intrusive()
{
	for (int i = 0; i < 5; i++) {
		item *made = new item{ i, new std::string(80, 'i'), { &head, head.previous } };

		head.previous->next = &made->in_list;
		head.previous = &made->in_list;
	}
}

/* The lowest bit of a pointer says something else. */
NOINLINE static void tagged()
{
	kept[0] = reinterpret_cast<void *>(reinterpret_cast<std::uintptr_t>(number(15)) | 1);
}

static std::variant<long, std::string, std::unique_ptr<long>> of_variant;
static std::optional<std::string> of_optional;
static std::exception_ptr of_exception;
static std::multiset<std::string> of_set;
static std::unordered_set<std::string> of_unordered_set;
static std::map<std::string, std::vector<std::string>> of_map;

NOINLINE static void containers()
{
	of_variant = std::unique_ptr<long>(number(16));
	of_optional = std::string(90, 'o');
	try {
		throw std::runtime_error(std::string(91, 'e'));
	} catch (...) {
		of_exception = std::current_exception();
	}
	for (int i = 0; i < 40; i++) {
		of_set.insert(std::string(i % 30, 's'));
		of_unordered_set.insert(std::string(i, 'u'));
		of_map[std::string(i / 4, 'm')].push_back(std::string(i, 'v'));
	}
	fflush(stdout);
	_exit(0);
}

NOINLINE static void resources()
{
	auto *resource = new std::pmr::monotonic_buffer_resource(2000);
	auto *lost = new std::pmr::monotonic_buffer_resource(3000);

	kept[0] = new std::pmr::vector<long *>(10, number(17), resource);
	sink = lost->allocate(1000);
}

static std::promise<std::string> promise;

/* The future is kept by a thread that waits for it. */
NOINLINE static void futures()
{
	kept[0] = new std::future<std::string>(promise.get_future());
	sink = new std::promise<long>;
	kept[1] = new std::thread([] { static_cast<std::future<std::string> *>(kept[0])->wait(); });
	usleep(20000);
	fflush(stdout);
	_exit(0);
}

static const struct {
	const char *name;
	void (*run)();
} cases[] = {
	{ "functions", functions },
	{ "anys", anys },
	{ "virtual_bases", virtual_bases },
	{ "pure_bases", pure_bases },
	{ "bools", bools },
	{ "aligned_new", aligned_new },
	{ "small_arrays", small_arrays },
	{ "old_strings", old_strings },
	{ "sized", sized },
	{ "coroutines", coroutines },
	{ "shared_pointers", shared_pointers },
	{ "intrusive", intrusive },
	{ "tagged", tagged },
	{ "containers", containers },
	{ "resources", resources },
	{ "futures", futures },
};

/* Overwrites what the cases have left on the stack. */
NOINLINE static void clear_stack()
{
	volatile char bytes[32 << 10];

	memset(const_cast<char *>(bytes), 0, sizeof(bytes));
	sink = nullptr;
}

int main(int argc, char **argv)
{
	for (const auto &known : cases)
		if (argc > 1 && !strcmp(argv[1], known.name))
			known.run();
	clear_stack();
	return 0;
}
