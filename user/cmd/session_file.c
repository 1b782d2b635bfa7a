/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/session_file.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cmd/rights.h"
#include "record/reader.h"
#include "util/err.h"

#define SESSION_FILE_PART SESSION_FILE ".part"

static void report_open_error(const char *path, int err)
{
	switch (err) {
	case -EBADMSG:
		err_report("%s: not a gbpf trace", path);
		break;
	case -EPROTO:
		err_report("%s: written by a newer gbpf than this " GBPF_VERSION, path);
		break;
	case -ESPIPE:
		err_report("%s: not a regular file", path);
		break;
	default:
		err_report("%s: %s", path, strerror(-err));
	}
}

/* path names what to read and becomes what was opened. Errors are reported here. */
static int open_trace(struct reader **out, const char **path)
{
	const char *given = *path;
	int err;

	*path = given ? given : SESSION_FILE;
	err = reader_open(out, *path);
	if (err == -ENOENT && !given) {
		*path = SESSION_FILE_PART;
		err = reader_open(out, *path);
		if (!err)
			err_report("%s: reading an unfinished recording; there is no %s", *path,
				   SESSION_FILE);
	}
	if (err == -ENOENT && !given) {
		err_report("there is no %s in this directory, and no FILE was given", SESSION_FILE);
		err_hint("sudo gbpf trace -p PID");
	} else if (err) {
		report_open_error(*path, err);
	}
	return err;
}

/* What the file itself lacks; what the trace lost is in the report. */
static void report_damage(const char *path, const struct session_quality *q)
{
	if (q->end == READER_END_CUT)
		err_report("%s: ends early; everything up to its last whole chunk is shown, "
			   "%" PRIu64 " bytes are not", path, q->lost_bytes);
	else if (q->end == READER_END_DAMAGED)
		err_report("%s: damaged; everything before the damage is shown, %" PRIu64
			   " bytes are not", path, q->lost_bytes);
}

int session_file_load(struct session **out, const char **path)
{
	struct session *s = NULL;
	struct reader *r;
	int err = open_trace(&r, path);

	if (err)
		return err;
	err = rights_become_invoker();
	if (err) {
		err_report("cannot go back to the rights of the user who called sudo: %s",
			   strerror(-err));
		goto out;
	}
	err = session_load(&s, r);
	if (err) {
		err_report("%s: %s", *path, strerror(-err));
		goto out;
	}
	report_damage(*path, &s->quality);
	*out = s;
out:
	reader_close(r);
	return err;
}
