/* A daemon without handlers, which any signal ends: it answers one client after the other, for ever. `client` is its client, who does not mind that it is
 * gone. `child`: a child of its own ends it. `late`: it has blocked SIGTERM, and lets it in later. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in address(void)
{
    struct sockaddr_in to;
    memset(&to, 0, sizeof to);
    to.sin_family = AF_INET;
    to.sin_port = htons(4712);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return to;
}

static int client(void)
{
    struct sockaddr_in to = address();
    int s = socket(AF_INET, SOCK_STREAM, 0);
    char c = 'x';
    if (connect(s, (struct sockaddr *)&to, sizeof to) == 0 && send(s, &c, 1, MSG_NOSIGNAL) == 1)
        return recv(s, &c, 1, 0) > 1;
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    struct sockaddr_in to = address();
    sigset_t term;
    int s;
    if (strcmp(what, "client") == 0)
        return client();
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    if (strcmp(what, "late") == 0)
        sigprocmask(SIG_BLOCK, &term, NULL);
    s = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(s, (struct sockaddr *)&to, sizeof to) != 0 || listen(s, 5) != 0)
        return 1;
    if (strcmp(what, "child") == 0 && fork() == 0) {
        kill(getppid(), SIGTERM);
        return 0;
    }
    for (;;) {
        int peer = accept(s, NULL, NULL);
        char c;
        if (peer < 0)
            return 1;
        if (recv(peer, &c, 1, 0) == 1)
            send(peer, &c, 1, MSG_NOSIGNAL);
        close(peer);
        sigprocmask(SIG_UNBLOCK, &term, NULL);
    }
}
