/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of metrics, the pages that are written from it, and who gets which. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <ctype.h>
#include <math.h>

#include "export/page.h"
#include "metrics.pb-c.h"
#include "metrics_example.h"

#define GOLDEN "tests/unit/golden/openmetrics.txt"
#define DOCS "docs/openmetrics.md"

static char *read_file(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 1 << 18);

	if (!f)
		fail_msg("cannot open %s: run this from the top of the source tree", path);
	assert_non_null(text);
	assert_true(fread(text, 1, (1 << 18) - 1, f) > 0);
	fclose(f);
	return text;
}

/* ---- the table ---- */

static bool ends_with(const char *s, const char *end)
{
	size_t length = strlen(s), of_end = strlen(end);

	return length >= of_end && !strcmp(s + length - of_end, end);
}

static void test_the_table_holds_together(void **state)
{
	struct family_walk w = { 0 };
	bool beyond_apis = false;
	size_t count = 0;

	while (family_walk(&w)) {
		const struct family *f = w.family;
		unsigned room = f->gauge ? SERIES_GAUGES :
				f->count ? SERIES_COUNTS : SERIES_HISTOGRAMS;

		count++;
		assert_int_equal(strncmp(f->name, "gbpf_", 5), 0);
		assert_int_equal(strspn(f->name, "abcdefghijklmnopqrstuvwxyz_"), strlen(f->name));
		assert_true(!f->unit[0] || (ends_with(f->name, f->unit)));
		assert_false(ends_with(f->name, "_total") || ends_with(f->name, "_count") ||
			     ends_with(f->name, "_sum") || ends_with(f->name, "_info") ||
			     ends_with(f->name, "_bucket") || ends_with(f->name, "_created"));
		assert_int_equal(!!f->gauge + !!f->count + !!f->histogram, f->type != FAMILY_INFO);
		assert_true(w.slot + family_values(f) <= room);
		assert_true(ends_with(f->help, ".") && !strpbrk(f->help, "\\\"\n|"));
		assert_int_equal(f->label != NULL, f->variants != 0);
		assert_true((f->type == FAMILY_HISTOGRAM) == (f->classic != NULL));
		beyond_apis |= f->scope != SCOPE_API;
		assert_false(beyond_apis && f->scope == SCOPE_API);
		for (size_t i = 0; family_get(i) != f; i++)
			assert_string_not_equal(family_get(i)->name, f->name);
	}
	assert_true(count > 40);
}

static void row_of_docs(FILE *out, const struct family *f)
{
	static const char *const scopes[] = {
		"label set, `api`, `kind`", "label set", "`gpu`", "–",
	};
	static const char *const combined[] = { "sum", "maximum", "minimum", "mean" };
	const char *scope = scopes[f->scope];

	if (f->type == FAMILY_INFO)
		scope = f->scope == SCOPE_GPU ? "`gpu`, `index`, `name`, `pci`, `mig_parent`" :
						"`version`";
	fprintf(out, "| `%s%s` | %s | %s | %s", f->name, family_suffix(f),
		family_type_name(f->type), f->unit[0] ? f->unit : "–", scope);
	for (unsigned i = 0; i < f->variants; i++)
		if (i)
			fprintf(out, ", %s", f->variant(i));
		else
			fprintf(out, ", `%s`: %s", f->label, f->variant(i));
	fprintf(out, " | %s | %s |\n", f->scope <= SCOPE_PROCESS ? combined[f->combine] : "–",
		f->help);
}

static void test_the_docs_list_what_is_served(void **state)
{
	char *docs = read_file(DOCS), *table = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&table, &size);

	assert_non_null(out);
	for (size_t i = 0; family_get(i); i++)
		row_of_docs(out, family_get(i));
	fclose(out);
	if (!strstr(docs, table)) {
		fputs(table, stderr);
		fail_msg("the table in " DOCS " is to be this one");
	}
	free(table);
	free(docs);
}

/* ---- pages ---- */

