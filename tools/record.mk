# SPDX-License-Identifier: BSD-2-Clause
# The benchmark of the .gbpf file; a part of `make bench`.

$(BUILD)/bench/bench_record: $(BUILD)/obj/tools/bench_record.o $(BUILD)/libgbpf.a
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@

-include $(BUILD)/obj/tools/bench_record.d
