// SPDX-License-Identifier: BSD-2-Clause
/* Which rank of a job is named as the one that the others wait for, and which is not. */
#include "ranked_jobs.h"

#include <math.h>

#include "diagnose/diagnose.h"
#include "json_check.h"

static const struct session *gang_finish(struct gang *g)
{
	int64_t end = 0;

	for (int i = 0; i < g->ranks; i++) {
		job_sync(&g->rank[i]);
		end = g->rank[i].now > end ? g->rank[i].now : end;
	}
	feed_window(&g->rank[0].f, g->rank[0].begin, end);
	for (int i = 0; i < g->ranks; i++)
		if (g->rank[i].gpu)
			feed_cover(&g->rank[i].f, g->rank[i].begin, end);
	return feed_finish(&g->rank[0].f);
}

static const struct diag_finding *fired(const struct diag_process *p, const char *rule)
{
	for (size_t i = 0; i < p->findings_count; i++)
		if (!strcmp(p->findings[i].rule->name, rule))
			return &p->findings[i];
	return NULL;
}

static const struct diag_evidence *evidence(const struct diag_finding *f, const char *key)
{
	for (size_t i = 0; f && i < f->evidence_count; i++)
		if (!strcmp(f->evidence[i].key, key))
			return &f->evidence[i];
	return NULL;
}

/* The process of a rank. */
static const struct diag_process *of_rank(const struct diagnosis *d, int rank)
{
	for (size_t i = 0; i < d->count; i++)
		if (d->s->processes[d->processes[i].process].pid == 100 + (uint32_t)rank)
			return &d->processes[i];
	return NULL;
}

/* What the others wait is known to a hundredth. */
static bool wrong_by(const struct label *l, const struct diag_finding *f)
{
	const struct diag_evidence *wait = evidence(f, "others_wait_a_step_ns");

	if (!f || !l->late ||
	    (wait && fabs(wait->value - (double)l->late) < 0.01 * (double)l->late))
		return false;
	print_error("%s: %f ns a step\n", l->name, wait ? wait->value : -1.0);
	return true;
}

static int check(const struct label *l, const struct diagnosis *d, int ranks, bool with)
{
	int want = with ? l->straggler : l->without, wrong = 0;
	const char *how = with ? " with GPU time" : "";

	if (d->jobs_count != l->jobs && ++wrong)
		print_error("%s%s: %zu jobs\n", l->name, how, d->jobs_count);
	for (int i = 0; i < ranks; i++) {
		const struct diag_process *p = of_rank(d, i);
		const struct diag_finding *f;
		const struct diag_evidence *in;

		assert_non_null(p);
		f = fired(p, "straggler");
		if ((f != NULL) != (i == want) && ++wrong)
			print_error("%s%s: rank %d is %s straggler\n", l->name, how, i,
				    f ? "a" : "no");
		if (!fired(p, "slower_dispatch") != (i != l->slower) && ++wrong)
			print_error("%s%s: rank %d: dispatch\n", l->name, how, i);
		wrong += wrong_by(l, f);
		in = evidence(f, "more_time");
		if (with && f && l->in && (!in || strcmp(in->text, l->in)) && ++wrong)
			print_error("%s: more time %s\n", l->name, in ? in->text : "nothing");
	}
	return wrong;
}

static int run(const struct label *l, bool with)
{
	static struct gang g;
	struct diagnosis d;
	int wrong;

	gang_start(&g, with, RANKS);
	l->run(&g);
	assert_int_equal(diagnose(gang_finish(&g), NULL, &d), 0);
	assert_int_equal(d.count, g.ranks);
	wrong = check(l, &d, g.ranks, with);
	diagnosis_free(&d);
	feed_stop(&g.rank[0].f);
	return wrong;
}

#ifdef QUICK_TESTS /* the quick tests' build: every second job, the others without GPU time */
#define EVERY 2
#define EQUALS 4
#else
#define EVERY 1
#define EQUALS 20
#endif

