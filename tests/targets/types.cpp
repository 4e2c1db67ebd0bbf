// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Allocates objects of many types, and prints for each type how often it called operator new or malloc for one.
 * "" is what no function of a library stands for.
 */
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

static const char *volatile now = "";
static std::pair<const char *, int> counts[64];

static void count()
{
	for (auto &one : counts) {
		if (!one.first)
			one.first = now;
		if (one.first == now) {
			one.second++;
			return;
		}
	}
}

__attribute__((noinline)) void *operator new(size_t size)
{
	count();
	return malloc(size);
}

__attribute__((noinline)) void operator delete(void *block) noexcept
{
	free(block);
}

__attribute__((noinline)) void operator delete(void *block, size_t) noexcept
{
	free(block);
}

namespace app
{
struct Key {
	int number;
	bool operator<(const Key &other) const
	{
		return number < other.number;
	}
};
struct Session {
	char bytes[40];
};
/* Copies of it allocate by themselves. */
struct Packet {
	char *bytes = static_cast<char *>(operator new(24));
	Packet() = default;
	Packet(const Packet &)
	{
		bytes[0] = 1;
	}
	~Packet()
	{
		operator delete(bytes);
	}
};
template <typename T> struct Pool {
	std::vector<T> items;
	void add(const T &item)
	{
		items.push_back(item);
	}
};
} // namespace app

using app::Key;
using app::Session;

/* What the compiler must not drop. */
template <typename T> __attribute__((noinline)) void keep(T &object)
{
	asm volatile("" : : "r"(&object) : "memory");
}

#define OF(type) now = type;

__attribute__((noinline)) static void fill_containers()
{
	OF("std::vector<double>")
	std::vector<double> doubles;
	for (int i = 0; i < 1000; i++)
		doubles.push_back(i);
	OF("std::vector<int>")
	std::vector<int> ints(100);
	OF("std::vector<bool>")
	std::vector<bool> bits(1000);
	OF("std::map<app::Key, app::Session>")
	std::map<Key, Session> sessions;
	for (int i = 0; i < 100; i++)
		sessions[Key{ i }] = Session{};
	OF("std::multimap<int, int>")
	std::multimap<int, int> many;
	for (int i = 0; i < 30; i++)
		many.emplace(i / 2, i);
	OF("std::set<long>")
	std::set<long> longs;
	for (int i = 0; i < 20; i++)
		longs.insert(i);
	OF("std::unordered_map<int, app::Session>")
	std::unordered_map<int, Session> table;
	for (int i = 0; i < 100; i++)
		table[i] = Session{};
	OF("std::list<app::Key>")
	std::list<Key> keys;
	for (int i = 0; i < 10; i++)
		keys.push_back(Key{ i });
	OF("std::deque<app::Key>")
	std::deque<Key> queue;
	for (int i = 0; i < 1000; i++)
		queue.push_back(Key{ i });
	OF("std::vector<app::Session>")
	app::Pool<Session> pool;
	for (int i = 0; i < 50; i++)
		pool.add(Session{});
	OF("")
	keep(doubles);
	keep(ints);
	keep(bits);
	keep(sessions);
	keep(many);
	keep(longs);
	keep(table);
	keep(keys);
	keep(queue);
	keep(pool);
}

__attribute__((noinline)) static void fill_nested()
{
	OF("std::string")
	std::string text(100, 'x'), other(200, 'y');
	OF("std::vector<std::string>")
	std::vector<std::string> texts;
	texts.reserve(4);
	OF("std::string")
	texts.push_back(text);
	texts.emplace_back(300, 'z');
	OF("std::map<std::string, int>")
	std::map<std::string, int> numbers;
	numbers.emplace(std::move(other), 1);
	OF("std::map<int, std::vector<int>>")
	std::map<int, std::vector<int>> lists;
	lists[3];
	OF("std::vector<int>")
	lists[3].push_back(1);
	OF("")
	keep(texts);
	keep(numbers);
	keep(lists);
}

__attribute__((noinline)) static void own_objects()
{
	OF("std::shared_ptr<app::Session>")
	auto shared = std::make_shared<Session>();
	OF("app::Session")
	auto unique = std::make_unique<Session>();
	OF("std::function<int()>")
	Session big = {};
	std::function<int()> function = [big] { return int(big.bytes[0]); };
	OF("")
	auto *plain = new Session;
	app::Packet packet, copy = packet;
	keep(shared);
	keep(unique);
	keep(function);
	keep(plain);
	keep(copy);
	delete plain;
}

int main()
{
	fill_containers();
	fill_nested();
	own_objects();
	for (auto &one : counts)
		if (one.first)
			printf("%d\t%s\n", one.second, one.first);
}
