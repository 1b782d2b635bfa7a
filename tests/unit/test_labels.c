// SPDX-License-Identifier: BSD-2-Clause
/* Who a process is on a cluster: texts as the tools write them, and real processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <sched.h>
#include <sys/mount.h>

#include "children.h"
#include "target/labels.h"
#include "target/parse.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define UID "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
#define UID_SYSTEMD "0f1e2d3c_4b5a_6978_8796_a5b4c3d2e1f0"
#define STATIC_UID "00112233445566778899aabbccddeeff"

static void pods_of_both_drivers(void **state)
{
	static const struct {
		const char *line, *uid;
	} cases[] = {
		/* systemd, version 2 and 1, three classes of service */
		{ "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_SYSTEMD
		  ".slice/cri-containerd-" HASH ".scope", UID },
		{ "0::/kubepods.slice/kubepods-pod" UID_SYSTEMD ".slice/crio-" HASH
		  ".scope/container", UID },
		{ "4:memory:/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod"
		  UID_SYSTEMD ".slice/docker-" HASH ".scope", UID },
		{ "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
		  "kubelet-kubepods-burstable-pod" UID_SYSTEMD ".slice/x.scope", UID },
		/* cgroupfs */
		{ "0::/kubepods/burstable/pod" UID "/" HASH, UID },
		{ "9:name=systemd:/kubepods/pod" UID "/" HASH, UID },
		{ "1:cpu,cpuacct:/kubelet/kubepods/besteffort/pod" UID, UID },
		/* containerd given systemd's names under the other driver */
		{ "0::/system.slice/containerd.service/kubepods-burstable-pod" UID_SYSTEMD
		  ".slice:cri-containerd:" HASH, UID },
		/* static pods; gbpf in a cgroup namespace of its own */
		{ "0::/kubepods.slice/kubepods-pod" STATIC_UID ".slice/cri-containerd-" HASH
		  ".scope", STATIC_UID },
		{ "0::/../../kubepods-pod" UID_SYSTEMD ".slice/cri-containerd-" HASH ".scope",
		  UID },
		{ "0::/kubepods/pod" UID " (deleted)", UID },
	};
	char out[128];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *line = cases[i].line;

		assert_true(parse_pod_line(line, strlen(line), out, sizeof(out)));
		assert_string_equal(out, cases[i].uid);
	}
}

static void no_pods_elsewhere(void **state)
{
	static const char *const lines[] = {
		"", "0", "0::", "0::/", "0:::", "0::/kubepods", "0::/kubepods/pod",
		"0::/user.slice/pod" UID, "0::/docker/pod" UID "/" HASH,
		"0::/kubepods/pod" UID_SYSTEMD, "0::/kubepods/pod" UID "0",
		"0::/kubepods/podg" "f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0",
		"0::/kubepods.slice/kubepods-pod" UID ".slice",
		"0::/kubepods.slice/kubepods-burstable.slice", "0::/kubepods.slice/x-podman.slice",
		"kubepods/pod" UID,
	};
	char out[128];

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		strcpy(out, "left over");
		assert_false(parse_pod_line(lines[i], strlen(lines[i]), out, sizeof(out)));
		assert_string_equal(out, "");
	}
	assert_false(parse_pod_line("0::/kubepods/pod" UID, strlen("0::/kubepods/pod" UID), out,
				    sizeof(UID) - 1));
}

