/* SPDX-License-Identifier: BSD-2-Clause */
#include "monitor/monitor.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "monitor/private.h"
#include "probe/catalogue.h"

#define LOOK_NS 1000000000LL
#define NOTICES_NS 10000000LL /* new mappings may wait so long, on a machine that makes many */
#define USAGE_NS 5000000000LL
#define SWEEP_NS 10000000000LL
#define GPU_NS 1000000000LL

int64_t mon_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

void mon_tell(const struct monitor *m, const char *format, ...)
{
	char text[1024];
	va_list args;

	if (!m->options.tell)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	m->options.tell(m->options.tell_ctx, text);
}

static bool allocates_device_memory(const struct api *api)
{
	return api->arg[GBPF_ARG_OUT] && api->arg[GBPF_ARG_BYTES] && !strstr(api->name, "Host");
}

unsigned mon_class(const struct api *api)
{
	switch (api->kind) {
	case API_LAUNCH:
		return GBPF_CLASS_LAUNCH;
	case API_GRAPH:
		return strstr(api->name, "GraphLaunch") ? GBPF_CLASS_LAUNCH : GBPF_CLASS_OTHER;
	case API_SYNC:
		return GBPF_CLASS_SYNC | GBPF_CLASS_WAITS;
	case API_QUERY:
		return GBPF_CLASS_QUERY | GBPF_CLASS_WAITS;
	case API_COPY:
		return GBPF_CLASS_COPY | (api->blocking ? GBPF_CLASS_WAITS : 0u);
	case API_ALLOC:
		return allocates_device_memory(api) ? GBPF_CLASS_ALLOC : GBPF_CLASS_OTHER;
	case API_FREE:
		return GBPF_CLASS_FREE;
	case API_MODULE:
		return strstr(api->name, "Load") ? GBPF_CLASS_MODULE : GBPF_CLASS_OTHER;
	default:
		return GBPF_CLASS_OTHER;
	}
}

uint32_t mon_cost(const struct monitor *m, unsigned class)
{
	if (!probes_returns(m->probes))
		return m->counts.mon->cost_entry;
	return class == GBPF_CLASS_LAUNCH ? m->counts.mon->cost_launch : m->counts.mon->cost_pair;
}

/* Launches are what there can be many of: in windows, until they are known to be few. */
static bool begins_hot(const struct api *api)
{
	unsigned class = mon_class(api) & ~(unsigned)GBPF_CLASS_WAITS;

	return class == GBPF_CLASS_LAUNCH || class == GBPF_CLASS_QUERY;
}

static bool never_hot(const struct api *api)
{
	return false;
}

static void explain(int err, char *why, size_t size)
{
	if (err == -EPERM || err == -EACCES)
		snprintf(why, size, "not permitted: run it with sudo (gbpf doctor says which "
				    "rights are missing)");
	else if (err == -EOPNOTSUPP)
		snprintf(why, size, "this kernel offers no way to attach: 5.15 or later with BTF "
				    "and uprobes is needed (gbpf doctor says what was tried)");
	else
		snprintf(why, size, "setting up failed: %s", strerror(-err));
}

static int on_notice(void *ctx, void *data, size_t size)
{
	struct monitor *m = ctx;
	const struct gbpf_hdr *h = data;

	if (size < sizeof(*h))
		return 0;
	if (GBPF_TAG_TYPE(h->tag) == GBPF_REC_TRIP) {
		m->tripped.pid = h->pid;
		m->tripped.tid = h->tid;
		m->tripped.set = true;
	} else if (GBPF_TAG_TYPE(h->tag) == GBPF_REC_PROCESS &&
		   size >= sizeof(struct gbpf_process)) {
		const struct gbpf_process *p = data;
		struct mon_process *known = process_get(m, h->pid);

		if (p->event == GBPF_PROCESS_EXIT)
			process_ended(m, h->pid);
		else if (p->event == GBPF_PROCESS_EXEC && known)
			process_info_read(known);
	}
	return 0;
}

