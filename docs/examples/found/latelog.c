// LD_PRELOAD for log4cplus_close: Queue::put_event takes a second to begin, and shows a word of the queue before and after.
#define _GNU_SOURCE
#include <dlfcn.h>
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
