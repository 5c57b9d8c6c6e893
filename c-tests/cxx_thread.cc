// std::thread, std::mutex, std::condition_variable: a wait without (buggy) or with (fixed) a predicate.
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

static std::mutex m;
static std::condition_variable c;
static bool ready;

int main(int argc, char **argv)
{
    const bool fixed = argc > 1 && !std::strcmp(argv[1], "fixed");
    std::thread waiter([=] {
        std::unique_lock<std::mutex> lock(m);
        if (fixed)
            c.wait(lock, [] { return ready; });
        else
            c.wait(lock);
    });
    std::thread notifier([] {
        std::lock_guard<std::mutex> lock(m);
        ready = true;
        c.notify_one();
    });
    waiter.join();
    notifier.join();
}
