// libfuse: a session whose channel is a socket; SIGTERM ends its loop.
#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static ssize_t get(int fd, void *to, size_t n, void *user)
{
	(void)user;
	return read(fd, to, n);
}

static ssize_t put(int fd, struct iovec *from, int n, void *user)
{
	(void)user;
	return writev(fd, from, n);
}

int main(int argc, char **argv)
{
	struct fuse_lowlevel_ops ops = {0};
	const struct fuse_custom_io io = {.writev = put, .read = get};
	struct fuse_args args = FUSE_ARGS_INIT(1, argv);
	struct fuse_session *session = fuse_session_new(&args, &ops, sizeof ops, NULL);
	int ends[2];

	(void)argc;
	if (!session || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) || fuse_session_custom_io(session, &io, ends[0]))
		return 2;
	fuse_set_signal_handlers(session);
	fuse_session_loop(session);
	fuse_remove_signal_handlers(session);
	fuse_session_destroy(session);
	return 0;
}
