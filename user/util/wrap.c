/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/wrap.h"

#include <stdbool.h>
#include <string.h>

#include "util/text.h"

#define LONGEST_WORD 200

static void start_line(FILE *out, unsigned at, unsigned indent)
{
	fprintf(out, "%*s", (int)(indent - at), "");
}

void wrap_print(FILE *out, const char *text, unsigned at, unsigned indent, unsigned width)
{
	bool empty = true;

	if (at > indent) {
		putc('\n', out);
		at = 0;
	}
	start_line(out, at, indent);
	at = indent;
	while (*text) {
		size_t len = strcspn(text, " \n");
		char word[LONGEST_WORD];
		unsigned columns;

		snprintf(word, sizeof(word), "%.*s", (int)len, text);
		columns = (unsigned)text_width(word);
		if (!empty && at + 1 + columns > width) {
			putc('\n', out);
			start_line(out, 0, indent);
			at = indent;
			empty = true;
		}
		at += columns + !empty;
		fprintf(out, "%s%s", empty ? "" : " ", word);
		empty = false;
		text += len;
		if (text[0] == '\n' && text[1] == '\n') {
			fputs("\n\n", out);
			start_line(out, 0, indent);
			at = indent;
			empty = true;
		}
		text += strspn(text, " \n");
	}
	putc('\n', out);
}
