/* A daemon that waits for peers until it is told to end. forgets: it looks whether it was, and then waits. looks: it waits so that nothing is
 * lost in between. ignores: it does not listen to SIGTERM. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static volatile sig_atomic_t told;

static void hears(int signal)
{
	if (signal == SIGTERM)
		told = 1;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(7123), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sigaction action = {.sa_handler = hears};
	struct pollfd one = {.events = POLLIN};
	sigset_t none, term;

	if (argc < 2)
		return 2;
	sigemptyset(&none);
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	if (!strcmp(argv[1], "ignores"))
		signal(SIGTERM, SIG_IGN);
	else
		sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	if (!strcmp(argv[1], "looks"))
		sigprocmask(SIG_BLOCK, &term, NULL);
	one.fd = socket(AF_INET, SOCK_STREAM, 0);
	bind(one.fd, (struct sockaddr *)&at, sizeof at);
	listen(one.fd, 1);
	while (!told) {
		if (!strcmp(argv[1], "looks"))
			ppoll(&one, 1, NULL, &none);
		else
			poll(&one, 1, -1);
	}
	close(one.fd);
	return 0;
}
