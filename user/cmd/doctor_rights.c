/* SPDX-License-Identifier: BSD-2-Clause */
/* Which rights this process has, and what each is for; docs/rights.md is how that was found. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <unistd.h>

#include "cmd/doctor.h"

static const struct doctor_capability table[DOCTOR_CAPABILITIES] = {
	{CAP_BPF, "CAP_BPF", "to load programs into the kernel", true, true, 0, 0},
	{CAP_PERFMON, "CAP_PERFMON", "to attach them, and to be told of mappings", true, true, 0,
	 0},
	{CAP_SYS_ADMIN, "CAP_SYS_ADMIN", "to attach by perf_event, on some kernels", false, false,
	 0, 0},
	{CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "for processes of other users", false, false, 0, 0},
	{CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH",
	 "for libraries in directories closed to you, and for deleted ones", false, false, 0, 0},
	{CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE",
	 "for libraries that were deleted or replaced, as updates do", true, false, 0, 0},
};

static bool effective(cap_t set, int value)
{
	cap_flag_value_t flag = CAP_CLEAR;

	return set && !cap_get_flag(set, value, CAP_EFFECTIVE, &flag) && flag == CAP_SET;
}

static bool denied(const struct doctor_rung *r)
{
	return r->error == -EPERM || r->error == -EACCES;
}

/* The kernel does not know the others, and wants more rights for the last. */
static bool only_last_rung_denied(const struct doctor *d)
{
	return denied(&d->rungs[2]) && !denied(&d->rungs[0]) && !denied(&d->rungs[1]) &&
	       !d->probes;
}

static void read_capabilities(struct doctor *d)
{
	cap_t set = cap_get_proc();
	bool admin = effective(set, CAP_SYS_ADMIN);
	size_t i;

	for (i = 0; i < DOCTOR_CAPABILITIES; i++) {
		struct doctor_capability *c = &d->capabilities[i];

		*c = table[i];
		c->itself = effective(set, c->value);
		c->held = c->itself || (admin && c->covered_by_admin);
		if (c->value == CAP_SYS_ADMIN)
			c->needed = only_last_rung_denied(d);
	}
	cap_free(set);
}

static bool is_among(int value, const int *list)
{
	while (*list >= 0 && *list != value)
		list++;
	return *list >= 0;
}

const char *doctor_missing(const struct doctor *d, const int *wanted, char *buf, size_t size)
{
	size_t i, used = 0, n = 0;

	buf[0] = '\0';
	for (i = 0; i < DOCTOR_CAPABILITIES && used < size; i++) {
		const struct doctor_capability *c = &d->capabilities[i];

		if (!c->held && is_among(c->value, wanted))
			used += (size_t)snprintf(buf + used, size - used, "%s%s",
						 n++ ? ", " : " ", c->name);
	}
	if (n && used < size)
		snprintf(buf + used, size - used, "%s missing", n > 1 ? " are" : " is");
	return buf;
}

/* A line of a small file; "" if it cannot be read. */
static const char *read_line(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "re");

	buf[0] = '\0';
	if (!f)
		return buf;
	if (!fgets(buf, (int)size, f))
		buf[0] = '\0';
	fclose(f);
	buf[strcspn(buf, "\n")] = '\0';
	return buf;
}

/* Capabilities held in a user namespace count for nothing that gbpf does. */
static void check_user_namespace(struct doctor *d)
{
	char line[128];
	unsigned long inside = 1, outside = 1, count = 0;
	struct doctor_check *c;

	read_line("/proc/self/uid_map", line, sizeof(line));
	if (sscanf(line, "%lu %lu %lu", &inside, &outside, &count) != 3 ||
	    (!inside && !outside && count == 4294967295))
		return;
	c = doctor_check_add(d, "user_namespace", "user namespace", false);
	doctor_check_set(c, CHECK_NO, "gbpf runs in one of its own, where capabilities do not "
				      "count for the kernel's probes");
	c->advice = "run it on the host, as root";
}

static void check_lockdown(struct doctor *d)
{
	char line[128];
	struct doctor_check *c;

	read_line("/sys/kernel/security/lockdown", line, sizeof(line));
	if (!strstr(line, "[confidentiality]"))
		return;
	c = doctor_check_add(d, "lockdown", "kernel lockdown", false);
	doctor_check_set(c, CHECK_NO, "in confidentiality mode, where programs may not read the "
				      "kernel's memory");
	c->advice = "boot with lockdown=integrity, or without";
}

void doctor_rights(struct doctor *d)
{
	const struct passwd *user = getpwuid(geteuid());

	if (user)
		snprintf(d->user, sizeof(d->user), "%s", user->pw_name);
	else
		snprintf(d->user, sizeof(d->user), "%u", geteuid());
	read_capabilities(d);
	check_user_namespace(d);
	check_lockdown(d);
}