/* What a thread waits for in a system call, by number; x86-64. */
static void syscalls_name(uint8_t *wait)
{
#if defined(__x86_64__)
	static const uint16_t pipes[] = {
		SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_poll, SYS_ppoll, SYS_select,
		SYS_pselect6, SYS_epoll_wait, SYS_epoll_pwait, 441 /* epoll_pwait2 */, SYS_recvfrom,
		SYS_recvmsg, SYS_recvmmsg, SYS_sendto, SYS_sendmsg, SYS_sendmmsg, SYS_accept,
		SYS_accept4, SYS_connect, SYS_splice, SYS_sendfile,
	};
	static const uint16_t disks[] = {SYS_fsync, SYS_fdatasync, SYS_pread64, SYS_pwrite64,
					 SYS_preadv, SYS_pwritev, SYS_msync, SYS_sync_file_range};
	static const uint16_t sleeps[] = {SYS_nanosleep, SYS_clock_nanosleep, SYS_pause};
	size_t i;

	wait[SYS_futex] = GBPF_WAIT_LOCK;
	for (i = 0; i < sizeof(pipes) / sizeof(*pipes); i++)
		wait[pipes[i]] = GBPF_WAIT_PIPE;
	for (i = 0; i < sizeof(disks) / sizeof(*disks); i++)
		wait[disks[i]] = GBPF_WAIT_DISK;
	for (i = 0; i < sizeof(sleeps) / sizeof(*sleeps); i++)
		wait[sleeps[i]] = GBPF_WAIT_SLEEP;
#endif
}

static int returns_check(struct monitor *m)
{
	int unsafe = probes_returns(m->probes) ? calibrate_seccomp(m->probes) : 0;

	if (unsafe > 0) {
		probes_entry_only(m->probes);
		mon_tell(m, "return probes would kill processes with a seccomp filter on this "
			 "kernel: calls are counted, their durations are not known");
	}
	return unsafe < 0 ? unsafe : 0;
}

static int programs_open(struct monitor *m)
{
	struct images_options io = {
		.selection = &m->selection,
		.windows = true,
		.hot = m->options.max_overhead < 1 ? begins_hot : never_hot,
		.dry = m->options.max_overhead <= 0,
	};
	int err;

	m->options.probes.counting = true;
	err = probes_new(&m->probes, &m->options.probes, NULL);
	if (!err)
		err = counts_open(&m->counts, m->probes);
	if (!err)
		err = returns_check(m);
	if (!err)
		err = watch_new(&m->watch);
	io.few = !err && probes_rung(m->probes) == RUNG_SINGLE;
	if (!err)
		err = images_new(&m->images, m->probes, &io);
	if (!err)
		err = closer_new(&m->closer);
	if (!err)
		err = cost_measure(m);
	if (!err)
		err = probes_attach_tasks(m->probes);
	if (err)
		return err;
	syscalls_name(m->counts.syscall_wait);
	m->notices = ring_buffer__new(m->counts.notices_fd, on_notice, m, NULL);
	return m->notices ? 0 : errno ? -errno : -ENOMEM;
}

int monitor_new(struct monitor **out, const struct monitor_options *o, char *why, size_t size)
{
	struct monitor *m = calloc(1, sizeof(*m));
	int err = -ENOMEM;

	if (m) {
		m->options = *o;
		m->counts.switch_link = -1;
		if (getrandom(&m->seed, sizeof(m->seed), GRND_NONBLOCK) < 0)
			m->seed = (uint64_t)mon_now();
		err = selection_parse(&m->selection, "driver", why, size);
	}
	if (!err)
		err = programs_open(m);
	if (err) {
		explain(err, why, size);
		monitor_free(m);
		return err;
	}
	*out = m;
	return 0;
}

