// SPDX-License-Identifier: GPL-3.0-or-later
/* Tables of default template arguments and typedefs that the simple form of a C++ name omits or
 * uses. */
#include <string.h>

#include "array.h"
#include "demangle_simple.h"

#define MAX_DEFAULTS 11

/* Default values of a template's last parameters, from index @first on. "$1" stands for the first
 * argument, '|' separates alternatives, '*' matches the rest. */
struct defaults {
	const char *name;
	size_t first;
	const char *values[MAX_DEFAULTS];
};

#define ALLOCATOR	"std::allocator<$1>"
#define PAIR_ALLOCATOR	"std::allocator<std::pair<$1 const, $2>>"
#define TRAITS		"std::char_traits<$1>"
#define LESS		"std::less<$1>"
#define HASH		"std::hash<$1>"
#define EQUAL		"std::equal_to<$1>"
#define LOCK_POLICY	"(__gnu_cxx::_Lock_policy)2"
#define STREAM_ITERATOR "std::istreambuf_iterator<$1>"
#define STREAM_OUTPUT	"std::ostreambuf_iterator<$1>"

/* libstdc++'s hash tables always spell out all arguments. */
#define EXTRACT		    "std::__detail::_Select1st|std::__detail::_Identity"
#define RANGES		    "std::__detail::_Mod_range_hashing", "std::__detail::_Default_ranged_hash"
#define TRAITS_OF_HASHTABLE "std::__detail::_Hashtable_traits<*"
#define HASHTABLE                                                                                  \
	"std::allocator<$2>", EXTRACT, EQUAL, HASH, RANGES, "std::__detail::_Prime_rehash_policy", \
		TRAITS_OF_HASHTABLE

