/* SPDX-License-Identifier: BSD-2-Clause */
/* How the runtime stand-in reaches the driver. */
#ifndef SIM_RUNTIME_CORE_H
#define SIM_RUNTIME_CORE_H

#include "table.h"

/* The driver's functions, ready for this thread; NULL: no driver. */
const struct driver_table *rt_driver(void);
struct truth_thread *rt_truth(void);
/* The driver's kernel of a host stub, loaded when first asked for; NULL: not registered. */
struct sim_func *rt_kernel(rt_func stub, uint32_t *name);

#define RT_NO_DRIVER 35
#define RT_NO_FUNCTION 98

/* How CUPTI learns of the runtime's calls: libcuda's, NULL where it is not the stand-in. */
struct rt_cupti {
	sim_enter_fn enter;
	sim_leave_fn leave;
};
extern struct rt_cupti rt_cupti;

#define RT_ENTER()                                                                                 \
	static uint16_t cbid_;                                                                     \
	struct sim_call call_;                                                                     \
	if (rt_cupti.enter)                                                                        \
		rt_cupti.enter(&call_, &cbid_, __func__)
#define RT_RETURN(value)                                                                           \
	do {                                                                                       \
		int result_ = (value);                                                             \
		if (rt_cupti.enter)                                                                \
			rt_cupti.leave(&call_, result_);                                           \
		return result_;                                                                    \
	} while (0)

/* One driver call, written down as nested in the runtime's. */
#define DRV(name, actual, ...) TRUTH_CALL(rt_truth(), drv_, name, actual, __VA_ARGS__)
#define DRV_OUT(name, actual, out, ...)                                                            \
	TRUTH_CALL_OUT(rt_truth(), drv_, name, actual, out, __VA_ARGS__)

/* A runtime function: its driver call, or the error of there being none. */
#define RT(name, params, ...)                                                                      \
	SIM_EXPORT cudaError_t name params                                                         \
	{                                                                                          \
		const struct driver_table *drv_ = rt_driver();                                     \
		if (!drv_)                                                                         \
			return RT_NO_DRIVER;                                                       \
		RT_ENTER();                                                                        \
		RT_RETURN((__VA_ARGS__));                                                          \
	}

#endif
