// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include "array.h"
#include "frame_kind.h"

static void test_kinds(void **state)
{
	static const struct {
		const char *name, *module, *source;
		enum frame_kind kind;
	} frames[] = {
		{ "main", "/usr/bin/jq", NULL, FRAME_KIND_OWN },
		{ "parse", "/home/me/libparser.so", NULL, FRAME_KIND_OWN },
		{ "inflate", "/usr/lib/libz.so.1", NULL, FRAME_KIND_LIBRARY },
		{ "std::string::assign", "/usr/bin/app", NULL, FRAME_KIND_RUNTIME },
		{ "je_malloc", "/usr/lib/libjemalloc.so.2", NULL, FRAME_KIND_ALLOCATOR },
		{ "[unknown]", NULL, NULL, FRAME_KIND_UNKNOWN },
		/* Rust's own library, linked into the program. */
		{ "<str>::to_lowercase", "/home/me/app", NULL, FRAME_KIND_RUNTIME },
		{ "<[u8]>::to_vec_in", "/home/me/app", NULL, FRAME_KIND_RUNTIME },
		{ "<[u8] as app::Digest>::sum", "/home/me/app", NULL, FRAME_KIND_OWN },
		{ "<u8 as alloc::vec::spec_from_elem::SpecFromElem>::from_elem", "/home/me/app",
		  NULL, FRAME_KIND_RUNTIME },
		{ "<u8 as app::Digest>::sum", "/home/me/app", NULL, FRAME_KIND_OWN },
		{ "<app::Page as core::clone::Clone>::clone", "/home/me/app", NULL,
		  FRAME_KIND_OWN },
		{ "<&dyn core::ops::Fn()>::call", "/home/me/app",
		  "/rustc/0123abc/library/core/src/ops/function.rs", FRAME_KIND_RUNTIME },
		{ "grow", "/home/me/app", "/usr/include/c++/12/bits/vector.tcc",
		  FRAME_KIND_RUNTIME },
		{ "grow", "/home/me/app", "/home/me/src/vector.cc", FRAME_KIND_OWN },
		/* Interpreters, and programs whose names begin as theirs do. */
		{ "PyObject_Call", "/usr/bin/python3.12", NULL, FRAME_KIND_RUNTIME },
		{ "main", "/usr/bin/php-fpm8.2", NULL, FRAME_KIND_RUNTIME },
		{ "v8::Run", "/usr/bin/node", NULL, FRAME_KIND_RUNTIME },
		{ "collect", "/usr/bin/node_exporter", NULL, FRAME_KIND_OWN },
		{ "main", "/usr/bin/rubygem-mirror", NULL, FRAME_KIND_OWN },
		{ "main", "/usr/bin/javaldx", NULL, FRAME_KIND_OWN },
		/* Code that was made at run time. */
		{ "py::load:/home/me/app.py", NULL, NULL, FRAME_KIND_OWN },
		{ "py::dumps:/usr/lib/python3.12/json/__init__.py", NULL, NULL,
		  FRAME_KIND_LIBRARY },
		{ "py::get:/srv/venv/lib/site-packages/requests/api.py", NULL, NULL,
		  FRAME_KIND_LIBRARY },
		{ "py::_find:<frozen importlib._bootstrap>", NULL, NULL, FRAME_KIND_RUNTIME },
		{ "JS:serve /home/me/app.js:12:3", NULL, NULL, FRAME_KIND_OWN },
		{ "JS:emit node:events:466:44", NULL, NULL, FRAME_KIND_RUNTIME },
		{ "Builtin:ArrayPush", NULL, NULL, FRAME_KIND_RUNTIME },
		{ "", NULL, NULL, FRAME_KIND_UNKNOWN },
		/* The source tells where the name does not. */
		{ "serve", NULL, "/home/me/app.js", FRAME_KIND_OWN },
		{ "emit", NULL, "node:events", FRAME_KIND_RUNTIME },
		{ "dumps", NULL, "/usr/lib/python3.12/json/__init__.py", FRAME_KIND_LIBRARY },
		{ "get", NULL, "/srv/venv/lib/python3.12/site-packages/requests/api.py",
		  FRAME_KIND_LIBRARY },
		{ "JS:parse /srv/app/node_modules/yaml/index.js:1:2", NULL, NULL,
		  FRAME_KIND_LIBRARY },
		/* Packages: compiled modules, and sources that are linked into the program. */
		{ "array_new", "/srv/venv/lib/python3.12/site-packages/numpy/core/_umath.so", NULL,
		  FRAME_KIND_LIBRARY },
		{ "parse", "/usr/lib/python3/dist-packages/lxml/etree.cpython-312.so", NULL,
		  FRAME_KIND_LIBRARY },
		{ "open", "/srv/app/node_modules/sqlite3/build/Release/sqlite3.node", NULL,
		  FRAME_KIND_LIBRARY },
		{ "serde_json::from_str", "/home/me/app",
		  "/home/me/.cargo/registry/src/index.crates.io-6f17d22bba15001f/serde_json-1.0.1/src/de.rs",
		  FRAME_KIND_LIBRARY },
		{ "helper::run", "/home/me/app",
		  "/home/me/.cargo/git/checkouts/helper-0123456789abcdef/0123456/src/lib.rs",
		  FRAME_KIND_LIBRARY },
		{ "app::main", "/home/me/app", "/home/me/cargo/src/main.rs", FRAME_KIND_OWN },
		{ "parse", "/home/me/site-packages-of-mine/app", "/home/me/my_node_modules/a.c",
		  FRAME_KIND_OWN },
		{ "Ljava/util/HashMap;::resize", NULL, NULL, FRAME_KIND_RUNTIME },
		/* As the interpreter has them. */
		{ "Interpreter.run", "[Python]", "/home/me/app.py", FRAME_KIND_OWN },
		{ "JSONDecoder.decode", "[Python]", "/usr/lib/python3.11/json/decoder.py",
		  FRAME_KIND_LIBRARY },
		{ "get", "[Python]", "/home/me/v/lib/python3.13/site-packages/requests/api.py",
		  FRAME_KIND_LIBRARY },
		{ "_find_and_load", "[Python]", "<frozen importlib._bootstrap>",
		  FRAME_KIND_RUNTIME },
		{ "[Python frames missing]", "[Python]", NULL, FRAME_KIND_MISSING },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		const struct frame_code code = {
			.name = frames[i].name,
			.module = frames[i].module,
			.source = frames[i].source,
		};
		enum frame_kind kind = frame_kind__of(&code);

		if (kind != frames[i].kind)
			fail_msg("%s of %s (%s) is taken for %s", code.name,
				 code.module ? code.module : "no file",
				 code.source ? code.source : "no source", frame_kind__title(kind));
	}
}

