// SPDX-License-Identifier: GPL-3.0-or-later
/* Shortens a demangled name for a line of a report: without default template arguments, and with typedefs. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "demangle_internal.h"

#define MAX_DEFAULTS 11

/* Default values of a template's last parameters, from index @first on. "$1" stands for the first
 * argument, '|' separates alternatives, and '*' matches the rest of the text. */
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

/* Returns whether @text matches the alternative of @pattern that ends at @end. */
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

static size_t count_kept_arguments(struct slice name, const struct slice *args, size_t n)
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

static const char *alias_of(struct slice name, struct slice arg)
{
	for (size_t i = 0; i < ARRAY_SIZE(aliases); i++) {
		if (equals(name, aliases[i].name) && equals(arg, aliases[i].arg))
			return aliases[i].alias;
	}
	return NULL;
}

static bool is_inline_namespace(struct slice name)
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

/* How deep names may be nested; libiberty stops at 2048 levels of the mangled name. */
#define MAX_DEPTH 256
#define MAX_ARGS  16

/* The output is never longer than the input read so far, so @out has room. */
struct simplifier {
	const char *at, *end;
	char *out;
	size_t size;
	unsigned int depth;
};

enum context {
	FUNCTION, /* the function's own name: parameters and return types are dropped */
	TYPE,	  /* inside of brackets: they are kept, as part of a type */
};

/* The parser's state within a name. */
struct position {
	enum context context;
	size_t start; /* where the current element begins in the output */
	size_t name;  /* where the current qualified name begins in the output */
	bool named;   /* template arguments or parameters may follow */
};

static bool parse(struct simplifier *s, enum context context, char closing);

static char peek(const struct simplifier *s, size_t ahead)
{
	return (size_t)(s->end - s->at) > ahead ? s->at[ahead] : '\0';
}

static bool looking_at(const struct simplifier *s, const char *text)
{
	size_t len = strlen(text);

	return (size_t)(s->end - s->at) >= len && !memcmp(s->at, text, len);
}

static void take(struct simplifier *s, size_t n)
{
	memmove(s->out + s->size, s->at, n);
	s->size += n;
	s->at += n;
}

static bool is_name_char(char c)
{
	/* Compilers make up names that contain '.'. */
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.' || (c & 0x80);
}

static size_t name_length(const struct simplifier *s)
{
	size_t len = 0;

	while (is_name_char(peek(s, len)))
		len++;
	return len;
}

/* Copies a bracket, its contents, and the closing bracket. Returns false if it is not closed. */
static bool parse_group(struct simplifier *s, char closing)
{
	take(s, 1);
	if (!parse(s, TYPE, closing) || peek(s, 0) != closing)
		return false;
	take(s, 1);
	return true;
}

static struct slice written(const struct simplifier *s, size_t from, size_t to)
{
	return (struct slice){ s->out + from, to - from };
}

/*
 * Replaces "std::basic_string<char" (bracket at @open, closing one not yet written) by its typedef.
 */
static bool abbreviate(struct simplifier *s, size_t name, size_t open, size_t arg_end)
{
	bool any = arg_end > open;
	const char *alias = alias_of(written(s, name, open),
				     any ? written(s, open + 1, arg_end) : written(s, open, open));
	size_t len;

	if (!alias)
		return false;
	len = strlen(alias);
	memcpy(s->out + name, alias, len);
	s->size = name + len;
	return true;
}

/* Returns whether the output ends in an operator to which a '>' must not be appended directly. */
static bool ends_in_operator(const struct simplifier *s, size_t from)
{
	size_t at = s->size;

	while (at > from && strchr("<>=-", s->out[at - 1]))
		at--;
	return at < s->size && s->out[s->size - 1] == '>' && at >= from + strlen("operator") &&
	       !memcmp(s->out + at - strlen("operator"), "operator", strlen("operator"));
}

static bool parse_arguments(struct simplifier *s, size_t name)
{
	struct slice args[MAX_ARGS];
	size_t ends[MAX_ARGS];
	size_t open = s->size, n = 0, kept;

	take(s, 1);
	for (;;) {
		size_t start = s->size;

		if (!parse(s, TYPE, '>'))
			return false;
		if (n < MAX_ARGS) {
			args[n] = written(s, start, s->size);
			ends[n] = s->size;
		}
		n++;
		if (peek(s, 0) != ',')
			break;
		take(s, peek(s, 1) == ' ' ? 2 : 1);
	}
	if (peek(s, 0) != '>')
		return false;
	kept = n <= MAX_ARGS ? count_kept_arguments(written(s, name, open), args, n) : n;
	if (kept < n)
		s->size = kept ? ends[kept - 1] : open;
	if ((kept <= 1 && abbreviate(s, name, open, s->size)) || !kept) {
		s->at++;
		return true;
	}
	if (s->at[-1] == ' ' && ends_in_operator(s, open))
		s->out[s->size++] = ' ';
	take(s, 1);
	return true;
}

