// System V and POSIX IPC: keys, flags, commands, limits, what IPC_STAT tells.
#include "check.h"
#include <mqueue.h>

#define KEY 0x76730000

static int recent(time_t t) {
    time_t now = time(0);
    return t <= now && t > now - 100;
}

static void sets(void) {
    int old = semget(KEY, 0, 0);
    if (old >= 0) semctl(old, 0, IPC_RMID);
    CHECK(semget(KEY, 1, 0600));
    CHECK(semget(KEY, 0, 0600 | IPC_CREAT));
    CHECK(semget(KEY, -1, 0600 | IPC_CREAT));
    CHECK(semget(KEY, 32001, 0600 | IPC_CREAT));
    CHECK(semget(IPC_PRIVATE, 0, 0600));
    int s = semget(KEY, 3, 0640 | IPC_CREAT);
    FINE(s);
    FINE(semget(KEY, 3, 0600 | IPC_CREAT));
    CHECK(semget(KEY, 3, 0600) == s);
    CHECK(semget(KEY, 0, 0) == s);
    CHECK(semget(KEY, 3, 0600 | IPC_CREAT | IPC_EXCL));
    CHECK(semget(KEY, 4, 0600));
    CHECK(semget(KEY, 2, 0600) == s);
    struct semid_ds d;
    memset(&d, 255, sizeof d);
    CHECK(semctl(s, 0, IPC_STAT, &d));
    say("IPC_STAT: key %x, uid %d, cuid %d, gid %d, cgid %d, mode %o, nsems %d, otime %d, ctime %d", d.sem_perm.__key,
        d.sem_perm.uid == geteuid(), d.sem_perm.cuid == geteuid(), d.sem_perm.gid == getegid(),
        d.sem_perm.cgid == getegid(), d.sem_perm.mode, (int)d.sem_nsems, d.sem_otime != 0, recent(d.sem_ctime));
    struct sembuf add = {0, 1, 0}, take = {0, -1, IPC_NOWAIT}, far = {3, 1, 0}, much = {0, 32767, 0};
    CHECK(semop(s, &take, 1));
    CHECK(semctl(s, 0, IPC_STAT, &d));
    say("otime after a semop that failed: %d", d.sem_otime != 0);
    CHECK(semop(s, &add, 1));
    CHECK(semctl(s, 0, IPC_STAT, &d));
    say("otime: %d", recent(d.sem_otime));
    CHECK(semop(s, &far, 1));
    CHECK(semop(s, &much, 1));
    CHECK(semop(s, &add, 0));
    CHECK(semop(s, &add, 501));
    CHECK(semop(-1, &add, 1));
    CHECK(semop(s + 12345, &add, 1));
    CHECK(semctl(s, 0, GETVAL));
    CHECK(semctl(s, 3, GETVAL));
    CHECK(semctl(s, -1, GETVAL));
    CHECK(semctl(s, 0, SETVAL, -1));
    CHECK(semctl(s, 0, SETVAL, 32768));
    CHECK(semctl(s, 0, SETVAL, 32767));
    CHECK(semop(s, &add, 1));
    CHECK(semctl(s, 1, SETVAL, 5));
    CHECK(semctl(s, 1, GETPID) == getpid());
    CHECK(semctl(s, 2, GETPID));
    CHECK(semctl(s, 1, GETNCNT));
    CHECK(semctl(s, 1, GETZCNT));
    CHECK(semctl(s, 3, GETPID));
    CHECK(semctl(s, 3, GETNCNT));
    CHECK(semctl(s, 3, GETZCNT));
    unsigned short values[3] = {1, 2, 40000};
    CHECK(semctl(s, 0, SETALL, values));
    CHECK(semctl(s, 0, GETALL, values));
    say("values: %d %d %d", values[0], values[1], values[2]);
    values[0] = 7;
    CHECK(semctl(s, 0, SETALL, values));
    CHECK(semctl(s, 2, GETPID) == getpid());
    CHECK(semctl(s, 0, 77, 0));
    CHECK(semctl(s, 0, -1, 0));
    CHECK(semctl(-1, 0, GETVAL));
    CHECK(semctl(s + 12345, 0, GETVAL));
    CHECK(semctl(s + 12345, 0, IPC_RMID));
    d.sem_perm.mode = 0444;
    CHECK(semctl(s, 0, IPC_SET, &d));
    CHECK(semctl(s, 0, IPC_STAT, &d));
    say("mode: %o", d.sem_perm.mode);
    CHECK(semctl(s, 0, IPC_RMID));
    CHECK(semctl(s, 0, GETVAL));
    CHECK(semop(s, &add, 1));
    CHECK(semctl(s, 0, IPC_RMID));
    CHECK(semget(KEY, 1, 0600));
    // A set that is made again has another id.
    CHECK(semget(KEY, 1, 0600 | IPC_CREAT) == s);
    semctl(semget(KEY, 1, 0600), 0, IPC_RMID);
}

