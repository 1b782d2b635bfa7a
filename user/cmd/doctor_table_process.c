/* SPDX-License-Identifier: BSD-2-Clause */
/* The process's part of what doctor prints for people. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "cmd/doctor.h"
#include "cmd/doctor_print.h"
#include "probe/catalogue.h"
#include "util/text.h"
#include "util/wrap.h"

#define REASONS 16

const char *doctor_kind_name(const struct doctor_image *i)
{
	switch (i->asked ? i->asked->kind : IMAGE_NONE) {
	case IMAGE_DRIVER:
		return "driver";
	case IMAGE_RUNTIME:
		return "runtime";
	case IMAGE_STATIC_RUNTIME:
		return "static_runtime";
	case IMAGE_NCCL:
		return "nccl";
	case IMAGE_NONE:
		break;
	}
	switch (i->hint) {
	case HINT_DRIVER:
		return "driver";
	case HINT_RUNTIME:
		return "runtime";
	case HINT_NCCL:
		return "nccl";
	case HINT_NONE:
		break;
	}
	return "none";
}

size_t doctor_reasons(const struct image *i, struct doctor_reason *out, size_t max)
{
	size_t n = 0, k, r;

	for (k = 0; k < i->sites_count; k++) {
		if (i->sites[k].state != SITE_NOT_HOOKED)
			continue;
		for (r = 0; r < n && strcmp(out[r].reason, i->sites[k].reason); r++)
			;
		if (r == n && n == max)
			r = n - 1; /* more reasons than there are: none is lost from the sum */
		if (r == n)
			out[n++] = (struct doctor_reason){
				i->sites[k].reason, 0, catalogue_get(i->sites[k].api)->name};
		out[r].count++;
	}
	return n;
}

static void print_functions(const struct image *i)
{
	char offset[32], text[256];
	size_t k;

	for (k = 0; k < i->sites_count; k++) {
		const char *name = catalogue_get(i->sites[k].api)->name;

		if (i->sites[k].state == SITE_NOT_HOOKED) {
			snprintf(text, sizeof(text), "%s: not hooked, %s", name,
				 i->sites[k].reason);
			wrap_print(stdout, text, 0, 6, doctor_width());
			continue;
		}
		snprintf(offset, sizeof(offset), "0x%" PRIx64, i->sites[k].offset);
		printf("      %-52s  %9s%s\n", name, offset,
		       i->sites[k].state == SITE_ENTRY_ONLY ? "  entry only" : "");
	}
}

static bool is_runtime(const struct image *i)
{
	return i->kind == IMAGE_RUNTIME || i->kind == IMAGE_STATIC_RUNTIME;
}

static void print_hooked(const struct doctor *d, const struct doctor_image *i)
{
	struct doctor_reason reasons[REASONS];
	size_t n = doctor_reasons(i->asked, reasons, REASONS), k;
	size_t more = i->all ? i->all->hooked - i->asked->hooked : 0;
	bool runtime = is_runtime(i->asked) && !selection_wants_library(d->selection, API_RUNTIME);
	char text[512];

	if (i->trouble[0])
		snprintf(text, sizeof(text), "%s%s", i->not_asked ? "" : "none: ", i->trouble);
	else
		snprintf(text, sizeof(text), "%zu of %zu function%s asked for", i->asked->hooked,
			 i->asked->sites_count, i->asked->sites_count == 1 ? "" : "s");
	doctor_line(i->not_asked ? CHECK_NOT_TRIED : i->trouble[0] ? CHECK_NO : CHECK_OK,
		    "  hooked", text);
	for (k = 0; k < n; k++) {
		snprintf(text, sizeof(text), "%s%s: %s", reasons[k].first,
			 reasons[k].count > 1 ? " and others" : "", reasons[k].reason);
		if (reasons[k].count > 1)
			snprintf(text, sizeof(text), "%zu functions, such as %s: %s",
				 reasons[k].count, reasons[k].first, reasons[k].reason);
		doctor_line(0, "  not hooked", text);
	}
	if (more) {
		snprintf(text, sizeof(text), "%zu more with --api %s", more,
			 runtime ? "runtime or all" : "all");
		doctor_line(0, "  not asked for", text);
	}
}

static void print_image(const struct doctor *d, const struct doctor_image *i)
{
	char path[1024], text[1200];

	text_printable(i->path, path, sizeof(path), 0);
	snprintf(text, sizeof(text), "%s%s", path, i->deleted ? " (deleted)" : "");
	doctor_line_long(doctor_kind_name(i), text);
	snprintf(text, sizeof(text), "device %u:%u, inode %" PRIu64, major(i->dev), minor(i->dev),
		 i->ino);
	if (i->asked) {
		char version[64];

		text_printable(i->asked->version, version, sizeof(version), 40);
		snprintf(text, sizeof(text), "%s%s%sdevice %u:%u, inode %" PRIu64,
			 version[0] ? "version " : "", version, version[0] ? ", " : "",
			 major(i->dev), minor(i->dev), i->ino);
	}
	doctor_line(0, "  file", text);
	if (i->asked && i->asked->build_id[0])
		doctor_line(0, "  build id", i->asked->build_id);
	if (!i->asked) {
		snprintf(text, sizeof(text), "none: %s", i->trouble);
		doctor_line(CHECK_NO, "  hooked", text);
		return;
	}
	print_hooked(d, i);
	if (i->foreign) {
		snprintf(text, sizeof(text), "%d of these functions are probed already, by "
					     "another tracer or another gbpf; both get their calls "
					     "and both cost time", i->foreign);
		doctor_line(0, "  probed by others", text);
	}
	if (d->options->verbose)
		print_functions(i->asked);
}