/* Parses "<lambda(int, char)>" and "<unnamed struct>", as GCC writes them in DWARF. */
static bool parse_unnamed(struct simplifier *s)
{
	take(s, 1);
	while (parse(s, TYPE, '>') && peek(s, 0) == ',')
		take(s, 1);
	if (peek(s, 0) != '>')
		return false;
	take(s, 1);
	return true;
}

/* Skips what may follow a function's parameters before its end or a "::". */
static void skip_qualifiers(struct simplifier *s)
{
	static const char *const qualifiers[] = { " const", " volatile", " &&",
						  " &",	    " noexcept", " transaction_safe" };
	size_t i = 0;

	while (i < ARRAY_SIZE(qualifiers)) {
		size_t len = strlen(qualifiers[i]);

		if (looking_at(s, qualifiers[i]) && !is_name_char(peek(s, len))) {
			s->at += len;
			i = 0;
		} else {
			i++;
		}
	}
	if (looking_at(s, " requires "))
		s->at = s->end;
}

/* Parses a function's parameters after its name. */
static bool parse_parameters(struct simplifier *s, struct position *position)
{
	size_t name_end = s->size;
	const char *after;

	if (!parse_group(s, ')'))
		return false;
	after = s->at;
	skip_qualifiers(s);
	if (looking_at(s, "::") || position->context == FUNCTION) {
		s->size = name_end;
		return s->at == s->end || looking_at(s, "::");
	}
	s->at = after;
	return true;
}

/* Handles a function that returns a pointer to a function or array: its name is in parentheses,
 * between the return type and the parameters of that type, which are dropped. */
static bool enter_declarator(struct simplifier *s, struct position *position, const char *group,
			     const char *group_end)
{
	const char *after = group_end < s->end && *group_end == ' ' ? group_end + 1 : group_end;

	if (position->context != FUNCTION || after == s->end || (*after != '(' && *after != '['))
		return false;
	group++;
	while (group < group_end && strchr("*& ", *group))
		group++;
	s->at = group;
	s->end = group_end - 1;
	s->size = position->name = position->start;
	return true;
}

static bool parse_parenthesis(struct simplifier *s, struct position *position)
{
	static const char anonymous[] = "(anonymous namespace)";
	const char *group = s->at;

	if (looking_at(s, anonymous)) {
		take(s, strlen(anonymous));
		return true;
	}
	if (position->named)
		return parse_parameters(s, position);
	if (!parse_group(s, ')'))
		return false;
	if (strchr("*&", group[1]) && enter_declarator(s, position, group, s->at))
		return true;
	position->name = s->size;
	return true;
}

static bool parse_token(struct simplifier *s, struct position *position);

/* Parses the target type of a conversion operator, up to the operator's own parameters. */
static bool parse_conversion(struct simplifier *s)
{
	struct position position = { TYPE, s->size, s->size, false };

	while (s->at < s->end && !strchr(",>)}]", *s->at)) {
		/* "void (*)(int)" has parentheses of its own. */
		if (*s->at == '(' && s->at[-1] == ' ') {
			if (!parse_group(s, ')') || (peek(s, 0) == '(' && !parse_group(s, ')')))
				return false;
			continue;
		}
		if (*s->at == '(' || looking_at(s, "::{") || looking_at(s, "[abi:"))
			break;
		if (!parse_token(s, &position))
			return false;
	}
	return true;
}

/* Parses what follows "operator". */
static bool parse_operator(struct simplifier *s)
{
	/* Operators, the longest first. */
	static const char *const symbols[] = {
		" new[]", " delete[]", " new", " delete", " co_await", "<=>", "<<=",  ">>=",
		"->*",	  "()",	       "[]",   "<<",	  ">>",	       "<=",  ">=",   "->",
		"==",	  "!=",	       "&&",   "||",	  "++",	       "--",  "+=",   "-=",
		"*=",	  "/=",	       "%=",   "&=",	  "|=",	       "^=",  "\"\"", "+",
		"-",	  "*",	       "/",    "%",	  "^",	       "&",   "|",    "~",
		"!",	  "=",	       "<",    ">",	  ",",	       "?",
	};

	for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
		size_t len = strlen(symbols[i]);

		if (!looking_at(s, symbols[i]) ||
		    (*symbols[i] == ' ' && is_name_char(peek(s, len))))
			continue;
		take(s, len);
		if (s->at[-1] == '"') {
			take(s, peek(s, 0) == ' ');
			take(s, name_length(s));
		}
		/* libiberty puts a blank before these arguments: "operator< <int>". */
		if (looking_at(s, " <"))
			take(s, 1);
		return true;
	}
	if (peek(s, 0) != ' ')
		return false;
	take(s, 1);
	return parse_conversion(s);
}

static bool parse_name(struct simplifier *s, struct position *position)
{
	size_t len = name_length(s);

	if (len == strlen("operator") && looking_at(s, "operator")) {
		take(s, len);
		if (!parse_operator(s))
			return false;
	} else if (s->size > position->name && peek(s, len) == ':' && peek(s, len + 1) == ':' &&
		   is_inline_namespace((struct slice){ s->at, len })) {
		s->at += len + 2;
		return true;
	} else {
		take(s, len);
	}
	position->named = true;
	return true;
}

