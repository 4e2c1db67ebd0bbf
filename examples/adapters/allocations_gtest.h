// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// For GoogleTest: limits of what a statement may allocate, and what each test allocates among its properties, which JUnit's XML shows.
//
//	#include "allocations_gtest.h"
//
//	TEST(Parser, AllocatesNothing)
//	{
//		EXPECT_ALLOCATIONS_AT_MOST(0, parse(text));
//	}
//	int main(int argc, char **argv)
//	{
//		testing::InitGoogleTest(&argc, argv);
//		testing::UnitTest::GetInstance()->listeners().Append(new AllocationListener);
//		return RUN_ALL_TESTS();
//	}
//
// Run it by `allocprof stat --engine=preload ./test`. Where nobody measures the statement is executed, and nothing is checked.
#ifndef ALLOCATIONS_GTEST_H
#define ALLOCATIONS_GTEST_H

#include <allocprof.h>
#include <gtest/gtest.h>

// What all threads of the process have asked for since the object was made.
class AllocationsSince
{
      public:
	AllocationsSince() : answer(allocprof_read(nullptr, &before))
	{
	}
	// An enum allocprof_answer.
	int read(unsigned long long &allocations) const
	{
		allocprof_figures after;
		int answer_after = allocprof_read(nullptr, &after);

		allocations = after.allocations + after.reallocations - before.allocations -
			      before.reallocations;
		return answer < answer_after ? answer : answer_after;
	}

      private:
	allocprof_figures before;
	int answer;
};

#define EXPECT_ALLOCATIONS_AT_MOST(most, statement)                                                \
	do {                                                                                       \
		const AllocationsSince allocations_since_;                                         \
		unsigned long long allocations_;                                                   \
		{                                                                                  \
			statement;                                                                 \
		}                                                                                  \
		const int allocations_answer_ = allocations_since_.read(allocations_);             \
		EXPECT_GE(allocations_answer_, 0) << "allocprof cannot tell: see allocprof.h";     \
		if (allocations_answer_ > 0) {                                                     \
			EXPECT_LE(allocations_, static_cast<unsigned long long>(most))             \
				<< "allocations by " #statement;                                   \
		}                                                                                  \
	} while (0)

// Notes the allocations of each test, with those of its fixture.
class AllocationListener : public testing::EmptyTestEventListener
{
      public:
	void OnTestStart(const testing::TestInfo &) override
	{
		since = AllocationsSince();
	}
	void OnTestEnd(const testing::TestInfo &) override
	{
		unsigned long long allocations;

		if (since.read(allocations) > 0)
			testing::Test::RecordProperty("allocations", std::to_string(allocations));
	}

      private:
	AllocationsSince since;
};

#endif
