// SPDX-License-Identifier: BSD-2-Clause
#include "target/labels.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "target/parse.h"
#include "target/procfs.h"

#define ENVIRON_MAX (256u << 10) /* an environment may have megabytes: bytes that are read */
#define UTS_NS_INIT_INO 0xEFFFFFFEu /* PROC_UTS_INIT_INO, include/linux/proc_ns.h */

/* The first line of /proc/PID/cgroup that names something of a kind says it. */
static int read_cgroup(int dir, struct labels *out)
{
	struct proc_lines lines;
	char *line;
	size_t len;
	int ret = proc_lines_open(&lines, dir, "cgroup");

	if (ret)
		return ret;
	while ((ret = proc_lines_next(&lines, &line, &len)) > 0) {
		if (!out->container[0])
			parse_cgroup_line(line, len, out->container, sizeof(out->container));
		if (!out->pod[0])
			parse_pod_line(line, len, out->pod, sizeof(out->pod));
		if (!out->slurm_job[0])
			parse_slurm_line(line, len, out->slurm_job, sizeof(out->slurm_job));
	}
	proc_lines_close(&lines);
	return ret;
}

static void read_environ(int dir, struct parsed_environ *e)
{
	int fd = openat(dir, "environ", O_RDONLY | O_CLOEXEC);
	size_t left = ENVIRON_MAX;
	char buf[4096];
	ssize_t n;

	if (fd < 0)
		return;
	while (left) {
		n = read(fd, buf, left < sizeof(buf) ? left : sizeof(buf));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		parse_environ(e, buf, (size_t)n);
		left -= (size_t)n;
	}
	explicit_bzero(buf, sizeof(buf));
	close(fd);
	parse_environ_end(e);
}

/* With the host's network a pod has the host's name too, which then is no pod's. */
static bool is_host_name(int dir, const char *name)
{
	struct utsname uts;
	struct stat st;

	if (!uname(&uts) && !strcmp(uts.nodename, name))
		return true;
	return !fstatat(dir, "ns/uts", &st, 0) && st.st_ino == UTS_NS_INIT_INO;
}

static void set(char *to, size_t size, const char *value)
{
	size_t n = strnlen(value, size - 1);

	memcpy(to, value, n);
	to[n] = '\0';
}

static void take_environ(int dir, const struct parsed_environ *e, struct labels *out)
{
	const char *host = e->value[ENV_HOSTNAME];

	if (out->pod[0] || e->value[ENV_KUBERNETES][0]) {
		if (e->value[ENV_POD][0])
			set(out->pod, sizeof(out->pod), e->value[ENV_POD]);
		else if (host[0] && !is_host_name(dir, host))
			set(out->pod, sizeof(out->pod), host);
		set(out->namespace, sizeof(out->namespace), e->value[ENV_NAMESPACE]);
	}
	if (!out->slurm_job[0])
		set(out->slurm_job, sizeof(out->slurm_job), e->value[ENV_SLURM_JOB]);
	if (e->value[ENV_RANK][0])
		snprintf(out->rank, sizeof(out->rank), "%.20s", e->value[ENV_RANK]);
	else if (e->value[ENV_LOCAL_RANK][0])
		snprintf(out->rank, sizeof(out->rank), "local %.20s", e->value[ENV_LOCAL_RANK]);
}

int labels_read(uint32_t pid, struct labels *out)
{
	struct parsed_environ environment = { 0 };
	int err, dir = proc_open(pid);

	memset(out, 0, sizeof(*out));
	if (dir < 0)
		return dir;
	err = read_cgroup(dir, out);
	if (!err) {
		read_environ(dir, &environment);
		take_environ(dir, &environment, out);
	}
	close(dir);
	return err;
}
