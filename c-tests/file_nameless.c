/* Files without a name, and descriptions that came another way than by a call of open: two reads move one place, in either order. */
#include "t.h"
#include <fcntl.h>
#include <sys/socket.h>

static int in, other, channel[2];
static char first[2], second[2];

static void *reads(void *to)
{
    int fd = to == (void *)first ? in : other;
    assert(read(fd, to, 2) == 2);
    return 0;
}

static void pass(int fd)
{
    struct iovec data = {"x", 1};
    char control[CMSG_SPACE(sizeof fd)] = {0};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    assert(sendmsg(channel[0], &message, 0) == 1);
}

static int passed(void)
{
    char byte, control[CMSG_SPACE(sizeof(int))];
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    int fd;
    assert(recvmsg(channel[1], &message, 0) == 1);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}


int main(int argc, char **argv)
{
    char name[] = "/tmp/nameless.XXXXXX", kind = argv[argc - 1][0];
    pthread_t threads[2];
    if (kind == 'r') { /* In another program, which has the description from its parent. */
        in = atoi(argv[2]);
        assert(read(in, first, 2) == 2);
        return first[0] == 'a' ? 0 : 7;
    }
    switch (argv[1][0]) {
    case 't': in = fileno(tmpfile()); break;
    case 'm': in = memfd_create("a", 0); break;
    case 's': in = shm_open("/nameless", O_CREAT | O_RDWR, 0600); MUST(shm_unlink("/nameless")); break;
    case 'u': in = mkstemp(name); MUST(unlink(name)); break;
    default: in = mkstemp(name); break;
    }
    other = in;
    assert(in >= 0 && write(in, "abcd", 4) == 4);
    MUST(lseek(in, 0, SEEK_SET));
    if (argv[1][0] == 'e') {
        char number[16];
        int status;
        snprintf(number, sizeof number, "%d", in);
        pid_t child = fork();
        if (!child) {
            execl("/proc/self/exe", argv[0], "e", number, "r", (char *)0);
            _exit(9);
        }
        assert(read(in, second, 2) == 2);
        assert(waitpid(child, &status, 0) == child);
        MUST(unlink(name));
        assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        return 0;
    }
    if (argv[1][0] == 'p') {
        MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, channel));
        pass(in);
        other = passed();
    }
    pthread_create(&threads[0], 0, reads, first);
    pthread_create(&threads[1], 0, reads, second);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    assert(argv[1][1] ? first[0] != second[0] : first[0] == 'a');
    return 0;
}
