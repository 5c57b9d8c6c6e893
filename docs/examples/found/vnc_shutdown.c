// libvncserver: a server with its own threads is shut down while a client comes or goes. vnc_shutdown HOW [MS]: 0, the client only
// connects; 1, it waits for the greeting and leaves. With MS it stays for twice as many milliseconds, the server is shut down after
// MS, and the program goes on for ten times as long.
#include <arpa/inet.h>
#include <rfb/rfb.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static int greeted, ms;

static void *client(void *unused)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(5977), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char greeting[12];

	if (!connect(fd, (struct sockaddr *)&at, sizeof at) && (!greeted || read(fd, greeting, sizeof greeting) > 0))
		usleep(2000 * ms);
	close(fd);
	return unused;
}

int main(int argc, char **argv)
{
	static char frame[16 * 16 * 4];
	rfbScreenInfoPtr screen = rfbGetScreen(NULL, NULL, 16, 16, 8, 3, 4);
	pthread_t other;

	greeted = argc > 1 && atoi(argv[1]);
	ms = argc > 2 ? atoi(argv[2]) : 0;
	rfbLogEnable(FALSE);
	screen->frameBuffer = frame;
	screen->port = 5977;
	screen->ipv6port = 0;
	screen->listenInterface = htonl(INADDR_LOOPBACK);
	rfbInitServer(screen);
	rfbRunEventLoop(screen, -1, TRUE);
	pthread_create(&other, NULL, client, NULL);
	usleep(1000 * ms);
	rfbShutdownServer(screen, TRUE);
	pthread_join(other, NULL);
	rfbScreenCleanup(screen);
	usleep(10000 * ms);
	return 0;
}
