# SPDX-License-Identifier: BSD-2-Clause
# Helpers of the integration tests: programs that read recordings or play targets.

INTEGRATION_SHARED := inject_payload step_marker
INTEGRATION_LIBS := $(INTEGRATION_SHARED:%=$(BUILD)/tests/integration/%.so)
INTEGRATION_SRCS := $(filter-out $(INTEGRATION_SHARED:%=tests/integration/%.c),\
	$(wildcard tests/integration/*.c))
INTEGRATION_BINS := $(INTEGRATION_SRCS:tests/integration/%.c=$(BUILD)/tests/integration/%)

# Uses what the unit tests make sessions with.
$(BUILD)/tests/integration/export_random: LDLIBS := -lcmocka $(LDLIBS)

$(BUILD)/tests/integration/%: $(BUILD)/obj/tests/integration/%.o $(BUILD)/libgbpf.a
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) $(TEST_LD) $^ $(LDLIBS) -o $@

$(BUILD)/tests/integration/%.so: tests/integration/%.c
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -fPIC -shared $< -o $@

.PHONY: integration
integration: $(INTEGRATION_BINS) $(INTEGRATION_LIBS)

-include $(INTEGRATION_SRCS:%.c=$(BUILD)/obj/%.d)
