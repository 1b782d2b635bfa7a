/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/rights.h"

#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

/* A number as sudo writes it, and nothing else. */
static bool id_from(const char *name, unsigned long *out)
{
	const char *text = getenv(name);
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	*out = strtoul(text, &end, 10);
	return !errno && !*end && *out < (uid_t)-1;
}

int rights_become_invoker(void)
{
	unsigned long uid, gid;
	gid_t group;

	if (geteuid() != 0 || !id_from("SUDO_UID", &uid) || uid == 0)
		return 0;
	if (!id_from("SUDO_GID", &gid))
		return -EINVAL;
	group = (gid_t)gid;
	if (setgroups(1, &group) || setresgid(group, group, group) ||
	    setresuid((uid_t)uid, (uid_t)uid, (uid_t)uid))
		return -errno;
	/* What was dropped must not come back through a setuid program. */
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
}
