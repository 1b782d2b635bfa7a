# SPDX-License-Identifier: BSD-2-Clause
# Helpers of the integration tests: programs that read recordings or play targets.

INTEGRATION_SRCS := $(wildcard tests/integration/*.c)
INTEGRATION_BINS := $(INTEGRATION_SRCS:tests/integration/%.c=$(BUILD)/tests/integration/%)

$(BUILD)/tests/integration/%: $(BUILD)/obj/tests/integration/%.o $(BUILD)/libgbpf.a
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@

.PHONY: integration
integration: $(INTEGRATION_BINS)

-include $(INTEGRATION_SRCS:%.c=$(BUILD)/obj/%.d)
