# SPDX-License-Identifier: BSD-2-Clause
# The benchmark of the .gbpf file; a part of `make bench`.

BENCH_RECORD_SRCS := $(wildcard user/record/*.c)
BENCH_RECORD_OBJS := $(BENCH_RECORD_SRCS:%.c=$(BUILD)/obj/%.o)

$(BUILD)/bench/bench_record: $(BUILD)/obj/tools/bench_record.o $(BENCH_RECORD_OBJS)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@

-include $(BUILD)/obj/tools/bench_record.d
