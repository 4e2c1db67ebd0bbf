// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// For Google Benchmark: allocations per iteration, and bytes, among its results.
//
//	int main(int argc, char **argv)
//	{
//		benchmark::Initialize(&argc, argv);
//		register_allocations();
//		benchmark::RunSpecifiedBenchmarks();
//	}
//
// Run it by `allocprof stat --live --engine=preload ./benchmark`, which times are not comparable with others of. The benchmark runs
// some iterations more for it.
#ifndef ALLOCATIONS_BENCHMARK_H
#define ALLOCATIONS_BENCHMARK_H

#include <allocprof.h>
#include <benchmark/benchmark.h>

class AllocationManager : public benchmark::MemoryManager
{
      public:
	void Start() override
	{
		allocprof_read(nullptr, &before);
	}
	void Stop(Result &result) override
	{
		allocprof_figures after;
		const int answer = allocprof_read(nullptr, &after);

		result.num_allocs = static_cast<int64_t>(after.allocations + after.reallocations -
							 before.allocations - before.reallocations);
		if (answer != ALLOCPROF_READ_LIVE)
			return;
		// The peak is that of the process: what is below an earlier one is not known, and 0 here.
		if (after.peak_bytes > before.peak_bytes)
			result.max_bytes_used =
				static_cast<int64_t>(after.peak_bytes) - before.live_bytes;
		result.total_allocated_bytes =
			static_cast<int64_t>(after.bytes_allocated - before.bytes_allocated);
		result.net_heap_growth = after.live_bytes - before.live_bytes;
	}
	// Benchmark 1.7 has this one, too.
	void Stop(Result *result)
	{
		Stop(*result);
	}

      private:
	allocprof_figures before;
};

// Without effect where nobody measures.
inline void register_allocations()
{
	static AllocationManager manager;
	allocprof_figures figures;

	if (allocprof_read(nullptr, &figures) > 0)
		benchmark::RegisterMemoryManager(&manager);
}

#endif
