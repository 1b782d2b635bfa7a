// SPDX-License-Identifier: BSD-2-Clause
/* What writers of trace files share: order, rows, times, fields, the file. */
#include <dirent.h>
#include <stdio.h>
#include <unistd.h>
#include <zlib.h>

#include "gpu_session.h"

#include "export/trace.h"

#define DOCS "docs/traces.md"

static struct session *random_session(struct feed *f, uint64_t seed, bool hostile)
{
	struct gpu_random_options o = {.seed = seed, .processes = 2, .threads = 3, .streams = 6,
				       .devices = 2, .calls = 80, .hostile = hostile};

	return gpu_random(f, &o, NULL, NULL);
}

/* ---- selection and order ---- */

static void test_a_window_wants_what_touches_it(void **state)
{
	struct export_options o = EXPORT_ALL;

	assert_true(export_wants(&o, 0, 0));
	o.from = 100;
	o.to = 200;
	assert_true(export_wants(&o, 50, 101));
	assert_false(export_wants(&o, 50, 100));
	assert_true(export_wants(&o, 199, 500));
	assert_false(export_wants(&o, 200, 500));
	assert_true(export_wants(&o, 0, 1000));
	assert_true(export_wants(&o, 100, 100));
	assert_false(export_wants(&o, 200, 200));
}

static void walk_all(const struct session *s, const struct export_options *o)
{
	struct export_walk *walk;
	struct export_item item;
	struct export_counts counts, seen = {0};
	int64_t last = INT64_MIN;

	assert_int_equal(export_walk_new(&walk, s, o), 0);
	while (export_walk_next(walk, &item)) {
		assert_true(item.begin >= last);
		last = item.begin;
		if (item.is_work)
			seen.works++;
		else
			seen.calls++;
		assert_true(item.is_work ? export_wants_work(s, o, item.index)
					 : export_wants_call(s, o, item.index));
		assert_int_equal(item.begin, item.is_work ? s->works[item.index].begin
							  : s->calls[item.index].begin);
	}
	assert_false(export_walk_next(walk, &item));
	export_walk_free(walk);
	export_count(s, o, &counts);
	assert_int_equal(counts.calls, seen.calls);
	assert_int_equal(counts.works, seen.works);
}

static void test_a_walk_meets_everything_once_in_its_order(void **state)
{
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct export_options o = EXPORT_ALL;
		struct feed f = {0};
		struct session *s = random_session(&f, seed, seed & 1);
		bool wanted[64] = {0};

		walk_all(s, &o);
		o.from = 1050000;
		o.to = 1100000;
		walk_all(s, &o);
		assert_true(s->processes_count < 64);
		wanted[seed % s->processes_count] = true;
		o.processes = wanted;
		walk_all(s, &o);
		feed_stop(&f);
	}
}

static void test_arrows_are_the_matched_pairs(void **state)
{
	struct export_options o = EXPORT_ALL;
	struct export_counts counts;
	struct feed f = {0};
	struct session *s = gpu_small(&f);

	export_count(s, &o, &counts);
	assert_int_equal(counts.works, 9);
	assert_int_equal(counts.arrows, 9);
	o.to = 225000; /* the graph is launched, and what it does comes later */
	export_count(s, &o, &counts);
	assert_int_equal(counts.works, 5);
	assert_int_equal(counts.arrows, 5);
	o.from = 205000; /* after the copy was asked for */
	o.to = INT64_MAX;
	for (uint32_t i = 0; i < s->works_count; i++)
		if (s->works[i].kind == RECORD_WORK_COPY)
			assert_int_equal(export_cause(s, &o, i), CALL_NONE);
	feed_stop(&f);
}

/* ---- rows ---- */

static void test_slices_that_do_not_nest_get_rows(void **state)
{
	struct export_lanes *l;
	struct export_slice slice;

	assert_int_equal(export_lanes_new(&l, true), 0);
	assert_int_equal(export_lanes_add(l, 0, 100, 1), 0);
	assert_int_equal(export_lanes_add(l, 10, 100, 2), 0);
	assert_int_equal(export_lanes_add(l, 20, 110, 3), 1);
	assert_int_equal(export_lanes_add(l, 20, 20, 4), 0);
	assert_true(export_lanes_close(l, 100, &slice));
	assert_int_equal(slice.what, 4);
	assert_true(export_lanes_close(l, 100, &slice));
	assert_int_equal(slice.what, 2); /* the inner one first */
	assert_true(export_lanes_close(l, 100, &slice));
	assert_int_equal(slice.what, 1);
	assert_false(export_lanes_close(l, 100, &slice));
	assert_int_equal(export_lanes_add(l, 100, 105, 5), 0);
	assert_int_equal(export_lanes_add(l, 107, 120, 6), 0);
	assert_true(export_lanes_close(l, INT64_MAX, &slice));
	assert_int_equal(slice.what, 3);
	assert_int_equal(slice.row, 1);
	export_lanes_free(l);
}