static void undo(void) {
    int s = semget(IPC_PRIVATE, 1, 0600);
    struct sembuf add = {0, 3, SEM_UNDO}, odd = {0, 1, 0x7000};
    pid_t child = fork();
    if (child == 0) {
        semop(s, &add, 1);
        _exit(semctl(s, 0, GETVAL));
    }
    int status;
    waitpid(child, &status, 0);
    say("in the child: %d, then: %d", WEXITSTATUS(status), semctl(s, 0, GETVAL));
    CHECK(semctl(s, 0, GETPID) == child);
    CHECK(semop(s, &odd, 1));
    struct sembuf several[3] = {{0, 5, 0}, {0, -2, 0}, {0, -100, IPC_NOWAIT}};
    CHECK(semop(s, several, 3));
    CHECK(semctl(s, 0, GETVAL));
    CHECK(semop(s, several, 2));
    CHECK(semctl(s, 0, GETVAL));
    semctl(s, 0, IPC_RMID);
}

static void queues(void) {
    int old = msgget(KEY, 0);
    if (old >= 0) msgctl(old, IPC_RMID, 0);
    CHECK(msgget(KEY, 0600));
    int q = msgget(KEY, 0640 | IPC_CREAT);
    FINE(q);
    CHECK(msgget(KEY, 0600) == q);
    CHECK(msgget(KEY, 0600 | IPC_CREAT | IPC_EXCL));
    struct {
        long type;
        char text[8193];
    } m = {1, "abc"};
    struct msqid_ds d;
    memset(&d, 255, sizeof d);
    CHECK(msgctl(q, IPC_STAT, &d));
    say("IPC_STAT: key %x, uid %d, mode %o, qnum %d, qbytes %d, cbytes %d, stime %d, rtime %d, ctime %d, lspid %d, lrpid %d",
        d.msg_perm.__key, d.msg_perm.uid == geteuid(), d.msg_perm.mode, (int)d.msg_qnum, (int)d.msg_qbytes,
        (int)d.__msg_cbytes, d.msg_stime != 0, d.msg_rtime != 0, recent(d.msg_ctime), d.msg_lspid, d.msg_lrpid);
    CHECK(msgsnd(q, &m, 8193, IPC_NOWAIT));
    CHECK(msgsnd(q, &m, -1, IPC_NOWAIT));
    CHECK(msgsnd(-1, &m, 4, IPC_NOWAIT));
    CHECK(msgsnd(q + 12345, &m, 4, IPC_NOWAIT));
    m.type = 0;
    CHECK(msgsnd(q, &m, 4, IPC_NOWAIT));
    m.type = -1;
    CHECK(msgsnd(q, &m, 4, IPC_NOWAIT));
    m.type = 5;
    CHECK(msgsnd(q, &m, 0, IPC_NOWAIT));
    CHECK(msgsnd(q, &m, 4, IPC_NOWAIT));
    CHECK(msgctl(q, IPC_STAT, &d));
    say("qnum %d, cbytes %d, stime %d, lspid %d", (int)d.msg_qnum, (int)d.__msg_cbytes, recent(d.msg_stime),
        d.msg_lspid == getpid());
    CHECK(msgrcv(q, &m, 100, 1, IPC_NOWAIT));
    CHECK(msgrcv(q, &m, -1, 0, IPC_NOWAIT));
    CHECK(msgrcv(q, &m, 100, 5, IPC_NOWAIT));
    CHECK(msgrcv(q, &m, 2, 5, IPC_NOWAIT));
    CHECK(msgrcv(q, &m, 2, -5, IPC_NOWAIT | MSG_NOERROR));
    CHECK(msgrcv(q, &m, 100, 0, IPC_NOWAIT));
    CHECK(msgrcv(q, &m, 100, 0, IPC_NOWAIT | MSG_EXCEPT));
    CHECK(msgrcv(q, &m, 100, 0, MSG_COPY));
    CHECK(msgrcv(q + 12345, &m, 100, 0, IPC_NOWAIT));
    CHECK(msgctl(q, IPC_STAT, &d));
    say("qnum %d, rtime %d, lrpid %d", (int)d.msg_qnum, recent(d.msg_rtime), d.msg_lrpid == getpid());
    for (int i = 0; i < 3; i++) {
        m.type = 3 - i;
        msgsnd(q, &m, i, 0);
    }
    CHECK(msgrcv(q, &m, 100, -2, 0));
    CHECK(msgrcv(q, &m, 100, 2, MSG_EXCEPT));
    CHECK(msgrcv(q, &m, 100, 0, 0));
    d.msg_qbytes = 10;
    d.msg_perm.mode = 0444;
    CHECK(msgctl(q, IPC_SET, &d));
    m.type = 1;
    CHECK(msgsnd(q, &m, 8, IPC_NOWAIT));
    CHECK(msgsnd(q, &m, 8, IPC_NOWAIT));
    CHECK(msgsnd(q, &m, 11, IPC_NOWAIT));
    CHECK(msgctl(q, 77, &d));
    CHECK(msgctl(q, -1, &d));
    CHECK(msgctl(-1, IPC_STAT, &d));
    CHECK(msgctl(q + 12345, IPC_RMID, 0));
    CHECK(msgctl(q, IPC_RMID, 0));
    CHECK(msgsnd(q, &m, 4, IPC_NOWAIT));
    CHECK(msgrcv(q, &m, 100, 0, IPC_NOWAIT));
}

