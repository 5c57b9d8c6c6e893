/* A supervisor runs jobs in child processes for an operator, who talks to it over a socket. A handler of SIGCHLD notes that a job is over;
 * the loop looks at that note and then waits in select, which the note does not wake. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t job_is_over;
static pid_t job;
static int answers_sent;

static void on_child(int signal)
{
    (void)signal;
    job_is_over = 1;
}

static void die(const char *what)
{
    perror(what);
    exit(2);
}

/* ------------------------------------------------------------------ jobs */

static void job_run(int number)
{
    volatile unsigned sum = 0;

    for (int i = 0; i < 100; i++)
        sum += (unsigned)(i * number);
    _exit(0);
}

static void job_start(int control, int number)
{
    job = fork();
    if (job < 0)
        die("fork");
    if (job == 0) {
        close(control);
        job_run(number);
    }
}

/* Takes the end of the job and tells the operator. */
static void job_reap(int control)
{
    int status;

    if (waitpid(job, &status, WNOHANG) != job)
        return;
    if (write(control, status == 0 ? "d" : "f", 1) != 1)
        die("write");
    answers_sent++;
}

/* ------------------------------------------------------------------ the supervisor's loop */

static void supervise(int control)
{
    for (;;) {
        fd_set ready;
        char command;

        if (job_is_over) {
            job_is_over = 0;
            job_reap(control);
        }
        FD_ZERO(&ready);
        FD_SET(control, &ready);
        if (select(control + 1, &ready, NULL, NULL, NULL) < 0) {
            if (errno == EINTR)
                continue; /* a job may be over */
            die("select");
        }
        if (read(control, &command, 1) != 1)
            die("read");
        if (command == 'q')
            return;
        job_start(control, command - '0');
    }
}

/* ------------------------------------------------------------------ the operator */

static void operate(int supervisor)
{
    char answer;

    if (write(supervisor, "1", 1) != 1)
        die("write");
    if (read(supervisor, &answer, 1) != 1 || answer != 'd')
        _exit(1);
    if (write(supervisor, "q", 1) != 1)
        die("write");
    _exit(0);
}

int main(void)
{
    struct sigaction action = { .sa_handler = on_child, .sa_flags = SA_NOCLDSTOP };
    int ends[2];
    pid_t operator;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        die("socketpair");
    operator = fork();
    if (operator < 0)
        die("fork");
    if (operator == 0) {
        close(ends[0]);
        operate(ends[1]);
    }
    close(ends[1]);
    sigaction(SIGCHLD, &action, NULL);
    supervise(ends[0]);
    while (waitpid(operator, NULL, 0) < 0 && errno == EINTR) {
    }
    return answers_sent == 1 ? 0 : 1;
}
