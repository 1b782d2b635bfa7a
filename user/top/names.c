/* SPDX-License-Identifier: BSD-2-Clause */
#include "top/names.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/text.h"

#define SLOTS 1024 /* a name that falls on another's slot takes it */

struct names {
	struct {
		char *mangled, *shorter;
	} slots[SLOTS];
};

struct names *names_new(void)
{
	return calloc(1, sizeof(struct names));
}

void names_free(struct names *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < SLOTS; i++) {
		free(n->slots[i].mangled);
		free(n->slots[i].shorter);
	}
	free(n);
}

/* FNV-1a */
static uint32_t hash(const char *s)
{
	uint32_t h = 2166136261u;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	return h;
}

const char *names_short(struct names *n, const char *mangled, char *buf, size_t size)
{
	uint32_t i = hash(mangled) % SLOTS;
	char *kept = n->slots[i].mangled;

	if (!kept || strcmp(kept, mangled) != 0) {
		char *demangled = text_demangle(mangled);

		free(kept);
		free(n->slots[i].shorter);
		n->slots[i].mangled = strdup(mangled);
		n->slots[i].shorter = demangled ? text_short_name(demangled) : NULL;
		free(demangled);
	}
	if (!n->slots[i].mangled) { /* out of memory: not to be found */
		free(n->slots[i].shorter);
		n->slots[i].shorter = NULL;
	}
	snprintf(buf, size, "%s", n->slots[i].shorter ? n->slots[i].shorter : mangled);
	return buf;
}
