// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * reachable CASE: has blocks to which pointers lead in one way each, and exits. What can be reached is what
 * valgrind's memcheck says of it; each case allocates in a function of its name.
 *
 * reachable serve: keeps a table of blocks that it fills with 0 and replaces all the time; at each line of input it loses 7 blocks of 1,000
 * bytes, each of which has the only pointer to one of 500, and prints a line.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <pthread.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <unordered_map>
#include <vector>

#define NOINLINE __attribute__((noinline))

struct node {
	node *next, *other;
	char data[40];
};

/* Where pointers are kept that lead to something. */
static void *volatile kept[8];
static void *volatile sink;

static node *make(node *next)
{
	node *made = static_cast<node *>(calloc(1, sizeof(node)));

	made->next = next;
	return made;
}

NOINLINE static void chain()
{
	node *first = nullptr;

	for (int i = 0; i < 10; i++)
		first = make(first);
	kept[0] = first;
}

NOINLINE static void lost()
{
	for (int i = 0; i < 7; i++)
		sink = malloc(100);
}

NOINLINE static void lost_chain()
{
	node *first = nullptr;

	for (int i = 0; i < 6; i++)
		first = make(first);
	sink = first;
}

NOINLINE static void cycle()
{
	node *last = make(nullptr), *first = make(make(last));

	last->next = first;
	sink = first;
}

/* Two lost blocks point to a third. */
NOINLINE static void shared()
{
	node *third = make(nullptr);

	sink = make(third);
	sink = make(third);
}

NOINLINE static void inside()
{
	kept[0] = static_cast<char *>(malloc(333)) + 17;
}

/* What is reached from a block that is possibly lost is so, too; unless another way leads there. */
NOINLINE static void behind_inside()
{
	node *end = make(nullptr), *both = make(nullptr);

	end->other = make(nullptr);
	kept[0] = make(end)->data + 8;
	kept[1] = make(both)->data;
	kept[2] = both;
}

NOINLINE static void past_the_end()
{
	kept[0] = static_cast<char *>(malloc(96)) + 96;
}

NOINLINE static void empty()
{
	kept[0] = malloc(0);
	sink = malloc(0);
}

/* The last bytes of a block are beside what malloc(3) has written of the next one. */
NOINLINE static void odd_sizes()
{
	void *freed[64];

	for (int i = 0; i < 64; i++) {
		sink = malloc(40);
		freed[i] = malloc(2000);
		sink = malloc(24);
	}
	for (int i = 0; i < 64; i++)
		free(freed[i]);
}

NOINLINE static void unaligned()
{
	static char bytes[32];
	void *block = malloc(50);

	memcpy(bytes + 3, &block, sizeof(block));
}

NOINLINE static void hidden()
{
	kept[0] = reinterpret_cast<void *>(~reinterpret_cast<std::uintptr_t>(malloc(60)));
}

/* Only memory that was freed points there. */
NOINLINE static void freed()
{
	node *block = make(make(nullptr));

	free(block);
}

struct with_destructor {
	long value;
	~with_destructor()
	{
		sink = this;
	}
};

NOINLINE static void arrays()
{
	kept[0] = new with_destructor[5];
	kept[1] = new std::string[3];
}

struct base_a {
	long a;
	virtual long get_a()
	{
		return a;
	}
	virtual ~base_a()
	{
	}
};
struct base_b {
	long b;
	virtual long get_b()
	{
		return b;
	}
	virtual ~base_b()
	{
	}
};
struct derived : base_a, base_b {
	long get_a() override
	{
		return 1;
	}
	long get_b() override
	{
		return 2;
	}
};

NOINLINE static void bases()
{
	kept[0] = static_cast<base_b *>(new derived);
	kept[1] = static_cast<base_a *>(new derived);
}

NOINLINE static void strings()
{
	static std::string small("small"), large(100, 'x');

	kept[0] = new std::string("in itself");
	kept[1] = new std::string(200, 'y');
	sink = new std::string(300, 'z');
}

static std::map<int, std::string> ordered;
static std::unordered_map<int, std::string> unordered;
static std::vector<std::unique_ptr<node>> vector;
static std::deque<int> deque;
static std::list<int> list;

NOINLINE static void containers()
{
	for (int i = 0; i < 50; i++) {
		ordered[i] = std::string(i, 'a');
		unordered[i] = std::string(i, 'b');
		vector.push_back(std::make_unique<node>());
		deque.push_back(i);
		list.push_back(i);
	}
	/* Their destructors would free all. */
	fflush(stdout);
	_exit(0);
}

static std::shared_ptr<node> shared_pointer;
static std::function<long()> small_function, large_function;

NOINLINE static void functions()
{
	long one = 1, two = 2, three = 3, four = 4;

	shared_pointer = std::make_shared<node>();
	small_function = [] { return 1L; };
	large_function = [one, two, three, four] { return one + two + three + four; };
	_exit(0);
}

