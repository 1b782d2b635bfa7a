# SPDX-License-Identifier: BSD-2-Clause
# The stand-in for CUPTI under the names and in the versions that programs have it;
# beside each, links to the other libraries, so that it is a directory for --lib.

SIM_CUPTI := cupti cupti_clock cupti_hooks cupti_records cupti_worker cupti_guard
SIM_CUPTI_LIBS := lib/libcupti.so.13 lib-cupti12/libcupti.so.12 lib-cupti128/libcupti.so.12 \
	lib-cupti11/libcupti.so.11.8 lib-cupti133/libcupti.so.13
SIM_CUPTI_NEW := cuptiActivityEnableDriverApi cuptiActivityEnableRuntimeApi # from 12.5 on
SIM_CUPTI_13 := cuptiSubscribe_v2
SIM_CUPTI_133 := cuptiActivityGetEnabledKinds cuptiIsTracingSessionRunning
SIM_CUPTI_HIDE_lib := $(SIM_CUPTI_133)
SIM_CUPTI_HIDE_lib-cupti133 :=
SIM_CUPTI_HIDE_lib-cupti12 := $(SIM_CUPTI_NEW) $(SIM_CUPTI_13) $(SIM_CUPTI_133)
SIM_CUPTI_HIDE_lib-cupti128 := $(SIM_CUPTI_13) $(SIM_CUPTI_133)
SIM_CUPTI_HIDE_lib-cupti11 := $(SIM_CUPTI_NEW) $(SIM_CUPTI_13) $(SIM_CUPTI_133)
SIM_CUPTI_VERSION_lib := 13.0
SIM_CUPTI_VERSION_lib-cupti133 := 13.3
SIM_CUPTI_VERSION_lib-cupti12 := 12.4
SIM_CUPTI_VERSION_lib-cupti128 := 12.8
SIM_CUPTI_VERSION_lib-cupti11 := 11.8

# 1 directory, 2 library
define SIM_CUPTI_RULE
$(SIM)/obj/cupti/$1.o: $(SIM_DIR)/cupti_settings.c $(SIM_DIR)/sim_cupti.mk
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(SIM_CFLAGS) -DSIMCUPTI_DEFAULT='"$$(SIM_CUPTI_VERSION_$1)"' -fcf-protection=none \
		-MMD -MP -c $$< -o $$@

$(SIM)/$1/$2: $(SIM_CUPTI:%=$(SIM)/obj/push/%.o) $(SIM)/obj/cupti/$1.o $(SIM_DIR)/sim_cupti.mk
	$$(call say,LINK,$$@)
	$$(Q)mkdir -p $$(@D) $(SIM)/gen
	$$(Q)echo '$2 { global: simCupti*; cupti*; local: *; };' > $(SIM)/gen/$1.cupti.map
	$$(Q)objcopy $$(addprefix --localize-symbol=,$$(SIM_CUPTI_HIDE_$1)) $(SIM)/obj/push/cupti.o \
		$(SIM)/gen/$1.cupti.o
	$$(Q)$$(CC) $(SIM)/gen/$1.cupti.o $$(filter-out %/cupti.o,$$(filter %.o,$$^)) $$(SIM_LDFLAGS) \
		-Wl,-soname,$2 -Wl,-z,nodelete -Wl,--version-script=$(SIM)/gen/$1.cupti.map -o $$@
endef
$(foreach l,$(SIM_CUPTI_LIBS),$(eval $(call SIM_CUPTI_RULE,$(patsubst %/,%,$(dir $l)),$(notdir $l))))

define SIM_CUPTI_BESIDE
$(SIM)/$1/%: $(SIM)/lib/%
	$$(Q)mkdir -p $$(@D)
	$$(Q)ln -f $$< $$@
endef
define SIM_CUPTI_SAME
$(SIM)/$1/libcupti.so.13: $(SIM)/lib/libcupti.so.13
	$$(Q)mkdir -p $$(@D)
	$$(Q)ln -f $$< $$@
endef
SIM_CUPTI_SAMES := lib-endbr lib-sub lib-stripped
$(foreach d,$(SIM_CUPTI_SAMES),$(eval $(call SIM_CUPTI_SAME,$d)))

SIM_CUPTI_DIRS := lib-cupti12 lib-cupti128 lib-cupti11 lib-cupti133
$(foreach d,$(SIM_CUPTI_DIRS),$(eval $(call SIM_CUPTI_BESIDE,$d)))

.PHONY: sim-cupti
sim-cupti: $(SIM_CUPTI_LIBS:%=$(SIM)/%) $(SIM_CUPTI_SAMES:%=$(SIM)/%/libcupti.so.13) \
	$(foreach d,$(SIM_CUPTI_DIRS),$(SIM_LIBS:%=$(SIM)/$d/%))
sim: sim-cupti

$(SIM)/cupti_client.so: $(SIM)/obj/client/cupti_client.o
	$(call say,LINK,$@)
	$(Q)$(CC) $^ -shared -ldl -lpthread -o $@

$(SIM)/obj/client/%.o: $(SIM_DIR)/%.c $(SIM_DIR)/sim_cupti.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=c11 $(SIM_JOB_CFLAGS) -fPIC -fvisibility=hidden -MMD -MP -c $< -o $@

sim-cupti: $(SIM)/cupti_client.so