static bool parse_space(struct simplifier *s, struct position *position)
{
	if (position->context == FUNCTION) {
		/* The text so far was a return type, so it is dropped. */
		s->at++;
		s->size = position->start;
	} else if (peek(s, 1) == '>') {
		s->at++;
	} else {
		take(s, 1);
	}
	position->name = s->size;
	position->named = false;
	return true;
}

static bool parse_token(struct simplifier *s, struct position *position)
{
	char c = peek(s, 0);

	if (is_name_char(c))
		return parse_name(s, position);
	switch (c) {
	case ' ':
		return parse_space(s, position);
	case '(':
		return parse_parenthesis(s, position);
	case '<':
		if (position->named)
			return parse_arguments(s, position->name);
		if (looking_at(s, "<lambda") || looking_at(s, "<unnamed")) {
			position->named = true;
			return parse_unnamed(s);
		}
		break;
	case '{':
		position->named = true;
		return parse_group(s, '}');
	case '[':
		if (looking_at(s, "[abi:")) {
			const char *end = memchr(s->at, ']', s->end - s->at);

			s->at = end ? end + 1 : s->at;
			return end;
		}
		return parse_group(s, ']');
	case ')':
	case ']':
	case '}':
		return false;
	case ':':
	case '~':
		take(s, 1);
		position->named = false;
		return true;
	default:
		break;
	}
	take(s, 1);
	position->named = false;
	position->name = s->size;
	return true;
}

/* Parses up to the end or, outside of inner brackets, up to @closing; among template arguments
 * also up to a comma. */
static bool parse(struct simplifier *s, enum context context, char closing)
{
	struct position position = { context, s->size, s->size, false };

	if (++s->depth > MAX_DEPTH)
		return false;
	while (s->at < s->end && *s->at != closing && !(closing == '>' && *s->at == ',')) {
		if (!parse_token(s, &position))
			return false;
	}
	s->depth--;
	return true;
}

/* Returns the length of a prefix such as "vtable for ", which is kept. */
static size_t prefix_length(const char *name)
{
	static const char *const prefixes[] = {
		"non-virtual thunk to ",
		"virtual thunk to ",
		"covariant return thunk to ",
		"vtable for ",
		"VTT for ",
		"typeinfo for ",
		"typeinfo name for ",
		"guard variable for ",
		"TLS init function for ",
		"TLS wrapper function for ",
		"transaction clone for ",
		"non-transaction clone for ",
	};

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		size_t len = strlen(prefixes[i]);

		if (!strncmp(name, prefixes[i], len))
			return len;
	}
	return 0;
}

static char *simplify(const char *full, const char *name, const char *end)
{
	struct simplifier s = { .at = name, .end = end, .size = name - full };

	s.out = malloc(strlen(full) + 1);
	if (!s.out)
		return NULL;
	memcpy(s.out, full, s.size);
	if (!parse(&s, FUNCTION, '\0') || s.at != s.end || s.size == (size_t)(name - full)) {
		strcpy(s.out, full);
		return s.out;
	}
	s.out[s.size] = '\0';
	return s.out;
}

char *demangle_simple__cxx(const char *full)
{
	const char *clone = strstr(full, " [clone ");

	return simplify(full, full + prefix_length(full), clone ? clone : full + strlen(full));
}

/* Returns the end of the parenthesis that begins at @at, or NULL if it is not closed. */
static const char *d_group_end(const char *at)
{
	unsigned int depth = 0;

	for (; *at; at++) {
		if (*at == '"') {
			for (at++; *at && *at != '"'; at++) {
				if (*at == '\\' && at[1])
					at++;
			}
			if (!*at)
				return NULL;
		}
		if (*at == '(')
			depth++;
		else if (*at == ')' && !--depth)
			return at + 1;
	}
	return NULL;
}

static const char *skip_d_qualifiers(const char *at)
{
	static const char *const qualifiers[] = { " const", " immutable", " shared", " inout" };
	size_t i = 0;

	while (i < ARRAY_SIZE(qualifiers)) {
		size_t len = strlen(qualifiers[i]);

		if (!strncmp(at, qualifiers[i], len) &&
		    !is_name_char(at[len] == '.' ? ' ' : at[len])) {
			at += len;
			i = 0;
		} else {
			i++;
		}
	}
	return at;
}

char *demangle_simple__d(const char *full)
{
	char *simple = malloc(strlen(full) + 1), *to = simple;
	const char *at = full;

	if (!simple)
		return NULL;
	while (*at) {
		const char *end;

		if (*at != '(') {
			*to++ = *at++;
			continue;
		}
		end = d_group_end(at);
		if (!end)
			return strcpy(simple, full);
		/* Template arguments that follow an exclamation mark are kept; parameters are
		 * dropped. */
		if (at > full && at[-1] == '!') {
			memcpy(to, at, end - at);
			to += end - at;
			at = end;
		} else {
			at = skip_d_qualifiers(end);
		}
	}
	*to = '\0';
	return to == simple ? strcpy(simple, full) : simple;
}
