// SPDX-License-Identifier: BSD-2-Clause
#include "diagnose/rules.h"

#include <stdlib.h>

static const struct rule *const tables[] = { rules_launch, rules_wait, rules_gpu, rules_ranks,
					      rules_run };

#define TABLES (sizeof(tables) / sizeof(tables[0]))

static const struct rule *rule_at(size_t i)
{
	for (size_t t = 0; t < TABLES; t++)
		for (const struct rule *r = tables[t]; r->words.name; r++)
			if (!i--)
				return r;
	return NULL;
}

const struct diag_rule *diag_rule(size_t i)
{
	const struct rule *r = rule_at(i);

	return r ? &r->words : NULL;
}

void evidence_number(struct diag_finding *out, const char *key, double value)
{
	if (out->evidence_count < EVIDENCE_MAX)
		out->evidence[out->evidence_count++] =
			(struct diag_evidence){ .key = key, .value = value };
}

void evidence_text(struct diag_finding *out, const char *key, const char *text)
{
	if (text && out->evidence_count < EVIDENCE_MAX)
		out->evidence[out->evidence_count++] =
			(struct diag_evidence){ .key = key, .text = text };
}

const char *kernel_text(const struct facts *f, uint32_t kernel)
{
	return kernel < f->s->kernels_count ? f->s->kernels[kernel].short_name : NULL;
}

const char *api_text(const struct facts *f, const struct tally *t)
{
	return t->count ? f->s->apis[t->api].display : NULL;
}

static int weight_order(const void *pa, const void *pb)
{
	const struct diag_finding *a = pa, *b = pb;

	if (a->severity != b->severity)
		return a->severity > b->severity ? -1 : 1;
	return a->share > b->share ? -1 : a->share < b->share;
}

void rules_run_all(const struct facts *f, struct diag_process *out)
{
	const struct rule *r;

	for (size_t i = 0; (r = rule_at(i)); i++) {
		struct diag_finding *finding = &out->findings[out->findings_count];

		if (out->findings_count == FINDINGS_MAX)
			break;
		*finding = (struct diag_finding){ .rule = &r->words, .share = -1 };
		out->findings_count += r->fires(f, finding);
	}
	qsort(out->findings, out->findings_count, sizeof(*out->findings), weight_order);
}
