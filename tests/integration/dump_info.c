/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints what a recording says of itself: its INFO records, a line "key<TAB>value" each. */
#include <stdio.h>

#include "record/reader.h"

int main(int argc, char **argv)
{
	struct reader *r;
	struct record record;

	if (argc != 2 || reader_open(&r, argv[1]))
		return 2;
	while (reader_next(r, &record) == 1)
		if (record.kind == RECORD_INFO)
			printf("%s\t%s\n", record.info.key, record.info.value);
	reader_close(r);
	return 0;
}
