/* SPDX-License-Identifier: BSD-2-Clause */
/* What this kernel offers, found out by using it. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf/gbpf.h"
#include "cmd/doctor.h"
#include "probe/hold.h"
#include "util/text.h"

const char *doctor_why(int error)
{
	switch (error < 0 ? -error : error) {
	case EPERM:
	case EACCES:
		return "not permitted";
	case EOPNOTSUPP:
	case EINVAL:
		return "this kernel does not know it";
	case ENOENT:
		return "this kernel is built without it";
	case ESRCH:
		return "no such process";
	default:
		return strerror(error < 0 ? -error : error);
	}
}

struct doctor_check *doctor_check_add(struct doctor *d, const char *key, const char *name,
				      bool needed)
{
	struct doctor_check *c = &d->checks[d->checks_count];

	if (d->checks_count + 1 < DOCTOR_CHECKS)
		d->checks_count++;
	*c = (struct doctor_check){
		.key = key, .name = name, .needed = needed, .result = CHECK_NOT_TRIED};
	snprintf(c->detail, sizeof(c->detail), "not tried: %s",
		 d->probes ? "it needs the host's process ids" : "there are no probes");
	return c;
}

void doctor_check_set(struct doctor_check *c, enum doctor_result result, const char *format, ...)
{
	va_list args;

	c->result = result;
	va_start(args, format);
	vsnprintf(c->detail, sizeof(c->detail), format, args);
	va_end(args);
}

static void try_machine(struct doctor *d)
{
	struct doctor_check *c = doctor_check_add(d, "machine", "machine", true);

	if (!strcmp(d->system.machine, "x86_64"))
		doctor_check_set(c, CHECK_OK, "x86_64");
	else
		doctor_check_set(c, CHECK_NO,
				 "%s: probes are not proven safe on it, and gbpf attaches none",
				 d->system.machine);
}

static void try_btf(struct doctor *d)
{
	struct doctor_check *c = doctor_check_add(d, "btf", "kernel types (BTF)", true);

	if (!access("/sys/kernel/btf/vmlinux", R_OK)) {
		doctor_check_set(c, CHECK_OK, "/sys/kernel/btf/vmlinux");
		return;
	}
	doctor_check_set(c, CHECK_NO, "/sys/kernel/btf/vmlinux: %s", strerror(errno));
	c->advice = "use a kernel built with CONFIG_DEBUG_INFO_BTF, as distributions ship them";
}

static void try_namespace(struct doctor *d)
{
	struct doctor_check *c = doctor_check_add(d, "host_pids", "host's process ids", true);

	if (process_host_namespace()) {
		doctor_check_set(c, CHECK_OK, "gbpf runs in the host's pid namespace");
		return;
	}
	doctor_check_set(c, CHECK_NO, "gbpf runs in a pid namespace of its own, and the kernel "
				      "reports the host's numbers");
	c->advice = "run it on the host, or in a container with the host's: docker run --pid=host";
}

/* Each rung by itself; the first that works is kept, as trace would use it. */
static void try_rungs(struct doctor *d)
{
	struct probes_trial trials[3];
	enum rung rung;

	for (rung = RUNG_SESSION; rung <= RUNG_SINGLE; rung++) {
		struct doctor_rung *r = &d->rungs[rung - RUNG_SESSION];
		struct probes_trial *t = &trials[rung - RUNG_SESSION];
		struct probes_options o = {.rung = rung};
		struct probes *p = NULL;

		*r = (struct doctor_rung){.rung = rung, .result = CHECK_NOT_TRIED};
		if (d->options->rung != RUNG_AUTO && d->options->rung != (int)rung)
			continue;
		r->error = probes_new(&p, &o, trials);
		r->result = r->error ? CHECK_NO : CHECK_OK;
		if (r->error) {
			r->step = t->load ? "load" : "attach";
			r->error = t->load ? t->load : t->attach;
		} else if (d->probes) {
			probes_free(p);
		} else {
			d->probes = p;
		}
	}
}

static void try_attach(struct doctor *d)
{
	struct doctor_check *c = doctor_check_add(d, "attach", "probes on functions", true);
	bool denied = false;
	size_t i;

	if (d->probes) {
		doctor_check_set(c, CHECK_OK, "by %s", rung_name(probes_rung(d->probes)));
		return;
	}
	for (i = 0; i < 3; i++)
		denied |= d->rungs[i].error == -EPERM || d->rungs[i].error == -EACCES;
	doctor_check_set(c, CHECK_NO, denied ? "not permitted on any rung that the kernel knows"
					     : "no rung works");
	c->advice = denied ? "sudo gbpf doctor, or give it the capabilities named below"
			   : "use a kernel of 5.15 or later with BTF and uprobes";
}

/* What is tried on our own process is found by its number. */
static bool usable(const struct doctor *d)
{
	return d->probes && process_host_namespace();
}

/* Calls a probed function of ours some thousand times: what does a hit cost, and arrive? */
static void try_events(struct doctor *d)
{
	struct doctor_check *c = doctor_check_add(d, "events", "events through rings", true);
	char size[32];
	int err, n = 0;

	if (!usable(d))
		return;
	err = calibrate(d->probes, &d->cost, NULL, NULL);
	if (!err)
		n = rings_consume(d->rings);
	if (err || n <= 0) {
		doctor_check_set(c, CHECK_NO, "%s",
				 err ? doctor_why(err) : "no record came");
		return;
	}
	d->cost_known = true;
	d->stepped_known = !calibrate_stepped(d->probes, &d->stepped_ns);
	(void)rings_consume(d->rings);
	doctor_check_set(c, CHECK_OK, "%d records came; %zu ring%s of %s", n,
			 probes_ring_count(d->probes), probes_ring_count(d->probes) > 1 ? "s" : "",
			 text_bytes(probes_ring_bytes(d->probes), size, sizeof(size)));
}

