// LD_PRELOAD library: one second of pause (or PAUSE seconds) before the call that AT names (select, poll, epoll_wait, accept, recvfrom, read), as
// another thread or process that gets the CPU then might cause. The pause is not cut short by signals; their handlers run in it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static char at[32];
static struct timespec length = {1, 0};

// Some daemons clear their environment.
__attribute__((constructor)) static void settings(void)
{
	if (getenv("AT"))
		strncpy(at, getenv("AT"), sizeof at - 1);
	if (getenv("PAUSE"))
		length.tv_sec = atoi(getenv("PAUSE"));
}

static void *next(const char *name)
{
	struct timespec pause = length;

	while (!strcmp(at, name) && nanosleep(&pause, &pause)) {
	}
	return dlsym(RTLD_NEXT, name);
}

int select(int n, fd_set *r, fd_set *w, fd_set *e, struct timeval *t)
{
	return ((int (*)(int, fd_set *, fd_set *, fd_set *, struct timeval *))next("select"))(n, r, w, e, t);
}

int poll(struct pollfd *p, nfds_t n, int t)
{
	return ((int (*)(struct pollfd *, nfds_t, int))next("poll"))(p, n, t);
}

int __poll_chk(struct pollfd *p, nfds_t n, int t, size_t size)
{
	(void)size;
	return poll(p, n, t);
}

int epoll_wait(int f, struct epoll_event *e, int n, int t)
{
	return ((int (*)(int, struct epoll_event *, int, int))next("epoll_wait"))(f, e, n, t);
}

int accept(int f, struct sockaddr *a, socklen_t *n)
{
	return ((int (*)(int, struct sockaddr *, socklen_t *))next("accept"))(f, a, n);
}

ssize_t recvfrom(int f, void *b, size_t n, int flags, struct sockaddr *a, socklen_t *l)
{
	return ((ssize_t (*)(int, void *, size_t, int, struct sockaddr *, socklen_t *))next("recvfrom"))(f, b, n, flags, a, l);
}

ssize_t read(int f, void *b, size_t n)
{
	return ((ssize_t (*)(int, void *, size_t))next("read"))(f, b, n);
}
