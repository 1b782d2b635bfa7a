// SPDX-License-Identifier: BSD-2-Clause
/* Output for programs: csv, tsv, json. Times are ns, sizes bytes, names whole. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/row.h"
#include "util/json.h"
#include "util/text.h"

static void print_milli(FILE *out, int64_t v)
{
	uint64_t a = v < 0 ? (uint64_t)-v : (uint64_t)v;

	fprintf(out, "%s%" PRIu64 ".%03" PRIu64, v < 0 ? "-" : "", a / 1000, a % 1000);
}

/* Control bytes, tabs and newlines among them, are written as \xNN. */
static void print_text(FILE *out, char separator, const char *text)
{
	size_t size = strlen(text) * 4 + 1;
	char *buf = malloc(size);

	if (!buf)
		return;
	text_printable(text, buf, size, 0);
	if (separator == ',')
		text_csv(out, buf);
	else
		fputs(buf, out);
	free(buf);
}

static void print_field(FILE *out, char separator, const struct column *c, const struct row *r)
{
	const int64_t *dim;

	if (!column_known(c, r))
		return; /* an empty field */
	switch (c->type) {
	case COLUMN_TEXT:
		print_text(out, separator, column_text(c, r));
		break;
	case COLUMN_DIM3:
		dim = column_dim3(c, r);
		fprintf(out, "%" PRId64 "x%" PRId64 "x%" PRId64, dim[0], dim[1], dim[2]);
		break;
	case COLUMN_HEX:
		fprintf(out, "0x%" PRIx64, (uint64_t)column_int(c, r));
		break;
	case COLUMN_INT:
		if (c->unit == UNIT_PERCENT || c->unit == UNIT_MILLI)
			print_milli(out, column_int(c, r));
		else
			fprintf(out, "%" PRId64, column_int(c, r));
		break;
	}
}

static void print_row(const struct view *v, char separator, const struct row *r, FILE *out)
{
	for (const struct column *c = v->columns; c->key; c++) {
		print_field(out, separator, c, r);
		fputc(c[1].key ? separator : '\n', out);
	}
}

void print_separated(struct report_ctx *ctx, const struct view *v, char separator, FILE *out)
{
	for (const struct column *c = v->columns; c->key; c++)
		fprintf(out, "%s%c", c->key, c[1].key ? separator : '\n');
	do {
		for (size_t i = 0; i < ctx->rows.count; i++)
			print_row(v, separator, &ctx->rows.items[i], out);
	} while (rows_next(ctx, v));
}

static void json_field(struct json *j, const struct column *c, const struct row *r)
{
	char hex[24];

	json_key(j, c->key);
	if (!column_known(c, r)) {
		json_null(j);
	} else if (c->type == COLUMN_TEXT) {
		json_string(j, column_text(c, r));
	} else if (c->type == COLUMN_DIM3) {
		json_begin_array(j);
		for (int i = 0; i < 3; i++)
			json_int(j, column_dim3(c, r)[i]);
		json_end_array(j);
	} else if (c->type == COLUMN_HEX) {
		snprintf(hex, sizeof(hex), "0x%" PRIx64, (uint64_t)column_int(c, r));
		json_string(j, hex);
	} else if (c->unit == UNIT_PERCENT || c->unit == UNIT_MILLI) {
		json_double(j, (double)column_int(c, r) / 1000, 3);
	} else {
		json_int(j, column_int(c, r));
	}
}

static void json_row(struct json *j, const struct view *v, const struct row *r)
{
	json_begin_object(j);
	for (const struct column *c = v->columns; c->key; c++)
		json_field(j, c, r);
	json_end_object(j);
}

void print_json(struct report_ctx *ctx, const struct view *v, FILE *out)
{
	struct json j;

	json_init(&j, out);
	json_begin_object(&j);
	json_key(&j, "view");
	json_string(&j, v->about.name);
	json_key(&j, "rows");
	json_begin_array(&j);
	do {
		for (size_t i = 0; i < ctx->rows.count; i++)
			json_row(&j, v, &ctx->rows.items[i]);
	} while (rows_next(ctx, v));
	json_end_array(&j);
	json_key(&j, "quality");
	quality_json(ctx->s, &j);
	json_end_object(&j);
	fputc('\n', out);
}
