// SPDX-License-Identifier: BSD-2-Clause
/* Texts that say who a process is on a cluster: pods and jobs in cgroup paths, environments. */
#include "target/parse.h"

#include <ctype.h>
#include <string.h>

struct text {
	const char *s;
	size_t len;
};

/* The next component of a path, the outermost first; false at its end. */
static bool next_component(struct text *path, struct text *out)
{
	const char *slash;

	while (path->len && *path->s == '/') {
		path->s++;
		path->len--;
	}
	slash = memchr(path->s, '/', path->len);
	*out = (struct text){ path->s, slash ? (size_t)(slash - path->s) : path->len };
	path->s += out->len;
	path->len -= out->len;
	return out->len > 0;
}

static bool holds(struct text t, const char *word)
{
	return memmem(t.s, t.len, word, strlen(word)) != NULL;
}

/* Kubernetes writes 8-4-4-4-12 digits; of static pods it has a hash without dashes. */
static bool is_uid(struct text t, char dash)
{
	if (t.len != 32 && t.len != 36)
		return false;
	for (size_t i = 0; i < t.len; i++) {
		bool at_dash = t.len == 36 && (i == 8 || i == 13 || i == 18 || i == 23);

		if (at_dash ? t.s[i] != dash : !isxdigit((unsigned char)t.s[i]))
			return false;
	}
	return true;
}

static bool copy_uid(struct text t, char *out, size_t size)
{
	if (size <= t.len)
		return false;
	for (size_t i = 0; i < t.len; i++)
		out[i] = t.s[i] == '_' ? '-' : t.s[i];
	out[t.len] = '\0';
	return true;
}

/*
 * "pod" and the UID (cgroupfs driver), "kubepods-burstable-pod" and the UID with
 * underscores and ".slice" (systemd driver; containerd may append ":cri-containerd:ID").
 */
static bool pod_component(struct text t, char *out, size_t size)
{
	static const char prefix[] = "pod", slice[] = ".slice";
	const char *colon = memchr(t.s, ':', t.len), *pod;
	size_t n = sizeof(slice) - 1;
	struct text uid;

	if (colon)
		t.len = (size_t)(colon - t.s);
	if (t.len > n && !memcmp(t.s + t.len - n, slice, n)) {
		t.len -= n;
		pod = memmem(t.s, t.len, "-pod", 4);
		if (!pod)
			return false;
		pod += 4;
		uid = (struct text){ pod, t.len - (size_t)(pod - t.s) };
		return is_uid(uid, '_') && copy_uid(uid, out, size);
	}
	n = sizeof(prefix) - 1;
	if (t.len <= n || memcmp(t.s, prefix, n) != 0)
		return false;
	uid = (struct text){ t.s + n, t.len - n };
	return is_uid(uid, '-') && copy_uid(uid, out, size);
}

bool parse_pod_line(const char *line, size_t len, char *out, size_t size)
{
	struct text path, part;
	bool kubernetes = false;

	if (size)
		out[0] = '\0';
	path = (struct text){ parse_cgroup_path(line, &len), len };
	while (path.s && next_component(&path, &part)) {
		kubernetes = kubernetes || holds(part, "kubepods");
		if (kubernetes && pod_component(part, out, size))
			return true;
	}
	return false;
}

/* slurm/uid_1000/job_123 (version 1), slurmstepd.scope/job_123 (version 2). */
bool parse_slurm_line(const char *line, size_t len, char *out, size_t size)
{
	static const char prefix[] = "job_";
	size_t n = sizeof(prefix) - 1;
	struct text path, part;
	bool slurm = false;

	if (size)
		out[0] = '\0';
	path = (struct text){ parse_cgroup_path(line, &len), len };
	while (path.s && next_component(&path, &part)) {
		const char *digits = part.s + n, *p = digits, *end = part.s + part.len;
		uint64_t job;

		slurm = slurm || holds(part, "slurm");
		if (!slurm || part.len <= n || memcmp(part.s, prefix, n) != 0 ||
		    !parse_number(&p, end, 10, &job) || p != end || size <= (size_t)(end - digits))
			continue;
		memcpy(out, digits, (size_t)(end - digits));
		out[end - digits] = '\0';
		return true;
	}
	return false;
}

/* Within a group the first name goes before the others. */
static const struct {
	enum parsed_variable variable;
	bool digits;
	const char *names[6];
} VARIABLES[] = {
	{ ENV_POD, false, { "POD_NAME", "K8S_POD_NAME", "KUBERNETES_POD_NAME", "MY_POD_NAME" } },
	{ ENV_NAMESPACE, false, { "POD_NAMESPACE", "K8S_POD_NAMESPACE", "KUBERNETES_POD_NAMESPACE",
				  "KUBERNETES_NAMESPACE", "MY_POD_NAMESPACE" } },
	{ ENV_HOSTNAME, false, { "HOSTNAME" } },
	{ ENV_KUBERNETES, false, { "KUBERNETES_SERVICE_HOST" } },
	{ ENV_RANK, true, { "RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
			    "PMI_RANK" } },
	{ ENV_LOCAL_RANK, true, { "LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK" } },
	{ ENV_SLURM_JOB, true, { "SLURM_JOB_ID", "SLURM_JOBID" } },
};

/* Ranks and jobs are numbers; anything else under their names is not ours to show. */
static bool all_digits(const char *s)
{
	size_t n = strspn(s, "0123456789");

	return n && n <= 20 && !s[n];
}

static void keep(struct parsed_environ *e, enum parsed_variable which, unsigned order,
		 const char *value)
{
	size_t n = strnlen(value, sizeof(e->value[which]) - 1);

	if (!n || (e->order[which] && e->order[which] <= order))
		return;
	memcpy(e->value[which], value, n);
	e->value[which][n] = '\0';
	e->order[which] = order;
}

/* An entry that is whole, or as much of it as fits, which is enough for what is kept. */
static void take_entry(struct parsed_environ *e)
{
	char *equals;

	e->entry[e->len] = '\0';
	e->len = 0;
	equals = strchr(e->entry, '=');
	if (!equals)
		return;
	*equals = '\0';
	for (size_t i = 0; i < sizeof(VARIABLES) / sizeof(VARIABLES[0]); i++)
		for (unsigned k = 0; k < 6 && VARIABLES[i].names[k]; k++)
			if (!strcmp(e->entry, VARIABLES[i].names[k]) &&
			    (!VARIABLES[i].digits || all_digits(equals + 1)))
				keep(e, VARIABLES[i].variable, k + 1, equals + 1);
}

void parse_environ(struct parsed_environ *e, const char *bytes, size_t len)
{
	while (len) {
		const char *nul = memchr(bytes, '\0', len);
		size_t n = nul ? (size_t)(nul - bytes) : len;
		size_t room = sizeof(e->entry) - 1 - e->len;

		memcpy(e->entry + e->len, bytes, n < room ? n : room);
		e->len += n < room ? n : room;
		if (!nul)
			return;
		take_entry(e);
		bytes = nul + 1;
		len -= n + 1;
	}
}

void parse_environ_end(struct parsed_environ *e)
{
	if (e->len)
		take_entry(e);
	explicit_bzero(e->entry, sizeof(e->entry));
}