static void hostile_process(struct example *e)
{
	struct snapshot_process *p = &e->p[0];

	memcpy(p->comm, "q\"b\\n\nx\xff-job-----", sizeof(p->comm)); /* and no end */
	p->command = "train --password=hunter2";
	snprintf(p->labels.container, sizeof(p->labels.container), "0123456789ab");
	snprintf(p->labels.pod, sizeof(p->labels.pod), "trainer-0");
	snprintf(p->labels.namespace, sizeof(p->labels.namespace), "m{l}\",evil=\"1");
	snprintf(p->labels.slurm_job, sizeof(p->labels.slurm_job), "77");
	snprintf(p->labels.rank, sizeof(p->labels.rank), "3");
	snprintf(p->gpu_uuid, sizeof(p->gpu_uuid), "GPU-1");
	example_call(e, 0, catalogue_find("cuLaunchKernel"), 4);
	example_call(e, 0, catalogue_find("cuMemcpyHtoDAsync_v2"), 2);
	e->apis[0][1].bytes = 8192;
	e->apis[0][1].errors = 1;
	example_launch(e, 0, 4);
	histogram_count(&e->launches[0], 60000);
	p->sync_ever = &e->launches[1];
	histogram_count(&e->launches[1], 20 * EXAMPLE_SECOND);
	p->launches_per_s = (struct estimate){ true, 1234.5, 1200, 1300.25 };
	p->dispatch_share = (struct estimate){ true, 1.0 / 3, 0.3, 0.4 };
	p->sync_share = (struct estimate){ true, 0.5, 0.5, 0.5 };
	p->threads = e->threads;
	p->threads_count = 2;
	e->threads[1].dispatch_share = p->dispatch_share;
	e->threads[1].sync_share = p->sync_share;
	e->threads[1].sched_known = true;
	e->threads[1].call_spin_share = 0.5;
	e->threads[1].wait_share[WAIT_PIPE] = 0.25;
	e->threads[1].open_api = 1;
	e->threads[1].open_since = -EXAMPLE_SECOND / 2;
	p->live_known = true;
	p->live_allocations = 3;
	p->live_bytes = 3 << 20;
	p->cold_starts = 1;
	p->cold_ns = 1500000;
	p->overhead_pct = 0.75;
}

static void a_gpu(struct example *e)
{
	e->gpus[0] = (struct gpu_sample){
		.has = GPU_HAS_CLOCK_SM | GPU_HAS_POWER | GPU_HAS_THROTTLE | GPU_HAS_MEMORY |
		       GPU_HAS_ENERGY | GPU_HAS_GPM,
		.index = 2, .uuid = "GPU-1", .name = "H\"200", .pci = "0000:18:00.0",
		.clock_sm_mhz = 1980, .power_mw = 423999, .throttle = 0x24,
		.memory_used = UINT64_C(1) << 37, .memory_total = INT64_C(150754820096),
		.energy_mj = 123456789, .gpm_sm_pct = 50.5, .gpm_tensor_pct = 12.25,
		.xid_count = 2, .xid_last = 79,
	};
	e->gpus[1] = (struct gpu_sample){ .index = 3 }; /* without a UUID */
	e->gpus[2] = e->gpus[0];			/* twice */
	e->s.gpus_count = 3;
	e->s.self = (struct snapshot_self){ .overhead_pct = 0.75, .budget_pct = 1, .cpu_pct = 0.5,
					    .rss_bytes = 33333333, .maps_bytes = 4096,
					    .coverage = 0.0625, .windows = 5, .lost = 1,
					    .limit = "launches are not probed here" };
}

static struct example *golden_example(void)
{
	struct example *e = example_new(1, NULL);

	hostile_process(e);
	a_gpu(e);
	example_update(e);
	return e;
}

/*
 * After a change that is meant, write the file anew with GBPF_GOLDEN_WRITE=1 and read
 * the difference.
 */
