// SPDX-License-Identifier: BSD-2-Clause
/*
 * The join where CUPTI recorded no calls and numbered works by them. A small machine makes the
 * calls: threads, each with a moment within each call at which the driver takes it, which is
 * what numbers are given by, and streams that run what they were given in that order.
 */
#include "gpu_joined.h"

#define MS 1000000
#define SEEDS 5

struct machine {
	uint64_t seed;
	unsigned threads, streams; /* streams: of each thread */
	unsigned calls;		   /* of each thread */
	unsigned sync;		   /* a wait for all after so many calls; 0: never */
	unsigned before;	   /* calls of each thread before the window */
	unsigned flying;	   /* of one thread: so many of the last of them have works */
	unsigned lost, empty;	   /* of 1000: works without a record, copies of nothing */
	unsigned more;		   /* ids of other calls in between, at most */
	unsigned reuse;		   /* a handle is another stream's after so many calls */
	uint32_t first_id;
	int64_t kernel_ns, gap_ns;
	int64_t switching;	   /* told; 0: not */
	bool alike;		   /* one kernel in one form */
	bool one_form;		   /* several kernels, each with the same grid */
	bool shared;		   /* threads launch to one another's streams */
	bool dropped;		   /* it is told that records were lost */
};

/* What a thread does next. */
struct actor {
	int64_t begin, taken, end;
	unsigned calls;
	bool wait;
};

struct run {
	const struct machine *m;
	struct gpu_random g;
	struct actor actors[16];
	int64_t free_at[256];
	int64_t window; /* its begin */
	bool begun;
	uint32_t id;
};

static unsigned pick(struct run *r, unsigned below)
{
	return below ? (unsigned)gpu_rand(&r->g, below) : 0;
}

static void plan(struct run *r, struct actor *a, int64_t from)
{
	const struct machine *m = r->m;
	int64_t length = 2000 + pick(r, 3000);

	a->wait = m->sync && a->calls && !(a->calls % m->sync) && !a->wait;
	a->begin = from + 200 + (m->gap_ns ? pick(r, (unsigned)m->gap_ns) : 0);
	a->taken = a->begin + (a->wait ? 0 : 100 + pick(r, (unsigned)length - 200));
	a->end = a->begin + length;
}

static void sync_all(struct run *r, struct actor *a)
{
	for (size_t i = 0; i < 256; i++)
		if (r->free_at[i] > a->end)
			a->end = r->free_at[i] + 700;
	feed_call(r->g.f, a->begin, a->end, F_CTX_SYNC, SP);
}

static void work_of(struct run *r, const struct actor *a, unsigned slot, uint32_t stream,
		    uint32_t shape)
{
	const struct machine *m = r->m;
	int64_t *free_at = &r->free_at[slot], begin = a->taken + 1500;
	struct gpu_truth truth = { .pid = r->g.f->pid, .tid = r->g.f->tid, .stream = stream,
				   .context = 1, .entry = a->begin };

	begin = begin > *free_at ? begin : *free_at + 300;
	*free_at = begin + m->kernel_ns;
	if (!r->begun && a->calls + m->flying <= m->before)
		return;
	r->id += 1 + pick(r, m->more + 1);
	if (pick(r, 1000) < m->lost)
		return;
	truth.begin = begin;
	assert_int_equal(GROW(r->g.truth, r->g.truth_cap, r->g.count + 1), 0);
	r->g.truth[r->g.count++] = truth;
	feed_kernel(r->g.f, begin, *free_at, stream, r->id, shape);
}

