/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Included before everything else: functions that a newer glibc moved into libc.so.6 are
 * bound to the version they have had since the beginning, so that the library loads with the
 * glibc of 2012 (2.17) and later.
 */
#if defined(__x86_64__)
#define OLD "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define OLD "GLIBC_2.17"
#endif

#ifdef OLD
__asm__(".symver dlopen,dlopen@" OLD);
__asm__(".symver dlclose,dlclose@" OLD);
__asm__(".symver dlsym,dlsym@" OLD);
__asm__(".symver dladdr,dladdr@" OLD);
__asm__(".symver pthread_create,pthread_create@" OLD);
__asm__(".symver pthread_attr_setstacksize,pthread_attr_setstacksize@" OLD);
__asm__(".symver pthread_mutex_trylock,pthread_mutex_trylock@" OLD);
#endif