static const struct defaults all_defaults[] = {
	{ "std::vector", 1, { ALLOCATOR } },
	{ "std::deque", 1, { ALLOCATOR } },
	{ "std::list", 1, { ALLOCATOR } },
	{ "std::forward_list", 1, { ALLOCATOR } },
	{ "std::set", 1, { LESS, ALLOCATOR } },
	{ "std::multiset", 1, { LESS, ALLOCATOR } },
	{ "std::map", 2, { LESS, PAIR_ALLOCATOR } },
	{ "std::multimap", 2, { LESS, PAIR_ALLOCATOR } },
	{ "std::unordered_set", 1, { HASH, EQUAL, ALLOCATOR } },
	{ "std::unordered_multiset", 1, { HASH, EQUAL, ALLOCATOR } },
	{ "std::unordered_map", 2, { HASH, EQUAL, PAIR_ALLOCATOR } },
	{ "std::unordered_multimap", 2, { HASH, EQUAL, PAIR_ALLOCATOR } },
	{ "std::stack", 1, { "std::deque<$1>" } },
	{ "std::queue", 1, { "std::deque<$1>" } },
	{ "std::priority_queue", 1, { "std::vector<$1>", LESS } },
	{ "std::unique_ptr", 1, { "std::default_delete<$1>" } },
	{ "std::basic_string", 1, { TRAITS, ALLOCATOR } },
	{ "std::basic_string_view", 1, { TRAITS } },
	{ "std::basic_ios", 1, { TRAITS } },
	{ "std::basic_streambuf", 1, { TRAITS } },
	{ "std::basic_istream", 1, { TRAITS } },
	{ "std::basic_ostream", 1, { TRAITS } },
	{ "std::basic_iostream", 1, { TRAITS } },
	{ "std::basic_filebuf", 1, { TRAITS } },
	{ "std::basic_ifstream", 1, { TRAITS } },
	{ "std::basic_ofstream", 1, { TRAITS } },
	{ "std::basic_fstream", 1, { TRAITS } },
	{ "std::basic_stringbuf", 1, { TRAITS, ALLOCATOR } },
	{ "std::basic_istringstream", 1, { TRAITS, ALLOCATOR } },
	{ "std::basic_ostringstream", 1, { TRAITS, ALLOCATOR } },
	{ "std::basic_stringstream", 1, { TRAITS, ALLOCATOR } },
	{ "std::basic_syncbuf", 1, { TRAITS, ALLOCATOR } },
	{ "std::basic_osyncstream", 1, { TRAITS, ALLOCATOR } },
	{ "std::istreambuf_iterator", 1, { TRAITS } },
	{ "std::ostreambuf_iterator", 1, { TRAITS } },
	{ "std::num_get", 1, { STREAM_ITERATOR } },
	{ "std::num_put", 1, { STREAM_OUTPUT } },
	{ "std::money_get", 1, { STREAM_ITERATOR } },
	{ "std::money_put", 1, { STREAM_OUTPUT } },
	{ "std::time_get", 1, { STREAM_ITERATOR } },
	{ "std::time_get_byname", 1, { STREAM_ITERATOR } },
	{ "std::time_put", 1, { STREAM_OUTPUT } },
	{ "std::time_put_byname", 1, { STREAM_OUTPUT } },
	{ "std::basic_regex", 1, { "std::regex_traits<$1>" } },
	{ "std::match_results", 1, { "std::allocator<std::sub_match<$1>>" } },

	/* libstdc++'s internal templates for these. */
	{ "std::_Vector_base", 1, { ALLOCATOR } },
	{ "std::_Deque_base", 1, { ALLOCATOR } },
	{ "std::_List_base", 1, { ALLOCATOR } },
	{ "std::_Fwd_list_base", 1, { ALLOCATOR } },
	{ "std::__uniq_ptr_impl", 1, { "std::default_delete<$1>" } },
	{ "std::__uniq_ptr_data", 1, { "std::default_delete<$1>", "true", "true" } },
	{ "std::_Rb_tree",
	  2,
	  { "std::_Select1st<$2>|std::_Identity<$2>", LESS, "std::allocator<$2>" } },
	{ "std::_Hashtable", 2, { HASHTABLE } },
	{ "std::__detail::_Map_base", 2, { HASHTABLE, "true|false" } },
	{ "std::__detail::_Insert", 2, { HASHTABLE, "true|false" } },
	{ "std::__detail::_Insert_base", 2, { HASHTABLE } },
	{ "std::__detail::_Hashtable_base",
	  2,
	  { EXTRACT, EQUAL, HASH, RANGES, TRAITS_OF_HASHTABLE } },
	{ "std::__shared_ptr", 1, { LOCK_POLICY } },
	{ "std::__weak_ptr", 1, { LOCK_POLICY } },
	{ "std::__shared_count", 0, { LOCK_POLICY } },
	{ "std::__weak_count", 0, { LOCK_POLICY } },
	{ "std::_Sp_counted_base", 0, { LOCK_POLICY } },
	{ "std::_Sp_counted_ptr", 1, { LOCK_POLICY } },
	{ "std::_Sp_counted_deleter", 3, { LOCK_POLICY } },
	{ "std::_Sp_counted_ptr_inplace",
	  1,
	  { "std::allocator<$1>|std::allocator<void>", LOCK_POLICY } },

	/* libc++'s internal templates for these. */
	{ "std::__vector_base", 1, { ALLOCATOR } },
	{ "std::__deque_base", 1, { ALLOCATOR } },
	{ "std::__list_imp", 1, { ALLOCATOR } },
	{ "std::__split_buffer", 1, { ALLOCATOR "|" ALLOCATOR "&" } },
	{ "std::__tree", 1, { "std::__map_value_compare<*|" LESS, "std::allocator<$1>" } },
	{ "std::__hash_table",
	  1,
	  { "std::__unordered_map_hasher<*|" HASH, "std::__unordered_map_equal<*|" EQUAL,
	    ALLOCATOR } },

	{ "llvm::DenseMap",
	  2,
	  { "llvm::DenseMapInfo<$1>|llvm::DenseMapInfo<$1, void>",
	    "llvm::detail::DenseMapPair<$1, $2>" } },
	{ "llvm::DenseSet", 1, { "llvm::DenseMapInfo<$1>|llvm::DenseMapInfo<$1, void>" } },
	{ "nlohmann::basic_json",
	  0,
	  { "std::map", "std::vector", "std::string", "bool", "long", "unsigned long", "double",
	    "std::allocator", "nlohmann::adl_serializer", "std::vector<unsigned char>", "void" } },
};

struct alias {
	const char *name, *arg, *alias;
};

#define NARROW(name)                                                                               \
	{                                                                                          \
		"std::basic_" name, "char", "std::" name                                           \
	}
