/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvml_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define WORDS 4200

static struct state state;

static void wrong(const char *path, const char *line)
{
	fprintf(stderr, "simnvml: %s: not understood: %s\n", path, line);
	abort();
}

static int split(char *line, char **words)
{
	int count = 0;
	char *saved;

	for (char *w = strtok_r(line, " \t\n", &saved); w && count < WORDS;
	     w = strtok_r(NULL, " \t\n", &saved))
		words[count++] = w;
	return count;
}

static void device_begin(struct device *d, const char *uuid)
{
	struct device *instances = d->instances, *parent = d->parent;

	memset(d, 0, sizeof(*d));
	d->instances = instances;
	d->parent = parent;
	d->there = true;
	snprintf(d->uuid, sizeof(d->uuid), "%s", uuid);
	d->sm = d->memory_clock = d->power = d->power_limit = d->temperature = d->throttle = -1;
	d->energy = d->utilisation = d->memory_used = d->pids_count = -1;
	d->gpm[0] = -1;
}

/* "power 350000" and its like: one number. */
static bool number_take(struct device *d, const char *key, const char *value)
{
	const struct {
		const char *key;
		int64_t *out;
	} numbers[] = {
		{"sm", &d->sm}, {"memory_clock", &d->memory_clock}, {"power", &d->power},
		{"power_limit", &d->power_limit}, {"temperature", &d->temperature},
		{"throttle", &d->throttle}, {"energy", &d->energy},
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!strcmp(numbers[i].key, key)) {
			*numbers[i].out = strtoll(value, NULL, 0);
			return true;
		}
	return false;
}

static bool list_take(struct device *d, char **w, int count)
{
	if (!strcmp(w[0], "processes")) {
		d->pids_count = count - 1;
		for (int i = 1; i < count && i <= PIDS; i++)
			d->pids[i - 1] = (unsigned int)strtoul(w[i], NULL, 10);
	} else if (!strcmp(w[0], "gpm") && count == 5) {
		for (int i = 0; i < 4; i++)
			d->gpm[i] = strtod(w[i + 1], NULL);
	} else if (!strcmp(w[0], "memory") && count == 3) {
		d->memory_used = strtoll(w[1], NULL, 10);
		d->memory_total = strtoll(w[2], NULL, 10);
	} else if (!strcmp(w[0], "utilisation") && count == 3) {
		d->utilisation = strtoll(w[1], NULL, 10);
		d->memory_utilisation = strtoll(w[2], NULL, 10);
	} else {
		return false;
	}
	return true;
}

static bool device_take(struct device *d, char **w, int count)
{
	if (!strcmp(w[0], "name")) {
		for (int i = 1, n = 0; i < count && n < (int)sizeof(d->name); i++)
			n += snprintf(d->name + n, sizeof(d->name) - (size_t)n, "%s%s",
				      i > 1 ? " " : "", w[i]);
		return true;
	}
	if (count == 2 && !strcmp(w[0], "pci")) {
		snprintf(d->pci, sizeof(d->pci), "%s", w[1]);
		return true;
	}
	if (count == 2 && !strcmp(w[0], "result")) {
		d->result = atoi(w[1]);
		return true;
	}
	if (count == 2 && number_take(d, w[0], w[1]))
		return true;
	return list_take(d, w, count);
}

/* "fail FUNCTION CODE [FROM [COUNT]]", "hang FUNCTION MS [FROM [COUNT]]"; calls go on counting. */
static bool fail_take(struct state *s, char **w, int count, struct fail *before, size_t befores)
{
	struct fail *f = &s->fails[s->fails_count];
	bool hang = !strcmp(w[0], "hang");

	if (count < 3 || count > 5 || s->fails_count == FAILS)
		return false;
	memset(f, 0, sizeof(*f));
	snprintf(f->function, sizeof(f->function), "%s", w[1]);
	f->code = hang ? 0 : atoi(w[2]);
	f->ms = hang ? strtoull(w[2], NULL, 10) : 0;
	f->from = count > 3 ? strtoull(w[3], NULL, 10) : 1;
	f->count = count > 4 ? strtoull(w[4], NULL, 10) : UINT64_MAX;
	for (size_t i = 0; i < befores; i++)
		if (!strcmp(before[i].function, f->function))
			f->calls = before[i].calls;
	s->fails_count++;
	return true;
}

