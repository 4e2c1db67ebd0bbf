// SPDX-License-Identifier: GPL-3.0-or-later
// A test in C that a function allocates nothing. `make` builds it, and
//
//	allocprof stat --engine=preload ./words
//
// runs it. Built with -DREGRESSION the function makes a copy, and the test fails.
#include <allocprof.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t count_words(const char *text)
{
	ALLOCPROF_REGION("count_words");
	size_t n = 0;
#ifdef REGRESSION
	char *copy = strdup(text);

	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		n++;
	free(copy);
#else
	while (*(text += strspn(text, " "))) {
		text += strcspn(text, " ");
		n++;
	}
#endif
	return n;
}

int main(void)
{
	struct allocprof_figures figures;
	int answer;

	assert(count_words("one two three") == 3);
	answer = allocprof_read("count_words", &figures);
	if (answer == ALLOCPROF_READ_NOBODY) {
		puts("allocations not checked: allocprof does not measure this process");
		return 0;
	}
	// So that the test fails where the region is renamed, and not here.
	assert(answer != ALLOCPROF_READ_NOT_BEGUN);
	// Less than 0 where the figures are not exact.
	assert(answer > 0);
	assert(figures.allocations == 0);
	printf("count_words() allocated %llu times\n", figures.allocations);
	return 0;
}
