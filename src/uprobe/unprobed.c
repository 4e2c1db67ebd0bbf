// SPDX-License-Identifier: GPL-3.0-or-later
#include "unprobed.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "record_abi.h"

static void copy_name(const char comm[AP_COMM_LEN], char name[AP_COMM_LEN + 1])
{
	size_t n = strnlen(comm, AP_COMM_LEN);

	for (size_t i = 0; i < n; i++)
		name[i] = iscntrl((unsigned char)comm[i]) ? '?' : comm[i];
	name[n] = '\0';
}

int unprobed__add(struct unprobed *unprobed, const struct ap_unprobed_record *record)
{
	struct unprobed_program *program = NULL;
	char name[AP_COMM_LEN + 1];

	copy_name(record->comm, name);
	for (size_t i = 0; i < unprobed->n && !program; i++)
		if (!strcmp(unprobed->list[i].name, name))
			program = &unprobed->list[i];
	if (!program) {
		int err = array__reserve_zeroed(&unprobed->list, &unprobed->room, unprobed->n + 1,
						sizeof(*unprobed->list));

		if (err)
			return err;
		program = &unprobed->list[unprobed->n++];
		memcpy(program->name, name, sizeof(name));
		program->pid = record->pid;
	}
	program->processes++;
	program->size_bytes += record->size_bytes;
	return 0;
}

void unprobed__release(struct unprobed *unprobed)
{
	free(unprobed->list);
	*unprobed = (struct unprobed){ 0 };
}
