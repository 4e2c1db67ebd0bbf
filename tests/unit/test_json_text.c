// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "json_text.h"

static void assert_text(json_object *value, bool indented, const char *expected)
{
	char *text;
	size_t size;

	assert_int_equal(json_text__make(value, indented, &text, &size), 0);
	assert_string_equal(text, expected);
	assert_int_equal(size, strlen(expected));
	free(text);
	json_object_put(value);
}

/* json-c 0.16 and 0.18 print these differently. */
static void test_empty(void **state)
{
	assert_text(json_object_new_array(), true, "[]");
	assert_text(json_object_new_array(), false, "[]");
	assert_text(json_object_new_object(), true, "{}");
	assert_text(json_object_new_object(), false, "{}");
	assert_text(NULL, true, "null");
}

/* Names may have characters that terminals act on. */
static void test_controls(void **state)
{
	assert_text(json_object_new_string("a\x1b[2J\xc2\x9b"
					   "2J\x7f\xc3\x9b"),
		    false, "\"a\\u001b[2J\\u009b2J\\u007f\xc3\x9b\"");
}

static json_object *nested(void)
{
	json_object *object = json_object_new_object(), *array = json_object_new_array();

	json_object_array_add(array, json_object_new_uint64(UINT64_MAX));
	json_object_array_add(array, json_object_new_int64(INT64_MIN));
	json_object_array_add(array, json_object_new_object());
	json_object_array_add(array, json_object_new_array());
	json_object_array_add(array, NULL);
	json_object_object_add(object, "list", array);
	json_object_object_add(object, "a \"key\"\n", json_object_new_string("a/b\x01\\"));
	json_object_object_add(object, "share", json_object_new_double_s(0.5, "0.500"));
	json_object_object_add(object, "whole", json_object_new_boolean(true));
	return object;
}

static void test_nested(void **state)
{
	assert_text(nested(), false,
		    "{\"list\":[18446744073709551615,-9223372036854775808,{},[],null],"
		    "\"a \\\"key\\\"\\n\":\"a/b\\u0001\\\\\",\"share\":0.500,\"whole\":true}");
	assert_text(nested(), true,
		    "{\n"
		    "  \"list\": [\n"
		    "    18446744073709551615,\n"
		    "    -9223372036854775808,\n"
		    "    {},\n"
		    "    [],\n"
		    "    null\n"
		    "  ],\n"
		    "  \"a \\\"key\\\"\\n\": \"a/b\\u0001\\\\\",\n"
		    "  \"share\": 0.500,\n"
		    "  \"whole\": true\n"
		    "}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_controls),
		cmocka_unit_test(test_nested),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
