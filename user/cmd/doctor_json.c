/* SPDX-License-Identifier: BSD-2-Clause */
/* What doctor found out, for programs. Keys are a contract: tests/integration/test_doctor.py. */
#include <stdio.h>
#include <string.h>

#include "cmd/doctor.h"
#include "cmd/doctor_print.h"
#include "probe/catalogue.h"
#include "util/json.h"

static void put_string(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	json_string(j, value);
}

static void put_uint(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	json_uint(j, value);
}

static void put_bool(struct json *j, const char *key, bool value)
{
	json_key(j, key);
	json_bool(j, value);
}

static void put_ns(struct json *j, const char *key, int64_t value, bool known)
{
	json_key(j, key);
	if (known)
		json_int(j, value);
	else
		json_null(j);
}

static const char *result_name(enum doctor_result r)
{
	return r == CHECK_OK ? "ok" : r == CHECK_NO ? "no" : "not_tried";
}

static void put_kernel(struct json *j, const struct doctor *d)
{
	json_key(j, "kernel");
	json_begin_object(j);
	put_string(j, "release", d->system.release);
	put_string(j, "machine", d->system.machine);
	put_uint(j, "cpus", d->cpus > 0 ? (uint64_t)d->cpus : 0);
	put_string(j, "nvidia_driver", d->driver[0] ? d->driver : NULL);
	put_ns(j, "ring_bytes",
	       d->probes ? (int64_t)(probes_ring_bytes(d->probes) * probes_ring_count(d->probes))
			 : 0,
	       d->probes != NULL);
	json_end_object(j);
}

