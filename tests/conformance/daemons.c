// What daemons and their libraries ask for: owners of descriptors, times for messages, /dev/shm by name, descriptors
// of processes.
#include "check.h"
#include <asm/ioctls.h>
#include <asm/sockios.h>
#include <linux/sched.h>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

static void owners_of(int fd, int is_file) {
    struct f_owner_ex owner = {9, 9};
    CHECK(fcntl(fd, F_GETOWN));
    CHECK(fcntl(fd, F_SETOWN, getpid()));
    say("own %d", fcntl(fd, F_GETOWN) == getpid());
    CHECK(fcntl(fd, F_GETOWN_EX, &owner));
    say("own %d %d", owner.type, owner.pid == getpid());
    CHECK(fcntl(fd, F_SETOWN, 999999));
    CHECK(fcntl(fd, F_SETOWN, INT32_MIN));
    owner = (struct f_owner_ex){F_OWNER_TID, gettid()};
    CHECK(fcntl(fd, F_SETOWN_EX, &owner));
    owner = (struct f_owner_ex){3, getpid()};
    CHECK(fcntl(fd, F_SETOWN_EX, &owner));
    CHECK(fcntl(fd, F_SETOWN_EX, (void *)8));
    CHECK(fcntl(fd, F_GETOWN_EX, (void *)8));
    CHECK(fcntl(fd, F_GETOWN_EX, &owner));
    say("own %d %d", owner.type, owner.pid == gettid());
    CHECK(fcntl(fd, F_GETSIG));
    CHECK(fcntl(fd, F_SETSIG, SIGUSR1));
    CHECK(fcntl(fd, F_SETSIG, 65));
    CHECK(fcntl(fd, F_SETSIG, -1));
    CHECK(fcntl(fd, F_GETSIG));
    pid_t child = fork();
    if (child == 0) _exit(0);
    siginfo_t info;
    waitid(P_PID, child, &info, WEXITED | WNOWAIT);
    // Of a file that is refused.
    if (!is_file) {
        CHECK(fcntl(fd, F_SETOWN, child));
        say("own %d", fcntl(fd, F_GETOWN) == child);
    }
    waitpid(child, 0, 0);
    if (!is_file) CHECK(fcntl(fd, F_GETOWN));
    CHECK(fcntl(fd, F_SETOWN, child));
    CHECK(fcntl(fd, F_SETOWN, 0));
    CHECK(fcntl(fd, F_GETOWN));
}

static void owners(void) {
    int ends[2], pair[2], more, id;
    pipe(ends);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    owners_of(ends[0], 0);
    owners_of(pair[0], 0);
    int file = open("/dev/null", O_RDONLY);
    say("a file");
    owners_of(file, 1);
    // One description, whatever its names.
    more = dup(pair[1]);
    CHECK(fcntl(more, F_SETOWN, -getpgrp()));
    say("own %d", fcntl(pair[1], F_GETOWN) == -getpgrp());
    CHECK(ioctl(pair[1], FIOGETOWN, &id));
    id = getpid();
    CHECK(ioctl(pair[1], FIOSETOWN, &id));
    CHECK(ioctl(pair[1], SIOCSPGRP, (void *)8));
    CHECK(ioctl(pair[1], SIOCGPGRP, &id));
    say("own %d", id == getpid());
    CHECK(ioctl(ends[1], FIOGETOWN, &id));
    CHECK(fcntl(999, F_GETOWN));
    CHECK(fcntl(999, F_SETOWN, getpid()));
}

static void received_in_time(void) {
    int pair[2];
    socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
    for (int i = 0; i < 3; i++) write(pair[1], "abc", i + 1);
    char bytes[3][8];
    struct iovec vectors[3];
    struct mmsghdr all[3];
    memset(all, 0, sizeof all);
    for (int i = 0; i < 3; i++) {
        vectors[i] = (struct iovec){bytes[i], 8};
        all[i].msg_hdr.msg_iov = vectors + i;
        all[i].msg_hdr.msg_iovlen = 1;
    }
    struct timespec none = {0, 0}, odd = {0, 1000000000}, minus = {-1, 0}, some = {1000, 0};
    CHECK(recvmmsg(pair[0], all, 3, 0, &odd));
    CHECK(recvmmsg(pair[0], all, 3, 0, &minus));
    CHECK(recvmmsg(pair[0], all, 3, 0, (void *)8));
    CHECK(recvmmsg(pair[0], all, 3, 0, &none));
    say("%u, left %ld %ld", all[0].msg_len, (long)none.tv_sec, none.tv_nsec);
    CHECK(recvmmsg(pair[0], all, 1, 0, &some));
    say("%u, left %d", all[0].msg_len, some.tv_sec > 900 && some.tv_sec < 1000);
    CHECK(recvmmsg(pair[0], all, 1, MSG_DONTWAIT, &none));
    some.tv_sec = 50;
    CHECK(recvmmsg(pair[0], all, 3, MSG_DONTWAIT, &some));
    say("left %ld", (long)some.tv_sec);
}