static thread_local void *volatile of_thread;
static pthread_key_t key;
static pthread_barrier_t barrier;

/* Blocks to which a thread has pointers: in its variables, its specific data, and on its stack. */
NOINLINE static void *wait_with_blocks(void *)
{
	void *volatile on_stack = malloc(70);

	of_thread = malloc(71);
	pthread_setspecific(key, malloc(72));
	pthread_barrier_wait(&barrier);
	pause();
	return on_stack;
}

NOINLINE static void threads()
{
	pthread_t thread;

	of_thread = malloc(73);
	pthread_key_create(&key, nullptr);
	pthread_barrier_init(&barrier, nullptr, 2);
	pthread_create(&thread, nullptr, wait_with_blocks, nullptr);
	pthread_barrier_wait(&barrier);
	/* Now the thread sleeps, or will. */
	usleep(20000);
}

NOINLINE static void mapped()
{
	void **own = static_cast<void **>(
		mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	void **common = static_cast<void **>(
		mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));

	own[5000] = malloc(80);
	common[10] = malloc(81);
}

/* A block that malloc(3) maps by itself has pointers, most of it has no pages. */
NOINLINE static void large()
{
	void **block = static_cast<void **>(malloc(256 << 20));

	block[0] = malloc(90);
	block[(200 << 20) / sizeof(*block)] = malloc(91);
	kept[0] = block;
}

/* Pointers in memory between the allocator's that the program has taken by itself. */
NOINLINE static void taken()
{
	void **before = static_cast<void **>(sbrk(4096)), **after;

	sink = malloc(100);
	after = static_cast<void **>(sbrk(1 << 16));
	for (int i = 0; i < 5; i++) {
		before[100 + i] = malloc(92);
		after[1000 + i] = malloc(93);
	}
	/* Behind these the allocator's memory goes on. */
	for (int i = 0; i < 2000; i++)
		sink = malloc(94);
}

extern "C" void *__libc_malloc(size_t size);

/* Blocks that no function of the family has returned, in use and left. */
NOINLINE static void internal()
{
	void **table = static_cast<void **>(__libc_malloc(800));
	void **large = static_cast<void **>(__libc_malloc(100000));
	void *volatile freed[20];

	for (int i = 0; i < 5; i++) {
		table[3 * i] = malloc(96);
		large[1000 * i] = malloc(97);
	}
	/* What was freed has no pointers any more, wherever the allocator keeps it. */
	for (int i = 0; i < 20; i++) {
		void **block = static_cast<void **>(malloc(i % 2 ? 98 : 2000));

		block[9] = malloc(99);
		freed[i] = block;
	}
	for (void *volatile &block : freed)
		free(block);
	kept[0] = table;
	kept[1] = large;
	for (void *volatile &block : freed)
		block = nullptr;
}

NOINLINE static void grown()
{
	void *block = malloc(10);

	for (int i = 1; i < 20; i++)
		block = realloc(block, 100 * i);
	kept[0] = block;
	sink = realloc(malloc(10), 5000);
}

static const struct {
	const char *name;
	void (*run)();
} cases[] = {
	{ "chain", chain },
	{ "lost", lost },
	{ "lost_chain", lost_chain },
	{ "cycle", cycle },
	{ "shared", shared },
	{ "inside", inside },
	{ "behind_inside", behind_inside },
	{ "past_the_end", past_the_end },
	{ "empty", empty },
	{ "odd_sizes", odd_sizes },
	{ "unaligned", unaligned },
	{ "hidden", hidden },
	{ "freed", freed },
	{ "arrays", arrays },
	{ "bases", bases },
	{ "strings", strings },
	{ "containers", containers },
	{ "functions", functions },
	{ "threads", threads },
	{ "mapped", mapped },
	{ "large", large },
	{ "grown", grown },
	{ "taken", taken },
	{ "internal", internal },
};

NOINLINE static void lose()
{
	for (int i = 0; i < 7; i++) {
		void **block = static_cast<void **>(calloc(1, 1000));

		block[3] = calloc(1, 500);
		sink = block;
	}
}

NOINLINE static void serve()
{
	static void *table[1000];
	char line[16];

	for (unsigned i = 0; i < 3000; i++) {
		free(table[i % 1000]);
		table[i % 1000] = calloc(1, i % 300);
	}
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		for (unsigned i = 0; i < 3000; i++) {
			free(table[i % 1000]);
			table[i % 1000] = calloc(1, i % 300);
		}
		lose();
		puts("lost");
		fflush(stdout);
	}
}

/* Overwrites what the cases have left on the stack. */
NOINLINE static void clear_stack()
{
	volatile char bytes[32 << 10];

	memset(const_cast<char *>(bytes), 0, sizeof(bytes));
	sink = nullptr;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "serve"))
		serve();
	for (const auto &known : cases)
		if (argc > 1 && !strcmp(argv[1], known.name))
			known.run();
	clear_stack();
	return 0;
}