/* A child of ours is born and ends: is it told? */
static void try_tasks(struct doctor *d)
{
	const unsigned both = 1u << GBPF_PROCESS_FORK | 1u << GBPF_PROCESS_EXIT;
	struct doctor_check *c = doctor_check_add(d, "process_notices", "process notices", true);
	struct gbpf_switches *sw;
	pid_t child;
	int err;

	if (!usable(d))
		return;
	err = probes_attach_tasks(d->probes);
	if (err) {
		doctor_check_set(c, CHECK_NO, "%s", doctor_why(err));
		return;
	}
	sw = probes_switches(d->probes);
	sw->mode = GBPF_MODE_PIDS;
	sw->follow = 1;
	probes_want(d->probes, sw->self, true);
	child = fork();
	if (!child)
		_exit(0);
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	probes_want(d->probes, sw->self, false);
	sw->mode = GBPF_MODE_OFF;
	sw->follow = 0;
	d->sink->child = child > 0 ? (uint32_t)child : 0;
	(void)rings_consume(d->rings);
	if ((d->sink->child_seen & both) == both)
		doctor_check_set(c, CHECK_OK, "fork and exit of a child were told");
	else
		doctor_check_set(c, CHECK_NO, "fork and exit of a child were not told");
}

static int on_mapping(const struct watch_notice *n, void *ctx)
{
	bool *seen = ctx;

	*seen |= n->kind == WATCH_MAP && n->pid == (uint32_t)getpid();
	return 0;
}

static bool any_path(const char *path, void *ctx)
{
	return true;
}

/* Maps our own file as a library is mapped. */
static void map_something(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void *at;

	if (fd < 0)
		return;
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (at != MAP_FAILED)
		munmap(at, 4096);
	close(fd);
}

static void try_watch(struct doctor *d)
{
	struct doctor_check *c = doctor_check_add(d, "mapping_notices", "mapping notices", true);
	struct watch *w = NULL;
	bool seen = false;
	int err = watch_new(&w);

	if (err) {
		doctor_check_set(c, CHECK_NO, "system-wide perf events: %s", doctor_why(err));
		c->advice = "CAP_PERFMON, or kernel.perf_event_paranoid and "
			    "kernel.perf_event_mlock_kb, decide on them";
		return;
	}
	watch_filter(w, any_path, NULL);
	map_something();
	err = watch_consume(w, on_mapping, &seen);
	watch_free(w);
	if (err < 0)
		doctor_check_set(c, CHECK_NO, "reading the notices: %s", doctor_why(err));
	else if (seen)
		doctor_check_set(c, CHECK_OK, "a mapping of our own was told");
	else
		doctor_check_set(c, CHECK_NO, "a mapping of our own was not told");
}

static void try_seccomp(struct doctor *d)
{
	struct doctor_check *c = doctor_check_add(d, "return_probes", "return probes", false);
	int killed;

	if (!usable(d))
		return;
	killed = calibrate_seccomp(d->probes);
	(void)rings_consume(d->rings);
	if (killed < 0) {
		c->needed = true; /* trace does not attach without knowing */
		doctor_check_set(c, CHECK_NO, "could not be tried on a process with a seccomp "
					      "filter: %s", doctor_why(killed));
		return;
	}
	d->returns_safe = !killed;
	if (d->returns_safe) {
		doctor_check_set(c, CHECK_OK, "do not harm processes with a seccomp filter");
		return;
	}
	doctor_check_set(c, CHECK_NO, "would kill processes with a seccomp filter, containers "
				      "among them: only entries are probed, so calls have no "
				      "duration");
	c->advice = "a kernel update that lets the uretprobe system call pass seccomp";
}

static void try_hold(struct doctor *d)
{
	struct doctor_check *c = doctor_check_add(d, "hold", "holding a command", false);
	struct hold *h = NULL;
	int err;

	if (!usable(d))
		return;
	err = hold_new(&h, d->probes, 1, 0);
	hold_free(h);
	if (!err)
		doctor_check_set(c, CHECK_OK, "waits at a library that nobody knew until probed");
	else
		doctor_check_set(c, CHECK_NO, "%s: calls of the first 6 to 22 ms after a library "
					      "that nobody knew was mapped are missed",
				 doctor_why(err));
}

static void read_driver(struct doctor *d)
{
	FILE *f = fopen("/sys/module/nvidia/version", "re");

	if (!f)
		return;
	if (fscanf(f, "%63s", d->driver) != 1)
		d->driver[0] = '\0';
	fclose(f);
}

int doctor_try(struct doctor *d)
{
	int err = 0;

	uname(&d->system);
	d->cpus = sysconf(_SC_NPROCESSORS_ONLN);
	read_driver(d);
	try_machine(d);
	try_btf(d);
	try_namespace(d);
	try_rungs(d);
	try_attach(d);
	if (d->probes)
		err = doctor_rings(d);
	if (err)
		return err;
	try_events(d);
	try_tasks(d);
	try_watch(d);
	try_seccomp(d);
	try_hold(d);
	return 0;
}
