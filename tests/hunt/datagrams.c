// A server that answers one datagram; with an argument a client of it, which binds to a port that the system gives; with two only that bind.
#include <arpa/inet.h>
#include <assert.h>
#include <sys/socket.h>

static int udp(int port)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	assert(!bind(fd, (struct sockaddr *)&own, sizeof own));
	return fd;
}

int main(int argc, char **argv)
{
	struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(7100), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof peer;
	char byte = 'x';
	int fd = udp(argc == 1 ? 7100 : 0);

	(void)argv;
	if (argc > 2)
		return 0;
	if (argc == 1) {
		assert(recvfrom(fd, &byte, 1, 0, (struct sockaddr *)&peer, &length) == 1);
		assert(sendto(fd, &byte, 1, 0, (struct sockaddr *)&peer, length) == 1);
	} else {
		assert(!connect(fd, (struct sockaddr *)&peer, length));
		assert(send(fd, &byte, 1, 0) == 1);
		assert(recv(fd, &byte, 1, 0) == 1);
	}
	return 0;
}