static void print_identity(const struct doctor_process *p)
{
	struct timespec now;
	char text[600], part[300];

	text_printable(p->info.cmdline[0] ? p->info.cmdline : p->info.comm, part, sizeof(part),
		       200);
	doctor_line(0, "command", part);
	snprintf(text, sizeof(text), "%s", text_printable(p->user, part, sizeof(part), 40));
	doctor_line(0, "user", text);
	if (p->info.container[0]) {
		text_printable(p->info.container, part, sizeof(part), 80);
		snprintf(text, sizeof(text), "%s, where its pid is %u", part, p->info.ns_pid);
		doctor_line(0, "container", text);
	}
	clock_gettime(CLOCK_BOOTTIME, &now);
	snprintf(text, sizeof(text), "%s ago",
		 text_duration(now.tv_sec * 1000000000LL + now.tv_nsec - p->info.start, part,
			       sizeof(part)));
	doctor_line(0, "started", text);
	doctor_line(0, "seccomp filter", p->info.seccomp ? "yes" : "none");
}

static void print_tools(const struct doctor_process *p)
{
	char text[600];
	size_t i, at;

	for (i = 0; i < p->tools_count; i++)
		doctor_line_long(i ? "" : "profiling libraries",
				 text_printable(p->tools[i], text, sizeof(text), 0));
	if (p->tools_count)
		doctor_line(0, "", "(mapped, which alone does not mean that a profiler is active; "
				   "PyTorch always maps CUPTI)");
	for (i = at = 0; at < p->environment_size; at += strlen(p->environment + at) + 1, i++)
		doctor_line_long(i ? "" : "its environment",
				 text_printable(p->environment + at, text, sizeof(text), 200));
}

static void print_gpu_time(const struct doctor_process *p)
{
	const struct doctor_gpu_time *g = &p->gpu_time;
	char path[600], soname[80], text[1200];

	text_printable(g->text, text, sizeof(text), 0);
	doctor_line(g->result, "GPU time (--gpu-time)", text);
	if (!g->cupti)
		return;
	text_printable(g->cupti, path, sizeof(path), 0);
	text_printable(g->soname, soname, sizeof(soname), 0);
	snprintf(text, sizeof(text), "%s%s%s%s", path, soname[0] ? " (" : "", soname,
		 soname[0] ? ")" : "");
	doctor_line_long("  libcupti", text);
}

static void print_rate(const struct doctor *d)
{
	const struct doctor_rate *r = &d->process->rate;
	double seconds = (double)r->elapsed_ns / 1e9;
	char a[48], b[48], text[400];

	if (!r->measured) {
		snprintf(text, sizeof(text), "not measured: %s", r->why_not);
		doctor_line(CHECK_NOT_TRIED, "calls now", text);
		return;
	}
	snprintf(text, sizeof(text),
		 "%s/s, of them %s/s launch calls, by %u thread%s, seen for %.1f s",
		 text_count((uint64_t)((double)r->calls / seconds + 0.5), a, sizeof(a)),
		 text_count((uint64_t)((double)r->launches / seconds + 0.5), b, sizeof(b)),
		 r->threads, r->threads == 1 ? "" : "s", seconds);
	doctor_line(0, "calls now", text);
	if (r->lost) {
		snprintf(text, sizeof(text), "%s calls were lost; the numbers here are too low",
			 text_count(r->lost, a, sizeof(a)));
		doctor_line(CHECK_NO, "", text);
	}
	if (!r->worst_tid)
		return;
	text_printable(r->worst_comm, b, sizeof(b), 15);
	snprintf(text, sizeof(text), "%.1f %% expected, of the time of thread %u (%s), which makes "
				     "%s calls/s",
		 100 * r->slowdown, r->worst_tid, b,
		 text_count((uint64_t)((double)r->worst_calls / seconds + 0.5), a, sizeof(a)));
	doctor_line(0, "slowdown by gbpf trace", text);
}

static void print_nothing(const struct doctor *d)
{
	static const int wanted[] = {CAP_SYS_PTRACE, -1};
	const struct doctor_process *p = d->process;
	char text[300], missing[120];
	size_t used, i;

	if (p->error) {
		doctor_missing(d, wanted, missing, sizeof(missing));
		snprintf(text, sizeof(text), "its mappings could not be read: %s%s%s",
			 doctor_why(p->error), missing[0] ? ";" : "", missing);
		doctor_line(CHECK_NO, "CUDA", text);
		return;
	}
	if (!p->children_count) {
		doctor_line(CHECK_NO, "CUDA", "it maps no CUDA library; gbpf trace -p would wait "
					      "for one");
		return;
	}
	used = (size_t)snprintf(text, sizeof(text), "not in itself, but in processes below it, "
						    "which gbpf trace -p follows:");
	for (i = 0; i < p->children_count; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, " %u", p->children[i]);
	doctor_line(CHECK_OK, "CUDA", text);
}

void doctor_print_process(const struct doctor *d)
{
	const struct doctor_process *p = d->process;
	char title[64];
	size_t i;

	snprintf(title, sizeof(title), "Process %u", p->pid);
	doctor_title(title);
	print_identity(p);
	for (i = 0; i < p->images_count; i++)
		print_image(d, &p->images[i]);
	if (!p->images_count)
		print_nothing(d);
	print_tools(p);
	if (p->images_count)
		print_gpu_time(p);
	if (p->images_count)
		print_rate(d);
}