static void put_rungs(struct json *j, const struct doctor *d)
{
	size_t i;

	json_key(j, "rungs");
	json_begin_array(j);
	for (i = 0; i < 3; i++) {
		const struct doctor_rung *r = &d->rungs[i];

		json_begin_object(j);
		put_string(j, "rung", rung_name(r->rung));
		put_string(j, "result", result_name(r->result));
		put_bool(j, "used", d->probes && probes_rung(d->probes) == r->rung);
		put_string(j, "failed_at", r->step);
		put_string(j, "reason", r->step ? doctor_why(r->error) : NULL);
		put_uint(j, "errno", (uint64_t)(r->step ? -r->error : 0));
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_checks(struct json *j, const struct doctor *d)
{
	size_t i;

	json_key(j, "checks");
	json_begin_array(j);
	for (i = 0; i < d->checks_count; i++) {
		const struct doctor_check *c = &d->checks[i];

		json_begin_object(j);
		put_string(j, "check", c->key);
		put_string(j, "result", result_name(c->result));
		put_bool(j, "needed", c->needed);
		put_string(j, "detail", c->detail);
		put_string(j, "advice", c->result == CHECK_NO ? c->advice : NULL);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_capabilities(struct json *j, const struct doctor *d)
{
	size_t i;

	json_key(j, "capabilities");
	json_begin_object(j);
	put_string(j, "user", d->user);
	json_key(j, "effective");
	json_begin_array(j);
	for (i = 0; i < DOCTOR_CAPABILITIES; i++)
		if (d->capabilities[i].itself)
			json_string(j, d->capabilities[i].name);
	json_end_array(j);
	json_key(j, "missing");
	json_begin_array(j);
	for (i = 0; i < DOCTOR_CAPABILITIES; i++) {
		const struct doctor_capability *c = &d->capabilities[i];

		if (c->held)
			continue;
		json_begin_object(j);
		put_string(j, "capability", c->name);
		put_string(j, "needed_for", c->what_for);
		put_bool(j, "needed", c->needed);
		json_end_object(j);
	}
	json_end_array(j);
	json_end_object(j);
}

static void put_cost(struct json *j, const struct doctor *d)
{
	json_key(j, "cost");
	json_begin_object(j);
	put_ns(j, "begin_ns", d->cost.begin_ns, d->cost_known);
	put_ns(j, "pair_ns", d->cost.pair_ns, d->cost_known);
	put_ns(j, "launch_ns", d->cost.launch_ns, d->cost_known);
	put_ns(j, "stepped_begin_ns", d->stepped_ns, d->stepped_known);
	json_end_object(j);
}

static void put_sites(struct json *j, const struct image *i, const char *key, bool hooked)
{
	size_t k;

	json_key(j, key);
	json_begin_array(j);
	for (k = 0; i && k < i->sites_count; k++) {
		const struct image_site *s = &i->sites[k];

		if ((s->state != SITE_NOT_HOOKED) != hooked)
			continue;
		json_begin_object(j);
		put_string(j, "api", catalogue_get(s->api)->name);
		if (hooked) {
			put_uint(j, "offset", s->offset);
			put_bool(j, "entry_only", s->state == SITE_ENTRY_ONLY);
		} else {
			put_string(j, "reason", s->reason);
		}
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_image(struct json *j, const struct doctor_image *i)
{
	json_begin_object(j);
	put_string(j, "path", i->path);
	put_string(j, "kind", doctor_kind_name(i));
	put_string(j, "version", i->asked && i->asked->version[0] ? i->asked->version : NULL);
	put_string(j, "build_id", i->asked && i->asked->build_id[0] ? i->asked->build_id : NULL);
	put_uint(j, "device", i->dev);
	put_uint(j, "inode", i->ino);
	put_bool(j, "deleted", i->deleted);
	put_string(j, "trouble", i->trouble[0] ? i->trouble : NULL);
	put_uint(j, "probed_by_others", (uint64_t)i->foreign);
	put_uint(j, "hooked_with_api_all", i->all ? i->all->hooked : 0);
	put_sites(j, i->asked, "hooked", true);
	put_sites(j, i->asked, "not_hooked", false);
	json_end_object(j);
}

static void put_rate(struct json *j, const struct doctor_rate *r)
{
	double seconds = (double)r->elapsed_ns / 1e9;

	json_key(j, "rate");
	json_begin_object(j);
	put_bool(j, "measured", r->measured);
	put_string(j, "why_not", r->why_not);
	if (r->measured) {
		put_ns(j, "elapsed_ns", r->elapsed_ns, true);
		put_uint(j, "calls", r->calls);
		put_uint(j, "launches", r->launches);
		put_uint(j, "lost", r->lost);
		json_key(j, "calls_per_s");
		json_double(j, (double)r->calls / seconds, 1);
		put_uint(j, "threads", r->threads);
		put_uint(j, "worst_tid", r->worst_tid);
		put_string(j, "worst_comm", r->worst_comm);
		json_key(j, "worst_calls_per_s");
		json_double(j, (double)r->worst_calls / seconds, 1);
		put_ns(j, "worst_cost_ns", r->worst_cost_ns, true);
		json_key(j, "expected_slowdown_percent");
		json_double(j, 100 * r->slowdown, 3);
	}
	json_end_object(j);
}

static void put_lists(struct json *j, const struct doctor_process *p)
{
	size_t i;

	json_key(j, "profiling_libraries");
	json_begin_array(j);
	for (i = 0; i < p->tools_count; i++)
		json_string(j, p->tools[i]);
	json_end_array(j);
	json_key(j, "environment");
	json_begin_array(j);
	for (i = 0; i < p->environment_size; i += strlen(p->environment + i) + 1)
		json_string(j, p->environment + i);
	json_end_array(j);
	json_key(j, "children_with_cuda");
	json_begin_array(j);
	for (i = 0; i < p->children_count; i++)
		json_uint(j, p->children[i]);
	json_end_array(j);
}

static void put_gpu_time(struct json *j, const struct doctor_gpu_time *g)
{
	json_key(j, "gpu_time");
	json_begin_object(j);
	put_bool(j, "possible", g->result == CHECK_OK);
	put_string(j, "text", g->text);
	put_string(j, "libcupti", g->cupti);
	put_string(j, "libcupti_soname", g->soname[0] ? g->soname : NULL);
	json_end_object(j);
}

static void put_process(struct json *j, const struct doctor_process *p)
{
	size_t i;

	json_key(j, "process");
	if (!p) {
		json_null(j);
		return;
	}
	json_begin_object(j);
	put_uint(j, "pid", p->pid);
	put_uint(j, "ns_pid", p->info.ns_pid);
	put_uint(j, "uid", p->info.uid);
	put_string(j, "user", p->user);
	put_string(j, "container", p->info.container);
	put_string(j, "comm", p->info.comm);
	put_string(j, "command", p->info.cmdline[0] ? p->info.cmdline : p->info.comm);
	put_ns(j, "start_ns", p->info.start, true);
	put_bool(j, "seccomp", p->info.seccomp);
	put_string(j, "error", p->error ? doctor_why(p->error) : NULL);
	json_key(j, "images");
	json_begin_array(j);
	for (i = 0; i < p->images_count; i++)
		put_image(j, &p->images[i]);
	json_end_array(j);
	put_lists(j, p);
	put_gpu_time(j, &p->gpu_time);
	put_rate(j, &p->rate);
	json_end_object(j);
}

void doctor_print_json(const struct doctor *d)
{
	struct json j;

	json_init(&j, stdout);
	json_begin_object(&j);
	put_kernel(&j, d);
	put_rungs(&j, d);
	put_checks(&j, d);
	put_capabilities(&j, d);
	put_cost(&j, d);
	put_process(&j, d->process);
	put_bool(&j, "ok", d->ok);
	put_string(&j, "trouble", d->trouble);
	json_end_object(&j);
	putchar('\n');
}