static void test_golden_pages(void **state)
{
	struct example *e = golden_example();
	char *want = read_file(GOLDEN), *open_metrics = example_page(e, METRICS_OPENMETRICS);
	char *text = example_page(e, METRICS_TEXT), *got;

	assert_true(asprintf(&got, "%s%s", open_metrics, text) > 0);
	if (getenv("GBPF_GOLDEN_WRITE")) {
		FILE *f = fopen(GOLDEN, "w");

		assert_non_null(f);
		fputs(got, f);
		fclose(f);
		fail_msg("%s was written, and not compared", GOLDEN);
	}
	assert_string_equal(got, want);
	assert_null(strstr(got, "hunter2"));
	free(got);
	free(text);
	free(open_metrics);
	free(want);
	example_free(e);
}

static void test_what_is_not_known_is_left_out(void **state)
{
	struct example *e = example_new(1, NULL);
	char *text;

	example_update(e);
	text = example_page(e, METRICS_OPENMETRICS);
	assert_non_null(strstr(text, "gbpf_processes{comm=\"job0\"} 1\n"));
	assert_null(strstr(text, "gbpf_launches_per_second"));
	assert_null(strstr(text, "_ratio{"));
	assert_null(strstr(text, "gbpf_live"));
	assert_null(strstr(text, "gbpf_gpu_"));
	assert_null(strstr(text, "nan"));
	free(text);
	e->p[0].launches_per_s = (struct estimate){ true, NAN, 0, INFINITY };
	example_update(e);
	assert_no_value(e, "gbpf_launches_per_second{comm=\"job0\"}");
	assert_no_value(e, "gbpf_launches_per_second_high{comm=\"job0\"}");
	assert_value(e, "gbpf_launches_per_second_low{comm=\"job0\"}", "0");
	example_free(e);
}

static void test_pages_outlive_updates_and_their_metrics(void **state)
{
	struct example *e = golden_example();
	const struct metrics_page *first, *again, *later;
	char *copy;

	assert_int_equal(metrics_page(e->m, METRICS_TEXT, false, &first), 0);
	assert_int_equal(metrics_page(e->m, METRICS_TEXT, false, &again), 0);
	assert_ptr_equal(first, again); /* made once an interval */
	metrics_page_release(again);
	copy = strndup(first->bytes, first->size);
	example_update(e);
	assert_int_equal(metrics_page(e->m, METRICS_TEXT, false, &later), 0);
	assert_ptr_not_equal(first, later);
	example_free(e);
	assert_memory_equal(first->bytes, copy, strlen(copy));
	assert_memory_not_equal(first->bytes, later->bytes, first->size);
	metrics_page_release(first);
	metrics_page_release(later);
	metrics_page_release(NULL);
	free(copy);
}

/* ---- native histograms ---- */

/* The bound that docs/openmetrics.md states. */
static void test_native_buckets_are_near(void **state)
{
	double worst = 1;

	for (unsigned i = 1; i < GBPF_BUCKETS - 1; i++) {
		int index = native_index(i);
		double low = exp2((index - 1) / 8.0) * 1e9, high = exp2(index / 8.0) * 1e9;
		double value = (double)bucket_value(i);

		assert_true(low < value && value <= high);
		assert_true(index > NATIVE_MIN && index < NATIVE_MIN + NATIVE_BUCKETS);
		/* said: anything in the native bucket; true: anything in ours */
		worst = fmax(worst, high / (double)bucket_low(i));
		worst = fmax(worst, (double)bucket_high(i) / low);
	}
	assert_true(worst < 1.16);
	assert_true(worst > 1.12); /* the bound is not idle */
	assert_true(native_index(GBPF_BUCKETS - 1) < NATIVE_MIN + NATIVE_BUCKETS);
	assert_true(NATIVE_ZERO_THRESHOLD == exp2(NATIVE_MIN / 8.0));
}

struct decoded {
	Prom__Family *family[100];
	size_t count;
};