static void shared_memory(void) {
    struct stat stat;
    char name[64];
    int fd = shm_open("/vsrun-check", O_CREAT | O_RDWR | O_EXCL, 0600);
    CHECK(fd >= 0);
    CHECK(ftruncate(fd, 100));
    CHECK(access("/dev/shm/vsrun-check", F_OK));
    CHECK(lstat("//dev/shm/vsrun-check", &stat));
    say("size %d mode %o", (int)stat.st_size, stat.st_mode);
    CHECK(chmod("/dev/shm/vsrun-check", 0640));
    CHECK(truncate("/dev/shm/vsrun-check", 50));
    CHECK(fstat(fd, &stat));
    say("size %d mode %o", (int)stat.st_size, stat.st_mode);
    CHECK(link("/dev/shm/vsrun-check", "/dev/shm/vsrun-check-too"));
    CHECK(mkdir("/dev/shm/vsrun-check-dir", 0700));
    CHECK(rename("/dev/shm/vsrun-check-too", "/dev/shm/vsrun-check-dir/x"));
    CHECK(chdir("/dev/shm/vsrun-check-dir"));
    CHECK(access("x", F_OK));
    CHECK(access("../vsrun-check", F_OK));
    CHECK(getcwd(name, sizeof name) != 0);
    say("in %s", name);
    CHECK(chdir("/"));
    CHECK(symlink("to", "/dev/shm/vsrun-check-dir/l"));
    CHECK(readlink("/dev/shm/vsrun-check-dir/l", name, sizeof name));
    int dir = open("/dev/shm/vsrun-check-dir", O_RDONLY | O_DIRECTORY);
    CHECK(unlinkat(dir, "l", 0));
    CHECK(rmdir("/dev/shm/vsrun-check-dir"));
    CHECK(unlink("/dev/shm/vsrun-check-dir/x"));
    CHECK(rmdir("/dev/shm/vsrun-check-dir"));
    CHECK(shm_unlink("/vsrun-check"));
    CHECK(shm_unlink("/vsrun-check"));
    CHECK(access("/dev/shm/vsrun-check", F_OK));
    CHECK(access("/dev/shmvsrun", F_OK));
}

// Of processes.
static int pidfd_open_(pid_t pid, unsigned flags) { return syscall(SYS_pidfd_open, pid, flags); }
static int pidfd_send(int fd, int sig, siginfo_t *info, unsigned flags) { return syscall(SYS_pidfd_send_signal, fd, sig, info, flags); }

static volatile sig_atomic_t came;
static void on_usr1(int signal) { came = signal; }

