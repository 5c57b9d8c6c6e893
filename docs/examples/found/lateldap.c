// LD_PRELOAD library for ldap_pool. With AT=1: the pool's threads are late by 0.05 and 0.15 s at their first locks; the first one by 0.3 s
// behind an unlock while it holds another lock; the second one by 0.5 s at its third lock, and its pthread_cond_signal takes 0.2 s to return;
// the main thread by 0.95 s at the lock behind pthread_cond_broadcast. A mutex that is destroyed while it is locked is told in any case (EBUSY).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static __thread int number, locks, held, behind;

static void late(long ms)
{
	if (getenv("AT"))
		nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	static int made;

	if (gettid() == getpid()) {
		if (behind)
			late(950);
		behind = 0;
	} else {
		if (!number)
			number = __sync_add_and_fetch(&made, 1);
		locks++;
		if (locks == 1)
			late(number == 2 ? 150 : 50);
		if (locks == 3 && number == 2)
			late(500);
	}
	held++;
	return ((int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock"))(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	int result = ((int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_unlock"))(mutex);

	if (--held == 1 && number == 1)
		late(300);
	return result;
}

int pthread_cond_broadcast(pthread_cond_t *condition)
{
	behind = 1;
	return ((int (*)(pthread_cond_t *))dlsym(RTLD_NEXT, "pthread_cond_broadcast"))(condition);
}

int pthread_cond_signal(pthread_cond_t *condition)
{
	int result = ((int (*)(pthread_cond_t *))dlsym(RTLD_NEXT, "pthread_cond_signal"))(condition);

	if (number == 2)
		late(200);
	return result;
}

int pthread_mutex_destroy(pthread_mutex_t *mutex)
{
	int result = ((int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_destroy"))(mutex);

	if (result == EBUSY && write(2, "destroyed while locked\n", 23) < 0)
		_exit(3);
	return result;
}
