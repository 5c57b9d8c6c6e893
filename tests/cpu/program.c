/* What tells of the processor: the library that the loader has chosen by it, and the environment, which is to be the user's; natively the same.
 * program library LIBRARY | environment | bug [random] */
#define _GNU_SOURCE
#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#ifdef RANDOM
__attribute__((noinline)) int asks(void)
{
	unsigned number;
	unsigned char got;

	asm volatile("rdrand %0; setc %1" : "=r"(number), "=q"(got));
	return got;
}
#endif

static void shows(const char *who)
{
	static char text[1 << 16];
	FILE *file = fopen("/proc/self/environ", "r");
	size_t size = fread(text, 1, sizeof text, file);

	for (char **entry = environ; *entry; entry++)
		printf("%s: %s\n", who, *entry);
	// What is gone leaves nothing but zeros at the end.
	while (size > 0 && !text[size - 1])
		size--;
	for (size_t at = 0; at < size; at += strlen(text + at) + 1)
		printf("%s, by /proc: %s\n", who, text + at);
	fflush(stdout);
}

static void *locks(void *unused)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	const char *how = argc > 1 ? argv[1] : "";

	if (!strcmp(how, "library")) {
		void *library = dlopen("libchosen.so", RTLD_NOW);
		const char *(*level)(void) = library ? (const char *(*)(void))dlsym(library, "level") : 0;
		puts(level ? level() : "none");
		return 0;
	}
	if (!strcmp(how, "environment")) {
		shows("it");
		if (fork() == 0) {
			setenv("MORE", "1", 1);
			execl(argv[0], argv[0], "child", (char *)0);
			_exit(1);
		}
		wait(0);
		return 0;
	}
	if (!strcmp(how, "child")) {
		shows("child");
		return 0;
	}
#ifdef RANDOM
	if (argc > 2)
		asks();
#endif
	pthread_create(&thread, 0, locks, 0);
	locks(0);
	pthread_join(thread, 0);
	assert(!"it is found");
}
