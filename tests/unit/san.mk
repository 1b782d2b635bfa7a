# SPDX-License-Identifier: BSD-2-Clause
#
# Every unit test once more, with the address and undefined-behaviour sanitizers.
# The fuzzers are linked with the same objects (tests/fuzz/fuzz.mk): compiling all
# of user/ takes longer than most tests. What fuzzers count costs the others little.
#
#   make unit-san       builds $(BUILD)/san/tests/unit/test_NAME

SAN := $(BUILD)/san
SAN_CFLAGS = -std=c11 $(SAN_OPTIMIZE) -gline-tables-only -Wall -Wextra -Wno-unused-parameter \
	-Wno-gnu-variable-sized-type-not-at-end -Wno-missing-field-initializers \
	-fno-omit-frame-pointer -fno-strict-aliasing \
	-fno-sanitize-recover=all -fsanitize=fuzzer-no-link,address,undefined -DQUICK_TESTS
SAN_OPTIMIZE = -O0
SAN_BINS := $(UNIT_SRCS:tests/unit/%.c=$(SAN)/tests/unit/%)

# What fuzzers and three tests run a million times; optimizing all takes longer than it saves.
SAN_HOT := $(wildcard user/record/*.c user/model/*.c user/util/*.c) user/monitor/estimate.c \
	tests/unit/test_record.c tests/unit/test_estimate.c tests/unit/test_keep.c
$(SAN_HOT:%.c=$(SAN)/obj/%.o): SAN_OPTIMIZE = -O1

$(SAN)/obj/%.o: %.c | $(SKEL) $(PROTO_H)
	$(call say,SANCC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(CPPFLAGS) $(SAN_CFLAGS) -MMD -MP -c $< -o $@

$(SAN)/obj/%.pb-c.o: $(BUILD)/%.pb-c.c
	$(call say,SANCC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(CPPFLAGS) $(SAN_CFLAGS) -c $< -o $@

$(SAN)/libgbpf.a: $(LIB_OBJS:$(BUILD)/obj/%=$(SAN)/obj/%)
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)ar rcs $@ $^

$(SAN)/tests/unit/%: $(SAN)/obj/tests/unit/%.o $(SAN)/libgbpf.a
	$(call say,SANLINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(TEST_LD) -fsanitize=address,undefined $^ -lcmocka $(LDLIBS) -o $@

# Some look for libraries beside them, as $(BUILD)/tests/unit/test_NAME does.
$(SAN)/sim:
	$(Q)mkdir -p $(@D)
	$(Q)ln -sfn ../sim $@

.PHONY: unit-san
unit-san: $(SAN_BINS) | $(SAN)/sim $(SIM_NVML_LIBS)

-include $(LIB_SRCS:%.c=$(SAN)/obj/%.d) $(SAN_BINS:$(SAN)/%=$(SAN)/obj/%.d)