static void test_without_nesting_one_at_a_time(void **state)
{
	struct export_lanes *l;

	assert_int_equal(export_lanes_new(&l, false), 0);
	assert_int_equal(export_lanes_place(l, 0, 100), 0);
	assert_int_equal(export_lanes_place(l, 10, 20), 1);
	assert_int_equal(export_lanes_place(l, 20, 30), 1);
	assert_int_equal(export_lanes_place(l, 100, 101), 0);
	for (int i = 2; i < EXPORT_LANES + 2; i++)
		export_lanes_place(l, 100, 1000);
	assert_int_equal(export_lanes_place(l, 100, 1000), EXPORT_LANES);
	assert_int_equal(export_lanes_place(l, 1000, 1001), 0);
	export_lanes_free(l);
	export_lanes_free(NULL);
}

/* ---- times ---- */

/* Along a stream they are those that the model works out of the whole. */
static void test_times_are_the_models(void **state)
{
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct feed f = {0};
		struct session *s = random_session(&f, seed, seed & 1);
		struct work_times *want, got;

		assert_int_equal(work_times(s, &want), 0);
		for (size_t i = 0; i < s->streams_count; i++) {
			struct export_stream_state st = {0};

			for (uint32_t k = 0; k < s->streams[i].works; k++) {
				uint32_t w = s->streams[i].first_work + k;

				export_work_times(s, &st, w, &got);
				assert_int_equal(got.launch_to_start, want[w].launch_to_start);
				assert_int_equal(got.queue_time, want[w].queue_time);
				assert_int_equal(got.queue_delay, want[w].queue_delay);
				assert_int_equal(got.total, want[w].total);
			}
		}
		free(want);
		feed_stop(&f);
	}
}

/* ---- fields ---- */

static void print_scopes(FILE *out, unsigned scopes)
{
	static const char *const words[] = {"call", "kernel", "copy", "set", "counter", "mark"};
	const char *separator = "";

	for (unsigned i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (!(scopes & 1u << i))
			continue;
		fprintf(out, "%s%s", separator, words[i]);
		separator = ", ";
	}
}

static void row_of_docs(FILE *out, const struct export_field *f)
{
	fprintf(out, "| `%s` | %s | ", f->name, f->unit);
	print_scopes(out, f->scopes);
	fprintf(out, " | %s | %s%s%s | %s%s%s |\n", f->meaning, f->kineto ? "`" : "",
		f->kineto ? f->kineto : "", f->kineto ? "`" : "", f->sqlite ? "`" : "",
		f->sqlite ? f->sqlite : "", f->sqlite ? "`" : "");
}

static char *read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 1 << 18);

	if (!f)
		fail_msg("cannot open %s: run this from the top of the source tree", path);
	assert_non_null(text);
	*size = fread(text, 1, (1 << 18) - 1, f);
	fclose(f);
	return text;
}

static void test_the_docs_describe_every_field(void **state)
{
	char *docs, *table = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&table, &size);

	assert_non_null(out);
	for (int i = 0; i < FIELDS; i++) {
		const struct export_field *f = export_field((enum export_field_id)i);

		assert_true(f->name && *f->name && f->unit && f->meaning && f->scopes);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(export_field((enum export_field_id)k)->name,
						f->name);
		row_of_docs(out, f);
	}
	fclose(out);
	docs = read_file(DOCS, &size);
	if (!strstr(docs, table)) {
		fputs(table, stderr);
		fail_msg("the table in " DOCS " is to be this one");
	}
	free(table);
	free(docs);
}

static void test_texts_become_utf8(void **state)
{
	char buf[16];

	assert_int_equal(export_text("a\xff" "b", buf, sizeof(buf)), 5);
	assert_string_equal(buf, "a\xef\xbf\xbd" "b");
	assert_int_equal(export_text("\xc3\xa4\xc3\xa4", buf, 5), 4);
	assert_int_equal(export_text("\xc3\xa4\xc3\xa4", buf, 4), 2); /* never half of one */
	assert_string_equal(buf, "\xc3\xa4");
	assert_int_equal(export_text(NULL, buf, sizeof(buf)), 0);
	assert_string_equal(buf, "");
}

/* ---- names and files ---- */