static void decode(struct example *e, struct decoded *d)
{
	const struct metrics_page *page;
	size_t at = 0;

	assert_int_equal(metrics_page(e->m, METRICS_PROTOBUF, false, &page), 0);
	d->count = 0;
	while (at < page->size) {
		size_t size = 0;
		unsigned shift = 0;

		do {
			size |= (size_t)(page->bytes[at] & 0x7f) << shift;
			shift += 7;
		} while (page->bytes[at++] & 0x80);
		assert_true(size <= page->size - at && d->count < 100);
		d->family[d->count] = prom__family__unpack(NULL, size,
							   (const uint8_t *)page->bytes + at);
		assert_non_null(d->family[d->count++]);
		at += size;
	}
	metrics_page_release(page);
}

static const Prom__Family *decoded_family(const struct decoded *d, const char *name)
{
	for (size_t i = 0; i < d->count; i++)
		if (!strcmp(d->family[i]->name, name))
			return d->family[i];
	fail_msg("no family %s", name);
	return NULL;
}

static void decoded_free(struct decoded *d)
{
	for (size_t i = 0; i < d->count; i++)
		prom__family__free_unpacked(d->family[i], NULL);
}

/* Every sample of the text is in the protobuf page, and the other way round. */
static void test_protobuf_has_what_the_text_has(void **state)
{
	struct example *e = golden_example();
	char *text = example_page(e, METRICS_TEXT), *line, *rest = text;
	size_t samples = 0, metrics = 0;
	struct decoded d;

	decode(e, &d);
	while ((line = strsep(&rest, "\n")))
		if (line[0] == '#' && !strncmp(line, "# TYPE ", 7)) {
			line[strcspn(line + 7, " ") + 7] = '\0';
			decoded_family(&d, line + 7);
		} else if (line[0] && line[0] != '#' && !strstr(line, "_bucket{") &&
			   !strstr(line, "_sum{")) {
			samples++;
		}
	for (size_t i = 0; i < d.count; i++)
		metrics += d.family[i]->n_metric;
	assert_int_equal(samples, metrics);
	assert_true(decoded_family(&d, "gbpf_calls_total")->metric[0]->counter->value == 4);
	assert_true(decoded_family(&d, "gbpf_gpu_info")->metric[0]->gauge->value == 1);
	assert_int_equal(decoded_family(&d, "gbpf_gpu_info")->type, PROM__TYPE__GAUGE);
	assert_string_equal(decoded_family(&d, "gbpf_processes")->metric[0]->label[0]->value,
			    "q\"b\\n\xef\xbf\xbdx\xef\xbf\xbd-job----");
	decoded_free(&d);
	free(text);
	example_free(e);
}

static void test_native_histograms_add_up(void **state)
{
	struct example *e = example_new(1, NULL);
	uint64_t durations[] = {
		10, 1000, 1010, 1100, 5000, 5000, 5000, 70000, 300 * EXAMPLE_SECOND,
	};
	const size_t n = sizeof(durations) / sizeof(durations[0]);
	uint64_t total = 0, seen = 0;
	const Prom__Histogram *h;
	struct decoded d;
	size_t next = 0;
	int index = 0;

	for (size_t i = 0; i < n; i++)
		histogram_count(&e->launches[0], durations[i]);
	example_update(e);
	decode(e, &d);
	h = decoded_family(&d, "gbpf_launch_dispatch_seconds")->metric[0]->histogram;
	assert_int_equal(h->sample_count, n);
	assert_int_equal(h->schema, 3);
	assert_int_equal(h->zero_count, 1);
	for (size_t s = 0; s < h->n_positive_span; s++) {
		index += h->positive_span[s]->offset;
		for (uint32_t i = 0; i < h->positive_span[s]->length; i++, index++) {
			double low = exp2((index - 1) / 8.0), high = exp2(index / 8.0);

			seen += (uint64_t)h->positive_delta[next++];
			total += seen;
			/* as many durations as it says are near that bucket */
			for (size_t k = 1, near = 0; k < n; k++) {
				near += (double)durations[k] * 1e-9 > low / 1.07 &&
					(double)durations[k] * 1e-9 <= high * 1.1;
				assert_true(k < n - 1 || near >= seen);
			}
		}
	}
	assert_int_equal(next, h->n_positive_delta);
	assert_int_equal(total + h->zero_count, n);
	assert_int_equal(h->n_bucket, FAMILY_CLASSIC);
	assert_int_equal(h->bucket[0]->cumulative_count, 3); /* 1.01 us is in the bucket of 1 us */
	assert_int_equal(h->bucket[FAMILY_CLASSIC - 1]->cumulative_count, n - 1);
	decoded_free(&d);
	example_free(e);
}

