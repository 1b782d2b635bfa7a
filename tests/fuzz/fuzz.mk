# SPDX-License-Identifier: BSD-2-Clause
#
# Every tests/fuzz/fuzz_NAME.c is a libFuzzer target. It is linked with all of
# user/, built by clang with sanitizers (tests/unit/san.mk).
#   tests/fuzz/corpus/NAME/   inputs to start from, if any
#   tests/fuzz/NAME.dict      tokens to try, if any
#
#   make fuzz-smoke           FUZZ_RUNS inputs each, the same ones every time; FUZZ_RUNS_NAME
#                             where a target is slow
#   make fuzz-long            FUZZ_SECONDS each, going on where the last left off
#   make fuzz                 only builds

FUZZ_RUNS ?= 6000
FUZZ_RUNS_diagnose ?= 40
FUZZ_RUNS_elf ?= 8000
FUZZ_RUNS_export ?= 30
FUZZ_RUNS_metrics ?= 300
FUZZ_RUNS_record ?= 300
FUZZ_RUNS_session ?= 200
FUZZ_RUNS_sidecar ?= 1500
FUZZ_RUNS_trigger ?= 400
FUZZ_RUNS_works ?= 600
FUZZ_SECONDS ?= 30
FUZZ_BUILD = $(BUILD)/fuzz
FUZZ_NAMES := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_BINS := $(FUZZ_NAMES:%=$(FUZZ_BUILD)/fuzz_%)
FUZZ_OPTIONS = -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=1 \
	-artifact_prefix=$(FUZZ_BUILD)/found/$1- $(addprefix -dict=,$(wildcard tests/fuzz/$1.dict))

.PHONY: fuzz fuzz-smoke fuzz-long
fuzz: $(FUZZ_BINS)

$(FUZZ_BUILD)/fuzz_%: $(SAN)/obj/tests/fuzz/fuzz_%.o $(SAN)/libgbpf.a
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(TEST_LD) -fsanitize=fuzzer,address,undefined $^ $(LDLIBS) -o $@

# Fixed seed and an empty directory for what is found on the way: the same inputs every time.
$(FUZZ_NAMES:%=fuzz-smoke-%): fuzz-smoke-%: $(FUZZ_BUILD)/fuzz_%
	$(call say,FUZZ,$*)
	$(Q)rm -rf $(FUZZ_BUILD)/scratch/$* && mkdir -p $(FUZZ_BUILD)/scratch/$* $(FUZZ_BUILD)/found
	$(Q)$< -seed=1 -runs=$(or $(FUZZ_RUNS_$*),$(FUZZ_RUNS)) $(call FUZZ_OPTIONS,$*) \
		$(FUZZ_BUILD)/scratch/$* $(wildcard tests/fuzz/corpus/$*) >$(FUZZ_BUILD)/$*.log 2>&1 || \
		{ tail -n 60 $(FUZZ_BUILD)/$*.log; exit 1; }
	$(Q)grep -E '^Done|number_of_executed_units' $(FUZZ_BUILD)/$*.log

$(FUZZ_NAMES:%=fuzz-long-%): fuzz-long-%: $(FUZZ_BUILD)/fuzz_%
	$(call say,FUZZ,$*)
	$(Q)mkdir -p $(FUZZ_BUILD)/corpus/$* $(FUZZ_BUILD)/found
	$(Q)$< -max_total_time=$(FUZZ_SECONDS) $(call FUZZ_OPTIONS,$*) $(FUZZ_BUILD)/corpus/$* \
		$(wildcard tests/fuzz/corpus/$*) >$(FUZZ_BUILD)/$*.log 2>&1 || \
		{ tail -n 60 $(FUZZ_BUILD)/$*.log; exit 1; }
	$(Q)grep -E '^Done|number_of_executed_units' $(FUZZ_BUILD)/$*.log

.PHONY: $(FUZZ_NAMES:%=fuzz-smoke-%) $(FUZZ_NAMES:%=fuzz-long-%)
fuzz-smoke: $(FUZZ_NAMES:%=fuzz-smoke-%)
fuzz-long: $(FUZZ_NAMES:%=fuzz-long-%)

-include $(FUZZ_NAMES:%=$(SAN)/obj/tests/fuzz/fuzz_%.d)