static struct device *instance_begin(struct state *s, const char *uuid)
{
	struct device *d = s->count ? &s->devices[s->count - 1] : NULL, *i;

	if (!d || d->instances_count == INSTANCES)
		return NULL;
	i = &d->instances[d->instances_count++];
	device_begin(i, uuid);
	return i;
}

static bool line_take(struct state *s, struct device **at, char **w, int count,
		      struct fail *before, size_t befores)
{
	if (count == 2 && !strcmp(w[0], "gpu") && s->count < DEVICES) {
		*at = &s->devices[s->count++];
		device_begin(*at, w[1]);
		return true;
	}
	if (count == 2 && !strcmp(w[0], "mig"))
		return (*at = instance_begin(s, w[1])) != NULL;
	if (!strcmp(w[0], "fail") || !strcmp(w[0], "hang"))
		return fail_take(s, w, count, before, befores);
	if (count == 1 && !strcmp(w[0], "long_processes"))
		return s->long_processes = true;
	if (count == 2 && !strcmp(w[0], "log")) {
		snprintf(s->log, sizeof(s->log), "%s", w[1]);
		return true;
	}
	if (count == 2 && !strcmp(w[0], "xid") && s->count && s->xids_count < XIDS) {
		s->xids[s->xids_count++] =
			(struct xid){s->count - 1, (unsigned int)strtoul(w[1], NULL, 10)};
		return true;
	}
	return *at && device_take(*at, w, count);
}

static void clear(struct state *s)
{
	for (size_t i = 0; i < DEVICES; i++) {
		s->devices[i].there = false;
		s->devices[i].instances = s->instances[i];
		for (size_t j = 0; j < INSTANCES; j++) {
			s->instances[i][j].there = false;
			s->instances[i][j].parent = &s->devices[i];
		}
	}
	s->count = s->fails_count = s->xids_count = 0;
	s->long_processes = false;
	s->log[0] = '\0';
}

static void state_read(struct state *s, const char *path, FILE *in)
{
	static char *words[WORDS];
	struct fail before[FAILS];
	size_t befores = s->fails_count;
	struct device *at = NULL;
	char *line = NULL;
	size_t room = 0;
	int count;

	memcpy(before, s->fails, sizeof(before));
	clear(s);
	while (getline(&line, &room, in) >= 0) {
		line[strcspn(line, "#")] = '\0';
		count = split(line, words);
		if (count && !line_take(s, &at, words, count, before, befores))
			wrong(path, words[0]);
	}
	free(line);
}

struct state *state_now(void)
{
	static struct stat last;
	const char *path = getenv("SIMNVML");
	struct stat st;
	FILE *in;

	if (!path || stat(path, &st))
		return &state;
	if (st.st_ino == last.st_ino && st.st_size == last.st_size &&
	    st.st_mtim.tv_sec == last.st_mtim.tv_sec && st.st_mtim.tv_nsec == last.st_mtim.tv_nsec)
		return &state;
	in = fopen(path, "re");
	if (!in)
		return &state;
	last = st;
	state_read(&state, path, in);
	fclose(in);
	return &state;
}

int state_fail(struct state *s, const char *function, uint64_t *sleep_ms)
{
	int code = 0;

	*sleep_ms = 0;
	for (size_t i = 0; i < s->fails_count; i++) {
		struct fail *f = &s->fails[i];

		if (strcmp(f->function, function))
			continue;
		f->calls++;
		if (f->calls < f->from || f->calls - f->from >= f->count)
			continue;
		code = f->code;
		*sleep_ms = f->ms;
	}
	return code;
}
