// SRT: a listener is made, closed, and the library ended.
#include <arpa/inet.h>
#include <srt/srt.h>

int main(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(9911), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	SRTSOCKET socket;
	int poll;

	srt_startup();
	socket = srt_create_socket();
	srt_bind(socket, (struct sockaddr *)&at, sizeof at);
	srt_listen(socket, 1);
	poll = srt_epoll_create();
	srt_epoll_add_usock(poll, socket, NULL);
	srt_close(socket);
	srt_epoll_release(poll);
	srt_cleanup();
	return 0;
}
