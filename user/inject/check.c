/* SPDX-License-Identifier: BSD-2-Clause */
/* Could a library be loaded there? Looked at from outside only. */
#include <errno.h>
#include <stdio.h>

#include "inject/private.h"

int inject_check(uint32_t pid, const struct inject_options *o, char why[200])
{
#ifdef __x86_64__
	struct inject_plan plan = {.pid = pid, .pidfd = -1, .why = why};
	int err;

	why[0] = '\0';
	err = inject_look(&plan, o);
	if (!err)
		err = inject_find(&plan, o);
	inject_plan_free(&plan);
	return err;
#else
	snprintf(why, 200, "Injection is for x86-64 only.");
	return -ENOTSUP;
#endif
}
