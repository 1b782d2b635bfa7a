# SPDX-License-Identifier: BSD-2-Clause
# Helpers of the integration tests: programs that read recordings or play targets.

INTEGRATION_LIBS := $(BUILD)/tests/integration/inject_payload.so
INTEGRATION_SRCS := $(filter-out tests/integration/inject_payload.c,\
	$(wildcard tests/integration/*.c))
INTEGRATION_BINS := $(INTEGRATION_SRCS:tests/integration/%.c=$(BUILD)/tests/integration/%)

# Uses what the unit tests make sessions with.
$(BUILD)/tests/integration/export_random: LDLIBS := -lcmocka $(LDLIBS)

$(BUILD)/tests/integration/%: $(BUILD)/obj/tests/integration/%.o $(BUILD)/libgbpf.a
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@

$(BUILD)/tests/integration/%.so: tests/integration/%.c
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -fPIC -shared $< -o $@

.PHONY: integration
integration: $(INTEGRATION_BINS) $(INTEGRATION_LIBS)

-include $(INTEGRATION_SRCS:%.c=$(BUILD)/obj/%.d)
