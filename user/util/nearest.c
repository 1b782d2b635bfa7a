/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/nearest.h"

#include <string.h>

#define MAX_WORD 40

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;

	return m < c ? m : c;
}

/* Edits between a and b (insert, delete, change, swap of neighbours), row by row. */
static unsigned distance(const char *a, size_t la, const char *b, size_t lb)
{
	unsigned rows[3][MAX_WORD + 1];
	unsigned *before = rows[0], *above = rows[1], *row = rows[2];

	for (size_t j = 0; j <= lb; j++)
		above[j] = (unsigned)j;
	for (size_t i = 1; i <= la; i++) {
		unsigned *oldest = before;

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= lb; j++) {
			unsigned change = a[i - 1] != b[j - 1];

			row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + change);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    before[j - 2] + 1 < row[j])
				row[j] = before[j - 2] + 1;
		}
		before = above;
		above = row;
		row = oldest;
	}
	return above[lb];
}

void nearest_init(struct nearest *n, const char *word)
{
	size_t len = strlen(word);

	/* A third of a long word may be wrong, one letter of a short one. */
	*n = (struct nearest){.word = word, .distance = (len < 4 ? 1 : (unsigned)len / 3 + 1) + 1};
}

void nearest_offer(struct nearest *n, const char *candidate)
{
	size_t lw = strlen(n->word), lc = strlen(candidate);
	unsigned d;

	if (lw > MAX_WORD || lc > MAX_WORD)
		return;
	/* The beginning of a name is nearer than any misspelling. */
	if (lw >= 2 && !strncmp(n->word, candidate, lw))
		d = 0;
	else
		d = distance(n->word, lw, candidate, lc);
	if (d < n->distance && d < lc) {
		n->distance = d;
		n->best = candidate;
	}
}
