// SPDX-License-Identifier: GPL-3.0-or-later
#include "demangling.h"

#include <errno.h>

#include "cleanup.h"
#include "demangle.h"
#include "error.h"
#include "message.h"
#include "profile.h"

static void free_demangler(struct demangler **demangler)
{
	demangler__free(*demangler);
}

int demangling__apply(const char *command, struct profile *profile, struct error *error)
{
	const struct demangle_options options = { .command = command };
	_cleanup_(free_demangler) struct demangler *demangler = NULL;
	struct error filter_error = { 0 };
	int err = demangler__new(&options, &demangler, error);

	if (!err) {
		err = profile__demangle(profile, demangler, &filter_error);
		if (err && err != -ENOMEM) {
			message__print("%s", filter_error.text);
			err = 0;
		}
	}
	if (err == -ENOMEM)
		return error__set(error, err, "cannot demangle the names: out of memory");
	return err;
}