#define COPY 040000

static void copies(void) {
    int q = msgget(IPC_PRIVATE, 0600);
    struct {
        long type;
        char text[8192];
    } m = {3, "hello"};
    FINE(msgsnd(q, &m, 5, 0));
    m.type = 7;
    strcpy(m.text, "other");
    FINE(msgsnd(q, &m, 6, 0));
    for (long n = -2; n < 4; n++) {
        char name[40];
        memset(&m, 0, sizeof m);
        sprintf(name, "copy of message %ld", n);
        NAMED(name, msgrcv(q, &m, 64, n, COPY | IPC_NOWAIT));
        say("type %ld, text %s", m.type, m.text);
    }
    CHECK(msgrcv(q, &m, 64, 0, COPY));
    CHECK(msgrcv(q, &m, 64, 0, COPY | IPC_NOWAIT | MSG_EXCEPT));
    CHECK(msgrcv(q, &m, 3, 0, COPY | IPC_NOWAIT));
    CHECK(msgrcv(q, &m, 3, 0, COPY | IPC_NOWAIT | MSG_NOERROR));
    CHECK(msgrcv(q, &m, 5, 0, COPY | IPC_NOWAIT | MSG_NOERROR));
    CHECK(msgrcv(q, &m, 1l << 40, 1, COPY | IPC_NOWAIT));
    CHECK(msgrcv(q, &m, -1, 1, COPY | IPC_NOWAIT));
    CHECK(msgrcv(-1, &m, 64, 1, COPY | IPC_NOWAIT));
    CHECK(msgrcv(q, (void *)8, 64, 1, COPY | IPC_NOWAIT));
    CHECK(msgrcv(q, &m, 64, 0, 0));
    CHECK(msgrcv(q, &m, 64, 0, COPY | IPC_NOWAIT));
    CHECK(msgrcv(q, &m, 64, 1, COPY | IPC_NOWAIT));
    struct msqid_ds d;
    CHECK(msgctl(q, IPC_STAT, &d));
    say("messages %d", (int)d.msg_qnum);
    CHECK(msgctl(q, IPC_RMID, 0));
    CHECK(msgrcv(q, &m, 64, 0, COPY | IPC_NOWAIT));
}

