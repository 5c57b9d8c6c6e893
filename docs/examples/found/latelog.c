// LD_PRELOAD for log4cplus_close: Queue::put_event takes a second to begin, and shows a word of the queue before and after. Who creates a thread gets
// the CPU again 0.3 s later.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#define NAME _ZN9log4cplus6thread5Queue9put_eventERKNS_3spi20InternalLoggingEventE
#define TEXT(x) #x
#define STRING(x) TEXT(x)

unsigned NAME(char *queue, const void *event)
{
	const unsigned *word = (const unsigned *)(queue + 320);
	unsigned before = *word;

	nanosleep(&(struct timespec){1, 0}, NULL);
	fprintf(stderr, "put_event: %#x before, %#x now\n", before, *word);
	return ((unsigned (*)(char *, const void *))dlsym(RTLD_NEXT, STRING(NAME)))(queue, event);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
	int result = create(thread, attr, start, arg);

	nanosleep(&(struct timespec){0, 300000000}, NULL);
	return result;
}