static void act(struct run *r, unsigned thread)
{
	const struct machine *m = r->m;
	struct actor *a = &r->actors[thread];
	unsigned owner = m->shared ? pick(r, m->threads) : thread;
	unsigned slot = owner * m->streams + pick(r, m->streams);
	uint32_t kind = m->alike ? 0 : pick(r, 4), life = m->reuse ? a->calls / m->reuse : 0;

	r->g.f->tid = 100 + thread;
	if (a->wait) {
		sync_all(r, a);
		return;
	}
	a->calls++;
	if (pick(r, 1000) < m->empty) {
		struct event e = { .args = EVENT_ARGS_CALL, .call = { .stream = 0x1000 + slot } };

		feed_begin_with(r->g.f, a->begin, F_ASYNC, SP, &e);
		feed_end(r->g.f, a->end, F_ASYNC, SP, 0);
		return;
	}
	feed_launched(r->g.f, a->begin, a->end, 0xabc + kind, 0x1000 + slot,
		      m->one_form ? 8 : 8 << kind, 128, 0);
	work_of(r, a, slot, 7 + slot + 256 * life, (m->one_form ? 5 : 1) + kind);
}

/* The thread whose call the driver takes next, or that waits. */
static struct actor *next_actor(struct run *r)
{
	struct actor *next = NULL;

	for (unsigned i = 0; i < r->m->threads; i++) {
		struct actor *a = &r->actors[i];

		if (a->calls < r->m->calls && (!next || a->taken < next->taken))
			next = a;
	}
	return next;
}

/* All threads have made their calls before: the window begins amid, or between, calls. */
static void begin_window(struct run *r)
{
	int64_t when = INT64_MAX;

	for (unsigned i = 0; i < r->m->threads; i++) {
		if (r->actors[i].calls < r->m->before)
			return;
		when = r->actors[i].begin < when ? r->actors[i].begin : when;
	}
	if (!r->begun)
		r->window = when;
	r->begun = true;
}

static struct session *run(struct feed *f, const struct machine *m, struct gpu_truth **truth,
			   size_t *count)
{
	struct run r = { .m = m, .g = { .f = f, .state = m->seed * 0x9e3779b97f4a7c15ull + 1 },
			 .id = m->first_id };
	struct actor *a;

	feed_start(f);
	feed_window(f, 1, 90000 * (int64_t)MS);
	for (uint32_t i = 0; i < 8; i++)
		feed_shape(f, 1 + i, (const char *[]){ "_Z1av", "_Z1bv", "_Z1cv", "_Z1dv" }[i % 4],
			   i < 4 ? 8 << i : 8, 128);
	for (unsigned i = 0; i < m->threads; i++)
		plan(&r, &r.actors[i], 1000 * (int64_t)MS);
	begin_window(&r);
	while ((a = next_actor(&r))) {
		act(&r, (unsigned)(a - r.actors));
		plan(&r, a, a->end);
		begin_window(&r);
	}
	f->tid = 100;
	feed_sidecar(f, r.window, RECORD_SIDECAR_BEGAN, (uint64_t)m->switching, "");
	if (m->dropped)
		feed_sidecar(f, r.window + 1, RECORD_SIDECAR_DROPPED, 1, "ring");
	feed_sidecar(f, 80000 * (int64_t)MS, RECORD_SIDECAR_ENDED, 0, "");
	*truth = r.g.truth;
	*count = r.g.count;
	return feed_finish(f);
}

/* What is not said. */
static struct machine usual(struct machine m)
{
	m.threads = m.threads ? m.threads : 1;
	m.streams = m.streams ? m.streams : 1;
	m.calls = m.calls ? m.calls : 300;
	m.gap_ns = m.gap_ns ? m.gap_ns : 3000;
	m.kernel_ns = m.kernel_ns ? m.kernel_ns : 1000;
	return m;
}

static struct found ask(const struct machine *asked)
{
	struct machine m = usual(*asked);
	struct feed f;
	struct gpu_truth *truth = NULL;
	size_t count;
	struct session *s = run(&f, &m, &truth, &count);
	struct found found = compare(s, truth, count);

	assert_int_equal(found.right + found.wrong + found.unmatched, count);
	assert_true(count > 0);
	free(truth);
	feed_stop(&f);
	return found;
}

/* Nothing is wrong, and at least so many of 1000 have their call. */
static void expect(struct machine m, unsigned least)
{
	for (m.seed = 1; m.seed <= SEEDS; m.seed++) {
		struct found found = ask(&m);

		if (found.wrong || found.right * 1000 <
					   least * (found.right + found.unmatched))
			fail_msg("seed %llu: %zu right, %zu wrong, %zu unmatched",
				 (unsigned long long)m.seed, found.right, found.wrong,
				 found.unmatched);
	}
}