/* ---- who gets what ---- */

#define PROTOBUF "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily"

static void test_formats_are_negotiated(void **state)
{
	static const struct {
		const char *accept;
		enum metrics_format want;
	} cases[] = {
		{ NULL, METRICS_TEXT },
		{ "", METRICS_TEXT },
		{ "*/*", METRICS_TEXT },
		{ "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", METRICS_TEXT },
		{ "application/openmetrics-text", METRICS_OPENMETRICS },
		{ "Application/OpenMetrics-Text; Version=\"1.0.0\"; charset=utf-8",
		  METRICS_OPENMETRICS },
		{ "application/openmetrics-text;version=2.0.0", METRICS_TEXT },
		{ "application/openmetrics-text;version=0.0.1;q=0.75,"
		  "text/plain;version=0.0.4;q=0.5", METRICS_TEXT },
		/* what Prometheus sends */
		{ PROTOBUF ";encoding=delimited,"
		  "application/openmetrics-text;version=1.0.0;q=0.8,"
		  "application/openmetrics-text;version=0.0.1;q=0.75,"
		  "text/plain;version=0.0.4;q=0.5,*/*;q=0.1", METRICS_PROTOBUF },
		{ PROTOBUF ";encoding=text;q=0.9,text/plain;q=0.3", METRICS_TEXT },
		{ PROTOBUF, METRICS_PROTOBUF },
		{ "application/vnd.google.protobuf", METRICS_TEXT },
		{ "application/openmetrics-text;q=0, text/plain;q=0.1", METRICS_TEXT },
		{ "text/plain;q=0.1, application/openmetrics-text;q=0.2", METRICS_OPENMETRICS },
		{ "text/plain;q=0.25,application/openmetrics-text;q=0.251", METRICS_OPENMETRICS },
		{ "application/openmetrics-text;q=x,text/plain;q=0.001", METRICS_TEXT },
		{ "application/openmetrics-text, text/plain", METRICS_OPENMETRICS },
		{ "text/plain, application/openmetrics-text", METRICS_TEXT },
		{ ";;,,;q=,=;\"", METRICS_TEXT },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (metrics_negotiate(cases[i].accept) != cases[i].want)
			fail_msg("case %zu: %s", i, cases[i].accept);
}

static void test_compression_is_negotiated(void **state)
{
	assert_false(metrics_accepts_gzip(NULL));
	assert_false(metrics_accepts_gzip("br, deflate"));
	assert_true(metrics_accepts_gzip("gzip"));
	assert_true(metrics_accepts_gzip("br;q=1, GZIP;q=0.5"));
	assert_false(metrics_accepts_gzip("gzip;q=0"));
	assert_false(metrics_accepts_gzip("*, gzip;q=0"));
	assert_true(metrics_accepts_gzip("identity, *;q=0.1"));
	assert_false(metrics_accepts_gzip("notgzip"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_table_holds_together),
		cmocka_unit_test(test_the_docs_list_what_is_served),
		cmocka_unit_test(test_golden_pages),
		cmocka_unit_test(test_what_is_not_known_is_left_out),
		cmocka_unit_test(test_pages_outlive_updates_and_their_metrics),
		cmocka_unit_test(test_native_buckets_are_near),
		cmocka_unit_test(test_protobuf_has_what_the_text_has),
		cmocka_unit_test(test_native_histograms_add_up),
		cmocka_unit_test(test_formats_are_negotiated),
		cmocka_unit_test(test_compression_is_negotiated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
