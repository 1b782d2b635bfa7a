// SPDX-License-Identifier: BSD-2-Clause
/* Which kinds of trace files there are. */
#include <errno.h>
#include <string.h>

#include "export/trace.h"

static const struct export_writer *const writers[] = {
	&export_perfetto,
	&export_kineto,
	&export_sqlite,
	&export_csv,
	NULL,
};

const struct export_writer *export_writer_get(size_t i)
{
	return i < sizeof(writers) / sizeof(*writers) ? writers[i] : NULL;
}

const struct export_writer *export_writer_named(const char *name)
{
	for (size_t i = 0; writers[i]; i++)
		if (!strcmp(writers[i]->name, name))
			return writers[i];
	return NULL;
}

/* Does a name of len bytes end so? With something before it. */
static bool ends(const char *path, size_t len, const char *ending)
{
	size_t n = strlen(ending);

	return len > n && !memcmp(path + len - n, ending, n);
}

/* Bytes of the longest ending of w that path has; 0: none. */
static size_t ending_of(const struct export_writer *w, const char *path)
{
	size_t len = strlen(path), longest = 0;
	bool gz = ends(path, len, ".gz") && !w->own_file;

	for (const char *const *e = w->endings; *e; e++) {
		size_t n = strlen(*e);

		if (n > longest && ends(path, len, *e))
			longest = n;
		if (gz && n + 3 > longest && ends(path, len - 3, *e))
			longest = n + 3;
	}
	return longest;
}

const struct export_writer *export_writer_of(const char *path)
{
	const struct export_writer *best = NULL;
	size_t longest = 0;

	for (size_t i = 0; writers[i]; i++) {
		size_t n = ending_of(writers[i], path);

		if (n > longest) {
			best = writers[i];
			longest = n;
		}
	}
	return best;
}

size_t export_stem(const char *path)
{
	const struct export_writer *w = export_writer_of(path);

	return strlen(path) - (w ? ending_of(w, path) : 0);
}

int export_progress(const struct export_options *o, uint64_t done, uint64_t all)
{
	if (!o->progress)
		return 0;
	return o->progress(o->progress_ctx, all ? (double)done / (double)all : 1) ? 0 : -EINTR;
}
