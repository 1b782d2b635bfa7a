// SPDX-License-Identifier: BSD-2-Clause
/* Triggers fire when the calls, counted one by one, say so. */
#include "trigger_rig.h"

#include "tests/record_data.h"

/* An event and the ring that it came through. */
struct arrival {
	struct event event;
	unsigned ring;
};

static int by_time(const void *pa, const void *pb)
{
	const struct arrival *a = pa, *b = pb;

	if (a->event.ts != b->event.ts)
		return a->event.ts < b->event.ts ? -1 : 1;
	return a->event.kind < b->event.kind ? -1 : a->event.kind > b->event.kind;
}

struct job {
	struct call *calls;
	size_t count, room;
	struct arrival *arrivals;
	int64_t first; /* when the first event that arrived was, ns */
};

static void add(struct job *j, struct call c)
{
	if (j->count == j->room) {
		j->room = j->room ? 2 * j->room : 1024;
		j->calls = realloc(j->calls, j->room * sizeof(*j->calls));
		assert_non_null(j->calls);
	}
	j->calls[j->count++] = c;
}

static void job_free(struct job *j)
{
	free(j->calls);
	free(j->arrivals);
}

/* Threads that migrate between CPUs and call functions of ours, for some seconds. */
static struct job job_new(uint64_t seed, int64_t span)
{
	static const char *const names[] = {"cuStreamSynchronize", "cuMemcpyHtoD_v2",
					    "cuCtxSynchronize", "cuMemAlloc_v2"};
	struct job j = {0};
	struct data d;

	data_begin(&d, seed, 1, false);
	for (uint32_t tid = 1; tid <= 5; tid++) {
		int64_t now = 1000 * S + (int64_t)data_below(&d, 1000000);

		while (now < 1000 * S + span) {
			uint64_t most = 1 + (uint64_t)(now / MS % 5000); /* grows for 5 s */
			uint64_t length = data_below(&d, 1000) * (1 + data_below(&d, most));
			struct call c = {
				.begin = now,
				.end = now + 1000 + (int64_t)length,
				.bytes = data_below(&d, 1 << 20),
				.ret = data_below(&d, 300) ? 0 : 700,
				.tid = tid,
				.sp = 0x7000 + 16 * (uint32_t)data_below(&d, 2),
				.api = catalogue_find(names[data_below(&d, COUNT(names))]),
			};

			assert_true(c.api);
			add(&j, c);
			now = c.end + (int64_t)data_below(&d, 2000000);
		}
	}
	j.arrivals = calloc(2 * j.count, sizeof(*j.arrivals));
	assert_non_null(j.arrivals);
	for (size_t i = 0; i < j.count; i++) {
		j.arrivals[2 * i] = (struct arrival){half(&j.calls[i], EVENT_BEGIN),
						     (unsigned)data_below(&d, 4)};
		j.arrivals[2 * i + 1] = (struct arrival){half(&j.calls[i], EVENT_END),
							 (unsigned)data_below(&d, 4)};
	}
	qsort(j.arrivals, 2 * j.count, sizeof(*j.arrivals), by_time);
	return j;
}

static bool is_of(const struct trigger *t, const struct call *c)
{
	const struct api *api = catalogue_get(c->api);

	return !strcmp(t->subject, api_kind_name(api->kind)) ||
	       !strncmp(t->subject, api->name, strlen(t->subject));
}

