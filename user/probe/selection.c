/* SPDX-License-Identifier: BSD-2-Clause */
#include "probe/selection.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "probe/catalogue.h"

static void want(struct selection *s, uint16_t id)
{
	if (!s->wanted[id])
		s->count++;
	s->wanted[id] = 1;
}

static void want_tiers(struct selection *s, unsigned tiers)
{
	size_t i;

	for (i = 1; i <= catalogue_count(); i++)
		if (catalogue_get((uint16_t)i)->tier & tiers)
			want(s, (uint16_t)i);
}

static int want_item(struct selection *s, const char *item, char *why, size_t size)
{
	const char *excluded;
	uint16_t id;

	if (!strcmp(item, "driver")) {
		want_tiers(s, TIER_DEFAULT);
	} else if (!strcmp(item, "runtime")) {
		want_tiers(s, TIER_DEFAULT | TIER_RUNTIME);
	} else if (!strcmp(item, "all")) {
		want_tiers(s, TIER_DEFAULT | TIER_RUNTIME | TIER_ALL);
	} else {
		id = catalogue_find(item);
		if (id) {
			want(s, id);
			return 0;
		}
		excluded = catalogue_excluded(item);
		if (excluded)
			snprintf(why, size, "%s is left out on purpose: %s", item, excluded);
		else
			snprintf(why, size, "unknown API '%s'; give driver, runtime, all, or "
					    "exported names such as cuLaunchKernel", item);
		return -EINVAL;
	}
	return 0;
}

int selection_parse(struct selection *out, const char *spec, char *why, size_t size)
{
	char item[128];
	size_t len;
	int err;

	memset(out, 0, sizeof(*out));
	while (*spec) {
		len = strcspn(spec, ",");
		if (!len || len >= sizeof(item)) {
			snprintf(why, size, len ? "an API name of over 127 bytes"
						: "an empty name in the list of APIs");
			return -EINVAL;
		}
		memcpy(item, spec, len);
		item[len] = '\0';
		err = want_item(out, item, why, size);
		if (err)
			return err;
		spec += len;
		if (*spec == ',' && !*++spec) {
			snprintf(why, size, "an empty name in the list of APIs");
			return -EINVAL;
		}
	}
	if (out->count)
		return 0;
	snprintf(why, size, "an empty list of APIs");
	return -EINVAL;
}

bool selection_wants_library(const struct selection *s, unsigned library)
{
	size_t i;

	for (i = 1; i <= catalogue_count(); i++)
		if (s->wanted[i] && catalogue_get((uint16_t)i)->library == library)
			return true;
	return false;
}
