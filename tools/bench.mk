# SPDX-License-Identifier: BSD-2-Clause
#
# make bench: measures what the documentation claims, prints one JSON document.
# BENCH_ARGS=--long adds what takes longer; --only NAME,… measures only some.

BENCH_NAMES := cost drain attach file export join
BENCH_BINS := $(BENCH_NAMES:%=$(BUILD)/bench/bench_%)
BENCH_ARGS ?=

$(BUILD)/bench.skel.h: $(BUILD)/bench.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name gbpf_bench > $@

$(BENCH_NAMES:%=$(BUILD)/obj/tools/bench/%.o) $(BUILD)/obj/tools/bench/empty.o: | \
	$(BUILD)/bench.skel.h

$(BUILD)/bench/bench_cost: $(BUILD)/obj/tools/bench/empty.o

$(BENCH_BINS): $(BUILD)/bench/bench_%: $(BUILD)/obj/tools/bench/%.o $(BUILD)/libgbpf.a
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) $(filter %.o,$^) $(BUILD)/libgbpf.a $(LDLIBS) -o $@

.PHONY: bench bench-programs
bench-programs: $(BENCH_BINS) $(BUILD)/bench/bench_record

# What is built says so on stderr: stdout is the document.
bench:
	@+$(MAKE) all sim bench-programs integration >&2
	@$(PYTHON) tools/bench/run.py --build $(BUILD) $(BENCH_ARGS)

tests-extra: bench-programs

-include $(BENCH_NAMES:%=$(BUILD)/obj/tools/bench/%.d) $(BUILD)/obj/tools/bench/empty.d