int monitor_start(struct monitor *m, char *why, size_t size)
{
	int err = find_start(m, why, size);

	if (err)
		return err;
	err = counts_attach_switch(&m->counts, m->probes);
	if (err)
		mon_tell(m, "the scheduler's notices cannot be had here (%s): what threads wait "
			 "for is not known", strerror(-err));
	gpu_sampler_new(&m->sampler, GPU_NS); /* without it there are no GPU numbers */
	m->begin = m->last_look = mon_now();
	m->next_tick = m->begin + PERIOD_NS;
	m->next_look = m->begin + PERIOD_NS;
	m->next_sweep = m->begin + SWEEP_NS;
	m->next_usage = m->begin;
	m->self_cpu_ns = self_cpu_ns();
	return 0;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void wait_for_work(struct monitor *m, int64_t max_ns)
{
	int64_t now = mon_now(), next = windows_next(m), ns;
	bool soon = now < m->noticed + NOTICES_NS;
	struct pollfd fds[] = {
		{.fd = ring_buffer__epoll_fd(m->notices), .events = POLLIN},
		{.fd = watch_fd(m->watch), .events = POLLIN},
	};
	struct timespec t;

	next = earlier(next, m->next_tick);
	next = earlier(next, m->begin + m->options.interval_ns);
	if (soon)
		next = earlier(next, m->noticed + NOTICES_NS);
	ns = earlier(next - now, max_ns);
	if (ns < 0)
		ns = 0;
	t.tv_sec = ns / 1000000000;
	t.tv_nsec = ns % 1000000000;
	m->told = false;
	if (ppoll(fds, soon ? 1 : 2, &t, NULL) <= 0)
		return;
	m->told = fds[1].revents & POLLIN;
}

/* What is probed how is chosen anew, by what was seen just now. */
static int choose(struct monitor *m, int64_t now)
{
	m->next_look = now + LOOK_NS;
	return plan_all(m, now);
}

/* The same, after all of it is looked at. */
static int look(struct monitor *m, int64_t now)
{
	int err = harvest(m);

	if (err)
		return err;
	harvest_steady(m);
	return choose(m, now);
}

static bool interval_over(const struct monitor *m, int64_t now)
{
	return now >= m->begin + m->options.interval_ns;
}

static int tick(struct monitor *m, int64_t now)
{
	int err = 0;

	m->next_tick = now + PERIOD_NS;
	m->counts.mon->period++;
	if (now >= m->next_look && !interval_over(m, now)) /* its end looks, too */
		err = look(m, now);
	if (!err && now >= m->next_sweep) {
		m->next_sweep = now + SWEEP_NS;
		err = find_sweep(m);
	}
	if (!err && now >= m->next_usage) {
		m->next_usage = now + USAGE_NS;
		processes_usage(m);
	}
	return err;
}

static int notices_take(struct monitor *m)
{
	int err = 0;

	if (m->told || mon_now() >= m->noticed + PERIOD_NS) {
		err = find_notices(m);
		m->noticed = mon_now();
	}
	if (!err) {
		err = ring_buffer__consume(m->notices);
		err = err < 0 ? err : 0;
	}
	if (err || !m->tripped.set)
		return err;
	m->tripped.set = false;
	err = windows_trip(m, m->tripped.pid);
	/* of what is always there: what grew is found by looking at once */
	return err ? err : look(m, mon_now());
}

static int interval_end(struct monitor *m)
{
	int err = harvest(m);
	int64_t now = mon_now(); /* looking for what is new took a while */

	if (!err) {
		windows_cut(m, now);
		harvest_steady(m);
		err = kernels_harvest(m);
	}
	if (!err)
		err = gather(m, now);
	return err;
}

int monitor_step(struct monitor *m, int64_t max_ns)
{
	int64_t now;
	int err;

	wait_for_work(m, max_ns);
	err = notices_take(m);
	now = mon_now();
	if (!err)
		err = windows_step(m, now);
	if (!err && now >= m->next_tick)
		err = tick(m, now);
	now = mon_now();
	if (err || !interval_over(m, now))
		return err;
	err = interval_end(m);
	if (!err && m->begin >= m->next_look - LOOK_NS / 2)
		err = choose(m, m->begin);
	harvest_age(m);
	return err ? err : 1;
}

int monitor_finish(struct monitor *m)
{
	int err = interval_end(m);

	return err ? err : 1;
}

bool monitor_targets_alive(const struct monitor *m)
{
	return !m->options.pids || probes_any_wanted(m->probes);
}

enum rung monitor_rung(const struct monitor *m)
{
	return probes_rung(m->probes);
}

/* Measured: 87 ms an event on the last rung, two a function; on the others it is short. */
double monitor_detach_s(const struct monitor *m)
{
	size_t i, k, sites = 0;

	for (i = 0; i < m->items_count; i++)
		for (k = 0; k < m->items[i].image->sites_count; k++)
			sites += m->items[i].image->sites[k].state != SITE_NOT_HOOKED &&
				 !m->items[i].image->sites[k].hot;
	return monitor_rung(m) == RUNG_SINGLE ? 0.174 * (double)sites : 0;
}

void monitor_release_gpus(struct monitor *m)
{
	if (m->sampler)
		gpu_sampler_release(m->sampler);
}

void monitor_free(struct monitor *m)
{
	if (!m)
		return;
	if (m->probes)
		probes_switches(m->probes)->mode = GBPF_MODE_OFF;
	gpu_sampler_free(m->sampler);
	gpu_samples_free(&m->gpus);
	gather_free(m);
	if (m->counts.cells) {
		processes_free(m);
		kernels_drop(m, 0);
	}
	ring_buffer__free(m->notices);
	closer_free(m->closer);
	images_free(m->images);
	watch_free(m->watch);
	counts_close(&m->counts);
	probes_free(m->probes);
	free(m->items);
	free(m);
}
