// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Allocations whose stacks have the names that C++ makes: of templates, lambdas, constructors that
 * are inlined, operators, thunks, exceptions, containers that grow. Above start-up malloc is called
 * once for each of these sizes, through these functions of the program, outermost first, of
 * templates without their arguments; what is in brackets is inlined. The C++ library's functions
 * stand between and behind them.
 *
 *   1001 bytes: main;plain_new
 *   1002 bytes: main;array_new
 *   1104 bytes: main;inlined_constructor;[shapes::Buffer::Buffer;shapes::obtain]
 *   1208 bytes: main;nested_templates;[shapes::Pair::Pair;shapes::Buffer::Buffer;shapes::obtain]
 *   1301 bytes: main;functor;shapes::(anonymous namespace)::run;[functor::{lambda}::operator()]
 *   1401 bytes: main;virtual_call;shapes::Circle::draw
 *   1402 bytes: main;virtual_call;non-virtual thunk to shapes::Circle::erase
 *   1501 bytes: main;static_method;shapes::Registry::add;shapes::Registry::add
 *   1601 bytes: main;operators;shapes::operator+;[shapes::obtain]
 *   1602 bytes: main;operators;shapes::Text::operator()
 *   1603 bytes: main;operators;shapes::Text::operator char*
 *   1701 bytes: main;recursion;shapes::descend;shapes::descend;shapes::descend
 *   1801 bytes: shapes::(anonymous namespace)::Early::Early
 *   1901 bytes: main;destructor;shapes::Late::~Late
 *   2001 to 2999 bytes: main;exception;shapes::raise
 *   3001 bytes: main;string_growth
 *   3200 bytes: main;vector_growth
 *   4096 bytes: main;map_growth
 *   4128 bytes: main;hash_growth
 *
 * Prints nothing, exit status 0.
 */
#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#define NOINLINE __attribute__((noinline))
#define INLINE	 inline __attribute__((always_inline))
/* A call that is the last thing done would leave no frame. */
#define STAY __asm__ volatile("" : : : "memory")

void *volatile sink;
void show(void *object);
void take(void *block);

namespace shapes
{
INLINE void *obtain(size_t size)
{
	return ::operator new(size);
}

template <typename T, size_t N> struct Buffer {
	T *data;

	INLINE explicit Buffer(size_t extra) : data(static_cast<T *>(obtain(N * sizeof(T) + extra)))
	{
	}
};

template <typename A, typename B> struct Pair {
	A first;
	B second;

	INLINE explicit Pair(size_t size) : first{}, second(size)
	{
	}
};

namespace
{
template <typename F> NOINLINE void run(F &&function, int n)
{
	function(n);
	STAY;
}

struct Early {
	void *held;

	NOINLINE explicit Early(size_t size) : held(::operator new(size))
	{
		STAY;
	}
} early(1801);
} // namespace

struct Shape {
	virtual ~Shape() = default;
	virtual void draw() = 0;
};

struct Solid {
	long weight = 1;

	virtual ~Solid() = default;
	virtual void erase() = 0;
};

/* erase() is called through a thunk. */
struct Circle : Shape, Solid {
	NOINLINE void draw() override
	{
		take(::operator new(1401));
		STAY;
	}
	void erase() override
	{
		take(::operator new(1402));
		STAY;
	}
};

struct Registry {
	/* Of one name. */
	NOINLINE static void add(const char *name)
	{
		take(::operator new(1500 + *name));
		STAY;
	}
	NOINLINE static void add(int n)
	{
		const char name[] = { static_cast<char>(n), '\0' };

		add(name);
		STAY;
	}
};

struct Text {
	int n;

	NOINLINE void operator()(size_t size) const
	{
		take(::operator new(size));
		STAY;
	}
	NOINLINE operator char *() const
	{
		char *made = static_cast<char *>(::operator new(1600 + n));

		STAY;
		return made;
	}
};

NOINLINE Text operator+(const Text &a, const Text &b)
{
	take(obtain(1600 + a.n - b.n));
	STAY;
	return a;
}

template <int N> NOINLINE void descend(size_t size)
{
	if constexpr (N)
		descend<N - 1>(size);
	else
		take(::operator new(size));
	STAY;
}

struct Late {
	NOINLINE ~Late()
	{
		take(::operator new(1901));
		STAY;
	}
};

struct Trouble {
	char text[2001];
};

NOINLINE void raise(int n)
{
	STAY;
	throw Trouble{ { static_cast<char>(n) } };
}
} // namespace shapes

/* What the compiler cannot follow it does not leave out. */
NOINLINE void show(void *object)
{
	sink = object;
	STAY;
}

NOINLINE void take(void *block)
{
	show(block);
	::operator delete(block);
	STAY;
}

NOINLINE void plain_new()
{
	take(::operator new(1001));
	STAY;
}

NOINLINE void array_new()
{
	take(new char[1002]);
	STAY;
}

NOINLINE void inlined_constructor(size_t extra)
{
	shapes::Buffer<char, 1100> buffer(extra);

	take(buffer.data);
	STAY;
}

NOINLINE void nested_templates(size_t extra)
{
	shapes::Pair<std::pair<int, long>, shapes::Buffer<std::array<double, 3>, 50>> pair(extra);

	take(pair.second.data);
	STAY;
}

NOINLINE void functor(int n)
{
	std::function<void(int)> function = [n](int more) {
		take(::operator new(1300 + n * more));
		STAY;
	};

	shapes::run(function, 1);
	STAY;
}

NOINLINE void virtual_call(shapes::Shape &shape, shapes::Solid &solid)
{
	shape.draw();
	solid.erase();
	STAY;
}

NOINLINE void static_method()
{
	shapes::Registry::add(1);
	STAY;
}

NOINLINE void operators()
{
	shapes::Text text = shapes::Text{ 3 } + shapes::Text{ 2 };

	text(1602);
	take(text);
	STAY;
}

NOINLINE void recursion()
{
	shapes::descend<2>(1701);
	STAY;
}

NOINLINE void destructor()
{
	shapes::Late late;

	STAY;
}

NOINLINE void exception()
{
	try {
		shapes::raise(1);
	} catch (const shapes::Trouble &trouble) {
		STAY;
	}
}

NOINLINE void string_growth()
{
	std::string text(3000, 'x');

	show(&text);
	STAY;
}

NOINLINE void vector_growth()
{
	std::vector<std::array<char, 1600>> list;

	list.emplace_back();
	list.emplace_back();
	show(&list);
	STAY;
}

/* With the links a node has 4096 bytes. */
NOINLINE void map_growth()
{
	std::map<int, std::array<char, 4096 - 4 * sizeof(void *) - sizeof(int)>> map;

	map[1][0] = 'x';
	show(&map);
	STAY;
}

NOINLINE void hash_growth()
{
	std::unordered_map<int, std::array<char, 4128 - sizeof(void *) - sizeof(int)>> map;

	map[1][0] = 'x';
	show(&map);
	STAY;
}

int main()
{
	shapes::Circle circle;

	take(shapes::early.held);
	plain_new();
	array_new();
	inlined_constructor(4);
	nested_templates(8);
	functor(1);
	virtual_call(circle, circle);
	static_method();
	operators();
	recursion();
	destructor();
	exception();
	string_growth();
	vector_growth();
	map_growth();
	hash_growth();
	return 0;
}