static int by_value(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* What the calls themselves say of [begin, end). */
struct truth {
	int64_t low, high; /* the value lies between */
	uint64_t samples;
};

static struct truth quantile(int64_t *lengths, size_t count, double q)
{
	size_t rank = (size_t)(q * (double)count + 0.999999);
	int64_t exact = lengths[rank ? rank - 1 : 0];
	int64_t next = lengths[rank < count ? rank : count - 1];

	/* within a bucket of a histogram, which has eight an octave */
	return (struct truth){exact - exact / 8 - 1, next + next / 8 + 1, count};
}

static struct truth truth_of(const struct job *j, const struct trigger *t, int64_t begin,
			     int64_t end)
{
	int64_t *lengths = malloc((j->count + 1) * sizeof(*lengths));
	uint64_t calls = 0, errors = 0, bytes = 0, sum = 0;
	size_t n = 0;
	struct truth r = {0};
	int64_t value = 0;

	assert_non_null(lengths);
	for (size_t i = 0; i < j->count; i++) {
		const struct call *c = &j->calls[i];

		if (!is_of(t, c))
			continue;
		if (c->begin >= begin && c->begin < end) {
			calls++;
			bytes += c->bytes;
		}
		if (c->end < begin || c->end >= end)
			continue;
		errors += c->ret != 0;
		lengths[n++] = c->end - c->begin;
		sum += (uint64_t)(c->end - c->begin);
	}
	qsort(lengths, n, sizeof(*lengths), by_value);
	r.samples = t->what <= TRIGGER_AVG ? n : calls;
	switch (t->what) {
	case TRIGGER_P50: r = n ? quantile(lengths, n, 0.5) : r; break;
	case TRIGGER_P90: r = n ? quantile(lengths, n, 0.9) : r; break;
	case TRIGGER_P99: r = n ? quantile(lengths, n, 0.99) : r; break;
	case TRIGGER_MAX: value = n ? lengths[n - 1] : 0; break;
	case TRIGGER_AVG: value = n ? (int64_t)(sum / n) : 0; break;
	case TRIGGER_COUNT: value = (int64_t)calls; break;
	case TRIGGER_ERRORS: value = (int64_t)errors; break;
	case TRIGGER_RATE: value = (int64_t)((double)calls * 1000 / ((double)t->over / 1e9)); break;
	case TRIGGER_BYTES: value = (int64_t)bytes; break;
	}
	if (value)
		r.low = r.high = value;
	free(lengths);
	return r;
}

/* Rounds of 50 ms: each ring as a whole, one after the other. */
static bool feed(struct job *j, struct triggers *t, int64_t length, struct trigger_fired *fired)
{
	size_t at = 0;

	j->first = 0;
	for (int64_t upto = 1000 * S; upto < 1000 * S + length + S; upto += 50 * MS) {
		size_t end = at;

		while (end < 2 * j->count && j->arrivals[end].event.ts < upto)
			end++;
		for (unsigned ring = 4; ring-- > 0;)
			for (size_t i = at; i < end; i++) {
				if (j->arrivals[i].ring != ring)
					continue;
				triggers_events(t, &j->arrivals[i].event, 1);
			}
		at = end;
		if (triggers_advance(t, upto, fired))
			return true;
	}
	return false;
}

/*
 * The trigger fired at the first of its steps at which the calls say that its condition
 * holds, or never if there is none; where a histogram leaves it open, either is right.
 */
static void compare(struct job *j, const char *text, int64_t length, bool must_fire)
{
	char why[256] = "";
	struct triggers *t = one(text, "driver", why, sizeof(why));
	struct trigger_fired fired = {0};
	const struct trigger *trigger;
	bool did;

	assert_non_null(t);
	trigger = triggers_get(t, 0);
	did = feed(j, t, length, &fired);
	if (did != must_fire)
		fail_msg("%s: %d", text, did);
	for (int64_t end = 1000 * S; did && end <= fired.end; end += 200 * MS) {
		/* steps begin where the recording did: the same distance from its end */
		int64_t at = fired.end - (fired.end - end) / (200 * MS) * 200 * MS;
		int64_t from = at - trigger->over;
		struct truth r = truth_of(j, trigger, from, at);

		if (at == fired.end) {
			assert_int_equal(fired.samples, r.samples);
			assert_true(fired.value >= r.low && fired.value <= r.high);
			assert_true(fired.value > trigger->threshold);
		} else if (r.samples >= trigger->least) {
			assert_true(r.low <= trigger->threshold);
		}
	}
	triggers_free(t);
}

static void test_fires_when_calls_say_so(void **state)
{
	struct job j = job_new(1, 8 * S);

	(void)state;
	compare(&j, "p99(cuStreamSynchronize) > 1.5ms over 10s", 8 * S, true);
	compare(&j, "p90(sync) > 900us over 10s", 8 * S, true);
	compare(&j, "p50(copy) > 150us over 10s min 50", 8 * S, true);
	compare(&j, "max(sync) > 2ms over 10s", 8 * S, true);
	compare(&j, "avg(cuMemAlloc_v2) > 300us over 10s", 8 * S, true);
	compare(&j, "count(sync) > 1000 over 10s", 8 * S, true);
	compare(&j, "errors(copy) > 2 over 10s", 8 * S, true);
	compare(&j, "rate(alloc) > 100/s over 10s", 8 * S, true);
	compare(&j, "bytes(copy) > 200MiB over 10s", 8 * S, true);
	compare(&j, "max(sync) > 5.1ms over 10s", 8 * S, false);
	compare(&j, "p99(cuStreamSynchronize) > 1.5ms min 100000", 8 * S, false);
	job_free(&j);
}

/* One slow call is in the value for as long as the trigger's time, and no longer. */
static void test_time_slides(void **state)
{
	char why[256];
	struct triggers *t = one("avg(sync) > 1ms over 1s min 1", "driver", why, sizeof(why));
	struct trigger_fired fired;
	int64_t now = 50 * S, held = 0;
	uint64_t most;

	(void)state;
	put(t, 1, "cuCtxSynchronize", now, MS / 2);
	put(t, 1, "cuCtxSynchronize", now + 10 * MS, 10 * MS);
	for (int64_t upto = now; upto < now + 5 * S; upto += 10 * MS)
		held += triggers_advance(t, upto, &fired);
	assert_true(held >= 49 && held <= 51); /* a step is 20 ms */
	assert_false(triggers_starved(t, 0, &most));
	triggers_free(t);
}

static void test_few_calls_say_nothing(void **state)
{
	char why[256];
	struct triggers *t = one("p99(sync) > 1ms over 1s", "driver", why, sizeof(why));
	struct trigger_fired fired;
	uint64_t most;

	(void)state;
	for (int i = 0; i < 300; i++) { /* 99 a second: their p99 would be the longest */
		put(t, 1, "cuCtxSynchronize", 50 * S + i * S / 99, 5 * MS);
		assert_false(triggers_advance(t, 50 * S + i * S / 99, &fired));
	}
	assert_true(triggers_starved(t, 0, &most));
	assert_in_range(most, 97, 99);
	triggers_free(t);
}

/* "Less than" is for whole times after the first call, and not for those who have ended. */
static void test_too_little(void **state)
{
	char why[256];
	struct triggers *t = one("count(launch) < 1 over 1s", "driver", why, sizeof(why));
	struct trigger_fired fired = {0};
	int64_t upto;

	(void)state;
	for (upto = 50 * S; upto < 60 * S; upto += 100 * MS) /* nobody has begun */
		assert_false(triggers_advance(t, upto, &fired));
	for (; upto < 70 * S; upto += 100 * MS) {
		put(t, 1, "cuLaunchKernel", upto, MS);
		assert_false(triggers_advance(t, upto, &fired));
	}
	while (!triggers_advance(t, upto, &fired))
		upto += 10 * MS;
	assert_in_range(upto, 70 * S + 900 * MS, 71 * S + 60 * MS);
	assert_int_equal(fired.value, 0);
	put(t, 1, "cuLaunchKernel", upto, MS);
	triggers_reset(t);
	put(t, 1, "cuLaunchKernel", upto, MS);
	triggers_ended(t);
	for (; upto < 80 * S; upto += 100 * MS)
		assert_false(triggers_advance(t, upto, &fired));
	triggers_free(t);
}

static void test_reset_forgets(void **state)
{
	char why[256];
	struct triggers *t = one("max(sync) > 1ms", "driver", why, sizeof(why));
	struct trigger_fired fired;

	(void)state;
	put(t, 1, "cuCtxSynchronize", 50 * S, 3 * MS);
	assert_true(triggers_advance(t, 51 * S, &fired));
	assert_int_equal(fired.value, 3 * MS);
	assert_int_equal(fired.samples, 1);
	put(t, 1, "cuCtxSynchronize", 51 * S + MS, 3 * MS); /* not closed yet */
	triggers_reset(t);
	assert_false(triggers_advance(t, 60 * S, &fired));
	put(t, 1, "cuCtxSynchronize", 60 * S + MS, 2 * MS);
	assert_true(triggers_advance(t, 61 * S, &fired));
	assert_int_equal(fired.value, 2 * MS);
	assert_true(fired.begin >= 51 * S - 200 * MS && fired.end <= 61 * S);
	triggers_free(t);
}

/* The recording ends in the middle of a step: what is in it counts, but for "less than". */
static void test_end(void **state)
{
	static const char *const texts[] = {"count(launch) < 5 over 1s", "max(sync) > 1ms"};
	char why[256];
	struct triggers *t = make(texts, 2, "driver", true, why, sizeof(why));
	struct trigger_fired fired;

	(void)state;
	for (int64_t ts = 50 * S; ts < 53 * S; ts += 100 * MS) {
		put(t, 1, "cuLaunchKernel", ts, MS);
		assert_false(triggers_advance(t, ts, &fired));
	}
	put(t, 1, "cuCtxSynchronize", 53 * S + 20 * MS, 3 * MS);
	assert_false(triggers_advance(t, 53 * S + 30 * MS, &fired)); /* not over yet */
	assert_true(triggers_finish(t, 53 * S + 30 * MS, &fired));
	assert_string_equal(fired.trigger->text, texts[1]);
	assert_int_equal(fired.end, 53 * S + 30 * MS);
	assert_int_equal(fired.value, 3 * MS);
	triggers_free(t);
	t = make(texts, 2, "driver", true, why, sizeof(why));
	for (int64_t ts = 50 * S; ts < 53 * S; ts += 100 * MS) {
		put(t, 1, "cuLaunchKernel", ts, MS);
		assert_false(triggers_advance(t, ts, &fired));
	}
	assert_false(triggers_finish(t, 53 * S, &fired));
	triggers_free(t);
}

static void test_alternatives(void **state)
{
	static const char *const texts[] = {"max(copy) > 1s", "errors(launch) > 0",
					    "max(cuLaunchKernel) > 1ms"};
	char why[256];
	struct triggers *t = make(texts, COUNT(texts), "driver", true, why, sizeof(why));
	struct trigger_fired fired;
	struct call c = {50 * S, 50 * S + MS / 2, 0, 700, 9, 0x10, 0};
	struct event e;

	(void)state;
	c.api = catalogue_find("cuLaunchKernel_ptsz"); /* a twin is the same function */
	e = half(&c, EVENT_BEGIN);
	triggers_events(t, &e, 1);
	e = half(&c, EVENT_END);
	triggers_events(t, &e, 1);
	assert_true(triggers_advance(t, 51 * S, &fired));
	assert_string_equal(fired.trigger->text, texts[1]);
	assert_int_equal(fired.value, 1);
	triggers_reset(t);
	put(t, 9, "cuLaunchKernel_ptsz", 52 * S, 2 * MS);
	assert_true(triggers_advance(t, 53 * S, &fired));
	assert_string_equal(fired.trigger->text, texts[2]);
	triggers_free(t);
}

/* A run of queries is one wait, and its queries are counted; "not ready" is no error. */
static void test_polls(void **state)
{
	static const char *const texts[] = {"count(query) > 999", "errors(query) > 0"};
	char why[256];
	struct triggers *t = make(texts, COUNT(texts), "driver", true, why, sizeof(why));
	struct trigger_fired fired;
	struct event e = {.ts = 50 * S, .tid = 1, .kind = EVENT_POLL,
			  .api = catalogue_find("cuEventQuery"),
			  .poll = {.last_end = 50 * S + 90 * MS, .count = 1000, .ret = 600}};

	(void)state;
	triggers_events(t, &e, 1);
	assert_true(triggers_advance(t, 51 * S, &fired));
	assert_string_equal(fired.trigger->text, texts[0]);
	assert_int_equal(fired.value, 1000);
	triggers_free(t);
	t = one("max(query) > 89ms", "driver", why, sizeof(why));
	triggers_events(t, &e, 1);
	assert_true(triggers_advance(t, 51 * S, &fired));
	assert_int_equal(fired.value, 90 * MS);
	triggers_free(t);
}

/* Events of any kind and any content, and times that jump: memory is all that may not break. */
static void test_anything(void **state)
{
	static const char *const texts[] = {"p99(sync) > 1ns min 1", "bytes(copy) > 0",
					    "rate(launch) < 1/s", "errors(query) > 0"};
	char why[256];
	struct triggers *t = make(texts, COUNT(texts), "all", true, why, sizeof(why));
	struct trigger_fired fired;
	int64_t upto = 1;
	struct data d;

	(void)state;
	data_begin(&d, 5, 1, false);
	for (int i = 0; i < 200000; i++) {
		struct event e = {
			.ts = (int64_t)(data_random(&d) >> (1 + data_below(&d, 63))),
			.tid = (uint32_t)data_below(&d, 3), .sp = (uint32_t)data_below(&d, 3),
			.api = (uint16_t)data_random(&d), .kind = (uint8_t)data_below(&d, 5),
			.args = (uint8_t)data_below(&d, 3),
		};

		for (size_t w = 0; w < sizeof(e.launch) / 8; w++)
			((uint64_t *)&e.launch)[w] = data_random(&d) >> data_below(&d, 64);
		if (data_below(&d, 2))
			e.api = (uint16_t)(1 + data_below(&d, catalogue_count()));
		triggers_events(t, &e, 1);
		upto += (int64_t)data_below(&d, 30 * MS);
		if (!(i % 64))
			triggers_advance(t, upto, &fired);
	}
	triggers_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fires_when_calls_say_so),
		cmocka_unit_test(test_time_slides),
		cmocka_unit_test(test_few_calls_say_nothing),
		cmocka_unit_test(test_too_little),
		cmocka_unit_test(test_reset_forgets),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_alternatives),
		cmocka_unit_test(test_polls),
		cmocka_unit_test(test_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
