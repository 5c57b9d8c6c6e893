// LD_PRELOAD library for srt_close: CSndUList::waitNonEmpty takes AT milliseconds to begin, as if its thread did not get the CPU.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#define NAME _ZNK3srt9CSndUList12waitNonEmptyEv
#define TEXT(x) #x
#define STRING(x) TEXT(x)

void NAME(const void *list)
{
	long ms = getenv("AT") ? atol(getenv("AT")) : 0;

	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
	((void (*)(const void *))dlsym(RTLD_NEXT, STRING(NAME)))(list);
}
