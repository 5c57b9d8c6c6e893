// A variable inside of a function is initialized by whoever comes first. Buggy: that is taken to be the main thread. Throws: the first
// attempt fails, and the next one is another thread's, or none. Lock: whoever initializes it needs a mutex that another thread holds while
// it waits for the variable. Fork: a child is created while another thread initializes it, and finds it begun for ever.
#include <cassert>
#include <cstring>
#include <mutex>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

static std::mutex m;
static int attempts;
static bool throws;

struct Value {
    int who;
    Value(int who) : who(who)
    {
        std::lock_guard guard(m);
        if (attempts++ == 0 && throws)
            throw 1;
    }
};

static int first(int who)
{
    static Value value(who);
    return value.who;
}

static int try_first(int who)
{
    try {
        return first(who);
    } catch (int) {
        return -1;
    }
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    int theirs = 0, mine = 0;

    throws = !std::strcmp(how, "throws");
    std::thread other([&] { theirs = try_first(2); });
    if (!std::strcmp(how, "lock")) {
        std::lock_guard guard(m);
        // Not the variable itself, whose initializer takes the mutex, too.
        std::thread third([&] { first(3); });
        third.join();
    } else if (!std::strcmp(how, "fork")) {
        if (fork() == 0)
            _exit(first(1) == 0);
        wait(nullptr);
    } else
        mine = try_first(1);
    other.join();
    if (!std::strcmp(how, "buggy"))
        assert(theirs == 1);
    if (!std::strcmp(how, "throws"))
        assert(mine != 1 || theirs != -1);
    if (!std::strcmp(how, "fixed"))
        assert(theirs == mine && attempts == 1);
}