static void segments(void) {
    int old = shmget(KEY, 0, 0);
    if (old >= 0) shmctl(old, IPC_RMID, 0);
    CHECK(shmget(KEY, 4096, 0600));
    CHECK(shmget(KEY, 0, 0600 | IPC_CREAT));
    int s = shmget(KEY, 5000, 0640 | IPC_CREAT);
    FINE(s);
    CHECK(shmget(KEY, 5000, 0600) == s);
    CHECK(shmget(KEY, 100, 0600) == s);
    CHECK(shmget(KEY, 5001, 0600));
    CHECK(shmget(KEY, 5000, 0600 | IPC_CREAT | IPC_EXCL));
    struct shmid_ds d;
    memset(&d, 255, sizeof d);
    CHECK(shmctl(s, IPC_STAT, &d));
    say("IPC_STAT: key %x, uid %d, gid %d, mode %o, segsz %d, nattch %d, atime %d, dtime %d, ctime %d, cpid %d, lpid %d",
        d.shm_perm.__key, d.shm_perm.uid == geteuid(), d.shm_perm.cgid == getegid(), d.shm_perm.mode, (int)d.shm_segsz,
        (int)d.shm_nattch, d.shm_atime != 0, d.shm_dtime != 0, recent(d.shm_ctime), d.shm_cpid == getpid(), d.shm_lpid);
    char *at = shmat(s, 0, 0);
    CHECK(at != (void *)-1);
    CHECK(shmctl(s, IPC_STAT, &d));
    say("nattch %d, atime %d, lpid %d", (int)d.shm_nattch, recent(d.shm_atime), d.shm_lpid == getpid());
    at[5000] = 1;
    char *again = shmat(s, 0, SHM_RDONLY);
    say("seen: %d", again[5000]);
    CHECK((long)shmat(s, at + 1, 0));
    CHECK((long)shmat(s, at, 0));
    CHECK((long)shmat(-1, 0, 0));
    CHECK((long)shmat(s + 12345, 0, 0));
    CHECK(shmdt(at + 1));
    CHECK(shmdt(at + 4096));
    CHECK(shmdt(0));
    CHECK(shmdt(again));
    CHECK(shmctl(s, IPC_STAT, &d));
    say("nattch %d, dtime %d", (int)d.shm_nattch, recent(d.shm_dtime));
    CHECK(shmctl(s, 77, &d));
    CHECK(shmctl(s, -1, &d));
    CHECK(shmctl(-1, IPC_STAT, &d));
    CHECK(shmctl(s + 12345, IPC_STAT, &d));
    d.shm_perm.mode = 0444;
    CHECK(shmctl(s, IPC_SET, &d));
    CHECK(shmctl(s, IPC_STAT, &d));
    say("mode: %o", d.shm_perm.mode);
    CHECK(shmctl(s, IPC_RMID, 0));
    CHECK(shmctl(s, IPC_STAT, &d));
    say("mode: %o, key %x", d.shm_perm.mode, d.shm_perm.__key);
    CHECK(shmget(KEY, 5000, 0600));
    CHECK(shmdt(at));
    CHECK(shmdt(at));
    CHECK(shmctl(s, IPC_STAT, &d));
    CHECK(shmctl(s, IPC_RMID, 0));
    pid_t child;
    s = shmget(IPC_PRIVATE, 4096, 0600);
    at = shmat(s, 0, 0);
    child = fork();
    if (child == 0) {
        shmctl(s, IPC_STAT, &d);
        _exit((int)d.shm_nattch);
    }
    int status;
    waitpid(child, &status, 0);
    shmctl(s, IPC_STAT, &d);
    say("nattch in the child %d, then %d, lpid %d", WEXITSTATUS(status), (int)d.shm_nattch, d.shm_lpid == child);
    shmdt(at);
    shmctl(s, IPC_RMID, 0);
}