#define WIDE(name)                                                                                 \
	{                                                                                          \
		"std::basic_" name, "wchar_t", "std::w" name                                       \
	}
#define UNICODE(name)                                                                              \
	{ "std::basic_" name, "char8_t", "std::u8" name },                                         \
		{ "std::basic_" name, "char16_t", "std::u16" name },                               \
	{                                                                                          \
		"std::basic_" name, "char32_t", "std::u32" name                                    \
	}

static const struct alias aliases[] = {
	/* clang-format off */
	NARROW("string"), WIDE("string"), UNICODE("string"),
	NARROW("string_view"), WIDE("string_view"), UNICODE("string_view"),
	NARROW("ios"), WIDE("ios"),
	NARROW("streambuf"), WIDE("streambuf"),
	NARROW("istream"), WIDE("istream"),
	NARROW("ostream"), WIDE("ostream"),
	NARROW("iostream"), WIDE("iostream"),
	NARROW("filebuf"), WIDE("filebuf"),
	NARROW("ifstream"), WIDE("ifstream"),
	NARROW("ofstream"), WIDE("ofstream"),
	NARROW("fstream"), WIDE("fstream"),
	NARROW("stringbuf"), WIDE("stringbuf"),
	NARROW("istringstream"), WIDE("istringstream"),
	NARROW("ostringstream"), WIDE("ostringstream"),
	NARROW("stringstream"), WIDE("stringstream"),
	NARROW("syncbuf"), WIDE("syncbuf"),
	NARROW("osyncstream"), WIDE("osyncstream"),
	NARROW("regex"), WIDE("regex"),
	{ "nlohmann::basic_json", "", "nlohmann::json" },
	/* clang-format on */
};

/* '#' matches digits and what follows them: lts_20240722, v10. */
static const char *const inline_namespaces[] = {
	"__cxx11", "__1", "__2", "__ndk1", "__fs", "__8", "_V2", "lts_#", "json_abi_v#",
};

static bool equals(struct slice slice, const char *text)
{
	return !strncmp(slice.at, text, slice.len) && !text[slice.len];
}

/* Whether @text matches the alternative of @pattern that ends at @end. */
static bool matches_one(const char *pattern, const char *end, struct slice text,
			const struct slice *args, size_t n)
{
	for (; pattern < end; pattern++) {
		if (*pattern == '*')
			return true;
		if (*pattern == '$') {
			size_t index = *++pattern - '1';

			if (index >= n || args[index].len > text.len ||
			    memcmp(text.at, args[index].at, args[index].len))
				return false;
			text.at += args[index].len;
			text.len -= args[index].len;
			continue;
		}
		if (!text.len || *text.at != *pattern)
			return false;
		text.at++;
		text.len--;
	}
	return !text.len;
}

static bool matches(const char *pattern, struct slice text, const struct slice *args, size_t n)
{
	for (;;) {
		const char *end = strchrnul(pattern, '|');

		if (matches_one(pattern, end, text, args, n))
			return true;
		if (!*end)
			return false;
		pattern = end + 1;
	}
}

size_t template_defaults__kept(struct slice name, const struct slice *args, size_t n)
{
	const struct defaults *defaults = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(all_defaults); i++) {
		if (equals(name, all_defaults[i].name))
			defaults = &all_defaults[i];
	}
	if (!defaults || n > defaults->first + MAX_DEFAULTS)
		return n;
	while (n > defaults->first) {
		const char *value = defaults->values[n - 1 - defaults->first];

		if (!value || !matches(value, args[n - 1], args, n))
			break;
		n--;
	}
	return n;
}

const char *template_defaults__alias(struct slice name, struct slice arg)
{
	for (size_t i = 0; i < ARRAY_SIZE(aliases); i++) {
		if (equals(name, aliases[i].name) && equals(arg, aliases[i].arg))
			return aliases[i].alias;
	}
	return NULL;
}

bool template_defaults__is_inline_namespace(struct slice name)
{
	for (size_t i = 0; i < ARRAY_SIZE(inline_namespaces); i++) {
		const char *known = inline_namespaces[i];
		size_t stem = strcspn(known, "#");

		if (!known[stem] ? equals(name, known)
				 : name.len > stem && !memcmp(name.at, known, stem) &&
					   name.at[stem] >= '0' && name.at[stem] <= '9')
			return true;
	}
	return false;
}
