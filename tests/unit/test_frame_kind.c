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
		{ "Ljava/util/HashMap;::resize", NULL, NULL, FRAME_KIND_RUNTIME },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
		if (frame_kind__of(frames[i].name, frames[i].module, frames[i].source) !=
		    frames[i].kind)
			fail_msg("%s of %s is taken for %s", frames[i].name,
				 frames[i].module ? frames[i].module : "no file",
				 frame_kind__title(frame_kind__of(frames[i].name, frames[i].module,
								  frames[i].source)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
