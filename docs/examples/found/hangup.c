// Takes one connection on port 8077 and closes it without a word.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(8077), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, 1))
		return 2;
	close(accept(fd, NULL, NULL));
	return 0;
}
