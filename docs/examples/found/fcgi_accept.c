// libfcgi: requests are accepted on a socket until SIGTERM, as FCGX_ShutdownPending is for.
#include <fcgiapp.h>
#include <signal.h>
#include <stddef.h>

static void on_signal(int number)
{
	(void)number;
	FCGX_ShutdownPending();
}

int main(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	FCGX_Request request;
	int socket;

	sigaction(SIGTERM, &action, NULL);
	FCGX_Init();
	socket = FCGX_OpenSocket("/tmp/fcgi_accept.sock", 1);
	FCGX_InitRequest(&request, socket, 0);
	while (FCGX_Accept_r(&request) == 0)
		FCGX_Finish_r(&request);
	return 0;
}
