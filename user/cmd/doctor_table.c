/* SPDX-License-Identifier: BSD-2-Clause */
/* The machine's part of what doctor prints for people. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/doctor.h"
#include "cmd/doctor_print.h"
#include "util/term.h"
#include "util/text.h"
#include "util/wrap.h"

unsigned doctor_width(void)
{
	unsigned width = term_width(STDOUT_FILENO, 80);

	return width > 100 ? 100 : width < 60 ? 60 : width;
}

void doctor_title(const char *text)
{
	bool colour = term_colour(STDOUT_FILENO);

	printf("\n%s%s%s\n", term_style(colour, TERM_BOLD), text, term_style(colour, TERM_PLAIN));
}

static const struct {
	const char *word;
	enum term_style style;
} results[] = {
	[0] = {"", TERM_PLAIN},
	[CHECK_OK] = {"ok", TERM_GREEN},
	[CHECK_NO] = {"no", TERM_RED},
	[CHECK_NOT_TRIED] = {"--", TERM_DIM},
};

static void begin_line(enum doctor_result result, const char *name)
{
	bool colour = term_colour(STDOUT_FILENO);

	printf("  %s%-2s%s  %-22s  ", term_style(colour, results[result].style),
	       results[result].word, term_style(colour, TERM_PLAIN), name);
}

void doctor_line_long(const char *name, const char *text)
{
	begin_line(0, name);
	puts(text);
}

void doctor_line(enum doctor_result result, const char *name, const char *text)
{
	begin_line(result, name);
	wrap_print(stdout, text, DOCTOR_INDENT, DOCTOR_INDENT, doctor_width());
}

static void print_advice(const char *advice)
{
	printf("%*stry: ", DOCTOR_INDENT, "");
	wrap_print(stdout, advice, DOCTOR_INDENT + 5, DOCTOR_INDENT + 5, doctor_width());
}

static const char *use_of(const struct doctor *d, enum rung rung)
{
	if (!d->probes || probes_rung(d->probes) != rung)
		return "";
	if (rung == RUNG_SINGLE)
		return "; gbpf trace uses this one, and takes a tenth of a second to let go of "
		       "each function";
	return "; gbpf trace uses this one";
}

static void print_rungs(const struct doctor *d)
{
	char text[200];
	size_t i;

	doctor_title("Ways to attach, the best first");
	for (i = 0; i < 3; i++) {
		const struct doctor_rung *r = &d->rungs[i];

		if (r->result == CHECK_OK)
			snprintf(text, sizeof(text), "loads and attaches%s", use_of(d, r->rung));
		else if (r->result == CHECK_NO)
			snprintf(text, sizeof(text), "does not %s: %s", r->step,
				 doctor_why(r->error));
		else
			snprintf(text, sizeof(text), "not tried");
		doctor_line(r->result, rung_name(r->rung), text);
	}
}

static void print_checks(const struct doctor *d)
{
	size_t i;

	doctor_title("What gbpf trace needs");
	for (i = 0; i < d->checks_count; i++) {
		const struct doctor_check *c = &d->checks[i];

		doctor_line(c->result, c->name, c->detail);
		if (c->result == CHECK_NO && c->advice)
			print_advice(c->advice);
	}
}

static void print_rights(const struct doctor *d)
{
	char title[128], user[96], text[160];
	size_t i;

	snprintf(title, sizeof(title), "Rights of %s",
		 text_printable(d->user, user, sizeof(user), 40));
	doctor_title(title);
	for (i = 0; i < DOCTOR_CAPABILITIES; i++) {
		const struct doctor_capability *c = &d->capabilities[i];

		snprintf(text, sizeof(text), "%s%s",
			 c->held && !c->itself ? "CAP_SYS_ADMIN does: " :
			 !c->held && c->needed ? "needed " : "", c->what_for);
		doctor_line(c->held ? CHECK_OK : CHECK_NO, c->name, text);
	}
}

static void print_cost(const struct doctor *d)
{
	char a[32], text[128];

	doctor_title("Cost of a probed call, measured here");
	if (!d->cost_known) {
		doctor_line(CHECK_NOT_TRIED, "", "not measured: there are no probes");
		return;
	}
	doctor_line(0, "entry", text_duration(d->cost.begin_ns, a, sizeof(a)));
	doctor_line(0, "entry and return", text_duration(d->cost.pair_ns, a, sizeof(a)));
	doctor_line(0, "a launch, both ends", text_duration(d->cost.launch_ns, a, sizeof(a)));
	if (!d->stepped_known)
		return;
	snprintf(text, sizeof(text), "%s; functions that begin so are left alone",
		 text_duration(d->stepped_ns, a, sizeof(a)));
	doctor_line(0, "single-stepped entry", text);
}

static void print_verdict(const struct doctor *d)
{
	bool colour = term_colour(STDOUT_FILENO);

	putchar('\n');
	fputs(term_style(colour, d->ok ? TERM_GREEN : TERM_RED), stdout);
	if (d->ok)
		printf("gbpf trace works here.");
	else if (d->process && d->process_trouble)
		printf("gbpf trace works here, but would see nothing of process %u: see '%s' "
		       "above.", d->process->pid, d->trouble);
	else
		printf("gbpf trace cannot work here: see '%s' above.", d->trouble);
	puts(term_style(colour, TERM_PLAIN));
}

void doctor_print_table(const struct doctor *d)
{
	char release[128], driver[128];

	text_printable(d->system.release, release, sizeof(release), 60);
	text_printable(d->driver, driver, sizeof(driver), 40);
	printf("gbpf " GBPF_VERSION " on Linux %s, %s, %ld CPU%s; ", release, d->system.machine,
	       d->cpus, d->cpus == 1 ? "" : "s");
	if (driver[0])
		printf("NVIDIA driver %s\n", driver);
	else
		printf("no NVIDIA driver is loaded\n");
	print_rungs(d);
	print_checks(d);
	print_rights(d);
	print_cost(d);
	if (d->process)
		doctor_print_process(d);
	print_verdict(d);
}
