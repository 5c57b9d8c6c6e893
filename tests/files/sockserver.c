/* A server at a local socket, and its client; see tests/tool/files.rs. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = "socket" };
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    assert(s >= 0);
    if (argc > 1) {
        char c = 0;
        if (connect(s, (struct sockaddr *)&at, sizeof at) != 0)
            return 0; /* the server is not there yet */
        assert(read(s, &c, 1) == 1 && c == 'x');
        return 0;
    }
    struct stat b;
    unlink("socket");
    assert(bind(s, (struct sockaddr *)&at, sizeof at) == 0);
    assert(stat("socket", &b) == 0 && S_ISSOCK(b.st_mode));
    assert(listen(s, 5) == 0);
    for (;;) {
        int c = accept(s, 0, 0);
        assert(c >= 0 && write(c, "x", 1) == 1);
        close(c);
    }
}
