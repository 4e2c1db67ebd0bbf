/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds functions that hand out or take memory by their names. */
#ifndef ALLOCPROF_INTERFACE_H
#define ALLOCPROF_INTERFACE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "interface_abi.h"

/* Returns the function @name and its family; NULL if the table has none. */
const struct interface_function *interface__find(const char *name, enum interface_family *family);

/* Return the function's number in the table, -1 if it is not of the table; and the function of a
 * number, NULL if there is none. */
int interface_function__number(const struct interface_function *function);
const struct interface_function *interface__at(size_t number);

/* Returns whether the programs have its arguments built in, as for a C library. */
bool interface_function__is_classic(const struct interface_function *function);

#endif
