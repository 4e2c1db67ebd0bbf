// SPDX-License-Identifier: GPL-3.0-or-later
#include "interface.h"

#include <stddef.h>
#include <string.h>

#include "array.h"

const struct interface_function *interface__find(const char *name, enum interface_family *family)
{
	return interface__find_row(name, family);
}

bool interface_function__is_classic(const struct interface_function *function)
{
	return function >= interface_functions && function < interface_functions + AP_C_FUNCTIONS;
}

int interface_function__number(const struct interface_function *function)
{
	for (size_t i = 0; i < ARRAY_SIZE(interface_functions); i++)
		if (function == &interface_functions[i])
			return i;
	return -1;
}

const struct interface_function *interface__at(size_t number)
{
	return number < ARRAY_SIZE(interface_functions) ? &interface_functions[number] : NULL;
}
