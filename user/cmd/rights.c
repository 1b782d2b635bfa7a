/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/rights.h"

#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/capability.h>
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

/* By what asks for them; order does not matter. */
static size_t needed(enum rights_need need, const struct rights *r, cap_value_t out[16])
{
	size_t n = 0;

	out[n++] = CAP_BPF;		   /* bpf(2) */
	out[n++] = CAP_PERFMON;		   /* probes, perf events */
	out[n++] = CAP_SYS_PTRACE;	   /* maps, root and memory of others; holding a command */
	out[n++] = CAP_CHECKPOINT_RESTORE; /* map_files */
	out[n++] = CAP_DAC_READ_SEARCH;	   /* libraries, wherever they are */
	if (need != RIGHTS_WATCH) {
		out[n++] = CAP_DAC_OVERRIDE; /* the recording, where root puts it */
		out[n++] = CAP_FOWNER;	     /* the one before, in a sticky directory */
		out[n++] = CAP_SETUID;	     /* the recording as the invoking user */
		out[n++] = CAP_SETGID;
	}
	if (r->command)
		out[n++] = CAP_KILL;
	if (need == RIGHTS_ATTACH || r->files)
		out[n++] = CAP_CHOWN; /* the recording, to the invoking user */
	if (need == RIGHTS_ATTACH)
		out[n++] = CAP_IPC_LOCK; /* buffers of perf events beyond the limit */
	if (need == RIGHTS_ATTACH || r->perf_uprobes)
		out[n++] = CAP_SYS_ADMIN;
	return n;
}

int rights_keep(enum rights_need need, const struct rights *r)
{
	cap_t now = cap_get_proc(), kept = cap_init();
	cap_value_t caps[16];
	cap_flag_value_t held;
	size_t n, i;
	int err = 0;

	if (!now || !kept)
		err = -ENOMEM;
	n = needed(need, r, caps);
	for (i = 0; !err && i < n; i++)
		if (!cap_get_flag(now, caps[i], CAP_PERMITTED, &held) && held == CAP_SET &&
		    (cap_set_flag(kept, CAP_PERMITTED, 1, &caps[i], CAP_SET) ||
		     cap_set_flag(kept, CAP_EFFECTIVE, 1, &caps[i], CAP_SET)))
			err = -errno;
	if (!err && (cap_set_proc(kept) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)))
		err = -errno;
	cap_free(now);
	cap_free(kept);
	return err;
}
