/* vfork + exec, posix_spawn (with file actions and attributes), posix_spawnp, system, and exec of a program that does not exist. */
#include "t.h"
#include <fcntl.h>
#include <spawn.h>

extern char **environ;

static int status_of(pid_t pid)
{
    int status = reap(pid);

    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(void)
{
    char *exit3[] = { "sh", "-c", "exit 3", NULL };
    char *speak[] = { "sh", "-c", "echo not to be seen; exit 4", NULL };
    char *path[] = { "true", NULL };
    char *nothing[] = { "nothing", NULL };
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    pid_t pid;
    int rc;

    pid = vfork();
    if (pid == 0) {
        execv("/bin/sh", exit3);
        _exit(127);
    }
    printf("vfork + execv: %d\n", status_of(pid));

    pid = vfork();
    if (pid == 0) {
        execv("/no/such/program", nothing);
        _exit(127);
    }
    printf("vfork + failing execv: %d\n", status_of(pid));

    MUST(posix_spawn_file_actions_init(&actions));
    MUST(posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0));
    MUST(posix_spawnattr_init(&attr));
    MUST(posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP));
    MUST(posix_spawn(&pid, "/bin/sh", &actions, &attr, speak, environ));
    printf("posix_spawn: %d\n", status_of(pid));
    MUST(posix_spawnp(&pid, "true", NULL, NULL, path, environ));
    printf("posix_spawnp: %d\n", status_of(pid));
    rc = posix_spawn(&pid, "/no/such/program", NULL, NULL, nothing, environ);
    printf("failing posix_spawn: %s\n", strerror(rc));

    fflush(stdout);
    rc = system("echo said by the shell; exit 5");
    printf("system: %d\n", WEXITSTATUS(rc));
    return 0;
}