static void pidfds(void) {
    siginfo_t info;
    signal(SIGUSR1, on_usr1);
    CHECK(pidfd_open_(-1, 0));
    CHECK(pidfd_open_(0, 0));
    CHECK(pidfd_open_(999999, 0));
    CHECK(pidfd_open_(getpid(), 1));
    int own = pidfd_open_(getpid(), 0);
    FINE(own);
    CHECK(fcntl(own, F_GETFD));
    CHECK(fcntl(own, F_GETFL) & (O_NONBLOCK | O_ACCMODE));
    char byte;
    CHECK(read(own, &byte, 1));
    CHECK(write(own, "x", 1));
    CHECK(poll(&(struct pollfd){own, POLLIN, 0}, 1, 0));
    CHECK(pidfd_send(own, SIGUSR1, 0, 0));
    say("came %d", (int)came);
    CHECK(pidfd_send(own, 0, 0, 0));
    CHECK(pidfd_send(own, 65, 0, 0));
    CHECK(pidfd_send(own, SIGUSR1, 0, 64));
    CHECK(pidfd_send(0, SIGUSR1, 0, 0));
    CHECK(pidfd_send(999, SIGUSR1, 0, 0));
    memset(&info, 0, sizeof info);
    info.si_signo = SIGUSR2;
    CHECK(pidfd_send(own, SIGUSR1, &info, 0));
    CHECK(pidfd_send(own, SIGUSR1, (void *)8, 0));
    CHECK(waitid(P_PIDFD, own, &info, WEXITED | WNOHANG));
    CHECK(waitid(P_PIDFD, 999, &info, WEXITED | WNOHANG));
    CHECK(waitid(P_PIDFD, 0, &info, WEXITED | WNOHANG));
    CHECK(waitid(P_PIDFD, -1, &info, WEXITED | WNOHANG));
    int ends[2];
    pipe(ends);
    pid_t child = fork();
    if (child == 0) {
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 0 ? 7 : 8);
    }
    int fd = pidfd_open_(child, O_NONBLOCK);
    FINE(fd);
    CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
    CHECK(waitid(P_PIDFD, fd, &info, WEXITED));
    CHECK(fcntl(fd, F_SETFL, 0));
    memset(&info, 0, sizeof info);
    CHECK(waitid(P_PIDFD, fd, &info, WEXITED | WNOHANG));
    say("of %d", info.si_pid);
    struct pollfd asked = {fd, POLLIN | POLLOUT, 0};
    CHECK(poll(&asked, 1, 0));
    int epoll = epoll_create1(0);
    struct epoll_event event = {EPOLLIN, {.u32 = 5}}, got;
    CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
    CHECK(epoll_wait(epoll, &got, 1, 0));
    close(ends[1]);
    CHECK(poll(&asked, 1, -1));
    say("events %x", asked.revents & ~POLLHUP);
    CHECK(epoll_wait(epoll, &got, 1, -1));
    say("events %x %u", got.events & ~EPOLLHUP, got.data.u32);
    CHECK(pidfd_send(fd, 0, 0, 0));
    CHECK(waitid(P_PIDFD, fd, &info, WEXITED | WNOWAIT));
    say("of %d, code %d, status %d", info.si_pid == child, info.si_code, info.si_status);
    int late = pidfd_open_(child, 0);
    FINE(late);
    CHECK(poll(&(struct pollfd){late, POLLIN, 0}, 1, 0));
    CHECK(waitid(P_PIDFD, fd, &info, WEXITED));
    CHECK(waitid(P_PIDFD, fd, &info, WEXITED));
    CHECK(pidfd_send(fd, 0, 0, 0));
    CHECK(pidfd_open_(child, 0));
    asked.revents = 0;
    CHECK(poll(&asked, 1, 0));
    say("events %x", asked.revents & ~POLLHUP);
    // A child that is killed, by its descriptor.
    child = fork();
    if (child == 0) pause();
    fd = pidfd_open_(child, 0);
    CHECK(pidfd_send(fd, SIGKILL, 0, 0));
    CHECK(waitid(P_PIDFD, fd, &info, WEXITED));
    say("code %d, status %d", info.si_code, info.si_status);
    // Given by clone.
    int given = -1;
    child = syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, 0, &given, 0, 0);
    if (child == 0) _exit(fcntl(given, F_GETFD) == -1 ? 3 : 4);
    say("given %d, %d", given >= 0, fcntl(given, F_GETFD));
    CHECK(waitid(P_PIDFD, given, &info, WEXITED));
    say("code %d, status %d", info.si_code, info.si_status);
    uint64_t args[8] = {CLONE_PIDFD, (uint64_t)&given, 0, 0, SIGCHLD};
    given = -1;
    child = syscall(SYS_clone3, args, sizeof args);
    if (child == 0) _exit(5);
    say("given %d", given >= 0);
    CHECK(waitid(P_PIDFD, given, &info, WEXITED));
    say("code %d, status %d", info.si_code, info.si_status);
    CHECK(syscall(SYS_clone, CLONE_PIDFD | CLONE_PARENT_SETTID | SIGCHLD, 0, &given, 0, 0));
    struct stat stat;
    CHECK(fstat(own, &stat));
    say("mode %o", stat.st_mode & 0777);
    CHECK(lseek(own, 0, SEEK_CUR));
    CHECK(ioctl(own, FIONREAD, &given));
    CHECK(syscall(SYS_pidfd_getfd, own, 0, 1));
    CHECK(syscall(SYS_pidfd_getfd, 999, 0, 0));
}

static const struct group groups[] = {
    {"owners", owners}, {"received_in_time", received_in_time}, {"shared_memory", shared_memory},
    {"pidfds", pidfds}, {0, 0},
};

int main(int argc, char **argv) {
    return run_groups(groups, argc, argv);
}