static void labelled(bool with)
{
	int wrong = 0;

	for (size_t i = with % EVERY; i < sizeof(labels) / sizeof(labels[0]); i += EVERY)
		wrong += run(&labels[i], with) != 0;
	if (wrong)
		fail_msg("%d jobs are not judged as labelled", wrong);
}

static void with_gpu_time(void **state)
{
	labelled(true);
}

static void without_gpu_time(void **state)
{
	labelled(false);
}

/* Whatever the noise, nobody is named where nobody differs. */
static void equal_ranks(void **state)
{
	static struct gang g;
	struct diagnosis d;

	for (uint64_t seed = 1; seed <= EQUALS; seed++) {
		gang_start(&g, seed & 1, 2 + (int)(seed % 3));
		g.state = seed << 32;
		equal_cpu(&g);
		assert_int_equal(diagnose(gang_finish(&g), NULL, &d), 0);
		assert_int_equal(d.jobs_count, 1);
		assert_true(d.jobs[0].compared);
		assert_int_equal(d.jobs[0].ranks, g.ranks);
		assert_int_equal(d.jobs[0].stragglers, 0);
		for (size_t i = 0; i < d.count; i++)
			assert_null(fired(&d.processes[i], "slower_dispatch"));
		diagnosis_free(&d);
		feed_stop(&g.rank[0].f);
	}
}

/* Of a straggler whose rank is what a hostile process says. */
static void printed(void (*print)(const struct diagnosis *d, FILE *out), char **text)
{
	static struct gang g;
	struct diagnosis d;
	size_t size;
	FILE *out;

	gang_start(&g, true, 3);
	gang_is(&g, false, 1);
	label(&g.rank[1], "rank", "<b>*\x1b[31m\xff\"");
	train(&g, 1, cpu, (struct part){ 0, 45 * USEC, 6 * USEC, 8 * USEC });
	assert_int_equal(diagnose(gang_finish(&g), NULL, &d), 0);
	out = open_memstream(text, &size);
	assert_non_null(out);
	print(&d, out);
	fclose(out);
	assert_null(strchr(*text, '\x1b'));
	diagnosis_free(&d);
	feed_stop(&g.rank[0].f);
}

static void as_text(const struct diagnosis *d, FILE *out)
{
	diagnosis_text(d, &(struct diag_look){ 0 }, out);
	diagnosis_brief(d, out);
}

static void as_json(const struct diagnosis *d, FILE *out)
{
	diagnosis_json(d, NULL, out);
}

static void as_html(const struct diagnosis *d, FILE *out)
{
	assert_int_equal(diagnosis_html(d, out), 0);
}

static void told(void **state)
{
	char *text;

	printed(as_text, &text);
	assert_non_null(strstr(text, "job of 3 ranks: "));
	assert_non_null(strstr(text, "(pid 101): the others wait "));
	assert_non_null(strstr(text, "it spends more time preparing and dispatching work"));
	assert_non_null(strstr(text, "Straggler          rank "));
	free(text);
	printed(as_json, &text);
	assert_true(json_check(text));
	assert_non_null(strstr(text, "\"jobs\":[{\"pids\":[100,101,102],\"verdict\":"));
	assert_non_null(strstr(text, "\"stragglers\":[101]"));
	assert_non_null(strstr(text, "\"rule\":\"straggler\""));
	free(text);
	printed(diagnosis_markdown, &text);
	assert_non_null(strstr(text, "## Job of 3 ranks: "));
	assert_non_null(strstr(text, "- rank \\<b\\>\\*"));
	free(text);
	printed(as_html, &text);
	assert_non_null(strstr(text, "<h2>Job of 3 ranks: "));
	assert_non_null(strstr(text, "<li>rank &lt;b&gt;"));
	assert_null(strstr(text, "<b>"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(with_gpu_time),
		cmocka_unit_test(without_gpu_time),
		cmocka_unit_test(equal_ranks),
		cmocka_unit_test(told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
