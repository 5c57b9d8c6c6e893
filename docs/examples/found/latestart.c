// LD_PRELOAD library: a thread begins START milliseconds after pthread_create, from the NTH thread on (the first is 1), or, with ALONE, that one.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct begin {
	void *(*start)(void *);
	void *arg;
	long ms;
};

static void *late(void *of)
{
	struct begin begin = *(struct begin *)of;

	free(of);
	nanosleep(&(struct timespec){begin.ms / 1000, begin.ms % 1000 * 1000000}, NULL);
	return begin.start(begin.arg);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	static int made;
	struct begin *begin = malloc(sizeof *begin);
	int number = __sync_add_and_fetch(&made, 1), nth = getenv("NTH") ? atoi(getenv("NTH")) : 1;

	*begin = (struct begin){start, arg, 0};
	if (getenv("START") && (getenv("ALONE") ? number == nth : number >= nth))
		begin->ms = atol(getenv("START"));
	return ((int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT, "pthread_create"))(thread, attr, late, begin);
}