static void jobs_of_slurm(void **state)
{
	static const struct {
		const char *line, *job;
	} cases[] = {
		{ "4:memory:/slurm/uid_1000/job_4711/step_0/task_0", "4711" },
		{ "4:cpuset:/slurm_node07/uid_0/job_1/step_batch", "1" },
		{ "0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_3", "4711" },
		{ "0::/system.slice/node07_slurmstepd.scope/job_99/step_extern", "99" },
		/* a job in a job's own cgroup: the system made the outer one */
		{ "0::/slurm/job_7/slurm/job_8", "7" },
		{ "0::/slurm/uid_1/job_x/job_5", "5" },
	};
	static const char *const none[] = {
		"", "0::/", "0::/slurm", "0::/job_7", "0::/user/job_7/slurm", "0::/slurm/job_",
		"0::/slurm/job_7x", "0::/slurm/job_-7", "0::/slurm/xjob_7",
		"0::/slurm/job_99999999999999999999",
	};
	char out[64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *line = cases[i].line;

		assert_true(parse_slurm_line(line, strlen(line), out, sizeof(out)));
		assert_string_equal(out, cases[i].job);
	}
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		assert_false(parse_slurm_line(none[i], strlen(none[i]), out, sizeof(out)));
		assert_string_equal(out, "");
	}
}

/* With its NULs: as the kernel gives it, in pieces of so many bytes. */
static void environ_of(struct parsed_environ *e, const char *bytes, size_t len, size_t piece)
{
	memset(e, 0, sizeof(*e));
	for (size_t at = 0; at < len; at += piece)
		parse_environ(e, bytes + at, len - at < piece ? len - at : piece);
	parse_environ_end(e);
}

#define ENVIRON(text) text, sizeof(text)

static void environ_in_pieces_of_any_size(void **state)
{
	static const char text[] = "PATH=/bin\0RANK=3\0POD_NAME=trainer-0\0"
				   "=x\0\0nothing\0POD_NAMESPACE=ml=x\0HOSTNAME=h\n\x1b[1m\xff"
				   "\0SLURM_JOB_ID=12\0KUBERNETES_SERVICE_HOST=10.0.0.1"
				   "\0AWS_SECRET_ACCESS_KEY=s3cret";

	for (size_t piece = 1; piece <= sizeof(text); piece++) {
		struct parsed_environ e;

		environ_of(&e, text, sizeof(text) - 1, piece);
		assert_string_equal(e.value[ENV_RANK], "3");
		assert_string_equal(e.value[ENV_POD], "trainer-0");
		assert_string_equal(e.value[ENV_NAMESPACE], "ml=x");
		assert_string_equal(e.value[ENV_HOSTNAME], "h\n\x1b[1m\xff");
		assert_string_equal(e.value[ENV_SLURM_JOB], "12");
		assert_string_equal(e.value[ENV_KUBERNETES], "10.0.0.1");
		assert_string_equal(e.value[ENV_LOCAL_RANK], "");
		/* nothing else of it is left anywhere in what was filled */
		assert_null(memmem(&e, sizeof(e), "s3cret", 6));
	}
}

static void environ_prefers_what_says_more(void **state)
{
	struct parsed_environ e;

	environ_of(&e, ENVIRON("PMI_RANK=5\0SLURM_PROCID=6\0RANK=7\0OMPI_COMM_WORLD_RANK=8"), 9);
	assert_string_equal(e.value[ENV_RANK], "7");
	environ_of(&e, ENVIRON("RANK=\0SLURM_PROCID=6\0RANK=7\0RANK=9"), 9);
	assert_string_equal(e.value[ENV_RANK], "7");
	environ_of(&e, ENVIRON("RANK=gold\0OMPI_COMM_WORLD_RANK=8\0PMIX_RANK= 9"), 9);
	assert_string_equal(e.value[ENV_RANK], "8");
	environ_of(&e, ENVIRON("MY_POD_NAME=a\0POD_NAME=b\0POD_NAME=c\0KUBERNETES_NAMESPACE=n"), 9);
	assert_string_equal(e.value[ENV_POD], "b");
	assert_string_equal(e.value[ENV_NAMESPACE], "n");
	environ_of(&e, ENVIRON("XRANK=1\0RANKX=2\0 RANK=3\0rank=4\0RANK"), 9);
	assert_string_equal(e.value[ENV_RANK], "");
	environ_of(&e, ENVIRON("RANK=-1\0SLURM_JOB_ID=1;2\0SLURM_JOBID=123456789012345678901"), 9);
	assert_string_equal(e.value[ENV_RANK], "");
	assert_string_equal(e.value[ENV_SLURM_JOB], "");
}

