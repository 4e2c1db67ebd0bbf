/* SPDX-License-Identifier: GPL-3.0-or-later */
/* cmocka wants these before itself. */
#ifndef ALLOCPROF_TESTS_UNIT_H
#define ALLOCPROF_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "array.h"

#endif
