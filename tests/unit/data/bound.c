/* SPDX-License-Identifier: GPL-3.0-or-later */
/* With PROVIDES a library with a function; without, one that calls it, by a word of its procedure linkage table and by a variable, and
 * functions that it is told. */
int unit_number(void);
int call_unit_number(void);
void *call_with_size(void *(*function)(unsigned long size), unsigned long size);
extern int (*unit_number_pointer)(void);
extern void (*unit_mark_pointer)(int kind, const char *name);

#ifdef PROVIDES
int unit_number(void)
{
	return 1;
}
#else
void allocprof_mark_(int kind, const char *name) __attribute__((weak));

int (*unit_number_pointer)(void) = unit_number;
void (*unit_mark_pointer)(int kind, const char *name) = allocprof_mark_;

int call_unit_number(void)
{
	return unit_number();
}

/* No jump. */
void *call_with_size(void *(*function)(unsigned long size), unsigned long size)
{
	void *volatile result = function(size);

	return result;
}
#endif
