// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/gpu_time.h"

#include <stdio.h>
#include <string.h>

#include "sidecar/library.h"

void gpu_time_prepare(struct gpu_time_setup *s, const struct gpu_time_wish *wish,
		      int64_t duration, bool command)
{
	s->options = (struct gpu_time_options){
		.library = sidecar_library,
		.library_size = sidecar_library_size,
		.cupti = wish->cupti,
		.calls = wish->calls,
		.window = wish->window > 0 ? wish->window : GPU_TIME_WINDOW,
		.listener = -1,
	};
	if (duration > 0 && duration < s->options.window)
		s->options.window = duration;
	if (!sidecar_library_size)
		s->options.why_not = "this gbpf was built without the sidecar";
	if (wish->cupti && strlen(wish->cupti) >= GPU_TIME_PATH_MAX)
		s->options.why_not = "the path given with --cupti is too long";
	s->command = wish->asked && command;
}

int gpu_time_child_start(struct gpu_time_setup *s, struct child *c, char *const argv[],
			 const struct invoker *who)
{
	int err;

	if (!s->command || s->options.why_not)
		return child_start(c, argv, who);
	if (place_make(&s->place, who, s->options.library, s->options.library_size, s->why,
		       sizeof(s->why))) {
		s->options.why_not = s->why;
		return child_start(c, argv, who);
	}
	s->options.listener = s->place.listener;
	err = place_enter(&s->place);
	if (!err)
		err = child_start(c, argv, who);
	place_leave(&s->place);
	return err ? err : place_guard(&s->place, who, c->pidfd);
}

void gpu_time_release(struct gpu_time_setup *s)
{
	place_free(&s->place);
}
