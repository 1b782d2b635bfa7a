/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Labelled jobs: each is built so that its verdict is known, with GPU time and without,
 * together with rules that must fire, rules that must not, and how much of the time the
 * GPU worked. The labels were written before the rules were tuned on them.
 */
#include "label_check.h"
#include "labels.h"

static void labelled(bool gpu)
{
	int wrong = 0;

	for (size_t i = 0; i < LABELS; i++)
		wrong += run(&labels[i], gpu) != 0;
	if (wrong)
		fail_msg("%d of %zu jobs are not judged as labelled", wrong, LABELS);
}

static void with_gpu_time(void **state)
{
	labelled(true);
}

static void without_gpu_time(void **state)
{
	labelled(false);
}

/* What a target calls its kernels and itself is text wherever it is printed. */
static void hostile_names(void **state)
{
	static const char name[] = "</script><b onclick=\"x\">'&\x1b[31m\xff|`*";
	const struct session *s;
	struct diagnosis d;
	char *text = NULL;
	struct job j;
	size_t size;
	FILE *out;

	job_start(&j, true);
	feed_process(&j.f, 2, RECORD_PROCESS_EXEC, 100, 1, name);
	for (int i = 0; i < 50; i++)
		job_kernel_named(&j, 0, 1, name, 5 * USEC, 2 * MSEC);
	s = job_finish(&j);
	assert_int_equal(diagnose(s, NULL, &d), 0);
	out = open_memstream(&text, &size);
	assert_non_null(out);
	assert_int_equal(diagnosis_html(&d, out), 0);
	fclose(out);
	assert_null(strstr(text, "<b onclick"));
	assert_null(strstr(text, "</script>"));
	assert_null(strchr(text, '\x1b'));
	assert_null(strchr(text, '\xff'));
	assert_non_null(strstr(text, "&lt;b onclick=&quot;x&quot;&gt;"));
	free(text);
	out = open_memstream(&text, &size);
	assert_non_null(out);
	diagnosis_markdown(&d, out);
	diagnosis_text(&d, &(struct diag_look){ 0 }, out);
	fclose(out);
	assert_null(strchr(text, '\x1b'));
	free(text);
	diagnosis_free(&d);
	feed_stop(&j.f);
}

/* The guide names every rule, and every class and verdict. */
static void documented(void **state)
{
	static char text[64 << 10];
	FILE *f = fopen("docs/diagnosis.md", "r");
	const struct diag_rule *r;
	char quoted[80];

	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	for (size_t i = 0; (r = diag_rule(i)); i++) {
		snprintf(quoted, sizeof(quoted), "`%s`", r->name);
		if (!strstr(text, quoted))
			fail_msg("docs/diagnosis.md does not know the rule %s", r->name);
		assert_true(*r->title && *r->advice && r->refuted_by);
	}
	for (int i = 0; i < CLASSES; i++)
		assert_non_null(strstr(text, diag_class_words[i]));
	for (int i = 0; i <= VERDICT_INCONCLUSIVE; i++)
		assert_non_null(strstr(text, diag_verdict_words[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(documented),
		cmocka_unit_test(hostile_names),
		cmocka_unit_test(with_gpu_time),
		cmocka_unit_test(without_gpu_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
