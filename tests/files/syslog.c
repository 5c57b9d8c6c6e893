/* A syslogd and what logs to it. The daemon takes the socket that may be there away, and makes a file beside it. It waits for one
   message for a second. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/dev/log"};
    int s = socket(AF_UNIX, SOCK_DGRAM, 0);
    char text[100];
    if (argc > 1 && !strcmp(argv[1], "client")) {
        if (connect(s, (struct sockaddr *)&address, sizeof address) == 0)
            send(s, "hello", 5, 0);
        return 0;
    }
    int made = open("/dev/vsrun-files-test", O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (made < 0) {
        puts(errno == EACCES ? "no permission" : "open fails otherwise");
        return errno != EACCES;
    }
    if (write(made, "x", 1) != 1 || access("/dev/vsrun-files-test", F_OK) != 0)
        abort();
    int null = open("/dev/null", O_WRONLY);
    if (null < 0 || write(null, "x", 1) != 1 || lseek(null, 0, SEEK_END) != 0)
        abort();
    unlink(address.sun_path);
    if (bind(s, (struct sockaddr *)&address, sizeof address) != 0)
        abort();
    struct pollfd polled = {.fd = s, .events = POLLIN};
    int n = poll(&polled, 1, 1000) > 0 ? recv(s, text, sizeof text, 0) : 0;
    printf("%.*s\n", n, text);
    unlink(address.sun_path);
    return 0;
}