static void test_endings_say_the_writer(void **state)
{
	assert_ptr_equal(export_writer_of("a.pftrace"), &export_perfetto);
	assert_ptr_equal(export_writer_of("a.pftrace.gz"), &export_perfetto);
	assert_ptr_equal(export_writer_of("a.csv.gz"), &export_csv);
	assert_null(export_writer_of(".pftrace"));
	assert_null(export_writer_of("pftrace"));
	assert_null(export_writer_of("a.gbpf"));
	assert_null(export_writer_of("a.gz"));
	assert_int_equal(export_stem("dir/a.pftrace.gz"), 5);
	assert_int_equal(export_stem("a.b"), 3);
	for (size_t i = 0; export_writer_get(i); i++) {
		const struct export_writer *w = export_writer_get(i);
		char name[64];

		assert_ptr_equal(export_writer_named(w->name), w);
		snprintf(name, sizeof(name), "x%s", w->endings[0]);
		assert_ptr_equal(export_writer_of(name), w);
	}
}

static size_t files_in(const char *dir)
{
	DIR *d = opendir(dir);
	size_t count = 0;

	assert_non_null(d);
	while (readdir(d))
		count++;
	closedir(d);
	return count - 2;
}

static void test_a_file_appears_when_it_is_whole(void **state)
{
	char dir[] = "/tmp/traces.XXXXXX", path[64], *text;
	struct export_file *f;
	size_t size;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a.txt", dir);
	assert_int_equal(export_open(&f, path, false), 0);
	assert_int_not_equal(access(path, F_OK), 0);
	fputs("one", export_stream(f));
	export_close(f); /* thought better of */
	assert_int_equal(files_in(dir), 0);
	assert_int_equal(export_open(&f, path, false), 0);
	fputs("two", export_stream(f));
	assert_int_equal(export_commit(f), 0);
	assert_int_equal(export_size(f), 3);
	export_close(f);
	assert_int_equal(files_in(dir), 1);
	text = read_file(path, &size);
	assert_string_equal(text, "two");
	free(text);
	assert_int_equal(export_open(&f, dir, false), -EINVAL);
	assert_int_equal(export_open(&f, "/nowhere/at/all", false), -ENOENT);
	unlink(path);
	rmdir(dir);
}

static void test_what_is_compressed_comes_back(void **state)
{
	char dir[] = "/tmp/traces.XXXXXX", path[64], line[32], back[32];
	struct export_file *f;
	gzFile in;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a.gz", dir);
	assert_int_equal(export_open(&f, path, true), 0);
	for (int i = 0; i < 200000; i++)
		fprintf(export_stream(f), "%d\n", i * 7919);
	assert_int_equal(export_commit(f), 0);
	export_close(f);
	in = gzopen(path, "r");
	assert_non_null(in);
	for (int i = 0; i < 200000; i++) {
		snprintf(line, sizeof(line), "%d\n", i * 7919);
		assert_non_null(gzgets(in, back, sizeof(back)));
		assert_string_equal(back, line);
	}
	assert_int_equal(gzread(in, back, 1), 0);
	assert_int_equal(gzclose(in), Z_OK);
	unlink(path);
	rmdir(dir);
}

static bool no_more(void *ctx, double share)
{
	unsigned *asked = ctx;

	assert_true(share >= 0 && share <= 1);
	return ++*asked < 2;
}

static void test_writers_stop_when_told(void **state)
{
	struct export_options o = EXPORT_ALL;
	struct gpu_random_options random = {.seed = 5, .processes = 2, .threads = 4, .streams = 8,
					    .devices = 1, .calls = 4000};
	struct feed f = {0};
	struct session *s = gpu_random(&f, &random, NULL, NULL);
	const struct export_writer *const writers[] = {&export_perfetto, &export_csv};
	char dir[] = "/tmp/traces.XXXXXX", path[64], why[256] = "";

	assert_non_null(mkdtemp(dir));
	o.progress = no_more;
	for (size_t i = 0; i < 2; i++) {
		struct export_file *file;
		unsigned asked = 0;

		o.progress_ctx = &asked;
		snprintf(path, sizeof(path), "%s/a%s", dir, writers[i]->endings[0]);
		assert_int_equal(export_open(&file, path, 0), 0);
		assert_int_equal(writers[i]->write(s, &o, file, why, sizeof(why)), -EINTR);
		assert_int_equal(asked, 2);
		export_close(file);
	}
	assert_int_equal(files_in(dir), 0);
	rmdir(dir);
	feed_stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_window_wants_what_touches_it),
		cmocka_unit_test(test_a_walk_meets_everything_once_in_its_order),
		cmocka_unit_test(test_arrows_are_the_matched_pairs),
		cmocka_unit_test(test_slices_that_do_not_nest_get_rows),
		cmocka_unit_test(test_without_nesting_one_at_a_time),
		cmocka_unit_test(test_times_are_the_models),
		cmocka_unit_test(test_the_docs_describe_every_field),
		cmocka_unit_test(test_texts_become_utf8),
		cmocka_unit_test(test_endings_say_the_writer),
		cmocka_unit_test(test_a_file_appears_when_it_is_whole),
		cmocka_unit_test(test_what_is_compressed_comes_back),
		cmocka_unit_test(test_writers_stop_when_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
