/* A group is there as long as one of its processes is: whether setpgid finds it is a question of who came first. "joins": a child joins
 * its sibling's group, which is gone once their parent has waited for the sibling; "there": the parent waits later. */
#include "t.h"
#include <sys/wait.h>

int main(int argc, char **argv)
{
    int status, late = arg_is(argc, argv, "there");
    pid_t first = fork();
    if (first == 0)
        _exit(0);
    MUST(setpgid(first, 0));
    pid_t second = fork();
    if (second == 0)
        _exit(setpgid(0, first) != 0);
    if (late)
        assert(waitpid(second, &status, 0) == second);
    assert(waitpid(first, NULL, 0) == first);
    if (!late)
        assert(waitpid(second, &status, 0) == second);
    assert(WIFEXITED(status));
    /* Natively it fails in some runs. */
    assert(WEXITSTATUS(status) == 0);
    return 0;
}