static void posix_queues(void) {
    const char *name = "/vsrun-conformance-ipc";
    mq_unlink(name);
    CHECK(mq_open(name, O_RDWR));
    CHECK(mq_open("/", O_RDWR));
    CHECK(mq_open("x", O_RDWR));
    CHECK(mq_open("/a/b", O_RDWR));
    CHECK(mq_unlink(name));
    CHECK(mq_unlink("x"));
    struct mq_attr a = {.mq_maxmsg = 0, .mq_msgsize = 8};
    CHECK(mq_open(name, O_RDWR | O_CREAT, 0600, &a));
    a = (struct mq_attr){.mq_maxmsg = 2, .mq_msgsize = 0};
    CHECK(mq_open(name, O_RDWR | O_CREAT, 0600, &a));
    a = (struct mq_attr){.mq_maxmsg = 1 << 20, .mq_msgsize = 8};
    CHECK(mq_open(name, O_RDWR | O_CREAT, 0600, &a));
    a = (struct mq_attr){.mq_maxmsg = 2, .mq_msgsize = 8, .mq_flags = O_NONBLOCK};
    int q = mq_open(name, O_RDWR | O_CREAT, 0600, &a);
    CHECK(q >= 0);
    CHECK(mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &a));
    CHECK(mq_getattr(q, &a));
    say("flags %ld, maxmsg %ld, msgsize %ld, curmsgs %ld", a.mq_flags, a.mq_maxmsg, a.mq_msgsize, a.mq_curmsgs);
    a.mq_flags = O_APPEND;
    CHECK(mq_setattr(q, &a, 0));
    a.mq_flags = O_NONBLOCK;
    CHECK(mq_setattr(q, &a, 0));
    char text[20];
    unsigned priority;
    CHECK(mq_receive(q, text, 8, 0));
    CHECK(mq_receive(q, text, 7, 0));
    CHECK(mq_send(q, "abc", 9, 0));
    CHECK(mq_send(q, "abc", 3, 32768));
    CHECK(mq_send(q, "abc", 3, 1));
    CHECK(mq_send(q, "", 0, 32767));
    CHECK(mq_send(q, "abc", 3, 1));
    CHECK(mq_receive(q, text, 8, &priority));
    say("priority %u", priority);
    int r = mq_open(name, O_RDONLY), w = mq_open(name, O_WRONLY);
    CHECK(mq_send(r, "x", 1, 0));
    CHECK(mq_receive(w, text, 8, 0));
    CHECK(mq_receive(r, text, 20, &priority));
    struct sigevent e = {.sigev_notify = SIGEV_NONE};
    CHECK(mq_notify(q, &e));
    CHECK(mq_notify(r, &e));
    CHECK(mq_notify(q, 0));
    CHECK(mq_notify(q, 0));
    e.sigev_notify = 99;
    CHECK(mq_notify(q, &e));
    e = (struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = 77};
    CHECK(mq_notify(q, &e));
    int bytes = -1;
    struct stat s;
    CHECK(ioctl(q, FIONREAD, &bytes));
    say("bytes %d", bytes);
    CHECK(lseek(q, 30, SEEK_SET));
    CHECK(ioctl(q, FIONREAD, &bytes));
    say("bytes %d", bytes);
    CHECK(ioctl(q, FIONREAD, 0));
    CHECK(ftruncate(r, 10));
    CHECK(ftruncate(q, -1));
    CHECK(ftruncate(q, 1l << 31));
    CHECK(ftruncate(w, 10));
    CHECK(fstat(q, &s));
    say("size %ld, mode %o", (long)s.st_size, s.st_mode);
    CHECK(ioctl(q, FIONREAD, &bytes));
    say("bytes %d", bytes);
    CHECK(pread(q, text, 6, 0));
    CHECK(fchown(q, -1, -1));
    CHECK(fchown(r, geteuid(), getegid()));
    CHECK(fchmod(r, 0640));
    CHECK(fstat(w, &s));
    say("size %ld, mode %o", (long)s.st_size, s.st_mode);
    CHECK(mq_unlink(name));
    CHECK(mq_open(name, O_RDWR));
    CHECK(mq_send(w, "x", 1, 0));
    CHECK(mq_close(w));
    CHECK(mq_close(w));
    close(q);
    close(r);
}