static void environ_bounds_values(void **state)
{
	static char text[100000];
	struct parsed_environ e;
	size_t len;

	memset(text, 'n', sizeof(text));
	len = (size_t)sprintf(text, "POD_NAME=");
	text[len] = 'n';
	memcpy(text + 50000, "\0RANK=4", 8);
	environ_of(&e, text, sizeof(text), 4096);
	assert_int_equal(strlen(e.value[ENV_POD]), sizeof(e.value[0]) - 1);
	assert_int_equal(strspn(e.value[ENV_POD], "n"), sizeof(e.value[0]) - 1);
	/* the remainder of a long entry is no entry */
	assert_string_equal(e.value[ENV_RANK], "4");
	memcpy(text + 50000, "nnRANK=4", 9);
	environ_of(&e, text, sizeof(text), 4096);
	assert_string_equal(e.value[ENV_RANK], "");
}

/* ---- real processes ---- */

struct plan {
	const char *host; /* in a UTS namespace of its own, or NULL */
	unsigned fill;	  /* times 120,000 bytes of environment before the rest */
	const char *const *environ;
};

static const struct plan *plan;

/* Becomes a shell with that environment, which says that it runs and stops. */
static void started_child(int fd)
{
	static char filling[120000] = "FILL=";
	static char *envp[64];
	char *argv[] = { "sh", "-c", "printf 1234 >&9; kill -STOP $$", NULL };
	size_t n = 0;

	if (plan->host && (unshare(CLONE_NEWUTS) || sethostname(plan->host, strlen(plan->host))))
		_exit(1);
	if (plan->fill) {
		memset(filling + 5, 'f', sizeof(filling) - 6);
		while (n < plan->fill)
			envp[n++] = filling;
	}
	for (size_t i = 0; plan->environ[i]; i++)
		envp[n++] = (char *)plan->environ[i];
	dup2(fd, 9);
	execve("/bin/sh", argv, envp);
	_exit(1);
}

static void labels_of(const struct plan *p, struct labels *out)
{
	pid_t pid;

	plan = p;
	pid = child_start(started_child, NULL);
	assert_true(pid > 0);
	memset(out, 'x', sizeof(*out));
	assert_int_equal(labels_read((uint32_t)pid, out), 0);
	child_stop(pid);
	assert_int_equal(labels_read((uint32_t)pid, out), -ESRCH);
	assert_string_equal(out->rank, "");
	memset(out, 'x', sizeof(*out));
	pid = child_start(started_child, NULL);
	assert_true(pid > 0);
	assert_int_equal(labels_read((uint32_t)pid, out), 0);
	child_stop(pid);
}

#define PLAN(...) &(struct plan){ .environ = (const char *const[]){ __VA_ARGS__, NULL } }
#define PLAN_ON(name, ...) \
	&(struct plan){ .host = name, .environ = (const char *const[]){ __VA_ARGS__, NULL } }

static void of_a_pod(void **state)
{
	struct labels l;

	labels_of(PLAN_ON("web-0", "KUBERNETES_SERVICE_HOST=10.0.0.1", "HOSTNAME=web-0",
			  "POD_NAMESPACE=ml", "RANK=11", "LOCAL_RANK=3"), &l);
	assert_string_equal(l.pod, "web-0");
	assert_string_equal(l.namespace, "ml");
	assert_string_equal(l.rank, "11");
	assert_string_equal(l.slurm_job, "");
	labels_of(PLAN_ON("web-0", "KUBERNETES_SERVICE_HOST=10.0.0.1", "HOSTNAME=web-0",
			  "POD_NAME=named"), &l);
	assert_string_equal(l.pod, "named");
	assert_string_equal(l.namespace, "");
	assert_string_equal(l.rank, "");
}