static void one_thread(void **state)
{
	expect((struct machine){ .sync = 50 }, 1000);
	expect((struct machine){ .sync = 50, .streams = 8 }, 1000);
	expect((struct machine){ .before = 100, .sync = 7 }, 1000);
	expect((struct machine){ .before = 100, .sync = 50, .alike = true }, 1000);
	/* other calls have ids, too, and these wrap */
	expect((struct machine){ .sync = 50, .more = 9, .first_id = -1000u }, 1000);
	/* what the kernels are tells it, without a wait */
	expect((struct machine){ .before = 100, .kernel_ns = 9000 }, 1000);
	/* that one handle is one kernel */
	expect((struct machine){ .before = 40, .flying = 3, .kernel_ns = 9000, .one_form = true },
	       1000);
	/* calls under way when it began to be recorded count, or not */
	for (unsigned flying = 0; flying < 9; flying++)
		expect((struct machine){ .before = 100, .flying = flying, .sync = 70 },
		       1000);
}

/*
 * One kernel, over and over, with a full queue, and nobody waits: which was the first? That there
 * are as many works as calls says it, or that no call was under way; and if a record is lost,
 * nothing does.
 */
static void nothing_tells(void **state)
{
	struct machine m = { .before = 100, .kernel_ns = 9000, .alike = true, .calls = 600 };

	expect(m, 1000);
	m.switching = 100;
	expect(m, 1000);
	m.dropped = true;
	for (m.seed = 1; m.seed < 10; m.seed++) {
		struct found found = ask(&m);

		assert_int_equal(found.wrong + found.right, 0);
	}
	m.sync = 20; /* each wait shows where it is */
	expect(m, 800);
}

static void several_threads(void **state)
{
	expect((struct machine){ .threads = 2, .sync = 50 }, 1000);
	expect((struct machine){ .threads = 16, .sync = 50, .calls = 200 }, 990);
	expect((struct machine){ .threads = 16, .streams = 4, .calls = 300, .sync = 40 },
	       990);
	expect((struct machine){ .threads = 8, .gap_ns = 100, .calls = 300, .sync = 40,
				 .alike = true, .more = 3 }, 800);
	/* handles of streams that are gone are given again */
	expect((struct machine){ .threads = 8, .streams = 2, .reuse = 50, .calls = 300,
				 .sync = 40 }, 950);
}

/* Two calls at the same time to one stream may be either's: nothing is guessed. */
static void streams_of_several_threads(void **state)
{
	expect((struct machine){ .threads = 4, .streams = 2, .shared = true, .sync = 30,
				 .gap_ns = 60000 }, 800);
	expect((struct machine){ .threads = 4, .shared = true, .sync = 30, .alike = true,
				 .gap_ns = 60000 }, 300);
	expect((struct machine){ .threads = 8, .shared = true, .sync = 30, .alike = true,
				 .gap_ns = 100 }, 0);
}

/* Near what is missing some stay open, and what comes after is found again. */
static void what_is_missing(void **state)
{
	expect((struct machine){ .calls = 3000, .sync = 20, .lost = 2 }, 900);
	expect((struct machine){ .calls = 3000, .sync = 20, .empty = 2 }, 900);
	expect((struct machine){ .calls = 3000, .sync = 20, .lost = 2, .empty = 2,
				 .alike = true }, 600);
	expect((struct machine){ .calls = 3000, .sync = 20, .lost = 30, .empty = 30 }, 0);
	expect((struct machine){ .calls = 3000, .kernel_ns = 9000, .lost = 3,
				 .empty = 3 }, 0);
	expect((struct machine){ .threads = 4, .calls = 1000, .sync = 20, .lost = 3,
				 .empty = 3 }, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_thread),
		cmocka_unit_test(nothing_tells),
		cmocka_unit_test(several_threads),
		cmocka_unit_test(streams_of_several_threads),
		cmocka_unit_test(what_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
