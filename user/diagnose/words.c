// SPDX-License-Identifier: BSD-2-Clause
#include "diagnose/words.h"

#include <inttypes.h>
#include <string.h>

#include "util/text.h"

static bool ends_in(const char *s, size_t len, const char *tail)
{
	size_t n = strlen(tail);

	return len >= n && !memcmp(s + len - n, tail, n);
}

/* The key without its unit, with spaces; a hole in buf after it. */
static size_t name_of(const char *key, size_t drop, char *buf, size_t size)
{
	size_t n = strlen(key) - drop;

	n = n < size - 2 ? n : size - 2;
	for (size_t i = 0; i < n; i++)
		buf[i] = key[i] == '_' ? ' ' : key[i];
	buf[n] = ' ';
	buf[n + 1] = '\0';
	return n + 1;
}

const char *evidence_words(const struct diag_evidence *e, char *buf, size_t size)
{
	size_t len = strlen(e->key), at;

	if (e->text) {
		at = name_of(e->key, 0, buf, size);
		text_printable(e->text, buf + at, size - at, 80);
	} else if (ends_in(e->key, len, "_ns")) {
		at = name_of(e->key, 3, buf, size);
		text_duration((int64_t)e->value, buf + at, size - at);
	} else if (ends_in(e->key, len, "_pct")) {
		at = name_of(e->key, 4, buf, size);
		snprintf(buf + at, size - at, "%.1f %%", e->value);
	} else if (ends_in(e->key, len, "bytes")) {
		at = name_of(e->key, 0, buf, size);
		text_bytes((uint64_t)e->value, buf + at, size - at);
	} else if (e->value != (double)(int64_t)e->value) {
		at = name_of(e->key, 0, buf, size);
		snprintf(buf + at, size - at, "%.2f", e->value);
	} else {
		at = name_of(e->key, 0, buf, size);
		text_count((uint64_t)e->value, buf + at, size - at);
	}
	return buf;
}

const char *steps_words(const struct steps *v, char *buf, size_t size)
{
	size_t whole = steps_whole(v);
	char number[32], length[32];

	snprintf(buf, size, "%s step%s of %s", text_count(whole, number, sizeof(number)),
		 whole == 1 ? "" : "s", text_duration(v->length, length, sizeof(length)));
	return buf;
}

const char *process_words(const struct session *s, uint32_t process, char *buf, size_t size)
{
	const struct session_process *p = &s->processes[process];
	char comm[128];

	text_printable(p->comm && *p->comm ? p->comm : "a process", comm, sizeof(comm), 40);
	snprintf(buf, size, "%s (pid %" PRIu32 ")", comm, p->pid);
	return buf;
}

static const struct diag_evidence *evidence_of(const struct diag_finding *f, const char *key)
{
	for (size_t i = 0; i < f->evidence_count; i++)
		if (!strcmp(f->evidence[i].key, key))
			return &f->evidence[i];
	return NULL;
}

const char *straggler_words(const struct session *s, const struct diag_process *p, char *buf,
			    size_t size)
{
	const struct diag_finding *f = diag_straggles(p);
	const struct diag_evidence *wait = evidence_of(f, "others_wait_a_step_ns");
	const struct diag_evidence *in = evidence_of(f, "more_time");
	bool sure = f->severity == SEVERITY_WARNING; /* by collectives, on the GPU */
	char name[WORDS_SIZE / 2], rank[64] = "", label[48], ns[32], a_step[64] = "";

	if (p->rank)
		snprintf(rank, sizeof(rank), "rank %s, ",
			 text_printable(p->rank, label, sizeof(label), 24));
	if (wait)
		snprintf(a_step, sizeof(a_step), "%s a step, ",
			 text_duration((int64_t)wait->value, ns, sizeof(ns)));
	snprintf(buf, size, "%s%s: the others %swait %s%.1f %% of the time, for it%s%s", rank,
		 process_words(s, p->process, name, sizeof(name)),
		 sure ? "" : "seem to ", a_step, 100 * f->share,
		 in ? "; it spends more time " : "", in ? in->text : "");
	return buf;
}

const char *no_straggler_words(const struct diag_job *j)
{
	return j->compared ? "no rank was seen to keep the others waiting" :
			     "too little was recorded to compare its ranks";
}

int shares_order(const struct diag_process *p, int order[CLASSES])
{
	int n = 0;

	for (int i = 0; i < CLASSES; i++) {
		int at = n;

		if (p->shares[i] < 0.0005)
			continue;
		while (at > 0 && p->shares[order[at - 1]] < p->shares[i]) {
			order[at] = order[at - 1];
			at--;
		}
		order[at] = i;
		n++;
	}
	return n;
}

const char *class_words(enum diag_class class, enum diag_basis basis)
{
	static const char *const gpu[CLASSES] = {
		[CLASS_GPU] = "GPU ran kernels", [CLASS_COMM] = "GPU ran collectives only",
		[CLASS_COPY] = "GPU copied or set only",
		[CLASS_OVERHEAD] = "GPU idle, CPU preparing work",
		[CLASS_SYNC] = "GPU idle, a wait had drained it",
		[CLASS_STARVED] = "GPU idle, CPU away from CUDA",
		[CLASS_BACK_PRESSURED] = "launches blocked",
		[CLASS_COLD] = "GPU idle, first calls and loading",
		[CLASS_OTHER] = "GPU idle, work asked for had not begun",
		[CLASS_SHARED] = "GPU ran other processes' work",
	};
	static const char *const cpu[CLASSES] = {
		[CLASS_GPU] = "threads waited for the GPU",
		[CLASS_COMM] = "threads were in collectives",
		[CLASS_COPY] = "threads waited for copies",
		[CLASS_OVERHEAD] = "threads prepared work", [CLASS_SYNC] = "waits",
		[CLASS_STARVED] = "threads were away from CUDA",
		[CLASS_BACK_PRESSURED] = "launches were held up, a full queue",
		[CLASS_COLD] = "first calls and loading", [CLASS_OTHER] = "other",
		[CLASS_SHARED] = "other processes' work",
	};

	return basis == BASIS_CPU_GPU ? gpu[class] : cpu[class];
}
