// What a fork copies while another thread writes it, and the child reads.
//   beside    the thread may have written or not
//   grand     the same, read by the child's child
//   after     the thread has ended before the fork
//   written   the child writes the variable before it reads it
#include <assert.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long variable;

static void *set(void *argument) {
    variable = 1;
    return argument;
}

static void wait_for(pid_t child) {
    int status;
    assert(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "beside";
    pthread_t thread;
    pthread_create(&thread, 0, set, 0);
    if (!strcmp(way, "after")) pthread_join(thread, 0);
    pid_t child = fork();
    if (child == 0) {
        if (!strcmp(way, "written")) variable = 1;
        if (!strcmp(way, "grand")) {
            pid_t own = fork();
            if (own) wait_for(own), _exit(0);
        }
        assert(variable == 1);
        _exit(0);
    }
    wait_for(child);
    if (strcmp(way, "after")) pthread_join(thread, 0);
    return 0;
}
