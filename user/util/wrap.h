/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef GBPF_UTIL_WRAP_H
#define GBPF_UTIL_WRAP_H

#include <stdio.h>

/*
 * Prints text with its words wrapped at width columns. The cursor stands at
 * column at; every further line, and the first if at is beyond indent, starts
 * at column indent. "\n\n" begins a paragraph. Ends with a newline.
 */
void wrap_print(FILE *out, const char *text, unsigned at, unsigned indent, unsigned width);

#endif