static void names_of_hosts_are_no_pods(void **state)
{
	struct labels l;

	/* with the host's network it has the host's UTS namespace */
	labels_of(PLAN("KUBERNETES_SERVICE_HOST=10.0.0.1", "HOSTNAME=node7", "LOCAL_RANK=2"), &l);
	assert_string_equal(l.pod, "");
	assert_string_equal(l.rank, "local 2");
	/* and outside Kubernetes these names mean something else, or nothing */
	labels_of(PLAN_ON("web-0", "HOSTNAME=web-0", "POD_NAME=x", "POD_NAMESPACE=y",
			  "SLURM_JOB_ID=88", "SLURM_PROCID=4"), &l);
	assert_string_equal(l.pod, "");
	assert_string_equal(l.namespace, "");
	assert_string_equal(l.slurm_job, "88");
	assert_string_equal(l.rank, "4");
}

static void environments_are_read_so_far(void **state)
{
	static const char *const last[] = { "RANK=5", NULL };
	struct plan within = { .fill = 2, .environ = last };
	struct plan beyond = { .fill = 3, .environ = last };
	struct labels l;

	labels_of(&within, &l);
	assert_string_equal(l.rank, "5");
	labels_of(&beyond, &l);
	assert_string_equal(l.rank, "");
}

static int without_rights(void *ctx)
{
	const pid_t *pid = ctx;
	struct labels l;

	CHECK(!become_nobody());
	CHECK(labels_read((uint32_t)*pid, &l) == 0);
	CHECK(l.rank[0] == '\0');
	CHECK(labels_read(0, &l) == -ESRCH);
	return 0;
}

static void others_without_rights(void **state)
{
	pid_t pid;

	plan = PLAN("RANK=5");
	pid = child_start(started_child, NULL);
	assert_true(pid > 0);
	assert_int_equal(child_run(without_rights, &pid), 0);
	child_stop(pid);
}

/* A cgroup file of our choice over the process's own, which only this namespace sees. */
static int with_cgroup(void *ctx)
{
	static const char text[] = "4:cpu:/\n1:name=x:/slurm/uid_1/job_31/step_0\n"
				   "0::/kubepods/burstable/pod" UID "/" HASH "\n";
	char path[64], file[] = "/tmp/gbpf-test-cgroup-XXXXXX";
	int fd = mkstemp(file);
	struct labels l;

	CHECK(fd >= 0 && write(fd, text, sizeof(text) - 1) == sizeof(text) - 1 && !close(fd));
	CHECK(!unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
	snprintf(path, sizeof(path), "/proc/%d/cgroup", *(pid_t *)ctx);
	CHECK(!mount(file, path, NULL, MS_BIND, NULL) && !unlink(file));
	CHECK(labels_read((uint32_t)*(pid_t *)ctx, &l) == 0);
	CHECK(!strcmp(l.container, "0123456789ab"));
	CHECK(!strcmp(l.pod, UID)); /* nobody says its name */
	CHECK(!strcmp(l.slurm_job, "31")); /* and not what the environment says */
	CHECK(!strcmp(l.namespace, "ml"));
	return 0;
}

static void cgroups_say_more_than_environments(void **state)
{
	pid_t pid;

	plan = PLAN("SLURM_JOB_ID=32", "POD_NAMESPACE=ml");
	pid = child_start(started_child, NULL);
	assert_true(pid > 0);
	assert_int_equal(child_run(with_cgroup, &pid), 0);
	child_stop(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pods_of_both_drivers),
		cmocka_unit_test(no_pods_elsewhere),
		cmocka_unit_test(jobs_of_slurm),
		cmocka_unit_test(environ_in_pieces_of_any_size),
		cmocka_unit_test(environ_prefers_what_says_more),
		cmocka_unit_test(environ_bounds_values),
		cmocka_unit_test(of_a_pod),
		cmocka_unit_test(names_of_hosts_are_no_pods),
		cmocka_unit_test(environments_are_read_so_far),
		cmocka_unit_test(others_without_rights),
		cmocka_unit_test(cgroups_say_more_than_environments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
