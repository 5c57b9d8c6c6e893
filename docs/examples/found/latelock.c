// LD_PRELOAD library: in threads other than the first, each pthread_mutex_lock takes up to 20 ms to begin, as drawn from SEED and the
// number of the lock in its thread: as if that thread did not get the CPU.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int threads;
static __thread unsigned state;

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	const char *seed = getenv("SEED");

	if (seed && gettid() != getpid()) {
		if (!state)
			state = 2654435761u * (atoi(seed) * 64 + __sync_add_and_fetch(&threads, 1));
		state = state * 1664525 + 1013904223;
		if (state >> 30 == 0)
			nanosleep(&(struct timespec){0, (state >> 10) % 20000000}, NULL);
	}
	return ((int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock"))(mutex);
}