static long ask(int queue, const void *cookie, int socket) {
    struct {
        const void *cookie;
        int socket, how;
        char rest[48];
    } event = {cookie, socket, SIGEV_THREAD, ""};
    return syscall(SYS_mq_notify, queue, &event);
}

static void cookies(int link) {
    char got[64];
    long n;
    while ((n = recv(link, got, sizeof got, MSG_DONTWAIT)) > 0) say("%ld bytes: %.5s.. %d", n, got, got[31]);
    say("%ld %s", n, strerrorname_np(errno));
}

// How libc is told of messages: by a socket, with what it has given for it.
static void notices(void) {
    char cookie[32] = "a cookie", text[100] = "";
    struct mq_attr attr = {.mq_maxmsg = 3, .mq_msgsize = 16};
    const char *name = "/vsrun-conformance-notices";
    mq_unlink(name);
    int queue = mq_open(name, O_CREAT | O_RDWR, 0600, &attr), again = mq_open(name, O_RDONLY), s[2];
    int link = socket(AF_NETLINK, SOCK_RAW, 0);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    CHECK(ask(queue, cookie, -1));
    CHECK(ask(queue, cookie, queue));
    CHECK(ask(queue, cookie, s[0]));
    CHECK(ask(queue, (void *)8, link));
    CHECK(ask(queue, (void *)8, -1));
    CHECK(ask(-1, cookie, link));
    CHECK(ask(-1, cookie, -1));
    CHECK(ask(queue, cookie, link));
    CHECK(ask(queue, cookie, link));
    cookies(link);
    read(queue, text, 35);
    say("%s", text);
    CHECK(mq_notify(queue, 0));
    CHECK(mq_notify(queue, 0));
    cookies(link);
    CHECK(ask(queue, cookie, link));
    CHECK(mq_send(queue, "m", 1, 0));
    CHECK(mq_send(queue, "m", 1, 0));
    cookies(link);
    CHECK(ask(queue, cookie, link));
    CHECK(mq_send(queue, "m", 1, 0));
    cookies(link);
    CHECK(mq_close(again));
    cookies(link);
    CHECK(ask(queue, cookie, link));
    close(link);
    CHECK(mq_notify(queue, 0));
    close(queue);
    mq_unlink(name);
}

static void semaphores(void) {
    sem_t s;
    CHECK(sem_init(&s, 0, 2147483648u));
    CHECK(sem_init(&s, 0, 2147483647));
    CHECK(sem_post(&s));
    int value;
    CHECK(sem_getvalue(&s, &value));
    say("value %d", value);
    CHECK(sem_init(&s, 0, 0));
    CHECK(sem_trywait(&s));
    CHECK(sem_destroy(&s));
    const char *name = "/vsrun-conformance-sem";
    sem_unlink(name);
    CHECK(sem_open(name, 0) == SEM_FAILED ? -1 : 0);
    CHECK(sem_open("/a/b", O_CREAT, 0600, 1) == SEM_FAILED ? -1 : 0);
    CHECK(sem_open("", O_CREAT, 0600, 1) == SEM_FAILED ? -1 : 0);
    CHECK(sem_open("/", O_CREAT, 0600, 1) == SEM_FAILED ? -1 : 0);
    CHECK(sem_open(name, O_CREAT, 0600, 2147483648u) == SEM_FAILED ? -1 : 0);
    sem_t *n = sem_open(name, O_CREAT, 0600, 1);
    CHECK(n == SEM_FAILED ? -1 : 0);
    CHECK(sem_open(name, O_CREAT | O_EXCL, 0600, 1) == SEM_FAILED ? -1 : 0);
    CHECK(sem_open(name, 0) == n);
    CHECK(sem_unlink(name));
    CHECK(sem_unlink(name));
    CHECK(sem_unlink("/a/b"));
    CHECK(sem_trywait(n));
    CHECK(sem_trywait(n));
    CHECK(sem_close(n));
}

static const struct group groups[] = {
    {"sets", sets},         {"undo", undo},
    {"queues", queues},     {"copies", copies},     {"segments", segments},
    {"posix_queues", posix_queues}, {"notices", notices}, {"semaphores", semaphores},
    {0, 0},
};

int main(int argc, char **argv) {
    return run_groups(groups, argc, argv);
}