/* What the list of wrappers has is not own code, whatever else is known of it. */
static void test_internal_functions(void **state)
{
	struct frame_code code = { .name = "grow", .module = "/home/me/app", .is_internal = true };

	assert_int_equal(frame_kind__of(&code), FRAME_KIND_RUNTIME);
	code.module = "/usr/lib/libz.so.1";
	assert_int_equal(frame_kind__of(&code), FRAME_KIND_LIBRARY);
	code.module = "/usr/lib/libjemalloc.so.2";
	assert_int_equal(frame_kind__of(&code), FRAME_KIND_ALLOCATOR);
}

static void test_ranks(void **state)
{
	assert_true(frame_kind__rank(FRAME_KIND_OWN, true) <
		    frame_kind__rank(FRAME_KIND_LIBRARY, true));
	assert_true(frame_kind__rank(FRAME_KIND_LIBRARY, true) <
		    frame_kind__rank(FRAME_KIND_OWN, false));
	assert_true(frame_kind__rank(FRAME_KIND_OWN, false) <
		    frame_kind__rank(FRAME_KIND_RUNTIME, true));
	assert_int_equal(frame_kind__rank(FRAME_KIND_LIBRARY, false),
			 frame_kind__rank(FRAME_KIND_UNKNOWN, true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_internal_functions),
		cmocka_unit_test(test_ranks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
