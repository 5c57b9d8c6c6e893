// LD_PRELOAD library for vnc_shutdown: half a second of pause where AT says: select or accept, behind that call of a
// thread other than the first; rfbCloseClient, before it in the first thread.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void pause_at(const char *name, int first)
{
	const char *at = getenv("AT");

	if (at && !strcmp(at, name) && (gettid() == getpid()) == first)
		nanosleep(&(struct timespec){0, 500000000}, NULL);
}

int select(int n, fd_set *r, fd_set *w, fd_set *e, struct timeval *t)
{
	int result = ((int (*)(int, fd_set *, fd_set *, fd_set *, struct timeval *))dlsym(RTLD_NEXT, "select"))(n, r, w, e, t);

	pause_at("select", 0);
	return result;
}

int accept(int f, struct sockaddr *a, socklen_t *n)
{
	int result = ((int (*)(int, struct sockaddr *, socklen_t *))dlsym(RTLD_NEXT, "accept"))(f, a, n);

	pause_at("accept", 0);
	return result;
}

void rfbCloseClient(void *client)
{
	pause_at("rfbCloseClient", 1);
	((void (*)(void *))dlsym(RTLD_NEXT, "rfbCloseClient"))(client);
}
