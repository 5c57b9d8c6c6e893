// LD_PRELOAD library: pthread_mutex_unlock takes AT milliseconds to return: in threads other than the first, or, with FIRST, in the first
// one behind a pthread_cond_signal.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static __thread int signalled;

int pthread_cond_signal(pthread_cond_t *condition)
{
	signalled = 1;
	return ((int (*)(pthread_cond_t *))dlsym(RTLD_NEXT, "pthread_cond_signal"))(condition);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	int result = ((int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_unlock"))(mutex);
	int first = gettid() == getpid();

	if (getenv("AT") && (getenv("FIRST") ? first && signalled : !first)) {
		struct timespec left = {0, atol(getenv("AT")) * 1000000};

		while (nanosleep(&left, &left)) {
		}
	}
	signalled = 0;
	return result;
}
