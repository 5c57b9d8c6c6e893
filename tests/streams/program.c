/* Standard streams before and in main: each mode says what is to be there at the beginning of each execution, and changes it. */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *how = "";
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int broken;

static int is(const char *what)
{
	return !strcmp(how, what);
}

static void reads(int fd, const char *text)
{
	char found[16];

	assert(read(fd, found, strlen(text)) == (ssize_t)strlen(text));
	assert(!memcmp(found, text, strlen(text)));
}

static void adds(int fd, int flag)
{
	assert(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | flag) == 0);
}

static void takes(int fd, int flag)
{
	assert(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~flag) == 0);
}

__attribute__((constructor)) static void begin(int argc, char **argv)
{
	how = argc > 1 ? argv[1] : "";
	if (is("read before"))
		reads(0, "0123");
	if (is("flags before"))
		for (int fd = 0; fd < 3; fd++)
			adds(fd, O_NONBLOCK);
	if (is("another before")) {
		close(0);
		assert(open("/etc/passwd", O_RDONLY) == 0);
	}
	if (is("print before"))
		assert(write(1, "before\n", 7) == 7);
}

static void *locks(void *unused)
{
	pthread_mutex_lock(&lock);
	broken++;
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];
	int flags[3];

	for (int fd = 0; fd < 3; fd++)
		flags[fd] = fcntl(fd, F_GETFL);
	if (is("read before"))
		reads(0, "4567");
	if (is("flags before"))
		for (int fd = 0; fd < 3; fd++)
			assert(flags[fd] & O_NONBLOCK);
	if (is("another before"))
		reads(0, "root");
	if (is("print before"))
		assert(write(1, "after\n", 6) == 6);
	if (is("seek")) {
		reads(0, "0123");
		assert(lseek(0, 10, SEEK_SET) == 10);
	}
	if (is("flags")) {
		for (int fd = 0; fd < 3; fd++)
			assert(!(flags[fd] & O_NONBLOCK));
		for (int fd = 0; fd < 3; fd++)
			adds(fd, O_NONBLOCK);
	}
	if (is("flags before"))
		for (int fd = 0; fd < 3; fd++)
			takes(fd, O_NONBLOCK);
	if (is("write")) {
		reads(0, "0123");
		assert(lseek(0, 0, SEEK_SET) == 0 && write(0, "XX", 2) == 2 && ftruncate(0, 3) == 0);
	}
	if (is("only read"))
		assert(write(0, "XX", 2) == -1 && errno == EBADF);
	if (is("given")) {
		reads(0, argv[2]);
		assert(read(0, flags, 1) == 0);
	}
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], 0, locks, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], 0);
	if (argc > 2 && !strcmp(argv[argc - 1], "fails"))
		assert(!"the end");
	return 0;
}
