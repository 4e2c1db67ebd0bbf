// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// For Catch2, versions 2 and 3: a limit of what a statement may allocate.
//
//	TEST_CASE("the parser allocates nothing")
//	{
//		REQUIRE_ALLOCATIONS_AT_MOST(0, parse(text));
//	}
//
// Run it by `allocprof stat --engine=preload ./test`. Where nobody measures the statement is executed, and nothing is checked.
#ifndef ALLOCATIONS_CATCH2_H
#define ALLOCATIONS_CATCH2_H

#include <allocprof.h>
#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_test_macros.hpp>
#else
#include <catch2/catch.hpp>
#endif

#define REQUIRE_ALLOCATIONS_AT_MOST(most, statement)                                               \
	do {                                                                                       \
		allocprof_figures before_, after_;                                                 \
		const int answer_ = allocprof_read(nullptr, &before_);                             \
		{                                                                                  \
			statement;                                                                 \
		}                                                                                  \
		const int answer_after_ = allocprof_read(nullptr, &after_);                        \
		const unsigned long long allocations_ =                                            \
			after_.allocations + after_.reallocations - before_.allocations -          \
			before_.reallocations;                                                     \
		INFO("allocations by " #statement);                                                \
		/* Less than 0 where allocprof cannot tell: see allocprof.h. */                    \
		REQUIRE((answer_ >= 0 && answer_after_ >= 0));                                     \
		if (answer_ > 0)                                                                   \
			REQUIRE(allocations_ <= static_cast<unsigned long long>(most));            \
	} while (0)

#endif
