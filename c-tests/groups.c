/* Process groups and sessions between parent and child: who asks can tell whether the child has moved yet. "group": getpgid after fork;
 * "session": getsid; "kill": a signal to a group that may not be there yet; "wait": the same for waitpid; "exec": setpgid by the parent fails
 * once the child has replaced its program; "fixed": both set it, as shells do. */
#include "t.h"
#include <errno.h>
#include <signal.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (arg_is(argc, argv, "true"))
        return 0;
    MUST(setpgid(0, 0) && getpgid(0) != getpid());
    pid_t child = fork();
    MUST(child < 0);
    if (child == 0) {
        if (arg_is(argc, argv, "exec")) {
            execl(argv[0], argv[0], "true", NULL);
            _exit(9);
        }
        if (arg_is(argc, argv, "session"))
            MUST(setsid() != getpid());
        else
            MUST(setpgid(0, 0));
        _exit(0);
    }
    if (arg_is(argc, argv, "group"))
        assert(getpgid(child) == child);
    if (arg_is(argc, argv, "session"))
        assert(getsid(child) == child);
    if (arg_is(argc, argv, "kill"))
        assert(kill(-child, 0) == 0);
    if (arg_is(argc, argv, "wait"))
        assert(waitpid(-child, NULL, 0) == child);
    if (arg_is(argc, argv, "exec"))
        assert(setpgid(child, child) == 0);
    if (arg_is(argc, argv, "fixed")) {
        MUST(setpgid(child, child));
        assert(getpgid(child) == child && kill(-child, 0) == 0);
        assert(waitpid(-child, NULL, 0) == child);
        return 0;
    }
    if (!arg_is(argc, argv, "wait"))
        MUST(waitpid(child, NULL, 0) != child);
    return 0;
}
